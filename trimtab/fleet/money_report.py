"""Sums of requests and their cost, by cluster, team and namespace.

Amounts are whole numbers: millicores, mebibytes, micro-dollars a month. So a sum is the same in any order, whichever
machine added it up.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

import msgspec

MICRO_DOLLARS = 1_000_000
Group = tuple[str, str]
"""What is grouped by (`cluster`, `team`, `namespace`), and the value."""


class RequestSums(msgspec.Struct, array_like=True, frozen=True):
    """The sums of some containers."""

    containers: int = 0
    changes: int = 0
    """Containers with a changed request."""
    unknown: int = 0
    """Containers with too little usage of both resources."""
    priced: int = 0
    """Containers whose present requests are known: only these are in the sums below."""
    cpu_now: int = 0
    """Millicores of all replicas."""
    cpu_proposed: int = 0
    memory_now: int = 0
    """Mebibytes of all replicas."""
    memory_proposed: int = 0
    cost_now: int = 0
    """Micro-dollars a month."""
    cost_proposed: int = 0
    too_small: int = 0
    """Containers whose request is below what they need."""
    waste: int = 0
    """Micro-dollars a month that are requested and not needed."""

    @property
    def saved(self) -> int:
        """Micro-dollars a month; negative where the proposals cost more."""
        return self.cost_now - self.cost_proposed

    def plus(self, other: RequestSums) -> RequestSums:
        """Returns the sums of both."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return RequestSums(*(one + two for one, two in pairs))


class ContainerDecision(msgspec.Struct, array_like=True, frozen=True):
    """The request of one container of the fleet."""

    cluster: str
    namespace: str
    kind: str
    workload: str
    container: str
    team: str
    replicas: int | None
    """None where the cluster's present pods are not known."""
    cpu_now: int | None
    """Millicores."""
    cpu_proposed: int | None
    """None where the request stays, or there is too little usage."""
    memory_now: int | None
    """Bytes."""
    memory_proposed: int | None
    cpu_reason: str
    """The code of the reason."""
    memory_reason: str
    cpu_p95: int | None
    """Millicores."""
    memory_p95: int | None
    """Bytes of peaks."""
    days: float
    confidence: float | None
    cost_now: int | None
    """Micro-dollars a month of all replicas."""
    cost_proposed: int | None

    @property
    def saved(self) -> int:
        """Micro-dollars a month; 0 where the present cost is not known."""
        return 0 if self.cost_now is None or self.cost_proposed is None else self.cost_now - self.cost_proposed

    @property
    def order(self) -> tuple[int, str, str, str, str, str]:
        """The largest change of the cost first."""
        return -abs(self.saved), self.cluster, self.namespace, self.kind, self.workload, self.container


class ClusterFailure(msgspec.Struct, array_like=True, frozen=True, order=True):
    """A cluster that is left out, and why."""

    cluster: str
    problem: str


class FleetSums(msgspec.Struct, array_like=True):
    """What a part of the fleet adds up to; parts are merged in any order."""

    total: RequestSums = RequestSums()
    groups: dict[str, dict[str, RequestSums]] = {}
    """cluster, team or namespace → value → sums. A namespace is written CLUSTER/NAMESPACE."""
    largest: list[ContainerDecision] = []
    gone: dict[str, int] = {}
    """Cluster → containers that have usage and no pod any more."""
    failures: list[ClusterFailure] = []

    def add_sums(self, groups: Iterable[Group], sums: RequestSums) -> None:
        """Add one container's sums to the total and to its groups."""
        self.total = self.total.plus(sums)
        for by, value in groups:
            values = self.groups.setdefault(by, {})
            before = values.get(value)
            values[value] = sums if before is None else before.plus(sums)

    def merge(self, other: FleetSums, rows: int) -> None:
        """Add another part; `rows`: the containers with the largest changes that are kept."""
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
    """Returns all parts as one, without changing them."""
    whole = FleetSums(groups={}, largest=[], gone={}, failures=[])
    for part in parts:
        whole.merge(part, rows)
    return whole
