"""What did earlier rounds see? The memory that makes a planner calm.

A value: the process keeps it, the plan reads it. Offline there is none; then pools are taken for settled and the
plan says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from trimtab.cluster.moment import Seconds

FIRST_WAIT = 300
LONGEST_WAIT = 7200
HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A drain that did not end well."""

    times: int
    last: Seconds

    @property
    def until(self) -> Seconds:
        """5 minutes after the first, doubling, at most 2 hours."""
        return self.last + min(LONGEST_WAIT, FIRST_WAIT << min(self.times - 1, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    under_since: Mapping[str, Seconds] = field(default_factory=dict)
    """Node → since when it has been under the line without a break."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """Node → failed drains in a row."""
    evictions: tuple[Seconds, ...] = ()
    """When we evicted, the last hour."""
    draining: Mapping[str, str] = field(default_factory=dict)
    """Node → pool, of those being emptied now."""

    def seen(self, under: Iterable[str], now: Seconds) -> "Observations":
        """After one more look: nodes under the line keep their time or get `now`, others lose it."""
        return replace(self, under_since={node: self.under_since.get(node, now) for node in sorted(under)})

    def failed(self, node: str, now: Seconds) -> "Observations":
        before = self.failures.get(node)
        failure = Failure(times=before.times + 1 if before else 1, last=now)
        return replace(self, failures={**self.failures, node: failure})

    def evicted(self, count: int, now: Seconds) -> "Observations":
        """Evictions made now; those older than an hour are forgotten."""
        recent = tuple(when for when in self.evictions if when > now - HOUR)
        return replace(self, evictions=recent + (now,) * count)

    def lately(self, now: Seconds) -> int:
        """Evictions of the last hour."""
        return sum(when > now - HOUR for when in self.evictions)
