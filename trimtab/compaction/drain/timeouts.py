"""How patient is the compactor with a drain? Seconds, unless told otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.timestamps import seconds_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTimeouts:
    drain: int = 900
    """From the cordon to the last successor's readiness; the longest grace period of its pods comes on top."""
    end: int = 120
    """A pod past its grace period that is still there: a finalizer, or a dead kubelet."""
    ready: int = 300
    """From a successor's creation to its readiness."""
    pending: int = 30
    """From a pod's creation to its node: the default scheduler needs far less."""
    taken: int | None = None
    """From the empty node to its removal. None: what the autoscaler's own settings imply."""
    rest: int = 3600
    """A pod that was moved is not moved again for so long."""
    closed: int = 3600
    """A pool that was closed by failures opens again after so long."""
    strikes: int = 2
    """Failed drains in a row that close a pool."""
    drains: int = 10
    """Nodes emptied at the same time in all pools together (the autoscaler's own ceiling)."""


MARGIN = 300
"""Seconds past the autoscaler's own timers: its loop, the cloud's API."""


def patience(terms: DrainTimeouts, autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Seconds an empty node waits for its removal: unneeded time, plus the longest of the autoscaler's cool-downs."""
    if terms.taken is not None:
        return terms.taken
    return unneeded_time(autoscaler, ready=ready) + delay_after_add(autoscaler) + MARGIN


def delay_after_add(autoscaler: Autoscaler | None) -> int:
    """Seconds after it added a node in which it removes none."""
    return _flag_seconds(autoscaler.flags if autoscaler is not None else {}, "scale-down-delay-after-add", 600)


def unneeded_time(autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Seconds for which it must have had no need of a node before it removes it."""
    flags = autoscaler.flags if autoscaler is not None else {}
    if ready:
        return _flag_seconds(flags, "scale-down-unneeded-time", 600)
    return _flag_seconds(flags, "scale-down-unready-time", 1200)


def _flag_seconds(flags: Mapping[str, str], name: str, default: int) -> int:
    """The flag's duration, which may be 0; the default where it is absent or no duration."""
    seconds = seconds_of(flags[name]) if name in flags else None
    return default if seconds is None else seconds
