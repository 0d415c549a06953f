"""Stored texts, as many as there are, back into a diary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.checkpoint import POD_UNIT, Shard, StoredContainer, WindowPart
from trimtab.histogram.daily_window import DailyHistograms, pack, unpack
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import OomRecord
from trimtab.histogram.time_buckets import DAY, INTERVAL, MemoryPeaks


@dataclass(slots=True)
class _Day:
    """The copy of one day that counts the most values."""

    total: int
    packed: bytes
    hours: int
    stored: bool
    """Does a text of that day hold it, or one of what changes?"""


@dataclass(slots=True)
class _Found:
    """One resource of one container, from all texts."""

    first: int
    last: int
    days: dict[int, _Day] = field(default_factory=dict)

    def add(self, part: WindowPart, *, stored: bool) -> None:
        self.first, self.last = min(self.first, part.first), max(self.last, part.last)
        for (day, counts), hours in zip(unpack(part.days), part.hours, strict=True):
            known, total = self.days.get(day), counts.total
            if known is None or (total, stored) > (known.total, known.stored):
                packed = pack(day, counts, over=False)
                self.days[day] = _Day(total, packed, hours | (known.hours if known else 0), stored)
            else:
                known.hours |= hours

    def window(self, days: int) -> DailyHistograms:
        counts = {day: unpack(found.packed)[0][1] for day, found in self.days.items()}
        window = DailyHistograms.of(
            counts, {day: found.hours for day, found in self.days.items()}, self.first, self.last, days
        )
        for day, found in self.days.items():
            if found.stored:
                window.set_stored(day)
        return window


@dataclass(slots=True)
class _Gathered:
    windows: dict[tuple[ContainerKey, str], _Found] = field(default_factory=dict)
    running: dict[ContainerKey, tuple[int, StoredContainer]] = field(default_factory=dict)
    """What tells of the peaks that run, of several the one that saw last, and when that was."""


def load(diary: LiveHistory, shards: Iterable[Shard]) -> None:
    """All of what `decode` found sound, into an empty diary."""
    gathered = _Gathered()
    for shard in shards:
        for container, stored in _containers(shard):
            _gather(gathered, diary, container, stored, of_day=shard.day is not None)
        for namespace, at in shard.until.items():
            diary.until[namespace] = min(at, diary.until.get(namespace, at))
    for (container, resource), found in gathered.windows.items():
        diary.put(container, resource, found.window(diary.days))
    for container, (_, stored) in gathered.running.items():
        _run(diary, container, stored, gathered.windows.get((container, "memory")))


def _containers(shard: Shard) -> Iterable[tuple[ContainerKey, StoredContainer]]:
    for name, containers in shard.workloads.items():
        namespace, _, rest = name.partition("/")
        kind, _, own = rest.partition("/")
        for container, stored in containers.items():
            yield ContainerKey(namespace, kind, own, container), stored


def _gather(
    gathered: _Gathered, diary: LiveHistory, container: ContainerKey, stored: StoredContainer, *, of_day: bool
) -> None:
    seen = 0
    for resource in RESOURCES:
        part = stored.part(resource)
        if part is not None:
            found = gathered.windows.setdefault((container, resource), _Found(part.first, part.last))
            found.add(part, stored=of_day)
            seen = max(seen, part.last)
    for pod, at in stored.kills.items():
        diary.kills[container, pod] = max(at, diary.kills.get((container, pod), at))
    if stored.oom is not None:
        at, used, count, last = stored.oom
        diary.put_oom_record(container, OomRecord(at=at, used=used, count=count, last=last))
    for resource, pods in stored.pods.items():
        averages = {name: (last, count, mean * POD_UNIT[resource]) for name, (last, count, mean) in pods.items()}
        diary.pods.take((container, resource), averages)
    if stored.peaks and seen >= gathered.running.get(container, (0, stored))[0]:
        gathered.running[container] = seen, stored


def _run(diary: LiveHistory, container: ContainerKey, stored: StoredContainer, memory: _Found | None) -> None:
    """The peaks that ran, but for those of a day that was over when it was stored: there they are counted."""
    over = {day for day, found in memory.days.items() if found.stored} if memory is not None else set()
    running = {pod: peak for pod, peak in stored.peaks.items() if peak[0] * INTERVAL // DAY not in over}
    if running:
        diary.peaks.setdefault(container, MemoryPeaks()).running.update(running)
