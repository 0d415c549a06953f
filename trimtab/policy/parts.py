"""The parts of facts that are more than a table: each is told what came and went, and is whole at any moment.

All take (namespace, name) as the key, and what `held` leaves of an object as the value.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.api.rules import LimitRange
from trimtab.cluster.limits import Bounds, container_bounds
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ContainerUsage, Recommendations, Workloads
from trimtab.cluster.resources import larger
from trimtab.policy.facts import by_name, home
from trimtab.policy.held import SeenNamespace
from trimtab.policy.table import Groups, Table

V = TypeVar("V")

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for what has none."""
Target = tuple[str, str, str]
"""(namespace, kind, name)."""


class Part(Protocol):
    def put(self, key: Key, value: Any, /) -> None: ...
    def drop(self, key: Key, /) -> None: ...


class Named(Generic[V]):
    """Objects without a namespace."""

    def __init__(self) -> None:
        self._table: Table[str, V] = Table()

    def put(self, key: Key, value: V) -> None:
        self._table.put(key[1], value)

    def drop(self, key: Key) -> None:
        self._table.drop(key[1])

    def whole(self) -> Mapping[str, V]:
        return self._table.whole()


class Namespaces:
    """Their labels; and what our own says about us."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._labels: Named[Labels] = Named()
        self.paused = False

    def put(self, key: Key, value: SeenNamespace) -> None:
        self._labels.put(key, value.labels)
        if key[1] == self._own:
            self.paused = value.paused

    def drop(self, key: Key) -> None:
        self._labels.drop(key)
        if key[1] == self._own:
            self.paused = False

    def whole(self) -> Mapping[str, Labels]:
        return self._labels.whole()


class LimitRanges:
    """By namespace, and what those of a namespace say together."""

    def __init__(self) -> None:
        self._ranges: Groups[Key, str, LimitRange] = Groups(home, by_name)
        self._bounds: Table[str, Mapping[str, Bounds]] = Table()

    def put(self, key: Key, value: LimitRange) -> None:
        self._ranges.put(key, value)
        self._bound(key[0] or "default")

    def drop(self, key: Key) -> None:
        self._ranges.drop(key)
        self._bound(key[0] or "default")

    def _bound(self, namespace: str) -> None:
        found = self._ranges.of(namespace)
        if found:
            self._bounds.put(namespace, container_bounds(found))
        else:
            self._bounds.drop(namespace)

    def whole(self) -> Mapping[str, tuple[LimitRange, ...]]:
        return self._ranges.whole()

    def bounds(self) -> Mapping[str, Mapping[str, Bounds]]:
        return self._bounds.whole()


class Owners:
    """One kind of owners in the table of all."""

    def __init__(self, kind: str, table: Table[Target, Owner | None]) -> None:
        self._kind = kind
        self._table = table

    def put(self, key: Key, value: Owner | None) -> None:
        self._table.put(self._target(key), value)

    def drop(self, key: Key) -> None:
        self._table.drop(self._target(key))

    def _target(self, key: Key) -> Target:
        return (key[0] or "default", self._kind, key[1])


class Nodes:
    """The most that one of them can hold. Nodes come by the hundred and in few sizes: the sizes are compared."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Size] = {}
        self._sizes: Counter[_Size] = Counter()
        self._largest: Mapping[str, int] = {}
        self._stale = False

    def put(self, key: Key, value: Mapping[str, int] | None) -> None:
        self.drop(key)
        if value is not None:
            size = frozenset(value.items())
            self._nodes[key[1]] = size
            self._sizes[size] += 1
            self._stale |= self._sizes[size] == 1

    def drop(self, key: Key) -> None:
        size = self._nodes.pop(key[1], None)
        if size is None:
            return
        self._sizes[size] -= 1
        if not self._sizes[size]:
            del self._sizes[size]
            self._stale = True

    def largest(self) -> Mapping[str, int]:
        """Resource → how much; the same object while it stays that much."""
        if self._stale:
            found: Mapping[str, int] = {}
            for size in self._sizes:
                found = larger(found, dict(size))
            self._largest = self._largest if found == self._largest else found
            self._stale = False
        return self._largest


_Size = frozenset[tuple[str, int]]


class Shards:
    """Recommendations from several ConfigMaps. One that turned bad keeps what it said last, and is named."""

    def __init__(self) -> None:
        self._shards: dict[str, Workloads] = {}
        self._bad: dict[str, Unreadable] = {}
        self._workloads: Table[str, Mapping[str, ContainerUsage]] = Table()
        self._told = Recommendations(self._workloads.whole())
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

    def whole(self) -> Recommendations:
        workloads = self._workloads.whole()
        if workloads is not self._told.workloads:
            self._told = Recommendations(workloads)
        return self._told

    def problems(self) -> tuple[Unreadable, ...]:
        """In order of name; the same object while they are the same."""
        found = tuple(self._bad[name] for name in sorted(self._bad))
        if found != self._problems:
            self._problems = found
        return self._problems
