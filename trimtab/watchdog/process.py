"""Builds one replica of the watchdog and runs it from start to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry

from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.harm import FailureHistory
from trimtab.kube.events import Recorder
from trimtab.kube.objects import Writer
from trimtab.runtime import clock
from trimtab.runtime.http_pages import Page
from trimtab.runtime.log import Logger
from trimtab.runtime.metrics import value_or_nan
from trimtab.watchdog.harm_brake import Brake, BrakeActuator, DryRunBrakeActuator
from trimtab.watchdog.loop import Loop
from trimtab.watchdog.metrics import Metrics
from trimtab.watchdog.pod_watcher import AuditWatcher
from trimtab.watchdog.policy_events import CONTROLLER, PolicyEventRecorder
from trimtab.watchdog.policy_state import load_base_inputs
from trimtab.watchdog.policy_status import PolicyStatusWriter
from trimtab.watchdog.settings import Settings
from trimtab.workers.leader_process import LeaderProcess
from trimtab.workers.worker import run_worker

STALE_SECONDS = 200.0
"""If data from a watch is older than this many seconds, the watchdog does not act on it. A watch without changes gets a
bookmark every minute, or after 150 seconds for a kind that has never changed since the API server started."""
HUNG_SECONDS = 300.0
"""After this many seconds without progress, the process reports itself as unhealthy. A round takes a second or two."""
PATIENCE_SECONDS = 30.0
"""After this many seconds without a first list, the missing lists are logged."""


@dataclass(slots=True)
class Process:
    """One replica of the watchdog: it works while it leads, and waits otherwise."""

    settings: Settings
    replica: LeaderProcess
    base: AuditInputs
    watcher: AuditWatcher | None = None
    log: Logger = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.metrics = Metrics(CollectorRegistry(), self.replica.is_leading, self._data_age)

    @property
    def registry(self) -> CollectorRegistry:
        return self.metrics.registry

    @property
    def pages(self) -> Mapping[str, Page]:
        return {}

    def lead(self) -> None:
        """Starts new watches and a new loop. Nothing is kept from an earlier time as the leader."""
        settings = self.settings
        from_cluster = not settings.policies
        with AuditWatcher(
            self.replica.client, self.base, settings.configuration_name, policies=from_cluster
        ) as watcher:
            self.watcher = watcher
            if self._wait_for_lists(watcher):
                self.replica.run_rounds(partial(self._run_round, watcher, self._build_loop(watcher)))
            self.watcher = None

    def _wait_for_lists(self, watcher: AuditWatcher) -> bool:
        """Waits until every list has been read, and returns True; False if the replica no longer leads."""
        started, is_logged = clock.elapsed_seconds(), False

        def apply_lists() -> bool:
            nonlocal is_logged
            # Read before `apply_events`, so that all listed objects are among the changes that it applies.
            was_synced = watcher.is_synced
            watcher.apply_events()
            if was_synced and watcher.is_synced:  # the changes may have added a watch
                return True
            if not is_logged and clock.elapsed_seconds() - started > PATIENCE_SECONDS:
                self.log.warning("watchdog.waits", troubles=watcher.list_errors())
                is_logged = True
            return False

        return self.replica.retry_while_leading(apply_lists)

    def _run_round(self, watcher: AuditWatcher, loop: Loop) -> float:
        try:
            watcher.apply_events()
            return loop.run_round()
        except Exception as error:
            self.metrics.faults.labels("look").inc()
            self.log.error("check failed", error=f"{type(error).__name__}: {error}", exc_info=True)
            return self.settings.check_interval_seconds

    def _build_loop(self, watcher: AuditWatcher) -> Loop:
        settings, log, writer = self.settings, self.log, self.replica.fenced_writer
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.replica.identity)
        return Loop(
            state_builder=watcher.state_builder,
            pods=watcher.stored_pods,
            is_fresh=lambda: watcher.is_synced and (watcher.data_age() or 0.0) < STALE_SECONDS,
            brake=self._build_brake(writer),
            statuses=PolicyStatusWriter(
                writer=writer, log=log, every=settings.status_write_interval_seconds, elapsed=clock.elapsed_seconds
            ),
            event_recorder=PolicyEventRecorder(
                recorder,
                log,
                settings.event_repeat_interval_seconds,
                settings.max_events_per_check,
                clock.elapsed_seconds,
            ),
            metrics=self.metrics,
            interval=settings.check_interval_seconds,
            now=lambda: clock.utc_now().timestamp(),
            elapsed=clock.elapsed_seconds,
            auditor=Auditor(most=settings.max_decisions_per_check),
            history=FailureHistory(settings.harm_terms),
        )

    def _build_brake(self, writer: Writer) -> BrakeActuator | None:
        """Returns the object that acts on harmful policies as the settings say, or None if the setting is `off`.
        Policies from a folder cannot be patched in the cluster, so they are only reported."""
        if self.settings.harm_brake == "off":
            return None
        if self.settings.harm_brake == "report" or self.settings.policies:
            return DryRunBrakeActuator(self.log)
        return Brake(writer, self.log)

    def _data_age(self) -> float:
        return value_or_nan(self.watcher.data_age() if self.watcher is not None else None)


def run(settings: Settings, log: Logger) -> None:
    """Runs one replica until a signal arrives. Raises RuntimeFault if it cannot start."""
    inputs = load_base_inputs(settings)
    run_worker(
        settings,
        log,
        lambda replica: Process(settings, replica, inputs),
        max_silence_seconds=max(HUNG_SECONDS, 3 * settings.check_interval_seconds),
    )
