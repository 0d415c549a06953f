"""What is known well enough, for those who give requests; of the rest, what is missing.

Of which containers too little is known, and what is missing: for whoever asks why there is no recommendation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import msgspec

from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.recommendation import ContainerUsage, ShardLayout, Workloads, decode, encode
from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.checkpoint import workload
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.sharded_configmaps import ShardBackend, ShardedStore
from trimtab.recommender.write_budget import WriteBudget
from trimtab.sizing.recommendation import change, usage
from trimtab.sizing.statistics import UsageStatistics, seen


@dataclass(frozen=True, slots=True)
class ContainerRecommendations:
    """One look at the whole diary."""

    known: Workloads
    missing: Mapping[ContainerKey, Mapping[str, NotYet]]
    """Of which resources too little is known, and what is missing."""


def verdicts(diary: LiveHistory, now: int) -> ContainerRecommendations:
    known: Workloads = {}
    missing: dict[ContainerKey, dict[str, NotYet]] = {}
    for container in diary.containers():
        found = {resource: _seen(diary, container, resource, now) for resource in RESOURCES}
        told = usage(found["cpu"], found["memory"], now=now, last=_last_sample(diary, container))
        if told is not None:
            known.setdefault(workload(container), {})[container.name] = told
        lacking = {resource: one for resource, one in found.items() if isinstance(one, NotYet)}
        if lacking:
            missing[container] = lacking
    return ContainerRecommendations(known, missing)


def _seen(diary: LiveHistory, container: ContainerKey, resource: str, now: int) -> UsageStatistics | NotYet:
    return seen(
        resource, diary.window(container, resource), now, diary.running(container, resource), kind=container.kind,
        running_seconds=diary.window(container, "cpu").seconds, oom=diary.oom_records.get(container),
        pods=diary.pod_uses(container, resource),
    )  # fmt: skip


def _last_sample(diary: LiveHistory, container: ContainerKey) -> int | None:
    """The newest moment at which the container was seen: cpu is seen at every moment, memory once in an interval."""
    held = (diary.windows.get((container, resource)) for resource in RESOURCES)
    return max((window.last for window in held if window is not None and window.last), default=None)


def _knows_less(new: ContainerUsage, old: ContainerUsage) -> bool:
    """Whether a young history would take the place of a longer one: after a loss, what was known counts for a day."""
    for resource in RESOURCES:
        after, before = new.of(resource), old.of(resource)
        if before is not None and not before.young and (after is None or after.young):
            return True
    return False


SHARD_BYTES = 64_000
"""Of one shard at the most: about a hundred containers, all of which are written where one of them changed."""


@dataclass(slots=True)
class Publisher:
    """Not for two threads."""

    shelf: ShardBackend
    diary: LiveHistory
    tolerance: float
    budget: WriteBudget
    lossy: bool = False
    """Some of the checkpoints could not be read: who is not in the diary may still be there."""
    cabinet: ShardedStore = field(init=False)
    published: dict[int, Workloads] = field(default_factory=dict)
    _now: Workloads = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cabinet = ShardedStore(self.shelf, self._render, self.budget, self._wrote, limit=SHARD_BYTES)

    def open(self) -> tuple[Unreadable, ...]:
        """What is published already. Raises NotNow."""
        told, texts = [], self.shelf.load()
        for number, text in texts.items():
            found = decode(f"recommendations {number}", text)
            if isinstance(found, Unreadable):
                told.append(found)
            else:
                self.published[number] = found
        count = 1 << max(texts, default=0).bit_length()
        self.cabinet.found(texts, self.published, ShardLayout(max(1, count), by_workload=True))
        return tuple(told)

    def publish(self, found: ContainerRecommendations, now: int, *, all_: bool = False) -> int:
        """Shards that say something else now, what changed most first, as far as the budget goes or all of them; how
        many were written. Raises NotNow."""
        self._now = {name: dict(containers) for name, containers in found.known.items()}
        for name, container, old in self._standing():
            new = self._now.get(name, {}).get(container)
            if new is None and not self._is_gone(name, now):
                self._now.setdefault(name, {})[container] = old
            elif new is not None and _knows_less(new, old):
                self._now[name][container] = old
        written = self.cabinet.write(self._now.keys(), self._change, unlimited=all_)
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

    def _change(self, shard: int, held: Sequence[str]) -> float:
        """How much of what it says is different now, beyond the tolerance: see `change`."""
        before = self.published.get(shard)
        if before is None or before.keys() != set(held):
            return inf
        return max((self._changed(before[name], self._now[name]) for name in held), default=0.0)

    def _changed(self, before: Mapping[str, ContainerUsage], after: Mapping[str, ContainerUsage]) -> float:
        if before.keys() != after.keys():
            return inf
        return max((change(before[name], after[name], self.tolerance) for name in after), default=0.0)

    def _render(self, workloads: Sequence[str], _layout: ShardLayout) -> str:
        return encode({name: self._now[name] for name in workloads})

    def _wrote(self, shard: int, held: Sequence[str]) -> None:
        self.published[shard] = {name: self._now[name] for name in held}


class MissingRecommendation(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of one container."""

    container: str
    """NAMESPACE/KIND/NAME/CONTAINER."""
    resource: str
    reason: str
    text: str
    have: str
    need: str


def page(found: ContainerRecommendations | None) -> bytes:
    """JSON; `leading` is false in a replica that waits, which knows nothing."""
    held = found.missing.items() if found else ()
    lines = [_line(container, resource, one) for container, lacking in held for resource, one in lacking.items()]
    return msgspec.json.encode({"leading": found is not None, "missing": lines}) + b"\n"


def _line(container: ContainerKey, resource: str, found: NotYet) -> MissingRecommendation:
    return MissingRecommendation(
        container=str(container), resource=resource, reason=found.reason.code.name, text=str(found.reason),
        have=found.have, need=found.need,
    )  # fmt: skip
