"""Reduces a stored pod to the pod as submitted, groups pods that are decided alike, and reads failures from pod
status.

What the API server fills in before it calls a webhook (defaults, LimitRange, priority, the class's overhead) is visible
to the webhook and stays. What is added later (name, node, times, status) is removed. Later changes by another webhook
or by an in-place resize cannot be distinguished from submitted values, and stay.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from trimtab.cluster.api.meta import UNSET, Labels, Metadata, SelectorRequirement, UnsetType, change, value_or
from trimtab.cluster.api.pod import Affinity, Condition, ContainerStatus, NodeAffinity, Pod, PodSpec, PodStatus, Volume
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.policy import changed_annotation
from trimtab.policy.autoscalers import WRITTEN_BY_VPA
from trimtab.policy.changed_annotation import LIMIT_RANGER, ChangedAnnotation
from trimtab.policy.compiled_annotation import COMPILED_PREFIX


class FailureKind(StrEnum):
    """The ways in which a policy can harm a pod. The set of values is bounded: metrics use it as a label."""

    OOM_KILLED = "oom-killed"
    """A container was killed because it exceeded its memory limit, or its node ran out of memory."""
    EVICTED = "evicted"
    """The kubelet evicted the pod because its node ran short of a resource."""
    UNSCHEDULABLE = "unschedulable"
    """The pod does not fit any node."""


@dataclass(frozen=True, slots=True)
class PodFailure:
    """One failure of one pod."""

    trouble: FailureKind
    at: float
    """Seconds since 1970: the time of the failure; for an unschedulable pod, the start of the wait."""


def read_failures(status: PodStatus, created: float | None) -> tuple[PodFailure, ...]:
    """Returns the latest failure of each kind. A failure without a time is dated to the pod's creation."""
    latest: dict[FailureKind, float] = {}
    for failure in _all_failures(status, created or 0.0):
        latest[failure.trouble] = max(failure.at, latest.get(failure.trouble, 0.0))
    return tuple(PodFailure(kind, time) for kind, time in sorted(latest.items()))


def _all_failures(status: PodStatus, created: float) -> Iterator[PodFailure]:
    for container in status.container_statuses:
        yield from _oom_kills(container, created)
    if status.phase == "Failed" and status.reason == "Evicted":
        yield PodFailure(FailureKind.EVICTED, _transition_time(status.conditions, "DisruptionTarget", created))
    if status.phase == "Pending" and any(map(_is_unschedulable, status.conditions)):
        yield PodFailure(FailureKind.UNSCHEDULABLE, _transition_time(status.conditions, "PodScheduled", created))


def _oom_kills(container: ContainerStatus, created: float) -> Iterator[PodFailure]:
    """Yields the OOM kills of a container. Both states are read: a restarted container shows the kill in
    `lastState`."""
    for state in (container.state, container.last_state):
        terminated: Any = state.get("terminated") if isinstance(state, Mapping) else None
        if isinstance(terminated, Mapping) and terminated.get("reason") == "OOMKilled":
            yield PodFailure(FailureKind.OOM_KILLED, float(parse_timestamp(terminated.get("finishedAt")) or created))


def _is_unschedulable(condition: Condition) -> bool:
    return condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"


def _transition_time(conditions: tuple[Condition, ...], kind: str, otherwise: float) -> float:
    """Returns the time of the condition's last transition, or `otherwise` if there is none."""
    times = (parse_timestamp(c.last_transition_time) for c in conditions if c.type == kind)
    return float(next((time for time in times if time is not None), otherwise))


