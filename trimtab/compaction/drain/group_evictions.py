"""The groups of one drain: pods of its node and of other nodes that are evicted at the same time.

Nothing is stored about their progress: a group has begun when one of its pods is gone, and then the others follow, also
after the process was killed in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtab.cluster.pod import PodInfo
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView, is_gone
from trimtab.compaction.drain.reasons import GROUP_WAITS

if TYPE_CHECKING:
    from trimtab.compaction.drain.state_machine import DrainPlanner


@dataclass(frozen=True, slots=True)
class DrainGroups:
    """The groups of one drain."""

    annotation: DrainAnnotation
    staying: Mapping[str, PodInfo]
    """Uid → pod, for pods of groups that exist and are not being deleted."""

    @classmethod
    def from_view(cls, annotation: DrainAnnotation, view: ClusterView) -> DrainGroups:
        """Returns the groups as they are now."""
        members = {member.uid for member in _members_of(annotation)} if annotation.companions else set()
        pods = view.inventory.pods if members else ()
        return cls(annotation, {pod.uid: pod for pod in pods if pod.uid in members and not is_gone(pod, view)})

    def members_of(self, group: str) -> list[PodToEvict]:
        """Returns the pods of a group that have not been evicted, those of the drained node first."""
        return [one for one in _members_of(self.annotation) if one.group == group and one.uid in self.staying]

    def has_begun(self, group: str) -> bool:
        """Returns whether a pod of the group is gone, so that the others must follow."""
        return any(one.group == group and one.uid not in self.staying for one in _members_of(self.annotation))

    @property
    def companions_left(self) -> list[PodToEvict]:
        """The companions that must follow, because their groups have begun."""
        companions = self.annotation.companions
        return [one for one in companions if one.uid in self.staying and self.has_begun(one.group)]

    @property
    def gone_companions(self) -> list[PodToEvict]:
        """The companions that have been evicted."""
        return [one for one in self.annotation.companions if one.uid not in self.staying]


def _members_of(annotation: DrainAnnotation) -> list[PodToEvict]:
    return [one for one in (*annotation.moves, *annotation.companions) if one.group]


def group_steps(planner: DrainPlanner, groups: DrainGroups, group: str) -> list[a.Action]:
    """Returns the evictions of all pods of the group, or one wait. A group of which pods are gone already is not waited
    for: of its other pods on the node, each is evicted as soon as it may be."""
    has_begun, members = groups.has_begun(group), groups.members_of(group)
    if has_begun:
        # The companions are among the rest of the drain.
        members = [one for one in members if one in groups.annotation.moves]
    before = Counter(planner.spent_disruptions), Counter(planner.chosen_evictions), Counter(planner.chosen_disruptions)
    steps = [planner.member_step(one, groups.staying[one.uid], groups.annotation) for one in members]
    obstacle = next((step for step in steps if not isinstance(step, a.Evict)), None)
    if has_begun or obstacle is None:
        return steps
    planner.spent_disruptions, planner.chosen_evictions, planner.chosen_disruptions = before
    if isinstance(obstacle, a.Wait):
        return [a.Wait(GROUP_WAITS(f"group {group} waits, and none of its pods is evicted: {obstacle.reason}"))]
    return [obstacle]
