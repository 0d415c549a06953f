"""The terms that a pod's own annotations state for its evictions: at which times, how dear, and how often a day.

Tenants write them, so the texts are bounded, and a term that cannot be read is a value with its mistake. What a term
may cost others is bounded by the pool (`Pool.max_term_cost`, `Pool.max_term_delay`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trimtab.cluster.config_error import quote_value
from trimtab.cluster.timestamps import DAYS, Seconds, WeeklyWindow, is_any_open

COST_ANNOTATION = "trimtab.dev/disruption-cost"
"""As how many further evictions the eviction of the pod counts where nodes are put in order."""
WINDOWS_ANNOTATION = "trimtab.dev/disruption-windows"
"""The weekly windows in which the pod may be evicted."""
PER_DAY_ANNOTATION = "trimtab.dev/disruptions-per-day"
"""How many pods of the workload may be evicted in 24 hours."""
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
"""Kubernetes' own annotation: pods of a ReplicaSet with a lower cost are deleted before those with a higher one. It
counts where `COST_ANNOTATION` is absent."""
TERM_ANNOTATIONS = (COST_ANNOTATION, WINDOWS_ANNOTATION, PER_DAY_ANNOTATION)
MAX_COST = 1000
"""The largest cost that an annotation may state."""
MAX_PER_DAY = 10_000
MAX_WINDOWS = 8
MAX_TEXT_LENGTH = 256
MIN_WINDOW_MINUTES = 15
"""A shorter window closes before a drain that begins in it has ended."""
_MAX_DIGITS = 10
_DAY_MINUTES = 1440
_WINDOW = re.compile(
    r"(?:(?P<days>[A-Za-z]{3}(?:[-,][A-Za-z]{3})*) +)?"
    r"(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d)(?: +(?P<zone>[A-Za-z][A-Za-z0-9_+/-]*))?"
)
WINDOW_EXAMPLE = "mon-fri 22:00-06:00 Europe/Berlin; sat,sun 00:00-24:00"


@dataclass(frozen=True, slots=True)
class TermMistake:
    """A term that cannot be read, or that no eviction could meet."""

    annotation: str
    expected: str
    actual: str
    """The annotation's value, quoted."""

    def __str__(self) -> str:
        return f"annotation {self.annotation} is {self.actual}, but must be {self.expected}"


@dataclass(frozen=True, slots=True)
class DisruptionTerms:
    """The terms of one pod. A term that the pod does not state is 0, empty or None."""

    cost: int | TermMistake = 0
    """As how many further evictions the eviction counts."""
    windows: tuple[WeeklyWindow, ...] | TermMistake = ()
    """The windows in which the pod may be evicted; empty: at any time."""
    per_day: int | TermMistake | None = None
    """How many pods of the workload may be evicted in 24 hours; None: any number."""

    @property
    def mistakes(self) -> tuple[TermMistake, ...]:
        """The terms that cannot be read."""
        return tuple(term for term in (self.cost, self.windows, self.per_day) if isinstance(term, TermMistake))

    def capped_cost(self, max_cost: int) -> int:
        """Returns the cost, at most `max_cost`. A cost that cannot be read is the largest: what its author meant is
        not known."""
        return max_cost if isinstance(self.cost, TermMistake) else min(self.cost, max_cost)

    def is_open(self, now: Seconds) -> bool:
        """Returns whether the windows permit an eviction at this time. Windows that cannot be read never do."""
        return not isinstance(self.windows, TermMistake) and is_any_open(self.windows, now)


NO_TERMS = DisruptionTerms()


def read_terms(annotations: Mapping[str, str]) -> DisruptionTerms:
    """Returns the terms that these annotations of a pod state."""
    if not annotations or not any(key in annotations for key in (*TERM_ANNOTATIONS, DELETION_COST_ANNOTATION)):
        return NO_TERMS
    windows, per_day = annotations.get(WINDOWS_ANNOTATION), annotations.get(PER_DAY_ANNOTATION)
    return DisruptionTerms(
        cost=_read_cost(annotations),
        windows=() if windows is None else parse_windows(windows),
        per_day=None if per_day is None else parse_count(PER_DAY_ANNOTATION, per_day, 1, MAX_PER_DAY),
    )


def _read_cost(annotations: Mapping[str, str]) -> int | TermMistake:
    own = annotations.get(COST_ANNOTATION)
    if own is not None:
        return parse_count(COST_ANNOTATION, own, 0, MAX_COST)
    # The API server itself refuses what is no int32 (pkg/apis/core/validation, PodDeletionCost).
    digits = annotations.get(DELETION_COST_ANNOTATION, "").lstrip("0")
    # The annotation has no unit, only an order: its magnitude counts, and a cost below 0 makes no pod cheaper than one
    # eviction.
    return len(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS else 0


def parse_count(annotation: str, text: str, minimum: int, maximum: int) -> int | TermMistake:
    """Returns the whole number in the text, or the mistake if it is none between the bounds."""
    short = text.strip() if len(text) <= MAX_TEXT_LENGTH else ""
    if short.isascii() and short.isdecimal() and len(short) <= _MAX_DIGITS and minimum <= int(short) <= maximum:
        return int(short)
    return TermMistake(annotation, f"a whole number from {minimum} to {maximum}", quote_value(text))


# Many pods share a text, and each round of the compactor reads it again.
@lru_cache(maxsize=4096)
def parse_windows(text: str) -> tuple[WeeklyWindow, ...] | TermMistake:
    """Returns the windows in a text such as `WINDOW_EXAMPLE`, or the mistake if one of them cannot be read or is too
    short to be used."""
    expected = f"up to {MAX_WINDOWS} windows of at least {MIN_WINDOW_MINUTES} minutes such as {WINDOW_EXAMPLE}"
    mistake = TermMistake(WINDOWS_ANNOTATION, expected, quote_value(text))
    parts = [part.strip() for part in text.split(";", MAX_WINDOWS + 1) if part.strip()]
    if len(text) > MAX_TEXT_LENGTH or not 1 <= len(parts) <= MAX_WINDOWS:
        return mistake
    windows = [_parse_window(part) for part in parts]
    readable = tuple(window for window in windows if window is not None)
    return readable if len(readable) == len(windows) else mistake


def _parse_window(text: str) -> WeeklyWindow | None:
    match = _WINDOW.fullmatch(text)
    if match is None:
        return None
    days = _parse_days(match["days"].lower()) if match["days"] else DAYS
    start, end = _parse_minute(match["start"]), _parse_minute(match["end"])
    if days is None or start is None or end is None or start in (_DAY_MINUTES, end):
        return None
    if (end - start) % _DAY_MINUTES < MIN_WINDOW_MINUTES and (start, end) != (0, _DAY_MINUTES):
        return None
    zone = match["zone"] or "UTC"
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return WeeklyWindow(days=days, start=start, end=end % _DAY_MINUTES, zone=zone)


def _parse_days(text: str) -> tuple[str, ...] | None:
    """Returns the days of a text such as "mon-fri,sun" in the order of the week, or None if it is none."""
    chosen: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if first not in DAYS or last not in DAYS:
            return None
        begin, end = DAYS.index(first), DAYS.index(last)
        # A range may cross the end of the week, as fri-mon does.
        chosen.update((begin + step) % len(DAYS) for step in range((end - begin) % len(DAYS) + 1))
    return tuple(day for number, day in enumerate(DAYS) if number in chosen)


def _parse_minute(text: str) -> int | None:
    hour, minute = int(text[:2]), int(text[3:])
    total = hour * 60 + minute
    return total if minute < 60 and total <= _DAY_MINUTES else None
