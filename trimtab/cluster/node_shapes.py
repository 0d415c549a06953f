"""What kinds of nodes are there, whatever they are called? Thousands of nodes come in a few shapes.

A shape is what makes a difference to the question whether a node could hold a pod at all: labels (of those that name
the single machine only that they are there), taints that stay, and what is allocatable. What runs on a node now is no
part of it, nor is what passes: a node that is not ready, or under pressure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from trimtab.cluster.api.core import Node, Taint
from trimtab.cluster.api.meta import Labels, get
from trimtab.cluster.api.pod import Container, PodSpec
from trimtab.cluster.api.workload import DaemonSet, Workload
from trimtab.cluster.node import HOSTNAME
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import Amounts, amounts

T = TypeVar("T")

MACHINE_LABELS = frozenset({
    HOSTNAME, "node.kubernetes.io/instance-id", "alpha.eksctl.io/instance-id", "topology.hostpath.csi/node",
})  # fmt: skip
"""Labels that differ from node to node. In a shape they are there with an empty value."""
Machine = tuple[str, str]
"""One of these labels and its value: what one node alone has."""
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that controllers put on nodes for a while."""
KARPENTER = "karpenter.sh/nodepool"
_AUTOSCALERS = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted")


class NodeShape(msgspec.Struct, frozen=True, gc=False):
    """One kind of nodes."""

    labels: Labels
    """With an empty value for each label of `MACHINE_LABELS`."""
    taints: tuple[Taint, ...]
    allocatable: Amounts
    is_made: bool
    """A cloud or an autoscaler made it: there may be more of its kind, and of kinds that nobody has seen yet."""
    is_open: bool = True
    """Does it take pods? One that is cordoned shows only what its group may bring again."""


class SeenNode(msgspec.Struct, frozen=True, gc=False):
    """What is held of a node."""

    name: str
    shape: NodeShape
    machine: tuple[Machine, ...] = ()


class OneMachine(msgspec.Struct, frozen=True, gc=False):
    """A node that has this label and value, and its kind."""

    machine: Machine
    node: str
    shape: NodeShape


Machines = Mapping[Machine, tuple[OneMachine, ...]]
"""By label and value; of more than one node where somebody copied a label."""


Key = tuple[object, ...]


def seen_node(node: Node) -> SeenNode | None:
    """None of a node that says no readable amounts, or that is cordoned and was made by hand."""
    try:
        allocatable = amounts(node.status.allocatable)
    except NotAQuantity:
        return None
    written = get(node.metadata.labels, {})
    labels = {name: "" if name in MACHINE_LABELS else value for name, value in written.items()}
    taints = tuple(
        Taint(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in node.spec.taints
        if not taint.key.startswith(_PASSING) and taint.key not in _AUTOSCALERS
    )
    is_made, is_open = bool(node.spec.provider_id) or KARPENTER in labels, not node.spec.unschedulable
    if not is_open and not is_made:
        return None
    machine = tuple((name, written[name]) for name in labels if name in MACHINE_LABELS)
    shape = NodeShape(labels, taints, allocatable, is_made, is_open)
    return SeenNode(node.metadata.name, shape, machine if is_open else ())


def shape_of(node: Node) -> NodeShape | None:
    """The kind of a node; None while it takes no pods, or says no readable amounts."""
    found = seen_node(node)
    return found.shape if found is not None and found.shape.is_open else None


def key_of(shape: NodeShape) -> Key:
    """Equal for nodes of the same kind."""
    labels, amount = frozenset(shape.labels.items()), frozenset(shape.allocatable.items())
    taints = frozenset((t.key, t.value, t.effect) for t in shape.taints)
    return labels, taints, amount, shape.is_made, shape.is_open


@dataclass(frozen=True, slots=True)
class NodeShapes:
    """All kinds of nodes, and the daemons that run on them."""

    shapes: tuple[NodeShape, ...] = ()
    daemons: tuple[PodSpec, ...] = ()
    """What DaemonSets run: on each node that these may run on."""
    closed: tuple[NodeShape, ...] = ()
    """Kinds of which all nodes are cordoned; an autoscaler may bring others."""
    growing: tuple[str, ...] | None = None
    """Node groups without a node that an autoscaler may give one: of which kind, nobody tells. None where no autoscaler
    says which groups there are."""
    _found: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, find: "Callable[[NodeShapes], T]") -> T:
        """What `find` makes of them, looked for when it is first asked for."""
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found

    @property
    def may_grow(self) -> bool:
        """May nodes of a kind come that nobody has seen? They may where:

        - a group has no node and may get one;
        - Karpenter makes nodes, which has no groups;
        - the nodes are of a cloud, and nobody tells its groups.
        """
        made = [shape for shape in (*self.shapes, *self.closed) if shape.is_made]
        if self.growing is None:
            return bool(made)
        return bool(self.growing) or any(KARPENTER in shape.labels for shape in made)


