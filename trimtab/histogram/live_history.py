"""Usage that is sampled as time passes, and the older history that is imported into it.

A poll brings one value of each container; an import brings weeks at once. Both go into the same windows, and nothing
counts twice: of a pod only values newer than its last count, of an import only what lies outside the window's span. A
memory peak goes into its window when its interval is over; until then it is open.
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
    """The histories of all containers. Values are cores and bytes; times are seconds since 1970. Not thread-safe."""

    days: int = DAYS
    windows: dict[Key, DailyHistograms] = field(default_factory=dict)
    peaks: dict[ContainerKey, MemoryPeaks] = field(default_factory=dict)
    """Open peaks, which are not in the windows yet."""
    kills: dict[tuple[ContainerKey, str], int] = field(default_factory=dict)
    """(container, pod) → the second of the last OOM kill that was counted."""
    oom_records: dict[ContainerKey, OomRecord] = field(default_factory=dict)
    """Containers with OOM kills within the window."""
    pods: PodAverageIndex[Key] = field(default_factory=PodAverageIndex)
    """The average use of each pod, of workloads with several pods."""
    until: dict[str, int] = field(default_factory=dict)
    """Namespace → the second up to which its history was imported completely."""
    whole: bool = True
    """Whether `until` has every namespace that was ever imported. After a loss of stored texts it is unknown which are
    missing."""
    left_out: int = 0
    """Values dropped so far: not a number, negative, or more than any machine has."""
    _last_sample: dict[tuple[ContainerKey, str], int] = field(default_factory=dict)
    _restored_until: dict[ContainerKey, int] = field(default_factory=dict)
    _closed_interval: int = 0
    """The number of the interval before which no peak is open."""

    # ── as time passes ───────────────────────────────────────────────────────────────────────────────

    def see(self, container: ContainerKey, pod: str, resource: str, second: int, value: float) -> bool:
        """Add one value of one pod; False where it was added before, is too old, or is dropped."""
        if not 0 <= value <= MOST[resource]:
            self.left_out += 1
            return False
        self.pods.see((container, resource), pod, second, value)
        if resource == "memory":
            return self._add_memory(container, pod, second, value)
        last = self._last_sample.get((container, pod), self._restored_until.get(container, 0))
        if second <= last:
            return False
        self._last_sample[container, pod] = second
        return self._get_or_create_window(container, "cpu").add(second, value)

    def _add_memory(self, container: ContainerKey, pod: str, second: int, value: float) -> bool:
        if second // INTERVAL < self._closed_interval:
            return False
        peak = self.peaks.setdefault(container, MemoryPeaks()).see(pod, second, value)
        if peak is not None:
            self._close_peak(container, *peak, second)
        return True

    def kill(self, container: ContainerKey, pod: str, kill: OomKill) -> bool:
        """Count an OOM kill; False where it was counted before, or is older than the window."""
        window = self.windows.get((container, "memory"))
        # The kubelet reports the last kill for as long as the pod exists, so the same kill arrives with every update of
        # the pod.
        newest = max(window.last if window is not None else 0, self._closed_interval * INTERVAL)
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
        """Close the open peaks of intervals that are over at `now`. For sources whose values arrive as time passes."""
        if now // INTERVAL > self._closed_interval:
            self._closed_interval = now // INTERVAL
            self._close_over(self.peaks, now)
            self.forget(now)

    def end(self, namespace: str, now: int) -> None:
        """Close the open peaks of one namespace, whose history up to `now` was imported completely."""
        self._close_over([container for container in self.peaks if container.namespace == namespace], now)

    def _close_over(self, containers: Iterable[ContainerKey], now: int) -> None:
        """Move the peaks of intervals that are over into the windows."""
        for container in containers:
            running = self.peaks[container].running
            for pod, (number, value) in list(running.items()):
                if number < now // INTERVAL:
                    del running[pod]
                    self._close_peak(container, number * INTERVAL, value, now)

    def _close_peak(self, container: ContainerKey, start: int, value: float, now: int) -> None:
        first = self.began(container, start)
        last = max(first, min(now, start + INTERVAL - 1))
        self._get_or_create_window(container, "memory").extend(
            first, last, (value,), self.looked(container, first, last)
        )

    def began(self, container: ContainerKey, start: int) -> int:
        """The second from which a peak of the interval that begins at `start` was observed: not before the container's
        first cpu value. A kill from days before, which the status of a running pod still reports, counts from the first
        observation on: it is no history."""
        cpu = self.windows.get((container, "cpu"))
        return max(start, cpu.first) if cpu is not None else start

    def looked(self, container: ContainerKey, first: int, last: int) -> int:
        """The hours (a bit each) between two seconds of a day in which memory was observed: those with cpu values; all
        of them where cpu has none."""
        cpu, hours = self.windows.get((container, "cpu")), within(first, last)
        return (cpu.hours_of(first // DAY) & hours if cpu is not None else 0) or hours

    def forget(self, now: int) -> None:
        """Drop containers without a value in the whole window, and pods without a value for a day."""
        oldest, idle = now - self.days * DAY, now - DAY
        running = {container for container, peaks in self.peaks.items() if peaks.running}
        self.windows = {
            key: window for key, window in self.windows.items() if window.last >= oldest or key[0] in running
        }
        self.peaks = {container: self.peaks[container] for container in running}
        self.pods.forget(idle, self.windows.keys() | {(container, "memory") for container in running})
        self._last_sample = {key: second for key, second in self._last_sample.items() if second >= idle}
        self.kills = {key: second for key, second in self.kills.items() if second >= idle}
        self.oom_records = {key: record for key, record in self.oom_records.items() if record.last >= oldest}

    def lose(self, namespaces: Iterable[str]) -> None:
        """Note that stored texts were lost: parts of these namespaces, and possibly of others that are unknown."""
        self.whole = False
        for namespace in namespaces:
            self.until.pop(namespace, None)

    # ── what is held ─────────────────────────────────────────────────────────────────────────────────

    def containers(self) -> list[ContainerKey]:
        """All containers with usage, sorted."""
        return sorted({container for container, _ in self.windows} | self.peaks.keys())

    def window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        """The window of a container; an empty one where it has no usage."""
        return self.windows.get((container, resource)) or DailyHistograms(self.days)

    def running(self, container: ContainerKey, resource: str) -> tuple[float, ...]:
        """The open peaks of a container's pods; empty for cpu."""
        peaks = self.peaks.get(container) if resource == "memory" else None
        return tuple(value for _, value in peaks.running.values()) if peaks else ()

    def pod_uses(self, container: ContainerKey, resource: str) -> list[PodUse]:
        """The average use of the pods with recent values; empty for a workload with a single pod."""
        return self.pods.present((container, resource))

    def _get_or_create_window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        window = self.windows.get((container, resource))
        if window is None:
            window = self.windows[container, resource] = DailyHistograms(self.days)
        return window

    def put(self, container: ContainerKey, resource: str, window: DailyHistograms) -> None:
        """Restore a stored window. It replaces the current one, so restoring twice changes nothing."""
        self.windows[container, resource] = window
        if resource == "cpu":
            # Which pod the last value was of is not stored: no value up to it counts again, of any pod.
            self._restored_until[container] = window.last

    def put_oom_record(self, container: ContainerKey, record: OomRecord) -> None:
        """Restore a stored record of OOM kills."""
        before = self.oom_records.get(container)
        merged = record if before is None else joined(before, record, self.days * DAY)
        self.oom_records[container] = merged

    def adopt(self, batch: BatchHistory) -> None:
        """Add all usage of a batch history."""
        for container, resource in batch.pages:
            self._get_or_create_window(container, resource).merge(batch.window(container, resource))

    def pour(self, batch: BatchHistory) -> None:
        """Copy everything into a batch history, open peaks included."""
        for key, window in self.windows.items():
            batch.hold(*key, window)
        for container, peaks in self.peaks.items():
            for number, value in peaks.running.values():
                first = self.began(container, number * INTERVAL)
                last = max(first, min(self.window(container, "cpu").last, (number + 1) * INTERVAL - 1))
                batch.peak(container, first, last, value, self.looked(container, first, last))
        for container, record in self.oom_records.items():
            batch.hold_oom_record(container, record)
        for key in self.pods.held:
            batch.pods.take(key, self.pods.kept(key))


