"""The report of `trimtab plan`.

How full is each node, before and after?

A plan as its report.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, why
from trimtab.cli.plan.comparison import NOTHING, KarpenterReport, KeeperReport, PlanComparison, PresetReport
from trimtab.cli.plan.cost import PriceReport, Saving, cost, guessed, prices, saving, unpriced
from trimtab.cli.plan.inputs import PlanInputs
from trimtab.cli.plan.misplaced_pods import MisplacedReport
from trimtab.cli.plan.misplaced_pods import report as misplaced_report
from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import INSTANCE_TYPE, NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.compaction.misplaced_pods import misplaced
from trimtab.compaction.plan_types import Bound, DrainStep, Move, Plan, Wave
from trimtab.compaction.plan_variants import frontier
from trimtab.compaction.reasons import BLOCKED, MOVED_BEFORE
from trimtab.compaction.simulate import successor
from trimtab.scheduling.cluster_model import Again, ClusterModel


class PoolReport(ReportPart, frozen=True, kw_only=True):
    name: str
    goal: str
    dry_run: bool
    nodes_before: int
    nodes_after: int
    evictions: int
    saves: Saving
    refused: ReasonReport | None
    """Why nothing is planned in the whole pool now; null when something may be."""


class LeftToAutoscalerReport(ReportPart, frozen=True, kw_only=True):
    """Nodes that the cluster autoscaler will empty and remove by itself, in its own order."""

    nodes: int
    evictions: int
    """Pods that it will evict from them."""
    saves: Saving


class MoveReport(ReportPart, frozen=True, kw_only=True):
    pod: str
    """namespace/name."""
    workload: str
    """Kind/name of what made it; empty where nobody did."""
    target: str
    """The node that has room for it by this plan; the scheduler may choose another."""
    budget: str | None
    """The PodDisruptionBudget it spends from."""
    turn: int
    """Within its node: a turn begins when the successors of the one before are ready."""


class StepReport(ReportPart, frozen=True, kw_only=True):
    """One node that goes."""

    node: str
    pool: str
    saves: Saving
    reason: ReasonReport
    moves: list[MoveReport]


class WaveReport(ReportPart, frozen=True, kw_only=True):
    """Nodes that may go before budgets are full again."""

    number: int
    evictions: int
    saves: Saving
    nodes: list[StepReport]


class StayReport(ReportPart, frozen=True, kw_only=True):
    """One node that stays."""

    node: str
    pool: str
    """Empty where it is in no pool, or in more than one."""
    reason: ReasonReport
    blocked_by: str | None
    """Where a pod that may not move keeps it: the code of that pod's reason."""


class BlockerReport(ReportPart, frozen=True, kw_only=True):
    """A pod that must stay, and keeps its node."""

    pod: str
    node: str
    reason: ReasonReport


class BoundReport(ReportPart, frozen=True, kw_only=True):
    """What no plan can exceed, by volume alone: as if pods were sand."""

    nodes: int
    """Most nodes that can go."""
    saves: Saving
    pinned: int
    """Nodes that hold a pod that may not move."""
    nodes_unpinned: int
    """Most nodes that could go if those pods could move."""
    saves_unpinned: Saving
    text: str


class Fill(ReportPart, frozen=True, kw_only=True):
    """Requested on a node, finished pods not counted."""

    cpu: int
    """Millicores."""
    memory: int
    """Bytes."""
    pods: int


class NodeReport(ReportPart, frozen=True, kw_only=True):
    """How full a node is, before and after."""

    name: str
    pool: str
    """Empty where it is in no pool, or in more than one."""
    instance_type: str
    zone: str
    cost: Saving
    """A month, or cores where no price is known at all; what is not known is taken for as dear as the others."""
    cpu: int
    """Allocatable millicores; 0 where that cannot be read."""
    memory: int
    """Allocatable bytes."""
    before: Fill
    after: Fill | None
    """Null when it goes."""


class ExplainReport(ReportPart, frozen=True, kw_only=True):
    kind: str
    name: str
    chain: list[str]
    """From what is asked first to the answer."""


class FrontierReport(ReportPart, frozen=True, kw_only=True):
    """What comes of the plan's first nodes, those first that save most for each eviction."""

    nodes: int
    evictions: int
    saves: Saving


class PlanReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/plan-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "PlanReport"
    nodes_before: int
    nodes_after: int
    evictions: int
    evictions_without_requests: int
    """Moved pods that ask for neither cpu nor memory: what they need elsewhere is not known, only assumed."""
    saves: Saving
    guessed: Saving
    """How much of that rests on guessed prices."""
    prices: list[PriceReport]
    """On whose word the prices of the pools' nodes are."""
    presets: list[PresetReport]
    """What each preset would come to for all pools; empty where nothing was compared."""
    frontier: list[FrontierReport]
    """Savings against evictions: a plan may be stopped at any of these points."""
    keepers: list[KeeperReport]
    """What keeps nodes, dearest first; empty where nothing was compared."""
    karpenter: KarpenterReport | None
    """Of Karpenter's nodes, which are never touched; null where there are none, or nothing was compared."""
    misplaced: list[MisplacedReport]
    """Pods that would be better elsewhere, with a PodPolicy."""
    left_to_autoscaler: LeftToAutoscalerReport
    """Not counted in what the plan saves."""
    bound: BoundReport
    pools: list[PoolReport]
    waves: list[WaveReport]
    stays: list[StayReport]
    blockers: list[BlockerReport]
    nodes: list[NodeReport]
    explained: list[ExplainReport]
    """What --explain asked for."""
    notes: list[str]
    """What was assumed, and what is odd about the snapshot."""


