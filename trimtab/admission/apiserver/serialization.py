"""What of a pod survives being written and read, and when are two pods the same to the API server?

A webhook's answer is applied to JSON: empty maps and lists are gone afterwards. And the server compares pods by
meaning (apimachinery `equality.Semantic`): quantities by value, empty as absent.
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

_QUANTITIES = frozenset({"requests", "limits", "overhead"})
_RAW = frozenset({"volumes", "status", "claims", "scheduling_gates", "resource_claims"})
"""Nothing here is changed by anybody, or it is not ours to read."""


_PLAIN = (str, int, bool, type(None), UnsetType)
"""Most fields: nothing to look into."""


def sent(pod: S) -> S:
    """As it comes back from JSON: empty maps and lists are absent; empty objects (`affinity: {}`) stay."""
    return _rebuilt(pod, canonical=False)


def canonical(pod: S) -> S:
    """`sent`, with every quantity in the one notation the server stores: equal pods are equal here."""
    return _rebuilt(pod, canonical=True)


def same(a: Pod, b: Pod) -> bool:
    """Equal in the API server's eyes: quantities by value, empty as absent."""
    return a is b or a == b or canonical(a) == canonical(b)


def _rebuilt(shape: S, *, canonical: bool) -> S:
    if isinstance(shape, LabelSelector | PodAffinity):  # empty and absent are one in these shapes
        return shape
    found = {}
    for name in shape.__struct_fields__:
        old = getattr(shape, name)
        if type(old) in _PLAIN or name in _RAW:
            continue
        absent = old in ({}, ()) and name in _optional(type(shape))
        new = UNSET if absent else _value(name, old, canonical=canonical)
        if new is not old:
            found[name] = new
    return change(shape, **found) if found else shape


def _value(name: str, value: Any, *, canonical: bool) -> Any:
    match value:
        case ApiObject():
            return _rebuilt(value, canonical=canonical)
        case tuple():
            items = tuple(_value("", item, canonical=canonical) for item in value)
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        case dict() if canonical and name in _QUANTITIES:
            return {k: quantity.canonical(v) for k, v in value.items()}
    return value


@lru_cache
def _optional(shape: type[ApiObject]) -> frozenset[str]:
    """Maps and lists whose absence this shape tells from emptiness; others decode to empty either way.

    A selector's `matchExpressions` is of the one kind, a node term's of the other.
    """
    return frozenset(field.name for field in _fields(shape) if field.default is UNSET)


def changes(before: Pod, after: Pod) -> tuple[str, ...]:
    """What became different, a phrase per field: `spec.overhead.cpu: 100m`, `… 1 → 2`, `… removed, was 1`."""
    old, new = (dict(_leaves("", _plain(canonical(pod)))) for pod in (before, after))
    return tuple(
        _phrase(path, old.get(path), new.get(path)) for path in [*new, *(p for p in old if p not in new)]
        if old.get(path) != new.get(path)
    )  # fmt: skip


def _phrase(path: str, old: str | None, new: str | None) -> str:
    if new is None:
        return f"{path} removed" + (f", was {old}" if old else "")
    if old is None:
        return f"{path}: {new}" if new else f"{path} added"
    return f"{path}: {old} → {new}"


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, item)
    elif isinstance(value, list):
        for item in value:
            yield from _item(path, item)
    else:
        yield path, str(value)


def _item(path: str, item: Any) -> Iterator[tuple[str, str]]:
    """Containers by their name; what has none (a toleration, an expression) is its own name."""
    if isinstance(item, dict) and "name" in item:
        yield from _leaves(f"{path}[{item['name']}]", {k: v for k, v in item.items() if k != "name"} or "")
    else:
        yield f"{path}[{msgspec.json.encode(item).decode()}]", ""


def _plain(value: Any) -> Any:
    """As JSON, without the fields that are at their default (msgspec tells a default by identity, we by value)."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if not isinstance(value, ApiObject):
        return value
    said = ((field, getattr(value, field.name)) for field in _fields(type(value)))
    return {f.encode_name: _plain(v) for f, v in said if v is not UNSET and v != f.default}


@lru_cache
def _fields(shape: type[ApiObject]) -> tuple[FieldInfo, ...]:
    return fields(shape)
