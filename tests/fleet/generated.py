"""Histories of any size: histograms as real ones, made a hundred times as fast as from samples."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pyarrow

from tests.fleet.histories import FIRST_DAY
from trimtab.histogram.daily_rows import pack_canonical_day
from trimtab.histogram.histogram import UsageHistogram
from trimtab.histogram.time_buckets import ALL_HOURS, DAY
from trimtab.usage.daily_store import DailyStore, day_path, row_schema

_HEAD = struct.Struct("<IHHBId")
"""As `daily_window` packs a day."""
TEMPLATES = 256
POINTS = {"cpu": 288, "memory": 4}


def _templates(resource: str) -> list[tuple[int, bytes, float]]:
    """(base, counts, largest value) of days of one container; counts leave room for one more in each bucket."""
    drawn, results = random.Random(resource), []
    while len(results) < TEMPLATES:
        histogram, center = UsageHistogram(), drawn.lognormvariate(-1.5, 1.0) * (1 if resource == "cpu" else 2e9)
        spread = drawn.uniform(0.05, 0.4) if resource == "cpu" else 0.02
        for _ in range(POINTS[resource]):
            histogram.add_value(center * drawn.lognormvariate(0, spread))
        packed = pack_canonical_day(0, histogram)
        _, base, length, width, _, top = _HEAD.unpack_from(packed)
        if width == 1 and length and max(packed[_HEAD.size :]) < 255:
            results.append((base, packed[_HEAD.size :], top))
    return results


_TEMPLATES = {resource: _templates(resource) for resource in POINTS}


def write_generated(folder: Path, containers: int, days: int, clusters: int) -> Path:
    """A history of so many containers, all of one workload each, in clusters of the same size."""
    store, schema = DailyStore(str(folder)), row_schema()
    in_each = containers // clusters
    for cluster in range(clusters):
        names = [f"w{number:06}" for number in range(in_each) for _ in POINTS]
        namespaces = [f"team-{number % 40:02}" for number in range(in_each) for _ in POINTS]
        for day in range(FIRST_DAY, FIRST_DAY + days):
            drawn = random.Random(cluster * 1000 + day)
            count = len(names)
            table = pyarrow.Table.from_pydict(
                {
                    "namespace": namespaces,
                    "kind": ["Deployment"] * count,
                    "workload": names,
                    "container": ["app"] * count,
                    "resource": list(POINTS) * in_each,
                    "first": [day * DAY] * count,
                    "last": [day * DAY + DAY - 300] * count,
                    "hours": [ALL_HOURS] * count,
                    "histogram": [
                        _vary(day, _TEMPLATES[resource][(cluster * 31 + number) % TEMPLATES], drawn)
                        for number in range(in_each)
                        for resource in POINTS
                    ],
                    "pods": [None] * count,
                    "oom_at": [None] * count,
                    "oom_used": [None] * count,
                    "oom_count": [None] * count,
                    "oom_last": [None] * count,
                },
                schema=schema,
            )
            store.write_table(day_path(f"c{cluster:03}", day), table)
    return folder


def _vary(day: int, template: tuple[int, bytes, float], drawn: random.Random) -> bytes:
    """The template with a value more in half of its buckets, so that no two days are the same bytes."""
    base, cells, top = template
    more = int.from_bytes(b"\1" * len(cells), "little") & drawn.getrandbits(8 * len(cells))
    varied = (int.from_bytes(cells, "little") + more).to_bytes(len(cells), "little")
    return _HEAD.pack(day, base, len(cells), 1, 0, top) + varied