def nodes(
    inventory: Inventory,
    pools: Sequence[Pool],
    gone: Iterable[str],
    places: Mapping[str, str],
    again: Again | None = None,
) -> list[NodeReport]:
    """Every node of before; `places`: where moved pods (namespace/name) run after; `again`: what they ask for then."""
    lost = set(gone)
    before = _fills((pod, pod.node) for pod in inventory.pods)
    moved = (change(pod, ask=successor(pod, again)) if pod.key in places else pod for pod in inventory.pods)
    after = _fills((pod, places.get(pod.key, pod.node)) for pod in moved if _stays(pod, lost, places))
    costs, unit = cost(inventory, pools)
    index = PoolIndex(pools)
    return [
        _node(
            node, pool.name if (pool := index.only(node)) else "", saving(costs[node.name], unit), before, after, lost
        )
        for node in inventory.nodes
    ]


def _stays(pod: PodInfo, lost: set[str], places: Mapping[str, str]) -> bool:
    """What is bound to a node (a DaemonSet's pod) goes with it."""
    return pod.key in places or pod.node not in lost


def _fills(pods: Iterable[tuple[PodInfo, str]]) -> dict[str, Fill]:
    sums: dict[str, tuple[int, int, int]] = {}
    for pod, node in pods:
        if node and not pod.finished:
            asks = pod.ask.requests
            cpu, memory = (0, 0) if isinstance(asks, Unreadable) else (asks.get("cpu", 0), asks.get("memory", 0))
            have = sums.get(node, (0, 0, 0))
            sums[node] = (have[0] + cpu, have[1] + memory, have[2] + 1)
    return {node: Fill(cpu=cpu, memory=memory, pods=count) for node, (cpu, memory, count) in sums.items()}


_EMPTY = Fill(cpu=0, memory=0, pods=0)


def _node(
    node: NodeInfo, pool: str, costs: Saving, before: Mapping[str, Fill], after: Mapping[str, Fill], lost: set[str]
) -> NodeReport:
    have = {} if isinstance(node.allocatable, Unreadable) else node.allocatable
    return NodeReport(
        name=node.name, pool=pool, instance_type=node.labels.get(INSTANCE_TYPE, ""), zone=node.zone, cost=costs,
        cpu=have.get("cpu", 0), memory=have.get("memory", 0), before=before.get(node.name, _EMPTY),
        after=None if node.name in lost else after.get(node.name, _EMPTY),
    )  # fmt: skip


def report(
    asked: PlanInputs,
    world: ClusterModel,
    plan: Plan,
    explained: Sequence[ExplainReport],
    compared: PlanComparison = NOTHING,
) -> PlanReport:
    inventory, places = asked.inventory, {move.pod: move.target for move in plan.moves}
    pods = {pod.key: pod for pod in inventory.pods}
    members = members_of(asked)
    return PlanReport(
        nodes_before=len(inventory.nodes), nodes_after=len(inventory.nodes) - len(plan.steps),
        evictions=len(plan.moves), evictions_without_requests=without_requests(pods[move.pod] for move in plan.moves),
        saves=saving(plan.saves, plan.unit), bound=bound(plan.bound, plan.unit),
        guessed=saving(guessed(inventory, asked.pools, plan), plan.unit), prices=prices(inventory, asked.pools),
        presets=list(compared.presets), keepers=list(compared.keepers), karpenter=compared.karpenter,
        frontier=_frontier(plan),
        misplaced=[misplaced_report(found, world) for found in misplaced(world, plan)],
        left_to_autoscaler=_left_to_autoscaler(plan),
        pools=_pools(asked, plan, members), waves=_waves(plan, pods), stays=stays(plan, members, inventory.pods),
        blockers=[
            BlockerReport(pod=pod, node=pods[pod].node, reason=why(reason)) for pod, reason in plan.pods.items()
        ],
        nodes=nodes(inventory, asked.pools, (step.node for step in plan.steps), places, asked.again),
        explained=list(explained),
        notes=[*asked.notes, *plan.notes, *unpriced(inventory, asked.pools)],
    )  # fmt: skip


def _frontier(plan: Plan) -> list[FrontierReport]:
    return [
        FrontierReport(nodes=point.nodes, evictions=point.evictions, saves=saving(point.saves, plan.unit))
        for point in frontier(plan)
    ]


