"""Nodes, pods and their kinds as numbers, built once per snapshot.

Nodes and pods are numbered in the order of their names. Only pods that are on a known node and not finished are in
the world; those that wait for a node are listed apart.

What is free at this moment? The only thing in this room that changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.cluster.capacity_buffer import ReservedPods
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.garbage_collection import uncollected
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import FINISHED, PodInfo, SchedulingRequirements
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, GrowingAmounts
from trimtab.scheduling.classify_pods import PodClassifier
from trimtab.scheduling.pod_class import PodClass
from trimtab.scheduling.topology import TopologyGroup

__all__ = ["Again", "SchedulingRequirements", "ClusterModel", "build"]


Again = Callable[[PodInfo], Amounts | Unreadable | None]
"""What a pod would ask for if it were admitted again now; None where that is what it asks for already. Unreadable:
nobody can say, so it cannot be placed."""


@dataclass(slots=True, eq=False)
class ClusterModel:
    inventory: Inventory
    nodes: Sequence[NodeInfo]
    index: dict[str, int]
    pods: list[PodInfo]
    """Pods on known nodes that hold something, by namespace and name."""
    node_of: list[int]
    kind_of: list[PodClass]
    """As the pod asks now: what it holds where it is."""
    next_of: list[PodClass]
    """As its successor would ask: the larger of now and `Again`."""
    on: list[list[int]]
    """Node → numbers of its pods."""
    waiting: list[tuple[PodInfo, PodClass]]
    """Pods that have no node yet."""
    buffered: list[tuple[ReservedPods, PodClass]]
    """Room that is kept for pods that are not there."""
    groups: list[TopologyGroup]
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
    to_grow: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Node → what its pods may come to ask for more while they stay on it (`GrowingAmounts`), of both resources."""
    doubtful: dict[int, str] = field(default_factory=dict)
    """Node → what about it cannot be understood: it is neither emptied nor filled."""

    def amount(self, node: int, resource: str) -> int:
        """Allocatable; 0 where the node does not have it or cannot be read."""
        found = self.nodes[node].allocatable
        return 0 if isinstance(found, Unreadable) else found.get(resource, 0)


@uncollected()
def build(inventory: Inventory, again: Again | None = None) -> ClusterModel:
    """The world of one snapshot. A few microseconds per pod."""
    nodes = inventory.nodes
    index = {node.name: number for number, node in enumerate(nodes)}
    here = [pod for pod in inventory.pods if pod.node in index and pod.phase not in FINISHED]
    rest = inventory.pods if len(here) < len(inventory.pods) else ()
    waiting = [pod for pod in rest if not pod.node and pod.phase not in FINISHED]
    recruiter = PodClassifier(inventory)
    now = recruiter.all(here)
    again = _with_assumed(inventory, again)
    answers = [again(pod) for pod in here] if again is not None else []
    later = now if again is None else [recruiter.kind(pod, one) for pod, one in zip(here, answers, strict=True)]
    queue = [(pod, recruiter.kind(pod, again(pod) if again else None)) for pod in waiting]
    buffered = [(buffer, recruiter.kind(buffer.pod)) for buffer in inventory.buffers]
    node_of = [index[pod.node] for pod in here]
    movable = {*(later if later is not now else ()), *(kind for _, kind in (*queue, *buffered))}
    for kind, pod in zip(now, here, strict=True):
        if kind not in movable and not (pod.daemon or pod.static):
            movable.add(kind)
    recruiter.settle([kind for kind in recruiter.kinds if kind in movable])
    world = ClusterModel(
        inventory=inventory, nodes=nodes, index=index, pods=here, node_of=node_of, kind_of=now, next_of=later,
        on=_by_node(node_of, len(nodes)), waiting=queue, buffered=buffered, groups=recruiter.roster.groups,
        wheres=recruiter.wheres, resources=recruiter.resources, names=recruiter.names,
    )  # fmt: skip
    _fill(world)
    _grow(world, [number for number, one in enumerate(answers) if isinstance(one, GrowingAmounts)])
    return world


