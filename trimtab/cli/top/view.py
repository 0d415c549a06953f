"""The values that `trimtab top` shows at one moment: pools, nodes, decisions, savings."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trimtab.cli.reports.compactor_status import build_status_report
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import PoolIndex
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.drain.savings import format_savings
from trimtab.inputs.command_faults import check_names
from trimtab.inputs.compactor_state import CompactorState

MAX_DECISIONS = 200
STATE_ORDER = ("draining", "drained", "next", "planned", "cordoned", "not ready", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBar:
    """One node: the share of its resources that is requested, and what the compactor does with it."""

    name: str
    pool: str
    """The node's pool; empty if the node is in no pool."""
    state: str
    """draining, drained, next (in the first group of nodes that the plan drains), planned, cordoned or not ready; empty
    for a node that stays."""
    turn: int
    """The position of the node in the plan, from 1; 0 if the node is not in the plan."""
    cpu: int | None
    memory: int | None
    """The requested memory in percent of allocatable; None if it cannot be read."""
    pods: int
    leaving: int
    """The number of pods that still have to leave a node that is being drained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOverview:
    """One pool, and what the compactor would do next in it."""

    name: str
    mode: str
    nodes: int
    cpu: int | None
    memory: int | None
    """The requested memory in percent of the allocatable memory of all its nodes; None if it cannot be read."""
    next: tuple[str, ...]
    """The nodes that the plan drains first, in order."""
    planned: int
    """The number of nodes in the plan."""
    waits: str
    saved: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopView:
    """All values that the screen shows."""

    at: Seconds
    leader: str
    paused: str
    pools: tuple[PoolOverview, ...]
    nodes: tuple[NodeBar, ...]
    """The nodes, sorted by pool, state (nodes that are being removed first), position in the plan, and name.

    Nodes in no pool are last."""
    decisions: tuple[HistoryEntry, ...]
    """The last decisions, the newest first."""
    saved: str
    """What the removed nodes of all pools together save, as text."""
    problems: tuple[str, ...]


def build_top_view(state: CompactorState, problems: Iterable[str] = ()) -> TopView:
    """Returns the values to show for this state, which must include the pods of the cluster."""
    inventory = snapshot_inventory(state.snapshot)
    report = build_status_report(state)
    index = PoolIndex(state.pools.pools)
    pods: dict[str, list[PodInfo]] = {}
    for pod in inventory.pods:
        if pod.node and not pod.is_finished:
            pods.setdefault(pod.node, []).append(pod)
    leaving = {drain.node: drain.pods_left for drain in report.drains}
    bars, sums = [], dict[str, _Sums]()
    turns = {
        name: {node: turn for turn, node in enumerate(memory.plan, 1)} for name, memory in state.pool_states.items()
    }
    for node in inventory.nodes:
        pool = index.first_pool_of(node)
        name = pool.name if pool is not None else ""
        memory = state.pool_states.get(name, PoolState())
        node_sums = _sum_node(node, pods.get(node.name, []))
        turn = turns.get(name, {}).get(node.name, 0)
        bars.append(
            NodeBar(
                name=node.name,
                pool=name,
                state=_node_state(node, memory, turn),
                turn=turn,
                cpu=node_sums.percent("cpu"),
                memory=node_sums.percent("memory"),
                pods=len(pods.get(node.name, [])),
                leaving=leaving.get(node.name, 0),
            )
        )
        sums.setdefault(name, _Sums()).add(node_sums)
    counts = Counter(bar.pool for bar in bars)
    return TopView(
        at=state.read_at,
        leader=report.leader,
        paused=report.paused,
        pools=tuple(
            PoolOverview(
                name=pool.name,
                mode=pool.mode,
                nodes=counts[pool.name],
                cpu=sums.get(pool.name, _Sums()).percent("cpu"),
                memory=sums.get(pool.name, _Sums()).percent("memory"),
                next=_next_wave(state.pool_states.get(pool.name, PoolState())),
                planned=len(pool.next),
                waits=pool.waits_for,
                saved=_saved((state.pool_states.get(pool.name, PoolState()),)),
            )
            for pool in report.pools
        ),
        nodes=tuple(sorted(bars, key=_order)),
        decisions=_last_decisions(state.pool_states),
        saved=_saved(state.pool_states.values()),
        problems=(*([report.no_leader.text] if report.no_leader else ()), *report.mistakes, *problems),
    )


def select_part(view: TopView, pool: str | None, *, only_leaving: bool = False) -> TopView:
    """Returns the view restricted to one pool; None keeps all pools.

    With `only_leaving`, only nodes that are in the plan or have a state (such as draining or cordoned) are kept. Raises
    UsageError if the view has no such pool."""
    if pool is not None:
        check_names("--pool", "a pool", [pool], (*(each.name for each in view.pools), *(n.pool for n in view.nodes)))
    return replace(
        view,
        pools=tuple(each for each in view.pools if pool in (None, each.name)),
        nodes=tuple(
            node for node in view.nodes if pool in (None, node.pool) and (node.turn or node.state or not only_leaving)
        ),
        decisions=tuple(entry for entry in view.decisions if pool in (None, entry.pool)),
    )


def _order(bar: NodeBar) -> tuple[bool, str, int, int, str]:
    return (not bar.pool, bar.pool, STATE_ORDER.index(bar.state), bar.turn, bar.name)


def _next_wave(state: PoolState) -> tuple[str, ...]:
    return state.plan[: state.plan_wave or None]


def _saved(states: Iterable[PoolState]) -> str:
    all_states = list(states)
    worth: Counter[str] = Counter()
    for state in all_states:
        worth.update(state.worth)
    return format_savings(sum(state.saved for state in all_states), worth)


def _last_decisions(states: Mapping[str, PoolState]) -> tuple[HistoryEntry, ...]:
    entries = [entry for state in states.values() for entry in state.ring]
    return tuple(sorted(entries, key=lambda entry: entry.at, reverse=True)[:MAX_DECISIONS])


@dataclass(slots=True)
class _Sums:
    """Sums of requested and allocatable amounts. `is_known` is false if an amount cannot be read."""

    requested: Counter[str]
    allocatable: Counter[str]
    is_known: bool

    def __init__(self) -> None:
        self.requested, self.allocatable, self.is_known = Counter(), Counter(), True

    def add(self, other: "_Sums") -> None:
        self.requested.update(other.requested)
        self.allocatable.update(other.allocatable)
        self.is_known = self.is_known and other.is_known

    def percent(self, resource: str) -> int | None:
        total = self.allocatable[resource]
        return round(self.requested[resource] * 100 / total) if self.is_known and total > 0 else None


def _sum_node(node: NodeInfo, pods: Iterable[PodInfo]) -> _Sums:
    sums = _Sums()
    if isinstance(node.allocatable, Unreadable):
        sums.is_known = False
        return sums
    for resource in ("cpu", "memory"):
        sums.allocatable[resource] = node.allocatable.get(resource, 0)
    for pod in pods:
        requests = pod.requirements.requests
        if isinstance(requests, Unreadable):
            sums.is_known = False
            continue
        for resource in ("cpu", "memory"):
            sums.requested[resource] += requests.get(resource, 0)
    return sums


def _node_state(node: NodeInfo, state: PoolState, turn: int) -> str:
    if node.name in state.drains:
        return "drained" if node.name in state.empty else "draining"
    if not node.is_ready:
        return "not ready"
    if node.is_cordoned:
        return "cordoned"
    if not node.nature.is_machine:
        return "no machine"
    return "" if not turn else "next" if turn <= (state.plan_wave or len(state.plan)) else "planned"
