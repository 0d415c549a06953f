"""All of it wired: one replica of the recommender, from its start to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from trimtab.kube.replica import LOOK, Replica, opened
from trimtab.recommender import shelf
from trimtab.recommender.cabinet import NotNow
from trimtab.recommender.checkpoints import Checkpoints
from trimtab.recommender.collecting import Histories, Moments, Source
from trimtab.recommender.following import Following
from trimtab.recommender.loop import Loop
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.missing import page
from trimtab.recommender.publishing import Publishing, Verdicts
from trimtab.recommender.settings import Settings
from trimtab.runtime import clock
from trimtab.runtime.log import Logger
from trimtab.sketch.book import Book
from trimtab.sketch.diary import Diary
from trimtab.usage import checkpoints as vpa
from trimtab.usage.errors import UnreachableSource
from trimtab.usage.http import Source as Server
from trimtab.usage.kubelet import Kubelets
from trimtab.usage.metrics import now
from trimtab.usage.prometheus import Pieces, Prometheus
from trimtab.usage.series import Series

NAME = "recommender"
HUNG = 1800.0
"""Seconds without a sign of life after which we say that we are not well: the first round reads two weeks."""


@dataclass(slots=True)
class Process:
    settings: Settings
    replica: Replica
    loop: Loop | None = None
    log: Logger = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.metrics = Metrics(CollectorRegistry(), self.replica.leading)

    def run(self, *, once: bool = False) -> bool:
        """Until asked to stop; leads while it may, waits otherwise. `once`: one round, and the end; False where that
        did not come to its end."""
        missing = lambda: (200, "application/json", page(self._verdicts()))  # noqa: E731
        with self.replica.standing(self.metrics.registry, {"/missing": missing}):
            if once:
                return self.replica.turn() and self.replica.term(lambda: self._lead(once=True))
            self.replica.work(lambda: self._lead(once=False))
        return True

    def _lead(self, *, once: bool) -> bool:
        """Everything is read anew: what we knew before may be another's past."""
        with Following(self.replica.client) as following:
            loop = self._loop(following)
            well = self._opened(loop, following) and self._rounds(loop, following, once=once)
            if self.loop is loop and self.replica.leading():
                well = loop.end() and well
        self.loop = None
        return well

    def _opened(self, loop: Loop, following: Following) -> bool:
        """Is everything there to begin with? False where we lead no more."""
        while self.replica.may():
            try:
                if following.synced:
                    following.hear()
                    loop.open()
                    self.loop = loop
                    return True
            except NotNow as error:
                self.log.warning("state.not-read", error=str(error))
                self.replica.wait(self.settings.retry)
            self.replica.wait(LOOK)
        return False

    def _rounds(self, loop: Loop, following: Following, *, once: bool) -> bool:
        others: Callable[[], Book] | None = self._of_vpas if self.settings.vpa_checkpoints else None
        while self.replica.may():
            following.hear()
            loop.round(others)
            others = None
            if once:
                return loop.faults == 0
            self.replica.wait(self.settings.interval)
        return not once

    def _of_vpas(self) -> Book:
        """What they wrote down; nothing where there are none."""
        book = Book(self.settings.days)
        vpa.listed(self.replica.client).pour(book)
        return book

    def _loop(self, following: Following) -> Loop:
        settings, writer = self.settings, self.replica.writer
        usage, told = shelf.usage(writer, settings.namespace), shelf.recommendations(writer, settings.namespace)
        diary = Diary(settings.days)
        return Loop(
            diary=diary, source=self._source(), seen=following.seen,
            checkpoints=Checkpoints(usage, diary, settings.checkpoint_every, clock.elapsed),
            publishing=Publishing(told, diary, settings.tolerance / 100), metrics=self.metrics, log=self.log,
            publish_every=settings.publish_every, now=_now, elapsed=clock.elapsed, alive=self.replica.may,
        )  # fmt: skip

    def _source(self) -> Source:
        settings = self.settings
        if settings.prometheus is None:
            return Moments(self._look())
        ca = str(settings.prometheus_ca) if settings.prometheus_ca else None
        pieces = Pieces(step=settings.step, rate=settings.rate, extra=settings.matcher or "")
        return Histories(Prometheus(Server(settings.prometheus, Headers(settings), ca), pieces))

    def _look(self) -> Callable[[], Iterable[Series]]:
        client, log = self.replica.client, self.replica.log
        if self.settings.kubelets:
            return Kubelets(client, lambda trouble: log.warning("kubelet.silent", problem=trouble)).look
        return lambda: now(client)

    def _verdicts(self) -> Verdicts | None:
        loop = self.loop
        return loop.verdicts if loop is not None else None


class Headers(Mapping[str, str]):
    """What logs in, and names a tenant; the token is read each time it is needed, since it is renewed."""

    def __init__(self, settings: Settings) -> None:
        self._plain = {"X-Scope-OrgID": settings.prometheus_tenant} if settings.prometheus_tenant else {}
        self._file = settings.prometheus_token_file

    def __getitem__(self, name: str) -> str:
        if name != "Authorization" or self._file is None:
            return self._plain[name]
        try:
            return f"Bearer {self._file.read_text().strip()}"
        except OSError as error:
            raise UnreachableSource(f"the token of Prometheus, {self._file}: {error.strerror}") from None

    def __iter__(self) -> Iterator[str]:
        return iter([*self._plain, *(["Authorization"] if self._file is not None else [])])

    def __len__(self) -> int:
        return len(self._plain) + (self._file is not None)


def _now() -> int:
    return int(clock.utc().timestamp())


def run(settings: Settings, log: Logger, *, once: bool = False) -> bool:
    """One replica, until a signal, or once. Raises RuntimeFault where it cannot begin."""
    with opened(NAME, settings, log, hung=max(HUNG, 3 * settings.interval)) as replica:
        return Process(settings, replica).run(once=once)
