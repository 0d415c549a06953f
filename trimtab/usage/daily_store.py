"""Stores a history of daily rows as Parquet files in a folder or an object store:
`dt=2026-01-05/cluster=prod/usage.parquet`.

A file holds one day of one cluster and is replaced as a whole: a reader sees either the earlier file or the new one,
and a day that is written twice counts once. Other files in the same folder are read in addition. Folders have the names
that Hive and Spark give to partitions, so any engine can list them. Each page of a file has a checksum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from trimtab.cluster.timestamps import format_timestamp, parse_timestamp
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.daily_rows import DailyRow
from trimtab.histogram.oom_kills import OomRecord
from trimtab.histogram.time_buckets import DAY
from trimtab.usage.errors import GarbledSource, UnreachableSource, UsageFault

FILE_NAME = "usage.parquet"
SCHEMA_KEY, SCHEMA_VERSION = b"trimtab.daily-rows", b"1"
BATCH_ROWS = 8192
"""The number of rows that are decoded at once."""
INSTALL_HINT = (
    "The extra `fleet`, which reads and writes Parquet, is not installed; in a clone of Trimtab, run `pip install "
    "'.[fleet]'`."
)
KEY_COLUMNS = ("namespace", "kind", "workload", "container", "resource")


class MissingExtra(UsageFault):
    """Raised when a package of the extra `fleet` is not installed."""

    def __init__(self) -> None:
        super().__init__(INSTALL_HINT)


def import_arrow() -> Any:
    """Returns the package `pyarrow` with the parts that are used here. Raises MissingExtra."""
    try:
        import pyarrow
        import pyarrow.fs
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra from None
    return pyarrow


def row_schema() -> Any:
    """Returns the Arrow schema of a file."""
    arrow = import_arrow()
    text = arrow.string()
    return arrow.schema(
        [
            *(arrow.field(name, text, nullable=False) for name in KEY_COLUMNS),
            arrow.field("first", arrow.int64(), nullable=False),
            arrow.field("last", arrow.int64(), nullable=False),
            arrow.field("hours", arrow.int32(), nullable=False),
            arrow.field("histogram", arrow.binary(), nullable=False),
            arrow.field("pods", arrow.binary()),
            arrow.field("oom_at", arrow.int64()),
            arrow.field("oom_used", arrow.float64()),
            arrow.field("oom_count", arrow.int64()),
            arrow.field("oom_last", arrow.int64()),
        ],
        metadata={SCHEMA_KEY: SCHEMA_VERSION},
    )


def rows_to_table(rows: Sequence[DailyRow]) -> Any:
    """Returns the rows as an Arrow table, in their order."""
    arrow = import_arrow()
    columns: dict[str, list[Any]] = {
        "namespace": [row.container.namespace for row in rows],
        "kind": [row.container.kind for row in rows],
        "workload": [row.container.workload for row in rows],
        "container": [row.container.name for row in rows],
        "resource": [row.resource for row in rows],
        "first": [row.first for row in rows],
        "last": [row.last for row in rows],
        "hours": [row.hours for row in rows],
        "histogram": [row.histogram for row in rows],
        "pods": [row.pods or None for row in rows],
        "oom_at": [row.oom and row.oom.at for row in rows],
        "oom_used": [row.oom and row.oom.used for row in rows],
        "oom_count": [row.oom and row.oom.count for row in rows],
        "oom_last": [row.oom and row.oom.last for row in rows],
    }
    return arrow.Table.from_pydict(columns, schema=row_schema())


def rows_of_batch(batch: Any) -> Iterator[DailyRow]:
    """Yields the rows of an Arrow record batch or table with the columns of `row_schema`."""
    columns = [batch.column(name).to_pylist() for name in row_schema().names]
    for namespace, kind, workload, name, resource, first, last, hours, histogram, pods, *oom in zip(
        *columns, strict=True
    ):
        record = None if oom[0] is None else OomRecord(at=oom[0], used=oom[1], count=oom[2], last=oom[3])
        key = ContainerKey(namespace, kind, workload, name)
        yield DailyRow(key, resource, first, last, hours, histogram, pods or b"", record)


@dataclass(frozen=True, slots=True, order=True)
class StoredDay:
    """One file of a history."""

    cluster: str
    day: int
    """The day, as a number of days since 1970."""
    path: str
    """The path of the file below the root of its store."""
    size: int = 0
    """The size of the file in bytes."""


@dataclass(slots=True)
class DailyStore:
    """A history in a folder (a path) or an object store (a URL such as s3://bucket/history or gs://bucket/history)."""

    location: str
    _filesystem: Any = field(default=None, repr=False)
    _root: str = ""

    def connect(self) -> DailyStore:
        """Opens the file system, and returns this store. Raises MissingExtra and UnreachableSource."""
        if self._filesystem is None:
            arrow = import_arrow()
            with _faults(f"the history {self.location}"):
                if "://" in self.location:
                    self._filesystem, self._root = arrow.fs.FileSystem.from_uri(self.location)
                else:
                    self._filesystem, self._root = arrow.fs.LocalFileSystem(), self.location
        return self

    def list_days(self) -> list[StoredDay]:
        """Returns all files of the history, sorted by cluster, day and path; an empty list if the folder does not
        exist. Files and folders with other names are ignored. Raises UsageFault."""
        arrow = import_arrow()
        self.connect()
        selector = arrow.fs.FileSelector(self._root, recursive=True, allow_not_found=True)
        with _faults(f"the list of {self.location}"):
            file_infos = self._filesystem.get_file_info(selector)
        infos = ((info, _parse_path(self._relative(info.path))) for info in file_infos if info.is_file)
        return sorted(
            StoredDay(cluster, day, self._relative(info.path), info.size)
            for info, place in infos
            if place is not None
            for cluster, day in (place,)
        )

    def _relative(self, path: str) -> str:
        root = self._root.rstrip("/")
        return path[len(root) :].lstrip("/") if path.startswith(root) else path

    def write_day(self, cluster: str, day: int, rows: Sequence[DailyRow]) -> StoredDay:
        """Replaces a day of a cluster by these rows. Raises UsageFault; the earlier file is then unchanged."""
        path = day_path(cluster, day)
        return StoredDay(cluster, day, path, self.write_table(path, rows_to_table(rows)))

    def write_table(self, path: str, table: Any) -> int:
        """Replaces one file by an Arrow table, and returns the file's size in bytes. Raises UsageFault."""
        arrow = import_arrow()
        self.connect()
        target = f"{self._root.rstrip('/')}/{path}"
        folder, _, name = target.rpartition("/")
        with _faults(f"{self.location}: {path}"):
            # An object appears when its upload is complete. A file is renamed when it is.
            is_local = isinstance(self._filesystem, arrow.fs.LocalFileSystem)
            written = f"{folder}/.{name}.{uuid4().hex}" if is_local else target
            if is_local:
                self._filesystem.create_dir(folder, recursive=True)
            with self._filesystem.open_output_stream(written) as sink:
                arrow.parquet.write_table(table, sink, **WRITE_OPTIONS)
            if is_local:
                self._filesystem.move(written, target)
            return int(self._filesystem.get_file_info(target).size)

    def read_batches(self, stored: StoredDay) -> Iterator[Any]:
        """Yields the content of a file as Arrow record batches, after checking the checksums. Raises UsageFault."""
        arrow = import_arrow()
        self.connect()
        where = f"{self.location}: {stored.path}"
        path = f"{self._root.rstrip('/')}/{stored.path}"
        with _faults(where), self._filesystem.open_input_file(path) as source:
            file = arrow.parquet.ParquetFile(source, page_checksum_verification=True)
            if (file.schema_arrow.metadata or {}).get(SCHEMA_KEY) != SCHEMA_VERSION:
                raise GarbledSource(f"{where} is not a file of daily rows of version {SCHEMA_VERSION.decode()}")
            names = row_schema().names
            for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
                yield batch.select(names)

    def read_rows(self, stored: StoredDay) -> Iterator[DailyRow]:
        """Yields the rows of a file. Raises UsageFault."""
        for batch in self.read_batches(stored):
            yield from rows_of_batch(batch)


WRITE_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "row_group_size": 32_768,
    "use_dictionary": ["namespace", "kind", "workload", "container", "resource"],
}


