"""Usage into the diary.

Usage at this moment, looked at by a thread of its own: a moment that is missed is gone.

Publishing takes seconds where there are many containers, and as long as the API server likes. So whoever looks waits
for nobody: what was seen is put in line, and goes into the diary when the round comes to it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trimtab.cluster.owner import Owner
from trimtab.histogram.live_history import HistoryImport, LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.usage.errors import GarbledSource
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus import Prometheus
from trimtab.usage.series import SKEW, Series, container

LAG = 120
"""Seconds that a scrape may need until it can be asked for: by remote write it takes a while."""
Alive = Callable[[], bool]
"""May we go on?"""


class UsageSource(Protocol):
    """Where usage comes from."""

    def collect(self, diary: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        """What is new since the last time; how many series. Raises UsageFault or KubeFault: what is in the diary
        then is whole, and the rest comes with the next call."""


@dataclass(slots=True)
class InstantCollector:
    """The metrics API, or kubelets: this moment, and no history. A moment that is missed is gone."""

    looks: Callable[[], Iterable[Iterable[Series]]]
    """Every look since the last time, each with one sample for each container and resource."""

    def collect(self, diary: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        count = 0
        try:
            for look in self.looks():
                for series in look:
                    at, value = series.times[0], series.values[0]
                    if at <= now + SKEW:
                        count += diary.see(container(series, owners), series.pod, series.resource, at, value)
        finally:
            diary.turn(now)
        return count


class ChainLookup(dict[tuple[str, str], Owner]):
    """The first that knows."""

    def __init__(self, parts: tuple[Mapping[tuple[str, str], Owner], ...]) -> None:
        super().__init__()
        self._parts = parts

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        return next((found for part in self._parts if (found := part.get(key)) is not None), default)


@dataclass(slots=True)
class RangeCollector:
    """Prometheus: everything since it was read last, namespace by namespace; at first, the whole window."""

    prometheus: Prometheus
    _begin: int | None = None
    """Of a pass that did not come to its end."""

    def collect(self, diary: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        step = self.prometheus.pieces.step
        end, oldest = (now - LAG) // step * step, now - diary.days * DAY
        read = min(diary.until.values(), default=oldest) if diary.whole else oldest
        known = read if self._begin is None else self._begin
        begin = self._begin = max(oldest, known)
        if begin >= end:
            return 0
        self.prometheus.one_cluster(begin, end)
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

    def _whose(self, owners: OwnerIndex, begin: int, end: int) -> OwnerIndex:
        """What the cluster knows, and else what its metrics tell: most pods of two weeks are gone."""
        told = self.prometheus.owners(begin, end)
        return OwnerIndex(ChainLookup((owners.pods, told)), owners.workloads)

    @staticmethod
    def _quiet(diary: LiveHistory, end: int) -> None:
        """Namespaces that nothing was told of were read to the end, too."""
        for namespace in diary.until:
            diary.end(namespace, end)
            diary.until[namespace] = end

    def _namespace(self, diary: LiveHistory, owners: OwnerIndex, namespace: str, start: int, end: int) -> int:
        reading, count = HistoryImport(diary), 0
        for series in self.prometheus.read(self.prometheus.plan(start, end, (namespace,))):
            whose = container(series, owners)
            reading.take(whose, series.pod, series.resource, series.times, series.values)
            diary.left_out += series.left_out
            count += 1
        reading.commit(namespace, end)
        return count


MAX_LOOKS = 60
"""In line at the most: an hour of looks every minute. Then the oldest goes, and is counted as missed."""

Look = Sequence[Series] | Exception
"""What was seen, or why nothing was."""


@dataclass(slots=True)
class Sampler:
    """Looks again and again, from `__enter__` to `__exit__`."""

    look: Callable[[], Iterable[Series]]
    interval: float
    """Seconds from the beginning of one look to that of the next."""
    elapsed: Callable[[], float]
    missed: Callable[[], object] = lambda: None
    """Hears of each look that nobody came for in time, or that took so long that the next ones could not begin."""
    _line: deque[Look] = field(default_factory=deque)
    _there: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """A look that is under way ends by itself: what it brings comes too late for us."""
        self._done.set()

    def join(self) -> None:
        """Wait until no look is under way any more, after `__exit__`."""
        if self._thread is not None:
            self._thread.join()

    def wait(self, alive: Callable[[], bool]) -> None:
        """Until there is a look, or we may not go on."""
        while alive() and not self._there.wait(0.5):
            pass

    def looks(self) -> Iterator[Sequence[Series]]:
        """Those in line, the oldest first. Raises what the last one raised, after all that came before."""
        self._there.clear()
        fault: Exception | None = None
        while self._line:
            look = self._line.popleft()
            if isinstance(look, Exception):
                fault = look
            else:
                fault = None
                yield look
        if fault is not None:
            raise fault

    def _run(self) -> None:
        while not self._done.is_set():
            began = self.elapsed()
            self._put(self._looked())
            late = (self.elapsed() - began) // self.interval
            for _ in range(int(late)):
                self.missed()
            self._done.wait(max(0.0, began + (late + 1) * self.interval - self.elapsed()))

    def _looked(self) -> Look:
        try:
            return list(self.look())
        except Exception as fault:  # noqa: BLE001  raised where the round can tell it
            return fault

    def _put(self, look: Look) -> None:
        if len(self._line) >= MAX_LOOKS:
            self._line.popleft()
            self.missed()
        self._line.append(look)
        self._there.set()
