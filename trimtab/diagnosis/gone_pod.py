"""What is known of a pod that does not exist any more: its owner by its name, and other pods of that owner."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trimtab.cluster.api.pod import Pod
from trimtab.cluster.kinds import GroupKind
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.snapshot import Snapshot
from trimtab.compaction.drain.pool_state import HistoryEntry

_SUFFIXES = {
    "StatefulSet": re.compile(r"\d+"),
    **dict.fromkeys(("ReplicaSet", "DaemonSet", "Job"), re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")),
}
"""Kind of owner → what is appended to the owner's name in the names of its pods (apimachinery, util/rand)."""


def find_owner(namespace: str, name: str, snapshot: Snapshot, decisions: Sequence[HistoryEntry]) -> OwnerKey | None:
    """Returns the owner of a pod that is gone: the owner that the compactor recorded, or the owner that the pod's name
    shows."""
    for entry in reversed(decisions):
        if entry.pod == f"{namespace}/{name}" and entry.owner:
            kind, _, owner_name = entry.owner.partition("/")
            return OwnerKey(namespace, GroupKind(kind), owner_name)
    candidates = [
        OwnerKey(namespace, kind, workload.metadata.name)
        for kind, workload in snapshot.iterate_workloads()
        if workload.metadata.namespace == namespace and _is_named_by(name, kind, workload.metadata.name)
    ]
    # A pod web-1-abcde is also named like a pod of a workload `web`; the longest name is the nearest owner.
    return max(candidates, key=lambda owner: len(owner.name), default=None)


def _is_named_by(pod: str, kind: str, owner: str) -> bool:
    suffix = _SUFFIXES.get(kind)
    rest = pod.removeprefix(f"{owner}-")
    return suffix is not None and rest != pod and suffix.fullmatch(rest) is not None


def find_siblings(namespace: str, owner: OwnerKey, snapshot: Snapshot) -> list[Pod]:
    """Returns the pods that the owner controls now."""
    return [
        pod
        for pod in snapshot.objects_of(Pod)
        if pod.metadata.namespace == namespace and controller_key(pod.metadata, namespace) == owner
    ]
