"""Mappings that readers may keep while they grow: replaced, never written to, and what stays equal stays the same.

The parts of facts that are more than a table: each is told what came and went, and is whole at any moment.

All take (namespace, name) as the key, and what `held` leaves of an object as the value.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from trimtab.cluster.api.core import LimitRange
from trimtab.cluster.api.meta import Labels
from trimtab.cluster.api.pod import PodSpec
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
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ContainerUsage, Recommendations, Workloads
from trimtab.cluster.replicas import Replicas
from trimtab.cluster.timestamps import Seconds
from trimtab.policy.cluster_facts import build_node_shapes, largest_allocatable, name_order, namespace_of
from trimtab.policy.retained_facts import RetainedNamespace, RetainedOwner

K = TypeVar("K")
Value = TypeVar("Value")
G = TypeVar("G")


class _Gone:
    """Nothing that anybody holds is equal to it."""


_GONE: Final = _Gone()


class PersistentMap(Generic[K, Value]):
    """A mapping in two states: as it was read last, and what was told since."""

    def __init__(self) -> None:
        self._now: dict[K, Value] = {}
        self._next: dict[K, Value | _Gone] = {}

    def put(self, key: K, value: Value) -> None:
        """A value equal to the one that is there changes nothing: the old object stays."""
        if key in self._now and self._now[key] == value:
            self._next.pop(key, None)
        else:
            self._next[key] = value

    def drop(self, key: K) -> None:
        if key in self._now:
            self._next[key] = _GONE
        else:
            self._next.pop(key, None)

    def current_mapping(self) -> Mapping[K, Value]:
        """Everything told so far. The same object as last time unless something differs; it never changes."""
        if self._next:
            # A copy takes a millisecond for fifty thousand entries, a loop over them sixty.
            found = self._now.copy()
            for key, value in self._next.items():
                if isinstance(value, _Gone):
                    del found[key]
                else:
                    found[key] = value
            self._now, self._next = found, {}
        return self._now


class GroupedMap(Generic[K, G, Value]):
    """Objects by what they belong to: the LimitRanges of a namespace, the VPAs of a workload."""

    def __init__(self, group: Callable[[Value], G], order: Callable[[Value], Any]) -> None:
        self._group = group
        self._order = order
        self._table: PersistentMap[G, tuple[Value, ...]] = PersistentMap()
        self._members: dict[G, dict[K, Value]] = {}
        self._where: dict[K, G] = {}
        self._changed: set[G] = set()
        """Groups to put together again: once for all that came, however many they are."""

    def put(self, key: K, value: Value) -> None:
        group = self._group(value)
        if self._where.get(key, group) != group:
            self.drop(key)
        members = self._members.setdefault(group, {})
        if key in members and members[key] == value:
            return
        self._where[key], members[key] = group, value
        self._changed.add(group)

    def drop(self, key: K) -> None:
        group = self._where.pop(key, None)
        if group is None:
            return
        members = self._members[group]
        del members[key]
        if not members:
            del self._members[group]
        self._changed.add(group)

    def sorted_members(self, group: G) -> tuple[Value, ...]:
        """Those of one group in their order."""
        return tuple(sorted(self._members.get(group, {}).values(), key=self._order))

    def current_mapping(self) -> Mapping[G, tuple[Value, ...]]:
        """As `PersistentMap.whole`."""
        for group in self._changed:
            found = self.sorted_members(group)
            self._table.put(group, found) if found else self._table.drop(group)
        self._changed.clear()
        return self._table.current_mapping()


V = TypeVar("V")

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for what has none."""
Target = tuple[str, str, str]
"""(namespace, kind, name)."""


class FactsTable(Protocol):
    def put(self, key: Key, value: Any, /) -> None: ...
    def drop(self, key: Key, /) -> None: ...


class NamedFacts(Generic[V]):
    """Objects without a namespace."""

    def __init__(self) -> None:
        self._table: PersistentMap[str, V] = PersistentMap()

    def put(self, key: Key, value: V) -> None:
        self._table.put(key[1], value)

    def drop(self, key: Key) -> None:
        self._table.drop(key[1])

    def current_mapping(self) -> Mapping[str, V]:
        return self._table.current_mapping()


