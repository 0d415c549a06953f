"""Reads from Prometheus when objects were there, as kube-state-metrics shows them.

A pod or a node is a series with the value 1 for as long as it exists. The server is asked for the first and the last
scrape of each series, a few hours at a time, and not for the points between them, of which a week has millions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import msgspec

from trimtab.usage.cluster_label import LABELS as CLUSTER_LABELS
from trimtab.usage.cluster_label import Matchers, Mixed, find_mixed_labels
from trimtab.usage.prometheus import Prometheus

PART_SECONDS = 6 * 3600
"""How many seconds one query covers at most."""
EXPORTED = "exported_"
"""What Prometheus writes before the name of a label that the scraped program has, and that the scrape has as well."""
LabelValues = tuple[str, ...]
"""The values of the labels that were asked for, in their order."""


@dataclass(frozen=True, slots=True)
class SeenSpan:
    """The first and the last second in which a series was scraped."""

    first: int
    last: int


class _Point(msgspec.Struct, frozen=True, array_like=True, gc=False):
    at: float
    value: float


class _Sample(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: _Point | None = None
    values: list[_Point] = []


class _Samples(msgspec.Struct, frozen=True):
    result: list[_Sample] = []


class _Answer(msgspec.Struct, frozen=True):
    data: _Samples = _Samples()


@dataclass(slots=True)
class StateHistory:
    """The time from `begin` to `end`, both included."""

    server: Prometheus
    begin: int
    end: int
    step: int
    """The seconds between two looks of the server at its own series."""
    on_query: Callable[[], None] = lambda: None
    """It is called after each query."""

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """The (first, last) second of each query."""
        starts = range(self.begin, self.end, PART_SECONDS)
        return tuple((start, min(self.end, start + PART_SECONDS)) for start in starts)

    def read_spans(self, metric: str, labels: Sequence[str], matcher: str = "") -> dict[LabelValues, SeenSpan]:
        """Returns the values of these labels → when a series with them was scraped. Raises UsageFault."""
        spans: dict[LabelValues, SeenSpan] = {}
        for begin, end in self.parts:
            times = f"timestamp({self._selector(metric, matcher)})[{end - begin}s:{self.step}s]"
            first = self._query_values(f"min_over_time({times})", "min", labels, end, metric)
            last = self._query_values(f"max_over_time({times})", "max", labels, end, metric)
            for values, second in first.items():
                earlier = spans.get(values)
                until = int(last.get(values, second))
                spans[values] = SeenSpan(
                    int(second) if earlier is None else min(earlier.first, int(second)),
                    until if earlier is None else max(earlier.last, until),
                )
        return spans

    def read_values(self, metric: str, labels: Sequence[str], matcher: str = "") -> dict[LabelValues, float]:
        """Returns the values of these labels → the last value of a series with them. Raises UsageFault."""
        latest_values: dict[LabelValues, float] = {}
        for begin, end in self.parts:
            latest = f"last_over_time({self._selector(metric, matcher)}[{end - begin}s])"
            latest_values |= self._query_values(latest, "max", labels, end, metric)
        return latest_values

    def read_changes(self, metric: str, labels: Sequence[str]) -> dict[LabelValues, list[float]]:
        """Returns the values of these labels → the different values that a series with them had, in increasing order;
        of more than two within a few hours, the smallest and the largest. Raises UsageFault."""
        values: dict[LabelValues, set[float]] = {}
        for begin, end in self.parts:
            for function in ("min", "max"):
                query = f"{function}_over_time({self._selector(metric)}[{end - begin}s])"
                for key, value in self._query_values(query, function, labels, end, metric).items():
                    values.setdefault(key, set()).add(value)
        return {key: sorted(different) for key, different in values.items()}

    def find_absent(self, metrics: Sequence[str], at: int) -> tuple[str, ...]:
        """Returns those of the metrics of which no series was there at this second. Raises UsageFault."""
        selector = self._selector("", f'__name__=~"{"|".join(metrics)}"')
        present = self._query_values(selector, "count", ("__name__",), at, "the names of metrics")
        return tuple(sorted(name for name in metrics if (name,) not in present))

    def read_runs(self, metric: str, labels: Sequence[str], matcher: str = "") -> dict[LabelValues, list[SeenSpan]]:
        """Returns the values of these labels → each time for which a series with them had a value that is not 0. For
        metrics with few such series. Raises UsageFault."""
        runs: dict[LabelValues, list[SeenSpan]] = {}
        for begin, end in self.parts:
            query = f"max by ({_grouping(labels)}) ({self._selector(metric, matcher)}) > 0"
            parameters = {"query": query, "start": str(begin), "end": str(end), "step": str(self.step)}
            body = self.server.ask("/api/v1/query_range", parameters, f"read {metric}")
            self.on_query()
            for values, sample in _read_labels(self._decode(body), labels):
                own = runs.setdefault(values, [])
                for point in sample.values:
                    at = int(point.at)
                    if own and at - own[-1].last <= self.step:
                        own[-1] = SeenSpan(own[-1].first, at)
                    else:
                        own.append(SeenSpan(at, at))
        return runs

    def find_mixed_clusters(self, metric: str) -> tuple[Mixed, ...]:
        """Returns the labels that distinguish clusters, and of which series of the metric have several values, without
        those that the matcher names. Raises UsageFault."""
        allowed = Matchers.from_text(self.server.query_plan.extra_matcher).matched_labels
        labels = [label for label in CLUSTER_LABELS if label not in allowed]
        values: Mapping[LabelValues, float] = self.read_values(metric, labels)
        return find_mixed_labels({label: {one[number] for one in values} for number, label in enumerate(labels)})

    def _selector(self, metric: str, matcher: str = "") -> str:
        return f"{metric}{{{self.server.join_matchers(matcher)}}}"

    def _query_values(
        self, query: str, function: str, labels: Sequence[str], at: int, metric: str
    ) -> dict[LabelValues, float]:
        """Returns the values of the labels → the value of an instant query, of which `function` joins those of several
        scrapers."""
        text = f"{function} by ({_grouping(labels)}) ({query})"
        body = self.server.ask("/api/v1/query", {"query": text, "time": str(at)}, f"read {metric}")
        self.on_query()
        return {
            values: sample.value.value
            for values, sample in _read_labels(self._decode(body), labels)
            if sample.value is not None and isfinite(sample.value.value)
        }

    def _decode(self, body: bytes) -> list[_Sample]:
        # Prometheus writes values as strings.
        return self.server.decode(body, _Answer, is_strict=False).data.result


def _grouping(labels: Sequence[str]) -> str:
    return ", ".join(name for label in labels for name in (label, EXPORTED + label))


def _read_labels(samples: Sequence[_Sample], labels: Sequence[str]) -> Iterator[tuple[LabelValues, _Sample]]:
    """Yields (the values of the labels, the sample). The scraped program does not export an empty label: where the
    scrape has that label as well, its own value is there in place of nothing."""
    of_scrapes = {
        (label, sample.metric[label])
        for sample in samples
        for label in labels
        if EXPORTED + label in sample.metric and label in sample.metric
    }

    def read(metric: Mapping[str, str], label: str) -> str:
        exported = metric.get(EXPORTED + label)
        own = metric.get(label, "")
        return exported or ("" if (label, own) in of_scrapes else own)

    for sample in samples:
        # Interned: the metrics of a pod repeat its names, a week has hundreds of thousands of pods.
        yield tuple([sys.intern(read(sample.metric, label)) for label in labels]), sample