def _grow(world: ClusterModel, pods: Iterable[int]) -> None:
    for pod in pods:
        now, later, node = world.kind_of[pod], world.next_of[pod], world.node_of[pod]
        major, minor = world.to_grow.get(node, (0, 0))
        more = max(0, later.major - now.major), max(0, later.minor - now.minor)
        world.to_grow[node] = (major + more[0], minor + more[1])


def _with_assumed(inventory: Inventory, again: Again | None) -> Again | None:
    """`again`, where a pod that asks for none of a resource is given what the inventory assumes of it.

    DaemonSet and static pods are left out: they are no load that moves, and stand on every node alike.
    """
    assumed = inventory.assumed
    if not assumed or not any(_lacking(pod, assumed) for pod in inventory.pods):
        return again

    def expected(pod: PodInfo) -> Amounts | Unreadable | None:
        given = again(pod) if again is not None else None
        lacking = _lacking(pod, assumed)
        if not lacking or isinstance(given, Unreadable) or isinstance(pod.ask.requests, Unreadable):
            return given
        amounts = pod.ask.requests if given is None else given
        found = {**amounts, **{name: assumed[name] for name in lacking if not amounts.get(name)}}
        return GrowingAmounts(found) if isinstance(given, GrowingAmounts) else found

    return expected


def _lacking(pod: PodInfo, assumed: Mapping[str, int]) -> list[str]:
    """The resources that are assumed of this pod because it asks for none of them."""
    asks = pod.ask.requests
    if isinstance(asks, Unreadable) or pod.daemon or pod.static:
        return []
    return [name for name in assumed if not asks.get(name)]


def _by_node(node_of: Sequence[int], count: int) -> list[list[int]]:
    on: list[list[int]] = [[] for _ in range(count)]
    for pod, node in enumerate(node_of):
        on[node].append(pod)
    return on


def _fill(world: ClusterModel) -> None:
    """Free room and group counts as the snapshot shows them."""
    everything = range(len(world.nodes))
    world.major = [world.amount(n, world.resources[0]) for n in everything]
    world.minor = [world.amount(n, world.resources[1]) for n in everything]
    world.slots = [world.amount(n, "pods") for n in everything]
    world.rest = [[_rest(world, n, name) for n in everything] for name in world.names]
    world.counts = [{} for _ in world.groups]
    _judge(world)
    _occupy(world)


def _rest(world: ClusterModel, node: int, name: str) -> int:
    if not name.startswith("volumes:"):
        return world.amount(node, name)
    return world.nodes[node].attachable.get(name.removeprefix("volumes:"), 1 << 30)


def _occupy(world: ClusterModel) -> None:
    major, minor, slots, kinds = world.major, world.minor, world.slots, world.kind_of
    majors, minors = [kind.major for kind in kinds], [kind.minor for kind in kinds]
    for node, pods in enumerate(world.on):
        major[node] -= sum([majors[pod] for pod in pods])
        minor[node] -= sum([minors[pod] for pod in pods])
        slots[node] -= len(pods)
    _occupy_assumed(world)
    counted: dict[int, list[_Counted]] = {}
    for number, kind in enumerate(kinds):
        if not (kind.adds or kind.rest):
            continue
        node = world.node_of[number]
        for resource, amount in kind.rest:
            world.rest[resource][node] -= amount
        if kind.adds:
            groups = counted.get(kind.number)
            if groups is None:
                groups = counted[kind.number] = [_counted(world, group) for group in kind.adds]
            is_leaving = world.pods[number].deleted is not None
            for domains, counts, lasting in groups:
                domain = node if domains is None else domains[node]
                if domain >= 0 and (lasting or not is_leaving):
                    counts[domain] = counts.get(domain, 0) + 1


def _occupy_assumed(world: ClusterModel) -> None:
    """Takes what is assumed of pods that ask for nothing of a resource; DaemonSet and static pods are left out."""
    assumed = world.inventory.assumed
    if not assumed:
        return
    unknown = [assumed.get(resource, 0) for resource in world.resources]
    for pod, node, kind in zip(world.pods, world.node_of, world.kind_of, strict=True):
        if not (kind.major and kind.minor) and not (pod.daemon or pod.static):
            world.major[node] -= 0 if kind.major else unknown[0]
            world.minor[node] -= 0 if kind.minor else unknown[1]


