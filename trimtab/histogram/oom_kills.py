"""How much does a container need that was killed for want of memory?

A kill says that the container needed more than it used or was allowed, and not how much more. So it is no sample of
usage: it is a floor under the request, raised once, that fades. It never compounds: a further kill counts from what was
used or allowed then, never from the floor of the kill before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

SHARE = 1.2
LEAST_BYTES = 100 << 20
"""A killed container gets a fifth more than it had, and at least 100 MiB more (as the VPA does it)."""
MAX_BYTES = float(64 << 40)
"""No machine has more: a limit above it says nothing about the container."""
_ROUNDED = 1.01
"""A request within a hundredth of the floor is the floor, rounded up to a mebibyte or more."""


def needed(used: float) -> float:
    """The bytes that a container needs that was killed with so many."""
    return max(used * SHARE, used + LEAST_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OomKill:
    """One container was killed for want of memory. Bytes; 0 where it is not known."""

    at: int
    """Second since 1970."""
    used: float = 0.0
    """The most that was measured shortly before."""
    limit: float = 0.0
    request: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OomRecord:
    """All kills of one container of a workload, in four numbers."""

    at: int
    """When the kill was that the floor comes from."""
    used: float
    """The bytes that it used or was allowed then."""
    count: int = 1
    last: int = 0
    """When the last kill was."""

    def floor(self, now: int, window_seconds: int) -> float:
        """The bytes that a request should not be below: whole for half the window, then less and less until its end."""
        age = max(0, now - self.at)
        left = min(1.0, 2.0 * (1.0 - age / window_seconds))
        return needed(self.used) * left if left > 0 else 0.0


def with_kill(before: OomRecord | None, kill: OomKill, window_seconds: int) -> OomRecord:
    """The record with one kill more, in whatever order kills become known."""
    after = OomRecord(at=kill.at, used=_had(before, kill), last=kill.at)
    if before is None or before.floor(kill.at, window_seconds) <= 0:
        return after
    count, last = before.count + 1, max(before.last, kill.at)
    now = max(before.at, kill.at)
    higher = max((after, before), key=lambda record: (record.floor(now, window_seconds), record.at))
    return replace(higher, count=count, last=last)


def joined(one: OomRecord, other: OomRecord, window_seconds: int) -> OomRecord:
    """One record of two that may tell of the same kills: the higher floor counts."""
    now = max(one.last, other.last)
    return max((one, other), key=lambda record: (record.floor(now, window_seconds), record.last, record.count))


def _had(before: OomRecord | None, kill: OomKill) -> float:
    """What it used or was allowed. A request that only repeats the floor of an earlier kill is our own doing: it counts
    as what that kill counted."""
    limit, request = (amount if amount <= MAX_BYTES else 0.0 for amount in (kill.limit, kill.request))
    if before is not None and not limit and request <= needed(before.used) * _ROUNDED:
        request = min(request, before.used)
    return min(max(kill.used, limit or request), MAX_BYTES / SHARE)
