"""All of it wired: one replica of the watchdog, from its start to its end."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from trimtab.admission.harm.counts import Ledger
from trimtab.admission.running.survey import Survey, World
from trimtab.kube.client import Client, connect
from trimtab.kube.events import Recorder
from trimtab.kube.lease import Election
from trimtab.kube.writer import Writer
from trimtab.runtime import clock, metrics, ready
from trimtab.runtime.log import Logger
from trimtab.runtime.pages import TEXT, Pages
from trimtab.runtime.stop import Stop, on_signals
from trimtab.watchdog.following import Following
from trimtab.watchdog.loop import Loop
from trimtab.watchdog.metrics import Metrics
from trimtab.watchdog.origin import base
from trimtab.watchdog.settings import Settings
from trimtab.watchdog.statuses import Statuses
from trimtab.watchdog.stopping import Brake, Door, Rehearsal
from trimtab.watchdog.tell import CONTROLLER, Teller

LEASE = "trimtab-watchdog"
LOOK = 0.2
"""Seconds between two looks at whether we lead, or everything was listed."""
STALE = 150.0
"""Seconds after which what a watch holds is too old to act on. A quiet watch hears from the server every minute."""
HUNG = 300.0
"""Seconds without a finished look after which we say that we are not well. One takes a second or two."""
PATIENCE = 30.0
"""Seconds until the first lists should have been read."""


@dataclass(slots=True)
class Process:
    """One replica: it leads while it may, and waits otherwise."""

    settings: Settings
    log: Logger
    client: Client
    base: World
    stop: Stop = field(default_factory=Stop)
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")
    following: Following | None = None
    _alive: float = field(default_factory=clock.elapsed)
    """When it was last seen that this process does its work, or waits for it."""
    election: Election = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        terms = self.settings.lease_terms
        self.election = Election(
            self.client, self.settings.namespace, LEASE, self.identity, terms=terms,
            told=lambda trouble: self.log.warning("election.trouble", error=trouble),
        )  # fmt: skip
        self.metrics = Metrics(CollectorRegistry(), lambda: self.election.leading, self._age)

    def run(self) -> None:
        """Until asked to stop. Leads while it may, waits otherwise."""
        done = threading.Event()
        elected = threading.Thread(target=self.election.run, args=(done,), name="election", daemon=True)
        with Pages(self.settings.listen, self._pages()) as pages:
            self._announce(pages.url)
            elected.start()
            while not self.stop.begun:
                if self.election.leading:
                    self._lead()
                self._alive = clock.elapsed()
                self.stop.wait(LOOK)
            done.set()
            elected.join(self.settings.write_deadline)
        self.log.info("watchdog.ended", identity=self.identity)

    def _lead(self) -> None:
        """From now until we lead no more. Everything is read anew."""
        self.log.info("watchdog.leads", identity=self.identity)
        from_cluster = not self.settings.policies
        with Following(self.client, self.base, self.settings.configuration, policies=from_cluster) as following:
            self.following = following
            if self._listed(following):
                self._rounds(following, self._loop(following))
            self.following = None
        self.log.info("watchdog.leads-no-more", identity=self.identity)

    def _listed(self, following: Following) -> bool:
        """Was everything read once? False where we lead no more."""
        begun, told = clock.elapsed(), False
        while self.election.leading and not self.stop.begun:
            complete = following.synced  # before the changes are taken: whatever was listed is among them
            following.hear()
            self._alive = clock.elapsed()
            if complete and following.synced:  # what was heard may have led to one more watch
                return True
            if not told and clock.elapsed() - begun > PATIENCE:
                self.log.warning("watchdog.waits", troubles=following.troubles())
                told = True
            self.stop.wait(LOOK)
        return False

    def _rounds(self, following: Following, loop: Loop) -> None:
        while self.election.leading and not self.stop.begun:
            self._sleep(self._round(following, loop))

    def _round(self, following: Following, loop: Loop) -> float:
        try:
            following.hear()
            return loop.look()
        except Exception as error:
            self.metrics.faults.labels("look").inc()
            self.log.error("look failed", error=f"{type(error).__name__}: {error}", exc_info=True)
            return self.settings.interval

    def _sleep(self, seconds: float) -> None:
        """No longer than we lead."""
        self._alive = clock.elapsed()
        until = clock.elapsed() + seconds
        while (left := until - clock.elapsed()) > 0 and self.election.leading:
            if self.stop.wait(min(left, 1.0)):
                return

    def _loop(self, following: Following) -> Loop:
        settings, log = self.settings, self.log
        writer = Writer(client=self.client, manager=LEASE, fence=self.election.fence)
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.identity)
        return Loop(
            seen=following.seen,
            pods=following.pods,
            fresh=lambda: following.synced and (following.age() or 0.0) < STALE,
            door=self._door(writer),
            statuses=Statuses(writer=writer, log=log, every=settings.status_every, elapsed=clock.elapsed),
            teller=Teller(recorder, log, settings.event_every, settings.events, clock.elapsed),
            metrics=self.metrics,
            interval=settings.interval,
            now=lambda: clock.utc().timestamp(),
            elapsed=clock.elapsed,
            survey=Survey(most=settings.decisions),
            ledger=Ledger(settings.harm_terms),
        )

    def _door(self, writer: Writer) -> Door | None:
        """Policies of a folder cannot be put to `warn`: they are only told of."""
        if self.settings.harm_brake == "off":
            return None
        if self.settings.harm_brake == "tell" or self.settings.policies:
            return Rehearsal(self.log)
        return Brake(writer, self.log)

    def _is_alive(self) -> bool:
        """A look that hangs is mended by a restart, a cluster that cannot be read is not."""
        return clock.elapsed() - self._alive < max(HUNG, 3 * self.settings.interval)

    def _age(self) -> float:
        age = self.following.age() if self.following is not None else None
        return float("nan") if age is None else age

    def _pages(self) -> dict[str, Callable[[], tuple[int, str, bytes]]]:
        return {
            "/metrics": lambda: (200, metrics.CONTENT_TYPE, metrics.render(self.metrics.registry)),
            "/healthz": lambda: (200, TEXT, b"ok\n") if self._is_alive() else (500, TEXT, b"no look for too long\n"),
            "/readyz": lambda: (503, TEXT, b"stopping\n") if self.stop.begun else (200, TEXT, b"ok\n"),
        }

    def _announce(self, url: str) -> None:
        told: dict[str, Any] = {"url": url, "pid": os.getpid(), "identity": self.identity}
        ready.tell(self.settings.ready_file, told)
        self.log.info("watchdog.ready", **told)


def run(settings: Settings, log: Logger) -> None:
    """One replica, until a signal. Raises RuntimeFault where it cannot begin."""
    standing = base(settings)
    client = connect(str(settings.kubeconfig) if settings.kubeconfig else None, deadlines=settings.deadlines)
    process = Process(settings, log, client, standing)
    on_signals(process.stop)
    try:
        process.run()
    finally:
        client.close()
