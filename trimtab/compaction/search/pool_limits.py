"""Limits on how many nodes a plan may drain: of zones, of the autoscaler's node groups, and of pools.

- `ZoneMinimums`: the last node of a zone stays when something needs the zone, counted over all pools. A topology spread
  over zones (DoNotSchedule) needs every zone that it has. A volume needs the only zone from which it can be reached,
  even while no pod uses it: a StatefulSet that is scaled up from zero mounts it again.
- `NodeGroupMinimums`: the cluster autoscaler does not remove a node of a group at its minimum size; drained, the node
  would stay, empty and cordoned. Counted over all pools, for nodes whose group is known. `PoolLimits` keeps the sum of
  the minimums for the others.
- `PoolLimits`: minimum sizes and headroom of one pool, while a plan grows.

`autoscaler_threshold` returns whether the cluster autoscaler would remove a node without Trimtab.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.node import ZONE, group_of
from trimtab.cluster.pool import Pool, Spare
from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import AT_MINIMUM, LAST_OF_ZONE, NO_HEADROOM
from trimtab.scheduling.cluster_model import ClusterModel
from trimtab.scheduling.node_filters import node_selected
from trimtab.scheduling.pod_class import PodClass


@dataclass(slots=True, eq=False)
class ZoneMinimums:
    """The zones that need at least one node."""

    world: ClusterModel
    left: dict[str, int] = field(default_factory=dict)
    """Zone → the number of its nodes that receive pods and stay."""
    _user_by_zone: dict[str, str] = field(default_factory=dict)
    """Zone → what needs it, "" where nothing does; filled when the zone is first checked."""

    def __post_init__(self) -> None:
        for number, node in enumerate(self.world.nodes):
            if node.zone and not self.world.closed[number]:
                self.left[node.zone] = self.left.get(node.zone, 0) + 1

    def refuses(self, node: int) -> Reason | None:
        """Returns why the node must stay; None when its zone has other nodes or nothing needs the zone."""
        name, zone = self.world.nodes[node].name, self.world.nodes[node].zone
        if self.left.get(zone) != 1 or len(self.left) == 1 or self.world.closed[node]:
            return None
        if zone not in self._user_by_zone:
            self._user_by_zone[zone] = self._user_of_zone(zone)
        user = self._user_by_zone[zone]
        return LAST_OF_ZONE(f"node {name} is the last node of zone {zone}, which {user} needs") if user else None

    def count(self, node: int, sign: int) -> None:
        """Counts a node of the zone as drained (-1) or kept (1)."""
        if not self.world.closed[node] and (zone := self.world.nodes[node].zone):
            self.left[zone] += sign

    def _user_of_zone(self, zone: str) -> str:
        for pod in {id(pod.ask): pod for pod in self.world.pods}.values():
            if any(spread.topology_key == ZONE for spread in pod.ask.spreads):
                return f"the spread of pod {pod.key} over zones"
        inside = [node for node in self.world.nodes if node.zone == zone]
        outside = [node for node in self.world.nodes if node.zone in self.left and node.zone != zone]
        names_by_selector = {
            claim.nodes: name for name, claim in self.world.inventory.claims.items() if claim.nodes is not None
        }
        for selector, (namespace, name) in names_by_selector.items():
            is_inside = any(node_selected(selector, node) for node in inside)
            if is_inside and not any(node_selected(selector, node) for node in outside):
                return f"the volume of claim {namespace}/{name}"
        return ""


@dataclass(slots=True, eq=False)
class NodeGroupMinimums:
    """The minimum sizes of the cluster autoscaler's node groups."""

    world: ClusterModel
    of: dict[int, NodeGroupStatus] = field(default_factory=dict)
    """Node → its group, where the group is known and has a minimum."""
    left: dict[str, int] = field(default_factory=dict)
    """Group → the number of its nodes that receive pods and stay."""

    @classmethod
    def read(cls, model: ClusterModel, autoscaler: Autoscaler | None) -> "NodeGroupMinimums":
        """Reads the groups from the autoscaler's status."""
        minimums = cls(model)
        limited = [group for group in autoscaler.groups if group.min_size] if autoscaler is not None else []
        for number, node in enumerate(model.nodes if limited else ()):
            group = group_of(node, autoscaler.groups) if autoscaler is not None else None
            if group is not None and group.min_size and not model.closed[number]:
                minimums.of[number] = group
                minimums.count(number, 1)
        return minimums

    def refuses(self, node: int) -> Reason | None:
        """Returns why the node must stay; None where its group has more nodes than its minimum, or is not known."""
        group = self.of.get(node)
        if group is None or self.left[group.name] > (group.min_size or 0):
            return None
        return AT_MINIMUM(f"the autoscaler keeps at least {group.min_size} nodes in group {group.name}")

    def count(self, node: int, sign: int) -> None:
        """Counts a node of the group as drained (-1) or kept (1)."""
        group = self.of.get(node)
        if group is not None:
            self.left[group.name] = self.left.get(group.name, 0) + sign


