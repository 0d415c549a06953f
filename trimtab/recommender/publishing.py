"""What is known well enough, for those who give requests; of the rest, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.recommendation import ContainerUsage, Workloads, decode, encode
from trimtab.cluster.shards import Layout
from trimtab.recommender.cabinet import Cabinet, Shelf
from trimtab.sizing.enough import Seen, seen
from trimtab.sizing.publish import differs, usage
from trimtab.sketch.book import RESOURCES, Container
from trimtab.sketch.diary import Diary
from trimtab.sketch.hours import DAY
from trimtab.sketch.stored import workload


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One look at the whole diary."""

    known: Workloads
    missing: Mapping[Container, Mapping[str, NotYet]]
    """Of which resources too little is known, and what is missing."""


def verdicts(diary: Diary, now: int) -> Verdicts:
    known: Workloads = {}
    missing: dict[Container, dict[str, NotYet]] = {}
    for container in diary.containers():
        found = {resource: _seen(diary, container, resource, now) for resource in RESOURCES}
        told = usage(found["cpu"], found["memory"])
        if told is not None:
            known.setdefault(workload(container), {})[container.name] = told
        lacking = {resource: one for resource, one in found.items() if isinstance(one, NotYet)}
        if lacking:
            missing[container] = lacking
    return Verdicts(known, missing)


def _seen(diary: Diary, container: Container, resource: str, now: int) -> Seen | NotYet:
    running = diary.running(container, resource)
    return seen(resource, diary.window(container, resource), now, running, kind=container.kind)


@dataclass(slots=True)
class Publishing:
    """Not for two threads."""

    shelf: Shelf
    diary: Diary
    tolerance: float
    lossy: bool = False
    """Some of the checkpoints could not be read: who is not in the diary may still be there."""
    cabinet: Cabinet = field(init=False)
    published: dict[int, Workloads] = field(default_factory=dict)
    _now: Workloads = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cabinet = Cabinet(self.shelf, self._render, self._wrote)

    def open(self) -> tuple[Unreadable, ...]:
        """What is published already. Raises NotNow."""
        told, damaged, texts = [], {}, self.shelf.load()
        for number, text in texts.items():
            found = decode(f"recommendations {number}", text)
            if isinstance(found, Unreadable):
                told.append(found)
                damaged[number] = text
            else:
                self.published[number] = found
        count = 1 << max(texts, default=0).bit_length()
        self.cabinet.found(self.published, damaged, Layout(max(1, count)))
        return tuple(told)

    def publish(self, found: Verdicts, now: int) -> int:
        """Shards that say something else now; how many were written. Raises NotNow."""
        self._now = {name: dict(containers) for name, containers in found.known.items()}
        for name, container, old in self._standing():
            if container not in self._now.get(name, {}) and not self._is_gone(name, now):
                self._now.setdefault(name, {})[container] = old
        written = self.cabinet.write(self._now.keys(), self._due)
        self.published = {shard: held for shard, held in self.published.items() if shard in self.cabinet.standing}
        return written

    def _standing(self) -> Iterator[tuple[str, str, ContainerUsage]]:
        for workloads in self.published.values():
            for name, containers in workloads.items():
                for container, known in containers.items():
                    yield name, container, known

    def _is_gone(self, name: str, now: int) -> bool:
        """Would the diary know of it? Only if it reaches back over the whole window, in this namespace at least."""
        namespace = name.partition("/")[0]
        inside = [w.first for (one, _), w in self.diary.windows.items() if one.namespace == namespace and w.last]
        if not inside and self.lossy:
            return False
        firsts = inside or [w.first for w in self.diary.windows.values() if w.last]
        return bool(firsts) and now - min(firsts) >= (self.diary.days - 1) * DAY

    def _due(self, shard: int, held: Sequence[str]) -> bool:
        """Does it say something else, beyond the tolerance?"""
        before = self.published.get(shard)
        if before is None or before.keys() != set(held):
            return True
        return any(self._differs(before[name], self._now[name]) for name in held)

    def _differs(self, before: Mapping[str, ContainerUsage], after: Mapping[str, ContainerUsage]) -> bool:
        if before.keys() != after.keys():
            return True
        return any(differs(before[name], after[name], self.tolerance) for name in after)

    def _render(self, workloads: Sequence[str], _layout: Layout) -> str:
        return encode({name: self._now[name] for name in workloads})

    def _wrote(self, shard: int, held: Sequence[str]) -> None:
        self.published[shard] = {name: self._now[name] for name in held}
