"""Nodes, pods and pod classes as numbers, built once per snapshot, and the capacity that is free.

Nodes and pods are numbered in the order of their names. The model holds the pods that are on a known node and have not
finished; pods without a node are listed separately. `FreeCapacity` is the only value of this package that changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from trimtab.cluster.cluster_state import DaemonPods, Inventory, ReservedPods
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.measured_use import owner_key
from trimtab.cluster.next_pod import largest_requests, template_key
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import FINISHED_PHASES, PodInfo, SchedulingRequirements
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, GrowingAmounts, LeastAmounts, larger_amounts
from trimtab.scheduling.classify_pods import PodClassifier
from trimtab.scheduling.pod_class import PodClass
from trimtab.scheduling.topology import TopologyGroup

__all__ = ["Again", "ClusterModel", "SchedulingRequirements", "build_cluster_model"]


Again = Callable[[PodInfo], Amounts | Unreadable | None]
"""A function that returns what a pod would request if it were admitted again now; None if that is what it already
requests; Unreadable if it cannot be determined, so that the pod's successor cannot be placed; LeastAmounts if the
template of the pod's owner is not known."""


@dataclass(slots=True, eq=False)
class ClusterModel:
    """One snapshot as numbers. It does not change after `build_cluster_model`."""

    inventory: Inventory
    nodes: Sequence[NodeInfo]
    node_numbers: dict[str, int]
    pods: list[PodInfo]
    """The pods on known nodes that have not finished, sorted by namespace and name."""
    node_of: list[int]
    class_of: list[PodClass]
    """Pod → its class, with the requests that the pod has now."""
    successor_class_of: list[PodClass]
    """Pod → the class of its successor, whose requests are the larger of the pod's own and those after readmission."""
    pods_on_node: list[list[int]]
    """Node → the numbers of the pods on it."""
    pending_pods: list[tuple[PodInfo, PodClass]]
    """Pods that have no node yet, with their classes."""
    buffer_pods: list[tuple[ReservedPods, PodClass]]
    """Capacity that is reserved for pods that do not exist yet, with the classes of these pods."""
    daemon_pods: list[tuple[DaemonPods, PodClass]]
    """DaemonSets that are about to create further pods, with the classes of these pods."""
    groups: list[TopologyGroup]
    node_sets: list[bytearray]
    """Sets of nodes: in each, a node has 1 if its labels, name and taints admit the pods of the set's classes."""
    unfit_sets: list[bytearray]
    """Sets of nodes: in each, a node has 1 if kube-scheduler would place the pods of the set's classes on it, although
    they do not run there, or must not be moved there."""
    main_resources: tuple[str, str]
    """cpu and memory, the scarcer of the two first."""
    other_resources: tuple[str, ...]
    """The names of all other requested resources; the position is the resource number."""
    major: list[int] = field(default_factory=list)
    minor: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    other_free: list[list[int]] = field(default_factory=list)
    group_counts: list[dict[int, int]] = field(default_factory=list)
    closed_nodes: bytearray = field(default_factory=bytearray)
    growth_by_node: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Node → how much the requests of pods that stay on it may grow (`GrowingAmounts`), as (scarcer resource, other
    resource)."""
    unreadable_nodes: dict[int, str] = field(default_factory=dict)
    """Node → what about it cannot be read. Such a node is not drained and receives no pods."""

    def allocatable_amount(self, node: int, resource: str) -> int:
        """Returns the node's allocatable amount of a resource; 0 if it has none or cannot be read."""
        allocatable = self.nodes[node].allocatable
        return 0 if isinstance(allocatable, Unreadable) else allocatable.get(resource, 0)


