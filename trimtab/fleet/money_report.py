"""Sums of requests and their cost, by cluster, team and namespace.

Amounts are whole numbers: millicores, mebibytes, micro-dollars a month. So a sum is the same whatever the order, and
whichever machine added it up.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

import msgspec

MICRO_DOLLARS = 1_000_000
Group = tuple[str, str]
"""(`cluster`, `team` or `namespace`; its value)."""


class RequestSums(msgspec.Struct, array_like=True, frozen=True):
    """Sums over a number of containers."""

    containers: int = 0
    changes: int = 0
    """The number of containers with a changed request."""
    unknown: int = 0
    """The number of containers with too little usage data for both cpu and memory."""
    priced: int = 0
    """The number of containers whose present requests are known. Only these are in the following sums."""
    cpu_now: int = 0
    """The present cpu requests of all replicas in millicores."""
    cpu_proposed: int = 0
    memory_now: int = 0
    """The present memory requests of all replicas in mebibytes."""
    memory_proposed: int = 0
    cost_now: int = 0
    """The present cost in micro-dollars a month."""
    cost_proposed: int = 0
    too_small: int = 0
    """The number of containers whose request is less than they need."""
    waste: int = 0
    """The cost of what is requested and not needed, in micro-dollars a month."""

    @property
    def saved(self) -> int:
        """The saving in micro-dollars a month; negative if the proposals cost more."""
        return self.cost_now - self.cost_proposed

    def plus(self, other: RequestSums) -> RequestSums:
        """Returns the sums of both added together."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return RequestSums(*(one + two for one, two in pairs))


class ContainerDecision(msgspec.Struct, array_like=True, frozen=True):
    """The decision on the requests of one container of the fleet."""

    cluster: str
    namespace: str
    kind: str
    workload: str
    container: str
    team: str
    replicas: int | None
    """The number of replicas, or None if the present pods of the cluster are not known."""
    cpu_now: int | None
    """The present cpu request in millicores."""
    cpu_proposed: int | None
    """The proposed cpu request in millicores; None if the request stays, or if there is too little usage."""
    memory_now: int | None
    """The present memory request in bytes."""
    memory_proposed: int | None
    cpu_reason: str
    """The code of the reason for the decision on cpu."""
    memory_reason: str
    cpu_p95: int | None
    """The P95 of cpu usage in millicores."""
    memory_p95: int | None
    """The P95 of memory peaks in bytes."""
    days: float
    confidence: float | None
    cost_now: int | None
    """The present cost of all replicas in micro-dollars a month."""
    cost_proposed: int | None

    @property
    def saved(self) -> int:
        """The saving in micro-dollars a month; 0 if the present cost is not known."""
        return 0 if self.cost_now is None or self.cost_proposed is None else self.cost_now - self.cost_proposed

    @property
    def order(self) -> tuple[int, str, str, str, str, str]:
        """The sort key: the decisions with the largest change of cost come first."""
        return -abs(self.saved), self.cluster, self.namespace, self.kind, self.workload, self.container


class ClusterFailure(msgspec.Struct, array_like=True, frozen=True, order=True):
    """A cluster that is left out, with the reason."""

    cluster: str
    problem: str


class FleetSums(msgspec.Struct, array_like=True):
    """The sums of a part of the fleet. Parts can be merged in any order."""

    total: RequestSums = RequestSums()
    groups: dict[str, dict[str, RequestSums]] = {}
    """cluster, team or namespace → value → sums. A namespace is written as CLUSTER/NAMESPACE."""
    largest: list[ContainerDecision] = []
    gone: dict[str, int] = {}
    """Cluster → number of containers that have usage but no pod any more."""
    failures: list[ClusterFailure] = []

    def add_sums(self, groups: Iterable[Group], sums: RequestSums) -> None:
        """Adds the sums of one container to the total and to its groups."""
        self.total = self.total.plus(sums)
        for by, value in groups:
            values = self.groups.setdefault(by, {})
            before = values.get(value)
            values[value] = sums if before is None else before.plus(sums)

    def merge(self, other: FleetSums, rows: int) -> None:
        """Adds another part. `rows` is the number of containers that are kept; those with the largest changes are
        kept."""
        self.total = self.total.plus(other.total)
        for by, values in other.groups.items():
            mine = self.groups.setdefault(by, {})
            for value, sums in values.items():
                mine[value] = mine[value].plus(sums) if value in mine else sums
        self.largest = nsmallest(rows, [*self.largest, *other.largest], key=lambda one: one.order)
        for cluster, count in other.gone.items():
            self.gone[cluster] = self.gone.get(cluster, 0) + count
        self.failures = sorted({*self.failures, *other.failures})


def merge_sums(parts: Iterable[FleetSums], rows: int) -> FleetSums:
    """Returns all parts as one, without changing the parts."""
    whole = FleetSums(groups={}, largest=[], gone={}, failures=[])
    for part in parts:
        whole.merge(part, rows)
    return whole
