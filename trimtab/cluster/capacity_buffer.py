"""The capacity that CapacityBuffers reserve: the number of pods that do not exist yet, and what each of them requests.

The cluster autoscaler keeps this capacity free by simulating pods that fill it. If a node with some of this capacity is
drained, the autoscaler adds a node again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster.api.autoscaling import CapacityBuffer, PodTemplate
from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.api.pod import Pod as Shape
from trimtab.cluster.pod import PodInfo, PodReader

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
