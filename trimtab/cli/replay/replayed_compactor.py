"""Runs the compactor's own loop, and the stand-in for the cluster autoscaler, in the cluster in memory of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_view import GROUP_LABEL
from trimtab.autoscaling.replay.replay_cluster import ReplayCluster
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

KEYS = SigningKeys(b"the key of a cluster that is replayed")
HOME = "trimtab-system"
MAX_GROUP_SIZE = 10_000


@dataclass(slots=True)
class ReplayActuator:
    """The replayed cluster as the compactor's loop sees and changes it. Writes take no time and do not fail."""

    cluster: ReplayCluster
    stand_in: ChurnStandIn
    pools: tuple[Pool, ...]
    decisions: list[HistoryEntry] = field(default_factory=list)

    # ── what the compactor reads ─────────────────────────────────────────────────────────────────────
    @property
    def now(self) -> Seconds:
        """The second of the recording, since 1970."""
        return self.cluster.epoch + self.cluster.now

    def read_view(self) -> ClusterView:
        """Returns the cluster as it is now in the replay."""
        inventory = self.cluster.read_inventory()
        return ClusterView(
            now=self.now,
            inventory=inventory,
            pools=self.pools,
            namespace=HOME,
            autoscaler=self._describe_autoscaler(),
            top_owners=self.cluster.top_owners,
            versions={node.name: "1" for node in inventory.nodes},
            annotations=read_annotations(inventory.nodes, KEYS, HOME),
        )

    def _describe_autoscaler(self) -> Autoscaler:
        cluster, flags = self.cluster, self.stand_in.flags
        by_group: dict[str, list[str]] = {group: [] for group in cluster.templates}
        for node in cluster.nodes.values():
            by_group.setdefault(node.labels[GROUP_LABEL], []).append(node.name)
        groups = tuple(
            NodeGroupStatus(
                name=group,
                healthy=True,
                scale_up="InProgress" if group in cluster.coming else "NoActivity",
                target=len(names) + cluster.coming.count(group),
                min_size=flags.min_size,
                max_size=MAX_GROUP_SIZE,
                registered=len(names),
                candidates=sum(name in self.stand_in.state.unneeded for name in names),
            )
            for group, names in sorted(by_group.items())
        )
        return Autoscaler(
            scale_up="InProgress" if cluster.coming else "NoActivity",
            groups=groups,
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
        found = self.cluster.nodes[node.name]
        marks = {**found.annotations, CORDONED_BY_US: encode_annotation(annotation, node, KEYS)}
        self.cluster.set_node(replace(found, is_cordoned=True, annotations=marks))

    def release_node(self, node: str, version: str, *, uncordon: bool) -> None:
        found = self.cluster.nodes[node]
        marks = {key: text for key, text in found.annotations.items() if key != CORDONED_BY_US}
        self.cluster.set_node(replace(found, is_cordoned=found.is_cordoned and not uncordon, annotations=marks))
        self.cluster.settle()

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        if self.cluster.evict_pod(move.uid):
            return EvictionResponse(became=EvictionResult.EVICTED)
        return EvictionResponse(became=EvictionResult.REFUSED, message="the budget allows no disruption now")

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        return EvictionResponse(became=EvictionResult.EVICTED)

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        return False

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        return False

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        self.cluster.set_node(with_soft_taints(self.cluster.nodes[node.name], keys))

    def record_decision(self, record: HistoryEntry) -> None:
        self.decisions.append(record)


def build_loop(actuator: ReplayActuator, *, plan_seconds: float, recheck_seconds: float, poll_seconds: float) -> Loop:
    """Returns a compactor for the replayed cluster, with the time limits of its defaults."""
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