@without_garbage_collection()
def build_cluster_model(inventory: Inventory, again: Again | None = None) -> ClusterModel:
    """Returns the model of one snapshot. Building it takes a few microseconds per pod.

    `again` returns the requests of a pod's successor. Without it, successors request what the pods request now. Where
    it does not know the template of the owner, the largest requests of the owner's pods count.
    """
    nodes = inventory.nodes
    index = {node.name: number for number, node in enumerate(nodes)}
    places = [index.get(pod.node, -1) if pod.phase not in FINISHED_PHASES else -1 for pod in inventory.pods]
    if -1 in places:
        node_of = [place for place in places if place >= 0]
        placed, unplaced = [pod for pod, at in zip(inventory.pods, places, strict=True) if at >= 0], inventory.pods
    else:
        node_of, placed, unplaced = places, list(inventory.pods), ()
    waiting = [pod for pod in unplaced if not pod.node and pod.phase not in FINISHED_PHASES]
    classifier = PodClassifier(inventory)
    classes = classifier.classify_all(placed)
    again = _with_assumed(inventory, with_largest_requests(inventory, again))
    answers = [again(pod) for pod in placed] if again is not None else []
    next_classes = (
        classes
        if again is None
        else [classifier.classify(pod, requests) for pod, requests in zip(placed, answers, strict=True)]
    )
    pending = [(pod, classifier.classify(pod, again(pod) if again else None)) for pod in waiting]
    buffered = [(buffer, classifier.classify(buffer.pod)) for buffer in inventory.reserved_pods]
    daemons = [(daemon, classifier.classify(daemon.pod)) for daemon in inventory.missing_daemons]
    # A set of nodes is calculated only for classes whose pods may look for a node: most of the build's time goes there.
    movable = {
        *(next_classes if next_classes is not classes else ()),
        *(pod_class for _, pod_class in (*pending, *buffered, *daemons)),
    }
    last: PodClass | None = None
    for pod_class, pod in zip(classes, placed, strict=True):
        if pod_class is not last and pod_class not in movable and not (pod.is_daemon or pod.is_static):
            movable.add(pod_class)
            last = pod_class
    classifier.assign_numbers([pod_class for pod_class in classifier.classes if pod_class in movable])
    model = ClusterModel(
        inventory=inventory,
        nodes=nodes,
        node_numbers=index,
        pods=placed,
        node_of=node_of,
        class_of=classes,
        successor_class_of=next_classes,
        pods_on_node=_pods_by_node(node_of, len(nodes)),
        pending_pods=pending,
        buffer_pods=buffered,
        daemon_pods=daemons,
        groups=classifier.topology_groups.groups,
        node_sets=classifier.node_sets,
        unfit_sets=classifier.unfit_sets,
        main_resources=classifier.main_resources,
        other_resources=classifier.other_resources,
    )
    _fill_capacity(model)
    _sum_growth(model, [number for number, requests in enumerate(answers) if isinstance(requests, GrowingAmounts)])
    return model


def _sum_growth(model: ClusterModel, pods: Iterable[int]) -> None:
    for pod in pods:
        now, later, node = model.class_of[pod], model.successor_class_of[pod], model.node_of[pod]
        major, minor = model.growth_by_node.get(node, (0, 0))
        more = max(0, later.major - now.major), max(0, later.minor - now.minor)
        model.growth_by_node[node] = (major + more[0], minor + more[1])


def with_largest_requests(inventory: Inventory, again: Again | None) -> Again | None:
    """Returns a function like `again`. Where the template of the pod is not known, the largest requests of the pods
    of this template count."""
    if again is None:
        return None
    largest = largest_requests(inventory.pods)

    def expected(pod: PodInfo) -> Amounts | Unreadable | None:
        requests = again(pod)
        if not isinstance(requests, LeastAmounts):
            return requests
        key = template_key(pod)
        others = None if key is None else largest.get(key)
        if others is not None:
            requests = LeastAmounts(larger_amounts(requests, others))
        own = pod.requirements.requests
        if isinstance(own, Unreadable) or all(own.get(name, 0) >= amount for name, amount in requests.items()):
            return None
        return Amounts(requests)

    return expected


