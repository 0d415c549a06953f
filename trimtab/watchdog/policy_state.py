"""Builds the inputs of the audit from watch events: policies, facts, change times and deleted pods. It has no threads
and no clock.

If the settings name a folder, the policies are read from the folder, otherwise from the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from trimtab.admission.audit.causes import UNREGISTERED_UNKNOWN, ChangeTimes, Moment
from trimtab.admission.audit.drift import AuditInputs
from trimtab.admission.audit.original_pod import AuditedPod, AuditedPodReader
from trimtab.cluster.api.admissionregistration import Custom, MutatingWebhookConfiguration, is_trimtab_configuration
from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.kinds import built_in
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.kube.informers import Holds
from trimtab.kube.resources import LIST_SOURCES, ListSource, fact_list_sources, sources_by_name
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy import vpa_webhook
from trimtab.policy.cluster_facts import ALL_KINDS, NO_FACTS, OWNERS
from trimtab.policy.facts_index import RetainedOwner as HeldOwner
from trimtab.policy.match import match_dependencies
from trimtab.policy.podpolicy import Policies
from trimtab.policy.status import WARN, PolicyStatus, is_braked
from trimtab.policy.status import decode_status as read_status
from trimtab.policy.vpa_webhook import WebhookTarget
from trimtab.policy.watched_facts import (
    CONFIGURATION,
    COUNTED,
    POLICY,
    SLICE,
    Loaded,
    WatchedPolicies,
    load_object,
    projections_by_kind,
)
from trimtab.watchdog.settings import Settings
from trimtab.workers.policy_files import load_policy_files

POD, CLASS = "Pod", "RuntimeClass"
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPolicy:
    """A PodPolicy, as it is stored in the cluster."""

    name: str
    uid: str
    version: str
    generation: int
    spec_written_at: str
    """When the policy's spec was last written."""
    mode: str
    """The mode in force: the stored one, or `warn` if the harm brake holds the policy. It is known even if the policy
    has mistakes."""
    loaded: Loaded
    status: PolicyStatus

    @property
    def changed_at(self) -> Moment | None:
        return parse_timestamp(self.spec_written_at)


@dataclass(frozen=True, slots=True)
class ObservedWebhookConfiguration:
    """A MutatingWebhookConfiguration, reduced to its creation time and the targets of its webhooks."""

    labelled: bool
    """Whether the configuration has Trimtab's label."""
    created: Moment | None
    called: tuple[WebhookTarget, ...]


@dataclass(frozen=True, slots=True)
class ObservedRuntimeClass:
    """A RuntimeClass, and when its overhead or scheduling was last written."""

    whole: RuntimeClass
    written_at: Moment | None


@dataclass(frozen=True, slots=True)
class ObservedOwner:
    """Those fields of an owner that decisions read, and its UID."""

    fact: HeldOwner
    uid: str


def list_sources(own_namespace: str, *, policies: bool) -> tuple[ListSource, ...]:
    """Returns every list that is watched, with or without the list of the cluster's policies."""
    facts = fact_list_sources(ALL_KINDS, OWNERS, COUNTED, own_namespace)
    return (*facts, LIST_SOURCES[CONFIGURATION], LIST_SOURCES[POD], *([LIST_SOURCES[POLICY]] if policies else []))


def object_projections(own_namespace: str, reader: AuditedPodReader) -> Holds:
    """Returns kind → the function that reduces an object of this kind to what is stored; pods are reduced by
    `reader`."""
    projections = projections_by_kind(own_namespace)

    def reduce_class(runtime_class: Any) -> ObservedRuntimeClass:
        return ObservedRuntimeClass(
            projections[CLASS](runtime_class), _written(runtime_class, "overhead", "scheduling")
        )

    own_projections: dict[str, Callable[[Any], Any]] = {
        POD: reader,
        CLASS: reduce_class,
        CONFIGURATION: _configuration,
        SLICE: vpa_webhook.retain_endpoints,
        POLICY: _policy,
    }
    return {**projections, **{kind: _owner_projection(projections[kind]) for kind in OWNERS}, **own_projections}


def _owner_projection(fact: Callable[[Any], HeldOwner]) -> Callable[[Any], ObservedOwner]:
    return lambda found: ObservedOwner(fact(found), found.metadata.uid)


def _written(document: Any, *parts: str) -> Moment | None:
    return parse_timestamp(document.metadata.last_written_at(*parts))


def _configuration(api_object: ApiObject) -> ObservedWebhookConfiguration:
    assert isinstance(api_object, MutatingWebhookConfiguration)
    created = parse_timestamp(api_object.metadata.creation_timestamp)
    return ObservedWebhookConfiguration(
        is_trimtab_configuration(api_object.metadata, ""), created, vpa_webhook.find_vpa_targets(api_object)
    )


def _policy(api_object: ApiObject) -> ObservedPolicy:
    assert isinstance(api_object, Custom)
    meta = api_object.metadata
    spec = api_object.spec if isinstance(api_object.spec, dict) else {}
    is_held = is_braked({"metadata": {"generation": meta.generation}, "status": api_object.status})
    return ObservedPolicy(
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        spec_written_at=meta.last_written_at("spec") or "",
        mode=WARN if is_held else str(spec.get("mode", "apply")),
        loaded=load_object(api_object),
        status=read_status(api_object.status),
    )