@dataclass(slots=True)
class _PeakSoFar:
    """The peak of one pod in one interval, as far as it is imported."""

    first: int
    last: int
    value: float
    looked: int
    """The hours of its day (a bit each) in which memory was observed."""


@dataclass(slots=True)
class HistoryImport:
    """The import of a namespace's history: read to its end and then committed, or not at all."""

    diary: LiveHistory
    _batch: BatchHistory = field(init=False)
    _peaks: dict[tuple[ContainerKey, str, int], _PeakSoFar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._batch = BatchHistory(self.diary.days)

    def take(
        self, container: ContainerKey, pod: str, resource: str, times: Sequence[int], values: Sequence[float]
    ) -> None:
        """Add a pod's series, or a part of it; times ascend."""
        self.diary.pods.extend((container, resource), pod, *possible(resource, times, values))
        window = self.diary.windows.get((container, resource))
        for start, stop in _outside(window, times) if window is not None and window.last else ((0, len(times)),):
            if resource == "cpu":
                self._batch.take(container, "cpu", times[start:stop], values[start:stop])
            else:
                self._add_memory(container, pod, times[start:stop], values[start:stop])

    def _add_memory(self, container: ContainerKey, pod: str, times: Sequence[int], values: Sequence[float]) -> None:
        hours, pieces = hours_of(times), cut(times, INTERVAL)
        peaks = [
            (number, _peak_of_interval(times[start:stop], values[start:stop], hours)) for number, start, stop in pieces
        ]
        if any(peak.value > MOST["memory"] for _, peak in peaks):
            possible_series = possible("memory", times, values)
            self._batch.left_out += len(times) - len(possible_series[0])
            self._add_memory(container, pod, *possible_series)
            return
        for number, peak_ in peaks:
            current = self._peaks.setdefault((container, pod, number), peak_)
            current.last, current.value = max(current.last, peak_.last), max(current.value, peak_.value)
            current.looked |= peak_.looked

    def commit(self, namespace: str, end: int) -> None:
        """Commit the import after it was read to its end. Cpu is first: it bounds the time from which peaks were
        observed, also of those that end now."""
        self._flush_batch()
        for (container, pod, number), peak in sorted(self._peaks.items(), key=lambda item: item[0][2]):
            if number < end // INTERVAL:
                self._add_over(container, pod, number, peak)
            else:
                self.diary.see(container, pod, "memory", peak.last, peak.value)
        self._flush_batch()
        self.diary.end(namespace, end)
        self.diary.until[namespace] = end

    def _flush_batch(self) -> None:
        self.diary.adopt(self._batch)
        self.diary.left_out += self._batch.left_out
        self._batch = BatchHistory(self.diary.days)

    def _add_over(self, container: ContainerKey, pod: str, number: int, peak: _PeakSoFar) -> None:
        """Add a peak of an interval that is over, merged with the open peak of the same interval."""
        peaks = self.diary.peaks.get(container)
        if peaks is not None and peaks.running.get(pod, (-1, 0.0))[0] == number:
            peak.value = max(peak.value, peaks.running.pop(pod)[1])
            peak.first = min(peak.first, self.diary.began(container, number * INTERVAL))
            peak.looked |= self.diary.looked(container, peak.first, peak.last)
        self._batch.peak(container, peak.first, peak.last, peak.value, peak.looked)


def _peak_of_interval(times: Sequence[int], values: Sequence[float], hours: Hours) -> _PeakSoFar:
    """The peak of a series within one interval, of a series that was observed in these hours."""
    first, last = int(times[0]), int(times[-1])
    return _PeakSoFar(first, last, max(values), hours[first // DAY] & within(first, last))


def _outside(window: DailyHistograms, times: Sequence[int]) -> Iterable[tuple[int, int]]:
    """The index ranges of a series before the first and after the last second of a window."""
    return (0, bisect_left(times, window.first)), (bisect_right(times, window.last), len(times))
