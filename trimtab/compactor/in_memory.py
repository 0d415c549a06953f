"""Runs the compactor's own loop in a cluster in memory, as of a simulation or a replay.

The loop reads views and makes writes through the same interfaces as in a real cluster; only what is behind them is
simulated. Writes take no time and do not fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
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

HOME = "trimtab-system"
KEYS = SigningKeys(b"the signing key of a cluster in memory")


class ClusterInMemory(Protocol):
    """A cluster that exists in this process alone."""

    @property
    def timestamp(self) -> Seconds:
        """The present second, since 1970."""

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """Name → node."""

    @property
    def top_owners(self) -> Mapping[OwnerKey, OwnerKey]:
        """ReplicaSet → Deployment."""

    def read_inventory(self) -> Inventory:
        """Returns the cluster as a planner reads it."""

    def set_node(self, node: NodeInfo) -> None:
        """Replaces a node of the same name."""

    def settle(self) -> None:
        """Lets the scheduler try the pods that wait."""

    def evict_pod(self, uid: str) -> bool:
        """Evicts the pod; returns False if a budget refuses it."""

    def scale_workload(self, deployment: str, before: int, replicas: int) -> bool:
        """Gives the Deployment (namespace/name) this number of replicas; returns False if it did not."""


@dataclass(slots=True)
class InMemoryActuator:
    """The cluster in memory as the compactor's loop sees and changes it."""

    cluster: ClusterInMemory
    describe_autoscaler: Callable[[], Autoscaler]
    pools: tuple[Pool, ...]
    keys: SigningKeys = KEYS
    decisions: list[HistoryEntry] = field(default_factory=list)

    # ── what the compactor reads ─────────────────────────────────────────────────────────────────────
    def read_view(self) -> ClusterView:
        """Returns the present state of the cluster."""
        inventory = self.cluster.read_inventory()
        return ClusterView(
            now=self.cluster.timestamp,
            inventory=inventory,
            pools=self.pools,
            namespace=HOME,
            autoscaler=self.describe_autoscaler(),
            top_owners=self.cluster.top_owners,
            versions={node.name: "1" for node in inventory.nodes},
            annotations=read_annotations(inventory.nodes, self.keys, HOME),
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
        text = encode_annotation(annotation, node, self.keys)
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
        return self.cluster.scale_workload(deployment, before, replicas)

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        return False

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        self.cluster.set_node(with_soft_taints(self.cluster.nodes[node.name], keys))

    def record_decision(self, record: HistoryEntry) -> None:
        self.decisions.append(record)


def build_loop(actuator: InMemoryActuator, *, plan_seconds: float, recheck_seconds: float, poll_seconds: float) -> Loop:
    """Returns a compactor of the cluster in memory, with the time limits of its defaults."""
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
        elapsed=lambda: float(actuator.cluster.timestamp),
    )
