"""What does each pod use on average, of those that were seen lately?

A window pools the pods of a workload. One pod among thirty that uses fifteen times as much as the others is less than
P95 of them together; so the average of each pod is kept beside, for as long as the pod is seen.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trimtab.histogram.time_buckets import DAY

MAX_VALUES = 1440
"""Values after which a new one replaces its share of the average: a day of one a minute."""
MIN_VALUES = 12
"""Fewer say nothing of what a pod uses steadily."""
PRESENT_SECONDS = 2 * 3600
"""A pod whose last value is so much older than the newest of all is gone."""
MAX_KEPT = 64
"""Pods of a workload that a checkpoint holds: of more, as many evenly by their averages, the largest among them."""

Average = tuple[int, int, float]
"""(last second, values, average)."""


@dataclass(frozen=True, slots=True)
class PodUse:
    """The average use of one pod, in cores or bytes."""

    name: str
    mean: float


@dataclass(slots=True)
class PodAverages:
    """The averages of the pods of one resource of one container."""

    pods: dict[str, Average] = field(default_factory=dict)

    def see(self, pod: str, at: int, value: float) -> None:
        """One value."""
        _, count, mean = self.pods.get(pod, (0, 0, 0.0))
        count = min(count + 1, MAX_VALUES)
        self.pods[pod] = (at, count, mean + (value - mean) / count)

    def extend(self, pod: str, times: Sequence[int], values: Sequence[float]) -> None:
        """A piece of a pod's series, of which the last day counts; times ascend."""
        last = times[-1] if times else 0
        recent = [value for at, value in zip(times, values, strict=True) if at > last - DAY]
        if not recent:
            return
        before, count, mean = self.pods.get(pod, (0, 0, 0.0))
        if last <= before:
            return
        more = min(len(recent), MAX_VALUES)
        count = min(count, MAX_VALUES - more)
        mean = (mean * count + sum(recent) / len(recent) * more) / (count + more)
        self.pods[pod] = (int(last), count + more, mean)

    def present(self) -> list[PodUse]:
        """The pods that were seen lately, and often enough."""
        return [PodUse(name, mean) for name, (_, count, mean) in self._lately().items() if count >= MIN_VALUES]

    def _lately(self) -> dict[str, Average]:
        newest = max((last for last, _, _ in self.pods.values()), default=0)
        return {name: known for name, known in self.pods.items() if known[0] >= newest - PRESENT_SECONDS}

    def kept(self) -> dict[str, Average]:
        """What a checkpoint holds: the pods that were seen lately, `MAX_KEPT` at the most."""
        lately = self._lately()
        if len(lately) <= MAX_KEPT:
            return lately
        ordered = sorted(lately.items(), key=lambda pod: (pod[1][2], pod[0]))
        return dict(ordered[round(n * (len(ordered) - 1) / (MAX_KEPT - 1))] for n in range(MAX_KEPT))

    def take(self, pods: Mapping[str, Average]) -> None:
        """Averages that somebody else kept; of two of one pod the one that was seen later counts."""
        for name, known in pods.items():
            self.pods[name] = max(known, self.pods.get(name, known))

    def forget(self, oldest: int) -> None:
        """Drop pods that were not seen since."""
        self.pods = {name: known for name, known in self.pods.items() if known[0] >= oldest}


Key = TypeVar("Key")
_Alone = tuple[str, int, int, float]
"""A pod that is the only one so far, and its `Average`."""


@dataclass(slots=True)
class PodAverageIndex(Generic[Key]):
    """The averages of the pods of everything that has more than one: a pod alone is what its window says."""

    held: dict[Key, _Alone | PodAverages] = field(default_factory=dict)
    """The only pod so far, or the averages of several from then on."""

    def see(self, key: Key, pod: str, at: int, value: float) -> None:
        """One value. A pod that is alone costs no arithmetic: what it uses is averaged once there is another."""
        known = self.held.get(key)
        if known is None:
            self.held[key] = (pod, 0, 0, 0.0)
        elif isinstance(known, PodAverages):
            known.see(pod, at, value)
        elif known[0] != pod:
            self._several(key, known).see(pod, at, value)

    def extend(self, key: Key, pod: str, times: Sequence[int], values: Sequence[float]) -> None:
        """A piece of a pod's series; times ascend. Series without the name of a pod are none of one."""
        known = self.held.get(key)
        if not pod or not times:
            return
        if isinstance(known, PodAverages):
            known.extend(pod, times, values)
        elif known is not None and known[0] != pod:
            self._several(key, known).extend(pod, times, values)
        else:
            alone = PodAverages({} if known is None else {pod: known[1:]})
            alone.extend(pod, times, values)
            self.held[key] = (pod, *alone.pods[pod])

    def _several(self, key: Key, alone: _Alone) -> PodAverages:
        found = self.held[key] = PodAverages({alone[0]: alone[1:]} if alone[2] else {})
        return found

    def kept(self, key: Key) -> dict[str, Average]:
        """What a checkpoint holds; nothing of a pod that is alone."""
        known = self.held.get(key)
        found = known.kept() if isinstance(known, PodAverages) else {}
        return found if len(found) > 1 else {}

    def take(self, key: Key, pods: Mapping[str, Average]) -> None:
        """What a checkpoint held."""
        known = self.held.get(key)
        if not isinstance(known, PodAverages):
            known = PodAverages() if known is None else self._several(key, known)
            self.held[key] = known
        known.take(pods)

    def present(self, key: Key) -> list[PodUse]:
        """The pods that were seen lately; none where there is but one."""
        known = self.held.get(key)
        return known.present() if isinstance(known, PodAverages) else []

    def forget(self, oldest: int, keys: Container[Key]) -> None:
        """Drop pods that were not seen since, and what is not among the keys."""
        for known in self.held.values():
            if isinstance(known, PodAverages):
                known.forget(oldest)
        self.held = {
            key: known for key, known in self.held.items() if key in keys and (isinstance(known, tuple) or known.pods)
        }
