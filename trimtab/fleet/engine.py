"""Defines what an engine does, and the engine that uses only this machine.

A job splits sources into blocks, and merges the blocks of each bucket. Its functions are sent to other machines, and
may run there more than once. So they depend only on their arguments, and what they write replaces what was there.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from trimtab.fleet.container_blocks import Block

_HEAD = struct.Struct("<I")
LOCAL = "local"


class ItemJob(Protocol):
    """A function of one item, for example of one cluster."""

    def run_item(self, item: bytes) -> bytes:
        """Returns the result for one item. Raises nothing."""


class BucketJob(Protocol):
    """Splits sources into blocks, and merges the blocks of each bucket."""

    def split_source(self, source: bytes) -> Iterable[Block]:
        """Yields the blocks of one source. Errors are returned as blocks too; nothing is raised."""

    def merge_bucket(self, bucket: int, blocks: Iterable[bytes]) -> bytes:
        """Returns the result for all blocks of a bucket, which may be in any order."""


class Engine(Protocol):
    """Runs jobs, on this machine or on others."""

    def run_items(self, job: ItemJob, items: Sequence[bytes]) -> list[bytes]:
        """Returns the results in the order of the items."""

    def run_buckets(self, job: BucketJob, sources: Sequence[bytes], bucket_count: int) -> list[tuple[int, bytes]]:
        """Returns (bucket, result) for each bucket that has blocks, sorted by bucket."""

    def close(self) -> None:
        """Releases what the engine holds."""


class LocalEngine:
    """Runs jobs in one process. The blocks of a bucket are kept in a file until all sources are split, so that memory
    does not grow with the number of containers."""

    def run_items(self, job: ItemJob, items: Sequence[bytes]) -> list[bytes]:
        return [job.run_item(item) for item in items]

    def run_buckets(self, job: BucketJob, sources: Sequence[bytes], bucket_count: int) -> list[tuple[int, bytes]]:
        with TemporaryDirectory(prefix="trimtab-fleet-") as folder:
            for source in sources:
                for bucket, block in job.split_source(source):
                    with (Path(folder) / str(bucket)).open("ab") as file:
                        file.write(_HEAD.pack(len(block)))
                        file.write(block)
            return [
                (int(path.name), job.merge_bucket(int(path.name), _read_blocks(path)))
                for path in sorted(Path(folder).iterdir(), key=lambda path: int(path.name))
            ]

    def close(self) -> None:
        return None


def _read_blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            yield file.read(_HEAD.unpack(head)[0])
