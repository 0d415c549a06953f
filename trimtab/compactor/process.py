"""Connects the parts of one replica of the compactor, from its start to its shutdown."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry

from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compactor.actuator import ActuatorError, DryRunActuator
from trimtab.compactor.cluster_reader import ClusterReader, create_informers
from trimtab.compactor.decision_events import CONTROLLER, EventRecorder
from trimtab.compactor.drainer import UNOBSERVED_SECONDS, Drainer
from trimtab.compactor.error_guard import ErrorGuard, Ok
from trimtab.compactor.kube_actuator import KubeActuator
from trimtab.compactor.loop import Loop
from trimtab.compactor.metrics import Metrics
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.compactor.node_signatures import open_signer as opened_keys
from trimtab.compactor.notifications.sender import NotificationTerms, Notifier
from trimtab.compactor.order.order_keeper import OrderKeeper
from trimtab.compactor.order.order_source import KubeOrderSource
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import ConfigMapPoolStateStore, PoolStates
from trimtab.compactor.pool_status_writer import PoolStatusWriter
from trimtab.compactor.readmission_state import ReadmissionState
from trimtab.compactor.resize_reader import ResizeReader
from trimtab.compactor.resizer import Resizer
from trimtab.compactor.settings import Settings
from trimtab.compactor.soft_taint import SoftTaints
from trimtab.compactor.step_runner import StepRunner
from trimtab.compactor.successor_requests import ReadmissionWatcher
from trimtab.compactor.use_reader import UseReader
from trimtab.kube.errors import KubeFault
from trimtab.kube.events import Recorder
from trimtab.kube.informers import ClusterInformers
from trimtab.policy.podpolicy import Policies
from trimtab.runtime import clock
from trimtab.runtime.http_pages import Page
from trimtab.runtime.log import Logger
from trimtab.runtime.metrics import value_or_nan
from trimtab.usage.pod_pressure import PodPressures
from trimtab.workers.leader_process import LeaderProcess
from trimtab.workers.policy_files import load_policy_files
from trimtab.workers.worker import run_worker

KEYS_INTERVAL_SECONDS = 60.0
"""The number of seconds between two readings of the Secret with the signing keys. It is short, so that one key rotation
takes effect before the next."""
HUNG_SECONDS = 600.0
"""After this many seconds without progress, the process reports itself as unhealthy. A plan for the largest clusters
takes a minute, and each write of a round may take until its deadline."""


@dataclass(slots=True)
class Process:
    """One replica of the compactor."""

    settings: Settings
    replica: LeaderProcess
    policies: Policies | None = None
    """The policies from files; None: those of the cluster are used."""
    watch: ClusterInformers | None = None
    log: Logger = field(init=False)
    error_guard: ErrorGuard = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.error_guard = ErrorGuard(self.log)
        self.metrics = Metrics(CollectorRegistry(), self.replica.is_leading, self._watch_age)

    @property
    def registry(self) -> CollectorRegistry:
        return self.metrics.registry

    @property
    def pages(self) -> Mapping[str, Page]:
        return {}

    def lead(self) -> None:
        """Leads until this replica no longer may. Everything is read again at the start, because another replica may
        have led in the meantime."""
        signing = self._read_keys()
        if signing is None:
            return
        client, state = self.replica.client, ReadmissionState(self.settings.admission_settings, self.policies)
        with create_informers(client, self.settings) as watch, ReadmissionWatcher(client, state) as admitting:
            self.watch = watch
            loop = self._create_loop(watch, admitting, signing)
            with closing_resizes(loop), sending_notifications(loop, self.settings.notification_terms, self.log):
                self._lead_with(loop, signing)
            self.watch = None

    def _lead_with(self, loop: Loop, signing: NodeSigner) -> None:
        if self.replica.retry_while_leading(partial(self._load_states, loop), self.settings.retry_period_seconds):
            self._run_rounds(loop, signing)
            if (self.replica.shutdown.is_requested or signing.lost) and self.replica.is_leading():
                # Also with lost keys: a compactor with other keys would leave these cordons alone.
                loop.shut_down()

    def _read_keys(self) -> NodeSigner | None:
        """Returns the signer with the keys, or None if the replica no longer leads.

        Nothing is done without the keys, because any client could have written the annotations and states.
        """
        signer: NodeSigner | None = None
        trouble = ""

        def read_keys() -> bool:
            nonlocal signer, trouble
            try:
                signer = opened_keys(self.replica.fenced_writer, self.settings.namespace)
            except KubeFault as error:
                self.metrics.keys.set(0)
                if str(error) != trouble:
                    trouble = str(error)
                    self.log.error(
                        "signing-keys.not-read",
                        error=trouble,
                        effect="the compactor does nothing until it has read the signing keys",
                    )
                return False
            self.metrics.keys.set(1)
            return True

        self.replica.retry_while_leading(read_keys, self.settings.retry_period_seconds)
        return signer

    def _load_states(self, loop: Loop) -> bool:
        """Reads the stored states of pools. Returns whether that succeeded."""
        try:
            outcome = self.error_guard.run_guarded("look", lambda: loop.pool_states.load_states(_now()))
            return isinstance(outcome, Ok)
        except ActuatorError as error:
            self.log.warning("state.not-read", error=str(error))
            return False

    def _run_rounds(self, loop: Loop, signing: NodeSigner) -> None:
        """Runs rounds while this replica leads and the Secret holds the keys of `signing`. When these keys change,
        everything is read again."""
        before = keys_read_at = clock.elapsed_seconds()
        statuses = PoolStatusWriter(
            self.replica.fenced_writer, self.settings.namespace, self.log, clock.elapsed_seconds
        )

        def run_round() -> float:
            nonlocal before, keys_read_at
            wait = loop.run_round()
            now = clock.elapsed_seconds()
            if now - keys_read_at > KEYS_INTERVAL_SECONDS:
                keys_read_at = now
                # An error here is not reported: the next write of a state reports it.
                with suppress(KubeFault):
                    signing.read_secret()
            loop.error_guard.run_guarded("tell", partial(self.metrics.update_from, loop, now - before))
            loop.error_guard.run_guarded("tell", partial(statuses.update, loop))
            self.metrics.update_errors(loop.error_guard)
            before = now
            return wait

        self.replica.run_rounds(run_round, lambda: signing.outdated)

    def _create_loop(self, watch: ClusterInformers, admitting: ReadmissionWatcher, signing: NodeSigner) -> Loop:
        settings, writer = self.settings, self.replica.fenced_writer
        use = UseReader(self.replica.client, clock.elapsed_seconds)
        sight = ClusterReader(watch, settings, _now, signing.keys, use.read_use)
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.replica.identity)
        door = KubeActuator(writer, EventRecorder(recorder, settings.namespace, sight.config_map), signing.keys)
        store = ConfigMapPoolStateStore(writer, settings.namespace, self.log, signing)
        faults = self.error_guard
        books = PoolStates(store, (self._log_decision, self.metrics.count_decision, door.record_decision))
        drains = Drainer(
            door,
            books,
            settings.drain_timeouts,
            StepRunner(faults, self.replica.shutdown, clock.elapsed_seconds),
            unobserved_seconds=settings.max_watch_age_seconds + UNOBSERVED_SECONDS,
        )
        planner = CompactionPlanner(
            door,
            DryRunActuator(),
            books,
            settings.drain_timeouts,
            settings.recheck_delay_seconds,
            faults,
            admitting.requests_lookup,
            slot_seconds=settings.forecast_slot_seconds,
        )
        reader = ResizeReader(
            self.replica.client,
            admitting,
            settings.max_watch_age_seconds,
            clock.elapsed_seconds,
            _now,
            PodPressures(self.replica.client) if settings.resize_pressure else None,
        )
        resizer = Resizer(
            reader,
            door.resize_pod,
            door,
            books,
            settings.resize_settings,
            # Without a clock: the server refuses a resize if the pod has changed since the view.
            StepRunner(faults, self.replica.shutdown),
            interval=settings.plan_interval_seconds,
            priority=planner.rank_resizes,
        )
        orders = OrderKeeper(
            KubeOrderSource(writer, settings.namespace, recorder, clock.elapsed_seconds),
            drains,
            self.log,
            settings.namespace,
            clock.elapsed_seconds,
            admitting.requests_lookup,
            rehearses=settings.rehearse,
        )
        return Loop(
            read_view=sight.read_view,
            pool_states=books,
            drainer=drains,
            planner=planner,
            resizer=resizer,
            orders=orders,
            soft_taints=SoftTaints(door, settings.soft_taint),
            log=self.log,
            interval=settings.plan_interval_seconds,
            tick=settings.drain_poll_interval_seconds,
            elapsed=clock.elapsed_seconds,
            pause=_sleep,
            reopened_at=sight.reopened_at,
            has_state=sight.has_state,
        )

    def _log_decision(self, record: HistoryEntry) -> None:
        """Writes a decision to the log."""
        fields = {name: getattr(record, name) for name in record.__struct_fields__}
        self.log.info(f"compactor.{record.what}", **{name: value for name, value in fields.items() if value})

    def _watch_age(self) -> float:
        return value_or_nan(self.watch.oldest_age() if self.watch is not None else None)


@contextmanager
def closing_resizes(loop: Loop) -> Iterator[None]:
    """A context manager that ends the watch of running pods when this replica no longer leads."""
    try:
        yield
    finally:
        if loop.resizer is not None:
            loop.resizer.source.stop()


@contextmanager
def sending_notifications(loop: Loop, terms: NotificationTerms | None, log: Logger) -> Iterator[None]:
    """A context manager in which decisions are also sent as notifications, unless `terms` is None."""
    if terms is None:
        yield
        return
    notifier = Notifier(terms, log, clock.elapsed_seconds)
    loop.pool_states.sinks = (*loop.pool_states.sinks, notifier.record_decision)
    try:
        yield
    finally:
        notifier.close()


def _now() -> Seconds:
    return int(clock.utc_now().timestamp())


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


def run_compactor(settings: Settings, log: Logger) -> None:
    """Runs one replica until a signal arrives. Raises RuntimeFault if it cannot start."""
    policies = load_policy_files(settings.policies)
    run_worker(
        settings,
        log,
        lambda replica: Process(settings, replica, policies),
        max_silence_seconds=max(HUNG_SECONDS, 3 * settings.plan_interval_seconds),
    )
