"""What an owner's pod template says about its next pod, and whether the pods that the owner has now request the same
and may run on the same nodes.

They differ if a pod was resized in place, or if the owner replaces its pods by its present template only when they end,
like a StatefulSet with `updateStrategy: OnDelete`. The next pod is then created as the template says, so a node needs
room for that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.workload import PodTemplateSpec, Templated
from trimtab.cluster.kinds import built_in
from trimtab.cluster.owner import HASH_LABELS, OwnerKey
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, all_containers, larger_amounts, limits_of, pod_requests, requests_of

TEMPLATED_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController", "Job")
"""The built-in kinds whose controller creates a new pod from its pod template, on any node, when a pod is lost. (The
pods of Deployments and Rollouts are those of their ReplicaSets.)"""
REVISION_LABEL = "controller-revision-hash"
"""The label by which a StatefulSet marks its pods with the revision of the template from which it created them."""
_KINDS_OF_KNOWN_REVISION = (built_in("StatefulSet"), built_in("Job"))
_BUILT_IN_OWNERS = frozenset(map(built_in, TEMPLATED_OWNERS))
_ENDED = ("Complete", "Failed")


def keep_template(owner: Templated) -> PodTemplateSpec | None:
    """Returns the template of the owner's next pod, or None if the owner creates no more pods, like an old ReplicaSet
    or a Job that has ended.

    While a StatefulSet rolls out a new template, it may create a lost pod from the old one (pkg/controller/statefulset,
    `newVersionedStatefulSetPod`). Its template then has the revision as a label, as its pods have. With OnDelete, the
    present template is used for every pod, also for those of an older revision; it then has its revision as an
    annotation.
    """
    spec, status, template = owner.spec, owner.status, owner.spec.template
    has_ended = any(c.type in _ENDED and c.status == "True" for c in status.conditions)
    if has_ended or not value_or(spec.replicas, 1):
        return None
    if not status.update_revision or status.current_revision == status.update_revision:
        return template
    side = "annotations" if spec.update_strategy.type == "OnDelete" else "labels"
    marks = {**value_or(getattr(template.metadata, side), {}), REVISION_LABEL: status.update_revision}
    return change(template, metadata=change(template.metadata, **{side: marks}))


def has_revision_of(pod: PodInfo, template: PodTemplateSpec) -> bool:
    """Returns whether the pod was created from this revision of the template. False if that cannot be told: a
    ReplicaSet, a ReplicationController and an owner of another project may keep their pods when their template is
    edited.

    A Deployment and a Rollout mark the template of a ReplicaSet and its pods with the same hash. A StatefulSet marks
    its pods, and `keep_template` the template while there are two revisions. The template of a Job cannot be changed.
    """
    meta, own = template.metadata, pod.requirements.labels
    labels = value_or(meta.labels, {})
    revision = labels.get(REVISION_LABEL) or value_or(meta.annotations, {}).get(REVISION_LABEL)
    if revision is not None and REVISION_LABEL in own:
        return own[REVISION_LABEL] == revision
    if pod.owner is not None and pod.owner.kind in _KINDS_OF_KNOWN_REVISION:
        return True
    return any(name in labels and own.get(name) == labels[name] for name in HASH_LABELS.values())


def is_of_template(pod: PodInfo, template: PodTemplateSpec) -> bool:
    """Returns whether the owner would create this pod from the template, and not from an older one."""
    revision = value_or(template.metadata.labels, {}).get(REVISION_LABEL)
    return revision is None or pod.requirements.labels.get(REVISION_LABEL, revision) == revision


def find_placement_change(pod: SchedulingRequirements, next_pod: SchedulingRequirements) -> str | None:
    """Returns the field of the spec by which the next pod may not run where this one may, or None if there is none. A
    field that demands less of a node than before is no such field."""
    changed = {
        "nodeSelector": not next_pod.node_selector.items() <= pod.node_selector.items(),
        "affinity.nodeAffinity": next_pod.node_affinity not in (None, pod.node_affinity),
        "affinity.podAffinity": not _contains(pod.required_affinity, next_pod.required_affinity),
        "affinity.podAntiAffinity": not _contains(pod.required_anti_affinity, next_pod.required_anti_affinity),
        "tolerations": not _contains(next_pod.tolerations, pod.tolerations),
        "topologySpreadConstraints": not _contains(pod.hard_spreads, next_pod.hard_spreads),
        "hostPort": not _contains(pod.host_ports, next_pod.host_ports),
        "schedulerName": pod.scheduler != next_pod.scheduler,
        "runtimeClassName, os or volumes": pod.runtime_needs != next_pod.runtime_needs,
    }
    return next((name for name, is_changed in changed.items() if is_changed), None)


def _contains(items: Sequence[object], others: Sequence[object]) -> bool:
    return all(other in items for other in others)


def requests_of_template(template: PodTemplateSpec) -> Amounts | None:
    """Returns what a pod of the template requests where no LimitRange and no RuntimeClass changes it; None if that can
    be known only by admission, because the template names a RuntimeClass or pod-level resources, or an amount that
    cannot be read."""
    spec = template.spec
    if spec.runtime_class_name or value_or(spec.resources, None) is not None:
        return None
    try:
        if all(limits_of(c.resources).keys() <= requests_of(c.resources).keys() for c in all_containers(spec)):
            return pod_requests(spec)
    except NotAQuantity:
        return None
    return None


def has_requests(pod: PodInfo, requests: Amounts | None) -> bool:
    """Returns whether the pod requests exactly these amounts."""
    own = pod.requirements.requests
    if requests is None or isinstance(own, Unreadable):
        return False
    return own == requests or all(own.get(name, 0) == requests.get(name, 0) for name in own.keys() | requests.keys())


@dataclass(frozen=True, slots=True)
class TemplateKey:
    """An owner and what distinguishes one of its templates from the others."""

    owner: OwnerKey
    labels: frozenset[tuple[str, str]] = frozenset()
    """The labels that pods of one template have in common; empty if the owner has one template only."""


def template_key(pod: PodInfo) -> TemplateKey | None:
    """Returns the same for all pods that an owner creates from one template; None for a pod without an owner.

    A built-in owner has one template. One of another project may have several, for example for a head and for workers,
    and tells their pods apart by labels. Labels that number a pod, repeat the end of its name or mark a revision do
    not distinguish templates.
    """
    owner = pod.owner
    if owner is None:
        return None
    if owner.kind in _BUILT_IN_OWNERS:
        return TemplateKey(owner)
    labels = [
        (name, value)
        for name, value in pod.requirements.labels.items()
        if not (value.isdecimal() or f"-{pod.name}".endswith(f"-{value}") or name.endswith("-hash"))
    ]
    return TemplateKey(owner, frozenset(labels))


def largest_requests(pods: Iterable[PodInfo]) -> Mapping[TemplateKey, Amounts]:
    """Returns template → the largest requests of its pods, for templates whose pods do not all request the same.

    A template that is not known requests as much as some of its pods.
    """
    first: dict[TemplateKey, PodInfo] = {}
    largest: dict[TemplateKey, Amounts] = {}
    for pod in pods:
        requests = pod.requirements.requests
        if isinstance(requests, Unreadable) or pod.is_daemon or pod.is_static or (key := template_key(pod)) is None:
            continue
        other = first.setdefault(key, pod)
        if other.requirements is pod.requirements or has_requests(other, requests):
            continue
        known = largest.get(key)
        if known is None:
            known = other.requirements.requests  # type: ignore[assignment]
        largest[key] = larger_amounts(known, requests)  # type: ignore[arg-type]
    return largest
