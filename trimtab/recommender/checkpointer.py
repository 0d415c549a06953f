"""Stores the usage history in the cluster. The part that still changes is written every ten minutes, each day that is
over once, and everything when the process ends.

If the write budget does not allow everything that has changed, the shard that was written longest ago comes first.
`unsaved_seconds` is how much history would be lost if the process ended unexpectedly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ShardLayout, ShardOverflow
from trimtab.histogram import checkpoint
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.checkpoint import Shard
from trimtab.histogram.import_history import restore_history
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.recommender.sharded_configmaps import DailyShardBackend, ShardBackend, ShardedStore, StoredDays
from trimtab.recommender.write_budget import WriteBudget

K = TypeVar("K")
SHARD_BYTES = 128_000
"""The maximum size of one shard in bytes. It is small, so that the bytes that may be written in ten minutes are enough
for many shards."""
DAY_SETTLES_SECONDS = HOUR
"""The number of seconds after the end of a day during which late values and the last peaks are still added to that
day."""


@dataclass(slots=True)
class Checkpointer:
    """Stores a history and restores it. Not thread-safe."""

    shard_backend: ShardBackend
    day_backend: DailyShardBackend
    history: LiveHistory
    write_interval_seconds: float
    """The number of seconds between two writes of one shard."""
    budget: WriteBudget
    elapsed: Callable[[], float]
    max_stored_bytes: int = 256_000_000
    """The maximum size of all stored texts in bytes. If one more day would exceed it, the oldest days are removed."""
    shard_store: ShardedStore = field(init=False)
    days: StoredDays = field(init=False)
    _written_at: dict[int, float] = field(default_factory=dict)
    _containers_by_workload: dict[str, list[ContainerKey]] = field(default_factory=dict)
    _started: float = 0.0

    def __post_init__(self) -> None:
        self.shard_store = ShardedStore(
            self.shard_backend, self._render, self.budget, self._record_write, self._write_days, SHARD_BYTES
        )
        self.days, self._started = StoredDays(self.day_backend), self.elapsed()

    def restore_history(self) -> tuple[Unreadable, ...]:
        """Restores the stored history. Returns the texts that cannot be read. Raises StoreUnavailable."""
        texts = self.shard_backend.load_texts()
        shards, unreadable = _decode_shards(
            {f"usage checkpoint {number}": (number, text) for number, text in texts.items()}
        )
        days, unreadable_days = _decode_shards(
            {f"usage of the day {name.day}-{name.tag}": (name, text) for name, text in self.days.load_texts().items()}
        )
        restore_history(self.history, [*shards.values(), *days.values()])
        layout = _current_layout(shards.values())
        self.shard_store.set_stored(texts, {number: shard.workloads for number, shard in shards.items()}, layout)
        if self.shard_store.damaged_texts:
            # The namespaces that may have had workloads in a damaged shard: all of them while the number of shards is
            # being changed. A namespace that was only in a damaged shard is not returned, because it is imported
            # again anyway.
            changing = any(shard.count != layout.count for shard in shards.values())
            self.history.mark_incomplete(
                [
                    name
                    for name in self.history.imported_until
                    if changing or not layout.shards_of_namespace(name).isdisjoint(self.shard_store.damaged_texts)
                ]
            )
        now = self.elapsed()
        # Restored shards are not due at once, and their next writes are spread over the period.
        for order, number in enumerate(sorted(shards)):
            self._written_at[number] = now - self.write_interval_seconds * order / len(shards)
        return (*unreadable, *unreadable_days)

    def write_due(self, *, everything: bool = False) -> int:
        """Writes the shards that are due; with `everything`, all of them regardless of the budget. Returns how many
        were written. Raises StoreUnavailable and ShardOverflow."""
        self._containers_by_workload = {}
        for container in self.history.list_containers():
            self._containers_by_workload.setdefault(checkpoint.workload_key(container), []).append(container)
        # One day more than the window: memory is behind cpu by a peak interval.
        self.days.drop_before(self._newest_second() // DAY - self.history.days)

        def urgency(shard: int, _workloads: Sequence[str]) -> float:
            age = self.elapsed() - self._written_at.get(shard, float("-inf"))
            return age if everything or age >= self.write_interval_seconds else 0.0

        return self.shard_store.write_urgent(self._containers_by_workload.keys(), urgency, unlimited=everything)

    @property
    def unsaved_seconds(self) -> float:
        """The number of seconds since the last write of the shard that was written longest ago."""
        now = self.elapsed()
        return max(
            (now - self._written_at.get(shard, self._started) for shard in self.shard_store.stored_sizes), default=0.0
        )

    @property
    def stored_bytes(self) -> int:
        """The size of all stored texts in bytes."""
        return self.shard_store.stored_bytes + self.days.stored_bytes

    def _newest_second(self) -> int:
        """Returns the time of the newest usage, by which it is decided which days are over."""
        return max((window.last for window in self.history.windows.values()), default=0)

    def _containers_of(self, workloads: Sequence[str]) -> list[ContainerKey]:
        return [container for name in workloads for container in self._containers_by_workload[name]]

    def _write_days(self, workloads: Sequence[str]) -> None:
        """Writes the days of these workloads that are over and not stored yet."""
        over = (self._newest_second() - DAY_SETTLES_SECONDS) // DAY
        for day, containers in checkpoint.unstored_days(self.history, self._containers_of(workloads)).items():
            if day < over:
                text = checkpoint.encode_day(self.history, containers, day)
                size = self.shard_store.check_size(text, workloads)
                # The day is stored before it is marked: an error in between stores it again, which counts once (see
                # `histogram.checkpoint`).
                self._make_room(size)
                self.days.store_day(day, text)
                self.shard_store.spend(size)
                checkpoint.mark_day_stored(self.history, containers, day)

    def _render(self, workloads: Sequence[str], layout: ShardLayout) -> str:
        return checkpoint.encode(self.history, self._containers_of(workloads), layout)

    def _make_room(self, size: int) -> None:
        """Removes the oldest days until `size` more bytes fit into the allowed maximum. Raises ShardOverflow if there
        are no days left."""
        while self.stored_bytes + size > self.max_stored_bytes:
            if not self.days.drop_oldest():
                raise ShardOverflow(
                    f"{self.stored_bytes} bytes of usage are stored, but the limit is {self.max_stored_bytes} bytes"
                )

    def _record_write(self, shard: int, _workloads: Sequence[str]) -> None:
        self._written_at[shard] = self.elapsed()


def _decode_shards(texts: Mapping[str, tuple[K, str]]) -> tuple[dict[K, Shard], tuple[Unreadable, ...]]:
    """Returns the shards that can be read, and the problems of the others."""
    shards, unreadable = {}, []
    for where, (key, text) in texts.items():
        shard = checkpoint.decode(where, text)
        if isinstance(shard, Unreadable):
            unreadable.append(shard)
        else:
            shards[key] = shard
    return shards, tuple(unreadable)


def _current_layout(shards: Iterable[Shard]) -> ShardLayout:
    """Returns the layout of the stored shards. While the number of shards is being changed, there are two layouts; the
    larger one is returned."""
    count, widths = 1, dict[str, int]()
    for shard in shards:
        count = max(count, shard.count)
        for namespace, width in shard.widths.items():
            widths[namespace] = max(width, widths.get(namespace, 1))
    return ShardLayout(count, widths)
