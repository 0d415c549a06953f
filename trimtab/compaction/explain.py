"""Why does this node stay, or go? Why does this pod? The chain of reasons in words.

Every line is a fact the plan was made of; the last lines of a pod without a place count the nodes by the constraint
that keeps it off, as the scheduler would.
"""

from collections.abc import Iterable

from trimtab.compaction.values import Move, Plan
from trimtab.packing.drain import nowhere
from trimtab.packing.fit import admits
from trimtab.packing.room import Room
from trimtab.packing.world import World


def node(plan: Plan, world: World, name: str) -> tuple[str, ...]:
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
    budget = f", paid by budget {move.budget}" if move.budget else ""
    return f"pod {move.pod} has a place on node {move.target}{budget}{turn}"


def _staying(plan: Plan, world: World, name: str) -> Iterable[str]:
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


def pod(plan: Plan, world: World, key: str) -> tuple[str, ...]:
    """What the plan does with a pod (namespace/name); empty where there is no such pod on a node."""
    number = next((n for n, found in enumerate(world.pods) if found.key == key), None)
    if number is None:
        return ()
    move = next((move for move in plan.moves if move.pod == key), None)
    if move is not None:
        return (f"pod {key} goes from node {move.source}", _placed(move))
    reason = plan.pods.get(key)
    home = world.nodes[world.node_of[number]].name
    lines = [f"pod {key} must stay: {reason} ({reason.code.todo})"] if reason else []
    return (*lines, *_home(plan, home), *_elsewhere(world, number))


def _home(plan: Plan, name: str) -> tuple[str, ...]:
    return (f"its node {name} stays: {plan.refusals[name]}",) if name in plan.refusals else ()


def _elsewhere(world: World, number: int) -> tuple[str, ...]:
    """Where else it would fit as the cluster is now."""
    room, home, kind = Room(world), world.node_of[number], world.next_of[number]
    room.uncount(world.kind_of[number].adds, home)
    room.close(home)
    others = [n for n in range(len(world.nodes)) if n != home]
    fits = [world.nodes[n].name for n in others if admits(room, kind, n)]
    if fits:
        return (f"as things are it would fit on {len(fits)} of {len(others)} other nodes, such as {fits[0]}",)
    return (str(nowhere(room, kind, others, world.pods[number].key)),)
