"""What the watches tell, change by change: the World, since when it is so, and what is gone. No thread, no clock.

Where do policies come from: a folder, as the settings name it, or the cluster?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab.admission.audit.causes import UNREGISTERED_UNKNOWN, ChangeTimes, Moment
from trimtab.admission.audit.drift import AuditInputs
from trimtab.admission.audit.original_pod import AuditedPod, AuditedPodReader
from trimtab.cluster.api.admissionregistration import Custom, MutatingWebhookConfiguration, is_ours
from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.cluster.timestamps import seconds
from trimtab.kube.informers import Holds
from trimtab.kube.resources import PLACES, ListSource
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy import vpa_webhook
from trimtab.policy.cluster_facts import EVERYTHING, NOTHING_KNOWN
from trimtab.policy.facts_cache import FactsCache
from trimtab.policy.load import load_policies
from trimtab.policy.match import match_asks
from trimtab.policy.podpolicy import Policies
from trimtab.policy.policy_store import Loaded, PolicyStore, load_object
from trimtab.policy.retained_facts import COUNTED, OWNERS, holds
from trimtab.policy.retained_facts import RetainedOwner as HeldOwner
from trimtab.policy.status import PolicyStatus
from trimtab.policy.status import read as read_status
from trimtab.policy.vpa_webhook import Endpoints, Service, WebhookTarget
from trimtab.runtime import files
from trimtab.runtime.files import RuntimeFault
from trimtab.watchdog.settings import Settings

CONFIGURATION, SLICE, POLICY, POD, CLASS = (
    "MutatingWebhookConfiguration", "EndpointSlice", "PodPolicy", "Pod", "RuntimeClass",
)  # fmt: skip
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPolicy:
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
    status: PolicyStatus

    @property
    def since(self) -> Moment | None:
        return seconds(self.written)


@dataclass(frozen=True, slots=True)
class ObservedWebhookConfiguration:
    """A MutatingWebhookConfiguration, as far as it tells who was called since when."""

    labelled: bool
    """Does it carry our label?"""
    created: Moment | None
    called: tuple[WebhookTarget, ...]


@dataclass(frozen=True, slots=True)
class ObservedRuntimeClass:
    """A RuntimeClass, and when what pods get from it was last written."""

    whole: RuntimeClass
    written: Moment | None


@dataclass(frozen=True, slots=True)
class ObservedOwner:
    """What decisions read of an owner, and its own uid."""

    fact: HeldOwner
    uid: str


def sources(own_namespace: str, *, policies: bool) -> tuple[ListSource, ...]:
    """Every list that is watched. Of ReplicaSets and CronJobs only the metadata, of ConfigMaps our recommendations."""
    whole = [PLACES[kind] for kind in (*sorted(EVERYTHING), CONFIGURATION, POD)]
    owners = [replace(PLACES[kind], slim=kind not in COUNTED) for kind in OWNERS]
    shards = ListSource(
        kind="ConfigMap", group_version="v1", plural="configmaps", namespace=own_namespace,
        labels=f"{RECOMMENDATIONS}=v1",
    )  # fmt: skip
    return (*whole, *owners, shards, *([PLACES[POLICY]] if policies else []))


def slices(service: Service) -> ListSource:
    """The endpoints of one Service."""
    namespace, name = service
    return replace(PLACES[SLICE], namespace=namespace, labels=f"{vpa_webhook.SERVICE_LABEL}={name}")


def held(own_namespace: str, reader: AuditedPodReader) -> Holds:
    """Kind → what is held of its objects; of pods what the reader makes of them."""
    plain = holds(own_namespace)

    def seen_class(found: Any) -> ObservedRuntimeClass:
        return ObservedRuntimeClass(plain[CLASS](found), _written(found, "overhead", "scheduling"))

    own: dict[str, Callable[[Any], Any]] = {
        POD: reader, CLASS: seen_class, CONFIGURATION: _configuration, SLICE: vpa_webhook.endpoints, POLICY: _policy,
    }  # fmt: skip
    return {**plain, **{kind: _owner(plain[kind]) for kind in OWNERS}, **own}


def _owner(fact: Callable[[Any], HeldOwner]) -> Callable[[Any], ObservedOwner]:
    return lambda found: ObservedOwner(fact(found), found.metadata.uid)


def _written(found: Any, *parts: str) -> Moment | None:
    return seconds(found.metadata.written(*parts))


def _configuration(found: ApiObject) -> ObservedWebhookConfiguration:
    assert isinstance(found, MutatingWebhookConfiguration)
    created = seconds(found.metadata.creation_timestamp)
    return ObservedWebhookConfiguration(is_ours(found.metadata, ""), created, vpa_webhook.called(found))


def _policy(found: ApiObject) -> ObservedPolicy:
    assert isinstance(found, Custom)
    meta = found.metadata
    spec = found.spec if isinstance(found.spec, dict) else {}
    return ObservedPolicy(
        name=meta.name, uid=meta.uid, version=meta.resource_version, generation=meta.generation,
        written=meta.written("spec") or "", mode=str(spec.get("mode", "apply")), loaded=load_object(found),
        status=read_status(found.status),
    )  # fmt: skip


class AuditStateBuilder:
    """Told of changes, it gives the World as it is now. Not for two threads."""

    def __init__(self, base: AuditInputs, configuration: str, *, policies: bool) -> None:
        """`base` has the terms, and the policies where they do not come from the cluster."""
        self._base = base
        self._configuration = configuration
        self._from_cluster = policies
        self._gathering = FactsCache(base.terms.own_namespace)
        self._standing = PolicyStore()
        self._configurations: dict[Key, ObservedWebhookConfiguration] = {}
        self._slices: dict[Key, Endpoints] = {}
        self._classes: dict[Key, ObservedRuntimeClass] = {}
        self.uids: dict[tuple[str, str, str], str] = {}
        """(namespace, kind, name) of every owner → its uid."""
        self.policies: dict[str, ObservedPolicy] = {}
        self.gone: list[AuditedPod] = []
        """Pods that went since `taken` was called last."""

    def hear(self, change: WatchEvent[Any]) -> None:
        """Something came, changed or went."""
        gone = change.what is ChangeType.DELETED
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

    def _hear_policy(self, name: str, after: ObservedPolicy | None, gone: bool) -> None:
        if gone or after is None:
            self._standing.drop(name)
            self.policies.pop(name, None)
            return
        before = self.policies.get(name)
        self.policies[name] = after
        if before is None or before.generation != after.generation:  # not for each status that we write
            self._standing.put(name, after.loaded)

    def _hear_fact(self, change: WatchEvent[Any], gone: bool) -> None:
        if change.kind in OWNERS:
            self._hear_owner((change.key[0], change.kind, change.key[1]), change.after)
        if change.kind == CLASS:
            _keep(self._classes, change, gone)
        if gone:
            self._gathering.drop(change.kind, change.key)
        else:
            self._gathering.put(change.kind, change.key, _fact(change.after))

    def _hear_owner(self, key: tuple[str, str, str], after: ObservedOwner | None) -> None:
        if after is None:
            self.uids.pop(key, None)
        else:
            self.uids[key] = after.uid

    def taken(self) -> list[AuditedPod]:
        """Pods that went since the last time."""
        gone, self.gone = self.gone, []
        return gone

    @property
    def asked_annotations(self) -> frozenset[str]:
        """Annotations of pods that policies match by."""
        policies = self._standing.policies() if self._from_cluster else self._base.policies
        return policies.once(match_asks).annotations

    @property
    def services(self) -> frozenset[Service]:
        """Whose endpoints must be watched to know whether the VPA's webhook can act."""
        return vpa_webhook.services(self._called)

    def forget_slices(self) -> None:
        """Others are watched from now on."""
        self._slices.clear()

    @property
    def _called(self) -> Mapping[Key, tuple[WebhookTarget, ...]]:
        return {key: found.called for key, found in self._configurations.items()}

    def world(self) -> AuditInputs:
        """Everything as it is now; policies and facts are the same objects while nothing differs."""
        facts = self._gathering.facts(vpa_reach=vpa_webhook.reach(self._called, self._slices))
        terms = replace(self._base.terms, paused=self._base.terms.paused or self._gathering.paused)
        policies = self._standing.policies() if self._from_cluster else self._base.policies
        return AuditInputs(policies=policies, facts=facts, terms=terms)

    def mistakes(self, name: str) -> tuple[str, ...]:
        """Why the policy of this name does not load as it stands in the cluster."""
        return tuple(str(mistake) for mistake in self._standing.broken().get(name, ()))

    def since(self) -> ChangeTimes:
        """Since when it is so."""
        return ChangeTimes(
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
    if isinstance(held, ObservedOwner):
        return held.fact
    return held.whole if isinstance(held, ObservedRuntimeClass) else held


def _keep(into: dict[Key, Any], change: WatchEvent[Any], gone: bool) -> None:
    if gone:
        into.pop(change.key, None)
    else:
        into[change.key] = change.after


class InvalidPolicies(RuntimeFault):
    """Mistakes in the folder's policies: all of them, together."""

    def __init__(self, mistakes: tuple[ConfigError, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


def base(settings: Settings) -> AuditInputs:
    """The terms, and the folder's policies where there is one. Raises UnreadableFiles or UnsoundPolicies."""
    loaded = load_policies(files.read(settings.policies)) if settings.policies else None
    if loaded is not None and loaded.mistakes:
        raise InvalidPolicies(loaded.mistakes)
    policies = loaded.policies if loaded is not None else Policies()
    return AuditInputs(policies=policies, facts=NOTHING_KNOWN, terms=settings.terms)