class AuditStateBuilder:
    """Applies watch events, and returns the present inputs. Only one thread may use it."""

    def __init__(self, base: AuditInputs, configuration: str, *, policies: bool) -> None:
        """`base` has the settings, and the policies if they are not read from the cluster."""
        self._base = base
        self._configuration = configuration
        self._watched = WatchedPolicies(base.terms.own_namespace, None if policies else base.policies)
        self._configurations: dict[Key, ObservedWebhookConfiguration] = {}
        self._classes: dict[Key, ObservedRuntimeClass] = {}
        self.uids: dict[OwnerKey, str] = {}
        """Owner → its UID."""
        self.policies: dict[str, ObservedPolicy] = {}
        self.gone: list[AuditedPod] = []
        """Pods deleted since the last call of `take_deleted_pods`."""

    def apply_event(self, change: WatchEvent[Any]) -> None:
        """Applies the creation, change or deletion of an object."""
        is_deleted = change.change_type is ChangeType.DELETED
        match change.kind:
            case "Pod":
                if change.before is not None and is_deleted:
                    self.gone.append(change.before)
            case "PodPolicy":
                self._apply_policy(change.key[1], change.after, is_deleted)
            case "MutatingWebhookConfiguration":
                _put_or_drop(self._configurations, change, is_deleted)
                self._apply_watched(change, is_deleted)
            case _:
                if change.kind in OWNERS:
                    key = OwnerKey(change.key[0], built_in(change.kind), change.key[1])
                    if change.after is None:
                        self.uids.pop(key, None)
                    else:
                        self.uids[key] = change.after.uid
                if change.kind == CLASS:
                    _put_or_drop(self._classes, change, is_deleted)
                self._apply_watched(change, is_deleted)

    def _apply_policy(self, name: str, after: ObservedPolicy | None, is_deleted: bool) -> None:
        if is_deleted or after is None:
            self._watched.drop(POLICY, ("", name))
            self.policies.pop(name, None)
            return
        before = self.policies.get(name)
        self.policies[name] = after
        # Most writes of the status change neither.
        if before is None or (before.generation, before.mode) != (after.generation, after.mode):
            self._watched.put(POLICY, ("", name), after.loaded)

    def _apply_watched(self, change: WatchEvent[Any], is_deleted: bool) -> None:
        if is_deleted:
            self._watched.drop(change.kind, change.key)
        else:
            self._watched.put(change.kind, change.key, _decision_fact(change.after))

    def take_deleted_pods(self) -> list[AuditedPod]:
        """Returns the pods that were deleted since the last call."""
        gone, self.gone = self.gone, []
        return gone

    @property
    def matched_annotations(self) -> frozenset[str]:
        """The keys of the pod annotations that matches of policies read."""
        return self._watched.policies.compute_once(match_dependencies).annotations

    @property
    def added_lists(self) -> tuple[ListSource, ...]:
        """Further lists to be watched, because other objects refer to them: endpoints of the VPA's webhook, Leases of
        schedulers."""
        return sources_by_name(self._watched.vpa_services, self._watched.scheduler_leases)

    def forget_added_lists(self) -> None:
        """Removes the objects of the further lists, because different lists are watched from now on."""
        self._watched.forget_added_lists()

    def build_inputs(self, now: Seconds) -> AuditInputs:
        """Returns the inputs at this time. Policies and facts are the same objects as before if nothing has changed."""
        facts = self._watched.build_facts(now=now)
        terms = replace(self._base.terms, paused=self._base.terms.paused or self._watched.is_paused)
        return AuditInputs(policies=self._watched.policies, facts=facts, terms=terms)

    def policy_mistakes(self, name: str) -> tuple[str, ...]:
        """Returns the mistakes in the stored policy with this name; empty if it is valid."""
        return tuple(str(mistake) for mistake in self._watched.invalid_documents().get(name, ()))

    def change_times(self) -> ChangeTimes:
        """Returns when policies, RuntimeClasses and the webhook's configuration were last written."""
        # When the oldest of Trimtab's webhook configurations was created.
        own = [
            configuration
            for (_, name), configuration in self._configurations.items()
            if configuration.labelled or name == self._configuration
        ]
        times = [configuration.created for configuration in own if configuration.created is not None]
        return ChangeTimes(
            policies={
                name: time for name, observed in self.policies.items() if (time := observed.changed_at) is not None
            },
            classes={
                key[1]: observed.written_at
                for key, observed in self._classes.items()
                if observed.written_at is not None
            },
            webhook=min(times) if times else UNREGISTERED_UNKNOWN if own else None,
        )


def _decision_fact(reduced: Any) -> Any:
    """Returns the part of a stored object that decisions read."""
    if isinstance(reduced, ObservedOwner):
        return reduced.fact
    if isinstance(reduced, ObservedWebhookConfiguration):
        return reduced.called
    return reduced.whole if isinstance(reduced, ObservedRuntimeClass) else reduced


def _put_or_drop(into: dict[Key, Any], change: WatchEvent[Any], is_deleted: bool) -> None:
    if is_deleted:
        into.pop(change.key, None)
    else:
        into[change.key] = change.after


def load_base_inputs(settings: Settings) -> AuditInputs:
    """Returns the inputs that do not come from watches: the settings, and the folder's policies if there is a folder.
    Raises UnreadableFiles or InvalidPolicyFiles."""
    policies = load_policy_files(settings.policies) or Policies()
    return AuditInputs(policies=policies, facts=NO_FACTS, terms=settings.admission_settings)
