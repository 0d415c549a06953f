"""Finds the pods of an inventory by uid, by owner and by node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeVar

from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import FINISHED_PHASES, PodInfo

K = TypeVar("K")


@dataclass(slots=True)
class PodIndex:
    """The pods of one inventory. In each list they have the order of the inventory."""

    by_uid: dict[str, PodInfo] = field(default_factory=dict)
    by_owner: dict[OwnerKey, list[PodInfo]] = field(default_factory=dict)
    """Owner → its pods; pods without an owner are left out."""
    by_node: dict[str, list[PodInfo]] = field(default_factory=dict)
    """Node → its pods that have not finished; "" → those that have no node."""

    @classmethod
    def from_pods(cls, pods: Iterable[PodInfo]) -> PodIndex:
        """Returns the index of these pods."""
        pods = tuple(pods)
        index = cls({pod.uid: pod for pod in pods})
        by_owner, by_node = index.by_owner, index.by_node
        last, siblings = None, list[PodInfo]()
        for pod in pods:
            owner = pod.owner
            # Pods are sorted by name, so those of one owner follow each other.
            if owner is not last and owner is not None:
                siblings = by_owner.setdefault(owner, [])
            last = owner
            if owner is not None:
                siblings.append(pod)
            if pod.phase not in FINISHED_PHASES:
                on_node = by_node.get(pod.node)
                if on_node is None:
                    by_node[pod.node] = [pod]
                else:
                    on_node.append(pod)
        return index

    def with_changes(self, changes: Mapping[str, PodInfo | None]) -> PodIndex:
        """Returns the index of the pods after these changes, uid → pod, or None for a pod that is gone. The pods of
        both must be in the order of their uids. What did not change is shared."""
        index = PodIndex(self.by_uid.copy(), self.by_owner.copy(), self.by_node.copy())
        owners: dict[OwnerKey, list[PodInfo]] = {}
        nodes: dict[str, list[PodInfo]] = {}
        for uid, pod in changes.items():
            before = index.by_uid.pop(uid, None)
            if before is not None:
                nodes.setdefault(before.node, [])
                if before.owner is not None:
                    owners.setdefault(before.owner, [])
            if pod is not None:
                index.by_uid[uid] = pod
                if pod.owner is not None:
                    owners.setdefault(pod.owner, []).append(pod)
                if pod.phase not in FINISHED_PHASES:
                    nodes.setdefault(pod.node, []).append(pod)
        _replace_pods(index.by_owner, changes, owners)
        _replace_pods(index.by_node, changes, nodes)
        return index


def _replace_pods(
    lists: dict[K, list[PodInfo]], changes: Mapping[str, PodInfo | None], added: Mapping[K, list[PodInfo]]
) -> None:
    """Replaces the lists of the keys of `added` by those without the changed pods and with the added ones."""
    for key, new in added.items():
        pods = [*(pod for pod in lists.get(key, ()) if pod.uid not in changes), *new]
        if pods:
            lists[key] = sorted(pods, key=attrgetter("uid"))
        else:
            lists.pop(key, None)
