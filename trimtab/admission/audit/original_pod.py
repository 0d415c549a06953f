"""Reduces a stored pod to the pod as it was submitted, groups pods on which the decision is the same, and reads
failures from the status of pods.

What the API server fills in before it calls a webhook (defaults, LimitRange, priority, the overhead of the class) is
visible to the webhook and is kept. What is added later (name, node, times, status) is removed. Later changes by another
webhook or by an in-place resize cannot be distinguished from submitted values, and are kept.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from trimtab.cluster.api.meta import UNSET, Metadata, SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import Affinity, Condition, NodeAffinity, Pod, PodSpec, PodStatus, Volume
from trimtab.cluster.kinds import DAEMON_SET
from trimtab.cluster.owner import kind_of_reference
from trimtab.cluster.runtime_signs import can_name_runtime
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.policy import changed_annotation
from trimtab.policy.autoscalers import WRITTEN_BY_VPA
from trimtab.policy.changed_annotation import LIMIT_RANGER, ChangedAnnotation
from trimtab.policy.compiled_annotation import COMPILED_PREFIX


class FailureKind(StrEnum):
    """The ways in which a policy can harm a pod. There is a fixed set of values, because metrics use them as a
    label."""

    OOM_KILLED = "oom-killed"
    """A container was killed because it exceeded its memory limit, or because its node ran out of memory."""
    EVICTED = "evicted"
    """The kubelet evicted the pod because its node ran short of a resource."""
    UNSCHEDULABLE = "unschedulable"
    """The pod fits on no node."""


@dataclass(frozen=True, slots=True)
class PodFailure:
    """One failure of one pod."""

    trouble: FailureKind
    at: float
    """The time of the failure in seconds since 1970; for an unschedulable pod, when it began to wait."""


def read_failures(status: PodStatus, created: float | None) -> tuple[PodFailure, ...]:
    """Returns the latest failure of each kind. For a failure without a time, the time of the pod's creation is used."""
    latest: dict[FailureKind, float] = {}
    for failure in _all_failures(status, created or 0.0):
        latest[failure.trouble] = max(failure.at, latest.get(failure.trouble, 0.0))
    return tuple(PodFailure(kind, time) for kind, time in sorted(latest.items()))


def _all_failures(status: PodStatus, created: float) -> Iterator[PodFailure]:
    for container in status.container_statuses:
        # The OOM kills of a container. Both of its states are read, because after a restart the kill is in
        # `lastState`.
        for state in (container.state, container.last_state):
            terminated: Any = state.get("terminated") if isinstance(state, Mapping) else None
            if isinstance(terminated, Mapping) and terminated.get("reason") == "OOMKilled":
                yield PodFailure(
                    FailureKind.OOM_KILLED, float(parse_timestamp(terminated.get("finishedAt")) or created)
                )
    if status.phase == "Failed" and status.reason == "Evicted":
        yield PodFailure(FailureKind.EVICTED, _transition_time(status.conditions, "DisruptionTarget", created))
    if status.phase == "Pending" and any(map(_is_unschedulable, status.conditions)):
        yield PodFailure(FailureKind.UNSCHEDULABLE, _transition_time(status.conditions, "PodScheduled", created))


def _is_unschedulable(condition: Condition) -> bool:
    return condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"


def _transition_time(conditions: tuple[Condition, ...], kind: str, otherwise: float) -> float:
    """Returns the time of the condition's last transition, or `otherwise` if the pod does not have the condition."""
    times = (parse_timestamp(c.last_transition_time) for c in conditions if c.type == kind)
    return float(next((time for time in times if time is not None), otherwise))


