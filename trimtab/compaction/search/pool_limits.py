"""Limits on how many nodes a plan may drain: of zones, of the autoscaler's node groups, and of pools.

- `ZoneMinimums`: the last node of a zone stays if something needs the zone; nodes of all pools are counted. A topology
  spread over zones (DoNotSchedule) needs every zone that it has. A volume needs the only zone from which it can be
  reached, even while no pod uses it: a StatefulSet that is scaled up from zero mounts it again.
- `NodeGroupMinimums`: the cluster autoscaler does not remove a node of a group at its minimum size, so a drained node
  would stay, empty and cordoned. Nodes of all pools are counted. For nodes whose group is not known, `PoolLimits` uses
  the sum of the minimums of the groups that the pool's name names; if it names none, no more of these nodes are drained
  than any group can lose.
- `PoolLimits`: minimum sizes and headroom of one pool, while a plan grows.

`autoscaler_threshold` returns whether the cluster autoscaler would remove a node without Trimtab.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import ZONE_LABEL
from trimtab.cluster.node_groups import NodeGroups, assign_node_groups, describe_minimum
from trimtab.cluster.pool import Pool, Spare
from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import AT_MINIMUM, LAST_OF_ZONE, NEEDED_AGAIN, NO_HEADROOM, UNKNOWN_NODE_GROUP
from trimtab.compaction.room_forecast import NeededRoom
from trimtab.scheduling.cluster_model import ClusterModel
from trimtab.scheduling.node_filters import matches_any_term
from trimtab.scheduling.pod_class import PodClass


@dataclass(slots=True, eq=False)
class ZoneMinimums:
    """Knows which zones need at least one node."""

    model: ClusterModel
    remaining_nodes: dict[str, int] = field(default_factory=dict)
    """Zone → the number of its nodes that receive pods and are not drained."""
    _user_by_zone: dict[str, str] = field(default_factory=dict)
    """Zone → what needs the zone; empty if nothing does. An entry is added when the zone is first checked."""

    def __post_init__(self) -> None:
        for number, node in enumerate(self.model.nodes):
            if node.zone and not self.model.closed_nodes[number]:
                self.remaining_nodes[node.zone] = self.remaining_nodes.get(node.zone, 0) + 1

    def rejection_reason(self, node: int) -> Reason | None:
        """Returns why the node must stay, or None if its zone has other nodes or nothing needs the zone."""
        name, zone = self.model.nodes[node].name, self.model.nodes[node].zone
        if self.remaining_nodes.get(zone) != 1 or len(self.remaining_nodes) == 1 or self.model.closed_nodes[node]:
            return None
        if zone not in self._user_by_zone:
            self._user_by_zone[zone] = self._user_of_zone(zone)
        user = self._user_by_zone[zone]
        return LAST_OF_ZONE(f"node {name} is the last node of zone {zone}, which {user} needs") if user else None

    def count_node(self, node: int, sign: int) -> None:
        """Counts a node of the zone as drained (sign -1) or as kept (sign 1)."""
        if not self.model.closed_nodes[node] and (zone := self.model.nodes[node].zone):
            self.remaining_nodes[zone] += sign

    def _user_of_zone(self, zone: str) -> str:
        for pod in {id(pod.requirements): pod for pod in self.model.pods}.values():
            if any(spread.topology_key == ZONE_LABEL for spread in pod.requirements.hard_spreads):
                return f"the spread constraint of pod {pod.key} over zones"
        inside = [node for node in self.model.nodes if node.zone == zone]
        outside = [node for node in self.model.nodes if node.zone in self.remaining_nodes and node.zone != zone]
        names_by_selector = {
            claim.nodes: name for name, claim in self.model.inventory.claims.items() if claim.nodes is not None
        }
        for selector, (namespace, name) in names_by_selector.items():
            is_inside = any(matches_any_term(selector, node) for node in inside)
            if is_inside and not any(matches_any_term(selector, node) for node in outside):
                return f"the volume of claim {namespace}/{name}"
        return ""


@dataclass(slots=True, eq=False)
class NodeGroupMinimums:
    """Knows the minimum sizes of the cluster autoscaler's node groups."""

    model: ClusterModel
    group_by_node: dict[int, NodeGroupStatus] = field(default_factory=dict)
    """Node → its group, for nodes whose group is known and has a minimum."""
    remaining_nodes: dict[str, int] = field(default_factory=dict)
    """Group → the number of its nodes that receive pods and are not drained."""
    groups: NodeGroups = field(default_factory=NodeGroups)
    """The groups of all nodes, as far as they are known."""
    unmatched_nodes: set[int] = field(default_factory=set)
    """The nodes that receive pods, and that may belong to one of several groups with a minimum."""
    remaining_unmatched: int = 0
    """The number of `unmatched_nodes` that are not drained."""

    @classmethod
    def from_autoscaler(
        cls, model: ClusterModel, autoscaler: Autoscaler | None, pool_of: Mapping[int, Pool] | None = None
    ) -> "NodeGroupMinimums":
        """Returns the minimums of the groups in the autoscaler's status. `pool_of`: node → its pool, of which the name
        may name groups."""
        minimums = cls(model)
        if autoscaler is None:
            return minimums
        groups_by_pool = {
            pool.name: autoscaler.groups_of_pool(pool.name) for pool in (pool_of.values() if pool_of else ())
        }
        minimums.groups = assign_node_groups(
            model.nodes,
            autoscaler.groups,
            named_groups={group.name for groups in groups_by_pool.values() for group in groups},
            named_nodes={
                model.nodes[number].name for number, pool in (pool_of or {}).items() if groups_by_pool[pool.name]
            },
        )
        unmatched = set(minimums.groups.unmatched_nodes)
        for number, node in enumerate(model.nodes if minimums.groups.by_node or unmatched else ()):
            if model.closed_nodes[number]:
                continue
            group = minimums.groups.by_node.get(node.name)
            if group is not None and group.min_size:
                minimums.group_by_node[number] = group
                minimums.count_node(number, 1)
            elif node.name in unmatched:
                minimums.unmatched_nodes.add(number)
                minimums.count_node(number, 1)
        return minimums

    def rejection_reason(self, node: int) -> Reason | None:
        """Returns why the node must stay, or None if its group has more nodes than its minimum. If its group is not
        known, every group to which it may belong must have more nodes than its minimum."""
        if node in self.unmatched_nodes:
            return self._unmatched_reason(node)
        group = self.group_by_node.get(node)
        if group is None or self.remaining_nodes[group.name] > (group.min_size or 0):
            return None
        return AT_MINIMUM(
            f"the autoscaler keeps at least {format_count(group.min_size or 0, 'node')} in node group {group.name}"
        )

    def _unmatched_reason(self, node: int) -> Reason | None:
        minimum = self.groups.unmatched_minimum
        if self.remaining_unmatched > minimum:
            return None
        others = len(self.groups.possible_groups) - 1
        more = ("", " or to another group")[others] if others < 2 else f" or to one of {others} other groups"
        return UNKNOWN_NODE_GROUP(
            f"node {self.model.nodes[node].name} cannot be matched by name to a node group of the autoscaler; it may "
            f"belong to {describe_minimum(self.groups.possible_groups[0])}{more}, and the autoscaler removes no node "
            "of a group at its minimum"
        )

    def count_node(self, node: int, sign: int) -> None:
        """Counts a node of the group as drained (sign -1) or as kept (sign 1)."""
        if node in self.unmatched_nodes:
            self.remaining_unmatched += sign
            return
        group = self.group_by_node.get(node)
        if group is not None:
            self.remaining_nodes[group.name] = self.remaining_nodes.get(group.name, 0) + sign


