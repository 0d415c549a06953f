"""Runs the next steps of many drains or resizes, one after the other: what `drainer` and `resizer` have in common.

What the next step is, their state machines decide (`compaction.drain`, `compaction.resize`), and how it is written, the
two modules themselves. Here is only what must hold for every step: the error of one does not prevent the others;
nothing new begins while the process is stopping or when the view is too old; and what was rejected waits before it is
tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from trimtab.compactor.actuator import ActuatorForbidden, ErrorCollector
from trimtab.compactor.error_guard import ErrorGuard, Failed
from trimtab.runtime.graceful_shutdown import GracefulShutdown

MAX_VIEW_AGE_SECONDS = 15.0
"""If the view is older than this many seconds, nothing is evicted, because `paused` and other changes must take effect
even while writes are slow."""
RETRY_SECONDS = 10.0
"""The number of seconds until a rejected write is tried again if the server does not say when (the autoscaler's own
interval)."""


@dataclass(frozen=True, slots=True)
class GuardedStep:
    """The next step of one drain, or of the resizes of one pool."""

    about: str
    """The name of the node or pool, for the log."""
    run: Callable[[], Any]
    recover: Callable[[Failed], None] = lambda failed: None
    """Undoes what the step would have continued. It is called if the step fails unexpectedly."""
    waits_if_forbidden: bool = False
    """Whether nothing is tried for `about` for some seconds after the API server has rejected a write."""


@dataclass(slots=True)
class StepRunner:
    """Runs steps, and remembers what has to wait."""

    error_guard: ErrorGuard
    shutdown: GracefulShutdown
    elapsed: Callable[[], float] | None = None
    """Returns the present time of the monotonic clock in seconds, which is compared with the age of the view. If None,
    the view never counts as too old."""
    retry_at: dict[str, float] = field(default_factory=dict)
    """Uid of a pod, name of a node, or namespace/name of a Deployment → the monotonic time before which no write to it
    is tried again."""

    def run_steps(self, kind: str, steps: Iterable[GuardedStep], now: float) -> ErrorCollector:
        """Runs all steps, and returns their errors, which the caller raises when it has done the rest of the round.
        `kind` is the kind of work; `now` is the monotonic time of the view."""
        collector = ErrorCollector()
        for step in steps:
            with collector.collect_errors():
                self._run_step(kind, step, now)
        return collector

    def _run_step(self, kind: str, step: GuardedStep, now: float) -> None:
        try:
            outcome = self.error_guard.run_guarded(kind, step.run, about=step.about)
            if isinstance(outcome, Failed):
                step.recover(outcome)
        except ActuatorForbidden:
            if step.waits_if_forbidden:
                self.postpone(step.about, now)
            raise

    def may_begin(self, now: float) -> bool:
        """Returns whether something new may begin: the process is not stopping, and the view, which was read at `now`,
        is not too old."""
        is_too_old = self.elapsed is not None and self.elapsed() - now > MAX_VIEW_AGE_SECONDS
        return not (self.shutdown.is_requested or is_too_old)

    def postpone(self, name: str, now: float, seconds: float | None = None) -> None:
        """Remembers that no write to `name` is tried for some seconds; None if the server did not say for how many."""
        self.retry_at[name] = now + (seconds or RETRY_SECONDS)

    def is_postponed(self, name: str) -> bool:
        """Returns whether a write to `name` has to wait."""
        return name in self.retry_at

    def forget_past_waits(self, now: float) -> None:
        """Forgets the waits that are over."""
        self.retry_at = {name: until for name, until in self.retry_at.items() if until > now}
