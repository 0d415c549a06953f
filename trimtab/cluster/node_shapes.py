"""The distinct node shapes of a cluster: even thousands of nodes have only a few.

A shape is everything that decides whether an empty node could hold a pod: labels (of those that differ from machine to
machine, only that they exist), permanent taints, and allocatable resources. The pods on a node are not part of its
shape, nor are temporary states such as not being ready or being under pressure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from trimtab.cluster.api.core import Node, Taint
from trimtab.cluster.api.meta import Labels, value_or
from trimtab.cluster.api.pod import Container, PodSpec
from trimtab.cluster.api.workload import DaemonSet, Workload
from trimtab.cluster.node import AUTOSCALER_TAINTS, HOSTNAME_LABEL, OS_LABELS, first_label
from trimtab.cluster.node_nature import KARPENTER_POOL_LABEL, nature_of_node
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import Amounts, scheduler_amounts
from trimtab.cluster.whole_pods import parse_kubelet_version

T = TypeVar("T")

MACHINE_LABELS = frozenset(
    {HOSTNAME_LABEL, "node.kubernetes.io/instance-id", "alpha.eksctl.io/instance-id", "topology.hostpath.csi/node"}
)
"""Labels whose value differs from node to node. In a shape they have an empty value."""
Machine = tuple[str, str]
"""A label of `MACHINE_LABELS` and its value. Together they identify a single node."""
# Prefixes of taints that controllers put on nodes for a while.
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class NodeShape(msgspec.Struct, frozen=True, gc=False):
    """What many nodes have in common, as far as it decides which pods could run on them: labels, taints and allocatable
    resources."""

    labels: Labels
    """The labels of the nodes; those in `MACHINE_LABELS` have an empty value."""
    taints: tuple[Taint, ...]
    allocatable: Amounts
    is_made: bool
    """Whether a cloud or an autoscaler creates nodes of this shape. If so, it may add more of them, and also nodes of
    other shapes."""
    is_open: bool = True
    """Whether nodes of this shape accept pods. Cordoned nodes do not, but their shape is kept, because their node group
    may add another node of this shape, and because they may accept pods again."""
    operating_system: str = ""
    """The operating system, such as linux; empty if it is not known."""
    handlers: frozenset[str] | None = None
    """The runtime handlers that the nodes report, or None if they report none."""
    kubelet: tuple[int, int] | None = None
    """The version of the kubelet as (major, minor), or None if it is not known."""
    is_made_to_measure: bool = False
    """Whether the platform makes a node for each pod, with the size of the pod, as AWS Fargate does. Then the
    allocatable amounts say nothing about other pods, and DaemonSets have no pods there."""


class SeenNode(msgspec.Struct, frozen=True, gc=False):
    """What is stored about a node: its name, its shape, and the labels that identify it."""

    name: str
    shape: NodeShape
    machine: tuple[Machine, ...] = ()


class OneMachine(msgspec.Struct, frozen=True, gc=False):
    """A node that has this label and value, and its shape."""

    machine: Machine
    node: str
    shape: NodeShape


Machines = Mapping[Machine, tuple[OneMachine, ...]]
"""Label and value → the nodes that have them. There is more than one where a label was copied by mistake."""


Key = tuple[object, ...]


def shaped_node(node: Node) -> SeenNode | None:
    """Returns what is stored about a node, or None if its amounts are not readable."""
    try:
        # A node whose amounts are not readable has no shape: assuming zero would make pods seem impossible to place.
        allocatable = scheduler_amounts(node.status.allocatable)
    except NotAQuantity:
        return None
    node_labels = value_or(node.metadata.labels, {})
    labels = {name: "" if name in MACHINE_LABELS else value for name, value in node_labels.items()}
    taints = tuple(
        Taint(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in node.spec.taints
        if not taint.key.startswith(_PASSING) and taint.key not in AUTOSCALER_TAINTS
    )
    is_made, is_open = bool(node.spec.provider_id) or KARPENTER_POOL_LABEL in labels, not node.spec.unschedulable
    machine = tuple((name, node_labels[name]) for name in labels if name in MACHINE_LABELS)
    status = node.status
    shape = NodeShape(
        labels,
        taints,
        allocatable,
        is_made,
        is_open,
        operating_system=status.node_info.operating_system or first_label(node_labels, OS_LABELS),
        handlers=frozenset(handler.name for handler in status.runtime_handlers) if status.runtime_handlers else None,
        kubelet=parse_kubelet_version(status.node_info.kubelet_version),
        is_made_to_measure=nature_of_node(node).is_made_to_measure,
    )
    return SeenNode(node.metadata.name, shape, machine if is_open else ())


def shape_key(shape: NodeShape) -> Key:
    """Returns a key that is equal for nodes of the same shape."""
    labels, amount = frozenset(shape.labels.items()), frozenset(shape.allocatable.items())
    taints = frozenset((t.key, t.value, t.effect) for t in shape.taints)
    return (
        labels,
        taints,
        amount,
        shape.operating_system,
        shape.handlers,
        shape.kubelet,
        shape.is_made_to_measure,
        shape.is_made,
        shape.is_open,
    )


@dataclass(frozen=True, slots=True)
class NodeShapes:
    """All node shapes of a cluster, and the DaemonSet pods that run on the nodes."""

    shapes: tuple[NodeShape, ...] = ()
    daemons: tuple[PodSpec, ...] = ()
    """The pod specs of all DaemonSets. Each DaemonSet has one pod on each node on which it may run."""
    closed: tuple[NodeShape, ...] = ()
    """Shapes of which every node is cordoned now."""
    growing: tuple[str, ...] | None = None
    """Names of the node groups that have no node but to which an autoscaler may add one. What such a node would be like
    is unknown. None if no autoscaler names its groups."""
    _results: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def compute_once(self, find: "Callable[[NodeShapes], T]") -> T:
        """Returns `find(self)`. The result is computed at the first call and kept for each function `find`."""
        # Keyed by the function object: each caller passes a module-level function.
        if find not in self._results:
            self._results[find] = find(self)
        result: T = self._results[find]
        return result

    @property
    def addable(self) -> tuple[NodeShape, ...]:
        """The closed shapes of which an autoscaler may add a node. A cordoned node that a person created says nothing
        about nodes to come."""
        return tuple(shape for shape in self.closed if shape.is_made)

    @property
    def may_grow(self) -> bool:
        """Whether nodes may be added that are unlike all present nodes. True if any of these holds:

        - a group has no node and may get one;
        - Karpenter creates the nodes (it has no groups);
        - a cloud provides the nodes, and its groups are unknown.
        """
        created = [shape for shape in (*self.shapes, *self.closed) if shape.is_made]
        if self.growing is None:
            return bool(created)
        return bool(self.growing) or any(KARPENTER_POOL_LABEL in shape.labels for shape in created)


NO_NODES = NodeShapes()


class ShapeCounter:
    """Keeps the set of shapes up to date as nodes are added, changed and removed."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._counts: Counter[Key] = Counter()
        self._shapes: dict[Key, NodeShape] = {}
        self.changes = 0
        """The number of times that a shape was added or removed."""

    def put(self, node: SeenNode) -> tuple[OneMachine, ...]:
        """Records the present state of a node. Returns an entry for each label that identifies the node. Entries of
        nodes with equal shapes share one `NodeShape` object."""
        key = shape_key(node.shape)
        # A Node object changes often, by its conditions and annotations; its shape rarely does.
        if self._keys.get(node.name) != key:
            self.drop(node.name)
            self._keys[node.name] = key
            self._counts[key] += 1
            if key not in self._shapes:
                self._shapes[key] = node.shape
                self.changes += 1
        return tuple(OneMachine(machine, node.name, self._shapes[key]) for machine in node.machine)

    def drop(self, name: str) -> None:
        """Records that the node of this name no longer exists."""
        key = self._keys.pop(name, None)
        if key is None:
            return
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key], self._shapes[key]
            self.changes += 1

    def sorted_shapes(self) -> tuple[NodeShape, ...]:
        """Returns the shapes, the largest first, because the largest nodes can hold most pods and so end most searches
        early."""
        return largest_first(self._shapes.values())


