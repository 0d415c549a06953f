"""A plan as its report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trimtab.cluster.pod import Pod
from trimtab.cluster.reason import Reason
from trimtab.command.plan.asked import Asked
from trimtab.command.plan.fills import nodes
from trimtab.command.plan.report import (
    BlockerReport,
    BoundReport,
    ExplainReport,
    MoveReport,
    PlanReport,
    PoolReport,
    StayReport,
    StepReport,
    WaveReport,
)
from trimtab.command.plan.saving import saving, unpriced
from trimtab.command.why import why
from trimtab.compaction.reasons import BLOCKED, MOVED_BEFORE
from trimtab.compaction.values import Bound, Move, Plan, Step, Wave


def report(asked: Asked, plan: Plan, explained: Sequence[ExplainReport]) -> PlanReport:
    inventory, places = asked.inventory, {move.pod: move.target for move in plan.moves}
    pods = {pod.key: pod for pod in inventory.pods}
    members = members_of(asked)
    return PlanReport(
        nodes_before=len(inventory.nodes), nodes_after=len(inventory.nodes) - len(plan.steps),
        evictions=len(plan.moves), saves=saving(plan.saves, plan.unit), bound=bound(plan.bound, plan.unit),
        pools=_pools(asked, plan, members), waves=_waves(plan, pods), stays=stays(plan, members, inventory.pods),
        blockers=[
            BlockerReport(pod=pod, node=pods[pod].node, reason=why(reason)) for pod, reason in plan.pods.items()
        ],
        nodes=nodes(inventory, (step.node for step in plan.steps), places, asked.again), explained=list(explained),
        notes=[*asked.notes, *plan.notes, *unpriced(inventory, asked.pools)],
    )  # fmt: skip


def members_of(asked: Asked) -> dict[str, str]:
    """Node → its one pool."""
    found = {}
    for node in asked.inventory.nodes:
        names = [pool.name for pool in asked.pools if pool.has(node)]
        if len(names) == 1:
            found[node.name] = names[0]
    return found


def _pools(asked: Asked, plan: Plan, members: Mapping[str, str]) -> list[PoolReport]:
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


def _waves(plan: Plan, pods: Mapping[str, Pod]) -> list[WaveReport]:
    return [_wave(number, wave, plan.unit, pods) for number, wave in enumerate(plan.waves, start=1)]


def _wave(number: int, wave: Wave, unit: str, pods: Mapping[str, Pod]) -> WaveReport:
    return WaveReport(
        number=number, evictions=wave.evictions, saves=saving(sum(step.saves for step in wave.steps), unit),
        nodes=[_step(step, unit, pods) for step in wave.steps],
    )  # fmt: skip


def _step(step: Step, unit: str, pods: Mapping[str, Pod]) -> StepReport:
    return StepReport(
        node=step.node, pool=step.pool, saves=saving(step.saves, unit), reason=why(step.reason),
        moves=[_move(move, pods[move.pod]) for move in step.moves],
    )  # fmt: skip


def _move(move: Move, pod: Pod) -> MoveReport:
    return MoveReport(pod=move.pod, workload=workload(pod), target=move.target, budget=move.budget, turn=move.turn)


def workload(pod: Pod) -> str:
    """Kind/name; a ReplicaSet whose name ends in the pod's template hash is told as its Deployment."""
    if pod.owner is None:
        return ""
    suffix = "-" + pod.ask.labels.get("pod-template-hash", "")
    if pod.owner.kind == "ReplicaSet" and len(suffix) > 1 and pod.owner.name.endswith(suffix):
        return f"Deployment/{pod.owner.name.removesuffix(suffix)}"
    return f"{pod.owner.kind}/{pod.owner.name}"


def stays(plan: Plan, members: Mapping[str, str], pods: Iterable[Pod]) -> list[StayReport]:
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
