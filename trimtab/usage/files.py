"""Usage written to files: CSV with names, a bare series of two columns, a saved answer of Prometheus, Parquet.

    timestamp,namespace,pod,container,cpu,memory          any order; `workload` (Kind/name) spares the pod's
    2026-01-05T00:00:00Z,shop,web-7d4…-x2x4k,app,250m,128Mi
    timestamp,value                                       one container; below 100 000 they are cores, else bytes

Times are RFC 3339, or seconds or milliseconds since 1970; eight digits that are a date (20260105) are that date.
Amounts are quantities. Columns that tell clusters apart (`cluster`, `prometheus`, `tenant`, …) keep their series apart.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from trimtab.cluster import quantity
from trimtab.cluster.config_error import ConfigError, nearest, shown
from trimtab.usage.cluster_label import LABELS, Origin
from trimtab.usage.series import Series, clean, rate

_MILLISECONDS = 100_000_000_000
_LATEST = 4_102_444_800
"""The year 2100: what is later is no second, but some other number."""
_DATE = re.compile(r"(19[789]|20\d)\d(0[1-9]|1[0-2])([0-2]\d|3[01])")
"""A date without its dashes. As seconds all of them lie in August 1970."""
MOST_CORES = 100_000
AMOUNTS = ("cpu", "memory", "cpu_seconds_total", "value")
NAMES = ("namespace", "pod", "container", "workload", "resource")
_ALSO = {
    "time": "timestamp",
    "ts": "timestamp",
    "date": "timestamp",
    "cores": "cpu",
    "bytes": "memory",
    "ns": "namespace",
}
_Key = tuple[str, str, str, str, str, Origin]
"""namespace, pod, container, workload, amount, and the labels that tell clusters apart."""
_ROWS = 10_000
"""Of a Parquet file that are held as objects at once."""
_PROBLEMS = 10
"""Mistakes of one file that are told."""


class Rows:
    """One file's rows, gathered by series."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: dict[_Key, list[tuple[int, float]]] = {}
        self.mistakes: list[ConfigError] = []
        self.has_origins = False
        """Are there columns that tell clusters apart?"""
        self._left: dict[str, tuple[int, int]] = {}
        """What was left out → how often, and the first line."""

    def row(self, line: int, row: Mapping[str, Any]) -> None:
        at = moment(row.get("timestamp"))
        if at is None:
            self._wrong(line, "timestamp", "a time such as 2026-01-02T15:04:05Z", row.get("timestamp"))
            return
        told = False
        names = [str(row.get(name) or "") for name in ("namespace", "pod", "container", "workload")]
        origin = tuple((label, str(row[label])) for label in LABELS if row.get(label)) if self.has_origins else ()
        for amount in AMOUNTS:
            written = row.get(amount)
            if written is None or written == "":
                continue
            told, value = True, number(written)
            if value is None:
                self._wrong(line, amount, "a quantity such as 250m, 0.25 or 128Mi", written)
                continue
            if not (isfinite(value) and value >= 0):
                self._leave("amount{s} below zero, or no number", line)
                continue
            kind = str(row.get("resource") or amount) if amount == "value" else amount
            self.found.setdefault((names[0], names[1], names[2], names[3], kind, origin), []).append((at, value))
        if not told:
            self._leave("row{s} without an amount", line)

    def _leave(self, what: str, line: int) -> None:
        count, first = self._left.get(what, (0, line))
        self._left[what] = (count + 1, first)

    def notes(self) -> list[str]:
        """What was left out."""
        found = [(count, what.format(s="s" if count > 1 else ""), line) for what, (count, line) in self._left.items()]
        return [f"{self.file}: {count} {what}, the first in line {line}: left out." for count, what, line in found]

    def long(self, line: int, expected: int, got: int) -> None:
        """More cells than columns: half of a decimal comma, most likely, and nobody knows where."""
        self._wrong(line, "", f"{expected} cells", f"{got}")

    def _wrong(self, line: int, field: str, expected: str, got: object) -> None:
        if len(self.mistakes) < _PROBLEMS:
            self.mistakes.append(ConfigError(file=self.file, line=line, field=field, expected=expected, got=shown(got)))

    def series(self, now: int | None = None) -> Iterator[Series]:
        for (namespace, pod, container, workload, amount, origin), samples in self.found.items():
            times, values = clean(samples, now)
            if amount == "cpu_seconds_total":
                times, values = rate(times, values)
            yield Series(
                namespace=namespace or "default", pod=pod, container=container or "app",
                workload=workload or _bare(pod),
                resource=_resource(amount, values), times=times, values=values, origin=origin,
            )  # fmt: skip


def _bare(pod: str) -> str:
    """A series that names nothing is a workload of its own."""
    return "" if pod else "Series/usage"


