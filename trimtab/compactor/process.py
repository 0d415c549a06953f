"""All of it wired: one replica of the compactor, from its start to its end."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry

from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compactor.actuator import ActuatorError, DryRunActuator
from trimtab.compactor.cluster_reader import ClusterReader, watching
from trimtab.compactor.drainer import BLIND, Drainer
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.events import CONTROLLER, EventRecorder
from trimtab.compactor.kube_actuator import KubeActuator
from trimtab.compactor.loop import Loop
from trimtab.compactor.metrics import Metrics
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.compactor.node_signatures import opened as opened_keys
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import ConfigMapPoolStateStore, PoolStates
from trimtab.compactor.readmission import ReadmissionState, ReadmissionWatcher, folder
from trimtab.compactor.settings import Settings
from trimtab.compactor.soft_taint import LeavingTaint
from trimtab.kube.errors import KubeFault
from trimtab.kube.events import Recorder
from trimtab.kube.informers import ClusterInformers
from trimtab.kube.leader_process import LeaderProcess, lease_of, opened
from trimtab.policy.podpolicy import Policies
from trimtab.runtime import clock
from trimtab.runtime.log import Logger

NAME = "compactor"
LEASE = lease_of(NAME)
KEYS_EVERY = 60.0
"""Seconds between two looks at the Secret of the signing keys: a rotation takes effect before the next one comes."""
HUNG = 600.0
"""Seconds without a sign of life after which we say that we are not well: a plan of the largest clusters takes one
minute, and each write of a round may wait for its deadline."""


@dataclass(slots=True)
class Process:
    settings: Settings
    replica: LeaderProcess
    policies: Policies | None = None
    """Those of a folder; None: the cluster's own."""
    watch: ClusterInformers | None = None
    log: Logger = field(init=False)
    faults: ErrorGuard = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.faults = ErrorGuard(self.log)
        self.metrics = Metrics(CollectorRegistry(), self.replica.leading, self._age)

    def run(self) -> None:
        """Until asked to stop. Leads while it may, waits otherwise."""
        with self.replica.standing(self.metrics.registry):
            self.replica.work(self._lead)

    def _lead(self) -> None:
        """Everything is read anew: what we knew before may be another's past."""
        signing = self._keys_read()
        if signing is None:
            return
        client, heard = self.replica.client, ReadmissionState(self.settings.admission, self.policies)
        with watching(client, self.settings) as watch, ReadmissionWatcher(client, heard) as admitting:
            self.watch = watch
            loop = self._loop(watch, admitting, signing)
            if self._opened(loop):
                self._rounds(loop, signing)
                if (self.replica.stop.begun or signing.lost) and self.replica.leading():
                    loop.end()  # with the keys lost, too: whoever reads anew would leave our cordons alone
            self.watch = None

    def _keys_read(self) -> NodeSigner | None:
        """The signing keys; None where we lead no more.

        Without them nothing is done: what stands on a node, and what we remember, could be anybody's.
        """
        trouble = ""
        while self.replica.may():
            try:
                found = opened_keys(self.replica.writer, self.settings.namespace)
            except KubeFault as error:
                self.metrics.keys.set(0)
                if str(error) != trouble:
                    trouble = str(error)
                    self.log.error("signing-keys.not-read", error=trouble, effect="nothing is done without them")
                self.replica.wait(self.settings.retry_period_seconds)
            else:
                self.metrics.keys.set(1)
                return found
        return None

    def _opened(self, loop: Loop) -> bool:
        """Are the books open? False where we lead no more."""
        while self.replica.may():
            before = self.faults.count
            try:
                self.faults.caught("look", lambda: loop.books.open(_now()))
                if self.faults.count == before:
                    return True
            except ActuatorError as error:
                self.log.warning("state.not-read", error=str(error))
            self.replica.wait(self.settings.retry_period_seconds)
        return False

    def _rounds(self, loop: Loop, signing: NodeSigner) -> None:
        """While we lead with the keys that stand in the Secret: with others all is read anew."""
        before = looked = clock.elapsed()
        while self.replica.may() and not signing.outdated:
            wait = loop.round()
            now = clock.elapsed()
            if now - looked > KEYS_EVERY:
                looked = now
                with suppress(KubeFault):  # what ends the next drain says it
                    signing.look()
            loop.faults.caught("tell", partial(self.metrics.read, loop, now - before))
            self.metrics.faulty(loop.faults)
            before = now
            self.replica.wait(wait)

    def _loop(self, watch: ClusterInformers, admitting: ReadmissionWatcher, signing: NodeSigner) -> Loop:
        settings, writer = self.settings, self.replica.writer
        sight = ClusterReader(watch, settings, _now, signing.keys)
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.replica.identity)
        door = KubeActuator(writer, EventRecorder(recorder, settings.namespace, sight.config_map), signing.keys)
        store = ConfigMapPoolStateStore(writer, settings.namespace, self.log, signing)
        faults = self.faults
        books = PoolStates(store, (self._line, self.metrics.count, door.tell))
        drains = Drainer(
            door,
            books,
            settings.terms,
            self.replica.stop,
            faults,
            clock.elapsed,
            blind=settings.max_watch_age_seconds + BLIND,
        )
        return Loop(
            look=sight.look, books=books, drains=drains,
            planning=CompactionPlanner(door, DryRunActuator(), books, settings.terms, settings.recheck_delay_seconds,
                                       faults, admitting.again),
            steering=LeavingTaint(door, settings.soft_taint), log=self.log, interval=settings.plan_interval_seconds,
            tick=settings.drain_poll_interval_seconds,
            elapsed=clock.elapsed, pause=_wait, reopened=sight.reopened, kept=sight.kept,
        )  # fmt: skip

    def _line(self, record: HistoryEntry) -> None:
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
    with opened(NAME, settings, log, hung=max(HUNG, 3 * settings.plan_interval_seconds)) as replica:
        Process(settings, replica, policies).run()
