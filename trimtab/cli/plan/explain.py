"""Why this node, why this pod? The chain of reasons in words: what the pool asks for first, then what the plan says.

When the plan is done, what room is left for the pods of a node that stays?
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from trimtab.cli.main import UsageError
from trimtab.cli.plan.cost import saving, words
from trimtab.cli.plan.inputs import PlanInputs
from trimtab.cli.plan.report import ExplainReport
from trimtab.cluster.config_error import ConfigError, nearest
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction import explain
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.reasons import NO_PLACE
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import why_not

MOST = 5
"""Pods that are told one by one."""


def room_after(world: ClusterModel, plan: Plan) -> FreeCapacity:
    """As the plan leaves it."""
    room, pods = FreeCapacity(world), {pod.key: number for number, pod in enumerate(world.pods)}
    for step in plan.steps:
        room.close(world.index[step.node])
    for move in plan.moves:
        number = pods[move.pod]
        room.uncount(world.kind_of[number].adds, world.node_of[number])
        room.take(world.next_of[number], world.index[move.target])
    return room


def places(world: ClusterModel, plan: Plan, name: str) -> Iterator[str]:
    """For each pod of the node: on how many others it would fit alone, and what the rest say."""
    room, home = room_after(world, plan), world.index[name]
    gone = {world.index[step.node] for step in plan.steps}
    others = [node for node in range(len(world.nodes)) if node != home and node not in gone]
    movable = [n for n in world.on[home] if not (world.pods[n].daemon or world.pods[n].static)]
    answers = {number: _answers(room, number, others) for number in movable}
    hard = sorted(movable, key=lambda number: (answers[number][0], number))
    for number in hard[:MOST]:
        fits, against = answers[number]
        tally = ", ".join(f"{count} {code}" for code, count in against.most_common())
        told = f" (the others: {tally})" if tally else ""
        yield f"after the plan, pod {world.pods[number].key} alone fits on {fits} of {len(others)} other nodes{told}"
    if hard and answers[hard[0]][0]:
        yield "each of its pods finds a place alone; together they do not, or the room is kept free on purpose"


def _answers(room: FreeCapacity, number: int, others: list[int]) -> tuple[int, Counter[str]]:
    """Alone is without itself: it is gone when its successor is placed."""
    kind, here, home = room.world.next_of[number], room.world.kind_of[number].adds, room.world.node_of[number]
    room.uncount(here, home)
    reasons = [why_not(room, kind, node) for node in others]
    room.count(here, home)
    return reasons.count(None), Counter(reason.code.name for reason in reasons if reason is not None)


def check(asked: PlanInputs, subjects: Sequence[tuple[str, str]]) -> None:
    """Raises Wrong for what is not in the snapshot."""
    known = {
        "node": {node.name for node in asked.inventory.nodes},
        "pod": {pod.key for pod in asked.inventory.pods},
    }
    mistakes = [
        ConfigError(file=f"--explain {kind}",
        expected=f"a {kind} of the snapshot" + " (NAMESPACE/NAME)" * (kind == "pod"),
                got=repr(name), todo=nearest(name, known[kind]))
        for kind, name in subjects if name not in known[kind]
    ]  # fmt: skip
    if mistakes:
        raise UsageError(mistakes)


def chain(asked: PlanInputs, world: ClusterModel, plan: Plan, kind: str, name: str) -> ExplainReport:
    found = _node(asked, world, plan, name) if kind == "node" else _pod(world, plan, name)
    return ExplainReport(kind=kind, name=name, chain=list(found))


def _node(asked: PlanInputs, world: ClusterModel, plan: Plan, name: str) -> Iterator[str]:
    node = world.nodes[world.index[name]]
    pools = [pool for pool in asked.pools if pool.has(node)]
    yield f"it is in {' and '.join(f'pool {pool.name}' for pool in pools) or 'no pool'}"
    if len(pools) == 1:
        yield _rules(pools[0])
    pods = [world.pods[number] for number in world.on[world.index[name]]]
    bound = sum(pod.daemon or pod.static for pod in pods)
    yield f"pods on it: {len(pods)}, of which {bound} belong to the node (DaemonSets, static pods) and go with it"
    yield from explain.node(plan, world, name)
    step = next((step for step in plan.steps if step.node == name), None)
    if step is not None:
        yield f"that saves {words(saving(step.saves, plan.unit))}"
        return
    if plan.refusals[name].code is NO_PLACE:
        yield from places(world, plan, name)
    yield _means(plan.refusals[name])


def _rules(pool: Pool) -> str:
    lines = ", ".join(f"{resource} at most {percent} %" for resource, percent in sorted(pool.under.items()))
    return f"the pool tries {f'nodes with {lines} requested' if lines else 'every node'}"


def _means(reason: Reason) -> str:
    return f"{reason.code.name}: {reason.code.means} What to do: {reason.code.todo} ({reason.page})"


def _pod(world: ClusterModel, plan: Plan, key: str) -> Iterator[str]:
    pod = next((pod for pod in world.pods if pod.key == key), None)
    if pod is None:
        yield "it holds nothing on a node of the snapshot: it is finished, waits for a node, or its node is not there"
    elif pod.daemon or pod.static:
        yield f"it runs on node {pod.node}"
        yield "it belongs to its node (a DaemonSet or the kubelet made it): it neither moves nor keeps the node"
    else:
        yield f"it runs on node {pod.node}"
        yield from explain.pod(plan, world, key)
        reason = plan.pods.get(key) or plan.refusals.get(pod.node)
        if reason is not None:
            yield _means(reason)
