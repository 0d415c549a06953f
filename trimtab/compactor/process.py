"""Connects the parts of one replica of the compactor, from its start to its shutdown."""

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
"""The seconds between two reads of the Secret with the signing keys: a rotation takes effect before the next one."""
HUNG = 600.0
"""The seconds without progress after which the process reports itself as not healthy. A plan of the largest clusters
takes a minute, and each write of a round may wait for its deadline."""


@dataclass(slots=True)
class Process:
    """One replica of the compactor."""

    settings: Settings
    replica: LeaderProcess
    policies: Policies | None = None
    """The policies of files; None: those of the cluster."""
    watch: ClusterInformers | None = None
    log: Logger = field(init=False)
    faults: ErrorGuard = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.faults = ErrorGuard(self.log)
        self.metrics = Metrics(CollectorRegistry(), self.replica.leading, self._watch_age)

    def run(self) -> None:
        """Runs until a signal: leads while it holds the Lease, and waits otherwise."""
        with self.replica.standing(self.metrics.registry):
            self.replica.work(self._lead)

    def _lead(self) -> None:
        """Leads once. Everything is read again, because another replica may have led since."""
        signing = self._read_keys()
        if signing is None:
            return
        client, state = self.replica.client, ReadmissionState(self.settings.admission, self.policies)
        with watching(client, self.settings) as watch, ReadmissionWatcher(client, state) as admitting:
            self.watch = watch
            loop = self._create_loop(watch, admitting, signing)
            if self._load_states(loop):
                self._run_rounds(loop, signing)
                if (self.replica.stop.begun or signing.lost) and self.replica.leading():
                    # Also with lost keys: a compactor with other keys would leave these cordons alone.
                    loop.end()
            self.watch = None

    def _read_keys(self) -> NodeSigner | None:
        """Returns the signing keys; None when the replica no longer leads.

        Nothing is done without them: any client could have written the annotations and states.
        """
        trouble = ""
        while self.replica.may():
            try:
                signer = opened_keys(self.replica.writer, self.settings.namespace)
            except KubeFault as error:
                self.metrics.keys.set(0)
                if str(error) != trouble:
                    trouble = str(error)
                    self.log.error("signing-keys.not-read", error=trouble, effect="nothing is done without them")
                self.replica.wait(self.settings.retry_period_seconds)
            else:
                self.metrics.keys.set(1)
                return signer
        return None

    def _load_states(self, loop: Loop) -> bool:
        """Reads the stored states. Returns False when the replica no longer leads."""
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

    def _run_rounds(self, loop: Loop, signing: NodeSigner) -> None:
        """Runs rounds while the replica leads with the keys of the Secret. When these change, everything is read
        again."""
        before = looked = clock.elapsed()
        while self.replica.may() and not signing.outdated:
            wait = loop.round()
            now = clock.elapsed()
            if now - looked > KEYS_EVERY:
                looked = now
                # An error here is not reported: the next write of a state reports it.
                with suppress(KubeFault):
                    signing.look()
            loop.faults.caught("tell", partial(self.metrics.read, loop, now - before))
            self.metrics.faulty(loop.faults)
            before = now
            self.replica.wait(wait)

    def _create_loop(self, watch: ClusterInformers, admitting: ReadmissionWatcher, signing: NodeSigner) -> Loop:
        settings, writer = self.settings, self.replica.writer
        sight = ClusterReader(watch, settings, _now, signing.keys)
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.replica.identity)
        door = KubeActuator(writer, EventRecorder(recorder, settings.namespace, sight.config_map), signing.keys)
        store = ConfigMapPoolStateStore(writer, settings.namespace, self.log, signing)
        faults = self.faults
        books = PoolStates(store, (self._log_decision, self.metrics.count, door.tell))
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
            elapsed=clock.elapsed, pause=_sleep, reopened=sight.reopened, kept=sight.kept,
        )  # fmt: skip

    def _log_decision(self, record: HistoryEntry) -> None:
        """Writes a decision to the log."""
        fields = {name: getattr(record, name) for name in record.__struct_fields__}
        self.log.info(f"compactor.{record.what}", **{name: value for name, value in fields.items() if value})

    def _watch_age(self) -> float:
        age = self.watch.age() if self.watch is not None else None
        return float("nan") if age is None else age


def _now() -> Seconds:
    return int(clock.utc().timestamp())


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


def run(settings: Settings, log: Logger) -> None:
    """Runs one replica until a signal. Raises RuntimeFault where it cannot start."""
    policies = folder(settings.policies)
    with opened(NAME, settings, log, hung=max(HUNG, 3 * settings.plan_interval_seconds)) as replica:
        Process(settings, replica, policies).run()
