"""The steps by which a drain gives a Deployment more pods before an eviction, and sets its count back afterwards.

Two kinds of pods need that: the only replica of a Deployment, and a pod whose disruption budget allows no eviction
otherwise. What was and what is added stands in the note on the node. Where a HorizontalPodAutoscaler writes the count,
its `minReplicas` is raised and set back instead, and the count comes down by its own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import DEPLOYMENT
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.actions import Action, FailureCause, Release, Wait
from trimtab.compaction.drain.annotation import AutoscalerFloor, DrainAnnotation, PodToEvict, deployment_key
from trimtab.compaction.drain.cluster_view import ClusterView, Workloads
from trimtab.compaction.drain.reasons import FORBIDDEN, SURGE_REVERTED, SURGING
from trimtab.compaction.drain.timeouts import DrainTimeouts

SURGE_RETRY_SECONDS = 60
"""How long, in seconds, the compactor keeps requesting additional pods for a Deployment if another client (an HPA, Git)
removes them. After that, the drain ends."""
FLOOR_RETRY_SECONDS = 20
"""The same for `minReplicas` of a HorizontalPodAutoscaler: each time that it is raised, a pod starts and ends again."""
MEASURED_SECONDS = 60
"""After how many seconds a HorizontalPodAutoscaler knows the usage of a new pod: its start, and the window of the
metrics API."""
SURGE_TIME_DIVISOR = 2
"""Part of the drain's time limit, as a divisor, after which a budget that allows no eviction although the additional
pods are available ends the drain."""


@dataclass(frozen=True, slots=True)
class DrainSurges:
    """The surges of one drain, in one view of the cluster."""

    view: ClusterView
    workloads: Workloads
    timeouts: DrainTimeouts
    annotation: DrainAnnotation

    def next_step(self, move: PodToEvict, *, is_allowed: Callable[[], bool]) -> Action | None:
        """Returns the step that must come before the eviction of the pod; None if no step is needed.

        is_allowed: whether the pod's budget allows the eviction now.
        """
        name = self.deployment_of(move)
        before = self.annotation.surges.get(name)
        if before is None:
            return None
        extra, surged_at = self.annotation.extra_of(name), self.annotation.surged.get(name)
        if (floor := self.annotation.floors.get(name)) is not None:
            step = self._raise_floor(name, floor, is_allowed)
        elif self._wanted_replicas(name) == before:
            step = a.SetReplicas(name, before, before + extra)
        else:
            step = None
        if isinstance(step, a.SetReplicas):
            if before > 1 and is_allowed():
                return None
            retry_seconds = FLOOR_RETRY_SECONDS if step.autoscaler else SURGE_RETRY_SECONDS
            if surged_at is not None and self._tried_seconds(surged_at) > retry_seconds:
                return Release(
                    SURGE_REVERTED(f"another client removed the additional pods of Deployment {name}"),
                    FailureCause.NODE,
                    reverted=name,
                )
        if step is not None:
            return step
        if wait := self._wait_for_pods(name, move, before):
            is_late = surged_at is not None and self.view.now > surged_at + self.timeouts.drain
            return Release(FORBIDDEN(wait), FailureCause.NODE) if is_late else Wait(SURGING(wait))
        limit_seconds = self.timeouts.drain // SURGE_TIME_DIVISOR
        if surged_at is not None and self.view.now > surged_at + limit_seconds and not is_allowed():
            return Release(
                FORBIDDEN(
                    f"the budget of pod {move.pod} allows no eviction {limit_seconds} s after Deployment {name} was "
                    f"given {format_count(extra, 'more pod')}"
                ),
                FailureCause.NODE,
            )
        return None

    def _tried_seconds(self, surged_at: Seconds) -> int:
        """Returns for how many seconds this process has tried to give the pods. The one before it may have died between
        the note and the write: then no client took anything back."""
        passed = self.view.now - surged_at
        return int(min(passed, self.view.executed_seconds.get(self.annotation.drain, passed)))

    def _raise_floor(self, name: str, floor: AutoscalerFloor, is_allowed: Callable[[], bool]) -> Action | None:
        """Returns the step by which the HorizontalPodAutoscaler of the Deployment gives it more pods; None if it has
        done so, or if the budget allows the eviction without them."""
        wanted, raised = self._wanted_replicas(name), self.annotation.surged_count(name)
        minimum, before = self._min_replicas(name, floor), self.annotation.surges[name]
        if minimum == floor.before and wanted == before:
            return a.SetReplicas(name, floor.before, raised, f"{name.partition('/')[0]}/{floor.autoscaler}")
        if minimum == raised:
            is_waiting = wanted is None or wanted < raised
            return Wait(SURGING(f"Deployment {name} waits for its HorizontalPodAutoscaler")) if is_waiting else None
        if is_allowed():
            return None
        return Release(
            SURGE_REVERTED(f"HorizontalPodAutoscaler {floor.autoscaler} of Deployment {name}, or its count, changed"),
            FailureCause.NODE,
        )

    def _min_replicas(self, name: str, floor: AutoscalerFloor) -> int | None:
        """Returns `minReplicas` of the HorizontalPodAutoscaler now; None if it no longer writes the count."""
        state = self.view.inventory.deployments.find(deployment_key(name))
        autoscaler = state.autoscaler if state is not None else None
        return autoscaler.min_replicas if autoscaler is not None and autoscaler.name == floor.autoscaler else None

    def _wait_for_pods(self, name: str, move: PodToEvict, before: int) -> str:
        """Returns what the eviction waits for, as a sentence; empty if the additional pods are available."""
        if self.workloads.newly_missing(move) or self.workloads.wanted_replicas(move.owner_key) <= before:
            return f"Deployment {name} waits for its additional pods"
        state = self.view.inventory.deployments.find(deployment_key(name))
        if state is None:
            return ""
        if state.is_rolling or state.is_paused:
            return f"a rollout of Deployment {name} is in progress"
        # The status counts a pod as available only when it has been ready for minReadySeconds.
        if state.available < state.wanted - move.missing:
            return f"the additional pods of Deployment {name} are not available yet"
        return ""

    def undo_steps(self, live: Iterable[str] = (), *, waits_for_ready: bool = False) -> tuple[a.SetReplicas, ...]:
        """Returns the steps that undo surges whose pod has left or will stay, as far as the Deployment still has the
        count that the compactor set.

        live: the uids of pods that are still to be evicted. waits_for_ready: leave out Deployments with fewer ready
        pods than before the drain, and those whose controller has not noticed the eviction yet.
        """
        uids = set(live)
        remaining = {self.deployment_of(move) for move in self.annotation.moves if move.uid in uids}
        return tuple(
            self._undo_step(name, before)
            for name, before in sorted(self.annotation.surges.items())
            if name not in remaining and self._has_own_count(name) and (not waits_for_ready or self._is_whole(name))
        )

    def deployment_of(self, move: PodToEvict) -> str:
        """Returns the Deployment of the pod as namespace/name; empty if it has none."""
        top = self.view.top_owners.get(move.owner_key)
        return f"{move.namespace}/{top.name}" if top is not None and top.kind == DEPLOYMENT else ""

    def _has_own_count(self, name: str) -> bool:
        """Returns whether the Deployment has the count that this drain has set, or its HorizontalPodAutoscaler the
        `minReplicas`."""
        floor = self.annotation.floors.get(name)
        present = self._wanted_replicas(name) if floor is None else self._min_replicas(name, floor)
        return name in self.annotation.surged and present == self.annotation.surged_count(name)

    def _undo_step(self, name: str, before: int) -> a.SetReplicas:
        floor, count = self.annotation.floors.get(name), self.annotation.surged_count(name)
        if floor is None:
            return a.SetReplicas(name, count, before)
        return a.SetReplicas(name, count, floor.before, f"{name.partition('/')[0]}/{floor.autoscaler}")

    def _is_whole(self, name: str) -> bool:
        """Returns whether the count may be set back without the loss of a pod that is needed. That is so if all of
        these hold:

        - the Deployment has as many ready pods as before the drain;
        - the status of the ReplicaSet counts the evicted pods no more. A controller that learns of the lower count
          before it learns of the eviction would remove another pod that is ready;
        - a HorizontalPodAutoscaler that follows lower recommendations at once has usage of the youngest pod.
        """
        moves = [move for move in self.annotation.moves if self.deployment_of(move) == name]
        missing = max((move.missing for move in moves), default=0)
        if self.workloads.all_ready_count(deployment_key(name)) < self.annotation.surges[name] - missing:
            return False
        if name in self.annotation.floors and self._youngest_age(moves) < self._floor_seconds(name):
            return False
        owners = self.view.inventory.owners
        return all(
            (counts := owners.get(key)) is not None and counts.ready <= self.workloads.ready_count(key)
            for key in {move.owner_key for move in moves}
        )

    def _youngest_age(self, moves: Iterable[PodToEvict]) -> int:
        """Returns for how many seconds the youngest pod of these workloads has existed."""
        keys = {move.owner_key for move in moves}
        by_owner = self.view.inventory.pod_index.by_owner
        created = [pod.created or 0 for key in keys for pod in by_owner.get(key, ())]
        return self.view.now - max(created, default=0)

    def _floor_seconds(self, name: str) -> int:
        """Returns how old the youngest pod must be before `minReplicas` is set back.

        The controller counts a pod that became ready a short time ago in no average, and multiplies the lower usage of
        the others by their number alone (replica_calculator.go, GetResourceReplicas): with a short stabilization window
        it would go below the count before the drain.
        """
        state = self.view.inventory.deployments.find(deployment_key(name))
        autoscaler = state.autoscaler if state is not None else None
        return 0 if autoscaler is None else MEASURED_SECONDS - autoscaler.stabilization_seconds

    def _wanted_replicas(self, name: str) -> int | None:
        scale = self.view.inventory.owners.get(deployment_key(name))
        return scale.wanted if scale is not None else None