def _left_to_autoscaler(plan: Plan) -> LeftToAutoscalerReport:
    left = plan.left.values()
    return LeftToAutoscalerReport(
        nodes=len(left), evictions=sum(node.evictions for node in left),
        saves=saving(sum(node.saves for node in left), plan.unit),
    )  # fmt: skip


def without_requests(pods: Iterable[PodInfo]) -> int:
    """How many of the pods ask for neither cpu nor memory."""
    asks = [pod.ask.requests for pod in pods]
    return sum(not (isinstance(a, Unreadable) or a.get("cpu") or a.get("memory")) for a in asks)


def members_of(asked: PlanInputs) -> dict[str, str]:
    """Node → its one pool."""
    index = PoolIndex(asked.pools)
    found = ((node.name, index.only(node)) for node in asked.inventory.nodes)
    return {name: pool.name for name, pool in found if pool is not None}


def _pools(asked: PlanInputs, plan: Plan, members: Mapping[str, str]) -> list[PoolReport]:
    counts = Counter(members.values())
    made = []
    for pool in asked.pools:
        steps = [step for step in plan.steps if step.pool == pool.name]
        refusal = plan.pools.get(pool.name)
        made.append(PoolReport(
            name=pool.name, goal=pool.goal.value, dry_run=pool.dry_run, nodes_before=counts[pool.name],
            nodes_after=counts[pool.name] - len(steps), evictions=sum(len(step.moves) for step in steps),
            saves=saving(sum(step.saves for step in steps), plan.unit), refused=why(refusal) if refusal else None,
        ))  # fmt: skip
    return made


def _waves(plan: Plan, pods: Mapping[str, PodInfo]) -> list[WaveReport]:
    return [_wave(number, wave, plan.unit, pods) for number, wave in enumerate(plan.waves, start=1)]


def _wave(number: int, wave: Wave, unit: str, pods: Mapping[str, PodInfo]) -> WaveReport:
    return WaveReport(
        number=number, evictions=wave.evictions, saves=saving(sum(step.saves for step in wave.steps), unit),
        nodes=[_step(step, unit, pods) for step in wave.steps],
    )  # fmt: skip


def _step(step: DrainStep, unit: str, pods: Mapping[str, PodInfo]) -> StepReport:
    return StepReport(
        node=step.node, pool=step.pool, saves=saving(step.saves, unit), reason=why(step.reason),
        moves=[_move(move, pods[move.pod]) for move in step.moves],
    )  # fmt: skip


def _move(move: Move, pod: PodInfo) -> MoveReport:
    return MoveReport(pod=move.pod, workload=workload(pod), target=move.target, budget=move.budget, turn=move.turn)


def workload(pod: PodInfo) -> str:
    """Kind/name; a ReplicaSet whose name ends in the pod's template hash is told as its Deployment."""
    if pod.owner is None:
        return ""
    suffix = "-" + pod.ask.labels.get("pod-template-hash", "")
    if pod.owner.kind == "ReplicaSet" and len(suffix) > 1 and pod.owner.name.endswith(suffix):
        return f"Deployment/{pod.owner.name.removesuffix(suffix)}"
    return f"{pod.owner.kind}/{pod.owner.name}"


def stays(plan: Plan, members: Mapping[str, str], pods: Iterable[PodInfo]) -> list[StayReport]:
    """Every node that is in no wave."""
    keepers: dict[str, Reason] = {}
    for pod in pods:
        reason = plan.pods.get(pod.key)
        if reason is not None and (pod.node not in keepers or keepers[pod.node].code is MOVED_BEFORE):
            keepers[pod.node] = reason
    return [_stay(node, members.get(node, ""), reason, keepers.get(node)) for node, reason in plan.refusals.items()]


def _stay(node: str, pool: str, reason: Reason, keeper: Reason | None) -> StayReport:
    """That a pod was moved just now says less than anything else that keeps a node."""
    if reason.code is not BLOCKED or keeper is None:
        return StayReport(node=node, pool=pool, reason=why(reason), blocked_by=None)
    told = why(BLOCKED(f"node {node} stays: {keeper}"))
    return StayReport(node=node, pool=pool, reason=told, blocked_by=keeper.code.name)


def bound(found: Bound, unit: str) -> BoundReport:
    more = found.unpinned_nodes - found.nodes
    most = "1 node" if found.nodes == 1 else f"{found.nodes} nodes"
    text = f"No plan can free more than {most}, by volume alone."
    if found.pinned:
        hold = "1 node holds a pod" if found.pinned == 1 else f"{found.pinned} nodes hold a pod"
        them = "it" if found.pinned == 1 else "them"
        text += f" {hold} that may not move; without {them} {more or 'no'} more could go."
    return BoundReport(
        nodes=found.nodes, saves=saving(found.saves, unit), pinned=found.pinned, nodes_unpinned=found.unpinned_nodes,
        saves_unpinned=saving(found.unpinned_saves, unit), text=text,
    )  # fmt: skip
