"""Every field of a kind as an API server serves it (OpenAPI v3), and an object in which one of them is different."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
Schema = dict[str, Any]
Path = tuple[str | int, ...]
"""The way to a field; 0 is the first entry of a list."""

WRITTEN_BY_THE_SERVER = ("managedFields", "generation", "resourceVersion")
NEW_KEY = "adversary.example.com"
TEXTS = (
    "adversary",
    "adversary.example.com/adversary",
    "100m",
    "10.1.2.3",
    "https://adversary.example.com",
    "Exists",
    "v1",
    "1",
)


@dataclass(frozen=True)
class Variant:
    """The object with one field added, changed or removed."""

    path: Path
    how: str
    document: Any

    def __str__(self) -> str:
        return f"{self.how} {'.'.join(map(str, self.path))}"


@dataclass
class ServedKind:
    """The schema of one kind."""

    definitions: dict[str, Schema]
    root: Schema = field(default_factory=dict)

    @classmethod
    def of(cls, document: Schema, group: str, version: str, kind: str) -> ServedKind:
        """The kind in the document of a group and version."""
        definitions = document["components"]["schemas"]
        own = {"group": group, "version": version, "kind": kind}
        [root] = [result for result in definitions.values() if own in result.get("x-kubernetes-group-version-kind", ())]
        return cls(definitions, root)

    def _resolved(self, schema: Schema) -> Schema:
        for part in (schema, *schema.get("allOf", ())):
            if "$ref" in part:
                return {**self.definitions[part["$ref"].rpartition("/")[2]], "ref": part["$ref"]}
        return schema

    def leaves(self) -> Iterator[tuple[Path, Schema]]:
        """Each field below which there is no other, and each list."""
        for path, schema in self._leaves(self.root, (), frozenset()):
            if path[:2] not in [("metadata", name) for name in WRITTEN_BY_THE_SERVER]:
                yield path, schema

    def _leaves(self, schema: Schema, path: Path, observation: frozenset[str]) -> Iterator[tuple[Path, Schema]]:
        schema = self._resolved(schema)
        reference = schema.get("ref", "")
        if reference and reference in observation:
            return
        observation = observation | {reference} if reference else observation
        if schema.get("properties"):
            for name, below in schema["properties"].items():
                yield from self._leaves(below, (*path, name), observation)
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from self._leaves(schema["additionalProperties"], (*path, NEW_KEY), observation)
        elif "items" in schema:
            yield path, schema
            yield from self._leaves(schema["items"], (*path, 0), observation)
        else:
            yield path, schema

    def variants(self, document: Object, path: Path, schema: Schema) -> Iterator[Variant]:
        """The document with the field removed, if it has it; and with each value that may be valid for the field."""
        present = value_at(document, path)
        for existing in _existing_keys(document, path):
            yield Variant(existing, "remove", without(document, existing))
            if existing != path:
                for value in self._values(schema, value_at(document, existing))[:2]:
                    yield Variant(existing, "change", self._with(self.root, document, existing, value))
        how = "add" if present is None else "change"
        for value in self._values(schema, present):
            yield Variant(path, how, self._with(self.root, document, path, value))

    def _values(self, schema: Schema, present: Any) -> list[Any]:
        if "items" in schema:
            return [[*(present or []), self._example(schema["items"])]]
        described = re.findall(r"\b[A-Z][a-z]+[A-Za-z]*\b", schema.get("description", ""))
        values: list[Any]
        match schema.get("type"):
            case "boolean":
                values = [True, False]
            case "integer" | "number":
                values = [1, 2, 0, 5, 30, 100, 3600]
            case "string" if schema.get("format") == "date-time":
                values = ["2030-01-01T00:00:00Z", "2030-01-01T00:00:00.000000Z"]
            case "string" if schema.get("format") == "byte":
                values = ["YWR2ZXJzYXJ5"]
            case "string":
                values = schema.get("enum") or [*TEXTS, *dict.fromkeys(described)][:20]
            case "object":
                values = [{}, {NEW_KEY: "adversary"}]
            case _:
                values = ["100m", 1, "adversary", {}]
        return [value for value in values if value != present]

    def _example(self, schema: Schema) -> Any:
        schema = self._resolved(schema)
        if "default" in schema:
            return schema["default"]
        if "properties" in schema or schema.get("type") == "object":
            return {
                name: self._example(below)
                for name, below in schema.get("properties", {}).items()
                if name in schema.get("required", ())
            }
        if "items" in schema:
            return [self._example(schema["items"])]
        return self._values(schema, None)[0]

    def _with(self, schema: Schema, present: Any, path: Path, value: Any) -> Any:
        """`present` with the value at the path, and what is required on the way."""
        if not path:
            return value
        schema, head, rest = self._resolved(schema), path[0], path[1:]
        if isinstance(head, int):
            entries = list(present or [self._example(schema["items"])])
            return [self._with(schema["items"], entries[0], rest, value), *entries[1:]]
        fields = dict(present if isinstance(present, dict) else self._example(schema))
        below = schema.get("properties", {}).get(head) or schema.get("additionalProperties") or {}
        fields[head] = self._with(below if isinstance(below, dict) else {}, fields.get(head), rest, value)
        return fields


def value_at(document: Any, path: Path) -> Any:
    """The value, or None where there is none."""
    for head in path:
        if isinstance(head, int):
            document = document[0] if isinstance(document, list) and document else None
        else:
            document = document.get(head) if isinstance(document, dict) else None
    return document


def without(document: Any, path: Path) -> Any:
    """The document without the field."""
    head, rest = path[0], path[1:]
    if isinstance(head, int):
        return [without(document[0], rest), *document[1:]] if rest else document[1:]
    if not rest:
        return {name: value for name, value in document.items() if name != head}
    return {**document, head: without(document[head], rest)}


def _existing_keys(document: Any, path: Path) -> list[Path]:
    """The path if the document has the field; of a map, the first key that it has."""
    if path and path[-1] == NEW_KEY:
        above = value_at(document, path[:-1])
        return [(*path[:-1], next(iter(above)))] if isinstance(above, dict) and above else []
    return [path] if value_at(document, path) is not None else []
