"""How long the steps of a drain may take, in seconds."""

from dataclasses import dataclass

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.autoscaler_flags import AutoscalerFlag
from trimtab.cluster.cluster_autoscaler import Autoscaler


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


def removal_timeout(timeouts: DrainTimeouts, autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Returns how long an empty node may wait for its removal: the autoscaler's unneeded time, its longest cool-down,
    and a margin."""
    if timeouts.taken is not None:
        return timeouts.taken
    return unneeded_time(autoscaler, ready=ready) + longest_delay(autoscaler) + MARGIN_SECONDS


def delay_after_add(autoscaler: Autoscaler | None) -> int:
    """Returns for how many seconds the autoscaler removes no node after it has added one."""
    return _longest_seconds(autoscaler, f.DELAY_AFTER_ADD)


def longest_delay(autoscaler: Autoscaler | None) -> int:
    """Returns for how many seconds the autoscaler removes no node after it has added or removed one, or after it has
    failed to remove one: the longest of these delays. The default of the last one is shorter than the margin."""
    rare = (f.DELAY_AFTER_DELETE, f.DELAY_AFTER_FAILURE)
    members = autoscaler.each if autoscaler is not None else ()
    set_delays = [flag.seconds_in(member.flags) for member in members for flag in rare if flag.name in member.flags]
    return max([delay_after_add(autoscaler), *set_delays])


def unneeded_time(autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Returns for how many seconds the autoscaler must find a node unneeded before it removes it."""
    return _longest_seconds(autoscaler, f.UNNEEDED_TIME if ready else f.UNREADY_TIME)


def _longest_seconds(autoscaler: Autoscaler | None, flag: AutoscalerFlag) -> int:
    """Returns the flag's duration in seconds, the longest one if there are several autoscalers."""
    return max(flag.seconds_in(member.flags) for member in autoscaler.each) if autoscaler else flag.seconds_in({})
