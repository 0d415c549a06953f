"""OOM kills of a container, and the smallest memory request that follows from them (the floor).

A kill shows that the container needed more memory than it used or was allowed, but not how much more. So it is not a
sample of usage. It sets a floor for the request, which is raised once and fades with time. A later kill does not raise
an earlier floor further: its own floor starts from what was used or allowed at that time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BUMP_UP_RATIO = 1.2
MIN_BUMP_UP_BYTES = 100 << 20
"""After a kill, a container gets a fifth more memory than it had, and at least this many bytes (100 MiB) more (VPA:
recommender/model, OOM bump-up)."""
MAX_BYTES = float(64 << 40)
"""More memory than any machine has. A higher limit gives no information about the container."""
_ROUNDING = 1.01
"""A request up to this many times the floor counts as equal to the floor, because the request was rounded up to a
mebibyte or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BumpUp:
    """How much more memory a container needs than it had when it was killed: the larger of two amounts."""

    ratio: float = BUMP_UP_RATIO
    min_bytes: float = MIN_BUMP_UP_BYTES


DEFAULT_BUMP_UP = BumpUp()


def bytes_after_kill(used: float, bump_up: BumpUp = DEFAULT_BUMP_UP) -> float:
    """Returns the memory in bytes that a container needs after it was killed when it had `used` bytes."""
    return max(used * bump_up.ratio, used + bump_up.min_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class OomKill:
    """One OOM kill of one container. Amounts are in bytes; 0 means unknown."""

    at: int
    """The time of the kill, in seconds since 1970."""
    used: float = 0.0
    """The largest memory usage that was measured shortly before the kill."""
    limit: float = 0.0
    request: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OomRecord:
    """All OOM kills of one container of a workload, summarised in four numbers."""

    at: int
    """The time of the kill that determines the floor."""
    used: float
    """The memory in bytes that the container used or was allowed at that kill."""
    count: int = 1
    last: int = 0
    """The time of the last kill."""

    def floor_at(self, now: int, window_seconds: int, bump_up: BumpUp = DEFAULT_BUMP_UP) -> float:
        """Returns the memory in bytes that a request should not be below: the full amount for the first half of the
        window, then falling to 0 at its end."""
        age = max(0, now - self.at)
        share = min(1.0, 2.0 * (1.0 - age / window_seconds))
        return bytes_after_kill(self.used, bump_up) * share if share > 0 else 0.0


def add_kill(before: OomRecord | None, kill: OomKill, window_seconds: int) -> OomRecord:
    """Returns the record with one more kill. Kills may be added in any order."""
    after = OomRecord(at=kill.at, used=_amount_at_kill(before, kill), last=kill.at)
    if before is None or before.floor_at(kill.at, window_seconds) <= 0:
        return after
    count, last = before.count + 1, max(before.last, kill.at)
    now = max(before.at, kill.at)
    # Both floors fade, so they are compared at the same moment.
    higher = max((after, before), key=lambda record: (record.floor_at(now, window_seconds), record.at))
    return replace(higher, count=count, last=last)


def merge_oom_records(first: OomRecord, second: OomRecord, window_seconds: int) -> OomRecord:
    """Returns the record with the higher floor. The two records are not added, because both may count the same
    kills."""
    now = max(first.last, second.last)
    return max((first, second), key=lambda record: (record.floor_at(now, window_seconds), record.last, record.count))


def _amount_at_kill(before: OomRecord | None, kill: OomKill) -> float:
    """Returns the memory in bytes that the container used or was allowed at the kill.

    If its request equals the floor of an earlier kill, Trimtab has set this request. The amount of the earlier kill is
    then used in place of the request."""
    limit, request = (amount if amount <= MAX_BYTES else 0.0 for amount in (kill.limit, kill.request))
    if before is not None and not limit and request <= bytes_after_kill(before.used) * _ROUNDING:
        request = min(request, before.used)
    return min(max(kill.used, limit or request), MAX_BYTES / BUMP_UP_RATIO)
