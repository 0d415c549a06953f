"""The indexes from which `FactsCache` builds facts: each class takes changes, and returns a mapping of the current
state.

A mapping that was returned is never changed; it is replaced by a new one. Values that stay equal stay the same objects.
All classes take (namespace, name) as the key, and as the value what `watched_facts` retains of an object.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from trimtab.cluster.api.core import LimitRange
from trimtab.cluster.api.meta import Labels
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.kinds import built_in
from trimtab.cluster.limit_ranges import LimitRangeBounds, container_bounds
from trimtab.cluster.node_shapes import (
    NO_NODES,
    Machine,
    Machines,
    NodeShapes,
    OneMachine,
    SeenNode,
    ShapeCounter,
    shapes_by_state,
)
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ContainerUsage, Recommendations, Workloads
from trimtab.cluster.replicas import Replicas
from trimtab.cluster.timestamps import Seconds
from trimtab.policy.cluster_facts import build_node_shapes, largest_allocatable, name_order, namespace_of

K = TypeVar("K")
Value = TypeVar("Value")
G = TypeVar("G")


class _Removed:
    """The type of the object that marks removed keys. Nothing else equals it."""


_REMOVED: Final = _Removed()


class PersistentMap(Generic[K, Value]):
    """A mapping with pending changes: the state that was last returned, and all changes since then."""

    def __init__(self) -> None:
        self._current: dict[K, Value] = {}
        self._pending: dict[K, Value | _Removed] = {}

    def put(self, key: K, value: Value) -> None:
        """Sets a value. If it equals the current value, the current object stays."""
        if key in self._current and self._current[key] == value:
            self._pending.pop(key, None)
        else:
            self._pending[key] = value

    def drop(self, key: K) -> None:
        if key in self._current:
            self._pending[key] = _REMOVED
        else:
            self._pending.pop(key, None)

    def current_mapping(self) -> Mapping[K, Value]:
        """Returns the mapping with all changes so far. It is the same object as last time if nothing differs, and it is
        never changed afterwards."""
        if self._pending:
            # A copy takes a millisecond for fifty thousand entries, a loop over them sixty.
            mapping = self._current.copy()
            for key, value in self._pending.items():
                if isinstance(value, _Removed):
                    del mapping[key]
                else:
                    mapping[key] = value
            self._current, self._pending = mapping, {}
        return self._current


class GroupedMap(Generic[K, G, Value]):
    """Objects grouped by what they belong to, such as the LimitRanges of a namespace or the VPAs of a workload."""

    def __init__(self, group: Callable[[Value], G], order: Callable[[Value], Any]) -> None:
        self._group = group
        self._order = order
        self._table: PersistentMap[G, tuple[Value, ...]] = PersistentMap()
        self._members: dict[G, dict[K, Value]] = {}
        self._group_of: dict[K, G] = {}
        # Groups to sort again when they are read next: once for all changes, however many they are.
        self._changed: set[G] = set()

    def put(self, key: K, value: Value) -> None:
        group = self._group(value)
        # An object may move to another group, such as a VPA with a new target.
        if self._group_of.get(key, group) != group:
            self.drop(key)
        members = self._members.setdefault(group, {})
        if key in members and members[key] == value:
            return
        self._group_of[key], members[key] = group, value
        self._changed.add(group)

    def drop(self, key: K) -> None:
        group = self._group_of.pop(key, None)
        if group is None:
            return
        members = self._members[group]
        del members[key]
        if not members:
            del self._members[group]
        self._changed.add(group)

    def sorted_members(self, group: G) -> tuple[Value, ...]:
        """Returns the objects of one group in their order."""
        return tuple(sorted(self._members.get(group, {}).values(), key=self._order))

    def current_mapping(self) -> Mapping[G, tuple[Value, ...]]:
        """Returns group → its objects in their order. Like `PersistentMap.current_mapping`, it returns the same object
        if nothing differs."""
        for group in self._changed:
            members = self.sorted_members(group)
            self._table.put(group, members) if members else self._table.drop(group)
        self._changed.clear()
        return self._table.current_mapping()


V = TypeVar("V")

Key = tuple[str, str]
"""(namespace, name) of an object; the namespace is empty for cluster-scoped objects."""


class FactsTable(Protocol):
    """What every index has: methods that take the changes to objects of one kind."""

    def put(self, key: Key, value: Any, /) -> None: ...
    def drop(self, key: Key, /) -> None: ...


class NamedFacts(Generic[V]):
    """Cluster-scoped objects by name."""

    def __init__(self) -> None:
        self._table: PersistentMap[str, V] = PersistentMap()

    def put(self, key: Key, value: V) -> None:
        self._table.put(key[1], value)

    def drop(self, key: Key) -> None:
        self._table.drop(key[1])

    def current_mapping(self) -> Mapping[str, V]:
        return self._table.current_mapping()


@dataclass(frozen=True, slots=True)
class RetainedNamespace:
    """The labels of a namespace, and whether the namespace pauses Trimtab."""

    labels: Labels = field(default_factory=dict)
    paused: bool = False


@dataclass(frozen=True, slots=True)
class RetainedOwner:
    """An owner of pods, reduced to what decisions read."""

    above: OwnerKey | None
    """The owner's own controller, or None if it has none."""
    created: Seconds | None = None
    """The creation time of an owner without a controller, or None if it is not known."""
    replicas: Replicas | None = None
    """How many pods the owner wants, or None if it has no such number."""
    updated: int = 0
    """The number of existing pods of the owner's current template."""
    daemon: PodSpec | None = None
    """For a DaemonSet, the spec of the pod that runs on each node; None for any other kind."""


