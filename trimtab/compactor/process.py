"""All of it wired: one replica of the compactor, from its start to its end."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from trimtab.cluster.moment import Seconds
from trimtab.compaction.memory import Record
from trimtab.compactor.acting import Acting
from trimtab.compactor.admitting import Admitting, Heard, folder
from trimtab.compactor.books import Books
from trimtab.compactor.doors import DoorFault
from trimtab.compactor.drains import BLIND, Drains
from trimtab.compactor.faults import Faults
from trimtab.compactor.loop import Loop
from trimtab.compactor.metrics import Metrics
from trimtab.compactor.planning import Planning
from trimtab.compactor.rehearsal import Rehearsal
from trimtab.compactor.settings import Settings
from trimtab.compactor.sight import Sight, watching
from trimtab.compactor.steering import Steering
from trimtab.compactor.store import ConfigMaps
from trimtab.compactor.telling import CONTROLLER, Teller
from trimtab.kube.client import Client, connect
from trimtab.kube.events import Recorder
from trimtab.kube.lease import Election
from trimtab.kube.watch import Watch
from trimtab.kube.writer import Writer
from trimtab.policy.document import Policies
from trimtab.runtime import clock, metrics, ready
from trimtab.runtime.log import Logger
from trimtab.runtime.pages import TEXT, Pages
from trimtab.runtime.stop import Stop, on_signals

LEASE = "trimtab-compactor"
LOOK = 0.2
"""Seconds between two looks at whether we lead."""


@dataclass(slots=True)
class Process:
    settings: Settings
    log: Logger
    client: Client
    policies: Policies | None = None
    """Those of a folder; None: the cluster's own."""
    stop: Stop = field(default_factory=Stop)
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")
    watch: Watch | None = None
    election: Election = field(init=False)
    faults: Faults = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.election = Election(
            self.client, self.settings.namespace, LEASE, self.identity, terms=self.settings.lease_terms,
            told=lambda trouble: self.log.warning("election.trouble", error=trouble),
        )  # fmt: skip
        self.faults = Faults(self.log)
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
                self.stop.wait(LOOK)
            done.set()
            elected.join(self.settings.write_deadline)
        self.log.info("compactor.ended", identity=self.identity)

    def _lead(self) -> None:
        """From now until we lead no more. Everything is read anew: what we knew before may be another's past."""
        self.log.info("compactor.leads", identity=self.identity)
        heard = Heard(self.settings.admission, self.policies)
        with watching(self.client) as watch, Admitting(self.client, heard) as admitting:
            self.watch = watch
            loop = self._loop(watch, admitting)
            if self._opened(loop):
                self._rounds(loop)
                if self.stop.begun and self.election.leading:
                    loop.end()
            self.watch = None
        self.log.info("compactor.leads-no-more", identity=self.identity)

    def _opened(self, loop: Loop) -> bool:
        """Are the books open? False where we lead no more."""
        while self.election.leading and not self.stop.begun:
            before = self.faults.count
            try:
                self.faults.caught("look", lambda: loop.books.open(_now()))
                if self.faults.count == before:
                    return True
            except DoorFault as error:
                self.log.warning("state.not-read", error=str(error))
            self.stop.wait(self.settings.retry)
        return False

    def _rounds(self, loop: Loop) -> None:
        before = clock.elapsed()
        while self.election.leading and not self.stop.begun:
            wait = loop.round()
            now = clock.elapsed()
            loop.faults.caught("tell", partial(self.metrics.read, loop, now - before))
            self.metrics.faulty(loop.faults)
            before = now
            self._sleep(wait)

    def _sleep(self, seconds: float) -> None:
        """No longer than we lead."""
        until = clock.elapsed() + seconds
        while (left := until - clock.elapsed()) > 0 and self.election.leading:
            if self.stop.wait(min(left, 1.0)):
                return

    def _loop(self, watch: Watch, admitting: Admitting) -> Loop:
        settings = self.settings
        writer = Writer(client=self.client, manager=LEASE, fence=self.election.fence)
        sight = Sight(watch, settings, _now)
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.identity)
        door = Acting(writer, Teller(recorder, settings.namespace, sight.config_map))
        store = ConfigMaps(writer, settings.namespace, self.log)
        faults = self.faults
        books = Books(store, (self._line, self.metrics.count, door.tell))
        drains = Drains(door, books, settings.terms, self.stop, faults, settings.stale + BLIND)
        return Loop(
            look=sight.look, books=books, drains=drains,
            planning=Planning(door, Rehearsal(), books, settings.terms, settings.settle, faults, admitting.again),
            steering=Steering(door, settings.steer), log=self.log, interval=settings.interval, tick=settings.tick,
            elapsed=clock.elapsed, pause=_wait, reopened=sight.reopened, kept=sight.kept,
        )  # fmt: skip

    def _line(self, record: Record) -> None:
        """A record as a line of the log."""
        told = {name: getattr(record, name) for name in record.__struct_fields__}
        self.log.info(f"compactor.{record.what}", **{name: value for name, value in told.items() if value})

    def _age(self) -> float:
        age = self.watch.age() if self.watch is not None else None
        return float("nan") if age is None else age

    def _pages(self) -> dict[str, Callable[[], tuple[int, str, bytes]]]:
        return {
            "/metrics": lambda: (200, metrics.CONTENT_TYPE, metrics.render(self.metrics.registry)),
            "/healthz": lambda: (200, TEXT, b"ok\n"),
            "/readyz": lambda: (503, TEXT, b"stopping\n") if self.stop.begun else (200, TEXT, b"ok\n"),
        }

    def _announce(self, url: str) -> None:
        told: dict[str, Any] = {"url": url, "pid": os.getpid(), "identity": self.identity}
        ready.tell(self.settings.ready_file, told)
        self.log.info("compactor.ready", **told)


def _now() -> Seconds:
    return int(clock.utc().timestamp())


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def run(settings: Settings, log: Logger) -> None:
    """One replica, until a signal. Raises RuntimeFault where it cannot begin."""
    policies = folder(settings.policies)
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    client = connect(kubeconfig, deadlines=settings.deadlines)
    process = Process(settings, log, client, policies)
    on_signals(process.stop)
    try:
        process.run()
    finally:
        client.close()