def _with_assumed(inventory: Inventory, readmitted_requests: Again | None) -> Again | None:
    """Returns a function like `readmitted_requests`, which also adds assumed amounts for the resources that a pod does
    not request.

    The inventory has the assumed amounts. For DaemonSet and static pods nothing is added, because they do not move and
    every node has the same ones.
    """
    assumed = inventory.assumed_requests
    # The pods of a workload share their requirements.
    different = {(id(pod.requirements), pod.is_daemon, pod.is_static): pod for pod in inventory.pods} if assumed else {}
    if not any(_assumed_resources(pod, assumed) for pod in different.values()):
        return readmitted_requests

    def expected(pod: PodInfo) -> Amounts | Unreadable | None:
        requests = readmitted_requests(pod) if readmitted_requests is not None else None
        resources = _assumed_resources(pod, assumed)
        if not resources or isinstance(requests, Unreadable) or isinstance(pod.requirements.requests, Unreadable):
            return requests
        amounts = pod.requirements.requests if requests is None else requests
        expected_use = _expected_use(inventory, pod)
        completed = {**amounts, **{name: expected_use[name] for name in resources if not amounts.get(name)}}
        return GrowingAmounts(completed) if isinstance(requests, GrowingAmounts) else completed

    return expected


def _assumed_resources(pod: PodInfo, assumed: Mapping[str, int]) -> list[str]:
    """Returns the resources that this pod does not request and for which an amount is assumed."""
    requests = pod.requirements.requests
    if isinstance(requests, Unreadable) or pod.is_daemon or pod.is_static:
        return []
    return [name for name in assumed if not requests.get(name)]


def _expected_use(inventory: Inventory, pod: PodInfo) -> Mapping[str, int]:
    """Returns the amounts that count for a pod instead of missing requests: the assumed ones, or the pod's measured
    usage where that is larger. (The measured usage may be small only at the moment.)"""
    assumed, use = inventory.assumed_requests, inventory.measured_use.get(owner_key(pod))
    return assumed if use is None else {name: max(amount, use.get(name, 0)) for name, amount in assumed.items()}


def _pods_by_node(node_of: Sequence[int], count: int) -> list[list[int]]:
    pods_on_node: list[list[int]] = [[] for _ in range(count)]
    for pod, node in enumerate(node_of):
        pods_on_node[node].append(pod)
    return pods_on_node


def _fill_capacity(model: ClusterModel) -> None:
    """Sets the free capacity and the group counts to their values in the snapshot."""
    nodes = range(len(model.nodes))
    model.major = [model.allocatable_amount(node, model.main_resources[0]) for node in nodes]
    model.minor = [model.allocatable_amount(node, model.main_resources[1]) for node in nodes]
    model.slots = [model.allocatable_amount(node, "pods") for node in nodes]
    model.other_free = [[_other_amount(model, node, name) for node in nodes] for name in model.other_resources]
    model.group_counts = [{} for _ in model.groups]
    _close_nodes(model)
    _subtract_pods(model)


def _other_amount(model: ClusterModel, node: int, name: str) -> int:
    if not name.startswith("volumes:"):
        return model.allocatable_amount(node, name)
    # A node without a CSINode limit for the driver has no limit (nodevolumelimits, 1.36).
    return model.nodes[node].attachable_volumes.get(name.removeprefix("volumes:"), 1 << 30)


def _subtract_pods(model: ClusterModel) -> None:
    major, minor, slots, classes = model.major, model.minor, model.slots, model.class_of
    majors, minors = [pod_class.major for pod_class in classes], [pod_class.minor for pod_class in classes]
    for node, pods in enumerate(model.pods_on_node):
        major[node] -= sum([majors[pod] for pod in pods])
        minor[node] -= sum([minors[pod] for pod in pods])
        slots[node] -= len(pods)
    _subtract_assumed(model)
    groups_by_class: dict[int, list[_GroupCounts]] = {}
    for number, pod_class in enumerate(classes):
        if not (pod_class.member_groups or pod_class.other_requests):
            continue
        node = model.node_of[number]
        for resource, amount in pod_class.other_requests:
            model.other_free[resource][node] -= amount
        if pod_class.member_groups:
            groups = groups_by_class.get(pod_class.number)
            if groups is None:
                groups = groups_by_class[pod_class.number] = [
                    _group_counts(model, group) for group in pod_class.member_groups
                ]
            is_leaving = model.pods[number].deletion_requested_at is not None
            for domains, counts, lasting in groups:
                domain = node if domains is None else domains[node]
                # podtopologyspread and affinity skip pods with a deletion timestamp; anti-affinity counts them until
                # they are gone.
                if domain >= 0 and (lasting or not is_leaving):
                    counts[domain] = counts.get(domain, 0) + 1


