"""Collect, publish, keep; again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.cluster.recommendation import ShardOverflow
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.live_history import LiveHistory
from trimtab.kube.errors import KubeFault
from trimtab.recommender.checkpointer import Checkpointer
from trimtab.recommender.collector import UsageSource
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.pod_watcher import PodWatchState
from trimtab.recommender.publisher import ContainerRecommendations, Publisher, verdicts
from trimtab.recommender.sharded_configmaps import ShardedStore, StoreUnavailable
from trimtab.runtime.log import Logger
from trimtab.usage.errors import UsageFault


@dataclass(slots=True, kw_only=True)
class Loop:
    """Not for two threads. No round raises: what fails is told and tried again."""

    diary: LiveHistory
    source: UsageSource
    seen: PodWatchState
    checkpoints: Checkpointer
    publishing: Publisher
    metrics: Metrics
    log: Logger
    publish_every: float
    now: Callable[[], int]
    """Seconds since 1970."""
    elapsed: Callable[[], float]
    alive: Callable[[], bool] = lambda: True
    """May we go on? False when we lead no more."""
    verdicts: ContainerRecommendations = field(default_factory=lambda: ContainerRecommendations({}, {}))
    """Of the last look."""
    faults: int = 0
    _published: float = float("-inf")
    _read: bool = False
    """Was usage read to the end at least once?"""

    def open(self) -> None:
        """Take up what was kept and what is published. Raises NotNow."""
        for what, told in (("usage", self.checkpoints.open()), ("recommendations", self.publishing.open())):
            self.metrics.unreadable.labels(what).set(len(told))
            self.publishing.lossy |= bool(told) and what == "usage"
            for one in told:
                self.log.warning("shard.unreadable", what=what, where=one.where, problem=one.problem)

    def _import(self, book: BatchHistory) -> None:
        """After the first reading: whoever has a history of its own needs no other's."""
        known = {container for container, resource in self.diary.windows if resource == "cpu"}
        for container, resource in list(book.pages):
            if container in known:
                del book.pages[container, resource]
        self.diary.adopt(book)
        if book.pages:
            self.log.info("vpa-checkpoints.taken", containers=len(book.pages))

    def round(self, book: Callable[[], BatchHistory] | None = None, *, all_: bool = False) -> None:
        """`book`: what others know, for the first round. `all_`: there is no other round, so whatever the budgets."""
        self._guarded("collect", self._collect)
        if book is not None:
            self._guarded("import", lambda: self._import(book()))
        if self._read and self.elapsed() - self._published >= self.publish_every:
            self._guarded("publish", lambda: self._publish(all_=all_))
        self._guarded("checkpoint", lambda: self._keep(all_=False))

    def end(self) -> bool:
        """Keep everything before we go; whether that was possible."""
        return self._guarded("checkpoint", lambda: self._keep(all_=True))

    def _collect(self) -> None:
        for (namespace, pod), kills in self.seen.kills().items():
            owner = self.seen.top(namespace, pod)
            for container, kill in kills if owner is not None else ():
                assert owner is not None
                self.diary.kill(ContainerKey(namespace, owner.kind, owner.name, container), pod, kill)
        self.metrics.samples.inc(self.source.collect(self.diary, self.seen.owners(), self.now(), self.alive))
        self.metrics.left_out.inc(self.diary.left_out)
        self.diary.left_out = 0
        self._read = True
        self.metrics.collected.set(self.now())
        self.metrics.containers.set(len(self.diary.containers()))

    def _publish(self, *, all_: bool) -> None:
        now = self.now()
        self.verdicts = verdicts(self.diary, now)
        self.metrics.told(self.verdicts)
        cabinet = self.publishing.cabinet
        self._wrote("recommendations", self.publishing.publish(self.verdicts, now, all_=all_), cabinet)
        self.metrics.stored_bytes.labels("recommendations").set(cabinet.stored_bytes)
        self._published = self.elapsed()

    def _keep(self, *, all_: bool) -> None:
        checkpoints = self.checkpoints
        try:
            self._wrote("usage", checkpoints.write(all_=all_), checkpoints.cabinet)
        finally:
            self.metrics.stored_bytes.labels("usage").set(checkpoints.stored_bytes)
            self.metrics.unsaved.set(checkpoints.unsaved_seconds)

    def _wrote(self, what: str, written: int, cabinet: ShardedStore) -> None:
        self.metrics.writes.labels(what).inc(written)
        self.metrics.shards.labels(what).set(len(cabinet.standing))
        if written:
            self.log.info(f"{what}.written", shards=written, of=len(cabinet.standing))

    def _guarded(self, what: str, do: Callable[[], None]) -> bool:
        """Trouble with others is expected; a bug of ours must not end what we gather."""
        try:
            do()
            return True
        except (UsageFault, KubeFault, StoreUnavailable, ShardOverflow) as error:
            self.log.warning(f"{what}.failed", error=str(error))
        except Exception as error:
            self.log.error(f"{what}.failed", error=f"{type(error).__name__}: {error}", exc_info=True)
        self.metrics.faults.labels(what).inc()
        self.faults += 1
        return False
