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
        """Seconds to wait now; no less than the server asked for."""
        whole = min(MOST, LEAST * 2.0 ** min(self.tries, 16))
        self.tries += 1
        mine = whole * (0.5 + self.chance.random() / 2)
        return max(mine, min(at_least, PATIENCE)) if at_least else mine

    def reset(self) -> None:
        """It worked."""
        self.tries = 0
