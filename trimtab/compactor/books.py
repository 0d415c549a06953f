"""What each pool remembers, and every decision told once to everybody who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.moment import Seconds
from trimtab.cluster.reason import Reason
from trimtab.compaction.memory import Memory, Record

Sink = Callable[[Record], None]


class Store(Protocol):
    """Where memories outlive us."""

    def load(self) -> Mapping[str, Memory]:
        """Pool → what was kept; what cannot be read is left out. Raises a DoorFault."""

    def save(self, pool: str, memory: Memory) -> None:
        """Raises a DoorFault."""


@dataclass(slots=True)
class Books:
    store: Store
    sinks: tuple[Sink, ...] = ()
    memories: dict[str, Memory] = field(default_factory=dict)
    _saved: dict[str, Memory] = field(default_factory=dict)

    def open(self) -> None:
        """Read what was kept. Raises a DoorFault."""
        self.memories = dict(self.store.load())
        self._saved = dict(self.memories)

    def of(self, pool: str) -> Memory:
        return self.memories.get(pool, Memory())

    def put(self, pool: str, memory: Memory) -> None:
        self.memories[pool] = memory

    def tell(self, what: str, reason: Reason, *, pool: str, at: Seconds, **more: str | bool) -> None:
        """Into the pool's ring, and to every sink."""
        record = Record(at=at, pool=pool, what=what, code=reason.code.name, why=reason.sentence, **more)  # type: ignore[arg-type]
        if pool:  # what belongs to no pool is only told
            self.put(pool, self.of(pool).told(record))
        for sink in self.sinks:
            sink(record)

    def save(self, pools: Iterable[str] | None = None) -> None:
        """What changed since it was saved last. Raises a DoorFault at the first that cannot be saved."""
        for pool in sorted(self.memories if pools is None else pools):
            memory = self.of(pool)
            if self._saved.get(pool) != memory:
                self.store.save(pool, memory)
                self._saved[pool] = memory

    def forget_saved(self, pool: str) -> None:
        """Somebody took it away: write it again."""
        self._saved.pop(pool, None)
