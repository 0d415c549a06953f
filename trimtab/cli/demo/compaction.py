"""Compacts a simulated cluster with the compactor's own loop: first in dry run, then with mode act.

An evicted pod is replaced at once by a new pod, on the emptiest node that admits it and is not about to be drained; the
new pod is ready after 30 seconds. A simulated autoscaler removes a drained node after 10 minutes. Time is simulated,
too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console, RenderableType
from rich.text import Text

from trimtab.cli.printable_text import styled
from trimtab.cli.reporting.draw import build_grid
from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.cluster_state import Inventory, ReplicaCounts
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import (
    DrainAnnotation,
    PodToEvict,
    encode_annotation,
    read_annotation,
    read_annotations,
)
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compactor.actuator import DryRunActuator, EvictionResponse, EvictionResult
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.loop import Loop
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.soft_taint import SoftTaints, count_soft_taints, with_soft_taints
from trimtab.compactor.step_runner import StepRunner
from trimtab.inputs.plan_inputs import PlanInputs
from trimtab.runtime import log
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node

STARTUP_SECONDS, REMOVAL_DELAY_SECONDS = 30, 600
"""The simulated seconds until a new pod is ready, and until the autoscaler removes a drained node."""
KEYS = SigningKeys(b"the key of a cluster that is played")


@dataclass(slots=True)
class SimulatedCluster:
    """A cluster in memory, with the interfaces through which the compactor's loop reads and acts."""

    inventory: Inventory
    pool: Pool
    at: Seconds
    records: list[HistoryEntry] = field(default_factory=list)
    evicted: int = 0
    short: int = 0
    """The number of times that a PodDisruptionBudget was violated."""
    _replicas_by_owner: Counter[OwnerKey] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._replicas_by_owner = Counter(pod.owner for pod in self.inventory.pods if pod.owner is not None)
        self._update_counts()

    # ── what the compactor sees ──────────────────────────────────────────────────────────────────────
    def look(self) -> ClusterView:
        """Returns the present state of the cluster."""
        return ClusterView(
            now=self.at,
            inventory=self.inventory,
            pools=(self.pool,),
            namespace="trimtab-system",
            autoscaler=Autoscaler(updated=self.at, threshold=0),
            versions={node.name: "1" for node in self.inventory.nodes},
            annotations=read_annotations(self.inventory.nodes, KEYS, "trimtab-system"),
        )

    def load_states(self) -> Mapping[str, PoolState | Unreadable]:
        return {}

    def save_state(self, pool: str, state: PoolState, *, final: bool) -> None:
        pass

    # ── what it does ─────────────────────────────────────────────────────────────────────────────────
    @property
    def is_dry_run(self) -> bool:
        return False

    def cordon_node(self, node: NodeInfo, version: str, annotation: DrainAnnotation) -> None:
        self._set_cordon(node.name, cordoned=True, drain_text=encode_annotation(annotation, node, KEYS))

    def release_node(self, node: str, version: str, *, uncordon: bool) -> None:
        self._set_cordon(node, cordoned=not uncordon, drain_text="")

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        return EvictionResponse(became=EvictionResult.EVICTED)

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        """Delete the pod, and create a pod in its place, which is not ready yet."""
        [pod] = [pod for pod in self.inventory.pods if pod.uid == move.uid]
        self.evicted += 1
        remaining = tuple(other for other in self.inventory.pods if other is not pod)
        self.inventory = replace(self.inventory, pods=remaining)
        name = f"{pod.name.partition('.')[0]}.{self.evicted}"
        successor = change(
            pod,
            name=name,
            uid=name,
            created=self.at,
            is_ready=False,
            node=self._choose_node(change(pod, node="")),
            likeness=-1,
        )
        self.inventory = replace(self.inventory, pods=(*remaining, successor))
        self._update_counts()
        return EvictionResponse(became=EvictionResult.EVICTED)

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        return False

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        return False

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        self._replace_node(with_soft_taints(node, keys))

    def record_decision(self, record: HistoryEntry) -> None:
        self.records.append(record)

    # ── what happens by itself ───────────────────────────────────────────────────────────────────────
    def pass_time(self, seconds: int) -> None:
        """Advance the simulated time: pods become ready, drained nodes are removed, PodDisruptionBudgets are
        updated."""
        self.at += seconds
        pods = tuple(_pod_at(pod, self.at) for pod in self.inventory.pods)
        nodes = tuple(node for node in self.inventory.nodes if not self._is_taken(node))
        self.inventory = replace(self.inventory, pods=pods, nodes=nodes)
        self._update_counts()

    def _is_taken(self, node: NodeInfo) -> bool:
        annotation = read_annotation(node, KEYS)
        return (
            isinstance(annotation, DrainAnnotation)
            and annotation.emptied is not None
            and self.at - annotation.emptied >= REMOVAL_DELAY_SECONDS
        )

    def _choose_node(self, pod: PodInfo) -> str:
        """Returns the name of the emptiest node that admits the pod, or "" if none does; the fewer soft taints a
        node has, the earlier it is chosen."""
        model = build_cluster_model(replace(self.inventory, pods=(*self.inventory.pods, pod)))
        capacity, [(_, kind)] = FreeCapacity(model), model.pending_pods
        numbers = [number for number in range(len(model.nodes)) if fits_on_node(capacity, kind, number)]
        best_number = min(
            numbers,
            key=lambda number: (count_soft_taints(model.nodes[number], ""), -capacity.major[number], number),
            default=None,
        )
        return "" if best_number is None else model.nodes[best_number].name

    def _update_counts(self) -> None:
        """Update the status of owners and PodDisruptionBudgets, as their controllers do."""
        present = Counter(pod.owner for pod in self.inventory.pods if pod.owner is not None)
        ready = Counter(pod.owner for pod in self.inventory.pods if pod.owner is not None and pod.is_ready)
        owners = {
            key: ReplicaCounts(wanted=replicas, have=present[key], ready=ready[key])
            for key, replicas in self._replicas_by_owner.items()
        }
        budgets = []
        for budget in self.inventory.pdbs:
            missing = sum(
                self._replicas_by_owner[key] - ready[key] for key in self._replicas_by_owner if key.name == budget.name
            )
            self.short += missing > budget.max_allowed
            budgets.append(
                replace(budget, allowed=max(0, budget.max_allowed - missing), is_healthy=missing <= budget.max_allowed)
            )
        self.inventory = replace(self.inventory, owners=owners, pdbs=tuple(budgets))

    def _set_cordon(self, name: str, *, cordoned: bool, drain_text: str) -> None:
        [node] = [node for node in self.inventory.nodes if node.name == name]
        annotations = {key: text for key, text in node.annotations.items() if key != CORDONED_BY_US}
        self._replace_node(
            replace(
                node,
                is_cordoned=cordoned,
                annotations={**annotations, CORDONED_BY_US: drain_text} if drain_text else annotations,
            )
        )

    def _replace_node(self, new_node: NodeInfo) -> None:
        nodes = tuple(new_node if node.name == new_node.name else node for node in self.inventory.nodes)
        self.inventory = replace(self.inventory, nodes=nodes)


