"""The policies, facts and pod templates by which it is known what the successors of evicted pods would request.

They come from watches (`ReadmissionWatcher`) or from a snapshot, and nothing here knows which. A module of its own, so
that a plan from a file imports no client of the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver.pod_classes import names_missing_class
from trimtab.admission.apiserver.resourcequota import find_refusing_quota, is_exceeded
from trimtab.admission.preview import describe_next_pod, submitted_pod
from trimtab.admission.readmission import NextPod, admit_next_pod
from trimtab.admission.running_requests import requests_of_running_pods
from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.kinds import built_in
from trimtab.cluster.next_pod import (
    TEMPLATED_OWNERS,
    find_placement_change,
    has_requests,
    has_revision_of,
    is_of_template,
    requests_of_template,
)
from trimtab.cluster.owner import NO_OWNER_KEY, OwnerKey, owners_from
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resizable_pod import ResizablePod
from trimtab.cluster.resources import UNKNOWN_AMOUNTS, Amounts, GrowingAmounts, LeastAmounts
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.wanted_requests import WantedRequests
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.actions.requests_of_policies import policies_that_resize
from trimtab.policy.cluster_facts import ALL_KINDS, ClusterFacts
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.watched_facts import WatchedPolicies
from trimtab.scheduling.cluster_model import Again

TEMPLATE = "Template"
TEMPLATE_KINDS = tuple(f"{kind}{TEMPLATE}" for kind in TEMPLATED_OWNERS)
WANTED_SECONDS = 60
"""For how many seconds a decision about the running pods of an owner is cached."""

RunningRequests = Callable[[ResizablePod], WantedRequests | Unreadable | None]
"""A function that returns what policies want for a running pod, or None if the template of its owner is not known."""


@dataclass(slots=True)
class ReadmissionState:
    """The policies, facts and templates that watches have reported. Not thread-safe."""

    settings: AdmissionSettings
    policies: Policies | None = None
    """The policies from files; None: those of the cluster are used."""
    listed_kinds: frozenset[str] = ALL_KINDS
    """The kinds of facts of which absence means something: a snapshot may lack all objects of a kind."""
    _watched: WatchedPolicies = field(init=False)
    _templates: dict[OwnerKey, PodTemplateSpec] = field(default_factory=dict)
    _assumed_templates: set[OwnerKey] = field(default_factory=set)
    """The owners whose template is not known, so that one of their pods serves as the template."""
    _template_requests: dict[OwnerKey, tuple[PodTemplateSpec, Amounts | None]] = field(default_factory=dict)
    _decided_with: AdmissionContext | None = None
    _next_pods: dict[OwnerKey, tuple[PodTemplateSpec, NextPod | Unreadable]] = field(default_factory=dict)
    _wanted_with: AdmissionContext | None = None
    _wanted_by_owner: dict[OwnerKey, tuple[PodTemplateSpec, Seconds, WantedRequests | Unreadable]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self._watched = WatchedPolicies(self.settings.own_namespace, self.policies)

    @property
    def in_force(self) -> Policies:
        """The policies that are in force now."""
        return self._watched.policies

    def apply_change(self, change: WatchEvent[Any]) -> None:
        """Applies one change that a watch has reported."""
        namespace, name = change.key
        is_deleted = change.change_type is ChangeType.DELETED
        if change.kind in TEMPLATE_KINDS:
            self.put_template(
                OwnerKey(namespace, built_in(change.kind.removesuffix(TEMPLATE)), name),
                None if is_deleted else change.after,
            )
        elif is_deleted:
            self._watched.drop(change.kind, change.key)
        else:
            self._watched.put(change.kind, change.key, change.after)

    def put_template(self, owner: OwnerKey, pod_template: PodTemplateSpec | None, *, is_assumed: bool = False) -> None:
        """Stores the template of an owner's next pod; None if there is none any more. `is_assumed`: whether a pod of
        the owner serves as the template."""
        self._templates.pop(owner, None)
        self._template_requests.pop(owner, None)
        self._assumed_templates.discard(owner)
        if pod_template is not None:
            self._templates[owner] = pod_template
            if is_assumed:
                self._assumed_templates.add(owner)

    @property
    def is_needed(self) -> bool:
        """Whether there is a policy or a VPA that may raise the requests of a pod's successor."""
        return bool(self.in_force.all or self._watched.build_facts(vpa_reach=()).vpas)

    def requests_lookup(self, now: Seconds | None = None) -> Again:
        """Returns a function for the present state that returns a successor's requests: LeastAmounts if the template
        of its owner is not known, Unreadable if there would be no successor, or if it may run on other nodes than the
        pod. One decision serves all pods of an owner, and is cached while nothing changes.

        `now` is the time, for the age of a VPA without a recommendation. None: such a VPA counts as young.
        """
        # The VPA's own webhook may be unavailable then, and pods would get their static requests: the larger ones.
        facts = self._watched.build_facts(vpa_reach=(), listed_kinds=self.listed_kinds)
        context = self._context_of(facts)
        if self._decided_with != context:
            self._decided_with = context
            self._next_pods.clear()

        # A VPA that is too young to be left out of account today is not so for ever.
        self._next_pods = {key: entry for key, entry in self._next_pods.items() if not isinstance(entry[1], Unreadable)}

        has_changes = self.is_needed
        quotas = _Quotas(facts.quotas)

        def requests_of(pod: PodInfo) -> Amounts | Unreadable | None:
            owner = pod.owner
            if owner is None or pod.is_daemon or pod.is_static:
                return None
            pod_template = self._templates.get(owner)
            if pod_template is None:
                return UNKNOWN_AMOUNTS
            is_assumed = owner in self._assumed_templates
            is_present = is_assumed or has_revision_of(pod, pod_template)
            is_known = not is_assumed and is_of_template(pod, pod_template)
            # The admission of a template is computed only where it says something else than the pod has.
            is_plain = (
                not has_changes
                and is_present
                and pod.namespace not in facts.limit_ranges
                and not (
                    "PriorityClass" in facts.listed_kinds
                    and names_missing_class(pod_template.spec, facts.priority_classes)
                )
            )
            if is_plain and has_requests(pod, self._requests_of_template(owner, pod_template)):
                refusal = None
                if quotas.exceeded_in(pod.namespace):
                    refusal = quotas.refusal_of(pod, owner, submitted_pod(pod_template, owner))
                return refusal or (None if is_known else UNKNOWN_AMOUNTS)
            next_pod = self._next_pod_of(owner, pod_template, context, now)
            if isinstance(next_pod, Unreadable):
                return next_pod
            refusal = _why_not_replaced(pod, owner, next_pod, is_present=is_present) or quotas.refusal_of(
                pod, owner, next_pod.stored, next_pod.requests
            )
            if refusal is not None:
                return refusal
            requests = next_pod.requests
            if is_known or isinstance(requests, GrowingAmounts):
                return None if _is_not_larger(requests, pod) else requests
            return LeastAmounts(requests)

        return requests_of

    def running_requests_lookup(self, now: Seconds | None = None) -> RunningRequests | None:
        """Returns a function that returns what policies want for a running pod, or None if no policy says `running:
        resize`. One decision serves all pods of an owner.

        `now` is the time, for recommendations that are no longer valid. None: all of them count as valid.
        """
        if not policies_that_resize(self.in_force):
            return None
        context = self._context_of(self._watched.build_facts(vpa_reach=()))
        if self._wanted_with != context:
            self._wanted_with = context
            self._wanted_by_owner.clear()

        def wanted_of(pod: ResizablePod) -> WantedRequests | Unreadable | None:
            owner = pod.owner
            key = owner or NO_OWNER_KEY
            pod_template = self._templates.get(key)
            if owner is None or pod_template is None:
                return None
            entry = self._wanted_by_owner.get(key)
            # A recommendation ends while nothing else changes, so an answer holds for a minute only.
            if entry is None or entry[0] is not pod_template or (now or 0) - entry[1] >= WANTED_SECONDS:
                wanted = requests_of_running_pods(pod_template, owner, context, now)
                entry = self._wanted_by_owner[key] = (pod_template, now or 0, wanted)
            return entry[2]

        return wanted_of

    def top_owner_of(self, pod: ResizablePod) -> str:
        """Returns namespace/Kind/name of the pod's topmost owner, or of the pod itself if it has no owner."""
        if pod.owner is None:
            return f"{pod.namespace}/Pod/{pod.name}"
        facts = self._watched.build_facts(vpa_reach=())
        return f"{pod.namespace}/{owners_from(pod.owner, pod.labels, facts.find_controller)[-1]}"

    def _requests_of_template(self, owner: OwnerKey, pod_template: PodTemplateSpec) -> Amounts | None:
        entry = self._template_requests.get(owner)
        if entry is None:
            entry = self._template_requests[owner] = (pod_template, requests_of_template(pod_template))
        return entry[1]

    def _context_of(self, facts: ClusterFacts) -> AdmissionContext:
        settings = replace(self.settings, paused=self.settings.paused or self._watched.is_paused)
        return AdmissionContext(policies=self.in_force, facts=facts, settings=settings)

    def _next_pod_of(
        self, owner: OwnerKey, pod_template: PodTemplateSpec, context: AdmissionContext, now: Seconds | None
    ) -> NextPod | Unreadable:
        entry = self._next_pods.get(owner)
        if entry is None or entry[0] is not pod_template:
            next_pod = admit_next_pod(pod_template, owner, context, now)
            entry = self._next_pods[owner] = (pod_template, next_pod)
        return entry[1]