Pair = list[int]
"""[scarcer resource, other resource]."""


@dataclass(slots=True, eq=False)
class PoolLimits:
    """The numbers of one pool while a plan grows; `remove_node` and `restore_node` undo each other."""

    pool: Pool
    world: ClusterModel
    nodes: Sequence[int]
    cluster: ZoneMinimums
    """Shared by all pools."""
    groups: NodeGroupMinimums
    """Shared by all pools."""
    least: int = 0
    """The number of nodes that the cluster autoscaler keeps in the pool's groups: a drained node below it would
    stay."""
    kept: int = 0
    """The number of nodes that stay and receive pods. A node that is cordoned, not ready or unreadable is not
    counted."""
    zones: dict[str, int] = field(default_factory=dict)
    """Zone → the number of such nodes."""
    have: Pair = field(default_factory=lambda: [0, 0])
    """Allocatable amounts of the nodes that stay and receive pods."""
    free: Pair = field(default_factory=lambda: [0, 0])
    """Free amounts of these nodes."""
    used: dict[str, Pair] = field(default_factory=dict)
    """Zone → requested amounts on its nodes."""
    room: dict[str, Pair] = field(default_factory=dict)
    """Zone → free amounts on its nodes."""
    loose: bool = False
    """The pool keeps no capacity free: nothing has to be counted."""
    mean: tuple[int, int] = (0, 0)
    """The mean allocatable amounts of the pool's nodes."""
    largest: tuple[int, int] = (0, 0)
    """The largest allocatable amounts of any of the pool's nodes."""
    remaining: Pair = field(default_factory=lambda: [0, 0])
    """The amounts that may still arrive before the pool's free capacity is less than its headroom; negative where it is
    already.

    The same list for the life of the object, so that the best-fit index can read it; unused where no capacity is kept.
    """

    def __post_init__(self) -> None:
        headroom = self.pool.headroom
        self.loose = not headroom.percent and not headroom.nodes and self.pool.spare is Spare.NONE
        sizes = [self._size(node) for node in self.nodes] if not self.loose else ()
        if sizes:
            self.mean = (sum(a for a, _ in sizes) // len(sizes), sum(b for _, b in sizes) // len(sizes))
            self.largest = (max(a for a, _ in sizes), max(b for _, b in sizes))
        for node in self.nodes:
            self._count_staying(node, 1)
        self._recalculate_allowance()

    def _size(self, node: int) -> tuple[int, int]:
        major, minor = self.world.resources
        return self.world.amount(node, major), self.world.amount(node, minor)

    def _count_amounts(self, node: int, sign: int) -> None:
        size = self._size(node)
        free = (self.world.major[node], self.world.minor[node])
        zone = self.world.nodes[node].zone
        for i in (0, 1):
            self.have[i] += sign * size[i]
            self.free[i] += sign * free[i]
            self.room.setdefault(zone, [0, 0])[i] += sign * free[i]
            self.used.setdefault(zone, [0, 0])[i] += sign * (size[i] - free[i])

    def _count_staying(self, node: int, sign: int) -> None:
        if self.world.closed[node]:
            return
        self.kept += sign
        zone = self.world.nodes[node].zone
        self.zones[zone] = self.zones.get(zone, 0) + sign
        if not self.loose:
            self._count_amounts(node, sign)

    def refuses(self, node: int) -> Reason | None:
        """Returns why the minimum of the pool, of the zone or of the node group keeps this node; None when none
        does."""
        if self.world.closed[node]:
            return None
        zone, pool = self.world.nodes[node].zone, self.pool
        if self.kept <= pool.min_nodes:
            return AT_MINIMUM(f"pool {pool.name} would have fewer than {pool.min_nodes} nodes")
        if self.kept <= self.least:
            return AT_MINIMUM(f"the autoscaler keeps at least {self.least} nodes in the groups of pool {pool.name}")
        if self.zones[zone] <= pool.min_per_zone:
            return AT_MINIMUM(f"pool {pool.name} would have fewer than {pool.min_per_zone} nodes in zone {zone}")
        return self.cluster.refuses(node) or self.groups.refuses(node)

    def go(self, node: int) -> None:
        """Stops counting the node. Its pods are counted where they arrive (`count_arrival`)."""
        self._count_node(node, -1)

    def back(self, node: int) -> None:
        """Undoes `remove_node`."""
        self._count_node(node, 1)

    def _count_node(self, node: int, sign: int) -> None:
        self.cluster.count(node, sign)
        self.groups.count(node, sign)
        self._count_staying(node, sign)
        self._recalculate_allowance()

    def arrive(self, pod_class: PodClass, node: int, sign: int = 1) -> None:
        """Counts a moved pod on a node of the pool (sign -1: the pod leaves it again)."""
        if self.loose:
            return
        zone = self.world.nodes[node].zone
        for i, amount in enumerate((pod_class.major, pod_class.minor)):
            self.free[i] -= sign * amount
            self.room[zone][i] -= sign * amount
            self.used[zone][i] += sign * amount
            # A pod lowers the free capacity of the pool and what is left after the failure of any zone by the same
            # amount, wherever it is placed.
            self.remaining[i] -= sign * amount

    def _recalculate_allowance(self) -> None:
        """Sets `allowance` from the free capacity and the headroom of the pool."""
        if self.loose:
            return
        headroom, spare = self.pool.headroom, self.pool.spare
        for i in (0, 1):
            wanted = self.have[i] * headroom.percent // 100 + headroom.nodes * self.mean[i]
            wanted += self.largest[i] if spare is Spare.NODE else 0
            self.remaining[i] = self.free[i] - wanted
            if spare is Spare.ZONE:
                # A zone that fails takes its free capacity away, and the pods in it request theirs elsewhere.
                worst = max((self.room[zone][i] + used[i] for zone, used in self.used.items()), default=0)
                self.remaining[i] -= worst

    def short(self) -> Reason | None:
        """Returns which headroom is missing now; None when nothing is."""
        if self.loose:
            return None
        for i, resource in enumerate(self.world.resources):
            if self.remaining[i] < 0:
                if self.pool.spare is Spare.ZONE:
                    return NO_HEADROOM(
                        f"pool {self.pool.name} could not hold the pods of a zone that fails ({resource})"
                    )
                return NO_HEADROOM(f"pool {self.pool.name} would have less free {resource} than its headroom")
        return None


GPUS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "microsoft.com/directx")