class NamespaceFacts:
    """Their labels; and what our own says about us."""

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
    """By namespace, and what those of a namespace say together."""

    def __init__(self) -> None:
        self._ranges: GroupedMap[Key, str, LimitRange] = GroupedMap(namespace_of, name_order)
        self._bounds: PersistentMap[str, Mapping[str, LimitRangeBounds]] = PersistentMap()

    def put(self, key: Key, value: LimitRange) -> None:
        self._ranges.put(key, value)
        self._bound(key[0] or "default")

    def drop(self, key: Key) -> None:
        self._ranges.drop(key)
        self._bound(key[0] or "default")

    def _bound(self, namespace: str) -> None:
        found = self._ranges.sorted_members(namespace)
        if found:
            self._bounds.put(namespace, container_bounds(found))
        else:
            self._bounds.drop(namespace)

    def current_mapping(self) -> Mapping[str, tuple[LimitRange, ...]]:
        return self._ranges.current_mapping()

    def bounds_by_namespace(self) -> Mapping[str, Mapping[str, LimitRangeBounds]]:
        return self._bounds.current_mapping()


class OwnerFacts:
    """Owners of pods of every kind: who controls them, since when those without a controller are there, how many pods
    they want, how many of the newest exist."""

    def __init__(self) -> None:
        self._above: PersistentMap[Target, Owner | None] = PersistentMap()
        self._created: PersistentMap[Target, Seconds] = PersistentMap()
        self._replicas: PersistentMap[Target, Replicas] = PersistentMap()
        self._updated: PersistentMap[Target, int] = PersistentMap()
        self._daemons: PersistentMap[Target, PodSpec] = PersistentMap()

    def controller_by_owner(self) -> Mapping[Target, Owner | None]:
        return self._above.current_mapping()

    def creation_by_owner(self) -> Mapping[Target, Seconds]:
        return self._created.current_mapping()

    def replicas_by_owner(self) -> Mapping[Target, Replicas]:
        return self._replicas.current_mapping()

    def updated_by_owner(self) -> Mapping[Target, int]:
        return self._updated.current_mapping()

    def daemon_by_owner(self) -> Mapping[Target, PodSpec]:
        return self._daemons.current_mapping()

    def put(self, target: Target, value: RetainedOwner) -> None:
        self._above.put(target, value.above)
        _put_known(self._created, target, value.created)
        _put_known(self._replicas, target, value.replicas)
        _put_known(self._updated, target, value.updated or None)
        _put_known(self._daemons, target, value.daemon)

    def drop(self, target: Target) -> None:
        self._above.drop(target)
        self._created.drop(target)
        self._replicas.drop(target)
        self._updated.drop(target)
        self._daemons.drop(target)


def _put_known(table: PersistentMap[Target, V], target: Target, value: V | None) -> None:
    if value is None:
        table.drop(target)
    else:
        table.put(target, value)


class KindOwnerFacts:
    """One kind of owners among all."""

    def __init__(self, kind: str, owners: OwnerFacts) -> None:
        self._kind = kind
        self._owners = owners

    def put(self, key: Key, value: RetainedOwner) -> None:
        self._owners.put(self._target(key), value)

    def drop(self, key: Key) -> None:
        self._owners.drop(self._target(key))

    def _target(self, key: Key) -> Target:
        return (key[0] or "default", self._kind, key[1])


def _machine_of(one: OneMachine) -> Machine:
    return one.machine


def _node_of(one: OneMachine) -> str:
    return one.node


