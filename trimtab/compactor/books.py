"""What each pool remembers, and every decision told once to everybody who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.moment import Seconds
from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.compaction.drain.memory import Memory, Record

UNREAD = Code(
    "state-unreadable", "What was remembered of a pool cannot be read; it was put aside, and is begun anew.",
    "See the sentence for where it lies; `trimtab compactor resume --pool NAME` opens the pool at once.",
)  # fmt: skip

LONGEST = 1000
"""Characters of a reason that are told: a webhook's no, or a list of pods, may be much longer."""

Sink = Callable[[Record], None]


class Store(Protocol):
    """Where memories outlive us."""

    def load(self) -> Mapping[str, Memory | Unreadable]:
        """Pool → what was kept. What cannot be read has been put aside, as told. Raises a DoorFault."""

    def save(self, pool: str, memory: Memory) -> None:
        """Raises a DoorFault."""


@dataclass(slots=True)
class Books:
    store: Store
    sinks: tuple[Sink, ...] = ()
    memories: dict[str, Memory] = field(default_factory=dict)
    _saved: dict[str, Memory] = field(default_factory=dict)
    _unread: dict[str, Unreadable] = field(default_factory=dict)

    def open(self, at: Seconds) -> None:
        """Read what was kept. Raises a DoorFault.

        A pool whose state cannot be read is closed: nobody knows what failed in it, or how much was evicted just now.
        """
        found = self.store.load()
        self._saved = {pool: memory for pool, memory in found.items() if isinstance(memory, Memory)}
        self._unread = {pool: memory for pool, memory in found.items() if isinstance(memory, Unreadable)}
        self.memories = {pool: memory.caught_up(at) for pool, memory in self._saved.items()}
        self.memories |= dict.fromkeys(self._unread, Memory(closed=at))

    def tell_unread(self, at: Seconds) -> None:
        """Once, when there is somebody to tell it to."""
        unread, self._unread = self._unread, {}
        for pool, why in sorted(unread.items()):
            told = f"the state of pool {pool} cannot be read, so the pool is closed for a while: {why}"
            self.tell("unread", UNREAD(told), pool=pool, at=at)

    def of(self, pool: str) -> Memory:
        return self.memories.get(pool, Memory())

    def put(self, pool: str, memory: Memory) -> None:
        self.memories[pool] = memory

    def tell(
        self, what: str, reason: Reason, *, pool: str, at: Seconds, again: bool = False, **more: str | bool
    ) -> None:
        """Into the pool's ring, and to every sink; `again`: only to the sinks, for the ring has it already."""
        why = reason.sentence if len(reason.sentence) <= LONGEST else f"{reason.sentence[:LONGEST]}…"
        record = Record(at=at, pool=pool, what=what, code=reason.code.name, why=why, **more)  # type: ignore[arg-type]
        if pool and not again:  # what belongs to no pool is only told
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
