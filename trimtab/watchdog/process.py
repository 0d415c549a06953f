"""All of it wired: one replica of the watchdog, from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.harm import FailureHistory
from trimtab.kube.events import Recorder
from trimtab.kube.leader_process import LOOK, LeaderProcess, opened
from trimtab.kube.objects import Writer
from trimtab.runtime import clock
from trimtab.runtime.log import Logger
from trimtab.watchdog.events import CONTROLLER, PolicyEventRecorder
from trimtab.watchdog.harm_brake import Brake, BrakeActuator, DryRunBrakeActuator
from trimtab.watchdog.loop import Loop
from trimtab.watchdog.metrics import Metrics
from trimtab.watchdog.pod_watcher import AuditWatcher
from trimtab.watchdog.policy_state import base
from trimtab.watchdog.policy_status import PolicyStatusWriter
from trimtab.watchdog.settings import Settings

NAME = "watchdog"
STALE = 200.0
"""Seconds after which what a watch holds is too old to act on. A quiet watch hears from the server every minute; of a
kind that never changed since the server's start, after 150 seconds."""
HUNG = 300.0
"""Seconds without a sign of life after which we say that we are not well. A look takes a second or two."""
PATIENCE = 30.0
"""Seconds until the first lists should have been read."""


@dataclass(slots=True)
class Process:
    """One replica: it leads while it may, and waits otherwise."""

    settings: Settings
    replica: LeaderProcess
    base: AuditInputs
    following: AuditWatcher | None = None
    log: Logger = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.metrics = Metrics(CollectorRegistry(), self.replica.leading, self._age)

    def run(self) -> None:
        """Until asked to stop. Leads while it may, waits otherwise."""
        with self.replica.standing(self.metrics.registry):
            self.replica.work(self._lead)

    def _lead(self) -> None:
        """Everything is read anew."""
        settings = self.settings
        from_cluster = not settings.policies
        with AuditWatcher(
            self.replica.client, self.base, settings.configuration_name, policies=from_cluster
        ) as following:
            self.following = following
            if self._listed(following):
                self._rounds(following, self._loop(following))
            self.following = None

    def _listed(self, following: AuditWatcher) -> bool:
        """Was everything read once? False where we lead no more."""
        begun, told = clock.elapsed(), False
        while self.replica.may():
            complete = following.synced  # before the changes are taken: whatever was listed is among them
            following.hear()
            if complete and following.synced:  # what was heard may have led to one more watch
                return True
            if not told and clock.elapsed() - begun > PATIENCE:
                self.log.warning("watchdog.waits", troubles=following.troubles())
                told = True
            self.replica.wait(LOOK)
        return False

    def _rounds(self, following: AuditWatcher, loop: Loop) -> None:
        while self.replica.may():
            self.replica.wait(self._round(following, loop))

    def _round(self, following: AuditWatcher, loop: Loop) -> float:
        try:
            following.hear()
            return loop.look()
        except Exception as error:
            self.metrics.faults.labels("look").inc()
            self.log.error("look failed", error=f"{type(error).__name__}: {error}", exc_info=True)
            return self.settings.check_interval_seconds

    def _loop(self, following: AuditWatcher) -> Loop:
        settings, log, writer = self.settings, self.log, self.replica.writer
        recorder = Recorder(writer=writer, controller=CONTROLLER, instance=self.replica.identity)
        return Loop(
            seen=following.seen,
            pods=following.pods,
            fresh=lambda: following.synced and (following.age() or 0.0) < STALE,
            door=self._door(writer),
            statuses=PolicyStatusWriter(
                writer=writer, log=log, every=settings.status_write_interval_seconds, elapsed=clock.elapsed
            ),
            teller=PolicyEventRecorder(
                recorder, log, settings.event_repeat_interval_seconds, settings.max_events_per_check, clock.elapsed
            ),
            metrics=self.metrics,
            interval=settings.check_interval_seconds,
            now=lambda: clock.utc().timestamp(),
            elapsed=clock.elapsed,
            survey=Auditor(most=settings.max_decisions_per_check),
            ledger=FailureHistory(settings.harm_terms),
        )

    def _door(self, writer: Writer) -> BrakeActuator | None:
        """Policies of a folder cannot be put to `warn`: they are only told of."""
        if self.settings.harm_brake == "off":
            return None
        if self.settings.harm_brake == "report" or self.settings.policies:
            return DryRunBrakeActuator(self.log)
        return Brake(writer, self.log)

    def _age(self) -> float:
        age = self.following.age() if self.following is not None else None
        return float("nan") if age is None else age


def run(settings: Settings, log: Logger) -> None:
    """One replica, until a signal. Raises RuntimeFault where it cannot begin."""
    standing = base(settings)
    with opened(NAME, settings, log, hung=max(HUNG, 3 * settings.check_interval_seconds)) as replica:
        Process(settings, replica, standing).run()
