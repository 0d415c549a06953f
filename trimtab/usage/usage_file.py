"""Reads the usage of containers from one file of any form.

What each series is follows from the name of its metric, from a column, or from what the user says; it is never guessed
from the size of the values. Series of whole pods and of pause containers are left out, and everything that is left out
is named.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite

import msgspec

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.usage.errors import UsageFault
from trimtab.usage.file_forms import UnreadForm, UsageForm, recognize_form, unread_result
from trimtab.usage.files import Rows, csv_rows, parquet_rows
from trimtab.usage.metric_names import Quantity, is_counter_name, quantity_of_metric, quantity_of_word
from trimtab.usage.prometheus_response import ParsedSeries, SeriesLabels, iter_series, parse_exact_series
from trimtab.usage.readings import Doubt, usage_of_readings
from trimtab.usage.series import MAX_SKEW_SECONDS, Series, clean_samples, is_container_name

EXPECTED = "usage of containers"
_MAX_NAMES = 5
"""How many names of metrics a message lists at most."""


class _ExportedSeries(msgspec.Struct, frozen=True, gc=False):
    """A line of /api/v1/export of VictoriaMetrics; a missing value is null."""

    metric: SeriesLabels
    values: list[float | str | None]
    timestamps: list[int]
    """Milliseconds since 1970."""


_EXPORTED = msgspec.json.Decoder(_ExportedSeries)


@dataclass(slots=True)
class UsageFile:
    """The usage in one file. `mistakes` and `notes` are complete when all series were read."""

    file: str
    content: bytes
    stated: Quantity | None = None
    """What the user says of series whose name does not tell it."""
    now: int | None = None
    mistakes: list[ConfigError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    form: UsageForm | UnreadForm = field(init=False)
    _left_out: Counter[str] = field(default_factory=Counter)
    """What is left out → the number of series."""
    _foreign: Counter[str] = field(default_factory=Counter)
    """The name of a metric that is not the usage of containers → the number of series; empty for series without a
    name."""
    _count: int = 0

    def __post_init__(self) -> None:
        self.form = recognize_form(self.content)

    def iter_series(self) -> Iterator[Series]:
        """Yields the series of containers, in cores and bytes."""
        if isinstance(self.form, UnreadForm):
            self._add_mistake(self.form.name, self.form.todo)
            return
        if self.form in (UsageForm.TABLE, UsageForm.PARQUET):
            yield from self._series_of_rows()
            return
        try:
            for parsed in self._iter_parsed():
                series = self._read_parsed(parsed)
                if series is not None:
                    self._count += 1
                    yield series
        except (UsageFault, msgspec.DecodeError) as error:
            self._add_mistake(str(error), "", expected="a response of Prometheus")
            return
        self._report_left_out()

    def _series_of_rows(self) -> Iterator[Series]:
        read = parquet_rows if self.form is UsageForm.PARQUET else csv_rows
        rows: Rows = read(self.file, self.content, self.stated)
        self._left_out.update({f"{_UNCLEAR} {conflict}": count for conflict, count in rows.conflicts().items()})
        for series in rows.iter_series(self.now):
            if is_container_name(series.container):
                self._count += 1
                yield series
            else:
                self._left_out[_WHOLE_PODS] += 1
        self.mistakes += rows.mistakes
        self.notes += rows.dropped_notes()
        self._report_left_out()

    def _iter_parsed(self) -> Iterator[ParsedSeries]:
        if self.form is UsageForm.ANSWER:
            unread, warnings = unread_result(self.content)
            self.notes += [f"{self.file}: the server returned a warning: {warning}" for warning in warnings]
            if unread is not None:
                self._add_mistake(unread.name, unread.todo)
                return
            yield from iter_series(self.content)
        elif self.form is UsageForm.SERIES_LIST:
            yield from map(parse_exact_series, msgspec.json.decode(self.content, type=list[msgspec.Raw]))
        else:
            for line in self.content.splitlines():
                if line.strip():
                    yield _parse_exported(line) if b'"timestamps"' in line else parse_exact_series(line)

    def _read_parsed(self, parsed: ParsedSeries) -> Series | None:
        """Returns the usage of a container, or None if the series is left out."""
        labels, times, readings, dropped = parsed
        quantity = self._quantity_of(labels)
        if quantity is None:
            self._foreign[labels.metric_name] += 1
            return None
        subject = labels.subject
        if subject.conflict:
            self._left_out[f"{_UNCLEAR} {subject.conflict}"] += 1
            return None
        if not is_container_name(subject.container):
            self._left_out[_WHOLE_PODS] += 1
            return None
        if labels.cpu not in ("", "total"):
            self._left_out["of single CPUs of a machine"] += 1
            return None
        if quantity[0] is Quantity.CPU_SECONDS or not isinstance(times, range):
            dropped += sum(reading < 0 for reading in readings)
            times, readings = clean_samples(zip(times, readings, strict=True), self.now)
        elif self.now is not None and times and times[-1] > self.now + MAX_SKEW_SECONDS:
            times = times[: bisect_right(times, self.now + MAX_SKEW_SECONDS)]
            readings = readings[: len(times)]
        usage = usage_of_readings(*quantity, times, readings)
        if isinstance(usage, Doubt):
            self._add_doubt(labels, quantity[0], usage)
            return None
        return Series(
            namespace=subject.namespace,
            pod=subject.pod,
            container=subject.container,
            resource=quantity[0].resource,
            times=usage[0],
            values=usage[1],
            dropped_values=dropped,
            origin=labels.origin,
            identity=labels.identity,
        )

    def _quantity_of(self, labels: SeriesLabels) -> tuple[Quantity, float] | None:
        """Returns what the values of a series are, and their factor; None if that is not known, or if they are not the
        usage of containers."""
        by_name = quantity_of_metric(labels.metric_name) if labels.metric_name else quantity_of_word(labels.resource)
        if by_name is not None or self.stated is None:
            return by_name
        is_contradictory = is_counter_name(labels.metric_name) and self.stated is not Quantity.CPU_SECONDS
        return None if is_contradictory else (self.stated, 1.0)

    def _add_doubt(self, labels: SeriesLabels, quantity: Quantity, doubt: Doubt) -> None:
        name = labels.metric_name or "a series without the name of a metric"
        place = "/".join(part for part in labels.subject[:3] if part)
        todo = "" if labels.metric_name else f"say what it is with --quantity ({', '.join(Quantity)})"
        if len(self.mistakes) < _MAX_NAMES:
            self._add_mistake(f"{name} ({place}) that {doubt.reason}", todo, expected=f"usage in {quantity}")

    def _report_left_out(self) -> None:
        """Adds what was left out: as notes if the file has usage as well, else as mistakes."""
        nameless = self._foreign.pop("", 0)
        if nameless:
            todo = f"say what they are: --quantity {'|'.join(Quantity)}, or --quantity FILE=… for one of several files"
            self._add_mistake(
                f"{format_count(nameless, 'series', 'series')} without the name of a metric",
                todo,
                expected="the name of a metric (__name__), or --quantity",
            )
        names = [name for name, _ in self._foreign.most_common(_MAX_NAMES)]
        more = len(self._foreign) - len(names)
        foreign = ", ".join(names) + (f" and {more} more" if more else "")
        if names and self._count:
            self.notes.append(f"{self.file}: series that are not the usage of containers are left out: {foreign}.")
        elif names:
            self._add_mistake(
                foreign,
                "save container_cpu_usage_seconds_total or container_memory_working_set_bytes, "
                "or say with --quantity what a metric of your own is",
            )
        for what, count in self._left_out.items():
            text = f"{format_count(count, 'series', 'series')} {what}"
            if self._count or self.mistakes:
                self.notes.append(f"{self.file}: {text} {'is' if count == 1 else 'are'} left out.")
            else:
                self._add_mistake(text, _CLEAR_LABELS if what.startswith(_UNCLEAR) else _CONTAINER_LABEL)

    def _add_mistake(self, got: str, todo: str, expected: str = EXPECTED) -> None:
        self.mistakes.append(ConfigError(file=self.file, expected=expected, got=got, todo=todo))


_WHOLE_PODS = "of whole pods and pause containers"
_UNCLEAR = "of unclear containers"
_CONTAINER_LABEL = "keep the label container in the query: sum by (namespace, pod, container)"
_CLEAR_LABELS = (
    "scrape with honor_labels: true, or keep all the labels exported_namespace, exported_pod and exported_container in "
    "the query"
)


def _parse_exported(line: bytes) -> ParsedSeries:
    """Returns the series of one line. Raises msgspec.DecodeError."""
    exported = _EXPORTED.decode(line)
    if len(exported.values) != len(exported.timestamps):
        got = f"{format_count(len(exported.values), 'value')} and {len(exported.timestamps)} timestamps"
        raise msgspec.DecodeError(f"a series has {got}")
    points = [
        (time // 1000, value)
        for time, value in zip(
            exported.timestamps,
            (float(value) if isinstance(value, float | int) and isfinite(value) else None for value in exported.values),
            strict=True,
        )
        if value is not None
    ]
    dropped = len(exported.values) - len(points)
    return exported.metric, [time for time, _ in points], [value for _, value in points], dropped
