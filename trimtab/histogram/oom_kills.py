"""OOM kills of a container, and the floor under its memory request that follows from them.

A kill says that the container needed more than it used or was allowed, but not how much more. So it is no sample of
usage: it is a floor under the request, raised once, that fades. It never compounds: a later kill counts from what was
used or allowed at that time, never from the floor of the kill before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BUMP_UP_RATIO = 1.2
MIN_BUMP_UP_BYTES = 100 << 20
"""A killed container gets a fifth more than it had, and at least 100 MiB more (VPA: recommender/model, OOM bump-up)."""
MAX_BYTES = float(64 << 40)
"""More than any machine has: a limit above it says nothing about the container."""
_ROUNDING = 1.01
"""A request within a hundredth of the floor is the floor, rounded up to a mebibyte or more."""


def bytes_after_kill(used: float) -> float:
    """Returns the bytes that a container needs that was killed when it had `used` bytes."""
    return max(used * BUMP_UP_RATIO, used + MIN_BUMP_UP_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OomKill:
    """One OOM kill of one container. Amounts are bytes; 0 if one is unknown."""

    at: int
    """The second since 1970."""
    used: float = 0.0
    """The largest value that was measured shortly before."""
    limit: float = 0.0
    request: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OomRecord:
    """All OOM kills of one container of a workload, in four numbers."""

    at: int
    """The second of the kill that the floor comes from."""
    used: float
    """The bytes that it used or was allowed at that time."""
    count: int = 1
    last: int = 0
    """The second of the last kill."""

    def floor_at(self, now: int, window_seconds: int) -> float:
        """Returns the bytes that a request should not be below: the full amount for half the window, then falling to 0
        at its end."""
        age = max(0, now - self.at)
        share = min(1.0, 2.0 * (1.0 - age / window_seconds))
        return bytes_after_kill(self.used) * share if share > 0 else 0.0


def add_kill(before: OomRecord | None, kill: OomKill, window_seconds: int) -> OomRecord:
    """Returns the record with one more kill. Kills may arrive in any order."""
    after = OomRecord(at=kill.at, used=_amount_at_kill(before, kill), last=kill.at)
    if before is None or before.floor_at(kill.at, window_seconds) <= 0:
        return after
    count, last = before.count + 1, max(before.last, kill.at)
    now = max(before.at, kill.at)
    # Both floors fade, so they are compared at the same moment.
    higher = max((after, before), key=lambda record: (record.floor_at(now, window_seconds), record.at))
    return replace(higher, count=count, last=last)


def merge_oom_records(first: OomRecord, second: OomRecord, window_seconds: int) -> OomRecord:
    """Returns one record of two that may count the same kills: the one with the higher floor."""
    now = max(first.last, second.last)
    return max((first, second), key=lambda record: (record.floor_at(now, window_seconds), record.last, record.count))


def _amount_at_kill(before: OomRecord | None, kill: OomKill) -> float:
    """Returns the bytes that the container used or was allowed. A request that only repeats the floor of an earlier
    kill is Trimtab's own, so it counts as the amount of that kill."""
    limit, request = (amount if amount <= MAX_BYTES else 0.0 for amount in (kill.limit, kill.request))
    if before is not None and not limit and request <= bytes_after_kill(before.used) * _ROUNDING:
        request = min(request, before.used)
    return min(max(kill.used, limit or request), MAX_BYTES / BUMP_UP_RATIO)
