"""All of it wired: one replica of the compactor, from its start to its end."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry

from trimtab.cluster.moment import Seconds
from trimtab.compaction.drain.memory import Record
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
from trimtab.kube.events import Recorder
from trimtab.kube.replica import Replica, lease_of, opened
from trimtab.kube.watch import Watch
from trimtab.policy.document import Policies
from trimtab.runtime import clock
from trimtab.runtime.log import Logger

NAME = "compactor"
LEASE = lease_of(NAME)
HUNG = 600.0
"""Seconds without a sign of life after which we say that we are not well: a plan of the largest clusters takes one
minute, and each write of a round may wait for its deadline."""


@dataclass(slots=True)
class Process:
    settings: Settings
    replica: Replica
    policies: Policies | None = None
    """Those of a folder; None: the cluster's own."""
    watch: Watch | None = None
    log: Logger = field(init=False)
    faults: Faults = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.faults = Faults(self.log)
        self.metrics = Metrics(CollectorRegistry(), self.replica.leading, self._age)

    def run(self) -> None:
        """Until asked to stop. Leads while it may, waits otherwise."""
        with self.replica.standing(self.metrics.registry):
            self.replica.work(self._lead)

    def _lead(self) -> None:
        """Everything is read anew: what we knew before may be another's past."""
        client, heard = self.replica.client, Heard(self.settings.admission, self.policies)
        with watching(client) as watch, Admitting(client, heard) as admitting:
            self.watch = watch
            loop = self._loop(watch, admitting)
            if self._opened(loop):
                self._rounds(loop)
                if self.replica.stop.begun and self.replica.leading():
                    loop.end()
            self.watch = None

    def _opened(self, loop: Loop) -> bool:
        """Are the books open? False where we lead no more."""
        while self.replica.may():
            before = self.faults.count
            try:
                self.faults.caught("look", lambda: loop.books.open(_now()))
                if self.faults.count == before:
                    return True
            except DoorFault as error:
                self.log.warning("state.not-read", error=str(error))
            self.replica.wait(self.settings.retry)
        return False

    def _rounds(self, loop: Loop) -> None:
        before = clock.elapsed()
        while self.replica.may():
            wait = loop.round()
            now = clock.elapsed()
            loop.faults.caught("tell", partial(self.metrics.read, loop, now - before))
            self.metrics.faulty(loop.faults)
            before = now
            self.replica.wait(wait)

    def _loop(self, watch: Watch, admitting: Admitting) -> Loop:
        settings, writer = self.settings, self.replica.writer
        sight = Sight(watch, settings, _now)
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.replica.identity)
        door = Acting(writer, Teller(recorder, settings.namespace, sight.config_map))
        store = ConfigMaps(writer, settings.namespace, self.log)
        faults = self.faults
        books = Books(store, (self._line, self.metrics.count, door.tell))
        drains = Drains(
            door, books, settings.terms, self.replica.stop, faults, clock.elapsed, blind=settings.stale + BLIND
        )
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


def _now() -> Seconds:
    return int(clock.utc().timestamp())


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def run(settings: Settings, log: Logger) -> None:
    """One replica, until a signal. Raises RuntimeFault where it cannot begin."""
    policies = folder(settings.policies)
    with opened(NAME, settings, log, hung=max(HUNG, 3 * settings.interval)) as replica:
        Process(settings, replica, policies).run()