AmountPair = list[int]
"""(amount of the scarcer resource, amount of the other resource), of cpu and memory."""


@dataclass(slots=True, eq=False)
class PoolLimits:
    """What is counted for the limits of one pool while a plan grows. `remove_node` and `restore_node` undo each
    other."""

    pool: Pool
    model: ClusterModel
    nodes: Sequence[int]
    zone_minimums: ZoneMinimums
    """The needs of zones; one object for all pools."""
    group_minimums: NodeGroupMinimums
    """The minimums of node groups; one object for all pools."""
    group_min_nodes: int = 0
    """The number of nodes that the cluster autoscaler keeps in the pool's groups. If fewer remain, it does not remove a
    drained node."""
    needed_room: NeededRoom | None = None
    """What the pool's pods will request soon, or None if there is no forecast. It is counted once: the pool keeps the
    larger of it and of its headroom free."""
    remaining_nodes: int = 0
    """The number of nodes that receive pods and are not drained. Nodes that are cordoned, not ready or unreadable do
    not count."""
    nodes_by_zone: dict[str, int] = field(default_factory=dict)
    """Zone → the number of its nodes that receive pods and are not drained."""
    allocatable: AmountPair = field(default_factory=lambda: [0, 0])
    """The sum of the allocatable amounts of the nodes that receive pods and are not drained."""
    free: AmountPair = field(default_factory=lambda: [0, 0])
    """The sum of the free amounts of the nodes that receive pods and are not drained."""
    requested_by_zone: dict[str, AmountPair] = field(default_factory=dict)
    """Zone → the amounts requested on its nodes that are not drained."""
    free_by_zone: dict[str, AmountPair] = field(default_factory=dict)
    """Zone → the free amounts of its nodes that are not drained."""
    keeps_no_headroom: bool = False
    """Whether the pool keeps no capacity free, so that amounts need not be counted."""
    mean_node: tuple[int, int] = (0, 0)
    """The mean allocatable amounts of the pool's nodes."""
    largest_node: tuple[int, int] = (0, 0)
    """The largest allocatable amounts of any node of the pool."""
    allowance: AmountPair = field(default_factory=lambda: [0, 0])
    """The amounts that may still arrive before less than the pool's headroom is free; negative if less is free already.

    It is always the same list, so that the best-fit index can read it. It is unused if the pool keeps no capacity free.
    """
    forecast_decides: list[bool] = field(default_factory=lambda: [False, False])
    """Whether the forecast asks for more of the resource than the headroom of the pool."""

    def __post_init__(self) -> None:
        headroom = self.pool.headroom
        is_bare = not headroom.percent and not headroom.nodes and self.pool.spare is Spare.NONE
        # A forecast of no room leaves the search as it is without one.
        self.keeps_no_headroom = is_bare and (self.needed_room is None or self.needed_room.is_none)
        sizes = [self._size(node) for node in self.nodes] if not self.keeps_no_headroom else ()
        if sizes:
            self.mean_node = (sum(a for a, _ in sizes) // len(sizes), sum(b for _, b in sizes) // len(sizes))
            self.largest_node = (max(a for a, _ in sizes), max(b for _, b in sizes))
        for node in self.nodes:
            self._count_staying(node, 1)
        self._recalculate_allowance()

    def _size(self, node: int) -> tuple[int, int]:
        major, minor = self.model.main_resources
        return self.model.allocatable_amount(node, major), self.model.allocatable_amount(node, minor)

    def _count_amounts(self, node: int, sign: int) -> None:
        size = self._size(node)
        free = (self.model.major[node], self.model.minor[node])
        zone = self.model.nodes[node].zone
        for i in (0, 1):
            self.allocatable[i] += sign * size[i]
            self.free[i] += sign * free[i]
            self.free_by_zone.setdefault(zone, [0, 0])[i] += sign * free[i]
            self.requested_by_zone.setdefault(zone, [0, 0])[i] += sign * (size[i] - free[i])

    def _count_staying(self, node: int, sign: int) -> None:
        if self.model.closed_nodes[node]:
            return
        self.remaining_nodes += sign
        zone = self.model.nodes[node].zone
        self.nodes_by_zone[zone] = self.nodes_by_zone.get(zone, 0) + sign
        if not self.keeps_no_headroom:
            self._count_amounts(node, sign)

    def rejection_reason(self, node: int) -> Reason | None:
        """Returns why the node must stay, or None if no minimum of the pool, of its zone or of its node group requires
        it."""
        if self.model.closed_nodes[node]:
            return None
        zone, pool = self.model.nodes[node].zone, self.pool
        if self.remaining_nodes <= pool.min_nodes:
            return AT_MINIMUM(f"pool {pool.name} would have fewer than {format_count(pool.min_nodes, 'node')}")
        if self.remaining_nodes <= self.group_min_nodes:
            return AT_MINIMUM(
                f"the autoscaler keeps at least {format_count(self.group_min_nodes, 'node')} in the node groups "
                f"of pool {pool.name}"
            )
        if self.nodes_by_zone[zone] <= pool.min_per_zone:
            return AT_MINIMUM(
                f"pool {pool.name} would have fewer than {format_count(pool.min_per_zone, 'node')} in zone {zone}"
            )
        return self.zone_minimums.rejection_reason(node) or self.group_minimums.rejection_reason(node)

    def remove_node(self, node: int) -> None:
        """Removes the node from the counts. Its pods are counted on the nodes that receive them (`count_arrival`)."""
        self._count_node(node, -1)

    def restore_node(self, node: int) -> None:
        """Undoes `remove_node`."""
        self._count_node(node, 1)

    def _count_node(self, node: int, sign: int) -> None:
        self.zone_minimums.count_node(node, sign)
        self.group_minimums.count_node(node, sign)
        self._count_staying(node, sign)
        self._recalculate_allowance()

    def count_arrival(self, pod_class: PodClass, node: int, sign: int = 1) -> None:
        """Counts a pod that is placed on a node of the pool (sign 1) or removed from it again (sign -1)."""
        if self.keeps_no_headroom:
            return
        zone = self.model.nodes[node].zone
        for i, amount in enumerate((pod_class.major, pod_class.minor)):
            self.free[i] -= sign * amount
            self.free_by_zone[zone][i] -= sign * amount
            self.requested_by_zone[zone][i] += sign * amount
            # A pod lowers the free capacity of the pool and what is left after the failure of any zone by the same
            # amount, wherever it is placed.
            self.allowance[i] -= sign * amount

    def _recalculate_allowance(self) -> None:
        """Sets `allowance` from the free capacity and the headroom of the pool."""
        if self.keeps_no_headroom:
            return
        headroom, spare = self.pool.headroom, self.pool.spare
        for i in (0, 1):
            wanted = self.allocatable[i] * headroom.percent // 100 + headroom.nodes * self.mean_node[i]
            wanted += self.largest_node[i] if spare is Spare.NODE else 0
            needed = self.needed_room.amount_of(self.model.main_resources[i]) if self.needed_room is not None else 0
            self.forecast_decides[i] = needed > wanted
            self.allowance[i] = self.free[i] - max(wanted, needed)
            if spare is Spare.ZONE:
                # A zone that fails takes its free capacity away, and the pods in it request theirs elsewhere.
                worst = max(
                    (self.free_by_zone[zone][i] + used[i] for zone, used in self.requested_by_zone.items()), default=0
                )
                self.allowance[i] -= worst

    def shortage_reason(self) -> Reason | None:
        """Returns the reason if the pool has less free capacity than its headroom now, or None if it has enough."""
        if self.keeps_no_headroom:
            return None
        for i, resource in enumerate(self.model.main_resources):
            if self.allowance[i] < 0:
                if self.pool.spare is Spare.ZONE:
                    return NO_HEADROOM(
                        f"pool {self.pool.name} would not have enough free {resource} for the pods of a zone that fails"
                    )
                if self.forecast_decides[i]:
                    return NEEDED_AGAIN(
                        f"the pods of pool {self.pool.name} will request the free {resource} again within "
                        f"{format_count(self.pool.payback // 60, 'minute')}"
                    )
                return NO_HEADROOM(f"pool {self.pool.name} would have less free {resource} than its headroom")
        return None


GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "microsoft.com/directx")


