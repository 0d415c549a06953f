"""What kubelets and container runtimes of one pool have used, in little memory: some samples for each day and number of
pods.

For each day, and each group of nodes with about the same number of pods, the sixteen samples with the smallest hash are
kept. This is a uniform choice that depends neither on the order of the samples nor on random numbers. Maxima are kept
exactly.
"""

from __future__ import annotations

import zlib
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from trimtab.reservations.overhead_fit import OverheadPoint, weighted_median

DAY_SECONDS = 86400
POD_GROUP = 5
"""Nodes are grouped by their number of pods, in ranges of this width."""
MAX_SAMPLES = 16
"""The number of samples that are kept for one group and day."""
CPU, MEMORY = "cpu", "memory"
RESOURCES = (CPU, MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadSample:
    """What the kubelet and the container runtime of one node used at one moment."""

    node: str
    second: int
    pods: int
    millicores: float | None
    """The cpu usage, or None if it is not known."""
    memory_bytes: float | None
    """The memory usage, or None if it is not known."""
    max_memory_bytes: float | None = None
    """The largest memory usage since the previous sample, or None if only the usage at this moment is known."""

    def amount_of(self, resource: str) -> float | None:
        """Returns the usage in millicores or bytes, or None if it is not known."""
        return self.millicores if resource == CPU else self.memory_bytes

    def max_amount_of(self, resource: str) -> float:
        """Returns the largest usage, in millicores or bytes, that the sample contains; 0 if it contains none."""
        amount = self.amount_of(resource) or 0.0
        return max(amount, self.max_memory_bytes or 0.0) if resource == MEMORY else amount


@dataclass(slots=True)
class SampleGroup:
    """The samples of one resource on one day, from nodes with about the same number of pods."""

    count: int = 0
    pods: int = 0
    """The sum of the numbers of pods of all samples."""
    maximum: float = 0.0
    """The largest measured amount, including the time between samples if the source knows it."""
    kept: list[tuple[int, float]] = field(default_factory=list)
    """(hash, amount) of the samples that are kept, sorted by hash."""

    def add_amount(self, sample_hash: int, pods: int, amount: float, max_amount: float) -> None:
        """Adds one sample. A sample that is already there is not added again."""
        if (sample_hash, amount) in self.kept:
            return
        self.count += 1
        self.pods += pods
        self.maximum = max(self.maximum, max_amount)
        if len(self.kept) < MAX_SAMPLES or sample_hash < self.kept[-1][0]:
            insort(self.kept, (sample_hash, amount))
            del self.kept[MAX_SAMPLES:]


@dataclass(slots=True)
class OverheadHistory:
    """The samples of one pool with one container runtime. Not thread-safe."""

    max_days: int = 30
    groups: dict[tuple[int, str, int], SampleGroup] = field(default_factory=dict)
    """(day since 1970, resource, group of pods) → the samples of the group."""
    nodes: dict[str, int] = field(default_factory=dict)
    """Node → the time of its last sample."""
    moments: int = 0
    """The number of samples added, complete or not."""
    complete: int = 0
    """The number of samples in which both cpu and memory are known."""
    first: int | None = None
    last: int | None = None
    max_pods_by_day: dict[int, int] = field(default_factory=dict)

    def add_sample(self, sample: OverheadSample) -> None:
        """Adds one sample. An unknown amount is left out and lowers the coverage."""
        amounts = {resource: sample.amount_of(resource) for resource in RESOURCES}
        self.moments += 1
        self.complete += None not in amounts.values()
        if all(amount is None for amount in amounts.values()):
            return
        self.first = sample.second if self.first is None else min(self.first, sample.second)
        self.last = sample.second if self.last is None else max(self.last, sample.second)
        self.nodes[sample.node] = max(sample.second, self.nodes.get(sample.node, 0))
        day, pod_group = sample.second // DAY_SECONDS, sample.pods // POD_GROUP
        self.max_pods_by_day[day] = max(sample.pods, self.max_pods_by_day.get(day, 0))
        # crc32 spreads well enough to choose samples, and is the same in every process.
        sample_hash = zlib.crc32(f"{sample.node} {sample.second}".encode())
        for resource, amount in amounts.items():
            if amount is not None and amount >= 0:
                key = (day, resource, pod_group)
                group = self.groups.setdefault(key, SampleGroup())
                group.add_amount(sample_hash, sample.pods, amount, sample.max_amount_of(resource))

    def drop_old_days(self, now: int) -> None:
        """Removes days so that the last `max_days` remain, including that of `now`."""
        first_day = now // DAY_SECONDS - self.max_days + 1
        self.groups = {key: group for key, group in self.groups.items() if key[0] >= first_day}
        self.first = max(self.first or 0, first_day * DAY_SECONDS)
        self.nodes = {node: second for node, second in self.nodes.items() if second >= self.first}
        self.max_pods_by_day = {day: pods for day, pods in self.max_pods_by_day.items() if day >= first_day}

    @property
    def max_pods(self) -> int:
        """The largest number of pods on a measured node."""
        return max(self.max_pods_by_day.values(), default=0)

    @property
    def span_seconds(self) -> int:
        """The number of seconds from the first to the last sample."""
        return 0 if self.first is None or self.last is None else self.last - self.first

    @property
    def coverage(self) -> float:
        """The share of samples in which both cpu and memory are known, from 0 to 1."""
        return self.complete / self.moments if self.moments else 0.0

    def list_points(self, resource: str) -> list[OverheadPoint]:
        """Returns the median of every group of samples, as points for the fit."""
        return [
            OverheadPoint(
                group.pods / group.count,
                weighted_median((amount, 1.0) for _, amount in group.kept),
                min(group.count, MAX_SAMPLES),
            )
            for _, group in self.iter_groups(resource)
        ]

    def iter_groups(self, resource: str) -> Iterator[tuple[int, SampleGroup]]:
        """Yields (day, samples of a group) for a resource, sorted by day and number of pods."""
        for (day, name, _), group in sorted(self.groups.items(), key=lambda item: item[0]):
            if name == resource:
                yield day, group

    def weighted_amounts(self, resource: str) -> Iterator[tuple[float, float, float]]:
        """Yields (pods, amount, weight) for every sample that was kept. The weights add up to the number of all
        samples."""
        for _, group in self.iter_groups(resource):
            for _, amount in group.kept:
                yield group.pods / group.count, amount, group.count / len(group.kept)

    def maximum_of(self, resource: str) -> float:
        """Returns the largest amount that was measured in the days of this history; 0 if there is none."""
        return max((group.maximum for _, group in self.iter_groups(resource)), default=0.0)
