"""Ends drains whose node or annotation no longer exists, with the help of the stored states, and records which nodes
the autoscaler begins to delete."""

from __future__ import annotations

from dataclasses import dataclass, field

from trimtab.cluster.format_count import format_count
from trimtab.compaction.drain.actions import SetReplicas
from trimtab.compaction.drain.annotation import AutoscalerFloor, DrainAnnotation, deployment_key
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.reasons import NOTE_MISSING, TAKEN, VANISHED
from trimtab.compactor.actuator import Actuator, ErrorCollector
from trimtab.compactor.drain_in_progress import count_evictions
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.reasons import COUNT_CHANGED, SCALED, SURGE_LEFT
from trimtab.compactor.step_runner import StepRunner
from trimtab.runtime.log import Logger


@dataclass(frozen=True, slots=True)
class AgreedSurge:
    """A surge that both the state and the annotation have."""

    drain: str
    before: int
    extra: int
    floor: AutoscalerFloor | None = None
    """What `minReplicas` was, if a HorizontalPodAutoscaler writes the count."""

    @classmethod
    def of_drain(cls, annotation: DrainAnnotation, deployment: str) -> AgreedSurge:
        """Returns the surge of this Deployment according to the annotation."""
        before, extra = annotation.surges.get(deployment, 1), annotation.extra_of(deployment)
        return cls(annotation.drain, before, extra, annotation.floors.get(deployment))

    def undo_step(self, deployment: str) -> SetReplicas:
        """Returns the step that sets the Deployment, or its HorizontalPodAutoscaler, back."""
        count = self.before + self.extra
        if self.floor is None:
            return SetReplicas(deployment, count, self.before)
        namespace = deployment.partition("/")[0]
        return SetReplicas(deployment, count, self.floor.before, f"{namespace}/{self.floor.autoscaler}")


def apply_step(actuator: Actuator, step: SetReplicas) -> bool:
    """Sets the count of a Deployment, or `minReplicas` of its HorizontalPodAutoscaler. Returns False if the present
    number is not the expected one. Raises ActuatorError."""
    if step.autoscaler:
        return actuator.set_min_replicas(step.autoscaler, step.before, step.replicas)
    return actuator.scale_deployment(step.deployment, step.before, step.replicas)


def describe_step(step: SetReplicas) -> str:
    """Returns what the step has changed, as a sentence without its end."""
    if step.autoscaler:
        return (
            f"HorizontalPodAutoscaler {step.autoscaler} of Deployment {step.deployment} now has minReplicas "
            f"{step.replicas} instead of {step.before}"
        )
    replicas = format_count(step.replicas, "replica")
    return f"Deployment {step.deployment} now has {replicas} instead of {step.before}"


