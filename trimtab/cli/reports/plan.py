"""The report of `trimtab plan`: the types of the published report, and the functions that build them from a plan."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reports.misplaced_pods import MisplacedReport
from trimtab.cli.reports.misplaced_pods import report_misplaced as misplaced_report
from trimtab.cli.reports.node_costs import (
    PoolPriceReport,
    PriceReport,
    Saving,
    convert_saving,
    note_missing_prices,
    report_pool_prices,
    report_prices,
    sum_guessed_savings,
)
from trimtab.cli.reports.plan_bound import BoundReport, report_bound
from trimtab.cli.reports.plan_comparison import (
    NO_COMPARISON,
    KarpenterReport,
    KeeperReport,
    PlanComparison,
    PresetReport,
)
from trimtab.cli.reports.replacements import ReplacementsReport
from trimtab.cli.reports.resizes import ResizeReport
from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, NodeInfo
from trimtab.cluster.owner import controller_by_hash
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.compaction.cluster_after import successor_requirements
from trimtab.compaction.misplaced_pods import find_misplaced
from trimtab.compaction.plan_types import DrainStep, Plan
from trimtab.compaction.plan_variants import plan_frontier
from trimtab.compaction.reasons import BLOCKED, MOVED_BEFORE
from trimtab.inputs.node_costs import compute_node_costs
from trimtab.inputs.plan_inputs import PlanInputs
from trimtab.scheduling.cluster_model import Again, ClusterModel


class PoolReport(ReportPart, frozen=True, kw_only=True):
    """The result of the plan for one pool."""

    name: str
    goal: str
    dry_run: bool
    nodes_before: int
    nodes_after: int
    evictions: int
    saves: Saving
    refused: ReasonReport | None
    """The reason why nothing is planned in the whole pool now; null if there is none."""


class LeftToAutoscalerReport(ReportPart, frozen=True, kw_only=True):
    """The nodes that the cluster autoscaler will drain and remove by itself, in its own order."""

    nodes: int
    evictions: int
    """The number of pods that the cluster autoscaler will evict from these nodes."""
    saves: Saving


class MoveReport(ReportPart, frozen=True, kw_only=True):
    """The eviction of one pod, with the node that the new pod in its place fits on."""

    pod: str
    """The pod, as namespace/name."""
    workload: str
    """The pod's owner, as Kind/name; empty if it has none."""
    target: str
    """The node that has room for the new pod in this plan; the scheduler may choose another node."""
    budget: str | None
    """The PodDisruptionBudget that the eviction counts against; null if none selects the pod."""
    turn: int
    """The number of the group in which the pod is evicted: the pods of a node are evicted in groups.

    A group is evicted when the pods that replace those of the previous group are ready."""
    surge: int
    """The number of pods that the pod's Deployment is given for a while before the eviction, so that the budget allows
    it; 0 if the budget allows it now."""


class CompanionReport(ReportPart, frozen=True, kw_only=True):
    """The eviction of a pod on another node, because it lives and dies with pods of the drained node."""

    pod: str
    """The pod, as namespace/name."""
    node: str
    """The pod's node, which is not drained."""
    group: str
    """The group of pods that are evicted at the same time, as namespace/name."""


class StepReport(ReportPart, frozen=True, kw_only=True):
    """The drain of one node."""

    node: str
    pool: str
    saves: Saving
    reason: ReasonReport
    moves: list[MoveReport]
    companions: list[CompanionReport]
    """The pods on other nodes that are evicted too; empty unless the pool moves groups."""
    stated_cost: int
    """As how many further evictions the drain counts in the order of nodes, because the pods' own annotations say so.

    It is at most podTerms.maxCost of the pool."""
    longest_grace_seconds: int
    """The longest termination grace period of the pods that move, in seconds: the drain may last that long."""


class WaveReport(ReportPart, frozen=True, kw_only=True):
    """The nodes that may be drained before PodDisruptionBudgets allow more evictions."""

    number: int
    evictions: int
    saves: Saving
    nodes: list[StepReport]


class StayReport(ReportPart, frozen=True, kw_only=True):
    """One node that stays, with the reason."""

    node: str
    pool: str
    """The node's pool; empty if the node is in no pool or in several pools."""
    reason: ReasonReport
    blocked_by: str | None
    """The code of the reason of the pod that keeps the node; null if no pod does."""


