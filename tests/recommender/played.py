"""A shelf, a source of usage and a clock that are played; a process on them that can be killed at any write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from tests.build import owner_key
from trimtab.cluster.recommendation import ContainerUsage, Recommendations, Workloads, decode
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.live_history import HistoryImport, LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.checkpointer import Checkpointer
from trimtab.recommender.collector import Alive
from trimtab.recommender.loop import Loop
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.pod_watcher import PodWatchState
from trimtab.recommender.publisher import Publisher
from trimtab.recommender.sharded_configmaps import DayName, StoreUnavailable
from trimtab.recommender.write_budget import WriteBudget
from trimtab.runtime import log
from trimtab.usage.errors import UnreachableSource
from trimtab.usage.owners import OwnerIndex

START = 20_000 * DAY
MI = 1 << 20


class Killed(BaseException):
    """The process is no more."""


@dataclass
class Shelf:
    """ConfigMaps that are played. `kill_at`: the number of the write at which the process dies: before it, so that
    it never comes to be, or after it, so that nobody is told."""

    stored: dict[int, str] = field(default_factory=dict)
    kept: dict[int, str] = field(default_factory=dict)
    """Aside."""
    writes: list[int] = field(default_factory=list)
    count: int = 0
    """Of all writes, of shards and of days."""
    kill_at: int | None = None
    kill_after: bool = False
    down: bool = False
    fence: Alive = lambda: True

    def load_texts(self) -> Mapping[int, str]:
        self._asked()
        return dict(self.stored)

    def store_text(self, shard: int, text: str) -> None:
        with self.writing():
            self.writes.append(shard)
            self.stored[shard] = text

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One write, of a shard or of a day."""
        self._asked()
        self.count += 1
        dies = self.count - 1 == self.kill_at
        if dies and not self.kill_after:
            raise Killed
        yield
        if dies:
            raise Killed

    def delete_text(self, shard: int) -> None:
        self._asked()
        del self.stored[shard]

    def store_damaged(self, shard: int, text: str) -> None:
        self._asked()
        self.kept[shard] = text

    def _asked(self) -> None:
        if self.down or not self.fence():
            raise StoreUnavailable("nobody answers")


@dataclass
class DayShelf:
    """Days that are over, written by the hand that writes `shelf`: killed, down and fenced as that is."""

    shelf: Shelf
    stored: dict[DayName, str] = field(default_factory=dict)
    puts: int = 0

    def load_texts(self) -> Mapping[DayName, str]:
        self.shelf._asked()
        return dict(self.stored)

    def store_text(self, name: DayName, text: str) -> None:
        assert name not in self.stored, "a day is written once"
        with self.shelf.writing():
            self.stored[name] = text
            self.puts += 1

    def delete_text(self, name: DayName) -> None:
        self.shelf._asked()
        del self.stored[name]


@dataclass
class World:
    """What pods use, and what stands in the cluster. Moves on by `pass_`."""

    now: int = START
    cores: dict[ContainerKey, float] = field(default_factory=dict)
    bytes: dict[ContainerKey, float] = field(default_factory=dict)
    usage: Shelf = field(default_factory=Shelf)
    told: Shelf = field(default_factory=Shelf)
    days: DayShelf = field(init=False)
    silent: bool = False
    """Nobody tells usage."""
    step: int = 600

    def __post_init__(self) -> None:
        self.days = DayShelf(self.usage)

    def runs(self, *names: str, namespace: str = "shop", cores: float = 0.1, held: float = 100.0 * MI) -> World:
        for name in names:
            container = ContainerKey(namespace, "Deployment", name, "app")
            self.cores[container], self.bytes[container] = cores, held
        return self

    def published(self) -> Workloads:
        """As a webhook reads it: what makes no sense is left out."""
        workloads: Workloads = {}
        for text in self.told.stored.values():
            shard = decode("here", text)
            assert isinstance(shard, dict), shard
            workloads |= shard
        return workloads

    def of(self, name: str, namespace: str = "shop") -> ContainerUsage | None:
        usage = Recommendations(self.published()).find_usage(owner_key(f"Deployment/{name}", namespace), "app")
        return usage if isinstance(usage, ContainerUsage) else None


@dataclass
class Moments:
    """One pod of each container, now."""

    world: World

    def collect_usage(self, diary: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        if self.world.silent:
            raise UnreachableSource("nobody answers")
        for container, cores in self.world.cores.items():
            diary.add_sample(container, f"{container.workload}-0", "cpu", now, cores)
            diary.add_sample(container, f"{container.workload}-0", "memory", now, self.world.bytes[container])
        diary.close_intervals(now)
        return len(self.world.cores)


@dataclass
class Histories:
    """What the world used at every moment since START, for whoever asks later."""

    world: World
    past: dict[ContainerKey, list[tuple[int, float, float]]] = field(default_factory=dict)

    def collect_usage(self, diary: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        if self.world.silent:
            raise UnreachableSource("nobody answers")
        for namespace in sorted({container.namespace for container in self.past}):
            reading, since = HistoryImport(diary), diary.imported_until.get(namespace, 0)
            for container, rows in self.past.items():
                if container.namespace == namespace:
                    rows = [row for row in rows if since <= row[0] <= now]
                    for resource, which in (("cpu", 1), ("memory", 2)):
                        reading.add_series(container, "pod-0", resource, [r[0] for r in rows], [r[which] for r in rows])
            reading.commit(namespace, now)
        return len(self.past)

    def record(self) -> None:
        for container, cores in self.world.cores.items():
            self.past.setdefault(container, []).append((self.world.now, cores, self.world.bytes[container]))


@dataclass
class Process:
    """One life of a recommender."""

    world: World
    source: Moments | Histories
    loop: Loop = field(init=False)
    limit: int = 900_000
    leads: bool = True
    budget: int = 1_000_000
    """Bytes in ten minutes, of usage and of recommendations."""

    def __post_init__(self) -> None:
        world, diary = self.world, LiveHistory()
        elapsed = lambda: float(world.now)  # noqa: E731
        budgets = [WriteBudget(self.budget, elapsed) for _ in range(2)]
        checkpoints = Checkpointer(world.usage, world.days, diary, 600, budgets[0], elapsed)
        publishing = Publisher(world.told, diary, 0.05, budgets[1])
        checkpoints.shard_store.max_bytes, publishing.shard_store.max_bytes = self.limit, 5 * self.limit
        watch_state = PodWatchState()
        for container in world.cores:
            owner = owner_key(f"{container.kind}/{container.workload}", container.namespace)
            watch_state.owners_by_workload[owner] = None
        self.loop = Loop(
            history=diary,
            source=self.source,
            pod_state=watch_state,
            checkpointer=checkpoints,
            publisher=publishing,
            metrics=Metrics(CollectorRegistry(), lambda: True),
            log=log.build_logger("error", "json"),
            publish_interval_seconds=600,
            now=lambda: world.now,
            elapsed=elapsed,
        )
        self.loop.restore_state()

    def lives(self, seconds: int) -> Process:
        """Round by round."""
        for _ in range(seconds // self.world.step):
            if isinstance(self.source, Histories):
                self.source.record()
            self.loop.run_round()
            self.world.now += self.world.step
        return self


def moments(world: World, **more: int) -> Process:
    return Process(world, Moments(world), **more)  # type: ignore[arg-type]
