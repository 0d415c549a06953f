"""The disruption controller's own formula: how many evictions a budget allows, and how many more ready pods it takes
until it allows one (pkg/controller/disruption, 1.36: getExpectedPodCount, updatePdbStatus)."""

from trimtab.cluster.pdb import Pdb

_WHOLE_PERCENT = 100
_MAX_EXTRA = 100
"""The largest number of pods that is tried for a percentage p: with S pods, ceil(p(S + k)) ≤ S + k - 1 holds as soon as
S + k is at least 100 / (100 - p)."""


def disruptions_allowed(budget: Pdb, extra: int = 0) -> int | None:
    """Returns how many evictions the budget allows when a controller under it has `extra` more pods, all of them
    healthy; None if the budget's spec cannot be read.

    The healthy pods that are already there count as its status counts them.
    """
    scale = budget.expected + extra
    if scale <= 0:
        return 0
    if budget.max_unavailable is not None:
        unavailable = _scaled(budget.max_unavailable, scale)
        desired = None if unavailable is None else max(0, scale - unavailable)
    elif budget.min_available is not None:
        desired = _scaled(budget.min_available, scale)
    else:
        # A budget that says neither allows nothing: its expected count is 0.
        return 0
    return None if desired is None else max(0, budget.healthy + extra - desired)


def needed_extra(budget: Pdb) -> int | None:
    """Returns the smallest number of ready pods, in addition to those that the budget counts, with which it allows one
    eviction; None if no number does, or if the budget's spec cannot be read."""
    minimum = budget.min_available
    if budget.max_unavailable is None and isinstance(minimum, int):
        return max(0, minimum + 1 - budget.healthy)
    return next((extra for extra in range(_MAX_EXTRA + 1) if disruptions_allowed(budget, extra)), None)


def _scaled(value: int | str, scale: int) -> int | None:
    """Returns a number as it is, or a percentage of `scale`, rounded up; None if the text is no percentage."""
    if isinstance(value, int):
        return value
    percent = value.removesuffix("%")
    if not value.endswith("%") or not percent.isdecimal():
        return None
    return -(-int(percent) * scale // _WHOLE_PERCENT)
