"""The known usage of containers, with which the rules compare requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.owner import OwnerKey

ContainerName = tuple[OwnerKey, str]
"""(workload, container)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUsage:
    """The usage of one resource by one container over its history, in millicores or bytes."""

    p5: float
    p50: float
    p90: float
    p95: float
    max: float
    mean: float | None = None
    """The mean of all samples of all pods, or None if only percentiles are known (published recommendations)."""
    idle: float | None = None
    """The P90 of the quietest day, or None if there are less than three days of history."""
    pod_means: tuple[float, ...] = ()
    """The mean of each pod; empty if the pods cannot be distinguished."""
    start_peak: float | None = None
    """The median of the peaks in the first minutes of a container, or None if no start was observed."""
    days: float = 0.0

    @property
    def mean_to_p90(self) -> float | None:
        """The mean divided by P90, called k: an HPA follows the mean, a VPA the P90. None if either is unknown."""
        return None if self.mean is None or self.p90 <= 0 else min(1.0, self.mean / self.p90)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaUsage:
    """How many pods of a workload ran at the same time."""

    p5: float
    max: int
    share_near_max: float | None = None
    """The share of the time with nearly as many replicas as the HPA's maximum; None if the workload has no HPA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """The usage of all containers of one run, and the number of pods of each workload."""

    containers: Mapping[ContainerName, Mapping[str, ResourceUsage]] = field(default_factory=dict)
    """Container → resource (cpu or memory) → its usage."""
    replicas: Mapping[OwnerKey, ReplicaUsage] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()
    """The values of the label `cluster` in the series. If there is more than one, the source mixes several clusters."""

    def find_usage(self, name: ContainerName, resource: str) -> ResourceUsage | None:
        """Returns the usage of a resource by a container, or None if its history is unknown or too short."""
        return self.containers.get(name, {}).get(resource)
