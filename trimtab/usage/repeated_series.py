"""Usage that several sources report: each time of a container's life counts once.

Two Prometheus servers that scrape the same pods, two scrapers of one server, or two files of the same days give the
same usage twice. A sample of the second series is left out if the first one covers its time, whatever the seconds at
which each of them was scraped.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from trimtab.cluster.format_count import format_count
from trimtab.usage.series import Series

MIN_GAP_SECONDS = 3600
"""A series does not cover the time between two samples that are further apart, if this is also more than three times
its mean step."""

_Key = tuple[tuple[tuple[str, str], ...], str, str, str, str]
_Span = tuple[int, int]
"""(first second, last second) that a series covers."""


@dataclass(slots=True)
class RepeatedSeries:
    """Leaves out what a source repeats of an earlier one."""

    count: int = 0
    """The number of series of which samples were left out."""
    _spans: dict[_Key, list[_Span]] = field(default_factory=dict)

    def without_repeats(self, all_series: Iterable[Series]) -> Iterator[Series]:
        """Yields the series without the samples whose time an earlier series of the same container covers. A series
        that names no pod is yielded unchanged: it may be that of other pods."""
        for series in all_series:
            if not series.pod or not series.times:
                yield series
                continue
            key = (series.origin, series.namespace, series.pod, series.container, series.resource)
            spans = self._spans.get(key)
            if spans is None:
                self._spans[key] = covered_spans(series.times)
                yield series
                continue
            self._spans[key] = [*spans, *covered_spans(series.times)]
            rest = [
                (second, value)
                for second, value in zip(series.times, series.values, strict=True)
                if not any(first <= second <= last for first, last in spans)
            ]
            self.count += len(rest) < len(series.times)
            if rest:
                yield replace(series, times=[one[0] for one in rest], values=[one[1] for one in rest])

    def notes(self) -> list[str]:
        """Returns a note about the series of which samples were left out, if there are any."""
        if not self.count:
            return []
        return [
            f"{format_count(self.count, 'series', 'series')} of containers repeat times that another series of the "
            "same container covers, so these times count once."
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
