"""Handles unexpected errors: logs them with a traceback, counts them, and lets other work continue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from trimtab.compactor.actuator import ActuatorError
from trimtab.runtime.log import Logger

T = TypeVar("T")
WORK_KINDS = ("look", "drain", "plan", "begin", "round", "end", "tell", "resize", "orders")
"""The kinds of work that can fail unexpectedly."""


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    """A guarded step ended as expected."""

    result: T


@dataclass(frozen=True, slots=True)
class Failed:
    """A guarded step failed unexpectedly."""

    error: str
    """The kind of work, what it was about, and the error, as text."""


GuardedResult: TypeAlias = Ok[T] | Failed


@dataclass(slots=True)
class ErrorGuard:
    """The unexpected errors of one process. An ActuatorError is an expected error, and is raised again."""

    log: Logger
    kinds: Counter[str] = field(default_factory=Counter)
    """Kind of work → how many times it has failed unexpectedly."""
    last_error: str = ""
    """The last unexpected error as text; empty if there was none."""

    @property
    def error_count(self) -> int:
        """The number of unexpected errors."""
        return self.kinds.total()

    def run_guarded(self, kind: str, do: Callable[[], T], *, about: str = "") -> GuardedResult[T]:
        """Returns the result of `do`, or that it failed. `about` is the node or pool for which it was called."""
        try:
            return Ok(do())
        except ActuatorError:
            raise
        except Exception as error:
            self.kinds[kind] += 1
            self.last_error = f"{kind} {about}: {type(error).__name__}: {error}".replace(" :", ":")
            self.log.error("compactor.fault", kind=kind, about=about, error=self.last_error, exc_info=True)
            return Failed(self.last_error)