def _why_not_replaced(pod: PodInfo, owner: OwnerKey, next_pod: NextPod, *, is_present: bool) -> Unreadable | None:
    """Returns why the next pod may need another node than those that are known to fit this pod, or None.

    Only a pod that may be of an older template can differ in every field. A pod of the present template may have more
    than it, which another webhook has added; but a RuntimeClass may demand labels of nodes that it did not before.
    """
    before, after = pod.requirements, next_pod.requirements
    field_name = find_placement_change(before, after)
    if field_name is None or (is_present and field_name != "nodeSelector"):
        return None
    source = "its RuntimeClass" if is_present else "the pod template"
    sentence = f"{source} has another {field_name} than pod {pod.key}, so it may need another node"
    return Unreadable(describe_next_pod(owner), sentence)


@dataclass(slots=True)
class _Quotas:
    """The quotas of all namespaces, asked once for each pod."""

    by_namespace: Mapping[str, tuple[ResourceQuota, ...]]
    _exceeded: dict[str, tuple[ResourceQuota, ...]] = field(default_factory=dict)

    def exceeded_in(self, namespace: str) -> tuple[ResourceQuota, ...]:
        """Returns the quotas of a namespace that allow less than is used now. Nearly every namespace has none."""
        if namespace not in self._exceeded:
            self._exceeded[namespace] = tuple(filter(is_exceeded, self.by_namespace.get(namespace, ())))
        return self._exceeded[namespace]

    def refusal_of(
        self, pod: PodInfo, owner: OwnerKey, next_pod: Pod, requests: Amounts | None = None
    ) -> Unreadable | None:
        """Returns why a quota would refuse the next pod after this one is gone, or None. `requests`: what the next pod
        requests; None if that is what this pod requests."""
        quotas, own = self.by_namespace.get(pod.namespace, ()), pod.requirements.requests
        if not quotas or isinstance(own, Unreadable):
            return None
        growth = {name: more for name, amount in (requests or {}).items() if (more := amount - own.get(name, 0)) > 0}
        if not growth:
            quotas = self.exceeded_in(pod.namespace)
        quota = find_refusing_quota(quotas, next_pod, growth)
        if quota is None:
            return None
        sentence = f"ResourceQuota {quota} would refuse it, because the namespace uses more than the quota allows"
        return Unreadable(describe_next_pod(owner), sentence)


def _is_not_larger(readmitted_requests: Amounts, pod: PodInfo) -> bool:
    """Returns whether these requests are not larger than the pod's present requests, so that the successor belongs to
    the same pod class."""
    requests = pod.requirements.requests
    if isinstance(requests, Unreadable):
        return False
    return all(requests.get(name, 0) >= amount for name, amount in readmitted_requests.items())
