"""Models which parts of a pod survive serialization, and when two pods are equal to the API server.

A webhook's patch is applied to JSON, after which empty maps and lists are dropped. The server compares pods
semantically (apimachinery `equality.Semantic`): quantities by value, and empty maps and lists like absent ones.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import FieldInfo, fields

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, ApiObject, LabelSelector, UnsetType, change
from trimtab.cluster.api.pod import Pod, PodAffinity

S = TypeVar("S", bound=ApiObject)

_QUANTITY_FIELDS = frozenset({"requests", "limits", "overhead"})
_UNCHANGED_FIELDS = frozenset({"volumes", "status", "claims", "scheduling_gates", "resource_claims"})
"""The fields that no step changes, or that Trimtab does not decode."""


_SCALAR_TYPES = (str, int, bool, type(None), UnsetType)
"""The types of fields without nested values, as most fields are."""


def round_trip(pod: S) -> S:
    """Returns the object as JSON preserves it: empty maps and lists become absent; empty objects (`affinity: {}`)
    stay."""
    return _rebuild(pod, canonical=False)


def to_canonical(pod: S) -> S:
    """Returns the object as `round_trip` does, but with every quantity in the notation in which the server stores it.
    Equal pods give equal results."""
    return _rebuild(pod, canonical=True)


def is_semantically_equal(a: Pod, b: Pod) -> bool:
    """Returns whether the API server treats both pods as equal: it compares quantities by value, and empty maps and
    lists like absent ones."""
    return a is b or a == b or to_canonical(a) == to_canonical(b)


def _rebuild(shape: S, *, canonical: bool) -> S:
    if isinstance(shape, LabelSelector | PodAffinity):  # these types do not distinguish empty from absent
        return shape
    changed_fields = {}
    for name in shape.__struct_fields__:
        old = getattr(shape, name)
        if type(old) in _SCALAR_TYPES or name in _UNCHANGED_FIELDS:
            continue
        absent = old in ({}, ()) and name in _optional_fields(type(shape))
        new = UNSET if absent else _rebuild_value(name, old, canonical=canonical)
        if new is not old:
            changed_fields[name] = new
    return change(shape, **changed_fields) if changed_fields else shape


def _rebuild_value(name: str, value: Any, *, canonical: bool) -> Any:
    match value:
        case ApiObject():
            return _rebuild(value, canonical=canonical)
        case tuple():
            items = tuple(_rebuild_value("", item, canonical=canonical) for item in value)
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        case dict() if canonical and name in _QUANTITY_FIELDS:
            return {k: quantity.canonical_form(v) for k, v in value.items()}
    return value


@lru_cache
def _optional_fields(shape: type[ApiObject]) -> frozenset[str]:
    """Returns the names of this type's maps and lists for which absent and empty differ. Other maps and lists are empty
    in either case.

    For example, absent and empty `matchExpressions` differ in a label selector, but not in a node selector term.
    """
    return frozenset(field.name for field in _fields(shape) if field.default is UNSET)


def describe_changes(before: Pod, after: Pod) -> tuple[str, ...]:
    """Returns a description of each changed field: `spec.overhead.cpu: 100m`, `… 1 → 2`, `… removed, was 1`."""
    old, new = (dict(_flatten("", _to_plain(to_canonical(pod)))) for pod in (before, after))
    return tuple(
        _format_change(path, old.get(path), new.get(path))
        for path in [*new, *(p for p in old if p not in new)]
        if old.get(path) != new.get(path)
    )


def _format_change(path: str, old: str | None, new: str | None) -> str:
    if new is None:
        return f"{path} removed" + (f", was {old}" if old else "")
    if old is None:
        return f"{path}: {new}" if new else f"{path} added"
    return f"{path}: {old} → {new}"


def _flatten(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{path}.{key}" if path else key, item)
    elif isinstance(value, list):
        for item in value:
            yield from _flatten_item(path, item)
    else:
        yield path, str(value)


def _flatten_item(path: str, item: Any) -> Iterator[tuple[str, str]]:
    """Yields (path, value) for each leaf of a list item. Containers are identified by their names, and items without a
    name (such as tolerations) by their content."""
    if isinstance(item, dict) and "name" in item:
        yield from _flatten(f"{path}[{item['name']}]", {k: v for k, v in item.items() if k != "name"} or "")
    else:
        yield f"{path}[{msgspec.json.encode(item).decode()}]", ""


def _to_plain(value: Any) -> Any:
    """Returns the value as JSON, without fields that have their default. (msgspec compares defaults by identity; this
    compares them by value.)"""
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    if not isinstance(value, ApiObject):
        return value
    values = ((field, getattr(value, field.name)) for field in _fields(type(value)))
    return {f.encode_name: _to_plain(v) for f, v in values if v is not UNSET and v != f.default}


@lru_cache
def _fields(shape: type[ApiObject]) -> tuple[FieldInfo, ...]:
    return fields(shape)
