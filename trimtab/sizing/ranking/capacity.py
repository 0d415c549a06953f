"""Calculates how much of a workload one node of a machine type holds: how much each limit allows, and which limit is
the smallest.

The unit is a GiB of the workload: a GiB of requested memory together with the cores, pods and volumes that on average
go with it. The number of pods determines how much kubelet and container runtime use, and what they use determines for
how many pods there is room. So the two are calculated together until they agree (a fixed point; each round shrinks the
error by the ratio of pods per GiB to pods per GiB used).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from trimtab.sizing.ranking.workload import PoolWorkload

MAX_ROUNDS = 100
"""The maximum number of rounds, far more than the fixed point needs: with real workloads, each round gains a digit."""
PRECISION_PODS = 1e-9


class Limit(StrEnum):
    """The limits that keep a node from holding more of the workload."""

    CPU = "cpu"
    MEMORY = "memory"
    VOLUMES = "volumes"
    PODS = "pods"
    LOAD = "load"
    """The cores in use must not exceed a share of the node's cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReservation:
    """What kubelet, container runtime and system use of a node: a base, and an amount for each pod."""

    cores: float = 0.0
    """The reserved cores. If a formula gives them, they are cores of the machine; if they were measured, they are
    normalised by speed."""
    gib: float = 0.0
    cores_per_pod: float = 0.0
    gib_per_pod: float = 0.0
    eviction_gib: float = 0.0
    """The kubelet's hard eviction threshold for memory."""
    is_measured: bool = False
    """Whether the reservation was measured, in normalised cores; otherwise it comes from a formula for this machine
    size."""

    def reserved_cores(self, pods: float, performance: float) -> float:
        """Returns the reserved cores of a machine with this number of pods."""
        return (self.cores + pods * self.cores_per_pod) / (performance if self.is_measured else 1.0)

    def reserved_gib(self, pods: float) -> float:
        """Returns the reserved memory in GiB of a machine with this number of pods, without the eviction threshold."""
        return self.gib + pods * self.gib_per_pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A machine type with its price and its reservation."""

    name: str
    family: str
    architecture: str
    cores: float
    gib: float
    """The memory in GiB as the cloud sells it."""
    visible_gib: float
    """The memory in GiB that the operating system sees."""
    price: int
    """The price in micro-dollars an hour."""
    reservation: NodeReservation
    max_pods: int | None = 110
    """The maximum number of pods; None: no limit is known."""
    max_volumes: int | None = None
    performance: float = 1.0
    """The speed of a core, relative to the baseline."""
    memory_weight: float = 8.5
    """How many GiB cost as much as a core. It only splits the price into a price per core and one per GiB; the order of
    types does not depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCapacity:
    """How much of the workload one node of a type holds."""

    reserved_cores: float
    reserved_gib: float
    """The reserved memory without the eviction threshold."""
    limits: Mapping[Limit, float]
    """Limit → GiB of the workload that it allows; infinite if the limit does not exist."""
    bottleneck: Limit
    usable_gib: float
    """The smallest of the limits, in GiB of the workload; 0 or less if the node holds nothing."""
    pods: float
    """The number of pods of the workload that the node holds."""
    free_cores: float
    """The normalised cores that remain for the workload, after the buffer."""
    free_gib: float
    free_pods: float
    free_volumes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRules:
    """Rules for how full a node may become."""

    buffer_pods: float = 1.0
    """The number of average pods for which each node keeps room, in every resource, because real pods do not fill a
    node completely."""
    max_load: float | None = None
    """The share of the cores that may be in use, or None for no limit."""


def measure_capacity(workload: PoolWorkload, candidate: Candidate, rules: CapacityRules) -> NodeCapacity:
    """Returns how much of the workload a node of this type holds."""
    pods = 0.0
    capacity = _capacity_with(workload, candidate, rules, pods)
    for _ in range(MAX_ROUNDS):
        if abs(capacity.pods - pods) <= PRECISION_PODS:
            break
        pods = capacity.pods
        capacity = _capacity_with(workload, candidate, rules, pods)
    return capacity


def _capacity_with(workload: PoolWorkload, candidate: Candidate, rules: CapacityRules, pods: float) -> NodeCapacity:
    """Returns the node's capacity for the workload, if kubelet and container runtime use what they need for this number
    of pods."""
    daemons, speed, buffer = workload.daemons, candidate.performance, rules.buffer_pods
    total = max(0.0, pods) + daemons.pods
    reserved_cores = candidate.reservation.reserved_cores(total, speed)
    reserved_gib = candidate.reservation.reserved_gib(total)
    # In normalised cores: a faster core does more of the workload.
    free_cores = (candidate.cores - reserved_cores) * speed - daemons.cores - buffer * workload.cores / workload.pods
    free_gib = (
        candidate.visible_gib
        - reserved_gib
        - candidate.reservation.eviction_gib
        - daemons.gib
        - buffer * workload.gib / workload.pods
    )
    free_pods = inf if candidate.max_pods is None else candidate.max_pods - daemons.pods - buffer
    free_volumes = (
        inf
        if candidate.max_volumes is None
        else candidate.max_volumes - daemons.volumes - buffer * workload.volumes / workload.pods
    )
    limits = {
        Limit.CPU: free_cores / workload.cores_per_gib,
        Limit.MEMORY: free_gib,
        Limit.VOLUMES: free_volumes / workload.volumes_per_gib if workload.volumes else inf,
        Limit.PODS: free_pods / workload.pods_per_gib,
        Limit.LOAD: inf
        if rules.max_load is None or not workload.used_cores
        else candidate.cores * candidate.performance * rules.max_load / (workload.used_cores / workload.gib),
    }
    bottleneck = min(limits, key=lambda limit: limits[limit])
    usable = limits[bottleneck]
    return NodeCapacity(
        reserved_cores=reserved_cores,
        reserved_gib=reserved_gib,
        limits=limits,
        bottleneck=bottleneck,
        usable_gib=usable,
        pods=max(0.0, usable) * workload.pods_per_gib,
        free_cores=free_cores,
        free_gib=free_gib,
        free_pods=free_pods,
        free_volumes=free_volumes,
    )
