"""The report of `trimtab plan`: the types of the published report, and the functions that build them from a plan."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reports.misplaced_pods import MisplacedReport
from trimtab.cli.reports.misplaced_pods import report_misplaced as misplaced_report
from trimtab.cli.reports.node_costs import (
    NodeReport,
    PoolPriceReport,
    PriceReport,
    Saving,
    convert_saving,
    note_missing_prices,
    report_nodes,
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
from trimtab.cluster.owner import controller_by_hash
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import PoolIndex
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.compaction.misplaced_pods import find_misplaced
from trimtab.compaction.plan_types import DrainStep, Plan
from trimtab.compaction.plan_variants import plan_frontier
from trimtab.compaction.reasons import BLOCKED, MOVED_BEFORE
from trimtab.inputs.plan_inputs import PlanInputs
from trimtab.scheduling.cluster_model import ClusterModel


class PoolReport(ReportPart, frozen=True, kw_only=True):
    """The result of the plan for one pool."""

    name: str
    """The name of the pool."""
    goal: str
    """What plans of the pool save: `cost` (money) or `nodes`."""
    dry_run: bool
    """Whether the pool only rehearses: the compactor would not carry out the plan."""
    nodes_before: int
    """The number of the pool's nodes."""
    nodes_after: int
    """The number of the pool's nodes that the plan leaves."""
    evictions: int
    """The number of pods that the plan evicts from the pool's nodes."""
    saves: Saving
    """What the plan saves in the pool."""
    refused: ReasonReport | None
    """The reason why nothing is planned in the whole pool now; null if there is none."""


class LeftToAutoscalerReport(ReportPart, frozen=True, kw_only=True):
    """The nodes that the cluster autoscaler will drain and remove by itself, in its own order."""

    nodes: int
    """The number of these nodes."""
    evictions: int
    """The number of pods that the cluster autoscaler will evict from these nodes."""
    saves: Saving
    """What the removal of these nodes saves."""


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
    """The node that is drained."""
    pool: str
    """The pool of the node."""
    saves: Saving
    """What the drain saves."""
    reason: ReasonReport
    """Why the node is drained."""
    moves: list[MoveReport]
    """The evictions of the node's pods, each with the node that has room for the new pod."""
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
    """The number of the wave, from 1."""
    evictions: int
    """The number of evictions of the wave."""
    saves: Saving
    """What the drains of the wave save."""
    nodes: list[StepReport]
    """The drains of the wave, in their order."""


class StayReport(ReportPart, frozen=True, kw_only=True):
    """One node that stays, with the reason."""

    node: str
    """The node that stays."""
    pool: str
    """The node's pool; empty if the node is in no pool or in several pools."""
    reason: ReasonReport
    """Why it stays: the first condition that fails."""
    blocked_by: str | None
    """The code of the reason of the pod that keeps the node; null if no pod does."""


class BlockerReport(ReportPart, frozen=True, kw_only=True):
    """A pod that may not move, so that its node stays."""

    pod: str
    """The pod, as namespace/name."""
    node: str
    """The node of the pod."""
    reason: ReasonReport
    """Why the pod may not move."""


class ExplainReport(ReportPart, frozen=True, kw_only=True):
    """The chain of reasons for one node or pod of --explain."""

    kind: str
    """`node` or `pod`."""
    name: str
    """The node, or the pod as namespace/name."""
    chain: list[str]
    """The sentences of the chain, from the first condition to the result."""


class FrontierReport(ReportPart, frozen=True, kw_only=True):
    """The result of stopping the plan after some of its nodes, if the nodes with the largest saving per eviction are
    drained first."""

    nodes: int
    """The number of nodes that are drained up to there."""
    evictions: int
    """The number of evictions up to there."""
    saves: Saving
    """What is saved up to there."""


class PlanReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab plan`. Published as deploy/schemas/plan-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab plan --cluster SNAPSHOT"
    api_version: str = API_VERSION
    kind: str = "PlanReport"
    nodes_before: int
    """The number of nodes, those in no pool included."""
    nodes_after: int
    """The number of nodes that the plan leaves."""
    evictions: int
    """The number of pods that the plan evicts."""
    evictions_without_requests: int
    """The number of moved pods that request neither cpu nor memory. What they need on another node is assumed."""
    saves: Saving
    """What the plan saves."""
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
    """What any plan could save at most."""
    pools: list[PoolReport]
    """The result for each pool."""
    waves: list[WaveReport]
    """The drains, in groups for which PodDisruptionBudgets suffice, the first group first."""
    stays: list[StayReport]
    """The nodes that stay, each with the reason."""
    blockers: list[BlockerReport]
    """The pods that may not move, so that their nodes stay."""
    nodes: list[NodeReport]
    """The requests on every node before and after the plan."""
    explained: list[ExplainReport]
    """The chains of reasons for the nodes and pods of --explain."""
    resize: ResizeReport | None = None
    """What the plan frees in addition if pods are made smaller first; null without --resize."""
    replace: ReplacementsReport | None = None
    """What cheaper new nodes would save in addition; null if all pools say `replace: off`, or if no node group is
    known."""
    notes: list[str]
    """The plan's assumptions, and notes about the snapshot."""


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
