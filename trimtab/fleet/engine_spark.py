"""Apache Spark as an engine: it moves blocks, and repeats work that was lost; the job does everything else.

There are two stages: `mapInArrow` splits sources into blocks, a repartition by bucket brings them together, and
`mapInArrow` merges them. Spark sees three columns, (bucket, number, block), and needs no connector for the object
store, because jobs read it themselves. Only the DataFrame API is used, so that a Spark Connect server (`sc://…`) can be
used as well as a cluster.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from trimtab.fleet.engine import BucketJob, ItemJob
from trimtab.usage.daily_store import INSTALL_HINT, import_arrow
from trimtab.usage.errors import UnreachableSource, UsageFault

_SCHEMA = "bucket int, number int, block binary"
ROWS_PER_BATCH = 16
"""The number of blocks that are passed between the JVM and Python at once; each has some ten or hundred kilobytes."""
MIN_PARTITIONS, ITEMS_PER_PARTITION = 8, 8
"""The minimum number of partitions, and the number of items per partition. Slower machines can then take fewer
partitions, and starting partitions costs little."""
CONFIGURATION = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_BATCH),
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A block is compressed already.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.python.worker.reuse": "true",
}
"""The configuration of a new Spark session. A session that is already running keeps its own."""


def local_configuration(master: str) -> dict[str, str]:
    """Returns the further configuration of a session on this machine (`local…`); empty for a cluster, whose machines
    must reach the driver.

    The driver listens only on loopback, and its connections authenticate with a secret that lives as long as the
    session: otherwise other machines, and other users of this one, could reach its ports.
    """
    if not master.startswith("local"):
        return {}
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        "spark.network.crypto.enabled": "true",
    }


@dataclass(slots=True)
class SparkEngine:
    """Runs jobs on the Spark cluster with the given master URL."""

    master: str
    configuration: dict[str, str] = field(default_factory=dict)
    _session: Any = field(default=None, repr=False)

    def run_items(self, job: ItemJob, items: Sequence[bytes]) -> list[bytes]:
        def run(batches: Iterable[Any]) -> Iterator[Any]:
            for _, number, item in _rows(batches):
                yield _batch([(0, number, job.run_item(item))])

        frame = self._frame(items).mapInArrow(run, _SCHEMA)
        return [row[2] for row in sorted(self._collect(frame), key=lambda row: row[1])]

    def run_buckets(self, job: BucketJob, sources: Sequence[bytes], bucket_count: int) -> list[tuple[int, bytes]]:
        def split(batches: Iterable[Any]) -> Iterator[Any]:
            for _, number, source in _rows(batches):
                for bucket, block in job.split_source(source):
                    yield _batch([(bucket, number, block)])

        def merge(batches: Iterable[Any]) -> Iterator[Any]:
            # A partition may have several buckets; its rows are sorted by bucket.
            for bucket, group in groupby(_rows(batches), key=lambda row: row[0]):
                yield _batch([(bucket, 0, job.merge_bucket(bucket, (row[2] for row in group)))])

        blocks = self._frame(sources).mapInArrow(split, _SCHEMA)
        together = blocks.repartition(bucket_count, "bucket").sortWithinPartitions("bucket", "number")
        return sorted((row[0], row[2]) for row in self._collect(together.mapInArrow(merge, _SCHEMA)))

    def _frame(self, items: Sequence[bytes]) -> Any:
        session = self._connect()
        rows: list[tuple[int, int, bytes]] = [(0, number, item) for number, item in enumerate(items)]
        parts = min(len(items), max(MIN_PARTITIONS, len(items) // ITEMS_PER_PARTITION))
        return session.createDataFrame(rows, _SCHEMA).repartition(max(1, parts))

    def _collect(self, frame: Any) -> list[tuple[int, int, bytes]]:
        try:
            return [(row[0], row[1], bytes(row[2])) for row in frame.collect()]
        except Exception as error:
            raise UsageFault(f"Spark at {self.master}: {_cause_of(error)}") from error

    def _connect(self) -> Any:
        if self._session is not None:
            return self._session
        import_arrow()
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise UsageFault(INSTALL_HINT) from None
        # Executors run the interpreter of this name, which must have Trimtab: on one machine it is this one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("trimtab fleet")
        builder = builder.remote(self.master) if self.master.startswith("sc://") else builder.master(self.master)
        for name, value in {**CONFIGURATION, **local_configuration(self.master), **self.configuration}.items():
            builder = builder.config(name, value)
        try:
            self._session = builder.getOrCreate()
        except Exception as error:
            raise UnreachableSource(f"Spark at {self.master}: {_cause_of(error)}") from error
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None


def _rows(batches: Iterable[Any]) -> Iterator[tuple[int, int, bytes]]:
    for batch in batches:
        columns = [batch.column(index) for index in range(3)]
        for place in range(batch.num_rows):
            yield tuple(column[place].as_py() for column in columns)


def _batch(rows: Sequence[tuple[int, int, bytes]]) -> Any:
    arrow = import_arrow()
    types: tuple[Callable[[], Any], ...] = (arrow.int32, arrow.int32, arrow.binary)
    arrays = [arrow.array(column, kind()) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    return arrow.RecordBatch.from_arrays(arrays, names=["bucket", "number", "block"])


def _cause_of(error: BaseException) -> str:
    """Returns the line of an error that says what happened, which is the last line of a Python worker's traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    noise = ("at ", "SQLSTATE", "JVM stacktrace", "An error occurred while calling")
    lines = [line.removeprefix(": ") for line in lines if not line.startswith(noise)]
    if not lines:
        return type(error).__name__
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else lines[0]
