"""Reads whole usage series from files, for verbs that need every sample in order instead of percentiles."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from trimtab.cli import live_cluster
from trimtab.cli.main import UsageError
from trimtab.cli.recommend.sources import USAGE_FILE_ENDINGS
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_documents import unpack_gzip
from trimtab.usage.errors import UsageFault
from trimtab.usage.files import csv_rows, parquet_rows
from trimtab.usage.prometheus_response import parse_series
from trimtab.usage.series import Series

_MAX_CORES = 100_000
"""Distinguishes cpu from memory in a saved response of Prometheus: a series with only smaller values is in cores, any
other is in bytes."""


def read_usage_series(paths: Iterable[str], now: int | None = None) -> tuple[list[Series], list[str]]:
    """Returns every series of all files, and notes about rows that are left out.

    Files are CSV, Parquet, or saved answers of Prometheus, gzip or not. Raises UsageError with all mistakes.
    """
    series, mistakes, notes = list[Series](), list[ConfigError](), list[str]()
    for file, packed in live_cluster.read_paths(paths, USAGE_FILE_ENDINGS):
        try:
            content = unpack_gzip(packed)
        except (OSError, EOFError, zlib.error) as error:
            mistakes.append(ConfigError(file=file, expected="a complete gzip file", got=str(error)))
            continue
        if content[:1] == b"{":
            try:
                series += _series_of_prometheus(content, now)
            except UsageFault as error:
                mistakes.append(ConfigError(file=file, expected="an answer of Prometheus", got=str(error)))
            continue
        rows = (parquet_rows if content[:4] == b"PAR1" else csv_rows)(file.removesuffix(".gz"), content)
        mistakes += rows.mistakes
        notes += rows.dropped_notes()
        series += rows.iter_series(now)
    if mistakes:
        raise UsageError(mistakes)
    return series, notes


def _series_of_prometheus(content: bytes, now: int | None) -> Iterator[Series]:
    for one in parse_series(content, "", now):
        resource = "cpu" if max(one.values, default=0.0) < _MAX_CORES else "memory"
        yield replace(one, resource=resource, times=list(map(int, one.times)))
