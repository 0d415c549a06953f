"""The load history from which an HPA is proposed: the request rate and the cpu usage of pods at the same times, from a
file or Prometheus."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import msgspec

from trimtab.cluster.config_error import MAX_MISTAKES, ConfigError, quote_value
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.inputs.command_faults import UsageError
from trimtab.metricsapi.hpa_proposal import LoadPoint
from trimtab.runtime import clock
from trimtab.usage.errors import GarbledSource
from trimtab.usage.http_client import HttpApi

STEP_SECONDS = 300
MAX_TIME_DIGITS = 12
"""The largest number of digits of a time in seconds since 1970, enough up to the year 33658.

The limit exists because Python refuses to convert a number with thousands of digits."""
_COLUMNS = ("time", "pod", "rate", "cores")

SeriesPoints = dict[tuple[str, str, int], float]
"""(namespace, pod, second) → value."""


def read_csv_history(file: Path) -> list[LoadPoint]:
    """Returns the points of a CSV file with a header. Raises UsageError with every mistake, and OSError if it cannot be
    read."""
    points: list[LoadPoint] = []
    mistakes: list[ConfigError] = []
    with file.open(encoding="utf-8", newline="") as text:
        rows = csv.DictReader(text)
        missing = [name for name in _COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            got = ", ".join(rows.fieldnames or ()) or "nothing"
            raise UsageError([ConfigError(file=str(file), line=1, expected=f"the columns {_COLUMNS}", got=got)])
        for row in rows:
            at, rate, cores = _read_time(row["time"]), _read_number(row["rate"]), _read_number(row["cores"])
            if at is None or rate is None or cores is None:
                expected = "a time (RFC 3339, or seconds since 1970) and two numbers that are not negative"
                got = quote_value(",".join(str(row[name]) for name in _COLUMNS))
                mistakes.append(ConfigError(file=str(file), line=rows.line_num, expected=expected, got=got))
                if len(mistakes) > MAX_MISTAKES:
                    break
            else:
                points.append(LoadPoint(at, rate, cores))
    if mistakes:
        raise UsageError(mistakes)
    return points


def _read_time(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) <= MAX_TIME_DIGITS else parse_timestamp(text)


def _read_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


class _Series(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct, frozen=True):
    result: list[_Series] = []


class _Response(msgspec.Struct, frozen=True):
    data: _Data = _Data()


def read_prometheus_history(url: str, rate_query: str, cpu_query: str, days: int) -> list[LoadPoint]:
    """Returns the points at which both queries have a value for a pod. Raises UsageFault if Prometheus cannot
    answer."""
    api, now = HttpApi(url), int(clock.utc_now().timestamp())
    rates, cores = (_read_series(api, query, now - days * 86400, now) for query in (rate_query, cpu_query))
    return [LoadPoint(key[2], rate, cores[key]) for key, rate in rates.items() if key in cores]


def _read_series(api: HttpApi, query: str, start: int, end: int) -> SeriesPoints:
    parameters = {"query": query, "start": str(start), "end": str(end), "step": str(STEP_SECONDS)}
    body = api.get("/api/v1/query_range", parameters, f"query {query[:60]}")
    try:
        series = msgspec.json.decode(body, type=_Response).data.result
    except (msgspec.DecodeError, UnicodeError) as error:
        raise GarbledSource(f"query {query[:60]}: {error}") from error
    points: SeriesPoints = {}
    for one in series:
        namespace, pod = one.metric.get("namespace", ""), one.metric.get("pod", "")
        for at, text in one.values:
            number = _read_number(text)
            if pod and number is not None:
                points[namespace, pod, int(at)] = number
    return points
