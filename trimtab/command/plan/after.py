"""When the plan is done, what room is left for the pods of a node that stays?"""

from collections import Counter
from collections.abc import Iterator

from trimtab.compaction.values import Plan
from trimtab.packing.fit import why_not
from trimtab.packing.room import Room
from trimtab.packing.world import World

MOST = 5
"""Pods that are told one by one."""


def room_after(world: World, plan: Plan) -> Room:
    """As the plan leaves it."""
    room, pods = Room(world), {pod.key: number for number, pod in enumerate(world.pods)}
    for step in plan.steps:
        room.close(world.index[step.node])
    for move in plan.moves:
        number = pods[move.pod]
        room.uncount(world.kind_of[number].adds, world.node_of[number])
        room.take(world.next_of[number], world.index[move.target])
    return room


def places(world: World, plan: Plan, name: str) -> Iterator[str]:
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


def _answers(room: Room, number: int, others: list[int]) -> tuple[int, Counter[str]]:
    """Alone is without itself: it is gone when its successor is placed."""
    kind, here, home = room.world.next_of[number], room.world.kind_of[number].adds, room.world.node_of[number]
    room.uncount(here, home)
    reasons = [why_not(room, kind, node) for node in others]
    room.count(here, home)
    return reasons.count(None), Counter(reason.code.name for reason in reasons if reason is not None)
