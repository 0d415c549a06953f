"""The average usage of each pod with recent values, for workloads with several pods.

A window holds the values of all pods of a workload together. If one pod of thirty uses fifteen times as much as the
others, their common P95 does not show it. So the average of each pod is kept too, for as long as the pod has values.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Generic, TypeVar

from trimtab.histogram.time_buckets import DAY

MAX_VALUES = 1440
"""The largest number of values that count in an average: a day of one value a minute. After that, each new value has
the weight 1/1440."""
MIN_VALUES = 12
"""A pod with fewer values than this is ignored, because they do not show what it uses over time."""
PRESENT_SECONDS = 2 * 3600
"""A pod whose last value is this many seconds older than the newest value of all pods counts as deleted."""
MAX_STORED_PODS = 64
"""The maximum number of pods of a workload in a checkpoint. If there are more, this many of them are stored, evenly
spaced by their averages and including the largest."""

Average = tuple[int, int, float]
"""(time of the last value, number of values, average)."""


@dataclass(frozen=True, slots=True)
class PodUse:
    """The average usage of one pod, in cores or bytes."""

    name: str
    mean: float


@dataclass(slots=True)
class PodAverages:
    """The averages of the pods of one resource of one container."""

    pods: dict[str, Average] = field(default_factory=dict)

    def add_sample(self, pod: str, second: int, value: float) -> None:
        """Adds one value of a pod."""
        _, count, mean = self.pods.get(pod, (0, 0, 0.0))
        count = min(count + 1, MAX_VALUES)
        self.pods[pod] = (second, count, mean + (value - mean) / count)

    def add_series(self, pod: str, times: Sequence[int], values: Sequence[float]) -> None:
        """Adds a part of a pod's series; times must ascend. Only the last day of the part counts."""
        last = times[-1] if times else 0
        recent = [value for second, value in zip(times, values, strict=True) if second > last - DAY]
        if not recent:
            return
        before, count, mean = self.pods.get(pod, (0, 0, 0.0))
        if last <= before:
            return
        added = min(len(recent), MAX_VALUES)
        # The new values replace as much of the weight of the average as they bring.
        count = min(count, MAX_VALUES - added)
        mean = (mean * count + fsum(recent) / len(recent) * added) / (count + added)
        self.pods[pod] = (int(last), count + added, mean)

    def recent_uses(self) -> list[PodUse]:
        """Returns the pods that have recent values, and enough values."""
        return [PodUse(name, mean) for name, (_, count, mean) in self._recent().items() if count >= MIN_VALUES]

    def _recent(self) -> dict[str, Average]:
        newest = max((last for last, _, _ in self.pods.values()), default=0)
        return {name: average for name, average in self.pods.items() if average[0] >= newest - PRESENT_SECONDS}

    def to_checkpoint(self) -> dict[str, Average]:
        """Returns pod → average for a checkpoint: the pods with recent values, at most `MAX_STORED_PODS`."""
        lately = self._recent()
        if len(lately) <= MAX_STORED_PODS:
            return lately
        ordered = sorted(lately.items(), key=lambda pod: (pod[1][2], pod[0]))
        return dict(ordered[round(n * (len(ordered) - 1) / (MAX_STORED_PODS - 1))] for n in range(MAX_STORED_PODS))

    def merge_averages(self, pods: Mapping[str, Average]) -> None:
        """Merges averages from a checkpoint. If a pod has two averages, the later one is kept."""
        for name, average in pods.items():
            self.pods[name] = max(average, self.pods.get(name, average))

    def drop_stale(self, oldest: int) -> None:
        """Drops pods without a value since the time `oldest`."""
        self.pods = {name: average for name, average in self.pods.items() if average[0] >= oldest}


Key = TypeVar("Key")
_SinglePod = tuple[str, int, int, float]
"""The name of the only pod so far, followed by its `Average`."""


@dataclass(slots=True)
class PodAverageIndex(Generic[Key]):
    """The averages of pods by key, for keys with more than one pod. For a key with a single pod nothing is averaged,
    because its average is that of the whole window."""

    entries: dict[Key, _SinglePod | PodAverages] = field(default_factory=dict)
    """Key → the only pod so far, or the averages of all pods if there are several."""

    def add_sample(self, key: Key, pod: str, second: int, value: float) -> None:
        """Adds one value. While there is a single pod, nothing is computed; its values are averaged when a second pod
        appears."""
        entry = self.entries.get(key)
        if entry is None:
            self.entries[key] = (pod, 0, 0, 0.0)
        elif isinstance(entry, PodAverages):
            entry.add_sample(pod, second, value)
        elif entry[0] != pod:
            self._split_single(key, entry).add_sample(pod, second, value)

    def add_series(self, key: Key, pod: str, times: Sequence[int], values: Sequence[float]) -> None:
        """Adds a part of a pod's series; times must ascend. A series without a pod's name is ignored."""
        entry = self.entries.get(key)
        if not pod or not times:
            return
        if isinstance(entry, PodAverages):
            entry.add_series(pod, times, values)
        elif entry is not None and entry[0] != pod:
            self._split_single(key, entry).add_series(pod, times, values)
        else:
            averages = PodAverages({} if entry is None else {pod: entry[1:]})
            averages.add_series(pod, times, values)
            self.entries[key] = (pod, *averages.pods[pod])

    def _split_single(self, key: Key, single: _SinglePod) -> PodAverages:
        averages = self.entries[key] = PodAverages({single[0]: single[1:]} if single[2] else {})
        return averages

    def to_checkpoint(self, key: Key) -> dict[str, Average]:
        """Returns pod → average for a checkpoint; empty if there is only one pod."""
        entry = self.entries.get(key)
        averages = entry.to_checkpoint() if isinstance(entry, PodAverages) else {}
        return averages if len(averages) > 1 else {}

    def merge_averages(self, key: Key, pods: Mapping[str, Average]) -> None:
        """Merges averages from a checkpoint."""
        entry = self.entries.get(key)
        if not isinstance(entry, PodAverages):
            entry = PodAverages() if entry is None else self._split_single(key, entry)
            self.entries[key] = entry
        entry.merge_averages(pods)

    def recent_uses(self, key: Key) -> list[PodUse]:
        """Returns the pods with recent values, or an empty list if there is only one."""
        entry = self.entries.get(key)
        return entry.recent_uses() if isinstance(entry, PodAverages) else []

    def drop_stale(self, oldest: int, keys: Container[Key]) -> None:
        """Drops pods without a value since the time `oldest`, and entries that are not among `keys`."""
        for entry in self.entries.values():
            if isinstance(entry, PodAverages):
                entry.drop_stale(oldest)
        self.entries = {
            key: entry
            for key, entry in self.entries.items()
            if key in keys and (isinstance(entry, tuple) or entry.pods)
        }
