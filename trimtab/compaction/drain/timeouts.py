"""How long the steps of a drain may take, in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.timestamps import parse_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTimeouts:
    """How long the steps of a drain may take, in seconds; `strikes` and `drains` are numbers."""

    drain: int = 900
    """The maximum seconds from the cordon until the last successor is ready. The longest grace period of the pods is
    added."""
    end: int = 120
    """How long a pod may still exist after its grace period, for example because of a finalizer or a dead kubelet."""
    ready: int = 300
    """The maximum seconds from the creation of a successor until it is ready."""
    pending: int = 30
    """The maximum seconds from the creation of a pod until it has a node; the default scheduler needs far less."""
    taken: int | None = None
    """The maximum seconds from the time at which the node is empty until it is removed. None: derived from the
    autoscaler's own settings."""
    rest: int = 3600
    """For how long a successor of a moved pod is not moved again."""
    closed: int = 3600
    """For how long a pool stays closed after failures."""
    strikes: int = 2
    """How many failed drains in a row close a pool."""
    drains: int = 10
    """How many nodes of all pools together may be drained at the same time (the autoscaler's own limit)."""


MARGIN_SECONDS = 300
"""Seconds that are added to the autoscaler's own timers, for its loop and the cloud provider's API."""


def removal_timeout(terms: DrainTimeouts, autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Returns how long an empty node may wait for its removal: the autoscaler's unneeded time, its longest cool-down,
    and a margin."""
    if terms.taken is not None:
        return terms.taken
    return unneeded_time(autoscaler, ready=ready) + delay_after_add(autoscaler) + MARGIN_SECONDS


def delay_after_add(autoscaler: Autoscaler | None) -> int:
    """Returns for how many seconds the autoscaler removes no node after it has added one."""
    return _longest_seconds(autoscaler, "scale-down-delay-after-add", 600)


def unneeded_time(autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Returns for how many seconds the autoscaler must find a node unneeded before it removes it."""
    if ready:
        return _longest_seconds(autoscaler, "scale-down-unneeded-time", 600)
    return _longest_seconds(autoscaler, "scale-down-unready-time", 1200)


def _longest_seconds(autoscaler: Autoscaler | None, name: str, default: int) -> int:
    """Returns the flag's duration in seconds, the longest one if there are several autoscalers."""
    if autoscaler is None:
        return default
    return max(_flag_seconds(member.flags, name, default) for member in autoscaler.each)


def _flag_seconds(flags: Mapping[str, str], name: str, default: int) -> int:
    """Returns the flag's duration in seconds, which may be 0; the default if the flag is absent or invalid."""
    seconds = parse_duration(flags[name]) if name in flags else None
    return default if seconds is None else seconds
