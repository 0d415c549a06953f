"""Mappings that readers may keep while they grow: replaced, never written to, and what stays equal stays the same."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
G = TypeVar("G")


class _Gone:
    """Nothing that anybody holds is equal to it."""


_GONE: Final = _Gone()


class Table(Generic[K, V]):
    """A mapping in two states: as it was read last, and what was told since."""

    def __init__(self) -> None:
        self._now: dict[K, V] = {}
        self._next: dict[K, V | _Gone] = {}

    def put(self, key: K, value: V) -> None:
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

    def whole(self) -> Mapping[K, V]:
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


class Groups(Generic[K, G, V]):
    """Objects by what they belong to: the LimitRanges of a namespace, the VPAs of a workload."""

    def __init__(self, group: Callable[[V], G], order: Callable[[V], Any]) -> None:
        self._group = group
        self._order = order
        self._table: Table[G, tuple[V, ...]] = Table()
        self._members: dict[G, dict[K, V]] = {}
        self._where: dict[K, G] = {}

    def put(self, key: K, value: V) -> None:
        group = self._group(value)
        if self._where.get(key, group) != group:
            self.drop(key)
        members = self._members.setdefault(group, {})
        if key in members and members[key] == value:
            return
        self._where[key], members[key] = group, value
        self._table.put(group, self.of(group))

    def drop(self, key: K) -> None:
        group = self._where.pop(key, None)
        if group is None:
            return
        members = self._members[group]
        del members[key]
        if members:
            self._table.put(group, self.of(group))
        else:
            del self._members[group]
            self._table.drop(group)

    def of(self, group: G) -> tuple[V, ...]:
        """Those of one group in their order."""
        return tuple(sorted(self._members.get(group, {}).values(), key=self._order))

    def whole(self) -> Mapping[G, tuple[V, ...]]:
        """As `Table.whole`."""
        return self._table.whole()