def autoscaler_threshold(model: ClusterModel, node: int, autoscaler: Autoscaler) -> int | None:
    """Returns the cluster autoscaler's threshold (percent) if the node's utilization is under it, or None if it is not.

    The flags of the autoscaler decide whether the pods of DaemonSets and static pods count. Whether the pods fit on
    other nodes is not checked here.
    """
    # As cluster-autoscaler simulator/utilization (1.34): on a node with GPUs only the GPUs are compared with a
    # threshold, else the larger utilization of cpu and memory.
    gpu = next((name for name in GPU_RESOURCES if model.allocatable_amount(node, name) > 0), None)
    if gpu is not None:
        allocatable = model.allocatable_amount(node, gpu)
        requested = (
            allocatable - model.other_free[model.other_resources.index(gpu)][node]
            if gpu in model.other_resources
            else 0
        )
        return autoscaler.gpu_threshold if requested * 100 < autoscaler.gpu_threshold * allocatable else None
    if model.nodes[node].name in model.inventory.devices.pool_uses and counts_devices(autoscaler):
        return _device_threshold(model, node, autoscaler)
    free = (model.major[node], model.minor[node])
    allocatable_amounts = [model.allocatable_amount(node, resource) for resource in model.main_resources]
    amounts = zip(allocatable_amounts, free, _ignored_requests(model, node, autoscaler), strict=True)
    is_under = all(
        (allocatable - ignored - free_amount) * 100 < autoscaler.threshold * (allocatable - ignored)
        for allocatable, free_amount, ignored in amounts
    )
    return autoscaler.threshold if is_under else None


