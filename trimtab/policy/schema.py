"""Generates the JSON Schema and the CustomResourceDefinition of PodPolicy from the types of `podpolicy`."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from trimtab.cluster.yaml_parser import Path
from trimtab.policy import status
from trimtab.policy.actions.request_fields import PlainRequest, RequestRule, ResourceRequestRule
from trimtab.policy.conditions import Conditions, Match
from trimtab.policy.field_types import described_fields
from trimtab.policy.podpolicy import Spec
from trimtab.policy.policy_kind import API_VERSION, KIND

GROUP, VERSION = API_VERSION.split("/")
PLURAL = "podpolicies"

Schema = dict[str, Any]

_NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 63}


@cache
def spec_schema() -> Schema:
    """Returns the JSON Schema of `spec`, with all references resolved and without the keys that only pydantic uses."""
    with described_fields():
        raw = TypeAdapter(Spec).json_schema(by_alias=True)
        for subclass, base in ((Match, Conditions), (ResourceRequestRule, RequestRule), (PlainRequest, RequestRule)):
            _add_inherited_descriptions(raw["$defs"][subclass.__name__], base)
    return _resolve_and_clean(raw, raw.get("$defs", {}))


def _add_inherited_descriptions(schema: Schema, base: type) -> None:
    """Adds to the schema the descriptions of fields that a class inherits, because pydantic reads only the docstrings
    of a class's own fields."""
    inherited = TypeAdapter(base).json_schema(by_alias=True)["properties"]
    for name, part in schema["properties"].items():
        text = inherited.get(name, {}).get("description")
        if text and "description" not in part:
            part["description"] = text


def _resolve_and_clean(schema: Schema, definitions: Schema) -> Schema:
    if "$ref" in schema:
        target = _resolve_and_clean(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        # JSON Schema draft 2020-12 allows keywords next to `$ref`; an OpenAPI v3 schema of a CRD has no references.
        own = {k: v for k, v in schema.items() if k == "description" or (k == "default" and _is_storable_default(v))}
        return {**target, **own}
    # pydantic writes an optional field as a choice with null; the API server has no null in a structural schema.
    choices = [c for c in schema.get("anyOf", ()) if c.get("type") != "null"]
    if len(choices) == 1:
        rest = {k: v for k, v in schema.items() if k not in ("anyOf", "default", "title")}
        return {**_resolve_and_clean(choices[0], definitions), **_resolve_and_clean(rest, definitions)}
    cleaned = {k: v for k, v in schema.items() if k not in ("$defs", "title")}
    if not _is_storable_default(cleaned.get("default")):
        cleaned.pop("default", None)
    if "const" in cleaned:
        value = cleaned.pop("const")
        # A structural schema has `enum` and no `const`.
        cleaned |= {"enum": [value]}
    for key in ("properties",):
        if key in cleaned:
            cleaned[key] = {name: _resolve_and_clean(part, definitions) for name, part in cleaned[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(cleaned.get(key), dict):
            cleaned[key] = _resolve_and_clean(cleaned[key], definitions)
    if "description" in cleaned:
        cleaned["description"] = " ".join(str(cleaned["description"]).split())
    return cleaned


def _is_storable_default(default: object) -> bool:
    """Returns whether an API server may write this default into stored objects. A default that is an object is left
    out, because it would contain Python field names."""
    return default not in (None, [], ()) and not isinstance(default, dict)


def json_schema() -> Schema:
    """Returns the schema of a PodPolicy document, for editors (yaml-language-server) and `trimtab policies schema`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://trimtab.dev/schemas/{KIND}-{VERSION}.json",
        "title": KIND,
        "description": "A policy that changes pods when they are admitted.",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"enum": [API_VERSION]},
            "kind": {"enum": [KIND]},
            "metadata": {"type": "object", "required": ["name"], "properties": {"name": _NAME}},
            "spec": spec_schema(),
            "status": {"type": "object"},
        },
    }


def fields_at(path: Path) -> tuple[str, ...]:
    """Returns the field names that are valid at the end of this path, or an empty tuple if any name is."""
    schema: Schema = {"properties": {"spec": spec_schema(), "metadata": {"properties": {"name": {}}}}}
    for step in path[:-1]:
        if isinstance(step, int):
            schema = schema.get("items", {})
        else:
            extra = schema.get("additionalProperties")
            schema = schema.get("properties", {}).get(step) or (extra if isinstance(extra, dict) else {})
    return tuple(schema.get("properties", ()))


def build_crd() -> Schema:
    """Returns the CustomResourceDefinition. It preserves unknown fields, so that Trimtab's webhook can report them by
    name."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}", "labels": {"app.kubernetes.io/name": "trimtab"}},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["pp"],
                "categories": ["trimtab"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    # Only the watchdog may write the status, and writing it does not change the generation.
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _printer_columns(),
                    "schema": {"openAPIV3Schema": _structural_root()},
                }
            ],
        },
    }


def _printer_columns() -> list[Schema]:
    columns = (
        ("Mode", "string", ".spec.mode", 0),
        ("Priority", "integer", ".spec.priority", 0),
        ("Rollout", "string", ".spec.rollout", 0),
        ("Matched", "integer", ".status.matched", 0),
        ("Changed", "integer", ".status.changed", 0),
        ("Unpatched", "integer", ".status.unpatched", 0),
        ("Set-To-Warn", "string", '.status.conditions[?(@.type=="HarmBrake")].status', 0),
        ("Skipped", "integer", ".status.skipped", 1),
        ("Overruled", "integer", ".status.overruled", 1),
        ("Error", "string", ".status.lastError", 1),
        ("Description", "string", ".spec.description", 1),
        ("Age", "date", ".metadata.creationTimestamp", 0),
    )
    return [{"name": n, "type": t, "jsonPath": p, "priority": r} for n, t, p, r in columns]


def _structural_root() -> Schema:
    spec = _structural(spec_schema())
    # kubectl prints a share as it is stored: the default reads as one that is written.
    spec["properties"]["rollout"] = {**spec["properties"]["rollout"], "default": "100%"}
    return {
        "type": "object",
        "description": "A policy that changes pods when they are admitted.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status.status_schema(),
        },
    }


def _structural(schema: Schema) -> Schema:
    """Returns the schema in the form that the API server requires (a structural schema): unknown fields are preserved,
    and `additionalProperties: false` is left out."""
    structural = {k: v for k, v in schema.items() if not (k == "additionalProperties" and v is False)}
    if "properties" in structural:
        structural["properties"] = {name: _structural(part) for name, part in structural["properties"].items()}
        # The webhook reports an unknown field with the nearest valid name; pruning would remove the field silently.
        structural["x-kubernetes-preserve-unknown-fields"] = True
    for key in ("items", "additionalProperties"):
        if isinstance(structural.get(key), dict):
            structural[key] = _structural(structural[key])
    # apiextensions refuses a structural schema with both (`x-kubernetes-int-or-string` forbids `type`).
    if structural.get("x-kubernetes-int-or-string"):
        structural.pop("type", None)
    return structural
