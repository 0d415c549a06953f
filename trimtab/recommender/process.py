"""All of it wired: one replica of the recommender, from its start to its end."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from trimtab.kube.client import Client, connect
from trimtab.kube.lease import Election
from trimtab.kube.writer import Writer
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
from trimtab.runtime import clock, metrics, ready
from trimtab.runtime.log import Logger
from trimtab.runtime.pages import TEXT, Pages
from trimtab.runtime.stop import Stop, on_signals
from trimtab.sketch.book import Book
from trimtab.sketch.diary import Diary
from trimtab.usage import checkpoints as vpa
from trimtab.usage.errors import UnreachableSource
from trimtab.usage.http import Source as Server
from trimtab.usage.kubelet import Kubelets
from trimtab.usage.metrics import now
from trimtab.usage.prometheus import Pieces, Prometheus
from trimtab.usage.series import Series

LEASE = "trimtab-recommender"
LOOK = 0.2
"""Seconds between two looks at whether we lead, or everything was listed."""
HUNG = 1800.0
"""Seconds without a finished round after which we say that we are not well: the first reads two weeks."""


@dataclass(slots=True)
class Process:
    settings: Settings
    log: Logger
    client: Client
    stop: Stop = field(default_factory=Stop)
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")
    loop: Loop | None = None
    election: Election = field(init=False)
    metrics: Metrics = field(init=False)
    _alive: float = field(default_factory=clock.elapsed)

    def __post_init__(self) -> None:
        self.election = Election(
            self.client, self.settings.namespace, LEASE, self.identity, terms=self.settings.lease_terms,
            told=lambda trouble: self.log.warning("election.trouble", error=trouble),
        )  # fmt: skip
        self.metrics = Metrics(CollectorRegistry(), lambda: self.election.leading)

    def run(self, *, once: bool = False) -> bool:
        """Until asked to stop; leads while it may, waits otherwise. `once`: one round, and the end; False where that
        did not come to its end."""
        done = threading.Event()
        elected = threading.Thread(target=self.election.run, args=(done,), name="election", daemon=True)
        with Pages(self.settings.listen, self._pages()) as pages:
            self._announce(pages.url)
            elected.start()
            try:
                return self._once() if once else self._always()
            finally:
                done.set()
                elected.join(self.settings.write_deadline)
                self.log.info("recommender.ended", identity=self.identity)

    def _always(self) -> bool:
        while not self.stop.begun:
            if self._leads():
                self._lead(once=False)
            self._alive = clock.elapsed()
            self.stop.wait(LOOK)
        return True

    def _once(self) -> bool:
        """Whoever led before may keep the Lease to its end: so long we wait, and no longer."""
        terms = self.settings.lease_terms
        until = clock.elapsed() + terms.lease + 2 * terms.retry + 2 * self.settings.write_deadline
        while not self._leads():
            if self.stop.wait(LOOK) or clock.elapsed() > until:
                self.log.warning("recommender.not-our-turn", lease=LEASE, trouble=self.election.trouble or None)
                return False
        return self._lead(once=True)

    def _leads(self) -> bool:
        return self.election.leading

    def _may(self) -> bool:
        self._alive = clock.elapsed()
        return self.election.leading and not self.stop.begun

    def _lead(self, *, once: bool) -> bool:
        """From now until we lead no more. Everything is read anew: what we knew before may be another's past."""
        self.log.info("recommender.leads", identity=self.identity)
        with Following(self.client) as following:
            loop = self._loop(following)
            well = self._opened(loop, following) and self._rounds(loop, following, once=once)
            if self.loop is loop and self.election.leading:
                well = loop.end() and well
        self.loop = None
        self.log.info("recommender.leads-no-more", identity=self.identity)
        return well

    def _opened(self, loop: Loop, following: Following) -> bool:
        """Is everything there to begin with? False where we lead no more."""
        while self._may():
            try:
                if following.synced:
                    following.hear()
                    loop.open()
                    self.loop = loop
                    return True
            except NotNow as error:
                self.log.warning("state.not-read", error=str(error))
                self.stop.wait(self.settings.retry)
            self.stop.wait(LOOK)
        return False

    def _rounds(self, loop: Loop, following: Following, *, once: bool) -> bool:
        others: Callable[[], Book] | None = self._of_vpas if self.settings.vpa_checkpoints else None
        while self._may():
            following.hear()
            loop.round(others)
            others = None
            if once:
                return loop.faults == 0
            self._sleep(self.settings.interval)
        return not once

    def _of_vpas(self) -> Book:
        """What they wrote down; nothing where there are none."""
        book = Book(self.settings.days)
        vpa.listed(self.client).pour(book)
        return book

    def _sleep(self, seconds: float) -> None:
        """No longer than we lead."""
        until = clock.elapsed() + seconds
        while (left := until - clock.elapsed()) > 0 and self._may():
            self.stop.wait(min(left, 1.0))

    def _loop(self, following: Following) -> Loop:
        settings = self.settings
        writer = Writer(client=self.client, manager=LEASE, fence=self.election.fence)
        usage, told = shelf.usage(writer, settings.namespace), shelf.recommendations(writer, settings.namespace)
        diary = Diary(settings.days)
        return Loop(
            diary=diary, source=self._source(), seen=following.seen,
            checkpoints=Checkpoints(usage, diary, settings.checkpoint_every, clock.elapsed),
            publishing=Publishing(told, diary, settings.tolerance / 100), metrics=self.metrics, log=self.log,
            publish_every=settings.publish_every, now=_now, elapsed=clock.elapsed, alive=self._may,
        )  # fmt: skip

    def _source(self) -> Source:
        settings = self.settings
        if settings.prometheus is None:
            return Moments(self._look())
        ca = str(settings.prometheus_ca) if settings.prometheus_ca else None
        pieces = Pieces(step=settings.step, rate=settings.rate, extra=settings.matcher or "")
        return Histories(Prometheus(Server(settings.prometheus, Headers(settings), ca), pieces))

    def _look(self) -> Callable[[], Iterable[Series]]:
        if self.settings.kubelets:
            return Kubelets(self.client, lambda trouble: self.log.warning("kubelet.silent", problem=trouble)).look
        return lambda: now(self.client)

    def _is_alive(self) -> bool:
        """A round that hangs is mended by a restart, a source that cannot be read is not."""
        return clock.elapsed() - self._alive < max(HUNG, 3 * self.settings.interval)

    def _pages(self) -> dict[str, Callable[[], tuple[int, str, bytes]]]:
        return {
            "/metrics": lambda: (200, metrics.CONTENT_TYPE, metrics.render(self.metrics.registry)),
            "/healthz": lambda: (200, TEXT, b"ok\n") if self._is_alive() else (500, TEXT, b"no round for too long\n"),
            "/readyz": lambda: (503, TEXT, b"stopping\n") if self.stop.begun else (200, TEXT, b"ok\n"),
            "/missing": lambda: (200, "application/json", page(self._verdicts())),
        }

    def _verdicts(self) -> Verdicts | None:
        loop = self.loop
        return loop.verdicts if loop is not None else None

    def _announce(self, url: str) -> None:
        told: dict[str, Any] = {"url": url, "pid": os.getpid(), "identity": self.identity}
        ready.tell(self.settings.ready_file, told)
        self.log.info("recommender.ready", **told)


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
    client = connect(str(settings.kubeconfig) if settings.kubeconfig else None, deadlines=settings.deadlines)
    process = Process(settings, log, client)
    on_signals(process.stop)
    try:
        return process.run(once=once)
    finally:
        client.close()
