"""Keeps the usage of leaders apart from that of the other replicas of their workload.

A pod's role is that of the snapshot. After a failover the former leader's history counts for the others, so a
difference may be larger than it is found, and is never made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.owner import OwnerKey
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.sizing.replica_roles import ReplicaRole, find_role, split_by_role
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series, container_key

PodKey = tuple[str, str]
"""(namespace, pod)."""


def list_replica_roles(pods: Mapping[PodKey, OwnerKey], labels: Mapping[PodKey, Labels]) -> dict[PodKey, ReplicaRole]:
    """Returns the roles of all pods whose workload has leaders and others.

    `pods`: pod → its topmost owner. `labels`: pod → its labels."""
    by_owner: dict[OwnerKey, dict[str, ReplicaRole]] = {}
    for (namespace, name), owner in pods.items():
        if role := find_role(labels.get((namespace, name), {}), name, str(owner.kind)):
            by_owner.setdefault(owner, {})[name] = role
    return {
        (owner.namespace, name): role
        for owner, roles in by_owner.items()
        for name, role in split_by_role(roles).items()
    }


def role_key(container: ContainerKey, *, is_leader: bool) -> ContainerKey:
    """Returns the key under which the usage of one side is recorded. No container has its name."""
    return replace(container, name=f"{container.name} {'of the leader' if is_leader else 'of the others'}")


@dataclass(frozen=True, slots=True)
class LeaderUsage:
    """The usage of leaders and of the others, in a history of its own."""

    roles: Mapping[PodKey, ReplicaRole]
    history: BatchHistory

    def observe_series(self, all_series: Iterable[Series], owners: OwnerIndex) -> Iterator[Series]:
        """Yields the given series unchanged, and records those of pods whose role is known."""
        for series in all_series:
            role = self.roles.get((series.namespace, series.pod))
            if role is not None:
                key = role_key(container_key(series, owners), is_leader=role.is_leader)
                self.history.add_series(
                    key, series.resource, series.times, series.values, series.queried_from, series.pod
                )
            yield series