def largest_first(shapes: Iterable[NodeShape]) -> tuple[NodeShape, ...]:
    """Returns the shapes in descending size. Equal sets of shapes are always returned in the same order."""
    return tuple(sorted(shapes, key=_sort_key, reverse=True))


def _sort_key(shape: NodeShape) -> tuple[object, ...]:
    amount = shape.allocatable
    return amount.get("cpu", 0), amount.get("memory", 0), sorted(shape.labels.items()), sorted(amount.items())


def shapes_by_state(shapes: Iterable[NodeShape]) -> tuple[tuple[NodeShape, ...], tuple[NodeShape, ...]]:
    """Returns (shapes that accept pods, shapes of which all nodes are cordoned)."""
    all_shapes = tuple(shapes)
    opened = tuple(shape for shape in all_shapes if shape.is_open)
    # The last part of the key is `is_open`.
    open_keys = {shape_key(shape)[:-1] for shape in opened}
    return opened, tuple(shape for shape in all_shapes if not shape.is_open and shape_key(shape)[:-1] not in open_keys)


def daemon_spec(workload: Workload) -> PodSpec | None:
    """Returns the pod spec of a DaemonSet, reduced to what decides on which nodes its pods run and how much they
    request. Returns None for any other workload, and for a DaemonSet of which only the metadata was read."""
    if not isinstance(workload, DaemonSet) or not workload.spec.template.spec.containers:
        return None
    spec = workload.spec.template.spec
    return PodSpec(
        containers=tuple(Container(name=c.name, resources=c.resources) for c in spec.containers),
        init_containers=tuple(
            Container(name=c.name, resources=c.resources, restart_policy=c.restart_policy) for c in spec.init_containers
        ),
        resources=spec.resources,
        overhead=spec.overhead,
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=spec.tolerations,
    )
