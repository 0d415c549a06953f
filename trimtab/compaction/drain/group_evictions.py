"""The groups of one drain: pods of its node and of other nodes that are evicted at the same time.

Nothing is stored about their progress: a group has begun when one of its pods is gone, and then the others follow, also
after the process was killed in between. Where one pod of a group owns all others, it alone is evicted, and they end
with it; of a JobSet, a pod whose Job fails by its eviction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pod_groups import JOBSET_LABEL
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView, is_gone
from trimtab.compaction.drain.reasons import GROUP_FOLLOWS, GROUP_WAITS

if TYPE_CHECKING:
    from trimtab.compaction.drain.state_machine import DrainPlanner


FOLLOW_SECONDS = 60
"""For how many seconds after the grace period of the pod with which a group ends its other pods may exist before they
are evicted too."""


@dataclass(frozen=True, slots=True)
class DrainGroups:
    """The groups of one drain."""

    annotation: DrainAnnotation
    view: ClusterView
    staying: Mapping[str, PodInfo]
    """Uid → pod, for pods of groups that exist and are not being deleted."""
    ending: Mapping[str, PodInfo]
    """Uid → pod, for pods of groups that are being deleted, or were evicted and do not show it yet."""

    @classmethod
    def from_view(cls, annotation: DrainAnnotation, view: ClusterView) -> DrainGroups:
        """Returns the groups as they are now."""
        members = {member.uid for member in _members_of(annotation)} if annotation.companions else set()
        pods = [pod for pod in view.inventory.pods if pod.uid in members] if members else []
        ending = {pod.uid: pod for pod in pods if is_gone(pod, view)}
        return cls(annotation, view, {pod.uid: pod for pod in pods if pod.uid not in ending}, ending)

    def members_of(self, group: str) -> list[PodToEvict]:
        """Returns the pods of a group that have not been evicted, those of the drained node first."""
        return [one for one in _members_of(self.annotation) if one.group == group and one.uid in self.staying]

    def has_begun(self, group: str) -> bool:
        """Returns whether a pod of the group is gone, so that the others must follow."""
        return any(one.group == group and one.uid not in self.staying for one in _members_of(self.annotation))

    def leader_of(self, group: str) -> PodToEvict | None:
        """Returns the pod of the group that owns all others that exist, directly or through a controller, so that the
        garbage collector deletes them with it. None if there is no such pod, or if it is not known."""
        own = {one.uid: one for one in _members_of(self.annotation) if one.group == group}
        leaders, owners = self.view.inventory.leaders, {}
        for uid in own.keys() & self.staying.keys():
            pod = self.staying[uid]
            # Without the annotation that names a leader: only an owner reference makes a pod end with another.
            owners[uid] = leaders.leader_of(pod.namespace, pod.owner, {})
        keys = {key for key in owners.values() if key is not None}
        for one in own.values() if len(keys) == 1 else ():
            if OwnerKey(one.namespace, POD, one.pod.partition("/")[2]) in keys:
                return one if all(key is not None or uid == one.uid for uid, key in owners.items()) else None
        return None

    def sole_eviction(self, group: str) -> PodToEvict | None:
        """Returns the pod of the group whose eviction ends all others: the leader, or a pod of a JobSet whose Job fails
        by it. None if there is no such pod, or if it is not known."""
        leader = self.leader_of(group)
        if leader is not None:
            return leader
        pods = {**self.staying, **self.ending}
        members = [one for one in _members_of(self.annotation) if one.group == group and one.uid in pods]
        # A JobSet recreates all of its Jobs, or fails as a whole, when one of them has failed; not when a pod has
        # failed (kubernetes-sigs/jobset, pkg/controllers/failure_policy.go). By a rule with the action RecreateJob the
        # others go on: then they are evicted a minute later.
        if not all(pods[one.uid].requirements.labels.get(JOBSET_LABEL) for one in members):
            return None
        for one in members:
            owner = pods[one.uid].owner
            counts = self.view.inventory.owners.get(owner) if owner is not None else None
            if counts is not None and counts.fails_by_eviction:
                return one
        return None

    def follow_wait(self, group: str) -> a.Wait | None:
        """Returns a wait while the pod ends with which the others of the group are expected to end."""
        sole = self.sole_eviction(group)
        pod = self.ending.get(sole.uid) if sole is not None else None
        if pod is None or pod.is_finished:
            return None
        # The deletion timestamp is the end of the grace period; it is absent while the view is older than the eviction.
        if pod.deletion_requested_at is not None and self.view.now > pod.deletion_requested_at + FOLLOW_SECONDS:
            return None
        return a.Wait(GROUP_FOLLOWS(f"pod {pod.key}, with which the other pods of group {group} end, is ending"))

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
    for: of its other pods on the node, each is evicted as soon as it may be. If the others end with one pod, only its
    eviction is returned, but all must be permitted, and all count."""
    has_begun, members = groups.has_begun(group), groups.members_of(group)
    if has_begun:
        if (wait := groups.follow_wait(group)) is not None:
            return [wait]
        # The companions are among the rest of the drain.
        members = [one for one in members if one in groups.annotation.moves]
    before = Counter(planner.spent_disruptions), Counter(planner.chosen_evictions), Counter(planner.chosen_disruptions)
    steps = [
        planner.member_step(one, groups.staying[one.uid], groups.annotation, asks_terms=not has_begun)
        for one in members
    ]
    obstacle = next((step for step in steps if not isinstance(step, a.Evict)), None)
    if has_begun:
        return steps
    if obstacle is None:
        evictions = [step for step in steps if isinstance(step, a.Evict)]
        sole = groups.sole_eviction(group)
        # An eviction that a pod's own terms count must be made by the compactor, or it is not counted.
        if sole is None or any(step.counted_workload for step in evictions):
            return steps
        return [step for step in evictions if step.move.uid == sole.uid]
    planner.spent_disruptions, planner.chosen_evictions, planner.chosen_disruptions = before
    if isinstance(obstacle, a.Wait):
        return [a.Wait(GROUP_WAITS(f"group {group} waits, and none of its pods is evicted: {obstacle.reason}"))]
    return [obstacle]
