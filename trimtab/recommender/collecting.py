"""Usage into the diary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from trimtab.cluster.owner import Owner
from trimtab.sketch.diary import Diary, Reading
from trimtab.sketch.hours import DAY
from trimtab.usage.errors import GarbledSource
from trimtab.usage.owners import Owners
from trimtab.usage.prometheus import Prometheus
from trimtab.usage.series import SKEW, Series
from trimtab.usage.take import container

LAG = 120
"""Seconds that a scrape may need until it can be asked for: by remote write it takes a while."""
Alive = Callable[[], bool]
"""May we go on?"""


class Source(Protocol):
    """Where usage comes from."""

    def collect(self, diary: Diary, owners: Owners, now: int, alive: Alive) -> int:
        """What is new since the last time; how many series. Raises UsageFault or KubeFault: what is in the diary
        then is whole, and the rest comes with the next call."""


@dataclass(slots=True)
class Moments:
    """The metrics API, or kubelets: this moment, and no history. A moment that is missed is gone."""

    look: Callable[[], Iterable[Series]]
    """One sample for each container and resource."""

    def collect(self, diary: Diary, owners: Owners, now: int, alive: Alive) -> int:
        count = 0
        for series in self.look():
            at, value = series.times[0], series.values[0]
            if at <= now + SKEW:
                count += diary.see(container(series, owners), series.pod, series.resource, at, value)
        diary.turn(now)
        return count


class First(dict[tuple[str, str], Owner]):
    """The first that knows."""

    def __init__(self, parts: tuple[Mapping[tuple[str, str], Owner], ...]) -> None:
        super().__init__()
        self._parts = parts

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        return next((found for part in self._parts if (found := part.get(key)) is not None), default)


@dataclass(slots=True)
class Histories:
    """Prometheus: everything since it was read last, namespace by namespace; at first, the whole window."""

    prometheus: Prometheus
    _begin: int | None = None
    """Of a pass that did not come to its end."""

    def collect(self, diary: Diary, owners: Owners, now: int, alive: Alive) -> int:
        step = self.prometheus.pieces.step
        end, oldest = (now - LAG) // step * step, now - diary.days * DAY
        read = min(diary.until.values(), default=oldest) if diary.whole else oldest
        known = read if self._begin is None else self._begin
        begin = self._begin = max(oldest, known)
        if begin >= end:
            return 0
        whose, count = self._whose(owners, begin, end), 0
        namespaces = self.prometheus.namespaces(begin, end)
        if not namespaces and diary.until:
            raise GarbledSource("Prometheus tells of no container at all: it lost its data, or has not got them yet")
        for namespace in namespaces:
            start = max(oldest, diary.until.get(namespace, oldest))
            if alive() and start < end:
                count += self._namespace(diary, whose, namespace, start, end)
        if alive():
            self._quiet(diary, end)
            self._begin, diary.whole = None, True
        diary.forget(now)
        return count

    def _whose(self, owners: Owners, begin: int, end: int) -> Owners:
        """What the cluster knows, and else what its metrics tell: most pods of two weeks are gone."""
        told = self.prometheus.owners(begin, end)
        return Owners(First((owners.pods, told)), owners.workloads)

    @staticmethod
    def _quiet(diary: Diary, end: int) -> None:
        """Namespaces that nothing was told of were read to the end, too."""
        for namespace in diary.until:
            diary.end(namespace, end)
            diary.until[namespace] = end

    def _namespace(self, diary: Diary, owners: Owners, namespace: str, start: int, end: int) -> int:
        reading, count = Reading(diary), 0
        for series in self.prometheus.read(self.prometheus.plan(start, end, (namespace,))):
            whose = container(series, owners)
            reading.take(whose, series.pod, series.resource, series.times, series.values)
            diary.left_out += series.left_out
            count += 1
        reading.commit(namespace, end)
        return count
