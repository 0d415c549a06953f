"""One day of one resource of one container as a row of a table, and how such rows are merged.

The history of a fleet of clusters consists of such rows. Rows of many days, clusters and writers are merged on any
number of machines, so the result must not depend on the order. Counts are integers and are added. For times, the
earliest or the latest is kept, and for peaks the largest. The same content is always encoded as the same bytes, so the
same rows always give the same bytes.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from trimtab.cluster.whole_pods import is_whole_pod
from trimtab.histogram.batch_history import RESOURCES, BatchHistory, ContainerKey
from trimtab.histogram.daily_window import DailyHistograms, DamagedHistogram, pack_day, unpack_days
from trimtab.histogram.histogram import UsageHistogram
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import OomRecord
from trimtab.histogram.pod_averages import Average
from trimtab.histogram.time_buckets import ALL_HOURS, DAY

PodAverages = dict[str, Average]
"""Pod → (last second, number of values, average), for workloads with several pods."""


@dataclass(frozen=True, slots=True)
class DailyRow:
    """One day of one resource of one container of a workload."""

    container: ContainerKey
    resource: str
    first: int
    """The time of the first value; `last` is that of the last value. Both are within the day."""
    last: int
    hours: int
    """One bit for each hour of the day in which usage was observed."""
    histogram: bytes
    """The day and its histogram, as `pack_canonical_day` encodes them."""
    pods: bytes = b""
    """The average usage of each pod, as `encode_pods` encodes it; empty if there is only one pod."""
    oom: OomRecord | None = None
    """The OOM kills of the container up to the end of the day; only rows of memory have them."""


def pack_canonical_day(day: int, histogram: UsageHistogram) -> bytes:
    """Returns a day and its histogram as bytes, without loss. Equal histograms give equal bytes, whatever they were
    merged from."""
    cells = histogram.counts
    first = next((place for place, count in enumerate(cells) if count), len(cells))
    end = next((place for place in range(len(cells), first, -1) if cells[place - 1]), first)
    base = histogram.base + first if end > first else 0
    trimmed = UsageHistogram(
        base, array(cells.typecode, cells[first:end]), histogram.zeros, histogram.top, is_paired=histogram.is_paired
    )
    return pack_day(day, trimmed, over=False)


def encode_pods(pods: Mapping[str, Average]) -> bytes:
    """Returns the averages as bytes, sorted by pod; empty if there are fewer than two."""
    return msgspec.msgpack.encode(dict(sorted(pods.items()))) if len(pods) > 1 else b""


def decode_pods(encoded: bytes) -> PodAverages:
    """Returns the averages from the bytes that `encode_pods` returned. Raises DamagedHistogram."""
    try:
        return msgspec.msgpack.decode(encoded, type=PodAverages) if encoded else {}
    except msgspec.DecodeError as error:
        raise DamagedHistogram(f"the averages of pods cannot be decoded: {error}") from None


def rows_of_batch(history: BatchHistory, day: int) -> Iterator[DailyRow]:
    """Yields the rows of one day of a batch history, sorted by container and resource."""
    for container in history.list_containers():
        for resource in RESOURCES:
            window = history.dense_windows.get((container, resource))
            if window is None or day not in window.days:
                continue
            pods = history.pod_averages.to_checkpoint((container, resource))
            oom = history.oom_records.get(container) if resource == "memory" else None
            first, last = _clip_span(day, window.first, window.last)
            yield DailyRow(
                container,
                resource,
                first,
                last,
                window.hours.get(day, 0),
                pack_canonical_day(day, window.days[day]),
                encode_pods(pods),
                oom,
            )


def rows_of_live(history: LiveHistory, day: int) -> Iterator[DailyRow]:
    """Yields the rows of one day of a live history, sorted by container and resource. Whole pods are left out."""
    for container in history.list_containers():
        for resource in RESOURCES if not is_whole_pod(container.name) else ():
            window = history.windows.get((container, resource))
            histogram = None if window is None else window.histograms_of_days((day,)).get(day)
            if window is None or histogram is None:
                continue
            # The averages are those of the last day: older days have none.
            is_recent = day >= window.newest - 1
            pods = history.pod_averages.to_checkpoint((container, resource)) if is_recent else {}
            oom = history.oom_records.get(container) if resource == "memory" else None
            first, last = _clip_span(day, window.first, window.last)
            yield DailyRow(
                container,
                resource,
                first,
                last,
                window.hours_of(day),
                pack_canonical_day(day, histogram),
                encode_pods(pods),
                oom,
            )


def _clip_span(day: int, first: int, last: int) -> tuple[int, int]:
    return max(first, day * DAY), min(last, day * DAY + DAY - 1)


def check_row(row: DailyRow) -> int:
    """Returns the day of a row. Raises DamagedHistogram if the parts of the row contradict each other."""
    days = unpack_days(row.histogram)
    if len(days) != 1:
        raise DamagedHistogram(f"{row.container}: the row contains {len(days)} days instead of one")
    day = days[0][0]
    if not day * DAY <= row.first <= row.last < (day + 1) * DAY or not 0 <= row.hours <= ALL_HOURS:
        raise DamagedHistogram(f"{row.container}: the times in the row do not belong to the day of the row")
    return day


@dataclass(slots=True)
class MergedContainerHistory:
    """The history of one container, merged from its rows."""

    windows: dict[str, DailyHistograms]
    oom: OomRecord | None
    pods: dict[str, PodAverages]
    """Resource → the averages of its pods."""


def merge_rows(rows: Iterable[DailyRow], days: int) -> MergedContainerHistory:
    """Returns the merged rows of one container as windows of the last `days` days. The order of the rows does not
    matter. Raises DamagedHistogram."""
    parts = {resource: _Parts({}, {}, {}) for resource in RESOURCES}
    kills: list[OomRecord] = []
    for row in rows:
        if row.resource not in parts:
            raise DamagedHistogram(
                f"{row.container}: the row has usage of {row.resource}, but only rows of cpu and memory are supported"
            )
        parts[row.resource].add_row(row)
        if row.oom is not None:
            kills.append(row.oom)
    return MergedContainerHistory(
        {resource: part.build_window(days) for resource, part in parts.items()},
        merge_kills(kills, days * DAY),
        {resource: part.pods for resource, part in parts.items()},
    )


@dataclass(slots=True)
class _Parts:
    """The days of one resource of one container, while its rows are merged."""

    histograms: dict[int, UsageHistogram]
    hours: dict[int, int]
    pods: PodAverages
    first: int = 0
    last: int = 0

    def add_row(self, row: DailyRow) -> None:
        for day, histogram in unpack_days(row.histogram):
            present = self.histograms.get(day)
            if present is None:
                self.histograms[day] = histogram
            else:
                present.merge(histogram)
            self.hours[day] = self.hours.get(day, 0) | row.hours
        self.first = min(self.first or row.first, row.first)
        self.last = max(self.last, row.last)
        for name, average in decode_pods(row.pods).items():
            self.pods[name] = max(average, self.pods.get(name, average))

    def build_window(self, days: int) -> DailyHistograms:
        if not self.histograms:
            return DailyHistograms(days)
        return DailyHistograms.from_days(self.histograms, self.hours, self.first, self.last, days)


def merge_kills(records: Iterable[OomRecord], window_seconds: int) -> OomRecord | None:
    """Returns the record that gives the highest floor for the memory request, among several records of OOM kills; None
    if there are none. The floors are compared at the time of the last kill in any of the records."""
    all_kills = list(records)
    if not all_kills:
        return None
    now = max(record.last for record in all_kills)
    return max(all_kills, key=lambda one: (one.floor_at(now, window_seconds), one.last, one.count, one.at, one.used))
