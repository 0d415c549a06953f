"""An error nobody foresaw: told with its traceback, counted, and not in the way of the others' work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from trimtab.compactor.actuator import ActuatorError
from trimtab.runtime.log import Logger

T = TypeVar("T")
KINDS = ("look", "drain", "plan", "begin", "round", "end", "tell")
"""What was being done."""


@dataclass(slots=True)
class ErrorGuard:
    """Of one process. What a door raises is no fault of ours, and goes through."""

    log: Logger
    kinds: Counter[str] = field(default_factory=Counter)
    """What was being done → how often it failed so."""
    last: str = ""
    """The last one in words; empty while there was none."""

    @property
    def count(self) -> int:
        return self.kinds.total()

    def caught(self, kind: str, do: Callable[[], T], *, about: str = "") -> T | None:
        """What `do` gives; None where it failed. `about`: the node or pool it was done for."""
        try:
            return do()
        except ActuatorError:
            raise
        except Exception as error:
            self.kinds[kind] += 1
            self.last = f"{kind} {about}: {type(error).__name__}: {error}".replace(" :", ":")
            self.log.error("compactor.fault", kind=kind, about=about, error=self.last, exc_info=True)
            return None
