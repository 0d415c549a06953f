"""Usage that is sampled as time passes, and the older history that is imported into it.

A poll adds one value for each container; an import adds weeks at once. Both go into the same windows, and nothing is
counted twice. A polled value counts only if it is newer than the last value of its pod. An imported value counts only
if it is before the first or after the last value of the window. A memory peak is added to its window when its interval
is over; until then it is called open.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from trimtab.cluster.whole_pods import is_whole_pod
from trimtab.histogram.batch_history import MAX_AMOUNT, BatchHistory, ContainerKey, drop_impossible_values
from trimtab.histogram.daily_window import DEFAULT_DAYS, DailyHistograms
from trimtab.histogram.oom_kills import OomKill, OomRecord, add_kill, merge_oom_records
from trimtab.histogram.pod_averages import PodAverageIndex, PodUse
from trimtab.histogram.time_buckets import (
    DAY,
    PEAK_INTERVAL_SECONDS,
    Hours,
    MemoryPeaks,
    hours_within_day,
    slice_by_length,
)
from trimtab.histogram.time_buckets import hours_of_times as hours_of

Key = tuple[ContainerKey, str]


@dataclass(slots=True)
class LiveHistory:
    """The histories of all containers. Values are cores and bytes; times are seconds since 1970. Not thread-safe."""

    days: int = DEFAULT_DAYS
    windows: dict[Key, DailyHistograms] = field(default_factory=dict)
    open_peaks: dict[ContainerKey, MemoryPeaks] = field(default_factory=dict)
    """Container → its open peaks, which are not in the windows yet."""
    last_kills: dict[tuple[ContainerKey, str], int] = field(default_factory=dict)
    """(container, pod) → time of the last OOM kill that was counted."""
    oom_records: dict[ContainerKey, OomRecord] = field(default_factory=dict)
    """Container → its OOM kills within the window."""
    pod_averages: PodAverageIndex[Key] = field(default_factory=PodAverageIndex)
    """The average usage of each pod, for workloads with several pods."""
    imported_until: dict[str, int] = field(default_factory=dict)
    """Namespace → the time up to which its history was imported completely."""
    is_complete: bool = True
    """Whether `imported_until` has every namespace that was ever imported. If stored texts were lost, it is not known
    which namespaces are missing."""
    dropped_values: int = 0
    """The number of values dropped so far: not a number, negative, or more than any machine has."""
    _last_sample: dict[tuple[ContainerKey, str], int] = field(default_factory=dict)
    _restored_until: dict[ContainerKey, int] = field(default_factory=dict)
    _closed_interval: int = 0
    """The number of the interval before which all peaks are closed."""

    # ── as time passes ───────────────────────────────────────────────────────────────────────────────

    def add_sample(self, container: ContainerKey, pod: str, resource: str, second: int, value: float) -> bool:
        """Adds one value of one pod. Returns False if the value was added before, is too old, or is dropped as
        impossible."""
        if not 0 <= value <= MAX_AMOUNT[resource]:
            self.dropped_values += 1
            return False
        self.pod_averages.add_sample((container, resource), pod, second, value)
        if resource == "memory":
            return self._add_memory(container, pod, second, value)
        last = self._last_sample.get((container, pod), self._restored_until.get(container, 0))
        if second <= last:
            return False
        self._last_sample[container, pod] = second
        return self._get_or_create_window(container, "cpu").add_value(second, value)

    def _add_memory(self, container: ContainerKey, pod: str, second: int, value: float) -> bool:
        if second // PEAK_INTERVAL_SECONDS < self._closed_interval:
            return False
        peak = self.open_peaks.setdefault(container, MemoryPeaks()).add_value(pod, second, value)
        if peak is not None:
            self._close_peak(container, *peak, second)
        return True

    def add_oom_kill(self, container: ContainerKey, pod: str, kill: OomKill) -> bool:
        """Counts an OOM kill. Returns False if it was counted before or is older than the window."""
        window = self.windows.get((container, "memory"))
        # The kubelet reports the last kill for as long as the pod exists, so the same kill arrives with every update of
        # the pod.
        newest = max(window.last if window is not None else 0, self._closed_interval * PEAK_INTERVAL_SECONDS)
        if kill.at <= self.last_kills.get((container, pod), 0) or kill.at <= newest - self.days * DAY:
            return False
        self.last_kills[container, pod] = kill.at
        running = self.open_peaks.get(container)
        number, peak = running.running.get(pod, (-1, 0.0)) if running is not None else (-1, 0.0)
        used = max(kill.used, peak if number == kill.at // PEAK_INTERVAL_SECONDS else 0.0)
        before = self.oom_records.get(container)
        self.oom_records[container] = add_kill(before, replace(kill, used=used), self.days * DAY)
        return True

    def close_intervals(self, now: int) -> None:
        """Closes the open peaks of intervals that are over at `now`. It is for sources whose values arrive as time
        passes."""
        if now // PEAK_INTERVAL_SECONDS > self._closed_interval:
            self._closed_interval = now // PEAK_INTERVAL_SECONDS
            self._close_over(self.open_peaks, now)
            self.drop_stale(now)

    def close_namespace_intervals(self, namespace: str, now: int) -> None:
        """Closes the open peaks of one namespace, whose history up to `now` was imported completely."""
        self._close_over([container for container in self.open_peaks if container.namespace == namespace], now)

    def _close_over(self, containers: Iterable[ContainerKey], now: int) -> None:
        """Adds to the windows the memory peaks of all intervals that have ended at `now`."""
        for container in containers:
            running = self.open_peaks[container].running
            for pod, (number, value) in list(running.items()):
                if number < now // PEAK_INTERVAL_SECONDS:
                    del running[pod]
                    self._close_peak(container, number * PEAK_INTERVAL_SECONDS, value, now)

    def _close_peak(self, container: ContainerKey, start: int, value: float, now: int) -> None:
        first = self.peak_observed_from(container, start)
        last = max(first, min(now, start + PEAK_INTERVAL_SECONDS - 1))
        self._get_or_create_window(container, "memory").add_values(
            first, last, (value,), self.observed_hours(container, first, last)
        )

    def peak_observed_from(self, container: ContainerKey, start: int) -> int:
        """Returns the time from which on the memory peak of the interval that begins at `start` was observed. It is not
        before the container's first cpu value.

        The status of a running pod may report an OOM kill from days ago, but the days before the first observation do
        not count as history."""
        cpu = self.windows.get((container, "cpu"))
        return max(start, cpu.first) if cpu is not None else start

    def observed_hours(self, container: ContainerKey, first: int, last: int) -> int:
        """Returns the hours between two times of a day (one bit each) in which memory was observed: those with cpu
        values, or all of them if there are no cpu values."""
        cpu, hours = self.windows.get((container, "cpu")), hours_within_day(first, last)
        return (cpu.hours_of(first // DAY) & hours if cpu is not None else 0) or hours

    def drop_stale(self, now: int) -> None:
        """Drops containers without a value in the whole window, and pods without a value for a day."""
        oldest, idle = now - self.days * DAY, now - DAY
        running = {container for container, peaks in self.open_peaks.items() if peaks.running}
        self.windows = {
            key: window for key, window in self.windows.items() if window.last >= oldest or key[0] in running
        }
        self.open_peaks = {container: self.open_peaks[container] for container in running}
        self.pod_averages.drop_stale(idle, self.windows.keys() | {(container, "memory") for container in running})
        self._last_sample = {key: second for key, second in self._last_sample.items() if second >= idle}
        self.last_kills = {key: second for key, second in self.last_kills.items() if second >= idle}
        self.oom_records = {key: record for key, record in self.oom_records.items() if record.last >= oldest}

    def mark_incomplete(self, namespaces: Iterable[str]) -> None:
        """Records that stored texts were lost. They held parts of these namespaces, and possibly of others."""
        self.is_complete = False
        for namespace in namespaces:
            self.imported_until.pop(namespace, None)

    # ── what is held ─────────────────────────────────────────────────────────────────────────────────

    def list_containers(self) -> list[ContainerKey]:
        """Returns all containers with usage, sorted."""
        return sorted({container for container, _ in self.windows} | self.open_peaks.keys())

    def get_window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        """Returns the window of a container; an empty window if there is no usage."""
        return self.windows.get((container, resource)) or DailyHistograms(self.days)

    def running_peaks(self, container: ContainerKey, resource: str) -> tuple[float, ...]:
        """Returns the open peaks of a container's pods, or an empty tuple for cpu."""
        peaks = self.open_peaks.get(container) if resource == "memory" else None
        return tuple(value for _, value in peaks.running.values()) if peaks else ()

    def average_pod_uses(self, container: ContainerKey, resource: str) -> list[PodUse]:
        """Returns the average usage of the pods with recent values; an empty list for a workload with a single pod."""
        return self.pod_averages.recent_uses((container, resource))

    def _get_or_create_window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        window = self.windows.get((container, resource))
        if window is None:
            window = self.windows[container, resource] = DailyHistograms(self.days)
        return window

    def restore_window(self, container: ContainerKey, resource: str, histograms: DailyHistograms) -> None:
        """Restores a stored window. It replaces the present one, so restoring it twice has no further effect."""
        self.windows[container, resource] = histograms
        if resource == "cpu":
            # Which pod the last value was of is not stored: no value up to it counts again, of any pod.
            self._restored_until[container] = histograms.last

    def restore_oom_record(self, container: ContainerKey, record: OomRecord) -> None:
        """Restores a stored record of OOM kills."""
        before = self.oom_records.get(container)
        merged = record if before is None else merge_oom_records(before, record, self.days * DAY)
        self.oom_records[container] = merged

    def add_batch(self, batch: BatchHistory) -> None:
        """Adds all usage of a batch history."""
        for container, resource in batch.dense_windows:
            self._get_or_create_window(container, resource).merge(batch.compressed_window(container, resource))

    def copy_to_batch(self, batch: BatchHistory) -> None:
        """Copies the usage of all containers, including open peaks, into a batch history. Whole pods are left out."""
        for key, window in self.windows.items():
            if not is_whole_pod(key[0].name):
                batch.merge_window(*key, window)
        for container, peaks in self.open_peaks.items():
            for number, value in peaks.running.values() if not is_whole_pod(container.name) else ():
                first = self.peak_observed_from(container, number * PEAK_INTERVAL_SECONDS)
                last = max(first, min(self.get_window(container, "cpu").last, (number + 1) * PEAK_INTERVAL_SECONDS - 1))
                batch.add_peak(container, first, last, value, self.observed_hours(container, first, last))
        for container, record in self.oom_records.items():
            batch.merge_oom_record(container, record)
        for key in (one for one in self.pod_averages.entries if not is_whole_pod(one[0].name)):
            batch.pod_averages.merge_averages(key, self.pod_averages.to_checkpoint(key))


