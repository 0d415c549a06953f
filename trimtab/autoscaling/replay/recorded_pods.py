"""Which pods of a recording are demand, of which workload, and since when they had a node."""

from __future__ import annotations

from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.kinds import JOB, STATEFUL_SET
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.timestamps import Seconds, parse_timestamp

_OWN_LABELS = frozenset(
    {
        "controller-uid",
        "batch.kubernetes.io/controller-uid",
        "job-name",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    }
)
"""Labels that each Job, or each pod, has for itself. Without them, the pods of a CronJob have equal requirements."""
SLOT_PART = " #"
"""What stands in the name of a slot before the number of other requests that pods of the same workload have."""


def without_own_labels(shape: PodShape) -> PodShape:
    """Returns the pod without the labels that it has for itself."""
    labels = value_or(shape.metadata.labels, {})
    if _OWN_LABELS.isdisjoint(labels):
        return shape
    rest = {key: text for key, text in labels.items() if key not in _OWN_LABELS}
    return change(shape, metadata=change(shape.metadata, labels=rest))


def bound_at(shape: PodShape) -> Seconds | None:
    """Returns when the scheduler bound the pod (condition PodScheduled); None if the pod does not say it."""
    for one in shape.status.conditions:
        if one.type == "PodScheduled" and one.status == "True":
            return parse_timestamp(one.last_transition_time)
    return None


def is_demand(info: PodInfo) -> bool:
    """Returns whether the pod is one that a controller or a user wants somewhere. False if any of these holds:

    - every node has one, or the kubelet runs it by itself;
    - it has finished, or was asked to go;
    - it has scheduling gates."""
    return not (
        info.is_daemon
        or info.is_static
        or info.is_finished
        or info.deletion_requested_at is not None
        or (info.is_gated and not info.node)
    )


def slot_of(info: PodInfo) -> str:
    """Returns the workload for whose number of pods the pod counts, whatever it requests."""
    owner = info.owner
    if owner is None:
        return f"Pod {info.key}"
    if owner.kind in (JOB, STATEFUL_SET):
        return f"{owner.kind} {owner.namespace}/{owner.name}/{info.name}"
    return f"{owner.kind} {owner.namespace}/{owner.name}"
