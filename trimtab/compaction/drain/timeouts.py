"""How long the steps of a drain may take, in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.timestamps import parse_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTimeouts:
    """The limits of a drain, in seconds except for `strikes` and `drains`."""

    drain: int = 900
    """From the cordon until the last successor is ready; the longest grace period of the pods is added."""
    end: int = 120
    """How long a pod may exist after its grace period: a finalizer or a dead kubelet keeps it."""
    ready: int = 300
    """From a successor's creation until it is ready."""
    pending: int = 30
    """From a pod's creation until it has a node: the default scheduler needs far less."""
    taken: int | None = None
    """From the empty node until its removal. None: derived from the autoscaler's own settings."""
    rest: int = 3600
    """How long a pod that was moved is not moved again."""
    closed: int = 3600
    """How long a pool stays closed after failures."""
    strikes: int = 2
    """The number of failed drains in a row that closes a pool."""
    drains: int = 10
    """The maximum number of nodes that are drained at the same time in all pools (the autoscaler's own limit)."""


MARGIN_SECONDS = 300
"""The seconds added to the autoscaler's own timers, for its loop and the cloud provider's API."""


def removal_timeout(terms: DrainTimeouts, autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Returns how long an empty node waits for its removal: unneeded time, the autoscaler's longest cool-down, and a
    margin."""
    if terms.taken is not None:
        return terms.taken
    return unneeded_time(autoscaler, ready=ready) + delay_after_add(autoscaler) + MARGIN_SECONDS


def delay_after_add(autoscaler: Autoscaler | None) -> int:
    """Returns for how long the autoscaler removes no node after it added one."""
    return _flag_seconds(autoscaler.flags if autoscaler is not None else {}, "scale-down-delay-after-add", 600)


def unneeded_time(autoscaler: Autoscaler | None, *, ready: bool = True) -> int:
    """Returns for how long the autoscaler must have had no need of a node before it removes it."""
    flags = autoscaler.flags if autoscaler is not None else {}
    if ready:
        return _flag_seconds(flags, "scale-down-unneeded-time", 600)
    return _flag_seconds(flags, "scale-down-unready-time", 1200)


def _flag_seconds(flags: Mapping[str, str], name: str, default: int) -> int:
    """Returns the flag's duration, which may be 0; the default where it is absent or invalid."""
    seconds = parse_duration(flags[name]) if name in flags else None
    return default if seconds is None else seconds
