"""What an engine does, and the engine of one machine.

A job splits sources into blocks, and merges the blocks of each bucket. Its functions are values: they are sent to other
machines, and may run there more than once. So they depend on their arguments alone, and what they write replaces what
was there.
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
    """A function of one item: one cluster, for example."""

    def run_item(self, item: bytes) -> bytes:
        """Returns the result of one item; it does not raise."""


class BucketJob(Protocol):
    """A split of sources into blocks, and the merge of the blocks of each bucket."""

    def split_source(self, source: bytes) -> Iterable[Block]:
        """Returns the blocks of one source. Its faults are blocks as well; it does not raise."""

    def merge_bucket(self, bucket: int, blocks: Iterable[bytes]) -> bytes:
        """Returns the result of all blocks of a bucket, which come in any order."""


class Engine(Protocol):
    """Runs jobs, here or on other machines."""

    def run_items(self, job: ItemJob, items: Sequence[bytes]) -> list[bytes]:
        """Returns the results in the order of the items."""

    def run_buckets(self, job: BucketJob, sources: Sequence[bytes], bucket_count: int) -> list[tuple[int, bytes]]:
        """Returns (bucket, result) of each bucket that has blocks, in their order."""

    def close(self) -> None:
        """Give back what the engine holds."""


class LocalEngine:
    """One process. The blocks of a bucket are held in a file until all sources are split, so that memory does not grow
    with the number of containers."""

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
