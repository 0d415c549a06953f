"""Usage that several sources report: each time of a container's life counts once.

Two Prometheus servers that scrape the same pods, two scrapers of one server, or two files of the same days give the
same usage twice. A sample of the second series is left out if the first one covers its time, whatever the seconds at
which each of them was scraped.

Series of different containers are no repeats, even if their labels `namespace`, `pod` and `container` are equal. That
is so if Prometheus replaces these labels by those of the program that reports the series.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.usage.series import Series
from trimtab.usage.series_subject import Identity, differing_label

MIN_GAP_SECONDS = 3600
"""A series does not cover the time between two samples that are further apart, if this is also more than three times
its mean step."""

MAX_RESTART_OVERLAP_SECONDS = 600
"""The series of a container ends at most this many seconds after the next one of the restarted container began:
Prometheus returns the last value for another five minutes. If a step of the series is longer, it is two steps."""

_Key = tuple[tuple[tuple[str, str], ...], str, str, str, str]
_Span = tuple[int, int]
"""(first second, last second) that a series covers."""


@dataclass(slots=True)
class RepeatedSeries:
    """Leaves out samples whose time an earlier series of the same container covers."""

    count: int = 0
    """The number of series of which samples were left out."""
    _spans: dict[_Key, list[_Span]] = field(default_factory=dict)
    """Container → the spans that its series cover: disjoint, in ascending order."""
    _identities: dict[_Key, dict[Identity, _Span]] = field(default_factory=dict)
    """Container → the identity labels of its series → the span of the series with these labels."""
    _mixed: dict[str, str] = field(default_factory=dict)
    """Container → the label by which series of its name describe different containers."""

    def without_repeats(self, all_series: Iterable[Series]) -> Iterator[Series]:
        """Yields the series without the samples whose time an earlier series of the same container covers. A series
        that repeats no time, or that names no pod, is yielded unchanged: without a name it may be that of other
        pods. A series that describes another container than an earlier one of the same name is not yielded."""
        for series in all_series:
            if not series.pod or not series.times:
                yield series
                continue
            key = (series.origin, series.namespace, series.pod, series.container, series.resource)
            predecessors = self._other_identities(key, series) if series.identity else {}
            if mixed := next((label for label, is_restart in predecessors.items() if not is_restart), ""):
                self._mixed.setdefault(f"{series.namespace}/{series.pod}/{series.container}", mixed)
                continue
            spans = self._spans.setdefault(key, [])
            overlapping = spans[_overlap(spans, (series.times[0], series.times[-1]))]
            for span in covered_spans(series.times):
                # The span is joined with those that it overlaps: so the spans remain disjoint and in ascending order.
                overlap = _overlap(spans, span)
                joined = [span, *spans[overlap]]
                spans[overlap] = [(min(first for first, _ in joined), max(last for _, last in joined))]
            rest = _numbers_outside(overlapping, series.times)
            if len(rest) == len(series.times):
                yield series
                continue
            self.count += not predecessors
            if rest:
                times, values = series.times, series.values
                yield replace(series, times=[times[i] for i in rest], values=[values[i] for i in rest])

    def _other_identities(self, key: _Key, series: Series) -> Mapping[str, bool]:
        """Adds the identity of a series, and returns each label by which an earlier series of its time describes
        another container → whether that can be the same container before a restart."""
        first, last = int(series.times[0]), int(series.times[-1])
        identities = self._identities.setdefault(key, {})
        tolerance = max(MAX_RESTART_OVERLAP_SECONDS, 2 * (last - first) // max(1, len(series.times) - 1))
        others: dict[str, bool] = {}
        for identity, span in identities.items():
            label = differing_label(identity, series.identity)
            common = min(last, span[1]) - max(first, span[0])
            if label and common >= 0:
                # Of a restarted container, one series begins later than the other.
                others[label] = others.get(label, True) and common <= tolerance and span != (first, last)
        own = identities.get(series.identity, (first, last))
        identities[series.identity] = (min(first, own[0]), max(last, own[1]))
        return others

    def mistakes(self) -> list[ConfigError]:
        """Returns a mistake for each of the first containers of whose name there are series of other containers."""
        return [
            ConfigError(
                file="--usage",
                expected="series of one container for each namespace, pod and container",
                got=f"series named {container} with different values of the label `{label}` at the same time, so the "
                "labels name the program that reports them and not the container that they describe",
                todo="scrape with honor_labels: true, or keep the labels exported_pod or "
                "container_label_io_kubernetes_pod_name (with those of the namespace and the container)",
            )
            for container, label in islice(self._mixed.items(), 5)
        ]

    def notes(self) -> list[str]:
        """Returns a note about the series of which samples were left out, if there are any."""
        if not self.count:
            return []
        return [
            f"{format_count(self.count, 'series repeats', 'series repeat')} times that another series of the same "
            "container covers. Trimtab counts these times once."
        ]


def covered_spans(times: Sequence[int]) -> list[_Span]:
    """Returns the spans of time that samples at these times cover."""
    first, last = int(times[0]), int(times[-1])
    gap = max(MIN_GAP_SECONDS, 3 * (last - first) // max(1, len(times) - 1))
    # Without a gap of that length there is one span: most series need no look at every sample.
    if isinstance(times, range) or last - first <= gap:
        return [(first, last)]
    spans, start, previous = [], first, first
    for second in times:
        if second - previous > gap:
            spans.append((start, previous))
            start = second
        previous = second
    return [*spans, (start, last)]


def _overlap(spans: Sequence[_Span], span: _Span) -> slice:
    """Returns which of the spans, which are disjoint and in ascending order, have a second in common with this one."""
    first, last = span
    start = bisect_left(spans, first, key=lambda one: one[1])
    return slice(start, bisect_right(spans, last, lo=start, key=lambda one: one[0]))


def _numbers_outside(spans: Sequence[_Span], times: Sequence[int]) -> Sequence[int]:
    """Returns the indexes of the times that none of the spans covers."""
    if not spans:
        return range(len(times))
    ends = [last for _, last in spans]

    def is_covered(second: int) -> bool:
        number = bisect_left(ends, second)
        return number < len(ends) and spans[number][0] <= second

    return [number for number, second in enumerate(times) if not is_covered(second)]