def counts_devices(autoscaler: Autoscaler) -> bool:
    """Returns whether the autoscaler counts devices of dynamic resource allocation; if the flag is not known, it
    does."""
    return f.DYNAMIC_RESOURCES.name not in autoscaler.flags or f.DYNAMIC_RESOURCES.is_true_in(autoscaler.flags)


def _device_threshold(model: ClusterModel, node: int, autoscaler: Autoscaler) -> int | None:
    """Returns the autoscaler's threshold if the use of every pool of the node's devices is under it. cpu and memory of
    such a node do not count (simulator/utilization/info.go, cluster-autoscaler 1.36)."""
    uses = model.inventory.devices.pool_uses[model.nodes[node].name]
    if uses is None:
        return None
    is_under = all(use.held * 100 < autoscaler.threshold * use.devices for use in uses if use.devices)
    return autoscaler.threshold if is_under else None


def _ignored_requests(model: ClusterModel, node: int, autoscaler: Autoscaler) -> tuple[int, int]:
    """Returns the requests (major, minor) of those pods that the autoscaler's flags exclude from a node's
    utilization."""
    daemons, mirrors = autoscaler.ignores_daemon_sets, autoscaler.ignores_mirror_pods
    if not (daemons or mirrors):
        return (0, 0)
    pods = [
        n
        for n in model.pods_on_node[node]
        if (daemons and model.pods[n].is_daemon) or (mirrors and model.pods[n].is_static)
    ]
    classes = [model.class_of[n] for n in pods]
    return sum(pod_class.major for pod_class in classes), sum(pod_class.minor for pod_class in classes)
