"""What is known of workloads, spread over ConfigMaps.

A shard is written when it is due and not more often. A workload that gets another place is written there before it
leaves the old one. What was found damaged is kept aside under another name before its shard is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.shards import LIMIT, Homes, Layout

Render = Callable[[Sequence[str], Layout], str]
"""(workloads, how all of them are laid out) → the text of a shard."""
Wrote = Callable[[int, Sequence[str]], None]
"""Hears of every shard that was written, and of what is in it."""
Due = Callable[[int, Sequence[str]], bool]
"""Is it time for this shard with these workloads?"""


class NotNow(Exception):
    """The server did not do it: the next round tries again."""


class Shelf(Protocol):
    """Where shards stand. Everything raises NotNow."""

    def load(self) -> Mapping[int, str]:
        """Shard → its text."""

    def put(self, shard: int, text: str) -> None: ...

    def drop(self, shard: int) -> None: ...

    def aside(self, shard: int, text: str) -> None:
        """Keep this text where nobody reads it as a shard."""


@dataclass(slots=True)
class Cabinet:
    shelf: Shelf
    render: Render
    wrote: Wrote = lambda _shard, _held: None
    limit: int = LIMIT
    layout: Layout = field(default_factory=Layout)
    homes: Homes = field(default_factory=Homes)
    standing: set[int] = field(default_factory=set)
    """Shards that are there."""
    damaged: dict[int, str] = field(default_factory=dict)
    """Shards that made no sense, with their text, until they are kept aside."""
    writes: int = 0

    def found(self, shards: Mapping[int, Iterable[str]], damaged: Mapping[int, str], layout: Layout) -> None:
        """What stands, and how it was laid out."""
        self.layout, self.damaged = layout, dict(damaged)
        self.standing = {*shards, *damaged}
        for shard, workloads in shards.items():
            self.homes.moved(shard, workloads)

    def write(self, workloads: Collection[str], due: Due) -> int:
        """All shards that are due; how many were written. Raises NotNow and TooMuch; what was written stays so."""
        before = self.writes
        while not self._written(workloads, due):
            pass
        self.homes.forget(workloads)
        return self.writes - before

    def _written(self, workloads: Collection[str], due: Due) -> bool:
        """False where a shard became too large: the layout is another now."""
        plan = self.homes.plan(self.layout, workloads)
        leaving = {self.homes.of[w] for w in workloads if w in self.homes.of and not self._is_home(w)}
        # Who only takes comes first: then those that give have less to hold.
        for shard in sorted(plan, key=lambda number: (number in leaving, number)):
            if not self._shard(shard, plan[shard], workloads, due, moved=bool(leaving)):
                return False
        for shard in self.standing - plan.keys() - self.damaged.keys():
            self._drop(shard)
        return True

    def _is_home(self, workload: str) -> bool:
        return self.homes.of.get(workload) == self.layout.place(workload)

    def _shard(self, shard: int, placed: Sequence[str], workloads: Collection[str], due: Due, *, moved: bool) -> bool:
        waiting = self.homes.waiting(shard, self.layout, workloads) if moved else []
        held = sorted([*placed, *waiting])
        if not held:
            self._drop(shard)
            return True
        gains = any(self.homes.of.get(workload) not in (None, shard) for workload in placed)
        if not gains and not due(shard, held):
            return True
        text = self.render(held, self.layout)
        if len(text.encode()) > self.limit:
            self.layout = self.layout.grown(held)
            return False
        self._put(shard, text, placed)
        self.wrote(shard, held)
        return True

    def _put(self, shard: int, text: str, placed: Sequence[str]) -> None:
        if shard in self.damaged:
            self.shelf.aside(shard, self.damaged[shard])
            del self.damaged[shard]
        self.shelf.put(shard, text)
        self.writes += 1
        self.standing.add(shard)
        self.homes.moved(shard, placed)

    def _drop(self, shard: int) -> None:
        if shard in self.standing and shard not in self.damaged:
            self.shelf.drop(shard)
            self.standing.discard(shard)
