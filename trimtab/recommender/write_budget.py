"""Limits the number of bytes that are written in any ten minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

PERIOD_SECONDS = 600.0
OVERHEAD_BYTES = 600
"""The size of a ConfigMap in addition to its text, in bytes: name, labels and managed fields, as the API server stores
them."""


@dataclass(slots=True)
class WriteBudget:
    """The bytes written in the last ten minutes, and the largest number allowed."""

    max_bytes: int
    elapsed: Callable[[], float]
    _spent: deque[tuple[float, int]] = field(default_factory=deque)

    def spent_bytes(self) -> int:
        """Returns the bytes written within the last ten minutes."""
        oldest = self.elapsed() - PERIOD_SECONDS
        while self._spent and self._spent[0][0] <= oldest:
            self._spent.popleft()
        return sum(size for _, size in self._spent)

    def has_room(self, size: int) -> bool:
        """Returns whether this many bytes may be written now. A text that is larger than the whole budget may be
        written if nothing else was; otherwise it could never be written."""
        spent = self.spent_bytes()
        return not spent or spent + size <= self.max_bytes

    def spend(self, size: int) -> None:
        """Records that this many bytes were written."""
        self._spent.append((self.elapsed(), size))
