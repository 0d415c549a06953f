"""Why does this node stay, or go? Why does this pod? The chain of reasons in words.

Every line is a fact the plan was made of; the last lines of a pod without a place count the nodes by the constraint
that keeps it off, as the scheduler would.
"""

from collections.abc import Iterable

from trimtab.compaction.plan_types import Move, Plan
from trimtab.compaction.reasons import WORTH_KEEPING
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.drain_simulation import DrainPlacement, exactly, nowhere
from trimtab.scheduling.filters import admits


def node(plan: Plan, world: ClusterModel, name: str) -> tuple[str, ...]:
    """What the plan does with a node, and all that led to it; empty where there is no such node."""
    if name not in world.index:
        return ()
    return tuple(_going(plan, name)) or tuple(_staying(plan, world, name))


def _going(plan: Plan, name: str) -> Iterable[str]:
    for number, wave in enumerate(plan.waves, 1):
        for place, step in enumerate(wave.steps, 1):
            if step.node == name:
                yield f"node {name} goes in wave {number} of {len(plan.waves)}, as number {place} of {len(wave.steps)}"
                yield f"{step.reason}: evictions {len(step.moves)}"
                yield from map(_placed, step.moves)


def _placed(move: Move) -> str:
    turn = f" in turn {move.turn + 1}" if move.turn else ""
    budget = f", paid by budget {move.budget}" if move.budget else ", no budget has a say"
    return f"pod {move.pod} has a place on node {move.target}{budget}{turn}"


def _allowed(world: ClusterModel, move: Move) -> Iterable[str]:
    """What the budget of a move says now."""
    found = next((budget for budget in world.inventory.budgets if budget.key == move.budget), None)
    if found is not None:
        yield f"budget {found.key} allows {found.allowed} disruption{'' if found.allowed == 1 else 's'} now"


def _staying(plan: Plan, world: ClusterModel, name: str) -> Iterable[str]:
    sentence = str(plan.refusals[name])
    yield sentence if sentence.startswith(f"node {name} stays") else f"node {name} stays: {sentence}"
    for number in world.on[world.index[name]]:
        reason = plan.pods.get(world.pods[number].key)
        if reason is not None:
            yield f"pod {world.pods[number].key} must stay: {reason} ({reason.code.todo})"
    arrivals = [move for move in plan.moves if move.target == name]
    if arrivals:
        sources = sorted({move.source for move in arrivals})
        whose = f"node {sources[0]}, which goes" if len(sources) == 1 else f"{len(sources)} nodes that go"
        yield f"it takes {len(arrivals)} pods of {whose}"
    if plan.refusals[name].code is WORTH_KEEPING:
        yield _instead(plan, world, name)


def _instead(plan: Plan, world: ClusterModel, name: str) -> str:
    """Whether a node that receives pods could have gone instead, as the cluster is now, nodes that go included."""
    node = world.index[name]
    pods = [n for n in world.on[node] if not (world.pods[n].daemon or world.pods[n].static)]
    others = [n for n in range(len(world.nodes)) if n != node and not world.closed[n]]
    found = exactly(FreeCapacity(world), node, pods, others)
    if isinstance(found, DrainPlacement):
        return (
            f"it could have gone instead of others: its {len(pods)} pods find a place elsewhere, before any node goes"
        )
    return f"it could not have gone instead, even before any node goes: {found.reason}"


def pod(plan: Plan, world: ClusterModel, key: str) -> tuple[str, ...]:
    """What the plan does with a pod (namespace/name); empty where there is no such pod on a node."""
    number = next((n for n, found in enumerate(world.pods) if found.key == key), None)
    if number is None:
        return ()
    move = next((move for move in plan.moves if move.pod == key), None)
    if move is not None:
        return (_goes(plan, move), _placed(move), *_allowed(world, move), _beside(plan, world, number, move))
    reason = plan.pods.get(key)
    home = world.nodes[world.node_of[number]].name
    lines = [f"pod {key} must stay: {reason} ({reason.code.todo})"] if reason else []
    return (*lines, *_home(plan, home), *_elsewhere(world, number))


def _goes(plan: Plan, move: Move) -> str:
    waves = enumerate(plan.waves, 1)
    wave = next(number for number, wave in waves if any(step.node == move.source for step in wave.steps))
    return f"pod {move.pod} goes from node {move.source} in wave {wave} of {len(plan.waves)}"


def _beside(plan: Plan, world: ClusterModel, number: int, move: Move) -> str:
    """How many nodes that stay would take it beside the one it has a place on, as things are."""
    room, kind = FreeCapacity(world), world.next_of[number]
    room.uncount(world.kind_of[number].adds, world.node_of[number])
    gone = {step.node for step in plan.steps}
    others = [n for n, node in enumerate(world.nodes) if node.name not in gone and node.name != move.target]
    fits = [world.nodes[n].name for n in others if admits(room, kind, n)]
    such = f", such as {fits[0]}" if fits else ""
    return f"as things are it would also fit on {len(fits)} of {len(others)} other nodes that stay{such}"


def _home(plan: Plan, name: str) -> tuple[str, ...]:
    return (f"its node {name} stays: {plan.refusals[name]}",) if name in plan.refusals else ()


def _elsewhere(world: ClusterModel, number: int) -> tuple[str, ...]:
    """Where else it would fit as the cluster is now."""
    room, home, kind = FreeCapacity(world), world.node_of[number], world.next_of[number]
    room.uncount(world.kind_of[number].adds, home)
    room.close(home)
    others = [n for n in range(len(world.nodes)) if n != home]
    fits = [world.nodes[n].name for n in others if admits(room, kind, n)]
    if fits:
        return (f"as things are it would fit on {len(fits)} of {len(others)} other nodes, such as {fits[0]}",)
    return (str(nowhere(room, kind, others, world.pods[number].key)),)
