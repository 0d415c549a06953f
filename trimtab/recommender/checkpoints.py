"""The diary, kept in the cluster: each shard every ten minutes and when we stop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.shards import Layout
from trimtab.recommender.cabinet import Cabinet, Shelf
from trimtab.sketch import stored
from trimtab.sketch.book import Container
from trimtab.sketch.diary import Diary
from trimtab.sketch.stored import Shard, Workloads


@dataclass(slots=True)
class Checkpoints:
    """Not for two threads."""

    shelf: Shelf
    diary: Diary
    every: float
    """Seconds between two writes of one shard."""
    elapsed: Callable[[], float]
    cabinet: Cabinet = field(init=False)
    _at: dict[int, float] = field(default_factory=dict)
    _by: dict[str, list[Container]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cabinet = Cabinet(self.shelf, self._render, self._wrote)

    def open(self) -> tuple[Unreadable, ...]:
        """Take up what was kept; what of it makes no sense. Raises NotNow."""
        found, damaged, told = self._read(self.shelf.load())
        for shard in _newest(found).values():
            stored.load(self.diary, shard)
        layout = _layout(found.values())
        if damaged:
            self.diary.lose(_touched(self.diary.until, found, damaged.keys(), layout))
        self.cabinet.found({number: shard.workloads for number, shard in found.items()}, damaged, layout)
        now = self.elapsed()
        for order, number in enumerate(sorted(found)):  # what was kept just now needs no hurry, and not all at once
            self._at[number] = now - self.every * order / len(found)
        return told

    @staticmethod
    def _read(texts: Mapping[int, str]) -> tuple[dict[int, Shard], dict[int, str], tuple[Unreadable, ...]]:
        found, damaged, told = {}, {}, []
        for number, text in texts.items():
            shard = stored.decode(f"checkpoint {number}", text)
            if isinstance(shard, Unreadable):
                damaged[number] = text
                told.append(shard)
            else:
                found[number] = shard
        return found, damaged, tuple(told)

    def write(self, *, all_: bool = False) -> int:
        """What is due, or all of it; how many shards were written. Raises NotNow."""
        self._by = {}
        for container in self.diary.containers():
            self._by.setdefault(stored.workload(container), []).append(container)

        def due(shard: int, _held: Sequence[str]) -> bool:
            return all_ or self.elapsed() - self._at.get(shard, float("-inf")) >= self.every

        return self.cabinet.write(self._by.keys(), due)

    def _render(self, workloads: Sequence[str], layout: Layout) -> str:
        containers = [container for name in workloads for container in self._by[name]]
        return stored.encode(self.diary, containers, layout)

    def _wrote(self, shard: int, _held: Sequence[str]) -> None:
        self._at[shard] = self.elapsed()


def _layout(found: Iterable[Shard]) -> Layout:
    """The one of those that stand; of two, while they change, the larger."""
    count, widths = 1, dict[str, int]()
    for shard in found:
        count = max(count, shard.count)
        for namespace, width in (shard.widths or {}).items():
            widths[namespace] = max(width, widths.get(namespace, 1))
    return Layout(count, widths)


def _touched(
    namespaces: Iterable[str], found: Mapping[int, Shard], damaged: Collection[int], layout: Layout
) -> list[str]:
    """Of which a part may have stood in a damaged shard: all of them while shards were changing their number. What
    stood there alone is not among them, and is asked for anew by itself."""
    changing = any(shard.count != layout.count for shard in found.values())
    return [name for name in namespaces if changing or not layout.places(name).isdisjoint(damaged)]


def _newest(found: Mapping[int, Shard]) -> dict[int, Shard]:
    """Whoever died while workloads changed their place left some twice: what was seen last counts."""
    best: dict[str, tuple[int, int]] = {}
    twice = _twice(found)
    for number, shard in found.items():
        for name in shard.workloads.keys() & twice:
            best[name] = max(best.get(name, (-1, -1)), (_last(name, shard), number))
    return {
        number: Shard(schema=shard.schema, until=shard.until, workloads=_but(shard.workloads, best, number))
        for number, shard in found.items()
    }


def _twice(found: Mapping[int, Shard]) -> set[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for shard in found.values():
        twice |= seen & shard.workloads.keys()
        seen |= shard.workloads.keys()
    return twice


def _last(name: str, shard: Shard) -> int:
    diary = Diary()
    stored.load(diary, Shard(schema=shard.schema, workloads={name: shard.workloads[name]}))
    return max((window.last for window in diary.windows.values()), default=0)


def _but(workloads: Workloads, best: Mapping[str, tuple[int, int]], number: int) -> Workloads:
    return {name: held for name, held in workloads.items() if name not in best or best[name][1] == number}
