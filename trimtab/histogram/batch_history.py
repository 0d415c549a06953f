"""The usage of all containers, read at once from a file or a server.

Series of single pods are added, whole or in parts. The result is, for each container of a workload, a window of cpu
values and a window of memory peaks. Days are compressed only when a window is requested, because a reader of two weeks
of history adds to each day many times.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.kinds import GroupKind
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.histogram.daily_window import DEFAULT_DAYS, DailyHistograms
from trimtab.histogram.histogram import UsageHistogram, bucket_end, locate_buckets
from trimtab.histogram.oom_kills import OomKill, OomRecord, add_kill, merge_oom_records
from trimtab.histogram.pod_averages import PodAverageIndex
from trimtab.histogram.time_buckets import (
    DAY,
    PEAK_INTERVAL_SECONDS,
    Hours,
    add_hours,
    hours_between,
    peaks_of_series,
    slice_by_length,
)
from trimtab.histogram.time_buckets import hours_of_times as hours_of

START_UNCERTAINTY_SECONDS = 3600
"""A series that begins less than this many seconds after the first queried moment may have begun before the query."""
ASSUMED_SAMPLE_SECONDS = 60
"""The assumed number of seconds between samples if only their number is known. The VPA's confidence makes the same
assumption."""
RESOURCES = ("cpu", "memory")
MAX_AMOUNT = {"cpu": 4096.0, "memory": float(64 << 40)}
"""Resource → an amount (cores, bytes) that no machine has. A larger value is a measuring error and is dropped.

