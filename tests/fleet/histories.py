"""Histories of small fleets, in memory and in folders."""

import random
from collections.abc import Iterable
from pathlib import Path

from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.daily_rows import DailyRow, check_row, rows_of_batch
from trimtab.histogram.time_buckets import DAY
from trimtab.usage.daily_store import DailyStore

FIRST_DAY = 20_458
"""2026-01-05."""


def history_of(
    workload: str,
    days: int = 14,
    cores: float = 0.2,
    gib: float = 0.5,
    container: str = "app",
    namespace: str = "shop",
    kind: str = "Deployment",
) -> BatchHistory:
    """Usage of one container, every half hour."""
    drawn, history = random.Random(f"{workload}/{container}"), BatchHistory()
    key = ContainerKey(namespace, kind, workload, container)
    for day in range(FIRST_DAY, FIRST_DAY + days):
        times = range(day * DAY, (day + 1) * DAY, 1800)
        history.add_series(key, "cpu", times, [cores * (0.5 + drawn.random() / 2) for _ in times], pod=f"{workload}-1")
        history.add_series(key, "memory", times, [gib * 2**30 * (0.9 + drawn.random() / 10) for _ in times])
    return history


def daily_rows(workload: str, days: int = 14, **more: object) -> list[DailyRow]:
    """The rows of one container, by day."""
    history = history_of(workload, days, **more)  # type: ignore[arg-type]
    return [row for day in range(FIRST_DAY, FIRST_DAY + days) for row in rows_of_batch(history, day)]


def write_history(folder: Path, rows_by_cluster: dict[str, Iterable[DailyRow]]) -> Path:
    """The rows as a history in a folder."""
    store = DailyStore(str(folder))
    for cluster, rows in rows_by_cluster.items():
        by_day: dict[int, list[DailyRow]] = {}
        for row in rows:
            by_day.setdefault(check_row(row), []).append(row)
        for day, of_day in by_day.items():
            store.write_day(cluster, day, of_day)
    return folder
