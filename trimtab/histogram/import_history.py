"""Restores a live history from any number of stored texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.checkpoint import POD_UNIT, Shard, StoredContainer, WindowPart
from trimtab.histogram.daily_window import DailyHistograms, pack_day, unpack_days
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import OomRecord
from trimtab.histogram.time_buckets import DAY, PEAK_INTERVAL_SECONDS, MemoryPeaks


@dataclass(slots=True)
class _DayCopy:
    """The copy of a day with the most values, among the copies in all stored texts."""

    total: int
    packed: bytes
    hours: int
    stored: bool
    """Whether this copy is from a text of that day alone."""


@dataclass(slots=True)
class _ResourceParts:
    """The parts of one resource of one container, collected from all texts."""

    first: int
    last: int
    days: dict[int, _DayCopy] = field(default_factory=dict)

    def add_part(self, part: WindowPart, *, stored: bool) -> None:
        self.first, self.last = min(self.first, part.first), max(self.last, part.last)
        for (day, counts), hours in zip(unpack_days(part.days), part.hours, strict=True):
            copy, total = self.days.get(day), counts.total_count
            # The copy with more values is the newer one; of equal copies the stored one, so that it is not stored
            # again.
            if copy is None or (total, stored) > (copy.total, copy.stored):
                packed = pack_day(day, counts, over=False)
                self.days[day] = _DayCopy(total, packed, hours | (copy.hours if copy else 0), stored)
            else:
                copy.hours |= hours

    def build_window(self, days: int) -> DailyHistograms:
        counts = {day: unpack_days(copy.packed)[0][1] for day, copy in self.days.items()}
        window = DailyHistograms.from_days(
            counts, {day: copy.hours for day, copy in self.days.items()}, self.first, self.last, days
        )
        for day, copy in self.days.items():
            if copy.stored:
                window.mark_stored(day)
        return window


@dataclass(slots=True)
class _RestoredParts:
    """The parts of all containers, collected from all texts."""

    windows: dict[tuple[ContainerKey, str], _ResourceParts] = field(default_factory=dict)
    running: dict[ContainerKey, tuple[int, StoredContainer]] = field(default_factory=dict)
    """Container → (time of its newest usage, its stored open peaks), from the text with the newest usage."""


def restore_history(history: LiveHistory, shards: Iterable[Shard]) -> None:
    """Restores the content of these shards into an empty history."""
    restored = _RestoredParts()
    for shard in shards:
        for container, stored in _stored_containers(shard):
            _collect_container(restored, history, container, stored, of_day=shard.day is not None)
        for namespace, second in shard.until.items():
            history.imported_until[namespace] = min(second, history.imported_until.get(namespace, second))
    for (container, resource), parts in restored.windows.items():
        history.restore_window(container, resource, parts.build_window(history.days))
    for container, (_, stored) in restored.running.items():
        # The open peaks of a container are restored. Peaks of a day that was already over when it was stored are left
        # out, because the text of that day includes them.
        memory = restored.windows.get((container, "memory"))
        over = {day for day, copy in memory.days.items() if copy.stored} if memory is not None else set()
        running = {
            pod: peak for pod, peak in stored.peaks.items() if peak[0] * PEAK_INTERVAL_SECONDS // DAY not in over
        }
        if running:
            history.open_peaks.setdefault(container, MemoryPeaks()).running.update(running)


def _stored_containers(shard: Shard) -> Iterable[tuple[ContainerKey, StoredContainer]]:
    for name, containers in shard.workloads.items():
        namespace, _, rest = name.partition("/")
        kind, _, workload = rest.partition("/")
        for container, stored in containers.items():
            yield ContainerKey(namespace, kind, workload, container), stored


def _collect_container(
    restored: _RestoredParts, history: LiveHistory, container: ContainerKey, stored: StoredContainer, *, of_day: bool
) -> None:
    newest = 0
    for resource in RESOURCES:
        part = stored.window_part(resource)
        if part is not None:
            parts = restored.windows.setdefault((container, resource), _ResourceParts(part.first, part.last))
            parts.add_part(part, stored=of_day)
            newest = max(newest, part.last)
    for pod, second in stored.kills.items():
        history.last_kills[container, pod] = max(second, history.last_kills.get((container, pod), second))
    if stored.oom is not None:
        second, used, count, last = stored.oom
        history.restore_oom_record(container, OomRecord(at=second, used=used, count=count, last=last))
    for resource, pods in stored.pods.items():
        averages = {name: (last, count, mean * POD_UNIT[resource]) for name, (last, count, mean) in pods.items()}
        history.pod_averages.merge_averages((container, resource), averages)
    if stored.peaks and newest >= restored.running.get(container, (0, stored))[0]:
        restored.running[container] = newest, stored
