"""Everything that was seen, by container of a workload.

Series of single pods go in, whole or in pieces; what comes out is a window of cpu and one of memory's peaks for each
container. Days stay open until the book is asked: whoever reads two weeks of history brings every day many times.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.histogram.daily_window import DAYS, DailyHistograms
from trimtab.histogram.histogram import UsageHistogram, high, spread
from trimtab.histogram.oom_kills import OomKill, OomRecord, joined, with_kill
from trimtab.histogram.pod_averages import PodAverageIndex
from trimtab.histogram.time_buckets import DAY, INTERVAL, Hours, cut, during, join, of_series
from trimtab.histogram.time_buckets import of as hours_of

SURE = 3600
"""A series that begins less than so many seconds after the first moment that was asked for may be older."""
MINUTE = 60
"""How often whoever counts and tells no moments is taken to look: so the VPA takes it, too, for its confidence."""
RESOURCES = ("cpu", "memory")
MOST = {"cpu": 4096.0, "memory": float(64 << 40)}
"""Cores and bytes that no machine has. What is above was counted wrong, and is left out: what is told apart in a sketch
ends at 1/16384 of its greatest value, so one such value would raise all the others."""


@dataclass(frozen=True, slots=True, order=True)
class ContainerKey:
    """A container of a workload: what a recommendation is about."""

    namespace: str
    kind: str
    """Of the topmost owner; `Pod` for a pod that nobody made."""
    workload: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.workload}/{self.name}"


@dataclass(slots=True)
class _Open:
    """A window whose days are all dense."""

    days: dict[int, UsageHistogram] = field(default_factory=dict)
    hours: dict[int, int] = field(default_factory=dict)
    first: int = 0
    last: int = 0

    def day(self, number: int) -> UsageHistogram:
        found = self.days.get(number)
        if found is None:
            found = self.days[number] = UsageHistogram()
        return found

    def span(self, first: int, last: int, hours: Hours) -> None:
        self.first = min(self.first or first, first)
        self.last = max(self.last, last)
        join(self.hours, hours)


@dataclass(slots=True)
class BatchHistory:
    """Cores and bytes; times are seconds since 1970 and ascend within a series."""

    days: int = DAYS
    start_up: int = 0
    """Seconds of a pod's beginning whose cpu is kept apart; memory that is taken at the start stays taken."""
    starts: dict[ContainerKey, float] = field(default_factory=dict)
    """The most cpu that a start took, where starts are kept apart."""
    pages: dict[tuple[ContainerKey, str], _Open] = field(default_factory=dict)
    advice: dict[tuple[ContainerKey, str], VpaRecommendation] = field(default_factory=dict)
    """What VPAs say of containers: no usage, and kept apart from it."""
    oom_records: dict[ContainerKey, OomRecord] = field(default_factory=dict)
    """Containers that were killed for want of memory."""
    pods: PodAverageIndex[tuple[ContainerKey, str]] = field(default_factory=PodAverageIndex)
    """The average use of each pod, of workloads with several."""
    left_out: int = 0
    """Values that are no number, below zero or more than any machine has."""

    def take(
        self,
        container: ContainerKey,
        resource: str,
        times: Sequence[int],
        values: Sequence[float],
        asked: int | None = None,
        pod: str = "",
    ) -> None:
        """A pod's series, or a piece of it. Pieces of memory should end where an interval of peaks does. `asked`: from
        when on the source was asked; None where that is not known, and a start cannot be told."""
        if self.start_up and resource == "cpu" and asked is not None:
            until = started(times, asked, self.start_up)
            self.starts[container] = max([self.starts.get(container, 0.0), *values[:until]])
            times, values = times[until:], values[until:]
        if times:
            self.pods.extend((container, resource), pod, *possible(resource, times, values))
            (self._peaks if resource == "memory" else self._cores)(container, times, values)

    def _peaks(self, container: ContainerKey, times: Sequence[int], values: Sequence[float]) -> None:
        found = of_series(times, values)
        if max(found.values()) > MOST["memory"]:
            times, values = self._possible("memory", times, values)
            found = of_series(times, values)
        page, days = self._page(container, "memory", times), dict[int, list[float]]()
        for number, peak in found.items():
            days.setdefault(number * INTERVAL // DAY, []).append(peak)
        for day, peaks in days.items():
            page.day(day).extend(peaks)

    def _cores(self, container: ContainerKey, times: Sequence[int], values: Sequence[float]) -> None:
        """All buckets are found at once, then each day counts its own."""
        found = spread(values)
        if found is None or high(found[0] + 255) > MOST["cpu"]:  # nearly never: so nobody looks for the greatest
            times, values = self._possible("cpu", times, values)
            found = spread(values)
        page = self._page(container, "cpu", times)
        for day, start, end in cut(times, DAY):
            part, counts = values[start:end], page.day(day)
            if found is None:
                counts.extend(part)
            else:
                counts.tally(found[0], found[1][start:end], part)

    def _possible(
        self, resource: str, times: Sequence[int], values: Sequence[float]
    ) -> tuple[Sequence[int], Sequence[float]]:
        found = possible(resource, times, values)
        self.left_out += len(values) - len(found[1])
        return found

    def _page(self, container: ContainerKey, resource: str, times: Sequence[int]) -> _Open:
        """Seen at these moments; an empty one, that is kept nowhere, where there are none."""
        if not times:
            return _Open()
        page = self.pages.setdefault((container, resource), _Open())
        page.span(int(times[0]), int(times[-1]), hours_of(times))
        return page

    def peak(self, container: ContainerKey, first: int, last: int, value: float, looked: int) -> None:
        """The most that a pod held in one interval of peaks, seen in these hours of its day."""
        page, day = self.pages.setdefault((container, "memory"), _Open()), first // DAY
        page.day(day).add(value)
        page.span(first, last, {day: looked})

    def pour(self, container: ContainerKey, resource: str, found: Mapping[int, int], first: int, last: int) -> None:
        """Values that are counted already (see `buckets`), of which only the ends are known: they count for the last
        day, and for as much time as so many of one pod take, a minute each, up to the last."""
        counts = UsageHistogram()
        counts.take(found, high(max(found)) if found else 0.0)
        page = self.pages.setdefault((container, resource), _Open())
        page.days.setdefault(last // DAY, UsageHistogram()).merge(counts)
        seen = min(last - first, MINUTE * counts.total, self.days * DAY)
        page.span(first, last, during(last - seen, last))

    def kill(self, container: ContainerKey, kill: OomKill) -> None:
        """A kill for want of memory; whoever calls counts none twice."""
        known = self.oom_records.get(container)
        self.oom_records[container] = with_kill(known, kill, self.days * DAY)

    def hold_oom_record(self, container: ContainerKey, record: OomRecord) -> None:
        """Kills that somebody else counted, maybe the same."""
        known = self.oom_records.get(container)
        self.oom_records[container] = record if known is None else joined(known, record, self.days * DAY)

    def hold(self, container: ContainerKey, resource: str, window: DailyHistograms) -> None:
        """All that a window holds, beside what is here."""
        if window.last:
            page = self.pages.setdefault((container, resource), _Open())
            for day, counts in window.by_day().items():
                page.days.setdefault(day, UsageHistogram()).merge(counts)
            page.span(window.first, window.last, window.looked())

    def containers(self) -> list[ContainerKey]:
        """In order of name."""
        return sorted({container for container, _ in (*self.pages, *self.advice)})

    def window(self, container: ContainerKey, resource: str) -> DailyHistograms:
        """What was seen; an empty window where nothing was."""
        page = self.pages.get((container, resource))
        if page is None:
            return DailyHistograms(self.days)
        return DailyHistograms.of(page.days, page.hours, page.first, page.last, self.days)


def possible(resource: str, times: Sequence[int], values: Sequence[float]) -> tuple[Sequence[int], Sequence[float]]:
    """Without what no machine has, or what is below zero; nearly always, all there is."""
    most = MOST[resource]
    if max(values, default=0.0) <= most and min(values, default=0.0) >= 0:
        return times, values
    kept = [n for n, value in enumerate(values) if 0 <= value <= most]
    return [times[n] for n in kept], [values[n] for n in kept]


def started(times: Sequence[int], asked: int, seconds: int) -> int:
    """How many of a series' first moments belong to its pod's start. A series that is there from the first moment on
    began before."""
    if not times or times[0] <= asked + SURE:
        return 0
    return bisect_left(times, times[0] + seconds)