_Counted = tuple[Sequence[int] | None, dict[int, int], bool]
"""Node → domain of a group (None: each node is one), its counts, and whether pods on their way out are counted."""


def _counted(world: ClusterModel, number: int) -> _Counted:
    group = world.groups[number]
    return None if group.per_node else group.domain, world.counts[number], group.lasting


def _judge(world: ClusterModel) -> None:
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


class SavedCapacity(NamedTuple):
    """A copy of what changes in a room."""

    major: list[int]
    minor: list[int]
    slots: list[int]
    rest: list[list[int]]
    counts: list[dict[int, int]]
    closed: bytes
    leaving: frozenset[int]


class FreeCapacity:
    """Free resources by node and pods by group and domain. `take` and `give` undo each other exactly."""

    __slots__ = ("_domains", "closed", "counts", "leaving", "major", "minor", "rest", "slots", "world")

    def __init__(self, world: "ClusterModel") -> None:
        self.world = world
        self.major = world.major[:]
        self.minor = world.minor[:]
        self.slots = world.slots[:]
        self.rest = [amounts[:] for amounts in world.rest]
        self.counts: list[dict[int, int]] = [counts.copy() for counts in world.counts]
        self.closed = bytearray(world.closed)
        """Nodes that take no pods."""
        self.leaving: set[int] = set()
        """Nodes that we cordon: they stay domains, except for who honours taints."""
        self._domains = [g.domain if not g.per_node else range(len(world.nodes)) for g in world.groups]

    def keep_room_to_grow(self) -> None:
        """Takes away what pods that stay may come to ask for more where they are."""
        for node, (major, minor) in self.world.to_grow.items():
            self.major[node] -= major
            self.minor[node] -= minor

    def saved(self) -> SavedCapacity:
        """The room as it is now, for `restore`."""
        return SavedCapacity(
            self.major[:], self.minor[:], self.slots[:], [amounts[:] for amounts in self.rest],
            [counts.copy() for counts in self.counts], bytes(self.closed), frozenset(self.leaving),
        )  # fmt: skip

    def restore(self, saved: SavedCapacity) -> None:
        """The room as it was then, in the same lists and dicts: others read them, too."""
        self.major[:], self.minor[:], self.slots[:] = saved.major, saved.minor, saved.slots
        self.closed[:] = saved.closed
        for amounts, before in zip(self.rest, saved.rest, strict=True):
            amounts[:] = before
        for counts, was in zip(self.counts, saved.counts, strict=True):
            if counts != was:
                counts.clear()
                counts.update(was)
        self.leaving = set(saved.leaving)

    def take(self, kind: PodClass, node: int) -> None:
        """A pod of this kind comes to the node."""
        self.major[node] -= kind.major
        self.minor[node] -= kind.minor
        self.slots[node] -= 1
        for number, amount in kind.rest:
            self.rest[number][node] -= amount
        if kind.adds:
            self.count(kind.adds, node)

    def give(self, kind: PodClass, node: int) -> None:
        """A pod of this kind leaves the node."""
        self.major[node] += kind.major
        self.minor[node] += kind.minor
        self.slots[node] += 1
        for number, amount in kind.rest:
            self.rest[number][node] += amount
        if kind.adds:
            self.uncount(kind.adds, node)

    def count(self, groups: Iterable[int], node: int) -> None:
        for number in groups:
            domain = self._domains[number][node]
            if domain >= 0:
                counts = self.counts[number]
                counts[domain] = counts.get(domain, 0) + 1

    def uncount(self, groups: Iterable[int], node: int) -> None:
        for number in groups:
            domain = self._domains[number][node]
            if domain >= 0:
                counts = self.counts[number]
                left = counts.get(domain, 0) - 1
                if left > 0:
                    counts[domain] = left
                else:
                    counts.pop(domain, None)

    def close(self, node: int) -> None:
        """The node is cordoned: nothing comes to it any more."""
        self.closed[node] = 1
        self.leaving.add(node)

    def reopen(self, node: int) -> None:
        self.closed[node] = self.world.closed[node]
        self.leaving.discard(node)
