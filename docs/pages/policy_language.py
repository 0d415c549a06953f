"""docs/reference/policy-language.md: every field of a PodPolicy, each described once.

Many objects have the fields of another one: all exceptions under `match.exclude` those of `match`, the rule of memory
that of cpu. The page describes the first of them, and the others refer to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from docs.pages.field_docs import describe_type, describe_value
from trimtab.policy.schema import spec_schema

Schema = Mapping[str, Any]
_HEAD = """\
# The policy language

A `PodPolicy` document (`apiVersion: trimtab.dev/v1alpha1`), field by field. An amount is a Kubernetes quantity, such
as `500m` or `1Gi`, or a percentage, such as `25%`. `trimtab explain FIELD` prints the text of one field, such as
`spec.match.owners`.
"""
_SHARED = "required"
"""The field that every action has."""
_QUANTITY = "whole number or text"
_MIN_ALIKE = 3
"""An object with fewer fields is described again, because that is as short as a reference."""


def page() -> str:
    """Returns the page's text."""
    described: dict[str, Schema] = {}
    lines = [_HEAD]
    for path, schema in _iterate_objects("spec", spec_schema()):
        lines += _describe_object(path, schema, described)
    return "\n".join(lines) + "\n"


def find_heading(path: str) -> str:
    """Returns the anchor of the heading under which the page describes a field."""
    headings = _find_headings()
    while path not in headings:
        path = path.rpartition(".")[0].rstrip("[]{}")
    return _anchor(path)


@cache
def _find_headings() -> frozenset[str]:
    return frozenset(path for path, _ in _iterate_objects("spec", spec_schema()))


def inner_of(schema: Schema) -> tuple[str, Schema]:
    """Returns what a list or a map contains, with the mark for it in a path: `[]` or `{}`; else the schema itself."""
    values = schema.get("additionalProperties")
    if schema.get("type") == "array":
        mark, inner = inner_of(schema.get("items", {}))
        return f"[]{mark}", inner
    return ("{}", values) if isinstance(values, dict) and "properties" in values else ("", schema)


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9-]", "", path.lower())


def _iterate_objects(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yields (path, schema) of each object that has a heading, the outer ones first: no object inside one whose fields
    another has too."""
    seen: dict[str, Schema] = {}
    waiting = [(path, schema)]
    while waiting:
        path, schema = waiting.pop(0)
        yield path, schema
        mark, inner = inner_of(schema)
        fields = inner["properties"]
        if _find_alike(fields, seen) is None:
            seen[path] = fields
            waiting[:0] = [
                (f"{path}{mark}.{name}", field) for name, field in fields.items() if "properties" in inner_of(field)[1]
            ]


def _find_alike(fields: Schema, earlier: Mapping[str, Schema]) -> str | None:
    """Returns the path of the first object that has all of these fields with the same meaning."""
    if len(fields) < _MIN_ALIKE:
        return None
    for path, others in earlier.items():
        if all(others.get(name) == field for name, field in fields.items()):
            return path
    return None


def _describe_object(path: str, schema: Schema, described: dict[str, Schema]) -> Iterator[str]:
    """Yields the section of an object, and adds its fields to those that are described."""
    _, inner = inner_of(schema)
    fields = inner["properties"]
    depth = path.count(".") + 2
    yield f"{'#' * min(depth, 4)} `{path}`\n"
    kind = "" if schema.get("type") == "object" and inner is schema else f"*{describe_type(schema)}*. "
    text = f"{kind}{schema.get('description', '')}".strip()
    alike = _find_alike(fields, described)
    if alike is not None:
        without = [name for name in described[alike] if name not in fields]
        but = f" but {', '.join(f'`{name}`' for name in without)}" if without else ""
        yield f"{text} It has the fields of [`{alike}`](#{_anchor(alike)}){but}.\n".lstrip()
        return
    described[path] = fields
    if text:
        yield text + "\n"
    is_action = path.count(".") == 2 and path.startswith("spec.actions.")
    shown = [
        _describe_field(name, field)
        for name, field in fields.items()
        if "properties" not in inner_of(field)[1] and not (is_action and name == _SHARED)
    ]
    if path == "spec.actions":
        action = next(iter(fields.values()))
        shown.append(_describe_field(_SHARED, action["properties"][_SHARED]).replace(":", ", in every action:", 1))
    yield from shown
    yield ""


def _describe_field(name: str, schema: Schema) -> str:
    default = schema.get("default")
    value = "" if default in (None, "") else f", default `{describe_value(default)}`"
    kind = describe_type(dict(schema)).replace(_QUANTITY, "amount")
    return f"- `{name}` ({kind}{value}): {schema.get('description', '')}"
