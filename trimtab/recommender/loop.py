"""Collect, publish, keep; again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.cluster.shards import TooMuch
from trimtab.kube.errors import KubeFault
from trimtab.recommender.cabinet import NotNow
from trimtab.recommender.checkpoints import Checkpoints
from trimtab.recommender.collecting import Source
from trimtab.recommender.following import Seen
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.publishing import Publishing, Verdicts, verdicts
from trimtab.runtime.log import Logger
from trimtab.sketch.book import Book, Container
from trimtab.sketch.diary import Diary
from trimtab.usage.errors import UsageFault


@dataclass(slots=True, kw_only=True)
class Loop:
    """Not for two threads. No round raises: what fails is told and tried again."""

    diary: Diary
    source: Source
    seen: Seen
    checkpoints: Checkpoints
    publishing: Publishing
    metrics: Metrics
    log: Logger
    publish_every: float
    now: Callable[[], int]
    """Seconds since 1970."""
    elapsed: Callable[[], float]
    alive: Callable[[], bool] = lambda: True
    """May we go on? False when we lead no more."""
    verdicts: Verdicts = field(default_factory=lambda: Verdicts({}, {}))
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

    def _import(self, book: Book) -> None:
        """After the first reading: whoever has a history of its own needs no other's."""
        known = {container for container, resource in self.diary.windows if resource == "cpu"}
        for container, resource in list(book.pages):
            if container in known:
                del book.pages[container, resource]
        self.diary.adopt(book)
        if book.pages:
            self.log.info("vpa-checkpoints.taken", containers=len(book.pages))

    def round(self, book: Callable[[], Book] | None = None) -> None:
        """`book`: what others know, for the first round."""
        self._guarded("collect", self._collect)
        if book is not None:
            self._guarded("import", lambda: self._import(book()))
        if self._read and self.elapsed() - self._published >= self.publish_every:
            self._guarded("publish", self._publish)
        self._guarded("checkpoint", lambda: self._keep(all_=False))

    def end(self) -> bool:
        """Keep everything before we go; whether that was possible."""
        return self._guarded("checkpoint", lambda: self._keep(all_=True))

    def _collect(self) -> None:
        for (namespace, pod), kills in self.seen.kills().items():
            owner = self.seen.top(namespace, pod)
            for kill in kills if owner is not None else ():
                assert owner is not None
                whose = Container(namespace, owner.kind, owner.name, kill.container)
                self.diary.kill(whose, pod, kill.at, kill.limit)
        self.metrics.samples.inc(self.source.collect(self.diary, self.seen.owners(), self.now(), self.alive))
        self.metrics.left_out.inc(self.diary.left_out)
        self.diary.left_out = 0
        self._read = True
        self.metrics.collected.set(self.now())
        self.metrics.containers.set(len(self.diary.containers()))

    def _publish(self) -> None:
        now = self.now()
        self.verdicts = verdicts(self.diary, now)
        self.metrics.told(self.verdicts)
        self._wrote(
            "recommendations", self.publishing.publish(self.verdicts, now), len(self.publishing.cabinet.standing)
        )
        self._published = self.elapsed()

    def _keep(self, *, all_: bool) -> None:
        self._wrote("usage", self.checkpoints.write(all_=all_), len(self.checkpoints.cabinet.standing))

    def _wrote(self, what: str, written: int, standing: int) -> None:
        self.metrics.writes.labels(what).inc(written)
        self.metrics.shards.labels(what).set(standing)
        if written:
            self.log.info(f"{what}.written", shards=written, of=standing)

    def _guarded(self, what: str, do: Callable[[], None]) -> bool:
        """Trouble with others is expected; a bug of ours must not end what we gather."""
        try:
            do()
            return True
        except (UsageFault, KubeFault, NotNow, TooMuch) as error:
            self.log.warning(f"{what}.failed", error=str(error))
        except Exception as error:
            self.log.error(f"{what}.failed", error=f"{type(error).__name__}: {error}", exc_info=True)
        self.metrics.faults.labels(what).inc()
        self.faults += 1
        return False
