"""What is known of workloads, spread over ConfigMaps.

A shard is written when there is something to tell and the budget has room for it; what is more urgent goes first, and
what finds no room waits for the next round. A workload that gets another place is written there before it leaves the
old one. What was found damaged is kept aside under another name before its shard is written again.

Days that are over, each part of one written once and dropped when no window reaches back to it.

Shards, and days that are over, as ConfigMaps of our namespace, ours alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.recommendation import KEY, LABEL, LIMIT, ShardAssignment, ShardLayout
from trimtab.cluster.snapshot import ConfigMap
from trimtab.kube import listing, objects
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import ListSource
from trimtab.recommender.write_budget import OVERHEAD_BYTES, WriteBudget

Render = Callable[[Sequence[str], ShardLayout], str]
"""(workloads, how all of them are laid out) → the text of a shard."""
Wrote = Callable[[int, Sequence[str]], None]
"""Hears of every shard that was written, and of what is in it."""
Urgency = Callable[[int, Sequence[str]], float]
"""How urgent it is to write this shard with these workloads; 0: not now."""
Before = Callable[[Sequence[str]], None]
"""What has to be written of these workloads before their shard is. It raises what `ShardedStore.spend` raises."""


class StoreUnavailable(Exception):
    """The server did not do it: the next round tries again."""


class _NoRoom(Exception):
    """The budget of these ten minutes is used up."""


class _TooLarge(Exception):
    """A text with these workloads is larger than a shard may be."""

    def __init__(self, held: Sequence[str]) -> None:
        super().__init__()
        self.held = held


class ShardBackend(Protocol):
    """Where shards stand. Everything raises NotNow."""

    def load(self) -> Mapping[int, str]:
        """Shard → its text."""

    def put(self, shard: int, text: str) -> None: ...

    def drop(self, shard: int) -> None: ...

    def aside(self, shard: int, text: str) -> None:
        """Keep this text where nobody reads it as a shard."""


@dataclass(slots=True)
class ShardedStore:
    shelf: ShardBackend
    render: Render
    budget: WriteBudget
    wrote: Wrote = lambda _shard, _held: None
    before: Before = lambda _held: None
    limit: int = LIMIT
    layout: ShardLayout = field(default_factory=ShardLayout)
    homes: ShardAssignment = field(default_factory=ShardAssignment)
    standing: dict[int, int] = field(default_factory=dict)
    """Shards that are there, and how many bytes each has."""
    damaged: dict[int, str] = field(default_factory=dict)
    """Shards that made no sense, with their text, until they are kept aside."""
    writes: int = 0
    unlimited: bool = False
    """Is what is written now counted, and not held back? So it is at the end of a life."""

    def found(self, texts: Mapping[int, str], held: Mapping[int, Iterable[str]], layout: ShardLayout) -> None:
        """What stands, and how it was laid out. Shards whose workloads are not told are damaged."""
        self.layout = layout
        self.damaged = {shard: text for shard, text in texts.items() if shard not in held}
        self.standing = {shard: len(text.encode()) for shard, text in texts.items()}
        for shard, workloads in held.items():
            self.homes.moved(shard, workloads)

    def write(self, workloads: Collection[str], urgency: Urgency, *, unlimited: bool = False) -> int:
        """What is urgent, as far as the budget goes; how many shards were written. Raises NotNow and TooMuch; what was
        written stays so."""
        before, self.unlimited = self.writes, unlimited
        while True:
            try:
                self._write(workloads, urgency)
                break
            except _TooLarge as too_large:
                self.layout = self.layout.grown(too_large.held)
            except _NoRoom:
                break
        self.homes.forget(workloads)
        return self.writes - before

    @property
    def stored_bytes(self) -> int:
        """Of all shards together."""
        return sum(self.standing.values())

    def check(self, text: str, held: Sequence[str]) -> int:
        """The bytes of a text with these workloads that may be written now; `spend` says that it was."""
        size = len(text.encode())
        if size > self.limit:
            raise _TooLarge(held)
        if not self.unlimited and not self.budget.has_room(size + OVERHEAD_BYTES):
            raise _NoRoom
        return size

    def spend(self, size: int) -> None:
        """A text of so many bytes was written."""
        self.budget.spend(size + OVERHEAD_BYTES)

    def _write(self, workloads: Collection[str], urgency: Urgency) -> None:
        plan = self.homes.plan(self.layout, workloads)
        for shard in self.standing.keys() - plan.keys() - self.damaged.keys():
            self._drop(shard)  # nothing lives there; first, since where budgets are tight every write ends in _NoRoom
        leaving = {self.homes.of[w] for w in workloads if w in self.homes.of and not self._is_home(w)}
        for shard in self._in_order(plan, workloads, urgency, leaving):
            self._shard(shard, plan[shard], self._held(shard, plan[shard], workloads, leaving))

    def _in_order(
        self, plan: Mapping[int, Sequence[str]], workloads: Collection[str], urgency: Urgency, leaving: Collection[int]
    ) -> list[int]:
        """The shards to write: first those that take a workload from another, and of these last those that give as
        well, since then they have less to hold."""
        found = []
        for shard, placed in plan.items():
            held = self._held(shard, placed, workloads, leaving)
            gains = any(self.homes.of.get(workload) not in (None, shard) for workload in placed)
            urgent = urgency(shard, held) if held else 1.0
            if gains or urgent > 0:
                found.append((not gains, shard in leaving, -urgent, shard))
        return [shard for *_, shard in sorted(found)]

    def _held(
        self, shard: int, placed: Sequence[str], workloads: Collection[str], leaving: Collection[int]
    ) -> list[str]:
        """What has its place there, and what is there until its new place is written."""
        waiting = self.homes.waiting(shard, self.layout, workloads) if shard in leaving else []
        return sorted([*placed, *waiting])

    def _is_home(self, workload: str) -> bool:
        return self.homes.of.get(workload) == self.layout.place(workload)

    def _shard(self, shard: int, placed: Sequence[str], held: Sequence[str]) -> None:
        if not held:
            self._drop(shard)
            return
        self.before(held)
        text = self.render(held, self.layout)
        size = self.check(text, held)
        self._put(shard, text, placed)
        self.spend(size)
        self.standing[shard] = size
        self.wrote(shard, held)

    def _put(self, shard: int, text: str, placed: Sequence[str]) -> None:
        if shard in self.damaged:
            self.shelf.aside(shard, self.damaged[shard])
            del self.damaged[shard]
        self.shelf.put(shard, text)
        self.writes += 1
        self.homes.moved(shard, placed)

    def _drop(self, shard: int) -> None:
        if shard in self.standing and shard not in self.damaged:
            self.shelf.drop(shard)
            del self.standing[shard]


@dataclass(frozen=True, slots=True, order=True)
class DayName:
    """Which day a text is of (since 1970), and what tells it from others of that day."""

    day: int
    tag: str


class DailyShardBackend(Protocol):
    """Where they stand. Everything raises NotNow."""

    def load(self) -> Mapping[DayName, str]:
        """Name → text."""

    def put(self, name: DayName, text: str) -> None: ...

    def drop(self, name: DayName) -> None: ...


@dataclass(slots=True)
class StoredDays:
    """Those that stand. What is damaged among them stays where it is until its day is too old: nothing is written in
    its place."""

    shelf: DailyShardBackend
    sizes: dict[DayName, int] = field(default_factory=dict)

    @property
    def stored_bytes(self) -> int:
        """Of all together."""
        return sum(self.sizes.values())

    def load(self) -> Mapping[DayName, str]:
        """Name → text, of all that stand. Raises NotNow."""
        texts = self.shelf.load()
        self.sizes = {name: len(text.encode()) for name, text in texts.items()}
        return texts

    def put(self, day: int, text: str) -> None:
        """A text of that day, beside those that stand. Raises NotNow."""
        name = DayName(day, hashlib.sha256(text.encode()).hexdigest()[:12])
        self.shelf.put(name, text)
        self.sizes[name] = len(text.encode())

    def drop_before(self, day: int) -> int:
        """What is of days before that one goes; how many texts that were. Raises NotNow."""
        old = sorted(name for name in self.sizes if name.day < day)
        for name in old:
            self._drop(name)
        return len(old)

    def drop_oldest(self) -> bool:
        """One text of the oldest day goes; False where none stands. Raises NotNow."""
        oldest = min(self.sizes, default=None)
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None

    def _drop(self, name: DayName) -> None:
        self.shelf.drop(name)
        del self.sizes[name]


USAGE = "trimtab.dev/usage"
"""The label of checkpoints."""
USAGE_NAMES, RECOMMENDATION_NAMES = "trimtab-usage", "trimtab-recommendations"
"""What the ConfigMaps' names begin with."""
DAMAGED = "trimtab.dev/damaged"
"""The label of what was kept aside; nobody reads it but people."""