A histogram distinguishes values down to 1/16384 of its largest value. With a value that is much too large, all other
values would look alike."""


@dataclass(frozen=True, slots=True, order=True)
class ContainerKey:
    """Identifies a container of a workload, for which requests are recommended."""

    namespace: str
    kind: str
    """The kind of the topmost owner, with its group (`GroupKind`); `Pod` for a pod without an owner."""
    workload: str
    name: str

    @property
    def owner(self) -> OwnerKey:
        """The workload."""
        return OwnerKey(self.namespace, GroupKind(self.kind), self.workload)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.workload}/{self.name}"


@dataclass(slots=True)
class _DenseWindow:
    """A window of days, none of which is compressed yet."""

    days: dict[int, UsageHistogram] = field(default_factory=dict)
    hours: dict[int, int] = field(default_factory=dict)
    first: int = 0
    last: int = 0

    def get_or_create_day(self, number: int) -> UsageHistogram:
        histogram = self.days.get(number)
        if histogram is None:
            histogram = self.days[number] = UsageHistogram()
        return histogram

    def extend_span(self, first: int, last: int, hours: Hours) -> None:
        self.first = min(self.first or first, first)
        self.last = max(self.last, last)
        add_hours(self.hours, hours)


@dataclass(slots=True)
class BatchHistory:
    """The histories of all containers. Values are cores and bytes; times are seconds since 1970 and ascend within a
    series."""

    days: int = DEFAULT_DAYS
    start_seconds: int = 0
    """The number of seconds at a pod's start whose cpu usage is recorded apart from the rest. Memory that is allocated
    at the start usually stays allocated, so it is not recorded apart."""
    max_start_cpu: dict[ContainerKey, float] = field(default_factory=dict)
    """Container → its largest cpu value during a start, if `start_seconds` is set."""
    dense_windows: dict[tuple[ContainerKey, str], _DenseWindow] = field(default_factory=dict)
    vpa_recommendations: dict[tuple[ContainerKey, str], VpaRecommendation] = field(default_factory=dict)
    """(container, resource) → the recommendation of a VPA, which is not usage and is kept apart from it."""
    oom_records: dict[ContainerKey, OomRecord] = field(default_factory=dict)
    """Container → its OOM kills."""
    pod_averages: PodAverageIndex[tuple[ContainerKey, str]] = field(default_factory=PodAverageIndex)
    """The average usage of each pod, for workloads with several pods."""
    dropped_values: int = 0
    """The number of values that were dropped: not a number, negative, or more than any machine has."""

    def add_series(
        self,
        container: ContainerKey,
        resource: str,
        times: Sequence[int],
        values: Sequence[float],
        queried_from: int | None = None,
        pod: str = "",
    ) -> None:
        """Adds a series of one pod, or a part of a series.

        Parts of a memory series should end where a peak interval ends. `queried_from` is the first moment for which the
        source was queried, or None if it is not known. If it is None, the start of a pod is not recognised.
        """
        if self.start_seconds and resource == "cpu" and queried_from is not None:
            start_samples = count_start_samples(times, queried_from, self.start_seconds)
            self.max_start_cpu[container] = max([self.max_start_cpu.get(container, 0.0), *values[:start_samples]])
            times, values = times[start_samples:], values[start_samples:]
        if times:
            self.pod_averages.add_series((container, resource), pod, *drop_impossible_values(resource, times, values))
            (self._add_peaks if resource == "memory" else self._add_cores)(container, times, values)

    def _add_peaks(self, container: ContainerKey, times: Sequence[int], values: Sequence[float]) -> None:
        interval_peaks = peaks_of_series(times, values)
        # One comparison for a whole series: the series is searched only where a value is impossible.
        if max(interval_peaks.values()) > MAX_AMOUNT["memory"]:
            times, values = self._drop_impossible("memory", times, values)
            interval_peaks = peaks_of_series(times, values)
        page, days = self._dense_window(container, "memory", times), dict[int, list[float]]()
        for number, peak in interval_peaks.items():
            days.setdefault(number * PEAK_INTERVAL_SECONDS // DAY, []).append(peak)
        for day, peaks in days.items():
            page.get_or_create_day(day).add_values(peaks)

    def _add_cores(self, container: ContainerKey, times: Sequence[int], values: Sequence[float]) -> None:
        """Adds a series of cpu values: finds the buckets of all values at once, and then counts day by day."""
        buckets = locate_buckets(values)
        if (
            buckets is None or bucket_end(buckets[0] + 255) > MAX_AMOUNT["cpu"]
        ):  # the bound of 256 buckets, not a search
            times, values = self._drop_impossible("cpu", times, values)
            buckets = locate_buckets(values)
        page = self._dense_window(container, "cpu", times)
        for day, start, end in slice_by_length(times, DAY):
            day_values, histogram = values[start:end], page.get_or_create_day(day)
            if buckets is None:
                histogram.add_values(day_values)
            else:
                histogram.add_located_values(buckets[0], buckets[1][start:end], day_values)

    def _drop_impossible(
        self, resource: str, times: Sequence[int], values: Sequence[float]
    ) -> tuple[Sequence[int], Sequence[float]]:
        possible_series = drop_impossible_values(resource, times, values)
        self.dropped_values += len(values) - len(possible_series[1])
        return possible_series

    def _dense_window(self, container: ContainerKey, resource: str, times: Sequence[int]) -> _DenseWindow:
        """Returns the window of a container, extended to these times. If there are no times, returns an empty window,
        which is not stored."""
        if not times:
            return _DenseWindow()
        page = self.dense_windows.setdefault((container, resource), _DenseWindow())
        page.extend_span(int(times[0]), int(times[-1]), hours_of(times))
        return page

    def add_peak(self, container: ContainerKey, first: int, last: int, value: float, hours: int) -> None:
        """Adds the memory peak of a pod in one interval. `hours` are the hours of the day in which the interval was
        observed (one bit per hour)."""
        page, day = self.dense_windows.setdefault((container, "memory"), _DenseWindow()), first // DAY
        page.get_or_create_day(day).add_value(value)
        page.extend_span(first, last, {day: hours})

    def add_bucket_counts(
        self, container: ContainerKey, resource: str, counts_by_bucket: Mapping[int, int], first: int, last: int
    ) -> None:
        """Adds values that are already counted by bucket (see `histogram`).

        Only the times of the first and the last value are known, so all values are counted on the last day. The
        observed time is as long as the same number of samples of one pod would take, one a minute, up to `last`."""
        histogram = UsageHistogram()
        histogram.add_bucket_counts(counts_by_bucket, bucket_end(max(counts_by_bucket)) if counts_by_bucket else 0.0)
        page = self.dense_windows.setdefault((container, resource), _DenseWindow())
        page.days.setdefault(last // DAY, UsageHistogram()).merge(histogram)
        observed_seconds = min(last - first, ASSUMED_SAMPLE_SECONDS * histogram.total_count, self.days * DAY)
        page.extend_span(first, last, hours_between(last - observed_seconds, last))

    def add_oom_kill(self, container: ContainerKey, kill: OomKill) -> None:
        """Adds an OOM kill. The caller must not add the same kill twice."""
        record = self.oom_records.get(container)
        self.oom_records[container] = add_kill(record, kill, self.days * DAY)

    def merge_oom_record(self, container: ContainerKey, record: OomRecord) -> None:
        """Merges OOM kills that were counted elsewhere. They may include kills that are counted here too."""
        current = self.oom_records.get(container)
        self.oom_records[container] = record if current is None else merge_oom_records(current, record, self.days * DAY)

    def merge_window(self, container: ContainerKey, resource: str, histograms: DailyHistograms) -> None:
        """Merges a window into the container's own window."""
        if histograms.last:
            page = self.dense_windows.setdefault((container, resource), _DenseWindow())
            for day, counts in histograms.histograms_by_day().items():
                page.days.setdefault(day, UsageHistogram()).merge(counts)
            page.extend_span(histograms.first, histograms.last, histograms.hours_by_day())

    def list_containers(self) -> list[ContainerKey]:
        """Returns all containers with usage or with a VPA's recommendation, sorted."""
        return sorted({container for container, _ in (*self.dense_windows, *self.vpa_recommendations)})

    def compressed_window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        """Returns the usage of a container as a compressed window; an empty window if there is no usage."""
        page = self.dense_windows.get((container, resource))
        if page is None:
            return DailyHistograms(self.days)
        return DailyHistograms.from_days(page.days, page.hours, page.first, page.last, self.days)


def drop_impossible_values(
    resource: str, times: Sequence[int], values: Sequence[float]
) -> tuple[Sequence[int], Sequence[float]]:
    """Returns the times and values without values that are negative or more than any machine has. Nearly always nothing
    is removed."""
    max_amount = MAX_AMOUNT[resource]
    if max(values, default=0.0) <= max_amount and min(values, default=0.0) >= 0:
        return times, values
    places = [n for n, value in enumerate(values) if 0 <= value <= max_amount]
    return [times[n] for n in places], [values[n] for n in places]


def count_start_samples(times: Sequence[int], queried_from: int, seconds: int) -> int:
    """Returns how many of the first samples belong to the pod's start. It is 0 for a series that exists from the first
    queried moment on, because its pod started earlier."""
    if not times or times[0] <= queried_from + START_UNCERTAINTY_SECONDS:
        return 0
    return bisect_left(times, times[0] + seconds)