NOT_HELD = "(not held)"
"""Replaces the value of an annotation that no decision reads; the presence of the annotation is kept."""
_GENERATED_SUFFIX = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
"""The suffix that the API server appends to a generateName (apimachinery, util/rand)."""
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodTemplateKey:
    """The parts of a pod that a decision reads, shared by equal pods. Compared by identity."""

    namespace: str
    pod: Pod
    """The pod as submitted, as far as that can be reconstructed."""
    marker: ChangedAnnotation | None
    """The changes made on admission according to the pods' annotation, which everyone who may patch pods can write, or
    None if there is no readable annotation."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditedPod:
    """One pod of the cluster, in about 300 bytes besides the shared template."""

    alike: PodTemplateKey
    name: str
    uid: str
    created: float | None
    """Seconds since 1970, or None if it is absent."""
    running: bool
    """True if the pod is neither finished nor marked for deletion."""
    incidents: tuple[PodFailure, ...] = ()
    """Failures shown by its status; nearly always empty."""

    @property
    def namespace(self) -> str:
        return self.alike.namespace


@dataclass(slots=True)
class AuditedPodReader:
    """Converts API pods to AuditedPods; pods with equal submitted parts share one template. For one thread, except
    `read_annotations`."""

    read_annotations: frozenset[str] = frozenset()
    """Annotations whose values policies read."""
    _templates: WeakValueDictionary[bytes, PodTemplateKey] = field(default_factory=WeakValueDictionary)
    """Templates by hash; an entry is dropped when no pod refers to it."""

    def __call__(self, pod: Pod) -> AuditedPod:
        meta = pod.metadata
        return AuditedPod(
            alike=self._template_of(pod),
            name=meta.name,
            uid=meta.uid,
            created=parse_timestamp(meta.creation_timestamp),
            running=pod.status.phase not in _FINISHED and not meta.deletion_timestamp,
            incidents=read_failures(pod.status, parse_timestamp(meta.creation_timestamp)),
        )

    def _template_of(self, pod: Pod) -> PodTemplateKey:
        namespace = pod.metadata.namespace or "default"
        bare = reconstruct_submitted(pod, self.read_annotations)
        key = hashlib.blake2b(_encode((namespace, bare)), digest_size=16).digest()
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = PodTemplateKey(
                namespace, bare, changed_annotation.read_claimed_annotation(bare, namespace)
            )
        return template


_encode = msgspec.msgpack.Encoder().encode


def reconstruct_submitted(pod: Pod, read_annotations: frozenset[str] = frozenset()) -> Pod:
    """Returns the pod as submitted: without what is added after admission, and without what no decision reads.

    read_annotations: the annotations whose values policies read.
    """
    meta = pod.metadata
    unrestored = Pod(
        metadata=Metadata(
            name=meta.name,
            generate_name=meta.generate_name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=_reduced_annotations(meta.annotations, read_annotations),
            owner_references=meta.owner_references,
        ),
        spec=_without_daemon_node(meta, _submitted_spec(pod.spec)),
    )
    return _with_submitted_name(unrestored, meta.namespace or "default")


def _with_submitted_name(pod: Pod, namespace: str) -> Pod:
    """Returns the pod with the name it was submitted with: empty if the API server generated it.

    The annotation of changes proves which it was, because it is bound to the name; without one the form of the name
    decides. Pods with a controller are identified by the controller: their name is removed and the annotation rewritten
    to match, so that they are equal.
    """
    meta = pod.metadata
    unnamed = change(pod, metadata=change(meta, name=""))
    if meta.controller_owner is not None:
        annotation = changed_annotation.read_claimed_annotation(
            pod, namespace
        ) or changed_annotation.read_claimed_annotation(unnamed, namespace)
        return (
            unnamed
            if annotation is None
            else changed_annotation.write_annotation(unnamed, namespace, annotation, ())[0]
        )
    generated = meta.generate_name and meta.name.startswith(meta.generate_name)
    if not generated or changed_annotation.read_claimed_annotation(pod, namespace) is not None:
        return pod
    looks_generated = _GENERATED_SUFFIX.fullmatch(meta.name.removeprefix(meta.generate_name))
    return (
        unnamed
        if looks_generated or changed_annotation.read_claimed_annotation(unnamed, namespace) is not None
        else pod
    )


def _submitted_spec(spec: PodSpec) -> PodSpec:
    """Returns the spec without node name and token volume. A pod submitted with a node name cannot be distinguished
    from a scheduled one; nearly all are the latter."""
    return change(spec, node_name="", volumes=tuple(v for v in spec.volumes if _has_source(v)))


def _without_daemon_node(meta: Metadata, spec: PodSpec) -> PodSpec:
    """Returns the spec without the node name that the DaemonSet controller writes into each pod's affinity; apart from
    that its pods are equal."""
    owner = meta.controller_owner
    node = value_or(value_or(spec.affinity, _NO_AFFINITY).node_affinity, _NO_NODE)
    required = value_or(node.required, None)
    if owner is None or owner.kind != "DaemonSet" or required is None:
        return spec
    terms = tuple(change(term, match_fields=_ANY_NODE) if value_or(term.match_fields, ()) else term
                  for term in required.node_selector_terms)  # fmt: skip
    node = change(node, required=change(required, node_selector_terms=terms))
    return change(spec, affinity=change(value_or(spec.affinity, _NO_AFFINITY), node_affinity=node))


_NO_AFFINITY, _NO_NODE = Affinity(), NodeAffinity()
_ANY_NODE = (SelectorRequirement(key="metadata.name", operator="Exists"),)


def _has_source(volume: Volume) -> bool:
    """Returns whether a source of the volume is decoded. The token volume has none, has a generated name, and matters
    to no policy."""
    return any(getattr(volume, name) is not UNSET for name in Volume.__struct_fields__ if name != "name")


def _reduced_annotations(annotations: Labels | UnsetType, read_annotations: frozenset[str]) -> Labels | UnsetType:
    """Returns the annotations with only the values that decisions read; of others (addresses, checksums) only the key
    is kept."""
    items = sorted(value_or(annotations, {}).items())
    reduced = {
        name: value if name.startswith(_READ_PREFIXES) or name in read_annotations else NOT_HELD
        for name, value in items
    }
    return reduced or UNSET


_READ_PREFIXES = ("cluster-autoscaler.kubernetes.io/", "trimtab.dev/", COMPILED_PREFIX, LIMIT_RANGER, WRITTEN_BY_VPA)