def by_itself(model: ClusterModel, node: int, autoscaler: Autoscaler) -> int | None:
    """Returns the cluster autoscaler's threshold (percent) if the node's utilization is under it; None where it is not.

    The flags of the autoscaler decide whether the pods of DaemonSets and static pods count. Whether the pods fit on
    other nodes is not checked here.
    """
    # As cluster-autoscaler simulator/utilization (1.34): on a node with GPUs only the GPUs are compared with a
    # threshold, else the larger utilization of cpu and memory.
    gpu = next((name for name in GPUS if model.amount(node, name) > 0), None)
    if gpu is not None:
        allocatable = model.amount(node, gpu)
        requested = allocatable - model.rest[model.names.index(gpu)][node] if gpu in model.names else 0
        return autoscaler.gpu_threshold if requested * 100 < autoscaler.gpu_threshold * allocatable else None
    free = (model.major[node], model.minor[node])
    allocatable_amounts = [model.amount(node, resource) for resource in model.resources]
    amounts = zip(allocatable_amounts, free, _ignored_requests(model, node, autoscaler), strict=True)
    is_under = all(
        (allocatable - ignored - free_amount) * 100 < autoscaler.threshold * (allocatable - ignored)
        for allocatable, free_amount, ignored in amounts
    )
    return autoscaler.threshold if is_under else None


def _ignored_requests(model: ClusterModel, node: int, autoscaler: Autoscaler) -> tuple[int, int]:
    """Returns the requests (major, minor) of the pods that the autoscaler's flags leave out."""
    daemons, mirrors = autoscaler.ignores_daemon_sets, autoscaler.ignores_mirror_pods
    if not (daemons or mirrors):
        return (0, 0)
    pods = [n for n in model.on[node] if (daemons and model.pods[n].daemon) or (mirrors and model.pods[n].static)]
    classes = [model.kind_of[n] for n in pods]
    return sum(pod_class.major for pod_class in classes), sum(pod_class.minor for pod_class in classes)