def usage(writer: Writer, namespace: str) -> ConfigMapShardBackend:
    """Checkpoints."""
    return ConfigMapShardBackend(writer, namespace, USAGE_NAMES, USAGE, "usage.json")


def days(writer: Writer, namespace: str) -> DailyShards:
    """Days that are over, of checkpoints, under the same label: who saves the ones saves the others."""
    return DailyShards(usage(writer, namespace))


def recommendations(writer: Writer, namespace: str) -> ConfigMapShardBackend:
    return ConfigMapShardBackend(writer, namespace, RECOMMENDATION_NAMES, LABEL, KEY)


@dataclass(frozen=True, slots=True)
class ConfigMapShardBackend:
    """`PREFIX-NNN`, label `LABEL: v1`, the text under one key."""

    writer: Writer
    namespace: str
    prefix: str
    label: str
    key: str

    def load(self) -> Mapping[int, str]:
        named = ((self._number(name), text) for name, text in self.texts().items())
        return {number: text for number, text in named if number is not None}

    def texts(self) -> Mapping[str, str]:
        """Name → text, whatever the names are."""
        source = ListSource(
            kind="ConfigMap", group_version="v1", plural="configmaps", labels=f"{self.label}=v1",
            namespace=self.namespace,
        )  # fmt: skip
        try:
            found = listing.observe(self.writer.client, (source,)).snapshot.all(ConfigMap)
        except KubeFault as error:
            raise StoreUnavailable(str(error)) from error
        return {one.metadata.name: one.data.get(self.key, "") for one in found}

    def _number(self, name: str) -> int | None:
        """None where a person gave it a name of their own: that is left alone."""
        prefix, _, number = name.rpartition("-")
        return int(number) if prefix == self.prefix and number.isdecimal() and len(number) >= 3 else None

    def put(self, shard: int, text: str) -> None:
        self.write(self._name(shard), text)

    def aside(self, shard: int, text: str) -> None:
        self._apply(f"{self._name(shard)}-damaged", text, {DAMAGED: "v1"})

    def drop(self, shard: int) -> None:
        self.remove(self._name(shard))

    def write(self, name: str, text: str) -> None:
        """A ConfigMap of this name, found again by its label."""
        self._apply(name, text, {self.label: "v1"})

    def remove(self, name: str) -> None:
        """The ConfigMap of this name."""
        try:
            objects.delete(self.writer, "ConfigMap", name, self.namespace)
        except KubeFault as error:
            raise StoreUnavailable(str(error)) from error

    def _name(self, shard: int) -> str:
        return f"{self.prefix}-{shard:03}"

    def _apply(self, name: str, text: str, labels: dict[str, str]) -> None:
        meta = {"name": name, "namespace": self.namespace, "labels": labels}
        try:
            objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": {self.key: text}})
        except KubeFault as error:
            raise StoreUnavailable(str(error)) from error


@dataclass(frozen=True, slots=True)
class DailyShards:
    """`PREFIX-day-DAY-HASH`: the day since 1970 and the beginning of the text's hash. What stands is never changed."""

    maps: ConfigMapShardBackend

    def load(self) -> Mapping[DayName, str]:
        """All that stand. Raises NotNow."""
        named = ((self._read(name), text) for name, text in self.maps.texts().items())
        return {found: text for found, text in named if found is not None}

    def put(self, name: DayName, text: str) -> None:
        """Raises NotNow."""
        self.maps.write(self._name(name), text)

    def drop(self, name: DayName) -> None:
        """Raises NotNow."""
        self.maps.remove(self._name(name))

    def _name(self, name: DayName) -> str:
        return f"{self.maps.prefix}-day-{name.day}-{name.tag}"

    def _read(self, name: str) -> DayName | None:
        found = re.fullmatch(rf"{re.escape(self.maps.prefix)}-day-([0-9]{{1,9}})-([0-9a-f]+)", name)
        return DayName(int(found[1]), found[2]) if found else None