@dataclass(slots=True)
class _PeakSoFar:
    """The peak of one pod in one interval, as far as the interval has been imported."""

    first: int
    last: int
    value: float
    looked: int
    """The hours of the interval's day (one bit each) in which memory was observed."""


@dataclass(slots=True)
class HistoryImport:
    """The import of a namespace's history. It is committed after everything was read, or not at all."""

    history: LiveHistory
    _batch: BatchHistory = field(init=False)
    _peaks: dict[tuple[ContainerKey, str, int], _PeakSoFar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._batch = BatchHistory(self.history.days)

    def add_series(
        self, container: ContainerKey, pod: str, resource: str, times: Sequence[int], values: Sequence[float]
    ) -> None:
        """Adds a series of one pod, or a part of one; times must ascend."""
        self.history.pod_averages.add_series(
            (container, resource), pod, *drop_impossible_values(resource, times, values)
        )
        window = self.history.windows.get((container, resource))
        for start, stop in _outside(window, times) if window is not None and window.last else ((0, len(times)),):
            if resource == "cpu":
                self._batch.add_series(container, "cpu", times[start:stop], values[start:stop])
            else:
                self._add_memory(container, pod, times[start:stop], values[start:stop])

    def _add_memory(self, container: ContainerKey, pod: str, times: Sequence[int], values: Sequence[float]) -> None:
        hours, pieces = hours_of(times), slice_by_length(times, PEAK_INTERVAL_SECONDS)
        peaks = [
            (number, _peak_of_interval(times[start:stop], values[start:stop], hours)) for number, start, stop in pieces
        ]
        if any(peak.value > MAX_AMOUNT["memory"] for _, peak in peaks):
            possible_series = drop_impossible_values("memory", times, values)
            self._batch.dropped_values += len(times) - len(possible_series[0])
            self._add_memory(container, pod, *possible_series)
            return
        for number, peak_ in peaks:
            current = self._peaks.setdefault((container, pod, number), peak_)
            current.last, current.value = max(current.last, peak_.last), max(current.value, peak_.value)
            current.looked |= peak_.looked

    def commit(self, namespace: str, end: int) -> None:
        """Commits the import, after all of it was read. Cpu is committed first, because the first cpu value determines
        from when on memory peaks were observed."""
        self._flush_batch()
        for (container, pod, number), peak in sorted(self._peaks.items(), key=lambda item: item[0][2]):
            if number < end // PEAK_INTERVAL_SECONDS:
                self._add_over(container, pod, number, peak)
            else:
                self.history.add_sample(container, pod, "memory", peak.last, peak.value)
        self._flush_batch()
        self.history.close_namespace_intervals(namespace, end)
        self.history.imported_until[namespace] = end

    def _flush_batch(self) -> None:
        self.history.add_batch(self._batch)
        self.history.dropped_values += self._batch.dropped_values
        self._batch = BatchHistory(self.history.days)

    def _add_over(self, container: ContainerKey, pod: str, number: int, peak: _PeakSoFar) -> None:
        """Adds a peak of an interval that is over, merged with the open peak of the same interval."""
        peaks = self.history.open_peaks.get(container)
        if peaks is not None and peaks.running.get(pod, (-1, 0.0))[0] == number:
            peak.value = max(peak.value, peaks.running.pop(pod)[1])
            peak.first = min(peak.first, self.history.peak_observed_from(container, number * PEAK_INTERVAL_SECONDS))
            peak.looked |= self.history.observed_hours(container, peak.first, peak.last)
        self._batch.add_peak(container, peak.first, peak.last, peak.value, peak.looked)


def _peak_of_interval(times: Sequence[int], values: Sequence[float], hours: Hours) -> _PeakSoFar:
    """Returns the peak of a series within one interval. `hours` are the hours in which the series was observed."""
    first, last = int(times[0]), int(times[-1])
    return _PeakSoFar(first, last, max(values), hours[first // DAY] & hours_within_day(first, last))


def _outside(histograms: DailyHistograms, times: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Returns the index ranges of those times that are before the first and after the last value of the window."""
    return (0, bisect_left(times, histograms.first)), (bisect_right(times, histograms.last), len(times))
