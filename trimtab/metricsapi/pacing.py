"""Decides when the next scrape may start; `scrape_queue` decides which target is scraped.

Two budgets limit the rate. Each scrape takes one unit from the surplus, and those of known targets one from the debt as
well, so that new targets take nothing of what known ones are owed:

- the *surplus* fills at the maximum rate. New targets are scraped at once while there is any, so that a new pod soon
  has its first rate, but a restart of this process does not scrape a thousand pods in one second;
- the *debt* fills at the minimum rate, which is the number of targets per interval. Known targets are scraped when both
  budgets allow it: evenly over the interval, and after a pause of this process a little faster until it has caught up.
"""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceLimits:
    """The rates per second at which the budgets fill, and the limits of the budgets."""

    min_per_second: float
    max_per_second: float
    max_debt: float
    max_surplus: float


@dataclass(slots=True)
class ScrapePace:
    """The state of the two budgets at one time. Not thread-safe."""

    limits: PaceLimits
    now: float
    surplus: float = field(init=False)
    debt: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        # The surplus is full at the start: the first targets are all new.
        self.surplus = self.limits.max_surplus

    def advance_to(self, now: float) -> None:
        """Fills both budgets according to the time since the last call."""
        seconds, self.now = max(0.0, now - self.now), max(now, self.now)
        self.surplus = min(self.limits.max_surplus, self.surplus + seconds * self.limits.max_per_second)
        self.debt = min(self.limits.max_debt, self.debt + seconds * self.limits.min_per_second)

    def change_min_rate(self, per_second: float) -> None:
        """Sets the minimum rate, because the number of targets has changed."""
        self.limits = replace(self.limits, min_per_second=min(per_second, self.limits.max_per_second))

    def allows_start(self, *, eager: bool) -> bool:
        """Returns whether a scrape may start now. `eager`: the target is new."""
        # Sums of fractions of seconds end a little below a whole number.
        return self.surplus >= 1 - 1e-9 and (eager or self.debt >= 1 - 1e-9)

    def take_start(self, *, eager: bool) -> bool:
        """Returns whether a scrape may start now. If so, one unit is taken from the surplus, and one from the debt
        unless the target is new (`eager`)."""
        if not self.allows_start(eager=eager):
            return False
        self.surplus -= 1
        if not eager:
            self.debt = max(0.0, self.debt - 1)
        return True