@dataclass(slots=True)
class RemovedNodes:
    """Finds and ends drains whose node or annotation no longer exists."""

    actuator: Actuator
    pool_states: PoolStates
    log: Logger
    unobserved_seconds: float
    """After how many seconds a cordon that was not observed counts as failed."""
    steps: StepRunner
    """Remembers which undo steps have to wait."""
    agreed_surges: dict[str, AgreedSurge] = field(default_factory=dict)
    """Deployment (namespace/name) → the surge of it that this process has read both in the state and in the
    annotation."""
    cordoned_at: dict[str, float] = field(default_factory=dict)
    """Drain → when this process cordoned its node. The entry is kept until the annotation is observed."""

    def end_drains(self, view: ClusterView, now: float) -> None:
        """Ends drains whose node or annotation no longer exists. Undo steps that fail are tried again later."""
        annotated_nodes, existing = set(view.annotations.ours), {node.name for node in view.inventory.nodes}
        annotations = view.annotations.ours.values()
        annotated = {annotation.drain for annotation in annotations if isinstance(annotation, DrainAnnotation)}
        self.cordoned_at = {
            drain: at
            for drain, at in self.cordoned_at.items()
            if drain not in annotated and now - at < self.unobserved_seconds
        }
        for pool, memory in list(self.pool_states.states.items()):
            for name in sorted(memory.drains.keys() - annotated_nodes):
                if name not in existing or memory.drains[name] not in self.cordoned_at:
                    self._end_drain(pool, name, view, node_exists=name in existing)
            for name, drain in sorted(self.pool_states.state_of(pool).surged.items()):
                if drain not in annotated and drain not in self.cordoned_at and not self.steps.is_postponed(name):
                    self._undo_surge(pool, name, view, now)

    def count_deletions(self, view: ClusterView) -> None:
        """Records the nodes that the autoscaler has begun to delete: all such nodes in pools with `autoscaler: lead`,
        and in other pools those with a drain."""
        by_pool: dict[str, dict[str, int]] = {}
        going = [node.name for node in view.inventory.nodes if node.removal_taint is not None]
        ours = {
            name: annotation.pool
            for name in going
            if isinstance(annotation := view.annotations.ours.get(name), DrainAnnotation)
        }
        leading = view.autoscaler_deletions
        for name in going:
            if (pool := leading.get(name) or ours.get(name)) is not None:
                by_pool.setdefault(pool, {})[name] = count_evictions(name, view) if name not in ours else 0
        for pool, evictions in by_pool.items():
            self.pool_states.set_state(pool, self.pool_states.state_of(pool).with_deletions(evictions, view.now))

    def deleting_nodes(self) -> frozenset[str]:
        """Returns the nodes that the autoscaler began to delete recently."""
        return frozenset(name for memory in self.pool_states.states.values() for name in memory.deleting)

    def _undo_surge(self, pool: str, name: str, view: ClusterView, now: float) -> None:
        """Undoes a surge whose annotation was deleted with its node, or was removed while the surge could not be
        undone.

        The surge is undone only if this process has read the annotation: the state alone is not enough to scale a
        workload.
        """
        memory = self.pool_states.state_of(pool)
        surge = self.agreed_surges.get(name)
        if surge is None or surge.drain != memory.surged[name]:
            self.pool_states.set_state(pool, memory.without_surges(name))
            sentence = f"drain {memory.surged[name]} gave more pods to Deployment {name}, which may still have them"
            self.pool_states.record_decision("left-surged", SURGE_LEFT(sentence), pool=pool, at=view.now)
            return
        collector, is_undone = ErrorCollector(), False
        with collector.collect_errors():
            step = surge.undo_step(name)
            if apply_step(self.actuator, step):
                sentence = f"{describe_step(step)}, because the drain of its pod's node has ended"
                self.pool_states.record_decision("scaled", SCALED(sentence), pool=pool, at=view.now)
            else:
                self.report_other_count(pool, name, surge, view)
            self.pool_states.set_state(pool, self.pool_states.state_of(pool).without_surges(name))
            is_undone = True
        if not is_undone:
            self.steps.postpone(name, now)
        if collector.error is not None:
            self.log.warning("surge.not-undone", pool=pool, deployment=name, error=str(collector.error))

    def report_other_count(self, pool: str, name: str, surge: AgreedSurge, view: ClusterView) -> None:
        """Records that a Deployment keeps a count that another client wrote after a surge, or its
        HorizontalPodAutoscaler such a `minReplicas`."""
        key = deployment_key(name)
        scale = view.inventory.owners.get(key)
        state = view.inventory.deployments.find(key)
        if surge.floor is not None:
            autoscaler = state.autoscaler if state is not None else None
            if autoscaler is None or autoscaler.min_replicas == surge.floor.before:
                return
            sentence = (
                f"another client has set minReplicas of HorizontalPodAutoscaler {autoscaler.key} to "
                f"{autoscaler.min_replicas} since a drain raised it, so it does not return to {surge.floor.before}"
            )
        elif scale is None or scale.wanted is None or scale.wanted == surge.before:
            return
        else:
            sentence = (
                f"another client has set Deployment {name} to {format_count(scale.wanted, 'replica')} since a drain "
                f"gave it more pods, so it does not return to {surge.before}"
            )
        self.pool_states.record_decision("left-surged", COUNT_CHANGED(sentence), pool=pool, at=view.now)

    def _end_drain(self, pool: str, name: str, view: ClusterView, *, node_exists: bool) -> None:
        memory = self.pool_states.state_of(pool)
        drain, was_empty = memory.drains[name], name in memory.empty
        is_removed = was_empty and not node_exists
        memory = memory.with_success(name, view.now) if is_removed else memory.with_unkept_promise(name, view.now)
        self.pool_states.set_state(pool, memory.with_ended_drain(name, drain, view.now))
        sentence = (
            f"node {name} no longer exists" if not node_exists else f"node {name} has no annotation of drain {drain}"
        )
        what, code = ("removed", TAKEN) if is_removed else ("abandoned", NOTE_MISSING if node_exists else VANISHED)
        self.pool_states.record_decision(what, code(sentence), pool=pool, at=view.now, node=name, drain=drain)
