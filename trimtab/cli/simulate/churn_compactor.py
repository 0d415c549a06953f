"""Runs the compactor's own loop in the cluster in memory of a churn.

The loop reads views and makes writes through the same interfaces as in a real cluster; only what is behind them is
simulated. Writes take no time and do not fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.autoscaling.churn.churn_cluster import EPOCH, ChurnCluster
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_view import GROUP_LABEL
from trimtab.cluster.autoscaler_flags import DELAY_AFTER_ADD, UNNEEDED_TIME
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict, encode_annotation, read_annotations
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compactor.actuator import DryRunActuator, EvictionResponse, EvictionResult
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.loop import Loop
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.soft_taint import SoftTaints, with_soft_taints
from trimtab.compactor.step_runner import StepRunner
from trimtab.runtime import log
from trimtab.runtime.graceful_shutdown import GracefulShutdown

KEYS = SigningKeys(b"the key of a cluster that is simulated")
HOME = "trimtab-system"


@dataclass(slots=True)
class ChurnActuator:
    """The cluster in memory as the compactor's loop sees and changes it."""

    cluster: ChurnCluster
    stand_in: ChurnStandIn
    pool: Pool
    decisions: list[HistoryEntry] = field(default_factory=list)

    # ── what the compactor reads ─────────────────────────────────────────────────────────────────────
    @property
    def now(self) -> Seconds:
        """The present second, since 1970."""
        return EPOCH + self.cluster.now

    def read_view(self) -> ClusterView:
        """Returns the present state of the cluster."""
        inventory = self.cluster.read_inventory()
        return ClusterView(
            now=self.now,
            inventory=inventory,
            pools=(self.pool,),
            namespace=HOME,
            autoscaler=self._autoscaler(),
            top_owners=self.cluster.top_owners,
            versions={node.name: "1" for node in inventory.nodes},
            annotations=read_annotations(inventory.nodes, KEYS, HOME),
        )

    def _autoscaler(self) -> Autoscaler:
        """Returns the state that the stand-in reports."""
        cluster, flags, groups = self.cluster, self.stand_in.flags, []
        for machine in cluster.churn.machines:
            names = [node.name for node in cluster.nodes.values() if node.labels[GROUP_LABEL] == machine.group]
            coming = cluster.coming.count(machine.group)
            groups.append(
                NodeGroupStatus(
                    name=machine.group,
                    healthy=True,
                    scale_up="InProgress" if coming else "NoActivity",
                    target=len(names) + coming,
                    min_size=flags.min_size,
                    max_size=1000,
                    registered=len(names),
                    candidates=sum(name in self.stand_in.state.unneeded for name in names),
                )
            )
        return Autoscaler(
            scale_up="InProgress" if cluster.coming else "NoActivity",
            groups=tuple(groups),
            updated=self.now,
            threshold=round(flags.threshold * 100),
            flags={
                UNNEEDED_TIME.name: f"{flags.unneeded_seconds:g}s",
                DELAY_AFTER_ADD.name: f"{flags.delay_after_add_seconds:g}s",
            },
        )

    def load_states(self) -> Mapping[str, PoolState | Unreadable]:
        return {}

    def save_state(self, pool: str, state: PoolState, *, final: bool) -> None:
        pass

    # ── what the compactor writes ────────────────────────────────────────────────────────────────────
    @property
    def is_dry_run(self) -> bool:
        return False

    def cordon_node(self, node: NodeInfo, version: str, annotation: DrainAnnotation) -> None:
        present = self.cluster.nodes[node.name]
        text = encode_annotation(annotation, node, KEYS)
        self.cluster.set_node(
            replace(present, is_cordoned=True, annotations={**present.annotations, CORDONED_BY_US: text})
        )

    def release_node(self, node: str, version: str, *, uncordon: bool) -> None:
        present = self.cluster.nodes[node]
        annotations = {key: text for key, text in present.annotations.items() if key != CORDONED_BY_US}
        is_cordoned = present.is_cordoned and not uncordon
        self.cluster.set_node(replace(present, is_cordoned=is_cordoned, annotations=annotations))
        self.cluster.settle()

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        if self.cluster.evict_pod(move.uid):
            return EvictionResponse(became=EvictionResult.EVICTED)
        return EvictionResponse(became=EvictionResult.REFUSED, message="the budget allows no disruption now")

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        return EvictionResponse(became=EvictionResult.EVICTED)

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        return self.cluster.scale_workload(deployment.partition("/")[2], before, replicas)

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        return False

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        self.cluster.set_node(with_soft_taints(self.cluster.nodes[node.name], keys))

    def record_decision(self, record: HistoryEntry) -> None:
        self.decisions.append(record)


def build_loop(actuator: ChurnActuator, *, plan_seconds: float, recheck_seconds: float, poll_seconds: float) -> Loop:
    """Returns a compactor for this cluster, with the time limits of its defaults."""
    timeouts, guard = DrainTimeouts(), ErrorGuard(log.build_logger("error"))
    states = PoolStates(actuator, (actuator.record_decision,))
    return Loop(
        read_view=actuator.read_view,
        pool_states=states,
        drainer=Drainer(actuator, states, timeouts, StepRunner(guard, GracefulShutdown())),
        planner=CompactionPlanner(actuator, DryRunActuator(), states, timeouts, recheck_seconds, guard),
        soft_taints=SoftTaints(actuator),
        log=log.build_logger("error"),
        interval=plan_seconds,
        tick=poll_seconds,
        elapsed=lambda: float(actuator.now),
    )
