"""How much may be written now, so that no ten minutes see more than a stated number of bytes?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

PERIOD_SECONDS = 600.0
OVERHEAD_BYTES = 600
"""Of a ConfigMap beside its text: name, labels, managed fields, as the API server stores them."""


@dataclass(slots=True)
class WriteBudget:
    """What was written in the last ten minutes, against the most that may be."""

    max_bytes: int
    elapsed: Callable[[], float]
    _spent: deque[tuple[float, int]] = field(default_factory=deque)

    def spent(self) -> int:
        """Bytes within the last ten minutes."""
        oldest = self.elapsed() - PERIOD_SECONDS
        while self._spent and self._spent[0][0] <= oldest:
            self._spent.popleft()
        return sum(size for _, size in self._spent)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes may be written now. What is larger than the whole budget may be, alone: it would
        never be written otherwise."""
        spent = self.spent()
        return not spent or spent + size <= self.max_bytes

    def spend(self, size: int) -> None:
        """So many bytes were written."""
        self._spent.append((self.elapsed(), size))