NO_NODES = NodeShapes()


class ShapeCounter:
    """Told of nodes one by one, it knows the kinds that there are."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._counts: Counter[Key] = Counter()
        self._shapes: dict[Key, NodeShape] = {}
        self.changes = 0
        """How often a kind came or went."""

    def put(self, node: SeenNode) -> tuple[OneMachine, ...]:
        """A node is of this kind now. How it is known as a single machine, with one shape for all nodes of its kind."""
        key = key_of(node.shape)
        if self._keys.get(node.name) != key:
            self.drop(node.name)
            self._keys[node.name] = key
            self._counts[key] += 1
            if key not in self._shapes:
                self._shapes[key] = node.shape
                self.changes += 1
        return tuple(OneMachine(machine, node.name, self._shapes[key]) for machine in node.machine)

    def drop(self, name: str) -> None:
        """The node is gone."""
        key = self._keys.pop(name, None)
        if key is None:
            return
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key], self._shapes[key]
            self.changes += 1

    def shapes(self) -> tuple[NodeShape, ...]:
        """The kinds, the largest first: most questions are answered by those."""
        return largest_first(self._shapes.values())


def largest_first(shapes: Iterable[NodeShape]) -> tuple[NodeShape, ...]:
    """In an order that is the same for the same kinds."""
    return tuple(sorted(shapes, key=_size, reverse=True))


def _size(shape: NodeShape) -> tuple[object, ...]:
    amount = shape.allocatable
    return amount.get("cpu", 0), amount.get("memory", 0), sorted(shape.labels.items()), sorted(amount.items())


def shapes_of(nodes: Iterable[Node]) -> tuple[NodeShape, ...]:
    """The kinds of these nodes, those of cordoned ones too."""
    found: Mapping[Key, NodeShape] = {key_of(s.shape): s.shape for s in map(seen_node, nodes) if s is not None}
    return largest_first(found.values())


def shapes_by_state(shapes: Iterable[NodeShape]) -> tuple[tuple[NodeShape, ...], tuple[NodeShape, ...]]:
    """Those that take pods, and those of which all nodes are cordoned."""
    found = tuple(shapes)
    opened = tuple(shape for shape in found if shape.is_open)
    kinds = {key_of(shape)[:-1] for shape in opened}
    return opened, tuple(shape for shape in found if not shape.is_open and key_of(shape)[:-1] not in kinds)


def daemon_of(found: Workload) -> PodSpec | None:
    """What a DaemonSet runs on each node, as far as it decides where and how much; None where only its metadata was
    read."""
    if not isinstance(found, DaemonSet) or not found.spec.template.spec.containers:
        return None
    spec = found.spec.template.spec
    return PodSpec(
        containers=tuple(Container(name=c.name, resources=c.resources) for c in spec.containers),
        init_containers=tuple(
            Container(name=c.name, resources=c.resources, restart_policy=c.restart_policy)
            for c in spec.init_containers
        ),
        resources=spec.resources, overhead=spec.overhead, node_selector=spec.node_selector, affinity=spec.affinity,
        tolerations=spec.tolerations,
    )  # fmt: skip