class NamespaceFacts:
    """The labels of namespaces, and whether Trimtab's own namespace pauses all changes."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._labels: NamedFacts[Labels] = NamedFacts()
        self.paused = False

    def put(self, key: Key, value: RetainedNamespace) -> None:
        self._labels.put(key, value.labels)
        if key[1] == self._own:
            self.paused = value.paused

    def drop(self, key: Key) -> None:
        self._labels.drop(key)
        if key[1] == self._own:
            self.paused = False

    def current_mapping(self) -> Mapping[str, Labels]:
        return self._labels.current_mapping()


class LimitRangeFacts:
    """The LimitRanges of each namespace, and the bounds for containers that these LimitRanges set together."""

    def __init__(self) -> None:
        self._ranges: GroupedMap[Key, str, LimitRange] = GroupedMap(namespace_of, name_order)
        self._bounds: PersistentMap[str, Mapping[str, LimitRangeBounds]] = PersistentMap()

    def put(self, key: Key, value: LimitRange) -> None:
        self._ranges.put(key, value)
        self._update_bounds(key[0] or "default")

    def drop(self, key: Key) -> None:
        self._ranges.drop(key)
        self._update_bounds(key[0] or "default")

    def _update_bounds(self, namespace: str) -> None:
        ranges = self._ranges.sorted_members(namespace)
        if ranges:
            self._bounds.put(namespace, container_bounds(ranges))
        else:
            self._bounds.drop(namespace)

    def current_mapping(self) -> Mapping[str, tuple[LimitRange, ...]]:
        return self._ranges.current_mapping()

    def bounds_by_namespace(self) -> Mapping[str, Mapping[str, LimitRangeBounds]]:
        return self._bounds.current_mapping()


class OwnerFacts:
    """Owners of pods, of every kind: their controllers, the creation time of those without a controller, the number of
    replicas that they want, and how many pods of their current template exist."""

    def __init__(self) -> None:
        self._above: PersistentMap[OwnerKey, OwnerKey | None] = PersistentMap()
        self._created: PersistentMap[OwnerKey, Seconds] = PersistentMap()
        self._replicas: PersistentMap[OwnerKey, Replicas] = PersistentMap()
        self._updated: PersistentMap[OwnerKey, int] = PersistentMap()
        self._daemons: PersistentMap[OwnerKey, PodSpec] = PersistentMap()

    def controller_by_owner(self) -> Mapping[OwnerKey, OwnerKey | None]:
        return self._above.current_mapping()

    def creation_by_owner(self) -> Mapping[OwnerKey, Seconds]:
        return self._created.current_mapping()

    def replicas_by_owner(self) -> Mapping[OwnerKey, Replicas]:
        return self._replicas.current_mapping()

    def updated_by_owner(self) -> Mapping[OwnerKey, int]:
        return self._updated.current_mapping()

    def daemon_by_owner(self) -> Mapping[OwnerKey, PodSpec]:
        return self._daemons.current_mapping()

    def put(self, target: OwnerKey, owner: RetainedOwner) -> None:
        # None is a value here: it says that the owner is known to have no controller.
        self._above.put(target, owner.above)
        _put_or_drop(self._created, target, owner.created)
        _put_or_drop(self._replicas, target, owner.replicas)
        _put_or_drop(self._updated, target, owner.updated or None)
        _put_or_drop(self._daemons, target, owner.daemon)

    def drop(self, target: OwnerKey) -> None:
        self._above.drop(target)
        self._created.drop(target)
        self._replicas.drop(target)
        self._updated.drop(target)
        self._daemons.drop(target)


def _put_or_drop(table: PersistentMap[OwnerKey, V], target: OwnerKey, value: V | None) -> None:
    if value is None:
        table.drop(target)
    else:
        table.put(target, value)


class KindOwnerFacts:
    """The owners of one kind, as a part of `OwnerFacts`."""

    def __init__(self, kind: str, owners: OwnerFacts) -> None:
        self._kind = built_in(kind)
        self._owners = owners

    def put(self, key: Key, owner: RetainedOwner) -> None:
        self._owners.put(self._target(key), owner)

    def drop(self, key: Key) -> None:
        self._owners.drop(self._target(key))

    def _target(self, key: Key) -> OwnerKey:
        # The same default as in `from_snapshot`.
        return OwnerKey(key[0] or "default", self._kind, key[1])


def _machine_of(machine: OneMachine) -> Machine:
    return machine.machine


def _node_of(machine: OneMachine) -> str:
    return machine.node


class NodeFacts:
    """The node shapes (labels, taints and amounts that nodes share) with the DaemonSets on them, and the labels that
    identify a single node."""

    def __init__(self, owners: OwnerFacts) -> None:
        self._counter = ShapeCounter()
        self._owners = owners
        self._machines: GroupedMap[tuple[str, Machine], Machine, OneMachine] = GroupedMap(_machine_of, _node_of)
        self._machine_of: dict[str, tuple[Machine, ...]] = {}
        self._state: tuple[int, Mapping[OwnerKey, PodSpec], tuple[str, ...] | None] = (0, {}, None)
        self._whole = NO_NODES
        self._largest: Mapping[str, int] = {}
        # The autoscaler's node groups that may get a first node; None if no status lists the groups.
        self.growing: tuple[str, ...] | None = None

    def put(self, key: Key, value: SeenNode | None) -> None:
        if value is None:
            self.drop(key)
            return
        single_nodes = self._counter.put(value)
        # A node may lose a label that it alone had: that entry would otherwise stay for ever.
        for machine in self._machine_of.get(key[1], ()):
            if machine not in value.machine:
                self._machines.drop((key[1], machine))
        self._machine_of[key[1]] = value.machine
        for single in single_nodes:
            self._machines.put((key[1], single.machine), single)

    def drop(self, key: Key) -> None:
        self._counter.drop(key[1])
        for machine in self._machine_of.pop(key[1], ()):
            self._machines.drop((key[1], machine))

    def nodes_by_machine(self) -> Machines:
        return self._machines.current_mapping()

    def current_shapes(self) -> NodeShapes:
        """Returns all node shapes. The same object is returned until a shape, a DaemonSet or a node group that may grow
        changes."""
        state = (self._counter.changes, self._owners.daemon_by_owner(), self.growing)
        if state[0] != self._state[0] or state[1] is not self._state[1] or state[2] != self._state[2]:
            daemons = state[1]
            self._state = state
            # Rebuilt only when a shape appears or disappears, not for each of thousands of nodes.
            shapes, closed = shapes_by_state(self._counter.sorted_shapes())
            node_shapes = build_node_shapes(
                shapes, tuple(daemons[target] for target in sorted(daemons)), closed, self.growing
            )
            self._whole = self._whole if node_shapes == self._whole else node_shapes
            largest = largest_allocatable(shapes)
            # Equal values keep the old object, because readers compare by identity.
            self._largest = self._largest if largest == self._largest else largest
        return self._whole

    def largest_allocatable(self) -> Mapping[str, int]:
        """Returns resource → the largest amount that one node can hold; the same object while it does not change."""
        self.current_shapes()
        return self._largest


class AutoscalerStatus:
    """The node groups in the statuses of the cluster autoscalers, which are passed on to the node shapes."""

    def __init__(self, nodes: NodeFacts) -> None:
        self._nodes = nodes
        self._groups_by_status: dict[Key, tuple[str, ...] | None] = {}

    def put(self, key: Key, value: tuple[str, ...] | None) -> None:
        self._groups_by_status[key] = value
        self._update_nodes()

    def drop(self, key: Key) -> None:
        self._groups_by_status.pop(key, None)
        self._update_nodes()

    def _update_nodes(self) -> None:
        # If one status cannot be read, any group may be among those that it does not show.
        readable = [groups for groups in self._groups_by_status.values() if groups is not None]
        is_whole = bool(readable) and len(readable) == len(self._groups_by_status)
        self._nodes.growing = tuple(sorted({name for groups in readable for name in groups})) if is_whole else None


class RecommendationShards:
    """Recommendations from several ConfigMaps. An unreadable shard is reported and keeps its last content."""

    def __init__(self) -> None:
        self._shards: dict[str, Workloads] = {}
        self._unreadable: dict[str, Unreadable] = {}
        self._workloads: PersistentMap[str, Mapping[str, ContainerUsage]] = PersistentMap()
        self._last = Recommendations(self._workloads.current_mapping())
        self._problems: tuple[Unreadable, ...] = ()

    def put(self, key: Key, value: Workloads | Unreadable | None) -> None:
        if isinstance(value, Unreadable):
            self._unreadable[key[1]] = value
        else:
            self._unreadable.pop(key[1], None)
            self._replace_shard(key[1], value or {})

    def drop(self, key: Key) -> None:
        self._unreadable.pop(key[1], None)
        self._replace_shard(key[1], {})

    def _replace_shard(self, shard: str, later: Workloads) -> None:
        earlier = self._shards.pop(shard, {})
        if later:
            self._shards[shard] = later
        for workload in earlier.keys() | later.keys():
            # Where two shards hold one workload, the last in order of name counts, as in `from_snapshot`.
            shards = [name for name in self._shards if workload in self._shards[name]]
            if shards:
                self._workloads.put(workload, self._shards[max(shards)][workload])
            else:
                self._workloads.drop(workload)

    def current_recommendations(self) -> Recommendations:
        workloads = self._workloads.current_mapping()
        if workloads is not self._last.workloads:
            self._last = Recommendations(workloads)
        return self._last

    def unreadable_shards(self) -> tuple[Unreadable, ...]:
        """Returns the unreadable shards in order of name; the same object while nothing differs."""
        problems = tuple(self._unreadable[name] for name in sorted(self._unreadable))
        if problems != self._problems:
            self._problems = problems
        return self._problems