def day_path(cluster: str, day: int, name: str = FILE_NAME) -> str:
    """Returns the path of a day of a cluster below the root of a history."""
    return f"dt={format_timestamp(day * DAY)[:10]}/cluster={quote(cluster, safe='')}/{name}"


def _parse_path(path: str) -> tuple[str, int] | None:
    """Returns (cluster, day) for a path below the root, or None if the path is not that of a day."""
    parts = PurePosixPath(path).parts
    if len(parts) != 3 or parts[2][0] in "._" or not parts[2].endswith(".parquet"):
        return None
    date, _, cluster = parts[0].removeprefix("dt="), *parts[1].partition("=")[1:]
    second = parse_timestamp(f"{date}T00:00:00Z")
    if not parts[0].startswith("dt=") or not parts[1].startswith("cluster=") or not cluster or second is None:
        return None
    return unquote(cluster), second // DAY


class _faults:
    """A context manager that turns errors of the file system and of Parquet into a UsageFault that names the file."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, (UsageFault, GeneratorExit)):
            return
        arrow = import_arrow()
        # Arrow raises an OSError without a number where a page is damaged.
        is_content = isinstance(error, OSError) and error.errno is None
        if is_content or (isinstance(error, (arrow.ArrowException, ValueError)) and not isinstance(error, OSError)):
            raise GarbledSource(f"{self.where}: {_first_line(error)}") from None
        if isinstance(error, OSError):
            raise UnreachableSource(f"{self.where}: {error.strerror or _first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def select_days(stored: Iterable[StoredDay], last_day: int | None, days: int) -> list[StoredDay]:
    """Returns the files of the last `days` days up to `last_day`; if that is None, up to the newest file."""
    files = list(stored)
    newest = max((one.day for one in files), default=0) if last_day is None else last_day
    return [one for one in files if newest - days < one.day <= newest]
