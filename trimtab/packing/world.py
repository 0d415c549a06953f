"""Nodes, pods and their kinds as numbers, built once per snapshot.

Nodes and pods are numbered in the order of their names. Only pods that are on a known node and not finished are in
the world; those that wait for a node are listed apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.inventory import Inventory
from trimtab.cluster.node import Node
from trimtab.cluster.pod import FINISHED, Ask, Pod
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts
from trimtab.packing.groups import Group
from trimtab.packing.kinds import Kind
from trimtab.packing.recruit import Recruiter

Again = Callable[[Pod], Amounts | Unreadable | None]
"""What a pod would ask for if it were admitted again now; None where that is what it asks for already. Unreadable:
nobody can say, so it cannot be placed."""


@dataclass(slots=True, eq=False)
class World:
    inventory: Inventory
    nodes: Sequence[Node]
    index: dict[str, int]
    pods: list[Pod]
    """Pods on known nodes that hold something, by namespace and name."""
    node_of: list[int]
    kind_of: list[Kind]
    """As the pod asks now: what it holds where it is."""
    next_of: list[Kind]
    """As its successor would ask: the larger of now and `Again`."""
    on: list[list[int]]
    """Node → numbers of its pods."""
    waiting: list[tuple[Pod, Kind]]
    """Pods that have no node yet."""
    groups: list[Group]
    wheres: list[bytearray]
    """Sets of nodes by nature: 1 where the nature admits."""
    resources: tuple[str, str]
    """The scarcer of cpu and memory, and the other."""
    names: tuple[str, ...]
    """Everything else that is asked for, by resource number."""
    major: list[int] = field(default_factory=list)
    minor: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    rest: list[list[int]] = field(default_factory=list)
    counts: list[dict[int, int]] = field(default_factory=list)
    closed: bytearray = field(default_factory=bytearray)
    doubtful: dict[int, str] = field(default_factory=dict)
    """Node → what about it cannot be understood: it is neither emptied nor filled."""

    def amount(self, node: int, resource: str) -> int:
        """Allocatable; 0 where the node does not have it or cannot be read."""
        found = self.nodes[node].allocatable
        return 0 if isinstance(found, Unreadable) else found.get(resource, 0)


def build(inventory: Inventory, again: Again | None = None) -> World:
    """The world of one snapshot. A few microseconds per pod."""
    nodes = inventory.nodes
    index = {node.name: number for number, node in enumerate(nodes)}
    alive = [pod for pod in inventory.pods if pod.phase not in FINISHED]
    here = [pod for pod in alive if pod.node in index]
    waiting = [pod for pod in alive if not pod.node] if len(here) < len(alive) else []
    recruiter = Recruiter(inventory)
    now = recruiter.all(here)
    later = now if again is None else [recruiter.kind(pod, again(pod)) for pod in here]
    queue = [(pod, recruiter.kind(pod, again(pod) if again else None)) for pod in waiting]
    node_of = [index[pod.node] for pod in here]
    movable = {*(later if later is not now else ()), *(kind for _, kind in queue)}
    for kind, pod in zip(now, here, strict=True):
        if kind not in movable and not (pod.daemon or pod.static):
            movable.add(kind)
    recruiter.settle([kind for kind in recruiter.kinds if kind in movable])
    world = World(
        inventory=inventory, nodes=nodes, index=index, pods=here, node_of=node_of, kind_of=now, next_of=later,
        on=_by_node(node_of, len(nodes)), waiting=queue, groups=recruiter.roster.groups, wheres=recruiter.wheres,
        resources=recruiter.resources, names=recruiter.names,
    )  # fmt: skip
    _fill(world)
    return world


def _by_node(node_of: Sequence[int], count: int) -> list[list[int]]:
    on: list[list[int]] = [[] for _ in range(count)]
    for pod, node in enumerate(node_of):
        on[node].append(pod)
    return on


def _fill(world: World) -> None:
    """Free room and group counts as the snapshot shows them."""
    everything = range(len(world.nodes))
    world.major = [world.amount(n, world.resources[0]) for n in everything]
    world.minor = [world.amount(n, world.resources[1]) for n in everything]
    world.slots = [world.amount(n, "pods") for n in everything]
    world.rest = [[_rest(world, n, name) for n in everything] for name in world.names]
    world.counts = [{} for _ in world.groups]
    _judge(world)
    _occupy(world)


def _rest(world: World, node: int, name: str) -> int:
    if not name.startswith("volumes:"):
        return world.amount(node, name)
    return world.nodes[node].attachable.get(name.removeprefix("volumes:"), 1 << 30)


def _occupy(world: World) -> None:
    major, minor, slots = world.major, world.minor, world.slots
    counted: dict[int, list[_Counted]] = {}
    for pod, node, kind in zip(world.pods, world.node_of, world.kind_of, strict=True):
        major[node] -= kind.major
        minor[node] -= kind.minor
        slots[node] -= 1
        for number, amount in kind.rest:
            world.rest[number][node] -= amount
        if kind.adds:
            groups = counted.get(kind.number)
            if groups is None:
                groups = counted[kind.number] = [_counted(world, number) for number in kind.adds]
            leaving = pod.deleted is not None
            for domains, counts, lasting in groups:
                domain = node if domains is None else domains[node]
                if domain >= 0 and (lasting or not leaving):
                    counts[domain] = counts.get(domain, 0) + 1


_Counted = tuple[Sequence[int] | None, dict[int, int], bool]
"""Node → domain of a group (None: each node is one), its counts, and whether pods on their way out are counted."""


def _counted(world: World, number: int) -> _Counted:
    group = world.groups[number]
    return None if group.per_node else group.domain, world.counts[number], group.lasting


def _judge(world: World) -> None:
    """Which nodes take pods at all."""
    world.closed = bytearray(len(world.nodes))
    for number, node in enumerate(world.nodes):
        if isinstance(node.allocatable, Unreadable):
            world.doubtful[number] = node.allocatable.problem
        elif node.name in world.inventory.twins:
            world.doubtful[number] = f"more than one node is called {node.name}"
        elif node.name in world.inventory.doubles:
            world.doubtful[number] = f"pod {world.inventory.doubles[node.name]} stands more than once in the snapshot"
        if node.cordoned or not node.ready or node.going is not None:
            world.closed[number] = 1
    odd = {kind for kind in set(world.kind_of) if isinstance(kind.ask.requests, Unreadable)}
    for kind, number in zip(world.kind_of, world.node_of, strict=True) if odd else ():
        if kind in odd:
            world.doubtful[number] = str(kind.ask.requests)
    for number in world.doubtful:
        world.closed[number] = 1


__all__ = ["Again", "Ask", "World", "build"]
