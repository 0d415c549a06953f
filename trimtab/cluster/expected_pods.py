"""Pods that do not exist yet, and for which capacity is promised all the same.

- The pods that DaemonSets are about to create: on a node that lacks such a pod, its capacity is promised to it.
- The capacity that CapacityBuffers reserve: the number of pods, and what each of them requests. The cluster autoscaler
  keeps this capacity free by simulating pods that fill it. If a node with some of this capacity is drained, the
  autoscaler adds a node again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.cluster.api.autoscaling import CapacityBuffer, PodTemplate
from trimtab.cluster.api.meta import Metadata, change, value_or
from trimtab.cluster.api.pod import Pod as Shape
from trimtab.cluster.api.pod import Toleration
from trimtab.cluster.api.workload import DaemonSet
from trimtab.cluster.kinds import DAEMON_SET
from trimtab.cluster.owner import OwnerKey, reference_to
from trimtab.cluster.pod import PodInfo, PodReader

_PRESSURES = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
TOLERATED = (
    *(Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect="NoSchedule") for name in _PRESSURES),
    *(
        Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect="NoExecute")
        for name in ("not-ready", "unreachable")
    ),
)
"""The tolerations that the controller adds to the pods of every DaemonSet (pkg/controller/daemon/util,
AddOrUpdateDaemonPodTolerations)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DaemonPods:
    """The pods of one DaemonSet, of which some do not exist yet."""

    owner: OwnerKey
    pod: PodInfo
    """One of these pods, with its requirements. It is on no node."""
    nodes: frozenset[str]
    """The nodes on which the DaemonSet has a pod, or for which a pod of it waits."""


def missing_daemon_pods(
    daemon_sets: Sequence[DaemonSet], pods: Sequence[PodInfo], node_count: int, reader: PodReader
) -> tuple[DaemonPods, ...]:
    """Returns the DaemonSets that want more pods than they have, in the order of their names.

    A DaemonSet whose status has no number yet may want a pod on every node.
    """
    present: dict[OwnerKey, list[PodInfo]] = {
        OwnerKey(one.metadata.namespace, DAEMON_SET, one.metadata.name): [] for one in daemon_sets
    }
    for pod in pods if present else ():
        if pod.owner in present:
            present[pod.owner].append(pod)
    incomplete = []
    for daemon_set in sorted(daemon_sets, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        metadata = daemon_set.metadata
        owner = OwnerKey(metadata.namespace, DAEMON_SET, metadata.name)
        desired_count = daemon_set.status.desired_number_scheduled or node_count
        if len(present[owner]) >= desired_count or not daemon_set.spec.template.spec.containers:
            continue
        nodes = {name for pod in present[owner] for name in ((pod.node,) if pod.node else _named_nodes(pod))}
        incomplete.append(DaemonPods(owner=owner, pod=_next_pod(daemon_set, owner, reader), nodes=frozenset(nodes)))
    return tuple(incomplete)


def _next_pod(daemon_set: DaemonSet, owner: OwnerKey, reader: PodReader) -> PodInfo:
    template = daemon_set.spec.template
    metadata = Metadata(
        name=owner.name,
        namespace=owner.namespace,
        labels=template.metadata.labels,
        owner_references=(reference_to(owner),),
    )
    tolerations = (*value_or(template.spec.tolerations, ()), *TOLERATED)
    pod = reader.read_pod(Shape(metadata=metadata, spec=change(template.spec, tolerations=tolerations)))
    # No pod that exists is like this one: the numbers of the reader may be those of other pods.
    return change(pod, likeness=-1)


def _named_nodes(pod: PodInfo) -> Iterable[str]:
    """Yields the node for which the controller created a pod that waits: its affinity names the node."""
    affinity = pod.requirements.node_affinity
    for term in affinity.node_selector_terms if affinity is not None else ():
        for requirement in value_or(term.match_fields, ()):
            yield from value_or(requirement.values, ())


READY_CONDITION = "ReadyForProvisioning"
"""The type of the condition that says whether a buffer's controller has resolved the buffer. A buffer whose condition
is False reserves nothing.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReservedPods:
    """Reserved capacity for a number of equal pods (`replicas`) that do not exist yet."""

    key: str
    """The buffer as namespace/name."""
    pod: PodInfo
    """One of these pods, with its requirements. It is on no node."""
    replicas: int


def reserved_pods(
    all_buffers: Iterable[CapacityBuffer], templates: Iterable[PodTemplate], reader: PodReader
) -> tuple[tuple[ReservedPods, ...], tuple[str, ...]]:
    """Returns the reserved capacity of each buffer, sorted by name, and a note about each buffer whose capacity is
    unknown."""
    templates_by_name = {(item.metadata.namespace, item.metadata.name): item for item in templates}
    reserved, notes = [], []
    for buffer in sorted(all_buffers, key=lambda item: (item.metadata.namespace, item.metadata.name)):
        if any(
            condition.type == READY_CONDITION and condition.status == "False" for condition in buffer.status.conditions
        ):
            continue
        result = _resolve_buffer(buffer, templates_by_name, reader)
        if isinstance(result, ReservedPods):
            reserved += [result] if result.replicas else []
        else:
            notes.append(f"no room is reserved for capacity buffer {_buffer_key(buffer)}, because {result}")
    return tuple(reserved), tuple(notes)


def _buffer_key(buffer: CapacityBuffer) -> str:
    return f"{buffer.metadata.namespace}/{buffer.metadata.name}"


def _resolve_buffer(
    buffer: CapacityBuffer, templates_by_name: Mapping[tuple[str, str], PodTemplate], reader: PodReader
) -> ReservedPods | str:
    """Returns what the buffer reserves: according to its status if its controller has resolved the buffer, otherwise
    according to its spec. If neither says enough, returns a description of what is missing."""
    replicas = buffer.status.replicas if buffer.status.replicas is not None else buffer.spec.replicas
    reference = buffer.status.pod_template_ref or buffer.spec.pod_template_ref
    if replicas is None or reference is None:
        return "its controller has not processed it yet"
    template = templates_by_name.get((buffer.metadata.namespace, reference.name))
    if template is None:
        return f"its PodTemplate {reference.name} is not in the snapshot"
    inner = template.template
    meta = Metadata(
        name=buffer.metadata.name,
        namespace=buffer.metadata.namespace,
        labels=inner.metadata.labels,
        creation_timestamp=buffer.metadata.creation_timestamp,
    )
    pod = reader.read_pod(Shape(metadata=meta, spec=inner.spec))
    # Pods that run already consume replicas of the buffer (CapacityBuffer v1beta1, status.consumedReplicas).
    return ReservedPods(key=_buffer_key(buffer), pod=pod, replicas=max(0, replicas - buffer.status.consumed_replicas))
