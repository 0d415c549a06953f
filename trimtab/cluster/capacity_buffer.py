"""For how many pods that are not there does a CapacityBuffer keep room, and what would they ask for?

The autoscaler keeps that room by virtual pods of its own: a node that is emptied of it is bought back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster.api.autoscaling import CapacityBuffer, PodTemplate
from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.api.pod import Pod as Shape
from trimtab.cluster.pod import PodInfo, PodReader

READY = "ReadyForProvisioning"
"""The condition of a buffer that its controller has resolved; one that says False keeps no room."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReservedPods:
    """Room for `replicas` pods like this one."""

    key: str
    """namespace/name."""
    pod: PodInfo
    """What one chunk asks for; on no node."""
    replicas: int


def buffers(
    found: Iterable[CapacityBuffer], templates: Iterable[PodTemplate], reader: PodReader
) -> tuple[tuple[ReservedPods, ...], tuple[str, ...]]:
    """The buffers that keep room, by name, and a note for each whose room cannot be told."""
    known = {(one.metadata.namespace, one.metadata.name): one for one in templates}
    made, notes = [], []
    for buffer in sorted(found, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        if any(condition.type == READY and condition.status == "False" for condition in buffer.status.conditions):
            continue
        read = _read(buffer, known, reader)
        if isinstance(read, ReservedPods):
            made += [read] if read.replicas else []
        else:
            notes.append(f"capacity buffer {_key(buffer)} {read}: no room is kept for it")
    return tuple(made), tuple(notes)


def _key(buffer: CapacityBuffer) -> str:
    return f"{buffer.metadata.namespace}/{buffer.metadata.name}"


def _read(
    buffer: CapacityBuffer, known: Mapping[tuple[str, str], PodTemplate], reader: PodReader
) -> ReservedPods | str:
    """What its controller resolved, else what it says itself; in words what is missing."""
    replicas = buffer.status.replicas if buffer.status.replicas is not None else buffer.spec.replicas
    reference = buffer.status.pod_template_ref or buffer.spec.pod_template_ref
    if replicas is None or reference is None:
        return "was not resolved by its controller yet"
    template = known.get((buffer.metadata.namespace, reference.name))
    if template is None:
        return f"names the PodTemplate {reference.name}, which is not in the snapshot"
    inner = template.template
    meta = Metadata(
        name=buffer.metadata.name, namespace=buffer.metadata.namespace, labels=inner.metadata.labels,
        creation_timestamp=buffer.metadata.creation_timestamp,
    )  # fmt: skip
    pod = reader.pod(Shape(metadata=meta, spec=inner.spec))
    return ReservedPods(key=_key(buffer), pod=pod, replicas=max(0, replicas - buffer.status.consumed_replicas))