NOT_HELD = "(not held)"
"""Replaces the value of an annotation that no decision reads. Only the key of such an annotation is kept."""
_GENERATED_SUFFIX = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
"""Matches the suffix that the API server appends to a generateName (apimachinery, util/rand)."""
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodTemplateKey:
    """The parts of a pod that a decision reads; equal pods share one object. Compared by identity."""

    namespace: str
    pod: Pod
    """The pod as it was submitted, as far as that can be reconstructed."""
    marker: ChangedAnnotation | None
    """The changes made on admission, according to the pods' annotation, which everyone who may patch pods can write.
    None if there is no readable annotation."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditedPod:
    """One pod of the cluster. It needs about 300 bytes in addition to the shared template."""

    alike: PodTemplateKey
    name: str
    uid: str
    created: float | None
    """The creation time in seconds since 1970, or None if it is absent."""
    running: bool
    """Whether the pod is neither finished nor being deleted."""
    incidents: tuple[PodFailure, ...] = ()
    """The failures in the pod's status; nearly always empty."""

    @property
    def namespace(self) -> str:
        return self.alike.namespace


@dataclass(slots=True)
class AuditedPodReader:
    """Converts pods of the API server to AuditedPod. Pods that were submitted with equal content share one template.
    Only one thread may convert pods, but any thread may set `read_annotations`."""

    read_annotations: frozenset[str] = frozenset()
    """The keys of annotations whose values policies read."""
    _templates: WeakValueDictionary[bytes, PodTemplateKey] = field(default_factory=WeakValueDictionary)
    """Hash → template. An entry is dropped when no pod refers to it any more."""

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
    """Returns the pod as it was submitted, without fields that are added after admission and without values that no
    decision reads.

    `read_annotations` are the keys of the annotations whose values policies read.
    """
    meta = pod.metadata
    # The annotations with only those values that decisions read. Of other annotations (addresses, checksums), only
    # the key is kept.
    items = sorted(value_or(meta.annotations, {}).items())
    reduced = {
        name: value
        if name.startswith(_READ_PREFIXES) or name in read_annotations or can_name_runtime(name)
        else NOT_HELD
        for name, value in items
    }
    # The spec without its node name and without the token volume. A node name that was submitted is removed too,
    # because it cannot be distinguished from one that the scheduler has set.
    unrestored = Pod(
        metadata=Metadata(
            name=meta.name,
            generate_name=meta.generate_name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=reduced or UNSET,
            owner_references=meta.owner_references,
        ),
        spec=_without_daemon_node(
            meta,
            change(
                pod.spec,
                node_name="",
                volumes=tuple(
                    v
                    for v in pod.spec.volumes
                    if any(getattr(v, name) is not UNSET for name in Volume.__struct_fields__ if name != "name")
                ),
            ),
        ),
    )
    return _with_submitted_name(unrestored, meta.namespace or "default")


def _with_submitted_name(pod: Pod, namespace: str) -> Pod:
    """Returns the pod with the name with which it was submitted: empty if the API server has generated it.

    The annotation of changes is bound to the name at admission, so it shows whether the name was empty then. Without
    the annotation, a name that looks generated counts as generated. Pods with a controller are identified by the
    controller: their name is removed, and the annotation is rewritten accordingly, so that such pods are equal.
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


def _without_daemon_node(meta: Metadata, spec: PodSpec) -> PodSpec:
    """Returns the spec without the node name that the DaemonSet controller writes into each pod's affinity, and which
    is the only difference between its pods."""
    owner = meta.controller_owner
    node = value_or(value_or(spec.affinity, _NO_AFFINITY).node_affinity, _NO_NODE)
    required = value_or(node.required, None)
    if owner is None or kind_of_reference(owner) != DAEMON_SET or required is None:
        return spec
    terms = tuple(
        change(term, match_fields=_ANY_NODE) if value_or(term.match_fields, ()) else term
        for term in required.node_selector_terms
    )
    node = change(node, required=change(required, node_selector_terms=terms))
    return change(spec, affinity=change(value_or(spec.affinity, _NO_AFFINITY), node_affinity=node))


_NO_AFFINITY, _NO_NODE = Affinity(), NodeAffinity()
_ANY_NODE = (SelectorRequirement(key="metadata.name", operator="Exists"),)


_READ_PREFIXES = ("cluster-autoscaler.kubernetes.io/", "trimtab.dev/", COMPILED_PREFIX, LIMIT_RANGER, WRITTEN_BY_VPA)