def _subtract_assumed(model: ClusterModel) -> None:
    """Subtracts from the free capacity the amounts that count for pods instead of missing requests. DaemonSet and
    static pods are left out."""
    if not model.inventory.assumed_requests:
        return
    major, minor = model.main_resources
    for pod, node, pod_class in zip(model.pods, model.node_of, model.class_of, strict=True):
        if not (pod_class.major and pod_class.minor) and not (pod.is_daemon or pod.is_static):
            expected_use = _expected_use(model.inventory, pod)
            model.major[node] -= 0 if pod_class.major else expected_use.get(major, 0)
            model.minor[node] -= 0 if pod_class.minor else expected_use.get(minor, 0)


_GroupCounts = tuple[Sequence[int] | None, dict[int, int], bool]
"""(node → domain of a group, or None if each node is its own domain; the group's counts by domain; whether pods with a
deletion timestamp count)."""


def _group_counts(model: ClusterModel, number: int) -> _GroupCounts:
    group = model.groups[number]
    return None if group.is_counted_per_node else group.domain_of, model.group_counts[number], group.counts_deleted


def _close_nodes(model: ClusterModel) -> None:
    """Marks the nodes that receive no pods, and the nodes that cannot be read."""
    model.closed_nodes = bytearray(len(model.nodes))
    for number, node in enumerate(model.nodes):
        if isinstance(node.allocatable, Unreadable):
            model.unreadable_nodes[number] = node.allocatable.problem
        elif node.name in model.inventory.duplicate_node_names:
            model.unreadable_nodes[number] = f"more than one node is named {node.name}"
        elif node.name in model.inventory.conflicting_pods:
            model.unreadable_nodes[number] = (
                f"pod {model.inventory.conflicting_pods[node.name]} is in the snapshot more than once"
            )
        if not node.is_staying:
            model.closed_nodes[number] = 1
    unreadable = {pod_class for pod_class in set(model.class_of) if isinstance(pod_class.ask.requests, Unreadable)}
    for pod_class, number in zip(model.class_of, model.node_of, strict=True) if unreadable else ():
        if pod_class in unreadable:
            model.unreadable_nodes[number] = str(pod_class.ask.requests)
    for number in model.unreadable_nodes:
        model.closed_nodes[number] = 1


def with_node(model: ClusterModel, number: int, node: NodeInfo) -> ClusterModel:
    """Returns the model with this node in the place of one that differs from it at most in whether it receives pods,
    and in what decides nothing about pods (see `is_alike_to_pods`)."""
    nodes, closed_nodes = list(model.nodes), bytearray(model.closed_nodes)
    nodes[number] = node
    closed_nodes[number] = not node.is_staying or number in model.unreadable_nodes
    inventory = replace(model.inventory, nodes=tuple(nodes))
    return replace(model, inventory=inventory, nodes=inventory.nodes, closed_nodes=closed_nodes)


class SavedCapacity(NamedTuple):
    """A copy of everything in a `FreeCapacity` that can change."""

    major: list[int]
    minor: list[int]
    slots: list[int]
    other_free: list[list[int]]
    group_counts: list[dict[int, int]]
    closed_nodes: bytes
    draining_nodes: frozenset[int]


