"""What containers have used, as far as it is known: the numbers that the rules compare requests with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ContainerName = tuple[str, str, str, str]
"""(namespace, kind, workload, container)."""
WorkloadName = tuple[str, str, str]
"""(namespace, kind, workload)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUsage:
    """The use of one resource by one container over its history: millicores, or bytes of memory."""

    p5: float
    p50: float
    p90: float
    p95: float
    max: float
    mean: float | None = None
    """The mean of all samples of all pods, or None if only percentiles are known (published recommendations)."""
    idle: float | None = None
    """P90 of the quietest day, or None with less than three days of history."""
    pod_means: tuple[float, ...] = ()
    """The mean of each pod; empty if pods are not told apart."""
    start_peak: float | None = None
    """The median peak of the first minutes of a container, or None if no start was observed."""
    days: float = 0.0

    @property
    def mean_to_p90(self) -> float | None:
        """Mean ÷ P90, the `k` of a workload: the HPA follows the mean, the VPA the P90. None if either is unknown."""
        return None if self.mean is None or self.p90 <= 0 else min(1.0, self.mean / self.p90)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaUsage:
    """How many pods of a workload ran at a time."""

    p5: float
    max: int
    share_near_max: float | None = None
    """Not known without an HPA's maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """The usage of all containers of one run, and the number of pods of each workload."""

    containers: Mapping[ContainerName, Mapping[str, ResourceUsage]] = field(default_factory=dict)
    """Container → cpu or memory → its usage."""
    replicas: Mapping[WorkloadName, ReplicaUsage] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()
    """Values of the label `cluster` among the series of one source; more than one is several clusters in one."""

    def find_usage(self, name: ContainerName, resource: str) -> ResourceUsage | None:
        """Returns the usage of a resource by a container, or None if its history is unknown or too short."""
        return self.containers.get(name, {}).get(resource)
