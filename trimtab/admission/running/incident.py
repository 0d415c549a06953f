"""What befell this pod, as its status tells?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trimtab.cluster.api.pod import Condition, ContainerStatus, PodStatus
from trimtab.cluster.moment import seconds


class Trouble(StrEnum):
    """What a policy can do to a pod without meaning to. Bounded: metrics carry it."""

    OOM_KILLED = "oom-killed"
    """A container was killed for using more memory than it may, or than its node has."""
    EVICTED = "evicted"
    """The kubelet evicted the pod because its node ran short."""
    UNSCHEDULABLE = "unschedulable"
    """No node takes the pod."""


@dataclass(frozen=True, slots=True)
class Incident:
    """One trouble of one pod."""

    trouble: Trouble
    at: float
    """Seconds since 1970: when it happened; for an unschedulable pod, since when it waits."""


def incidents(status: PodStatus, created: float | None) -> tuple[Incident, ...]:
    """Every trouble once, the latest of its kind. What tells no time is taken to be as old as the pod."""
    latest: dict[Trouble, float] = {}
    for found in _all(status, created or 0.0):
        latest[found.trouble] = max(found.at, latest.get(found.trouble, 0.0))
    return tuple(Incident(trouble, at) for trouble, at in sorted(latest.items()))


def _all(status: PodStatus, created: float) -> Iterator[Incident]:
    for container in status.container_statuses:
        yield from _killed(container, created)
    if status.phase == "Failed" and status.reason == "Evicted":
        yield Incident(Trouble.EVICTED, _since(status.conditions, "DisruptionTarget", created))
    if status.phase == "Pending" and any(map(_waits, status.conditions)):
        yield Incident(Trouble.UNSCHEDULABLE, _since(status.conditions, "PodScheduled", created))


def _killed(container: ContainerStatus, created: float) -> Iterator[Incident]:
    """Both the state it is in and the one before: a restarted container has the latter."""
    for state in (container.state, container.last_state):
        ended: Any = state.get("terminated") if isinstance(state, Mapping) else None
        if isinstance(ended, Mapping) and ended.get("reason") == "OOMKilled":
            yield Incident(Trouble.OOM_KILLED, float(seconds(ended.get("finishedAt")) or created))


def _waits(condition: Condition) -> bool:
    return condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"


def _since(conditions: tuple[Condition, ...], kind: str, otherwise: float) -> float:
    """A condition's last change: when it came to be what it is."""
    times = (seconds(c.last_transition_time) for c in conditions if c.type == kind)
    return float(next((at for at in times if at is not None), otherwise))
