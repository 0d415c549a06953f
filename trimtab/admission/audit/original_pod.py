"""What befell this pod, as its status tells?

The stored pod as it was submitted, as far as that can be known; and pods that are decided alike.

What the API server fills in before it asks a webhook (defaults, LimitRange, priority, the class's overhead) a webhook
sees, too: it stays. What comes after (name, node, times, status) goes. What another webhook or an in-place resize
changed later cannot be told from what was submitted, and stays.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from trimtab.cluster.api.meta import UNSET, Labels, Metadata, SelectorRequirement, UnsetType, change, get
from trimtab.cluster.api.pod import Affinity, Condition, ContainerStatus, NodeAffinity, Pod, PodSpec, PodStatus, Volume
from trimtab.cluster.timestamps import seconds
from trimtab.policy import changed_annotation
from trimtab.policy.autoscalers import WRITTEN_BY_VPA
from trimtab.policy.changed_annotation import LIMIT_RANGER, ChangedAnnotation


class FailureKind(StrEnum):
    """What a policy can do to a pod without meaning to. Bounded: metrics carry it."""

    OOM_KILLED = "oom-killed"
    """A container was killed for using more memory than it may, or than its node has."""
    EVICTED = "evicted"
    """The kubelet evicted the pod because its node ran short."""
    UNSCHEDULABLE = "unschedulable"
    """No node takes the pod."""


@dataclass(frozen=True, slots=True)
class PodFailure:
    """One trouble of one pod."""

    trouble: FailureKind
    at: float
    """Seconds since 1970: when it happened; for an unschedulable pod, since when it waits."""


def incidents(status: PodStatus, created: float | None) -> tuple[PodFailure, ...]:
    """Every trouble once, the latest of its kind. What tells no time is taken to be as old as the pod."""
    latest: dict[FailureKind, float] = {}
    for found in _all(status, created or 0.0):
        latest[found.trouble] = max(found.at, latest.get(found.trouble, 0.0))
    return tuple(PodFailure(trouble, at) for trouble, at in sorted(latest.items()))


def _all(status: PodStatus, created: float) -> Iterator[PodFailure]:
    for container in status.container_statuses:
        yield from _killed(container, created)
    if status.phase == "Failed" and status.reason == "Evicted":
        yield PodFailure(FailureKind.EVICTED, _since(status.conditions, "DisruptionTarget", created))
    if status.phase == "Pending" and any(map(_waits, status.conditions)):
        yield PodFailure(FailureKind.UNSCHEDULABLE, _since(status.conditions, "PodScheduled", created))


def _killed(container: ContainerStatus, created: float) -> Iterator[PodFailure]:
    """Both the state it is in and the one before: a restarted container has the latter."""
    for state in (container.state, container.last_state):
        ended: Any = state.get("terminated") if isinstance(state, Mapping) else None
        if isinstance(ended, Mapping) and ended.get("reason") == "OOMKilled":
            yield PodFailure(FailureKind.OOM_KILLED, float(seconds(ended.get("finishedAt")) or created))


def _waits(condition: Condition) -> bool:
    return condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"


def _since(conditions: tuple[Condition, ...], kind: str, otherwise: float) -> float:
    """A condition's last change: when it came to be what it is."""
    times = (seconds(c.last_transition_time) for c in conditions if c.type == kind)
    return float(next((at for at in times if at is not None), otherwise))