def _resource(amount: str, values: Iterable[float]) -> str:
    if amount == "value":
        return "cpu" if max(values, default=0) < MOST_CORES else "memory"
    return "memory" if amount == "memory" else "cpu"


def moment(written: object) -> int | None:
    """Seconds since 1970; None where it is no time. Without a zone it is UTC, a date is its first second."""
    text = str(written or "").strip()
    try:
        value = float(text)
    except ValueError:
        return _stated(text)
    if _DATE.fullmatch(text):
        return _stated(text)
    seconds = value / 1000 if value > _MILLISECONDS else value
    return int(seconds) if 0 < seconds < _LATEST else None


def _stated(text: str) -> int | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def number(written: object) -> float | None:
    """Units; None where it is no quantity."""
    try:
        return float(written)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    try:
        return quantity.parse(str(written)) / quantity.NANO
    except quantity.NotAQuantity:
        return None


def csv_rows(file: str, content: bytes) -> Rows:
    """A CSV, with a header or of two columns."""
    found = Rows(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        found.mistakes.append(ConfigError(file=file, expected="UTF-8 text", got="other bytes"))
        return found
    first = text.partition("\n")[0].strip()
    delimiter = _delimiter(first)
    lines, cells = csv.reader(io.StringIO(text), delimiter=delimiter), first.split(delimiter)
    header, start = (["timestamp", "value"], 1) if moment(cells[0]) is not None else ([], 2)
    if header and len(cells) > len(header):
        expected = "the columns' names in the first line, since there are more than two"
        found.mistakes.append(ConfigError(file=file, line=1, expected=expected, got=shown(first)))
        return found
    try:
        _take(found, header or [_name(cell) for cell in next(lines, [])], lines, start)
    except csv.Error as error:
        found.mistakes.append(ConfigError(file=file, line=lines.line_num, expected="CSV", got=str(error)))
    return found


def _delimiter(first: str) -> str:
    """A semicolon where the decimals may have commas, also in a first line that is a row: 2026-01-05;0,25."""
    begin, semicolon, _ = first.partition(";")
    return ";" if semicolon and ("," not in first or moment(begin) is not None) else ","


def _take(found: Rows, header: list[str], lines: Iterable[list[str]], start: int) -> None:
    """Every row below the header; none where that is wrong. Raises csv.Error."""
    wrong = _header(found.file, header)
    if wrong:
        found.mistakes.append(wrong)
        return
    found.has_origins = not set(LABELS).isdisjoint(header)
    for line, cells in enumerate(lines, start=start):
        if any(cells[len(header) :]):
            found.long(line, len(header), len(cells))
        elif cells:
            found.row(line, dict(zip(header, cells, strict=False)))


def _name(cell: str) -> str:
    name = cell.strip().lower()
    return _ALSO.get(name, name)


def _header(file: str, header: list[str]) -> ConfigError | None:
    if "timestamp" in header and any(name in AMOUNTS for name in header):
        return None
    known = ("timestamp", *NAMES, *AMOUNTS, *LABELS)
    unknown = [name for name in header if name not in known]
    meant = next((name for name in map(_meant, unknown) if name), "")
    todo = f"columns are {', '.join(known[: -len(LABELS)])}" + (f"; {meant}" if meant else "")
    expected = "columns timestamp and cpu, memory or value"
    return ConfigError(file=file, line=1, expected=expected, got=shown(",".join(header)), todo=todo)


def _meant(unknown: str) -> str:
    """Which column a name is nearly; also one that begins or ends as it does (`cpu_usage`)."""
    words = set(re.split(r"\W|_", unknown))
    part = next((name for name in (*AMOUNTS, *NAMES) if name in words), "")
    return f"did you mean {part!r} by {unknown!r}?" if part else nearest(unknown, ("timestamp", *NAMES, *AMOUNTS))


def parquet_rows(file: str, content: bytes) -> Rows:
    """The same columns in Parquet; a Mistake where the library that reads it is not installed."""
    found = Rows(file)
    try:
        from pyarrow import ArrowException
        from pyarrow import parquet as reader
    except ImportError:
        todo = "pip install 'trimtab[parquet]', or give the samples as CSV"
        found.mistakes.append(ConfigError(file=file, expected="pyarrow, which reads Parquet", got="none", todo=todo))
        return found
    try:
        table = reader.ParquetFile(io.BytesIO(content))
        wrong = _header(file, [_name(name) for name in table.schema_arrow.names])
        if wrong:
            found.mistakes.append(wrong)
            return found
        found.has_origins = not set(LABELS).isdisjoint(map(_name, table.schema_arrow.names))
        rows = (row for part in table.iter_batches(_ROWS) for row in part.to_pylist())
        for line, row in enumerate(rows, start=1):
            found.row(line, {_name(name): value for name, value in row.items()})
    except ArrowException as error:
        found.mistakes.append(ConfigError(file=file, expected="Parquet", got=str(error)))
    return found
