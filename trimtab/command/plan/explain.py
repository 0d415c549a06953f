"""Why this node, why this pod? The chain of reasons in words."""

from collections import Counter
from collections.abc import Iterator, Sequence

from trimtab.cluster.mistake import Mistake, nearest
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.command.main import Wrong
from trimtab.command.plan.asked import Asked
from trimtab.command.plan.report import ExplainReport
from trimtab.command.plan.saving import saving, words
from trimtab.compaction.values import Move, Plan, Step
from trimtab.packing.fit import why_not
from trimtab.packing.room import Room
from trimtab.packing.world import World

MOST = 5
"""Pods or places that are named one by one."""


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
    return ExplainReport(kind=kind, name=name, chain=[sentence[:1].upper() + sentence[1:] for sentence in found])


# ── a node ───────────────────────────────────────────────────────────────
def _node(asked: Asked, world: World, plan: Plan, name: str) -> Iterator[str]:
    node = world.nodes[world.index[name]]
    pools = [pool for pool in asked.pools if pool.has(node)]
    yield f"It is in {' and '.join(f'pool {pool.name}' for pool in pools) or 'no pool'}."
    if len(pools) == 1:
        yield _rules(pools[0])
    pods = [world.pods[number] for number in world.on[world.index[name]]]
    bound = sum(pod.daemon or pod.static for pod in pods)
    yield f"Pods on it: {len(pods)}; of these {bound} belong to the node (DaemonSets, static pods) and go with it."
    step = next(((number, s) for number, wave in enumerate(plan.waves, 1) for s in wave.steps if s.node == name), None)
    yield from _goes(plan, *step) if step else _stays(world, plan, name)


def _rules(pool: Pool) -> str:
    lines = ", ".join(f"{resource} at most {percent} %" for resource, percent in sorted(pool.under.items()))
    return f"The pool tries {f'nodes with {lines} requested' if lines else 'every node'}."


def _goes(plan: Plan, number: int, step: Step) -> Iterator[str]:
    yield f"It goes in wave {number} of {len(plan.waves)}, and saves {words(saving(step.saves, plan.unit))}."
    for move in step.moves[:MOST]:
        yield _moved(move)
    if len(step.moves) > MOST:
        yield f"… and {len(step.moves) - MOST} more pods."
    yield f"{step.reason} ({step.reason.page})"


def _moved(move: Move) -> str:
    spends = f", spending from budget {move.budget}" if move.budget else ""
    turn = f", in turn {move.turn + 1}" if move.turn else ""
    return f"Pod {move.pod} goes to {move.target}{spends}{turn}."


def _stays(world: World, plan: Plan, name: str) -> Iterator[str]:
    reason = plan.refusals[name]
    pods = {world.pods[number].key: number for number in world.on[world.index[name]]}
    kept = [pod for pod in pods if pod in plan.pods]
    for pod in kept[:MOST]:
        yield f"Pod {pod} must stay: {_told(plan.pods[pod])}"
    if len(kept) > MOST:
        yield f"… and {len(kept) - MOST} more of its pods must stay."
    named = [number for pod, number in pods.items() if f" {pod} " in f"{reason} " and not kept]
    for number in named[:1]:
        yield from _places(_after(world, plan), world, number)
    arriving = [move for move in plan.moves if move.target == name]
    for move in arriving[:MOST]:
        yield f"Pod {move.pod} comes to it from {move.source}, which goes."
    if len(arriving) > MOST:
        yield f"… and {len(arriving) - MOST} more pods come to it."
    yield f"It stays: {_told(reason)}"


def _told(reason: Reason) -> str:
    return f"{reason}. {reason.code.means} What to do: {reason.code.todo} ({reason.page})"


# ── a pod ────────────────────────────────────────────────────────────────
def _pod(world: World, plan: Plan, key: str) -> Iterator[str]:
    number = next((n for n, pod in enumerate(world.pods) if pod.key == key), None)
    if number is None:
        yield "It holds nothing on a node of the snapshot: it is finished, waits for a node, or its node is not there."
        return
    pod = world.pods[number]
    yield f"It runs on node {pod.node}."
    if pod.daemon or pod.static:
        yield "It belongs to its node (a DaemonSet or the kubelet made it): it neither moves nor keeps the node."
        return
    move = next((move for move in plan.moves if move.pod == key), None)
    if move is not None:
        yield f"Its node goes. {_moved(move)}"
    elif key in plan.pods:
        yield f"It must stay, and its node with it: {_told(plan.pods[key])}"
    else:
        yield f"Its node stays: {plan.refusals[pod.node]}."
        yield from _places(_after(world, plan), world, number)


def _after(world: World, plan: Plan) -> Room:
    """The room when the whole plan was carried out."""
    room, pods = Room(world), {pod.key: number for number, pod in enumerate(world.pods)}
    for step in plan.steps:
        room.close(world.index[step.node])
    for move in plan.moves:
        number = pods[move.pod]
        room.uncount(world.kind_of[number].adds, world.node_of[number])
        room.take(world.next_of[number], world.index[move.target])
    return room


def _places(room: Room, world: World, number: int) -> Iterator[str]:
    """Where could this one pod go after the plan, and what says no elsewhere?"""
    kind, home = world.next_of[number], world.node_of[number]
    answers = {node: why_not(room, kind, node) for node in range(len(world.nodes)) if node != home}
    fits = [world.nodes[node].name for node, reason in answers.items() if reason is None]
    where = f": {', '.join(fits[:MOST])}" + (" …" if len(fits) > MOST else "") if fits else ""
    yield (
        f"Pod {world.pods[number].key} alone would fit on {len(fits)} of {len(answers)} other nodes "
        f"after the plan{where}."
    )
    against = [reason for reason in answers.values() if reason is not None]
    for code, count in Counter(reason.code for reason in against).most_common():
        example = next(reason for reason in against if reason.code is code)
        yield f"{count} say no ({code.name}): {example}, for example."