def _pod_at(pod: PodInfo, now: Seconds) -> PodInfo:
    created_at = pod.created or 0
    return change(pod, is_ready=True) if not pod.is_ready and pod.node and now - created_at >= STARTUP_SECONDS else pod


INTERVAL_SECONDS, SETTLE_SECONDS, TICK_SECONDS, MAX_ROUNDS = 60, 15, 5, 600
BEGIN = "2026-03-02T03:00:00Z"
"""The simulated time at which the demo begins: a Monday at three in the morning."""
_SHOWN_EVENTS = ("started", "emptied", "removed", "released", "abandoned", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """What the rehearsal and then the real compaction did to the simulated cluster."""

    cordoned_in_rehearsal: int
    evicted_in_rehearsal: int
    nodes_before: int
    nodes_after: int
    moved_twice: int
    violated: int
    """The number of times that a PodDisruptionBudget was violated."""


def draw_compaction(console: Console, inputs: PlanInputs) -> CompactionOutcome:
    """Draw the history of a dry run, then for each node the history of the same pool with mode act."""
    [pool] = inputs.pools
    cluster = SimulatedCluster(inputs.inventory, replace(pool, dry_run=True), parse_timestamp(BEGIN) or 0)
    loop = _build_loop(cluster)
    console.print(Text("\n3. The compactor rehearses, and then acts (simulated time)", style="bold"))
    console.print(styled("[bold]mode: rehearse[/]  the compactor records its plans and changes nothing"))
    _run_rounds(cluster, loop, 60)
    dry_run_count, nodes_before = len(cluster.records), len(cluster.inventory.nodes)
    console.print(_history_table(cluster.records))
    cordoned, evicted = _count_cordoned(cluster), cluster.evicted
    console.print(f"  nodes cordoned: {cordoned}, pods evicted: {evicted}", highlight=False)
    cluster.pool = replace(cluster.pool, dry_run=False)
    console.print(styled("[bold]mode: act[/]       the compactor carries out the same plan"))
    _run_rounds(cluster, loop, MAX_ROUNDS)
    console.print(_drain_table(cluster.records[dry_run_count:]))
    console.print(
        f"  {format_count(nodes_before, 'node')} → {len(cluster.inventory.nodes)}, "
        f"{format_count(cluster.evicted, 'pod')} evicted, "
        f"{loop.drainer.moved_twice} of them twice; {cluster.short} PodDisruptionBudgets violated",
        highlight=False,
    )
    return CompactionOutcome(
        cordoned_in_rehearsal=cordoned,
        evicted_in_rehearsal=evicted,
        nodes_before=nodes_before,
        nodes_after=len(cluster.inventory.nodes),
        moved_twice=loop.drainer.moved_twice,
        violated=cluster.short,
    )


def _build_loop(cluster: SimulatedCluster) -> Loop:
    timeouts = DrainTimeouts(rest=900)
    states, error_guard = PoolStates(cluster, (cluster.record_decision,)), ErrorGuard(log.build_logger("error"))
    return Loop(
        read_view=cluster.look,
        pool_states=states,
        drainer=Drainer(cluster, states, timeouts, StepRunner(error_guard, GracefulShutdown())),
        planner=CompactionPlanner(cluster, DryRunActuator(), states, timeouts, SETTLE_SECONDS, error_guard),
        soft_taints=SoftTaints(cluster),
        log=log.build_logger("error"),
        interval=INTERVAL_SECONDS,
        tick=TICK_SECONDS,
        elapsed=lambda: float(cluster.at),
    )


def _run_rounds(cluster: SimulatedCluster, loop: Loop, max_rounds: int) -> None:
    """Run rounds of the loop until no drain is under way and further plans find no node, at most `max_rounds`."""
    idle_rounds = 0
    for _ in range(max_rounds):
        record_count = len(cluster.records)
        wait = loop.run_round()
        cluster.pass_time(max(1, round(wait)))
        busy = len(cluster.records) > record_count or _count_cordoned(cluster) or loop.planner.pending_steps is not None
        idle_rounds = 0 if busy else idle_rounds + 1
        if idle_rounds > 3:
            return


def _count_cordoned(cluster: SimulatedCluster) -> int:
    return sum(node.is_cordoned for node in cluster.inventory.nodes)


def _history_table(records: Iterable[HistoryEntry]) -> RenderableType:
    rows = []
    for record in records:
        if record.what in _SHOWN_EVENTS or record.what == "planned":
            what = record.what if record.what == "planned" else f"would have {record.what}"
            rows.append((f"  {_format_time(record)}", what, record.why))
    return build_grid(rows)


def _drain_table(records: Iterable[HistoryEntry]) -> RenderableType:
    """Returns a table with a row for each node: what happened to it, and when."""
    events: dict[str, list[str]] = {}
    for record in records:
        if record.what in _SHOWN_EVENTS:
            events.setdefault(record.node or record.pool, []).append(f"{record.what} {_format_time(record)}")
    columns = max(map(len, events.values()), default=0)
    return build_grid([(f"  {node}", *texts, *[""] * (columns - len(texts))) for node, texts in events.items()])


def _format_time(record: HistoryEntry) -> str:
    seconds = record.at - (parse_timestamp(BEGIN) or 0)
    return f"03:{seconds // 60:02d}:{seconds % 60:02d}"
