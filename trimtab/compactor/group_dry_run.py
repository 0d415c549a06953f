"""Asks the API server about all evictions of a group of pods before the first of them is made.

The budgets and annotations that the compactor has read permit the evictions. A webhook or a policy of the cluster may
refuse one all the same, and the group would be split for as long as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compaction.drain.group_evictions import DrainGroups
from trimtab.compactor.actuator import EvictionResponse, EvictionResult
from trimtab.compactor.drain_in_progress import DrainInProgress


@dataclass(frozen=True, slots=True)
class RefusedGroup:
    """A group of which no pod is evicted now."""

    group: str
    rejection: tuple[PodToEvict, EvictionResponse] | None = None
    """The pod whose eviction the API server refuses, with its response; None if a pod still waits after a refusal."""


def has_begun(drain: DrainInProgress, group: str, evicted: Container[str]) -> bool:
    """Returns whether a pod of the group is gone, or is among the uids of evicted pods."""
    groups = DrainGroups.from_view(drain.annotation, drain.view)
    return groups.has_begun(group) or any(one.uid in evicted for one in groups.members_of(group))


def find_refused_groups(
    drain: DrainInProgress,
    steps: Iterable[a.Action],
    evicted: Container[str],
    is_postponed: Callable[[str], bool],
    try_eviction: Callable[[PodToEvict], EvictionResponse],
) -> list[RefusedGroup]:
    """Returns the groups of these steps of which the API server would refuse an eviction. A group that has begun is not
    asked about: its other pods follow, each as soon as it may.

    evicted: the uids of evicted pods. is_postponed: returns whether the pod with this uid waits after a refusal.
    try_eviction: evicts a pod as a dry run.
    """
    names = dict.fromkeys(step.move.group for step in steps if isinstance(step, a.Evict) and step.move.group)
    groups = DrainGroups.from_view(drain.annotation, drain.view)
    refused: list[RefusedGroup] = []
    for group in names:
        # All pods of it, also those that end with another pod: a refusal of one is a reason to leave all alone.
        members = groups.members_of(group)
        if has_begun(drain, group, evicted):
            continue
        if any(is_postponed(member.uid) for member in members):
            refused.append(RefusedGroup(group))
            continue
        responses = ((member, try_eviction(member)) for member in members)
        rejection = next((one for one in responses if one[1].became is not EvictionResult.EVICTED), None)
        refused += [RefusedGroup(group, rejection)] if rejection is not None else []
    return refused
