"""Usage from files: CSV with column names, a single series of two columns, Parquet.

    timestamp,namespace,pod,container,cpu,memory          any order; `workload` (Kind/name) replaces the pod's
    2026-01-05T00:00:00Z,shop,web-7d4…-x2x4k,app,250m,128Mi
    timestamp,value                                       one container

What a `value` is must be said: by a column `resource` or `metric`, by the unit of the amount (250m, 128Mi), or by the
user. Times are RFC 3339, or seconds or milliseconds since 1970; eight digits that form a date (20260105) are that date.
Amounts are quantities. Columns that distinguish clusters (`cluster`, `prometheus`, `tenant`, …) separate their series.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from typing import Any

from trimtab.cluster import quantity
from trimtab.cluster.config_error import ConfigError, quote_value, suggest_name
from trimtab.usage.cluster_label import LABELS, Origin
from trimtab.usage.metric_names import Quantity, is_counter_name, quantity_of_word
from trimtab.usage.readings import Doubt, usage_of_readings
from trimtab.usage.series import Series, clean_samples
from trimtab.usage.series_subject import IDENTITY_LABELS, SUBJECT_LABELS, Identity, identity_of, subject_of

_MIN_MILLISECONDS = 100_000_000_000
_LATEST = 4_102_444_800
"""The seconds from 1970 to 2100. A larger number is not a time in seconds."""
_DATE = re.compile(r"(19[789]|20\d)\d(0[1-9]|1[0-2])([0-2]\d|3[01])")
"""Matches a date without dashes, such as 20260105. Read as seconds, these numbers would all be in August 1970."""
AMOUNTS = ("cpu", "memory", "cpu_seconds_total", "value")
NAMES = ("namespace", "pod", "container", "workload", "resource", "metric")
_COLUMN_ALIASES = {
    "time": "timestamp",
    "ts": "timestamp",
    "date": "timestamp",
    "cores": "cpu",
    "bytes": "memory",
    "ns": "namespace",
    "__name__": "metric",
    "metric_name": "metric",
}
_BINARY_UNIT = re.compile(r"[\d.]+[KMGTPE]i?")
_CORE_UNIT = re.compile(r"[\d.]+[num]")
_Key = tuple[str, str, str, str, str, Origin, Identity]
"""(namespace, pod, container, workload, resource, labels that distinguish clusters, labels that differ between
containers)."""
_PARQUET_ROWS = 10_000
"""The number of rows of a Parquet file that are in memory as objects at the same time."""
_MAX_ERRORS = 10
"""How many mistakes of one file are reported at most."""


class Rows:
    """The rows of one file, grouped by series."""

    def __init__(self, file: str, stated: Quantity | None = None) -> None:
        self.file = file
        self.stated = stated
        """What a `value` is if nothing in its row says it."""
        self.samples: dict[_Key, list[tuple[int, float]]] = {}
        self.mistakes: list[ConfigError] = []
        self.has_origins = False
        """Whether there are columns that distinguish clusters."""
        self.has_containers = False
        """Whether there is a column for containers. Where it is empty, the row is about a whole pod."""
        self.has_subjects = False
        """Whether there are other columns that name or identify containers."""
        self._conflicts: dict[str, set[tuple[str, ...]]] = {}
        """Why the columns of a row do not name one container → the names in such rows."""
        self._dropped: dict[str, tuple[int, int]] = {}
        """What was dropped → how often, and the first line."""

    def set_columns(self, names: Collection[str]) -> None:
        """Records which columns there are."""
        self.has_origins = not set(LABELS).isdisjoint(names)
        self.has_containers = not {"container", *SUBJECT_LABELS}.isdisjoint(names)
        self.has_subjects = not {*SUBJECT_LABELS, *IDENTITY_LABELS}.isdisjoint(names)

    def add_row(self, line: int, row: Mapping[str, Any]) -> None:
        """Adds one row, or records a mistake if the row is not valid."""
        second = parse_moment(row.get("timestamp"))
        if second is None:
            self._add_error(line, "timestamp", "a time such as 2026-01-02T15:04:05Z", row.get("timestamp"))
            return
        has_amount = False
        names = [str(row.get(name) or "") for name in ("namespace", "pod", "container", "workload")]
        identity: Identity = ()
        if self.has_subjects:
            read = partial(_read_cell, row)
            subject, identity = subject_of(read), identity_of(read)
            if subject.conflict:
                others = [read(label) for label in SUBJECT_LABELS]
                self._conflicts.setdefault(subject.conflict, set()).add((*names, *others))
                return
            names[:3] = subject[:3]
        origin = tuple((label, str(row[label])) for label in LABELS if row.get(label)) if self.has_origins else ()
        for amount in AMOUNTS:
            cell = row.get(amount)
            if cell is None or cell == "":
                continue
            has_amount, value = True, parse_amount(cell)
            if value is None:
                self._add_error(line, amount, "a quantity such as 250m, 0.25 or 128Mi", cell)
                continue
            if not (isfinite(value) and value >= 0):
                self._drop("amount{s} below zero or not a number", line)
                continue
            word = self._quantity_word(line, row, cell) if amount == "value" else amount
            if word:
                key = (names[0], names[1], names[2], names[3], word, origin, identity)
                self.samples.setdefault(key, []).append((second, value))
        if not has_amount:
            self._drop("row{s} without an amount", line)

    def _quantity_word(self, line: int, row: Mapping[str, Any], cell: object) -> str:
        """Returns the word that says what the value of a row is; empty if nothing says it, which is a mistake, or if it
        is not the usage of containers."""
        word = str(row.get("metric") or row.get("resource") or "")
        if word and quantity_of_word(word) is not None:
            return word
        if word and (self.stated is None or (is_counter_name(word) and self.stated is not Quantity.CPU_SECONDS)):
            self._drop(f"value{{s}} of {quote_value(word)}, which is not the usage of containers,", line)
            return ""
        if self.stated is not None:
            return _WORDS_OF_STATED[self.stated]
        text = str(cell).strip()
        if _BINARY_UNIT.fullmatch(text):
            return "memory"
        if _CORE_UNIT.fullmatch(text):
            return "cpu"
        if not any(mistake.field == "value" for mistake in self.mistakes):
            todo = f"say it with a column cpu, memory or resource, or with --quantity {'|'.join(Quantity)}"
            self._add_error(line, "value", "a statement of what the values are", cell, todo)
        return ""

    def _drop(self, what: str, line: int) -> None:
        count, first = self._dropped.get(what, (0, line))
        self._dropped[what] = (count + 1, first)

    def dropped_notes(self) -> list[str]:
        """Returns a sentence about each kind of values that was dropped."""
        dropped = [
            (count, what.format(s="s" if count > 1 else ""), line) for what, (count, line) in self._dropped.items()
        ]
        return [
            f"{self.file}: {count} {what} could not be used (the first in line {line})."
            for count, what, line in dropped
        ]

    def conflicts(self) -> dict[str, int]:
        """Returns why the columns of some rows do not name one container → the number of series that these rows
        are."""
        return {conflict: len(names) for conflict, names in self._conflicts.items()}

    def report_long_row(self, line: int, expected: int, got: int) -> None:
        """Records a mistake for a row with more cells than columns. Its decimals most likely have commas, so its cells
        cannot be distinguished."""
        self._add_error(line, "", f"{expected} cells", f"{got}")

    def _add_error(self, line: int, field: str, expected: str, got: object, todo: str = "") -> None:
        if len(self.mistakes) < _MAX_ERRORS:
            self.mistakes.append(
                ConfigError(file=self.file, line=line, field=field, expected=expected, got=quote_value(got), todo=todo)
            )

    def iter_series(self, now: int | None = None) -> Iterator[Series]:
        """Yields the series of all rows, cleaned. For a counter, the series is its rate. A series whose values cannot
        be what they are said to be is a mistake."""
        for (namespace, pod, container, workload, word, origin, identity), samples in self.samples.items():
            quantity = quantity_of_word(word)
            assert quantity is not None
            usage = usage_of_readings(*quantity, *clean_samples(samples, now))
            if isinstance(usage, Doubt):
                place = "/".join(name for name in (namespace, workload or pod, container) if name)
                got = f"{place or 'a series'} that {usage.reason}"
                if len(self.mistakes) < _MAX_ERRORS:
                    self.mistakes.append(ConfigError(file=self.file, expected=f"usage in {quantity[0]}", got=got))
                continue
            # The workload for a series. A series without a pod's name gets a workload of its own; otherwise the
            # result is an empty string.
            yield Series(
                namespace=namespace or "default",
                pod=pod,
                container=container or ("" if self.has_containers and (pod or workload) else "app"),
                workload=workload or ("" if pod else "Series/usage"),
                resource=quantity[0].resource,
                times=usage[0],
                values=usage[1],
                origin=origin,
                identity=identity,
            )


_WORDS_OF_STATED = {Quantity.CORES: "cpu", Quantity.CPU_SECONDS: "cpu_seconds_total", Quantity.BYTES: "memory"}


def parse_moment(cell: object) -> int | None:
    """Returns the time in seconds since 1970, or None if the cell is not a time. A time without a zone is UTC, and a
    date means its first second."""
    text = str(cell or "").strip()
    try:
        value = float(text)
    except ValueError:
        return _parse_time(text)
    if _DATE.fullmatch(text):
        return _parse_time(text)
    # A number this large is later than the year 5000 as seconds, so it is milliseconds.
    seconds = value / 1000 if value > _MIN_MILLISECONDS else value
    return int(seconds) if 0 < seconds < _LATEST else None


def _parse_time(text: str) -> int | None:
    try:
        parsed_time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((parsed_time if parsed_time.tzinfo else parsed_time.replace(tzinfo=UTC)).timestamp())


def parse_amount(cell: object) -> float | None:
    """Returns the amount in cores or bytes, or None if the cell is not a quantity."""
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    try:
        return quantity.parse(str(cell)) / quantity.NANO_PER_UNIT
    except quantity.NotAQuantity:
        return None


def _read_cell(row: Mapping[str, Any], column: str) -> str:
    return str(row.get(column) or "")


def csv_rows(file: str, content: bytes, stated: Quantity | None = None) -> Rows:
    """Returns the rows of a CSV file that has a header, or has two columns without one. `stated`: what values are if
    the file does not say it."""
    rows = Rows(file, stated)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        rows.mistakes.append(ConfigError(file=file, expected="UTF-8 text", got="other bytes"))
        return rows
    first = text.partition("\n")[0].strip()
    delimiter = _find_delimiter(first)
    lines, cells = csv.reader(io.StringIO(text), delimiter=delimiter), first.split(delimiter)
    header, start = (["timestamp", "value"], 1) if parse_moment(cells[0]) is not None else ([], 2)
    if header and len(cells) > len(header):
        expected = "column names in the first line, because there are more than two columns"
        rows.mistakes.append(ConfigError(file=file, line=1, expected=expected, got=quote_value(first)))
        return rows
    try:
        _read_lines(rows, header or [_column_name(cell) for cell in next(lines, [])], lines, start)
    except csv.Error as error:
        rows.mistakes.append(ConfigError(file=file, line=lines.line_num, expected="CSV", got=str(error)))
    return rows


def _find_delimiter(first: str) -> str:
    """Returns the delimiter of a CSV file, judged by its first line. It is a semicolon if decimals may have commas,
    even if the first line is a row such as 2026-01-05;0,25."""
    first_cell, semicolon, _ = first.partition(";")
    return ";" if semicolon and ("," not in first or parse_moment(first_cell) is not None) else ","


def _read_lines(rows: Rows, header: list[str], lines: Iterable[list[str]], start: int) -> None:
    """Reads every row below the header; if the header is wrong, none. Raises csv.Error."""
    header_error = _check_header(rows.file, header)
    if header_error:
        rows.mistakes.append(header_error)
        return
    rows.set_columns(header)
    for line, cells in enumerate(lines, start=start):
        if any(cells[len(header) :]):
            rows.report_long_row(line, len(header), len(cells))
        elif cells:
            rows.add_row(line, dict(zip(header, cells, strict=False)))


def _column_name(cell: str) -> str:
    name = cell.strip().lower()
    return _COLUMN_ALIASES.get(name, name)


def _check_header(file: str, header: list[str]) -> ConfigError | None:
    columns = ("timestamp", *NAMES, *AMOUNTS, *LABELS)
    unknown = [name for name in header if name not in columns]
    # A column that Trimtab does not know may distinguish series whose rows have no other name.
    is_mixed = (
        not {*SUBJECT_LABELS}.issuperset(unknown)
        and "value" in header
        and {"pod", "workload", "container", *SUBJECT_LABELS}.isdisjoint(header)
    )
    if "timestamp" in header and any(name in AMOUNTS for name in header) and not is_mixed:
        return None
    suggestion = next((name for name in map(_suggest_column, unknown) if name), "")
    todo = f"the possible columns are {', '.join(columns[: -len(LABELS)])}" + (f"; {suggestion}" if suggestion else "")
    expected = "columns timestamp and cpu, memory or value"
    return ConfigError(file=file, line=1, expected=expected, got=quote_value(",".join(header)), todo=todo)


def _suggest_column(unknown: str) -> str:
    """Returns the name of the column that an unknown name most resembles, or that it begins or ends with
    (`cpu_usage`)."""
    words = set(re.split(r"\W|_", unknown))
    part = next((name for name in (*AMOUNTS, *NAMES) if name in words), "")
    return f"did you mean {part!r} by {unknown!r}?" if part else suggest_name(unknown, ("timestamp", *NAMES, *AMOUNTS))


def parquet_rows(file: str, content: bytes, stated: Quantity | None = None) -> Rows:
    """Returns the rows of a Parquet file with the same columns as a CSV file. If the library that reads Parquet is not
    installed, the result contains a mistake that says so."""
    rows = Rows(file, stated)
    try:
        from pyarrow import ArrowException
        from pyarrow import parquet as reader
    except ImportError:
        todo = "pip install '.[parquet]' in a clone of Trimtab, or samples as CSV"
        rows.mistakes.append(
            ConfigError(file=file, expected="no package pyarrow, which reads Parquet", got="none", todo=todo)
        )
        return rows
    try:
        table = reader.ParquetFile(io.BytesIO(content))
        columns = [_column_name(name) for name in table.schema_arrow.names]
        header_error = _check_header(file, columns)
        if header_error:
            rows.mistakes.append(header_error)
            return rows
        rows.set_columns(columns)
        records = (row for batch in table.iter_batches(_PARQUET_ROWS) for row in batch.to_pylist())
        for line, row in enumerate(records, start=1):
            rows.add_row(line, {_column_name(name): value for name, value in row.items()})
    except ArrowException as error:
        rows.mistakes.append(ConfigError(file=file, expected="Parquet", got=str(error)))
    return rows
