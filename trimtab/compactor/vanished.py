"""Drains whose node, or whose note, is not there any more: what they leave behind is settled by what was remembered."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace as change

from trimtab.cluster.reason import Code
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain import note as notes
from trimtab.compaction.drain.note import Note
from trimtab.compaction.drain.view import View
from trimtab.compactor.books import Books
from trimtab.compactor.doors import Apart, Door
from trimtab.runtime.log import Logger

SCALED = Code("workload-surged", "A workload of one replica has two while its pod moves, or one again.", "Nothing.")
AGAIN = 10.0
"""Seconds until a write is tried again whose refusal did not say when (the autoscaler's own pace)."""


@dataclass(slots=True)
class Vanished:
    door: Door
    books: Books
    log: Logger

    def settle(self, view: View, held: dict[str, float], now: float) -> None:
        """Ends such drains. What cannot be undone now is held for a while, and tried again."""
        found = notes.noted(view.inventory.nodes, view.home)
        noted, there = {node.name for node, _ in found}, {node.name for node in view.inventory.nodes}
        surges = {name for _, note in found if isinstance(note, Note) for name in note.surges}
        for pool, memory in list(self.books.memories.items()):
            for name in sorted(set(memory.drains) - noted):
                self._over(pool, name, view, there=name in there)
            for name, before in sorted(self.books.of(pool).surged.items()):
                if name not in surges and name not in held:
                    self._unsurge(pool, name, before, view, held, now)

    def _unsurge(self, pool: str, name: str, before: int, view: View, held: dict[str, float], now: float) -> None:
        """A surge whose note went with its node, or was taken off while it could not be undone."""
        apart, done = Apart(), False
        with apart.tried():
            if self.door.scale(name, before + 1, before):
                told = f"Deployment {name} has {before} replicas again: the drain is over"
                self.books.tell("scaled", SCALED(told), pool=pool, at=view.at)
            left = {other: n for other, n in self.books.of(pool).surged.items() if other != name}
            self.books.put(pool, change(self.books.of(pool), surged=left))
            done = True
        if not done:
            held[name] = now + AGAIN
        if apart.trouble is not None:
            self.log.warning("surge.not-undone", pool=pool, deployment=name, error=str(apart.trouble))

    def _over(self, pool: str, name: str, view: View, *, there: bool) -> None:
        memory = self.books.of(pool)
        drain, was_empty = memory.drains[name], name in memory.empty
        taken = was_empty and not there
        memory = memory.succeeded(name) if taken else memory
        self.books.put(pool, memory.over(name, drain, view.at))
        told = f"node {name} is gone" if not there else f"the note on node {name} was taken away"
        what, code = ("taken", a.TAKEN) if taken else ("dropped", a.UNCORDONED if there else a.VANISHED)
        self.books.tell(what, code(told), pool=pool, at=view.at, node=name, drain=drain)