class NodeFacts:
    """The kinds of nodes there are, with the daemons on them, and which node is of which kind."""

    def __init__(self, owners: OwnerFacts) -> None:
        self._counter = ShapeCounter()
        self._owners = owners
        self._machines: GroupedMap[tuple[str, Machine], Machine, OneMachine] = GroupedMap(_machine_of, _node_of)
        self._machine_of: dict[str, tuple[Machine, ...]] = {}
        self._stands: tuple[int, Mapping[Target, PodSpec], tuple[str, ...] | None] = (0, {}, None)
        self._whole = NO_NODES
        self._largest: Mapping[str, int] = {}
        self.growing: tuple[str, ...] | None = None
        """Of the autoscaler's groups those that may get a first node; None where nobody tells the groups."""

    def put(self, key: Key, value: SeenNode | None) -> None:
        if value is None:
            self.drop(key)
            return
        found = self._counter.put(value)
        for machine in self._machine_of.get(key[1], ()):
            if machine not in value.machine:
                self._machines.drop((key[1], machine))
        self._machine_of[key[1]] = value.machine
        for one in found:
            self._machines.put((key[1], one.machine), one)

    def drop(self, key: Key) -> None:
        self._counter.drop(key[1])
        for machine in self._machine_of.pop(key[1], ()):
            self._machines.drop((key[1], machine))

    def nodes_by_machine(self) -> Machines:
        return self._machines.current_mapping()

    def current_shapes(self) -> NodeShapes:
        """The same object while no kind comes or goes, no daemon changes and no group begins or ends to grow."""
        stands = (self._counter.changes, self._owners.daemon_by_owner(), self.growing)
        if stands[0] != self._stands[0] or stands[1] is not self._stands[1] or stands[2] != self._stands[2]:
            daemons = stands[1]
            self._stands = stands
            shapes, closed = shapes_by_state(self._counter.shapes())
            whole = build_node_shapes(
                shapes, tuple(daemons[target] for target in sorted(daemons)), closed, self.growing
            )
            self._whole = self._whole if whole == self._whole else whole
            found = largest_allocatable(shapes)
            self._largest = self._largest if found == self._largest else found
        return self._whole

    def largest_allocatable(self) -> Mapping[str, int]:
        """Resource → the most that one node can hold; the same object while it stays that much."""
        self.current_shapes()
        return self._largest


class AutoscalerStatus:
    """What the cluster autoscaler tells of its groups, for the nodes."""

    def __init__(self, nodes: NodeFacts) -> None:
        self._nodes = nodes

    def put(self, key: Key, value: tuple[str, ...] | None) -> None:
        self._nodes.growing = value

    def drop(self, key: Key) -> None:
        self._nodes.growing = None


class RecommendationShards:
    """Recommendations from several ConfigMaps. One that turned bad keeps what it said last, and is named."""

    def __init__(self) -> None:
        self._shards: dict[str, Workloads] = {}
        self._bad: dict[str, Unreadable] = {}
        self._workloads: PersistentMap[str, Mapping[str, ContainerUsage]] = PersistentMap()
        self._told = Recommendations(self._workloads.current_mapping())
        self._problems: tuple[Unreadable, ...] = ()

    def put(self, key: Key, value: Workloads | Unreadable | None) -> None:
        if isinstance(value, Unreadable):
            self._bad[key[1]] = value
        else:
            self._bad.pop(key[1], None)
            self._change(key[1], value or {})

    def drop(self, key: Key) -> None:
        self._bad.pop(key[1], None)
        self._change(key[1], {})

    def _change(self, shard: str, after: Workloads) -> None:
        before = self._shards.pop(shard, {})
        if after:
            self._shards[shard] = after
        for workload in before.keys() | after.keys():
            # Where two shards speak of one workload, the last in order of name counts.
            said = [name for name in self._shards if workload in self._shards[name]]
            if said:
                self._workloads.put(workload, self._shards[max(said)][workload])
            else:
                self._workloads.drop(workload)

    def current_recommendations(self) -> Recommendations:
        workloads = self._workloads.current_mapping()
        if workloads is not self._told.workloads:
            self._told = Recommendations(workloads)
        return self._told

    def unreadable_shards(self) -> tuple[Unreadable, ...]:
        """In order of name; the same object while they are the same."""
        found = tuple(self._bad[name] for name in sorted(self._bad))
        if found != self._problems:
            self._problems = found
        return self._problems