class FreeCapacity:
    """The free resources of each node, and the number of pods by group and domain. `add_pod` and `remove_pod` undo each
    other exactly."""

    __slots__ = (
        "_domains",
        "closed_nodes",
        "draining_nodes",
        "group_counts",
        "major",
        "minor",
        "other_free",
        "slots",
        "world",
    )

    def __init__(self, model: "ClusterModel") -> None:
        self.world = model
        self.major = model.major[:]
        self.minor = model.minor[:]
        self.slots = model.slots[:]
        self.other_free = [amounts[:] for amounts in model.other_free]
        self.group_counts: list[dict[int, int]] = [counts.copy() for counts in model.group_counts]
        self.closed_nodes = bytearray(model.closed_nodes)
        """Nodes that receive no pods."""
        self.draining_nodes: set[int] = set()
        """Nodes that the plan cordons: they stay domains, except for spreads with nodeTaintsPolicy Honor."""
        self._domains = [g.domain_of if not g.is_counted_per_node else range(len(model.nodes)) for g in model.groups]

    def replace_node(self, number: int, node: NodeInfo) -> None:
        """Takes over a node in the place of a similar one, as `with_node` does."""
        self.world = with_node(self.world, number, node)
        self.closed_nodes[number] = self.world.closed_nodes[number]

    def reserve_growth(self) -> None:
        """Subtracts from the free capacity the amounts by which the requests of pods that stay may grow."""
        for node, (major, minor) in self.world.growth_by_node.items():
            self.major[node] -= major
            self.minor[node] -= minor

    def save_state(self) -> SavedCapacity:
        """Returns a copy of the state, for `restore_state`."""
        return SavedCapacity(
            self.major[:],
            self.minor[:],
            self.slots[:],
            [amounts[:] for amounts in self.other_free],
            [counts.copy() for counts in self.group_counts],
            bytes(self.closed_nodes),
            frozenset(self.draining_nodes),
        )

    def restore_state(self, saved: SavedCapacity) -> None:
        """Restores a saved state. The lists and dicts stay the same objects, because other objects refer to them."""
        self.major[:], self.minor[:], self.slots[:] = saved.major, saved.minor, saved.slots
        self.closed_nodes[:] = saved.closed_nodes
        for amounts, saved_amounts in zip(self.other_free, saved.other_free, strict=True):
            amounts[:] = saved_amounts
        for counts, saved_counts in zip(self.group_counts, saved.group_counts, strict=True):
            # The dicts are updated in place: placement requests and the best-fit index hold references to them.
            if counts != saved_counts:
                counts.clear()
                counts.update(saved_counts)
        self.draining_nodes = set(saved.draining_nodes)

    def add_pod(self, pod_class: PodClass, node: int) -> None:
        """Adds a pod of this class to the node."""
        self.major[node] -= pod_class.major
        self.minor[node] -= pod_class.minor
        self.slots[node] -= 1
        for number, amount in pod_class.other_requests:
            self.other_free[number][node] -= amount
        if pod_class.member_groups:
            self.count_pod(pod_class.member_groups, node)

    def remove_pod(self, pod_class: PodClass, node: int) -> None:
        """Removes a pod of this class from the node."""
        self.major[node] += pod_class.major
        self.minor[node] += pod_class.minor
        self.slots[node] += 1
        for number, amount in pod_class.other_requests:
            self.other_free[number][node] += amount
        if pod_class.member_groups:
            self.uncount_pod(pod_class.member_groups, node)

    def count_pod(self, groups: Iterable[int], node: int) -> None:
        """Adds one to the counts of these groups in the node's domains."""
        for number in groups:
            domain = self._domains[number][node]
            if domain >= 0:
                counts = self.group_counts[number]
                counts[domain] = counts.get(domain, 0) + 1

    def uncount_pod(self, groups: Iterable[int], node: int) -> None:
        """Subtracts one from the counts of these groups in the node's domains."""
        for number in groups:
            domain = self._domains[number][node]
            if domain >= 0:
                counts = self.group_counts[number]
                remaining = counts.get(domain, 0) - 1
                if remaining > 0:
                    counts[domain] = remaining
                else:
                    counts.pop(domain, None)

    def cordon_node(self, node: int) -> None:
        """Marks the node as cordoned, so that it receives no pods."""
        self.closed_nodes[node] = 1
        self.draining_nodes.add(node)

    def uncordon_node(self, node: int) -> None:
        """Undoes `cordon_node`."""
        self.closed_nodes[node] = self.world.closed_nodes[node]
        self.draining_nodes.discard(node)
