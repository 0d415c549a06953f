"""Stores facts about workloads in shards, each of which is a ConfigMap.

A shard is written if it has changed and the budget allows it; more urgent shards come first, and the others wait for
the next round. A workload that moves to another shard is written there before it is removed from its old shard. A
damaged shard is copied under another name before it is overwritten.

A day that is over is stored in parts of its own, each of which is written once, and removed when no window includes the
day any more.

All of these ConfigMaps are in Trimtab's namespace, and only Trimtab writes them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.recommendation import (
    MAX_SHARD_BYTES,
    PAYLOAD_KEY,
    RECOMMENDATIONS_LABEL,
    ShardAssignment,
    ShardLayout,
)
from trimtab.cluster.snapshot import ConfigMap
from trimtab.kube import listing, objects
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import ListSource
from trimtab.recommender.write_budget import OVERHEAD_BYTES, WriteBudget

Render = Callable[[Sequence[str], ShardLayout], str]
"""A function of (workloads, layout of all workloads) that returns the text of a shard."""
OnWrite = Callable[[int, Sequence[str]], None]
"""A function that is called for every shard that was written, with its workloads."""
Urgency = Callable[[int, Sequence[str]], float]
"""A function that returns how urgent it is to write a shard with these workloads; 0 means that the shard is not to be
written now."""
BeforeWrite = Callable[[Sequence[str]], None]
"""A function that is called before a shard with these workloads is written, and writes what must be stored first. It
raises the same errors as `ShardedStore.check_size`."""


class StoreUnavailable(Exception):
    """Raised if the API server did not complete an operation; it is tried again in the next round."""


class _BudgetExhausted(Exception):
    """Raised if the write budget of the last ten minutes is used up."""


class _TextTooLarge(Exception):
    """Raised if a text with these workloads is larger than a shard may be."""

    def __init__(self, workloads: Sequence[str]) -> None:
        super().__init__()
        self.held = workloads


class ShardBackend(Protocol):
    """Where shards are stored. Every method raises StoreUnavailable."""

    def load_texts(self) -> Mapping[int, str]:
        """Returns shard → its text."""

    def store_text(self, shard: int, text: str) -> None: ...

    def delete_text(self, shard: int) -> None: ...

    def store_damaged(self, shard: int, text: str) -> None:
        """Stores this text under a name that is not read as a shard."""


@dataclass(slots=True)
class ShardedStore:
    """The shards of one kind of facts, and how they are written in a round."""

    backend: ShardBackend
    render: Render
    budget: WriteBudget
    on_write: OnWrite = lambda _shard, _workloads: None
    before_write: BeforeWrite = lambda _workloads: None
    max_bytes: int = MAX_SHARD_BYTES
    layout: ShardLayout = field(default_factory=ShardLayout)
    assignment: ShardAssignment = field(default_factory=ShardAssignment)
    stored_sizes: dict[int, int] = field(default_factory=dict)
    """Stored shard → its size in bytes."""
    damaged_texts: dict[int, str] = field(default_factory=dict)
    """Shard that cannot be decoded → its text, until a copy is stored."""
    write_count: int = 0
    unlimited: bool = False
    """Whether writes are only counted and not limited by the budget, as at the end of the process."""

    def set_stored(
        self, texts: Mapping[int, str], workloads_by_shard: Mapping[int, Iterable[str]], layout: ShardLayout
    ) -> None:
        """Sets which texts are stored, with their workloads and layout. A text without an entry in `workloads_by_shard`
        is damaged."""
        self.layout = layout
        self.damaged_texts = {shard: text for shard, text in texts.items() if shard not in workloads_by_shard}
        self.stored_sizes = {shard: len(text.encode()) for shard, text in texts.items()}
        for shard, workloads in workloads_by_shard.items():
            self.assignment.record_move(shard, workloads)

    def write_urgent(self, workloads: Collection[str], urgency: Urgency, *, unlimited: bool = False) -> int:
        """Writes the urgent shards, as far as the budget allows. Returns how many were written. Raises StoreUnavailable
        and ShardOverflow; the shards that were written before stay written."""
        before, self.unlimited = self.write_count, unlimited
        while True:
            try:
                self._write(workloads, urgency)
                break
            except _TextTooLarge as too_large:
                # More shards for these workloads; everything that is written by now stays valid, since a moved workload
                # is written to its new shard first.
                self.layout = self.layout.with_more_shards(too_large.held)
            except _BudgetExhausted:
                break
        self.assignment.retain_only(workloads)
        return self.write_count - before

    @property
    def stored_bytes(self) -> int:
        """The size of all stored shards in bytes."""
        return sum(self.stored_sizes.values())

    def check_size(self, text: str, workloads: Sequence[str]) -> int:
        """Returns the size of a text with these workloads if it may be written now, otherwise raises _BudgetExhausted
        or _TextTooLarge. Call `spend` after writing the text."""
        size = len(text.encode())
        if size > self.max_bytes:
            raise _TextTooLarge(workloads)
        if not self.unlimited and not self.budget.has_room(size + OVERHEAD_BYTES):
            raise _BudgetExhausted
        return size

    def spend(self, size: int) -> None:
        """Records in the budget that a text of this size was written."""
        self.budget.spend(size + OVERHEAD_BYTES)

    def _write(self, workloads: Collection[str], urgency: Urgency) -> None:
        plan = self.assignment.plan_shards(self.layout, workloads)
        # Shards without workloads are removed first: where the budget is tight, every round ends in _BudgetExhausted.
        for shard in self.stored_sizes.keys() - plan.keys() - self.damaged_texts.keys():
            self._drop(shard)
        losing = {
            self.assignment.shard_by_workload[workload]
            for workload in workloads
            if workload in self.assignment.shard_by_workload
            and self.assignment.shard_by_workload.get(workload) != self.layout.shard_of(workload)
        }
        for shard in self._ordered_shards(plan, workloads, urgency, losing):
            self._write_shard(shard, plan[shard], self._workloads_in(shard, plan[shard], workloads, losing))

    def _ordered_shards(
        self, plan: Mapping[int, Sequence[str]], workloads: Collection[str], urgency: Urgency, losing: Collection[int]
    ) -> list[int]:
        """Returns the shards in the order in which to write them. Shards that get a workload from another shard come
        first. Among these, the shards that also lose workloads come last, because by then they hold fewer."""
        ranked = []
        for shard, placed in plan.items():
            workloads_in = self._workloads_in(shard, placed, workloads, losing)
            gains = any(self.assignment.shard_by_workload.get(workload) not in (None, shard) for workload in placed)
            shard_urgency = urgency(shard, workloads_in) if workloads_in else 1.0
            if gains or shard_urgency > 0:
                ranked.append((not gains, shard in losing, -shard_urgency, shard))
        return [shard for *_, shard in sorted(ranked)]

    def _workloads_in(
        self, shard: int, placed: Sequence[str], workloads: Collection[str], losing: Collection[int]
    ) -> list[str]:
        """Returns the workloads to write into a shard: those that belong to it, and those that it keeps until their new
        shard is written."""
        waiting = self.assignment.workloads_to_move(shard, self.layout, workloads) if shard in losing else []
        return sorted([*placed, *waiting])

    def _write_shard(self, shard: int, placed: Sequence[str], workloads: Sequence[str]) -> None:
        if not workloads:
            self._drop(shard)
            return
        self.before_write(workloads)
        text = self.render(workloads, self.layout)
        size = self.check_size(text, workloads)
        self._put_text(shard, text, placed)
        self.spend(size)
        self.stored_sizes[shard] = size
        self.on_write(shard, workloads)

    def _put_text(self, shard: int, text: str, placed: Sequence[str]) -> None:
        if shard in self.damaged_texts:
            # The copy is stored before the shard is overwritten: an error in between loses nothing.
            self.backend.store_damaged(shard, self.damaged_texts[shard])
            del self.damaged_texts[shard]
        self.backend.store_text(shard, text)
        self.write_count += 1
        self.assignment.record_move(shard, placed)

    def _drop(self, shard: int) -> None:
        if shard in self.stored_sizes and shard not in self.damaged_texts:
            self.backend.delete_text(shard)
            del self.stored_sizes[shard]


@dataclass(frozen=True, slots=True, order=True)
class DayName:
    """Names a text of one day: the day (since 1970), and a tag that distinguishes it from other texts of the same
    day."""

    day: int
    tag: str


class DailyShardBackend(Protocol):
    """Where the texts of single days are stored. Every method raises StoreUnavailable."""

    def load_texts(self) -> Mapping[DayName, str]:
        """Returns name → text."""

    def store_text(self, name: DayName, text: str) -> None: ...

    def delete_text(self, name: DayName) -> None: ...


@dataclass(slots=True)
class StoredDays:
    """The stored texts of single days. A damaged text stays until its day is too old, because no other text replaces
    it."""

    backend: DailyShardBackend
    sizes: dict[DayName, int] = field(default_factory=dict)

    @property
    def stored_bytes(self) -> int:
        """The size of all these texts in bytes."""
        return sum(self.sizes.values())

    def load_texts(self) -> Mapping[DayName, str]:
        """Returns name → text for all stored texts. Raises StoreUnavailable."""
        texts = self.backend.load_texts()
        self.sizes = {name: len(text.encode()) for name, text in texts.items()}
        return texts

    def store_day(self, day: int, text: str) -> None:
        """Stores another text for this day. Raises StoreUnavailable."""
        name = DayName(day, hashlib.sha256(text.encode()).hexdigest()[:12])
        self.backend.store_text(name, text)
        self.sizes[name] = len(text.encode())

    def drop_before(self, day: int) -> int:
        """Removes the texts of earlier days, and returns how many. Raises StoreUnavailable."""
        old = sorted(name for name in self.sizes if name.day < day)
        for name in old:
            self._drop(name)
        return len(old)

    def drop_oldest(self) -> bool:
        """Removes one text of the oldest day. Returns False if no texts are stored. Raises StoreUnavailable."""
        oldest = min(self.sizes, default=None)
        if oldest is not None:
            self._drop(oldest)
        return oldest is not None

    def _drop(self, name: DayName) -> None:
        self.backend.delete_text(name)
        del self.sizes[name]


USAGE_LABEL = "trimtab.dev/usage"
"""The label of the ConfigMaps with checkpoints."""
USAGE_NAMES, RECOMMENDATION_NAMES = "trimtab-usage", "trimtab-recommendations"
"""The prefixes of the names of ConfigMaps with usage, and of those with recommendations."""
DAMAGED_LABEL = "trimtab.dev/damaged"
"""The label of copies of damaged shards, which no process reads."""


def checkpoint_backend(writer: Writer, namespace: str) -> ConfigMapShardBackend:
    """Returns the backend for checkpoints."""
    return ConfigMapShardBackend(writer, namespace, USAGE_NAMES, USAGE_LABEL, "usage.json")


def day_backend(writer: Writer, namespace: str) -> DailyShards:
    """Returns the backend for texts of single days. They have the same label as checkpoints, so that a backup by label
    includes both."""
    return DailyShards(checkpoint_backend(writer, namespace))


def recommendation_backend(writer: Writer, namespace: str) -> ConfigMapShardBackend:
    """Returns the backend for recommendations."""
    return ConfigMapShardBackend(writer, namespace, RECOMMENDATION_NAMES, RECOMMENDATIONS_LABEL, PAYLOAD_KEY)


@dataclass(frozen=True, slots=True)
class ConfigMapShardBackend:
    """Stores texts in ConfigMaps `PREFIX-NNN` with the label `LABEL: v1`, under one key."""

    writer: Writer
    namespace: str
    prefix: str
    label: str
    key: str

    def load_texts(self) -> Mapping[int, str]:
        """Returns shard → its text. Raises StoreUnavailable."""
        numbered = ((self._shard_number(name), text) for name, text in self.texts_by_name().items())
        return {number: text for number, text in numbered if number is not None}

    def texts_by_name(self) -> Mapping[str, str]:
        """Returns name → text for all ConfigMaps with the label, whatever their names are."""
        source = ListSource(
            kind="ConfigMap",
            group_version="v1",
            plural="configmaps",
            label_selector=f"{self.label}=v1",
            namespace=self.namespace,
        )
        try:
            config_maps = listing.list_kinds(self.writer.client, (source,)).snapshot.objects_of(ConfigMap)
        except KubeFault as error:
            raise StoreUnavailable(str(error)) from error
        return {config_map.metadata.name: config_map.data.get(self.key, "") for config_map in config_maps}

    def _shard_number(self, name: str) -> int | None:
        """Returns the number of the shard with this name, or None if the name has another form; such a ConfigMap is not
        touched."""
        prefix, _, number = name.rpartition("-")
        return int(number) if prefix == self.prefix and number.isdecimal() and len(number) >= 3 else None

    def store_text(self, shard: int, text: str) -> None:
        self.apply_config_map(self._name(shard), text)

    def store_damaged(self, shard: int, text: str) -> None:
        self._apply(f"{self._name(shard)}-damaged", text, {DAMAGED_LABEL: "v1"})

    def delete_text(self, shard: int) -> None:
        self.delete_config_map(self._name(shard))

    def apply_config_map(self, name: str, text: str) -> None:
        """Applies a ConfigMap with this name and text, and with the label."""
        self._apply(name, text, {self.label: "v1"})

    def delete_config_map(self, name: str) -> None:
        """Deletes the ConfigMap with this name. Raises StoreUnavailable."""
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
    """Stores texts of single days in ConfigMaps `PREFIX-day-DAY-HASH`, with the day since 1970 and the beginning of the
    text's hash. A stored text is never changed."""

    config_maps: ConfigMapShardBackend

    def load_texts(self) -> Mapping[DayName, str]:
        """Returns name → text for all stored texts. Raises StoreUnavailable."""
        parsed = ((self._parse_name(name), text) for name, text in self.config_maps.texts_by_name().items())
        return {day_name: text for day_name, text in parsed if day_name is not None}

    def store_text(self, name: DayName, text: str) -> None:
        """Stores a text under this name. Raises StoreUnavailable."""
        self.config_maps.apply_config_map(self._name(name), text)

    def delete_text(self, name: DayName) -> None:
        """Removes the text with this name. Raises StoreUnavailable."""
        self.config_maps.delete_config_map(self._name(name))

    def _name(self, name: DayName) -> str:
        return f"{self.config_maps.prefix}-day-{name.day}-{name.tag}"

    def _parse_name(self, name: str) -> DayName | None:
        match = re.fullmatch(rf"{re.escape(self.config_maps.prefix)}-day-([0-9]{{1,9}})-([0-9a-f]+)", name)
        return DayName(int(match[1]), match[2]) if match else None
