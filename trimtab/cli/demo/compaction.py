"""A small simulated cluster, and a door to it: the compactor's own loop works on it, and no clock is asked.

Pods have successors at once, on the emptiest node that takes them and is not about to go, ready after a while; what was
emptied is taken by an autoscaler that waits some minutes.

A pool goes from a rehearsal to the real thing, step by step, on a simulated cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.plan.inputs import PlanInputs
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.cluster_state import Inventory, ReplicaCounts
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.timestamps import Seconds, seconds
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict, gathered, read, write
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compactor.actuator import DryRunActuator, EvictionResponse, EvictionResult
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.loop import Loop
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.soft_taint import LEAVING, LeavingTaint, tainted
from trimtab.runtime import log
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.scheduling.cluster_model import FreeCapacity, build
from trimtab.scheduling.filters import admits

START_UP, TAKEN = 30, 600
KEYS = SigningKeys(b"the key of a cluster that is played")
"""Seconds until a new pod is ready, and until an empty node is taken."""
Key = tuple[str, str, str]


@dataclass(slots=True)
class SimulatedCluster:
    inventory: Inventory
    pool: Pool
    at: Seconds
    records: list[HistoryEntry] = field(default_factory=list)
    evicted: int = 0
    short: int = 0
    """Times a budget was broken."""
    _wanted: Counter[Key] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._wanted = Counter(key for pod in self.inventory.pods if (key := _key(pod)) is not None)
        self._count()

    # ── what the compactor sees ──────────────────────────────────────────────────────────────────────
    def look(self) -> ClusterView:
        """What is there now."""
        return ClusterView(
            at=self.at, inventory=self.inventory, pools=(self.pool,), home="trimtab-system",
            autoscaler=Autoscaler(updated=self.at, threshold=0),
            versions={node.name: "1" for node in self.inventory.nodes},
            notes=gathered(self.inventory.nodes, KEYS, "trimtab-system"),
        )  # fmt: skip

    def load(self) -> Mapping[str, PoolState | Unreadable]:
        return {}

    def save(self, pool: str, memory: PoolState, *, final: bool) -> None:
        pass

    # ── what it does ─────────────────────────────────────────────────────────────────────────────────
    @property
    def rehearsal(self) -> bool:
        return False

    def cordon(self, node: NodeInfo, version: str, note: DrainAnnotation) -> None:
        self._set(node.name, cordoned=True, note=write(note, node, KEYS))

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        self._set(node, cordoned=not uncordon, note="")

    def evict(self, move: PodToEvict) -> EvictionResponse:
        """The pod goes, and its successor is there, not ready yet."""
        [pod] = [pod for pod in self.inventory.pods if pod.uid == move.uid]
        self.evicted += 1
        left = tuple(other for other in self.inventory.pods if other is not pod)
        self.inventory = replace(self.inventory, pods=left)
        name = f"{pod.name.partition('.')[0]}.{self.evicted}"
        made = change(
            pod, name=name, uid=name, created=self.at, ready=False, node=self._place(change(pod, node="")), alike=-1
        )
        self.inventory = replace(self.inventory, pods=(*left, made))
        self._count()
        return EvictionResponse(became=EvictionResult.EVICTED)

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        return False

    def steer(self, node: NodeInfo, version: str, *, leaving: bool) -> None:
        others = tuple(taint for taint in node.taints if taint.key != LEAVING)
        ours = (Taint(key=LEAVING, effect="PreferNoSchedule"),) if leaving else ()
        self._replace(replace(node, taints=(*others, *ours)))

    def tell(self, record: HistoryEntry) -> None:
        self.records.append(record)

    # ── what happens by itself ───────────────────────────────────────────────────────────────────────
    def pass_time(self, seconds: int) -> None:
        """Pods become ready, budgets are counted, empty nodes are taken."""
        self.at += seconds
        pods = tuple(_later(pod, self.at) for pod in self.inventory.pods)
        nodes = tuple(node for node in self.inventory.nodes if not self._is_taken(node))
        self.inventory = replace(self.inventory, pods=pods, nodes=nodes)
        self._count()

    def _is_taken(self, node: NodeInfo) -> bool:
        note = read(node, KEYS)
        return isinstance(note, DrainAnnotation) and note.emptied is not None and self.at - note.emptied >= TAKEN

    def _place(self, pod: PodInfo) -> str:
        """The scheduler that spreads; what is about to go comes last."""
        world = build(replace(self.inventory, pods=(*self.inventory.pods, pod)))
        room, [(_, kind)] = FreeCapacity(world), world.waiting
        fits = [number for number in range(len(world.nodes)) if admits(room, kind, number)]
        best = min(fits, key=lambda n: (tainted(world.nodes[n], ""), -room.major[n], n), default=None)
        return "" if best is None else world.nodes[best].name

    def _count(self) -> None:
        """As the controllers of owners and budgets would."""
        have = Counter(key for pod in self.inventory.pods if (key := _key(pod)) is not None)
        ready = Counter(key for pod in self.inventory.pods if (key := _key(pod)) is not None and pod.ready)
        owners = {key: ReplicaCounts(wanted=n, have=have[key], ready=ready[key]) for key, n in self._wanted.items()}
        budgets = []
        for budget in self.inventory.budgets:
            missing = sum(self._wanted[key] - ready[key] for key in self._wanted if key[2] == budget.name)
            self.short += missing > budget.most
            budgets.append(replace(budget, allowed=max(0, budget.most - missing), whole=missing <= budget.most))
        self.inventory = replace(self.inventory, owners=owners, budgets=tuple(budgets))

    def _set(self, name: str, *, cordoned: bool, note: str) -> None:
        [node] = [node for node in self.inventory.nodes if node.name == name]
        kept = {key: text for key, text in node.annotations.items() if key != CORDONED_BY_US}
        self._replace(replace(node, cordoned=cordoned, annotations={**kept, CORDONED_BY_US: note} if note else kept))

    def _replace(self, made: NodeInfo) -> None:
        nodes = tuple(made if node.name == made.name else node for node in self.inventory.nodes)
        self.inventory = replace(self.inventory, nodes=nodes)


def _key(pod: PodInfo) -> Key | None:
    return (pod.namespace, pod.owner.kind, pod.owner.name) if pod.owner is not None else None


def _later(pod: PodInfo, now: Seconds) -> PodInfo:
    born = pod.created or 0
    return change(pod, ready=True) if not pod.ready and pod.node and now - born >= START_UP else pod


INTERVAL, SETTLE, TICK, ROUNDS = 60, 15, 5, 600
BEGIN = "2026-03-02T03:00:00Z"
"""A Monday at three in the morning, with nobody watching."""
_SHOWN = ("begun", "emptied", "taken", "released", "dropped", "closed")


def show(console: Console, asked: PlanInputs) -> None:
    """What a rehearsal writes down, and then what is done."""
    [pool] = asked.pools
    stage = SimulatedCluster(asked.inventory, replace(pool, dry_run=True), seconds(BEGIN) or 0)
    loop = _loop(stage)
    console.print(Text("\nFrom a rehearsal to the real thing (simulated: 30 s to start a pod)", style="bold"))
    console.print("[bold]mode: rehearse[/]  plans are written down, nothing is done", highlight=False)
    _rounds(stage, loop, 60)
    rehearsed, before = len(stage.records), len(stage.inventory.nodes)
    console.print(_table(stage.records))
    console.print(f"  nodes cordoned: {_cordoned(stage)}, pods evicted: {stage.evicted}", highlight=False)
    stage.pool = replace(stage.pool, dry_run=False)
    console.print("[bold]mode: act[/]       the same plan, carried out", highlight=False)
    _rounds(stage, loop, ROUNDS)
    console.print(_table(stage.records[rehearsed:]))
    console.print(
        f"  {before} nodes → {len(stage.inventory.nodes)}, {stage.evicted} pods evicted, {loop.drains.twice} of them "
        f"twice; budgets broken: {stage.short}",
        highlight=False,
    )


def _loop(stage: SimulatedCluster) -> Loop:
    terms = DrainTimeouts(rest=900)
    books, faults = PoolStates(stage, (stage.tell,)), ErrorGuard(log.build("error"))
    return Loop(
        look=stage.look, books=books, drains=Drainer(stage, books, terms, GracefulShutdown(), faults),
        planning=CompactionPlanner(stage, DryRunActuator(), books, terms, SETTLE, faults), steering=LeavingTaint(stage),
        log=log.build("error"), interval=INTERVAL, tick=TICK, elapsed=lambda: float(stage.at),
    )  # fmt: skip


def _rounds(stage: SimulatedCluster, loop: Loop, most: int) -> None:
    """Until nothing is under way and two plans have found nothing more."""
    quiet = 0
    for _ in range(most):
        told = len(stage.records)
        wait = loop.round()
        stage.pass_time(max(1, round(wait)))
        busy = len(stage.records) > told or _cordoned(stage) or loop.planning.intent is not None
        quiet = 0 if busy else quiet + 1
        if quiet > 3:
            return


def _cordoned(stage: SimulatedCluster) -> int:
    return sum(node.cordoned for node in stage.inventory.nodes)


def _table(records: Iterable[HistoryEntry]) -> Table:
    table = Table.grid(padding=(0, 2))
    start = seconds(BEGIN) or 0
    for record in records:
        if record.what in _SHOWN or (record.what == "planned" and record.rehearsed):
            passed = record.at - start
            style = {"taken": "green", "released": "red"}.get(record.what, "")
            what = f"would have {record.what}" if record.rehearsed and record.what != "planned" else record.what
            table.add_row(f"  03:{passed // 60:02d}:{passed % 60:02d}", Text(what, style=style), record.why)
    return table
