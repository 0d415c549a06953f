"""What a server of usage warns of in its answers, such as stores that did not respond. A reading has thousands of
answers, most with the same warnings."""

from collections.abc import Callable
from dataclasses import dataclass, field

REPEAT_SECONDS = 3600
"""The seconds after which a warning that is still there is reported again."""
_MAX_WARNINGS = 20
"""The largest number of warnings that are reported in this time."""


@dataclass(slots=True)
class DistinctWarnings:
    """Reports each warning once in an hour."""

    report: Callable[[str], object]
    elapsed_seconds: Callable[[], float] = lambda: 0.0
    """The clock of a process that runs for days. Without one, each warning is reported once."""
    _reported: set[str] = field(default_factory=set)
    _first_second: float = 0.0

    def __call__(self, warning: str) -> None:
        now = self.elapsed_seconds()
        if now - self._first_second >= REPEAT_SECONDS:
            self._reported.clear()
        if warning in self._reported or len(self._reported) >= _MAX_WARNINGS:
            return
        if not self._reported:
            self._first_second = now
        self._reported.add(warning)
        self.report(warning)
