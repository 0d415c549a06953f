"""The rows of one file, divided into blocks by container. Blocks are what the machines of an engine exchange.

The bucket of a container is determined by a checksum of names. A block is the part of a file's rows that belongs to one
bucket, as an Arrow IPC stream. So an engine moves some thousand blocks instead of millions of rows.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.owner import OwnerKey
from trimtab.histogram.batch_history import ContainerKey
from trimtab.usage.daily_store import KEY_COLUMNS, DailyStore, StoredDay, import_arrow

BYTES_PER_BUCKET = 2_000_000
"""The size of files, in bytes, for each bucket. The files are compressed to about a quarter, so a bucket has some ten
megabytes in memory."""
MAX_BUCKETS = 4096

Block = tuple[int, bytes]
"""(number of the bucket, rows of that bucket as bytes)."""


def count_buckets(sizes: Iterable[int]) -> int:
    """Returns the number of buckets for files of these sizes. It is the same for every engine and number of
    machines."""
    total, buckets = sum(sizes), 1
    while buckets * BYTES_PER_BUCKET < total and buckets < MAX_BUCKETS:
        buckets *= 2
    return buckets


def bucket_of(cluster: str, container: ContainerKey, bucket_count: int) -> int:
    """Returns the bucket of a container. It depends only on the container's workload, so that the containers of a pod
    are in one bucket."""
    name = f"{cluster}\n{container.namespace}\n{container.kind}\n{container.workload}"
    return zlib.crc32(name.encode()) % bucket_count


@dataclass(frozen=True, slots=True)
class DailyFileSplitter:
    """Splits files of a history into blocks."""

    location: str
    bucket_count: int

    def split_file(self, stored: StoredDay) -> Iterator[Block]:
        """Yields the blocks of one file, sorted by bucket. Raises UsageFault."""
        arrow = import_arrow()
        parts: dict[int, list[Any]] = {}
        for batch in DailyStore(self.location).read_batches(stored):
            buckets = self._buckets_of(stored.cluster, batch)
            order = sorted(range(len(buckets)), key=buckets.__getitem__)
            ordered, start = batch.take(arrow.array(order, arrow.int32())), 0
            counts: dict[int, int] = {}
            for bucket in buckets:
                counts[bucket] = counts.get(bucket, 0) + 1
            for bucket, count in sorted(counts.items()):
                parts.setdefault(bucket, []).append(ordered.slice(start, count))
                start += count
        for bucket in sorted(parts):
            yield bucket, encode_batches(parts[bucket], {b"cluster": stored.cluster.encode()})

    def _buckets_of(self, cluster: str, batch: Any) -> list[int]:
        columns = [batch.column(name).to_pylist() for name in KEY_COLUMNS[:4]]
        # Rows are sorted, so that most rows are of the same workload as the one before.
        buckets_by_key: dict[OwnerKey, int] = {}
        buckets = []
        for namespace, kind, workload, name in zip(*columns, strict=True):
            key = OwnerKey(namespace, kind, workload)
            if key not in buckets_by_key:
                buckets_by_key[key] = bucket_of(
                    cluster, ContainerKey(namespace, kind, workload, name), self.bucket_count
                )
            buckets.append(buckets_by_key[key])
        return buckets


def encode_batches(batches: Iterable[Any], metadata: Mapping[bytes, bytes]) -> bytes:
    """Returns record batches of one schema as an Arrow IPC stream with this metadata."""
    arrow = import_arrow()
    all_batches = list(batches)
    schema = all_batches[0].schema.with_metadata(dict(metadata))
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, schema, options=arrow.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for batch in all_batches:
            writer.write_batch(arrow.RecordBatch.from_arrays(batch.columns, schema=schema))
    return bytes(sink.getvalue().to_pybytes())


def decode_block(block: bytes) -> tuple[str, Any]:
    """Returns the cluster and the rows of a block, the rows as an Arrow table."""
    with import_arrow().ipc.open_stream(block) as reader:
        return reader.schema.metadata[b"cluster"].decode(), reader.read_all()
