"""Why this node, why this pod? The chain of reasons in words: what the pool asks for first, then what the plan says."""

from collections.abc import Iterator, Sequence

from trimtab.cluster.mistake import Mistake, nearest
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.command.main import Wrong
from trimtab.command.plan.after import places
from trimtab.command.plan.asked import Asked
from trimtab.command.plan.report import ExplainReport
from trimtab.command.plan.saving import saving, words
from trimtab.compaction import explain
from trimtab.compaction.reasons import NO_PLACE
from trimtab.compaction.values import Plan
from trimtab.packing.world import World


def check(asked: Asked, subjects: Sequence[tuple[str, str]]) -> None:
    """Raises Wrong for what is not in the snapshot."""
    known = {
        "node": {node.name for node in asked.inventory.nodes},
        "pod": {pod.key for pod in asked.inventory.pods},
    }
    mistakes = [
        Mistake(file=f"--explain {kind}", expected=f"a {kind} of the snapshot" + " (NAMESPACE/NAME)" * (kind == "pod"),
                came=repr(name), todo=nearest(name, known[kind]))
        for kind, name in subjects if name not in known[kind]
    ]  # fmt: skip
    if mistakes:
        raise Wrong(mistakes)


def chain(asked: Asked, world: World, plan: Plan, kind: str, name: str) -> ExplainReport:
    found = _node(asked, world, plan, name) if kind == "node" else _pod(world, plan, name)
    return ExplainReport(kind=kind, name=name, chain=list(found))


def _node(asked: Asked, world: World, plan: Plan, name: str) -> Iterator[str]:
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


def _pod(world: World, plan: Plan, key: str) -> Iterator[str]:
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
