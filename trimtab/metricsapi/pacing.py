"""Decides when the next scrape may start, and which target is scraped.

Two budgets limit the rate, and each scrape takes one unit from both:

- the *surplus* fills at the maximum rate. New targets are scraped at once while there is any, so that a new pod soon
  has its first rate, but a restart of this process does not scrape a thousand pods in one second;
- the *debt* fills at the minimum rate, which is the number of targets per interval. Known targets are scraped when both
  budgets allow it: evenly over the interval, and after a pause of this process a little faster until it has caught up.

Targets are scraped in a circle; those that no longer exist are skipped.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


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

    def take_start(self, *, eager: bool) -> bool:
        """Returns whether a scrape may start now. If so, one unit is taken from both budgets. `eager`: the target is
        new."""
        # Sums of fractions of seconds end a little below a whole number.
        if self.surplus < 1 - 1e-9 or (not eager and self.debt < 1 - 1e-9):
            return False
        self.surplus -= 1
        self.debt = max(0.0, self.debt - 1)
        return True


@dataclass(slots=True)
class ScrapeQueue(Generic[T]):
    """The targets in the order in which they are scraped. Not thread-safe."""

    _circle: deque[T] = field(default_factory=deque)
    _targets: set[T] = field(default_factory=set)
    _eager: deque[tuple[float, T]] = field(default_factory=deque)
    """(time at which it is due, target) for each new target, sorted by time."""

    def __len__(self) -> int:
        return len(self._targets)

    def replace_targets(self, targets: Iterable[T], now: float, second_after_seconds: float | None = None) -> None:
        """Sets the targets. New ones are due at once and, if `second_after_seconds` is given, once more after that
        time, because a rate needs two samples."""
        wanted = dict.fromkeys(targets)
        new = [target for target in wanted if target not in self._targets]
        self._targets = set(wanted)
        # Without those that are gone: one that comes back must not be in the circle twice.
        self._circle = deque((*(target for target in self._circle if target in self._targets), *new))
        due = [(now, target) for target in new]
        if second_after_seconds is not None:
            due += [(now + second_after_seconds, target) for target in new]
        # One that went before its turn and comes back is new once, not twice.
        staying = (entry for entry in self._eager if entry[1] in self._targets)
        self._eager = deque(sorted((*staying, *due), key=lambda entry: entry[0]))

    def take_next(self, pace: ScrapePace) -> T | None:
        """Returns the target to scrape now, or None if none is due or the pace does not allow a scrape."""
        target = self._take_eager(pace)
        return self._take_lazy(pace) if target is None else target

    def _take_eager(self, pace: ScrapePace) -> T | None:
        while self._eager and self._eager[0][0] <= pace.now:
            if self._eager[0][1] not in self._targets:
                self._eager.popleft()
            elif pace.take_start(eager=True):
                _, target = self._eager.popleft()
                return target
            else:
                return None
        return None

    def _take_lazy(self, pace: ScrapePace) -> T | None:
        if not self._circle or not pace.take_start(eager=False):
            return None
        target = self._circle[0]
        self._circle.rotate(-1)
        return target