NOT_HELD = "(not held)"
"""Stands for the value of an annotation that nobody here reads: that it is there counts, what it says does not."""
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
"""What the API server puts behind a generateName (apimachinery, util/rand)."""
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodTemplateKey:
    """What some pods share, and all that a decision on them looks at. Two are the same only if they are one object."""

    namespace: str
    pod: Pod
    """As it was submitted, as far as that can be known."""
    marker: ChangedAnnotation | None
    """What we did to them when they were admitted, as they claim: whoever may patch a pod may write it. None where
    nothing, or nothing that can be read."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditedPod:
    """One pod of the cluster, thinly: some 300 bytes beside what it shares."""

    alike: PodTemplateKey
    name: str
    uid: str
    created: float | None
    """Seconds since 1970; None where it does not say."""
    running: bool
    """Not finished, and not about to be deleted."""
    incidents: tuple[PodFailure, ...] = ()
    """What befell it, as far as its status tells; nearly always empty."""

    @property
    def namespace(self) -> str:
        return self.alike.namespace


@dataclass(slots=True)
class AuditedPodReader:
    """API pods → held ones; equal parts are the very same. Not for two threads, but for `read_annotations`."""

    read_annotations: frozenset[str] = frozenset()
    """Annotations whose values policies ask for."""
    _known: WeakValueDictionary[bytes, PodTemplateKey] = field(default_factory=WeakValueDictionary)
    """What no pod is like any more is forgotten by itself."""

    def __call__(self, pod: Pod) -> AuditedPod:
        meta = pod.metadata
        return AuditedPod(
            alike=self._alike(pod),
            name=meta.name,
            uid=meta.uid,
            created=seconds(meta.creation_timestamp),
            running=pod.status.phase not in _FINISHED and not meta.deletion_timestamp,
            incidents=incidents(pod.status, seconds(meta.creation_timestamp)),
        )

    def _alike(self, pod: Pod) -> PodTemplateKey:
        namespace = pod.metadata.namespace or "default"
        bare = submitted(pod, self.read_annotations)
        key = hashlib.blake2b(_encode((namespace, bare)), digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = PodTemplateKey(namespace, bare, changed_annotation.claimed(bare, namespace))
        return found


_encode = msgspec.msgpack.Encoder().encode


def submitted(pod: Pod, read_annotations: frozenset[str] = frozenset()) -> Pod:
    """Without what came after admission, and without what no decision asks for. read_annotations: whose values policies
    ask for."""
    meta = pod.metadata
    bare = Pod(
        metadata=Metadata(
            name=meta.name,
            generate_name=meta.generate_name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=_annotations(meta.annotations, read_annotations),
            owner_references=meta.owner_references,
        ),
        spec=_anywhere(meta, _spec(pod.spec)),
    )
    return _as_sent(bare, meta.namespace or "default")


def _as_sent(pod: Pod, namespace: str) -> Pod:
    """Under the name it was sent with: none, where the API server made one of `generateName`.

    Our marker tells for sure. Without one the look of the name does. A controller's pods are told by their controller,
    whatever their names: they are given none, and their marker is made to fit, so that they are alike.
    """
    meta = pod.metadata
    unnamed = change(pod, metadata=change(meta, name=""))
    if meta.controller is not None:
        found = changed_annotation.claimed(pod, namespace) or changed_annotation.claimed(unnamed, namespace)
        return unnamed if found is None else changed_annotation.write(unnamed, namespace, found, ())[0]
    generated = meta.generate_name and meta.name.startswith(meta.generate_name)
    if not generated or changed_annotation.claimed(pod, namespace) is not None:
        return pod
    looks_drawn = _GENERATED.fullmatch(meta.name.removeprefix(meta.generate_name))
    return unnamed if looks_drawn or changed_annotation.claimed(unnamed, namespace) is not None else pod


def _spec(spec: PodSpec) -> PodSpec:
    """A pod sent with its node cannot be told from one that the scheduler placed; nearly all are the latter."""
    return change(spec, node_name="", volumes=tuple(v for v in spec.volumes if _says_something(v)))


def _anywhere(meta: Metadata, spec: PodSpec) -> PodSpec:
    """A DaemonSet names each pod's node in its affinity; apart from that its pods are alike."""
    owner = meta.controller
    node = get(get(spec.affinity, _NO_AFFINITY).node_affinity, _NO_NODE)
    required = get(node.required, None)
    if owner is None or owner.kind != "DaemonSet" or required is None:
        return spec
    terms = tuple(change(term, match_fields=_ANY_NODE) if get(term.match_fields, ()) else term
                  for term in required.node_selector_terms)  # fmt: skip
    node = change(node, required=change(required, node_selector_terms=terms))
    return change(spec, affinity=change(get(spec.affinity, _NO_AFFINITY), node_affinity=node))


_NO_AFFINITY, _NO_NODE = Affinity(), NodeAffinity()
_ANY_NODE = (SelectorRequirement(key="metadata.name", operator="Exists"),)


def _says_something(volume: Volume) -> bool:
    """The token's volume has a name of chance, and says nothing to any policy."""
    return any(getattr(volume, name) is not UNSET for name in Volume.__struct_fields__ if name != "name")


def _annotations(found: Labels | UnsetType, asked: frozenset[str]) -> Labels | UnsetType:
    """Values only of those that decide something; of the others (addresses, checksums) that they are there."""
    items = sorted(get(found, {}).items())
    held = {name: text if name.startswith(_READ) or name in asked else NOT_HELD for name, text in items}
    return held or UNSET


_READ = ("cluster-autoscaler.kubernetes.io/", "trimtab.dev/", LIMIT_RANGER, WRITTEN_BY_VPA)
