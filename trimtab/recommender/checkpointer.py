"""The diary, kept in the cluster: what changes every ten minutes, a day that is over once, and the rest when we stop.

Where the budget has no room for all that changes, what was written longest ago goes first: `unsaved_seconds` tells what
an unexpected end would cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ShardLayout, ShardOverflow
from trimtab.histogram import checkpoint
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.checkpoint import Shard
from trimtab.histogram.import_history import load
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.recommender.sharded_configmaps import DailyShardBackend, ShardBackend, ShardedStore, StoredDays
from trimtab.recommender.write_budget import WriteBudget

K = TypeVar("K")
SHARD_BYTES = 128_000
"""Of one shard at the most: small enough that the budget of ten minutes is spent on many of them, the oldest first."""
SETTLES_SECONDS = HOUR
"""After the end of a day its last values still come, and its last peaks are still counted."""


@dataclass(slots=True)
class Checkpointer:
    """Not for two threads."""

    shelf: ShardBackend
    day_shelf: DailyShardBackend
    diary: LiveHistory
    every: float
    """Seconds between two writes of one shard."""
    budget: WriteBudget
    elapsed: Callable[[], float]
    max_stored_bytes: int = 256_000_000
    """All that stands may be as large; where a day more would make it larger the oldest days go."""
    cabinet: ShardedStore = field(init=False)
    days: StoredDays = field(init=False)
    _at: dict[int, float] = field(default_factory=dict)
    _by: dict[str, list[ContainerKey]] = field(default_factory=dict)
    _began: float = 0.0

    def __post_init__(self) -> None:
        self.cabinet = ShardedStore(self.shelf, self._render, self.budget, self._wrote, self._write_days, SHARD_BYTES)
        self.days, self._began = StoredDays(self.day_shelf), self.elapsed()

    def open(self) -> tuple[Unreadable, ...]:
        """Take up what was kept; what of it makes no sense. Raises NotNow."""
        texts = self.shelf.load()
        found, told = _read({f"checkpoint {number}": (number, text) for number, text in texts.items()})
        days, told_days = _read({f"day {name.day}-{name.tag}": (name, text) for name, text in self.days.load().items()})
        load(self.diary, [*found.values(), *days.values()])
        layout = _layout(found.values())
        self.cabinet.found(texts, {number: shard.workloads for number, shard in found.items()}, layout)
        if self.cabinet.damaged:
            self.diary.lose(_touched(self.diary.until, found, self.cabinet.damaged, layout))
        now = self.elapsed()
        for order, number in enumerate(sorted(found)):  # what was kept just now needs no hurry, and not all at once
            self._at[number] = now - self.every * order / len(found)
        return (*told, *told_days)

    def write(self, *, all_: bool = False) -> int:
        """What is due, or all of it whatever the budget; how many shards were written. Raises NotNow and TooMuch."""
        self._by = {}
        for container in self.diary.containers():
            self._by.setdefault(checkpoint.workload(container), []).append(container)
        self.days.drop_before(
            self._newest_second() // DAY - self.diary.days
        )  # memory is behind by an interval of peaks

        def urgency(shard: int, _held: Sequence[str]) -> float:
            age = self.elapsed() - self._at.get(shard, float("-inf"))
            return age if all_ or age >= self.every else 0.0

        return self.cabinet.write(self._by.keys(), urgency, unlimited=all_)

    @property
    def unsaved_seconds(self) -> float:
        """The age of the shard that was written longest ago."""
        now = self.elapsed()
        return max((now - self._at.get(shard, self._began) for shard in self.cabinet.standing), default=0.0)

    @property
    def stored_bytes(self) -> int:
        """All that stands."""
        return self.cabinet.stored_bytes + self.days.stored_bytes

    def _newest_second(self) -> int:
        """Of all usage: the clock that days go by."""
        return max((window.last for window in self.diary.windows.values()), default=0)

    def _held(self, workloads: Sequence[str]) -> list[ContainerKey]:
        return [container for name in workloads for container in self._by[name]]

    def _write_days(self, workloads: Sequence[str]) -> None:
        """The days of these workloads that are over and stand nowhere yet."""
        over = (self._newest_second() - SETTLES_SECONDS) // DAY
        for day, containers in checkpoint.unstored_days(self.diary, self._held(workloads)).items():
            if day < over:
                text = checkpoint.encode_day(self.diary, containers, day)
                size = self.cabinet.check(text, workloads)
                self._make_room(size)
                self.days.put(day, text)
                self.cabinet.spend(size)
                checkpoint.set_stored(self.diary, containers, day)

    def _render(self, workloads: Sequence[str], layout: ShardLayout) -> str:
        return checkpoint.encode(self.diary, self._held(workloads), layout)

    def _make_room(self, more: int) -> None:
        """Under the ceiling, by the oldest days. Raises TooMuch where there are none."""
        while self.stored_bytes + more > self.max_stored_bytes:
            if not self.days.drop_oldest():
                raise ShardOverflow(
                    f"usage of {self.stored_bytes} bytes stands, of {self.max_stored_bytes} at the most"
                )

    def _wrote(self, shard: int, _held: Sequence[str]) -> None:
        self._at[shard] = self.elapsed()


def _read(texts: Mapping[str, tuple[K, str]]) -> tuple[dict[K, Shard], tuple[Unreadable, ...]]:
    """What makes sense, and what is wrong with the rest."""
    found, told = {}, []
    for where, (key, text) in texts.items():
        shard = checkpoint.decode(where, text)
        if isinstance(shard, Unreadable):
            told.append(shard)
        else:
            found[key] = shard
    return found, tuple(told)


def _layout(found: Iterable[Shard]) -> ShardLayout:
    """The one of those that stand; of two, while they change, the larger."""
    count, widths = 1, dict[str, int]()
    for shard in found:
        count = max(count, shard.count)
        for namespace, width in shard.widths.items():
            widths[namespace] = max(width, widths.get(namespace, 1))
    return ShardLayout(count, widths)


def _touched(
    namespaces: Iterable[str], found: Mapping[int, Shard], damaged: Collection[int], layout: ShardLayout
) -> list[str]:
    """Of which a part may have stood in a damaged shard: all of them while shards were changing their number. What
    stood there alone is not among them, and is asked for anew by itself."""
    changing = any(shard.count != layout.count for shard in found.values())
    return [name for name in namespaces if changing or not layout.places(name).isdisjoint(damaged)]