class BlockerReport(ReportPart, frozen=True, kw_only=True):
    """A pod that may not move, so that its node stays."""

    pod: str
    node: str
    reason: ReasonReport


class Fill(ReportPart, frozen=True, kw_only=True):
    """The sum of requests on a node, without pods that have ended."""

    cpu: int
    """The requested millicores."""
    memory: int
    """The requested bytes."""
    pods: int


class NodeReport(ReportPart, frozen=True, kw_only=True):
    """The requests on a node before and after the plan."""

    name: str
    pool: str
    """The node's pool; empty if the node is in no pool or in several pools."""
    instance_type: str
    zone: str
    cost: Saving
    """The cost of the node in a month. If only this node's price is unknown, the cost is estimated from its cores.

    If no price is known at all, the number of the node's cores."""
    cpu: int
    """The allocatable millicores; 0 if they cannot be read."""
    memory: int
    """The allocatable bytes; 0 if they cannot be read."""
    before: Fill
    after: Fill | None
    """The requests after the plan; null if the node is removed."""


class ExplainReport(ReportPart, frozen=True, kw_only=True):
    """The chain of reasons for one node or pod of --explain."""

    kind: str
    name: str
    chain: list[str]
    """The sentences of the chain, from the first condition to the result."""


class FrontierReport(ReportPart, frozen=True, kw_only=True):
    """The result of stopping the plan after some of its nodes, if the nodes with the largest saving per eviction are
    drained first."""

    nodes: int
    evictions: int
    saves: Saving


class PlanReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab plan`. Published as deploy/schemas/plan-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab plan --cluster SNAPSHOT"
    api_version: str = API_VERSION
    kind: str = "PlanReport"
    nodes_before: int
    nodes_after: int
    evictions: int
    evictions_without_requests: int
    """The number of moved pods that request neither cpu nor memory. What they need on another node is assumed."""
    saves: Saving
    guessed: Saving
    """The part of the saving that comes from nodes with guessed prices."""
    prices: list[PriceReport]
    """The prices of the nodes in pools, by source."""
    pool_prices: list[PoolPriceReport]
    """The prices of the nodes in pools, by pool and machine type."""
    presets: list[PresetReport]
    """The outcome of the plan with each preset for all pools; empty if no comparison was requested."""
    frontier: list[FrontierReport]
    """Points at which the plan may be stopped, each with the number of evictions and the saving up to there."""
    keepers: list[KeeperReport]
    """The reasons that keep nodes, the most expensive first; empty if no comparison was requested."""
    karpenter: KarpenterReport | None
    """Karpenter's nodes, which Trimtab never drains; null if there are none, or if no comparison was requested."""
    misplaced: list[MisplacedReport]
    """Groups of pods that would cost less on other nodes, each with a PodPolicy."""
    left_to_autoscaler: LeftToAutoscalerReport
    """The nodes that the cluster autoscaler will remove by itself; they are not part of the plan's saving."""
    bound: BoundReport
    pools: list[PoolReport]
    waves: list[WaveReport]
    stays: list[StayReport]
    blockers: list[BlockerReport]
    nodes: list[NodeReport]
    explained: list[ExplainReport]
    """The chains of reasons for the nodes and pods of --explain."""
    resize: ResizeReport | None = None
    """What the plan frees in addition if pods are made smaller first; null without --resize."""
    replace: ReplacementsReport | None = None
    """What cheaper new nodes would save in addition; null if all pools say `replace: off`, or if no node group is
    known."""
    notes: list[str]
    """The plan's assumptions, and notes about the snapshot."""


def report_nodes(
    inventory: Inventory,
    pools: Sequence[Pool],
    removed: Iterable[str],
    targets: Mapping[str, str],
    readmitted_requests: Again | None = None,
) -> list[NodeReport]:
    """Returns the report of every node before and after the plan.

    `targets`: moved pod (namespace/name) → its node after the plan. `readmitted_requests`: returns the requests of a
    pod after its move.
    """
    removed_nodes = set(removed)
    # Tuples instead of Fill values: a large cluster has tens of thousands of pods.
    before: dict[str, tuple[int, int, int]] = {}
    for pod in inventory.pods:
        _add_pod(before, pod, pod.node)
    after = before.copy()
    for pod in inventory.pods if targets else ():
        target = targets.get(pod.key)
        if target is not None:
            _add_pod(after, pod, pod.node, -1)
            _add_pod(after, change(pod, requirements=successor_requirements(pod, readmitted_requests)), target)
    costs, unit = compute_node_costs(inventory, pools)
    index = PoolIndex(pools)
    return [
        _report_node(
            node,
            pool.name if (pool := index.only_pool_of(node)) else "",
            convert_saving(costs[node.name], unit),
            before,
            after,
            removed_nodes,
        )
        for node in inventory.machines
    ]


def _add_pod(sums: dict[str, tuple[int, int, int]], pod: PodInfo, node: str, times: int = 1) -> None:
    """Adds to node → (cpu, memory, pods) what the pod uses of the node; -1 `times` removes it."""
    if node and not pod.is_finished:
        requests, (cpu, memory, count) = pod.requirements.requests, sums.get(node, _EMPTY)
        if not isinstance(requests, Unreadable):
            cpu, memory = cpu + times * requests.get("cpu", 0), memory + times * requests.get("memory", 0)
        sums[node] = (cpu, memory, count + times)


_EMPTY = (0, 0, 0)


def _to_fill(sums: tuple[int, int, int]) -> Fill:
    return Fill(cpu=sums[0], memory=sums[1], pods=sums[2])


def _report_node(
    node: NodeInfo,
    pool: str,
    costs: Saving,
    before: Mapping[str, tuple[int, int, int]],
    after: Mapping[str, tuple[int, int, int]],
    removed_nodes: set[str],
) -> NodeReport:
    allocatable = {} if isinstance(node.allocatable, Unreadable) else node.allocatable
    return NodeReport(
        name=node.name,
        pool=pool,
        instance_type=node.labels.get(INSTANCE_TYPE_LABEL, ""),
        zone=node.zone,
        cost=costs,
        cpu=allocatable.get("cpu", 0),
        memory=allocatable.get("memory", 0),
        before=_to_fill(before.get(node.name, _EMPTY)),
        after=None if node.name in removed_nodes else _to_fill(after.get(node.name, _EMPTY)),
    )


def build_report(
    inputs: PlanInputs,
    model: ClusterModel,
    plan: Plan,
    explained: Sequence[ExplainReport],
    compared: PlanComparison = NO_COMPARISON,
    resize: ResizeReport | None = None,
    replacements: ReplacementsReport | None = None,
) -> PlanReport:
    """Returns the whole report of the plan."""
    inventory, targets = inputs.inventory, {move.pod: move.target for move in plan.all_moves}
    pods = {pod.key: pod for pod in inventory.pods}
    members = pool_names_by_node(inputs)
    return PlanReport(
        nodes_before=len(inventory.machines),
        nodes_after=len(inventory.machines) - len(plan.all_steps),
        evictions=sum(step.eviction_count for step in plan.all_steps),
        evictions_without_requests=count_pods_without_requests(pods[move.pod] for move in plan.all_moves),
        saves=convert_saving(plan.total_savings, plan.unit),
        bound=report_bound(plan.bound, plan.unit, len(inventory.machines)),
        guessed=convert_saving(sum_guessed_savings(inventory, inputs.pools, plan), plan.unit),
        prices=report_prices(inventory, inputs.pools),
        pool_prices=report_pool_prices(inventory, inputs.pools),
        presets=list(compared.presets),
        keepers=list(compared.keepers),
        karpenter=compared.karpenter,
        frontier=[
            FrontierReport(nodes=point.nodes, evictions=point.evictions, saves=convert_saving(point.saves, plan.unit))
            for point in plan_frontier(plan)
        ],
        misplaced=[misplaced_report(group, model) for group in find_misplaced(model, plan)],
        left_to_autoscaler=_report_left_to_autoscaler(plan),
        pools=_report_pools(inputs, plan, members),
        waves=[
            WaveReport(
                number=number,
                evictions=wave.eviction_count,
                saves=convert_saving(sum(step.saves for step in wave.steps), plan.unit),
                nodes=[_report_step(step, plan.unit, pods) for step in wave.steps],
            )
            for number, wave in enumerate(plan.waves, start=1)
        ],
        stays=report_stays(plan, members, inventory.pods),
        blockers=[
            BlockerReport(pod=pod, node=pods[pod].node, reason=report_reason(reason))
            for pod, reason in plan.pods.items()
        ],
        nodes=report_nodes(
            inventory, inputs.pools, (step.node for step in plan.all_steps), targets, inputs.readmitted_requests
        ),
        explained=list(explained),
        resize=resize,
        replace=replacements,
        notes=[*inputs.notes, *plan.notes, *note_missing_prices(inventory, inputs.pools)],
    )


def _report_left_to_autoscaler(plan: Plan) -> LeftToAutoscalerReport:
    nodes = plan.left.values()
    return LeftToAutoscalerReport(
        nodes=len(nodes),
        evictions=sum(node.evictions for node in nodes),
        saves=convert_saving(sum(node.saves for node in nodes), plan.unit),
    )


def count_pods_without_requests(pods: Iterable[PodInfo]) -> int:
    """Returns the number of pods that request neither cpu nor memory."""
    requests = [pod.requirements.requests for pod in pods]
    return sum(
        not (isinstance(request, Unreadable) or request.get("cpu") or request.get("memory")) for request in requests
    )


def pool_names_by_node(inputs: PlanInputs) -> dict[str, str]:
    """Returns node → the name of its pool. Nodes in no pool or in several pools are left out."""
    index = PoolIndex(inputs.pools)
    pools = ((node.name, index.only_pool_of(node)) for node in inputs.inventory.nodes)
    return {name: pool.name for name, pool in pools if pool is not None}


def _report_pools(inputs: PlanInputs, plan: Plan, members: Mapping[str, str]) -> list[PoolReport]:
    counts = Counter(members.values())
    reports = []
    for pool in inputs.pools:
        steps = [step for step in plan.all_steps if step.pool == pool.name]
        refusal = plan.pools.get(pool.name)
        reports.append(
            PoolReport(
                name=pool.name,
                goal=pool.goal.value,
                dry_run=pool.dry_run,
                nodes_before=counts[pool.name],
                nodes_after=counts[pool.name] - len(steps),
                evictions=sum(step.eviction_count for step in steps),
                saves=convert_saving(sum(step.saves for step in steps), plan.unit),
                refused=report_reason(refusal) if refusal else None,
            )
        )
    return reports


def _report_step(step: DrainStep, unit: str, pods: Mapping[str, PodInfo]) -> StepReport:
    return StepReport(
        node=step.node,
        pool=step.pool,
        saves=convert_saving(step.saves, unit),
        reason=report_reason(step.reason),
        moves=[
            MoveReport(
                pod=move.pod,
                workload=workload_name(pods[move.pod]),
                target=move.target,
                budget=move.budget,
                turn=move.turn,
                surge=move.surge,
            )
            for move in step.moves
        ],
        companions=[CompanionReport(pod=one.pod, node=one.node, group=step.groups[one.uid]) for one in step.companions],
        stated_cost=step.stated_cost,
        longest_grace_seconds=step.longest_grace_seconds,
    )


def workload_name(pod: PodInfo) -> str:
    """Returns Kind/name of the pod's owner, or "" if the pod has no owner.

    If the name of a ReplicaSet ends in the pod's template hash, the name of its Deployment is returned.
    """
    owner = pod.owner
    return str(controller_by_hash(pod.requirements.labels, owner) or owner) if owner is not None else ""


def report_stays(plan: Plan, members: Mapping[str, str], pods: Iterable[PodInfo]) -> list[StayReport]:
    """Returns every node that the plan does not drain, with the reason why it stays.

    If a pod blocks the node, the code of the pod's reason is included."""
    keepers: dict[str, Reason] = {}
    for pod in pods:
        reason = plan.pods.get(pod.key)
        # MOVED_BEFORE ends by itself after a while, so any other reason of the node's pods explains more.
        if reason is not None and (pod.node not in keepers or keepers[pod.node].code is MOVED_BEFORE):
            keepers[pod.node] = reason
    return [
        _report_stay(node, members.get(node, ""), reason, keepers.get(node)) for node, reason in plan.refusals.items()
    ]


def _report_stay(node: str, pool: str, reason: Reason, keeper: Reason | None) -> StayReport:
    """Returns the reason why a node stays; if a pod blocks the node, with the reason of the pod."""
    if reason.code is not BLOCKED or keeper is None:
        return StayReport(node=node, pool=pool, reason=report_reason(reason), blocked_by=None)
    blocked_reason = report_reason(BLOCKED(f"node {node} stays, because a pod on it cannot be moved: {keeper}"))
    return StayReport(node=node, pool=pool, reason=blocked_reason, blocked_by=keeper.code.name)
