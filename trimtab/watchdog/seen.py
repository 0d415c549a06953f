"""What the watches tell, change by change: the World, since when it is so, and what is gone. No thread, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab.admission.running.submitted import Held, Reader
from trimtab.admission.running.survey import World
from trimtab.admission.running.why import UNREGISTERED_UNKNOWN, Moment, Since
from trimtab.cluster.api.meta import Shape
from trimtab.cluster.api.rules import RuntimeClass
from trimtab.cluster.api.webhooks import Custom, MutatingWebhookConfiguration, is_ours
from trimtab.cluster.moment import seconds
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.kube.kinds import PLACES, Source
from trimtab.kube.state import Change, What
from trimtab.kube.watch import Holds
from trimtab.policy import vpa_webhook
from trimtab.policy.facts import EVERYTHING
from trimtab.policy.gathering import Gathering
from trimtab.policy.held import OWNERS, holds, owner
from trimtab.policy.standing import Loaded, Standing, load_object
from trimtab.policy.status import Status
from trimtab.policy.status import read as read_status
from trimtab.policy.vpa_webhook import Called, Endpoints, Service

CONFIGURATION, SLICE, POLICY, POD, CLASS = (
    "MutatingWebhookConfiguration", "EndpointSlice", "PodPolicy", "Pod", "RuntimeClass",
)  # fmt: skip
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPolicy:
    """A PodPolicy of the cluster, as it stands there."""

    name: str
    uid: str
    version: str
    generation: int
    written: str
    """When its spec was last written."""
    mode: str
    """As it stands there, also where the document does not load."""
    loaded: Loaded
    status: Status

    @property
    def since(self) -> Moment | None:
        return seconds(self.written)


@dataclass(frozen=True, slots=True)
class SeenConfiguration:
    """A MutatingWebhookConfiguration, as far as it tells who was called since when."""

    labelled: bool
    """Does it carry our label?"""
    created: Moment | None
    called: tuple[Called, ...]


@dataclass(frozen=True, slots=True)
class SeenClass:
    """A RuntimeClass, and when what pods get from it was last written."""

    whole: RuntimeClass
    written: Moment | None


@dataclass(frozen=True, slots=True)
class SeenOwner:
    """Who controls an owner, and its own uid."""

    above: Owner | None
    uid: str


def sources(own_namespace: str, *, policies: bool) -> tuple[Source, ...]:
    """Every list that is watched. Of owners only the metadata is asked for, of ConfigMaps our recommendations."""
    whole = [PLACES[kind] for kind in (*sorted(EVERYTHING), CONFIGURATION, POD)]
    owners = [replace(PLACES[kind], slim=True) for kind in OWNERS]
    shards = Source(
        kind="ConfigMap", group_version="v1", plural="configmaps", namespace=own_namespace,
        labels=f"{RECOMMENDATIONS}=v1",
    )  # fmt: skip
    return (*whole, *owners, shards, *([PLACES[POLICY]] if policies else []))


def slices(service: Service) -> Source:
    """The endpoints of one Service."""
    namespace, name = service
    return replace(PLACES[SLICE], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")


def held(own_namespace: str) -> Holds:
    """Kind → what is held of its objects."""
    plain, reader = holds(own_namespace), Reader()

    def seen_class(found: Any) -> SeenClass:
        return SeenClass(plain[CLASS](found), _written(found, "overhead", "scheduling"))

    own: dict[str, Callable[[Any], Any]] = {
        POD: reader, CLASS: seen_class, CONFIGURATION: _configuration, SLICE: vpa_webhook.endpoints, POLICY: _policy,
    }  # fmt: skip
    return {**plain, **dict.fromkeys(OWNERS, _owner), **own}


def _owner(found: Shape) -> SeenOwner:
    return SeenOwner(owner(found), found.metadata.uid)  # type: ignore[attr-defined]


def _written(found: Any, *parts: str) -> Moment | None:
    return seconds(found.metadata.written(*parts))


def _configuration(found: Shape) -> SeenConfiguration:
    assert isinstance(found, MutatingWebhookConfiguration)
    created = seconds(found.metadata.creation_timestamp)
    return SeenConfiguration(is_ours(found.metadata, ""), created, vpa_webhook.called(found))


def _policy(found: Shape) -> SeenPolicy:
    assert isinstance(found, Custom)
    meta = found.metadata
    spec = found.spec if isinstance(found.spec, dict) else {}
    return SeenPolicy(
        name=meta.name, uid=meta.uid, version=meta.resource_version, generation=meta.generation,
        written=meta.written("spec") or "", mode=str(spec.get("mode", "apply")), loaded=load_object(found),
        status=read_status(found.status),
    )  # fmt: skip


class Seen:
    """Told of changes, it gives the World as it is now. Not for two threads."""

    def __init__(self, base: World, configuration: str, *, policies: bool) -> None:
        """`base` has the terms, and the policies where they do not come from the cluster."""
        self._base = base
        self._configuration = configuration
        self._from_cluster = policies
        self._gathering = Gathering(base.terms.own_namespace)
        self._standing = Standing()
        self._configurations: dict[Key, SeenConfiguration] = {}
        self._slices: dict[Key, Endpoints] = {}
        self._classes: dict[Key, SeenClass] = {}
        self.uids: dict[tuple[str, str, str], str] = {}
        """(namespace, kind, name) of every owner → its uid."""
        self.policies: dict[str, SeenPolicy] = {}
        self.gone: list[Held] = []
        """Pods that went since `taken` was called last."""

    def hear(self, change: Change[Any]) -> None:
        """Something came, changed or went."""
        gone = change.what is What.DELETED
        match change.kind:
            case "Pod":
                if change.before is not None and gone:
                    self.gone.append(change.before)
            case "PodPolicy":
                self._hear_policy(change.key[1], change.after, gone)
            case "MutatingWebhookConfiguration":
                _keep(self._configurations, change, gone)
            case "EndpointSlice":
                _keep(self._slices, change, gone)
            case _:
                self._hear_fact(change, gone)

    def _hear_policy(self, name: str, after: SeenPolicy | None, gone: bool) -> None:
        if gone or after is None:
            self._standing.drop(name)
            self.policies.pop(name, None)
            return
        before = self.policies.get(name)
        self.policies[name] = after
        if before is None or before.generation != after.generation:  # not for each status that we write
            self._standing.put(name, after.loaded)

    def _hear_fact(self, change: Change[Any], gone: bool) -> None:
        if change.kind in OWNERS:
            self._hear_owner((change.key[0], change.kind, change.key[1]), change.after)
        if change.kind == CLASS:
            _keep(self._classes, change, gone)
        if gone:
            self._gathering.drop(change.kind, change.key)
        else:
            self._gathering.put(change.kind, change.key, _fact(change.after))

    def _hear_owner(self, key: tuple[str, str, str], after: SeenOwner | None) -> None:
        if after is None:
            self.uids.pop(key, None)
        else:
            self.uids[key] = after.uid

    def taken(self) -> list[Held]:
        """Pods that went since the last time."""
        gone, self.gone = self.gone, []
        return gone

    @property
    def services(self) -> frozenset[Service]:
        """Whose endpoints must be watched to know whether the VPA's webhook can act."""
        return vpa_webhook.services(self._called)

    def forget_slices(self) -> None:
        """Others are watched from now on."""
        self._slices.clear()

    @property
    def _called(self) -> Mapping[Key, tuple[Called, ...]]:
        return {key: found.called for key, found in self._configurations.items()}

    def world(self) -> World:
        """Everything as it is now; policies and facts are the same objects while nothing differs."""
        facts = self._gathering.facts(vpa_acts=vpa_webhook.acts(self._called, self._slices))
        terms = replace(self._base.terms, paused=self._base.terms.paused or self._gathering.paused)
        policies = self._standing.policies() if self._from_cluster else self._base.policies
        return World(policies=policies, facts=facts, terms=terms)

    def mistakes(self, name: str) -> tuple[str, ...]:
        """Why the policy of this name does not load as it stands in the cluster."""
        return tuple(str(mistake) for mistake in self._standing.broken().get(name, ()))

    def since(self) -> Since:
        """Since when it is so."""
        return Since(
            policies={name: at for name, found in self.policies.items() if (at := found.since) is not None},
            classes={key[1]: found.written for key, found in self._classes.items() if found.written is not None},
            webhook=self._registered(),
        )

    def _registered(self) -> Moment | NotYet | None:
        """When the oldest configuration of ours was made."""
        found = [f for (_, name), f in self._configurations.items() if f.labelled or name == self._configuration]
        times = [one.created for one in found if one.created is not None]
        return min(times) if times else UNREGISTERED_UNKNOWN if found else None


def _fact(held: Any) -> Any:
    """What decisions read of it."""
    if isinstance(held, SeenOwner):
        return held.above
    return held.whole if isinstance(held, SeenClass) else held


def _keep(into: dict[Key, Any], change: Change[Any], gone: bool) -> None:
    if gone:
        into.pop(change.key, None)
    else:
        into[change.key] = change.after
