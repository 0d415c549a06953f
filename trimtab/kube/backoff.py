"""How long until the next try?

Half of it is chance, so that many replicas that lost the same server don't come back as one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

LEAST = 0.5
MOST = 30.0
PATIENCE = 120.0
"""The longest a server's own Retry-After is honoured: beyond it somebody's proxy is mistaken."""


@dataclass(slots=True)
class Backoff:
    """0.5 s, doubling to 30 s, each between half and whole of it; anew after `reset`."""

    chance: random.Random = field(default_factory=random.Random)
    tries: int = 0

    def next(self, at_least: float | None = None) -> float:
        """Seconds to wait now; no less than the server asked for, and up to half as much more: it asks everybody."""
        whole = min(MOST, LEAST * 2.0 ** min(self.tries, 16))
        self.tries += 1
        chance = self.chance.random() / 2
        return max(whole * (0.5 + chance), min(at_least or 0.0, PATIENCE) * (1 + chance))

    def reset(self) -> None:
        """It worked."""
        self.tries = 0
