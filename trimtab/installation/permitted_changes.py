"""Says in CEL that a write changes nothing but the named fields of an object.

The expressions name what may change, and compare everything else by the keys that the two objects have when the API
server evaluates the policy. They need no list of the other fields, so they also hold for a field that a later version
of Kubernetes adds. `dyn` keeps the type check of policies from treating the objects as messages with fixed fields,
over which an expression cannot iterate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class EachEntry:
    """The entries of a list, identified by the field `key`: none may be added, removed or moved, and each may change
    only as the rest of the path says."""

    key: str


@dataclass(frozen=True, slots=True)
class OwnEntries:
    """The entries of a list whose field `key` has one of `values`: they may be added, changed and removed. The others
    must stay as they are, in the same order. The path ends here."""

    key: str
    values: tuple[str, ...]


Segment: TypeAlias = str | EachEntry | OwnEntries
FieldPath: TypeAlias = tuple[Segment, ...]
"""The way from an object to a field that may change. Everything below the field may change, too."""

_WRITTEN_BY_THE_API_SERVER = ("generation", "managedFields", "resourceVersion")
"""The fields of metadata that every update changes."""
_SET_AT_CREATION = (
    ("apiVersion", "kind"),
    ("creationTimestamp", "generation", "managedFields", "name", "namespace", "uid"),
)
"""The fields of a new object that identify it or that the API server sets: those of the object, and those of its
metadata."""


class _Tree(dict["Segment", "_Tree | None"]):
    """The paths as a tree; None is a field that may change."""

    def add(self, path: FieldPath) -> None:
        """Add one path."""
        first, *rest = path
        if not rest:
            self[first] = None
            return
        below = self.setdefault(first, _Tree())
        assert below is not None, f"{first} may change already"
        below.add(tuple(rest))

    @property
    def is_of_list(self) -> bool:
        """Whether the tree describes a list."""
        return any(not isinstance(segment, str) for segment in self)


def unchanged_cel(paths: Iterable[FieldPath]) -> str:
    """Returns an expression that is true if an update changes no field but those at `paths`, and metadata that every
    update changes."""
    return " && ".join(_unchanged("dyn(object)", "dyn(oldObject)", _tree_of(paths), "", depth=0))


def created_cel(paths: Iterable[FieldPath]) -> str:
    """Returns an expression that is true if a new object has no fields but those at `paths`, and those that identify it
    or that the API server sets. Empty fields do not count, because the API server adds some."""
    tree = _tree_of(paths)
    of_object, of_metadata = _SET_AT_CREATION
    metadata = tree["metadata"]
    assert metadata is not None
    rest = _Tree({segment: below for segment, below in tree.items() if segment != "metadata"})
    checks = [
        *_contains_only("dyn(object)", rest, (*of_object, "metadata"), 0),
        *_contains_only(_below("dyn(object)", "metadata", metadata), metadata, of_metadata, 1),
    ]
    return " && ".join(checks)


def _tree_of(paths: Iterable[FieldPath]) -> _Tree:
    tree = _Tree({"metadata": _Tree()})
    for path in paths:
        tree.add(path)
    return tree


def _unchanged(now: str, was: str, tree: _Tree, name: str, depth: int) -> Iterator[str]:
    """Yields the conditions under which `now` and `was` differ only in the fields of the tree."""
    if tree.is_of_list:
        yield from _unchanged_list(now, was, tree, depth)
        return
    ignored = _WRITTEN_BY_THE_API_SERVER if (depth, name) == (1, "metadata") else ()
    names = _list_cel([*(segment for segment in tree if isinstance(segment, str)), *ignored])
    key = f"k{depth}"
    yield f"{now}.all({key}, {key} in {names} || ({key} in {was} && {now}[{key}] == {was}[{key}]))"
    yield f"{was}.all({key}, {key} in {names} || {key} in {now})"
    for segment, below in tree.items():
        if below is not None:
            assert isinstance(segment, str)
            yield from _unchanged(_below(now, segment, below), _below(was, segment, below), below, segment, depth + 1)


def _unchanged_list(now: str, was: str, tree: _Tree, depth: int) -> Iterator[str]:
    [(segment, below)] = tree.items()
    entry, old = f"e{depth}", f"o{depth}"
    match segment:
        case OwnEntries(key, values):
            others = f"filter({entry}, !({entry}.{key} in {_list_cel(values)}))"
            yield f"{now}.{others} == {was}.{others}"
        case EachEntry(key):
            assert below is not None
            keys = f"map({entry}, {entry}.{key})"
            yield f"{now}.{keys} == {was}.{keys}"
            inner = " && ".join(_unchanged(entry, old, below, "", depth + 1))
            yield f"{now}.all({entry}, {was}.exists({old}, {old}.{key} == {entry}.{key} && {inner}))"


def _contains_only(now: str, tree: _Tree, more: tuple[str, ...], depth: int) -> Iterator[str]:
    """Yields the conditions under which `now` has no fields but those of the tree and those in `more`."""
    if tree.is_of_list:  # a new object has no entries that can be compared
        yield f"size({now}) == 0"
        return
    key = f"k{depth}"
    names = _list_cel([*(segment for segment in tree if isinstance(segment, str)), *more])
    yield f"{now}.all({key}, {key} in {names} || {now}[{key}] == null || {now}[{key}] == {{}})"
    for segment, below in tree.items():
        if below is not None:
            assert isinstance(segment, str)
            yield from _contains_only(_below(now, segment, below), below, (), depth + 1)


def _below(parent: str, name: str, tree: _Tree) -> str:
    """Returns an expression for a field, which is empty if the field is absent."""
    plain = parent.removesuffix(".orValue({})")
    return f"{plain}[?{_quote(name)}].orValue({'[]' if tree.is_of_list else '{}'})"


def _list_cel(names: Iterable[str]) -> str:
    return f"[{', '.join(map(_quote, names))}]"


def _quote(name: str) -> str:
    """Returns a string literal of CEL. Names of fields, labels and annotations need no escapes."""
    return f"'{name}'"
