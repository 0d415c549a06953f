"""What is seen as time passes, and what history adds to it.

A poll brings one value of each container; history brings weeks at once. Both go into the same windows, and nothing
counts twice: of a pod only what is newer than its last value, of history only what lies outside what is held. Memory
goes in when an interval of peaks is over; until then its peaks run.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from trimtab.histogram.batch_history import MOST, BatchHistory, ContainerKey, possible
from trimtab.histogram.daily_window import DAYS, DailyHistograms
from trimtab.histogram.oom_kills import OomKill, OomRecord, joined, with_kill
from trimtab.histogram.pod_averages import PodAverageIndex, PodUse
from trimtab.histogram.time_buckets import DAY, INTERVAL, Hours, MemoryPeaks, cut, within
from trimtab.histogram.time_buckets import of as hours_of

Key = tuple[ContainerKey, str]


@dataclass(slots=True)
class LiveHistory:
    """Cores and bytes; times are seconds since 1970. Not for two threads."""

    days: int = DAYS
    windows: dict[Key, DailyHistograms] = field(default_factory=dict)
    peaks: dict[ContainerKey, MemoryPeaks] = field(default_factory=dict)
    """What runs: not yet in the windows."""
    kills: dict[tuple[ContainerKey, str], int] = field(default_factory=dict)
    """(container, pod) → when it was killed for want of memory last, as far as it was counted."""
    oom_records: dict[ContainerKey, OomRecord] = field(default_factory=dict)
    """Containers that were killed for want of memory within the window."""
    pods: PodAverageIndex[Key] = field(default_factory=PodAverageIndex)
    """The average use of each pod, of workloads with several."""
    until: dict[str, int] = field(default_factory=dict)
    """Namespace → up to when its history was read, all of it."""
    whole: bool = True
    """Is every namespace that was ever read in `until`? After a loss it is not known which are missing."""
    left_out: int = 0
    """Values so far that are no number, below zero or more than any machine has."""
    _latest: dict[tuple[ContainerKey, str], int] = field(default_factory=dict)
    _loaded: dict[ContainerKey, int] = field(default_factory=dict)
    _closed: int = 0
    """The interval before which no peak runs."""

    # ── as time passes ───────────────────────────────────────────────────────────────────────────────

    def see(self, container: ContainerKey, pod: str, resource: str, at: int, value: float) -> bool:
        """One value of one pod; False where it was seen already, is too old, or is left out."""
        if not 0 <= value <= MOST[resource]:
            self.left_out += 1
            return False
        self.pods.see((container, resource), pod, at, value)
        if resource == "memory":
            return self._hold(container, pod, at, value)
        last = self._latest.get((container, pod), self._loaded.get(container, 0))
        if at <= last:
            return False
        self._latest[container, pod] = at
        return self._window(container, "cpu").add(at, value)

    def _hold(self, container: ContainerKey, pod: str, at: int, value: float) -> bool:
        if at // INTERVAL < self._closed:
            return False
        peak = self.peaks.setdefault(container, MemoryPeaks()).see(pod, at, value)
        if peak is not None:
            self._close(container, *peak, at)
        return True

    def kill(self, container: ContainerKey, pod: str, kill: OomKill) -> bool:
        """Count a kill for want of memory; False where it is known already, or older than the window."""
        window = self.windows.get((container, "memory"))
        newest = max(window.last if window is not None else 0, self._closed * INTERVAL)
        if kill.at <= self.kills.get((container, pod), 0) or kill.at <= newest - self.days * DAY:
            return False
        self.kills[container, pod] = kill.at
        running = self.peaks.get(container)
        number, peak = running.running.get(pod, (-1, 0.0)) if running is not None else (-1, 0.0)
        used = max(kill.used, peak if number == kill.at // INTERVAL else 0.0)
        before = self.oom_records.get(container)
        self.oom_records[container] = with_kill(before, replace(kill, used=used), self.days * DAY)
        return True

    def turn(self, now: int) -> None:
        """By the clock, where values come as they are: what runs of intervals that are over goes into the windows."""
        if now // INTERVAL > self._closed:
            self._closed = now // INTERVAL
            self._end(self.peaks, now)
            self.forget(now)

    def end(self, namespace: str, now: int) -> None:
        """The same for one namespace, all of whose history up to `now` is held."""
        self._end([container for container in self.peaks if container.namespace == namespace], now)

    def _end(self, containers: Iterable[ContainerKey], now: int) -> None:
        for container in containers:
            running = self.peaks[container].running
            for pod, (number, value) in list(running.items()):
                if number < now // INTERVAL:
                    del running[pod]
                    self._close(container, number * INTERVAL, value, now)

    def _close(self, container: ContainerKey, at: int, value: float, now: int) -> None:
        first = self.began(container, at)
        last = max(first, min(now, at + INTERVAL - 1))
        self._window(container, "memory").extend(first, last, (value,), self.looked(container, first, last))

    def began(self, container: ContainerKey, at: int) -> int:
        """From when on a peak of the interval that begins then was looked for: not before its cpu was seen. A kill of
        days before, which a pod that runs still tells of, counts from our first look on: it is no history."""
        cpu = self.windows.get((container, "cpu"))
        return max(at, cpu.first) if cpu is not None else at

    def looked(self, container: ContainerKey, first: int, last: int) -> int:
        """In which hours of an interval its memory was seen: those in which its cpu was; all, where that was not."""
        cpu, hours = self.windows.get((container, "cpu")), within(first, last)
        return (cpu.hours_of(first // DAY) & hours if cpu is not None else 0) or hours

    def forget(self, now: int) -> None:
        """Containers that nobody saw for the whole window; pods that nobody saw for a day."""
        oldest, idle = now - self.days * DAY, now - DAY
        running = {container for container, peaks in self.peaks.items() if peaks.running}
        self.windows = {key: w for key, w in self.windows.items() if w.last >= oldest or key[0] in running}
        self.peaks = {container: self.peaks[container] for container in running}
        self.pods.forget(idle, self.windows.keys() | {(container, "memory") for container in running})
        self._latest = {key: at for key, at in self._latest.items() if at >= idle}
        self.kills = {key: at for key, at in self.kills.items() if at >= idle}
        self.oom_records = {key: record for key, record in self.oom_records.items() if record.last >= oldest}

    def lose(self, namespaces: Iterable[str]) -> None:
        """Something that was kept is gone: maybe parts of these, and others that nobody knows of."""
        self.whole = False
        for namespace in namespaces:
            self.until.pop(namespace, None)

    # ── what is held ─────────────────────────────────────────────────────────────────────────────────

    def containers(self) -> list[ContainerKey]:
        """In order of name."""
        return sorted({container for container, _ in self.windows} | self.peaks.keys())

    def window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        """An empty one where nothing was seen."""
        return self.windows.get((container, resource)) or DailyHistograms(self.days)

    def running(self, container: ContainerKey, resource: str) -> tuple[float, ...]:
        """Peaks of the interval that is not over."""
        peaks = self.peaks.get(container) if resource == "memory" else None
        return tuple(value for _, value in peaks.running.values()) if peaks else ()

    def pod_uses(self, container: ContainerKey, resource: str) -> list[PodUse]:
        """The average use of the pods that were seen lately; none of a workload with a single one."""
        return self.pods.present((container, resource))

    def _window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        found = self.windows.get((container, resource))
        if found is None:
            found = self.windows[container, resource] = DailyHistograms(self.days)
        return found

    def put(self, container: ContainerKey, resource: str, window: DailyHistograms) -> None:
        """What an earlier life held; it takes the place of what is here, so that it may be read twice."""
        self.windows[container, resource] = window
        if resource == "cpu":
            self._loaded[container] = window.last

    def put_oom_record(self, container: ContainerKey, record: OomRecord) -> None:
        """Kills that an earlier life counted."""
        before = self.oom_records.get(container)
        known = record if before is None else joined(before, record, self.days * DAY)
        self.oom_records[container] = known

    def adopt(self, book: BatchHistory) -> None:
        """All usage that a book holds."""
        for container, resource in book.pages:
            self._window(container, resource).merge(book.window(container, resource))

    def pour(self, book: BatchHistory) -> None:
        """All that is held into a book, peaks that run among it."""
        for key, window in self.windows.items():
            book.hold(*key, window)
        for container, peaks in self.peaks.items():
            for number, value in peaks.running.values():
                first = self.began(container, number * INTERVAL)
                last = max(first, min(self.window(container, "cpu").last, (number + 1) * INTERVAL - 1))
                book.peak(container, first, last, value, self.looked(container, first, last))
        for container, record in self.oom_records.items():
            book.hold_oom_record(container, record)
        for key in self.pods.held:
            book.pods.take(key, self.pods.kept(key))


@dataclass(slots=True)
class _Peak:
    first: int
    last: int
    value: float
    looked: int
    """The hours of its day in which it was looked for."""


@dataclass(slots=True)
class HistoryImport:
    """A namespace's history: read to its end and then taken, or not at all."""

    diary: LiveHistory
    _book: BatchHistory = field(init=False)
    _peaks: dict[tuple[ContainerKey, str, int], _Peak] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._book = BatchHistory(self.diary.days)

    def take(
        self, container: ContainerKey, pod: str, resource: str, times: Sequence[int], values: Sequence[float]
    ) -> None:
        """A pod's series, or a piece of it; times ascend."""
        self.diary.pods.extend((container, resource), pod, *possible(resource, times, values))
        held = self.diary.windows.get((container, resource))
        for start, stop in _outside(held, times) if held is not None and held.last else ((0, len(times)),):
            if resource == "cpu":
                self._book.take(container, "cpu", times[start:stop], values[start:stop])
            else:
                self._hold(container, pod, times[start:stop], values[start:stop])

    def _hold(self, container: ContainerKey, pod: str, times: Sequence[int], values: Sequence[float]) -> None:
        hours, pieces = hours_of(times), cut(times, INTERVAL)
        peaks = [(number, _peak(times[start:stop], values[start:stop], hours)) for number, start, stop in pieces]
        if any(peak.value > MOST["memory"] for _, peak in peaks):
            kept = possible("memory", times, values)
            self._book.left_out += len(times) - len(kept[0])
            self._hold(container, pod, *kept)
            return
        for number, found in peaks:
            known = self._peaks.setdefault((container, pod, number), found)
            known.last, known.value = max(known.last, found.last), max(known.value, found.value)
            known.looked |= found.looked

    def commit(self, namespace: str, end: int) -> None:
        """It was read to its end. Cpu first: it tells from when on peaks were looked for, those that end now too."""
        self._adopt()
        for (container, pod, number), peak in sorted(self._peaks.items(), key=lambda item: item[0][2]):
            if number < end // INTERVAL:
                self._over(container, pod, number, peak)
            else:
                self.diary.see(container, pod, "memory", peak.last, peak.value)
        self._adopt()
        self.diary.end(namespace, end)
        self.diary.until[namespace] = end

    def _adopt(self) -> None:
        self.diary.adopt(self._book)
        self.diary.left_out += self._book.left_out
        self._book = BatchHistory(self.diary.days)

    def _over(self, container: ContainerKey, pod: str, number: int, peak: _Peak) -> None:
        """One with what ran of it already."""
        peaks = self.diary.peaks.get(container)
        if peaks is not None and peaks.running.get(pod, (-1, 0.0))[0] == number:
            peak.value = max(peak.value, peaks.running.pop(pod)[1])
            peak.first = min(peak.first, self.diary.began(container, number * INTERVAL))
            peak.looked |= self.diary.looked(container, peak.first, peak.last)
        self._book.peak(container, peak.first, peak.last, peak.value, peak.looked)


def _peak(times: Sequence[int], values: Sequence[float], hours: Hours) -> _Peak:
    """Of one interval, of a series that was seen in these hours."""
    first, last = int(times[0]), int(times[-1])
    return _Peak(first, last, max(values), hours[first // DAY] & within(first, last))


def _outside(held: DailyHistograms, times: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Before the first moment that is held, and after the last."""
    return (0, bisect_left(times, held.first)), (bisect_right(times, held.last), len(times))
