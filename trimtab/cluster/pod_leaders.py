"""Finds the groups of pods: pods that live and die together.

A group shows itself in two ways. The controllers and schedulers that know groups mark the pods (`pod_groups`). And
where a pod owns other pods, directly or through a controller, these end with it: all of them are one group, whoever
made them. A group is of one namespace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pod_groups import LEADER_ANNOTATION

# Real chains are shorter; only a cycle of owner references is longer.
_MAX_CHAIN_LENGTH = 6


class PodGroup(NamedTuple):
    """The identity of a group."""

    namespace: str
    name: str
    """The name that the marks give, or "of pod NAME" for the group of a pod that owns the others."""


@dataclass(frozen=True, slots=True)
class PodLeaders:
    """The pods that own other pods, so that those end with them."""

    pod_above: Mapping[OwnerKey, OwnerKey] = field(default_factory=dict)
    """A workload, or a pod that another pod owns → the topmost pod in the chain of its owners."""

    @classmethod
    def from_controllers(cls, controllers: Mapping[OwnerKey, OwnerKey]) -> "PodLeaders":
        """Returns the pods that lead, from the controllers of workloads and of pods that own something."""
        above = {owner: leader for owner in controllers if (leader := _topmost_pod(controllers, owner)) is not None}
        return cls(above)

    def leader_of(self, namespace: str, owner: OwnerKey | None, annotations: Mapping[str, str]) -> OwnerKey | None:
        """Returns the pod with which a pod with this owner ends, or None if there is none."""
        if owner is not None:
            if owner.kind == POD:
                return self.pod_above.get(owner, owner)
            if owner in self.pod_above:
                return self.pod_above[owner]
        name = annotations.get(LEADER_ANNOTATION, "")
        return OwnerKey(namespace, POD, name) if name else None


def _topmost_pod(controllers: Mapping[OwnerKey, OwnerKey], owner: OwnerKey) -> OwnerKey | None:
    """Returns the topmost pod above an object, or None if no pod is above it."""
    leader: OwnerKey | None = None
    # Owner references may form a circle: the API server does not check them.
    for _ in range(_MAX_CHAIN_LENGTH):
        above = controllers.get(owner)
        if above is None:
            break
        leader = above if above.kind == POD else leader
        owner = above
    return leader


def find_groups(pods: Sequence[PodInfo], leaders: PodLeaders) -> dict[int, PodGroup]:
    """Returns `id` of a pod → its group. Pods without a group are left out."""
    groups = {id(pod): PodGroup(pod.namespace, pod.pod_group) for pod in pods if pod.pod_group}
    followers: dict[OwnerKey, list[PodInfo]] = {}
    for pod in pods:
        if (leader := leaders.leader_of(pod.namespace, pod.owner, pod.annotations)) is not None:
            followers.setdefault(leader, []).append(pod)
    if not followers:
        return groups
    leading = {key: pod for pod in pods if (key := OwnerKey(pod.namespace, POD, pod.name)) in followers}
    for key, members in followers.items():
        members = [leading[key], *members] if key in leading else members
        # A mark of any member names the group of all.
        marked = next((groups[id(pod)] for pod in members if id(pod) in groups), None)
        for pod in members:
            groups.setdefault(id(pod), marked or PodGroup(key.namespace, f"of pod {key.name}"))
    return groups
