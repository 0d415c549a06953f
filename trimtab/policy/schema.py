"""How does an editor, or an API server, know the policy language?

The JSON Schema and the CustomResourceDefinition, both generated from the types of `document`.
"""

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from trimtab.cluster.yaml_parser import Path
from trimtab.policy import status
from trimtab.policy.podpolicy import API_VERSION, KIND, Spec

GROUP, VERSION = API_VERSION.split("/")
PLURAL = "podpolicies"

Schema = dict[str, Any]

_NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 63}


@cache
def spec_schema() -> Schema:
    """The schema of `spec`, references written out, without what only pydantic reads."""
    raw = TypeAdapter(Spec).json_schema(by_alias=True)
    return _clean(raw, raw.get("$defs", {}))


def _clean(schema: Schema, definitions: Schema) -> Schema:
    if "$ref" in schema:
        found = _clean(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        own = {k: v for k, v in schema.items() if k == "description" or (k == "default" and _fillable(v))}
        return {**found, **own}
    choices = [c for c in schema.get("anyOf", ()) if c.get("type") != "null"]
    if len(choices) == 1:
        rest = {k: v for k, v in schema.items() if k not in ("anyOf", "default", "title")}
        return {**_clean(choices[0], definitions), **_clean(rest, definitions)}
    kept = {k: v for k, v in schema.items() if k not in ("$defs", "title")}
    if not _fillable(kept.get("default")):
        kept.pop("default", None)
    if "const" in kept:
        value = kept.pop("const")
        kept |= {"enum": [value]}
    for key in ("properties",):
        if key in kept:
            kept[key] = {name: _clean(part, definitions) for name, part in kept[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _clean(kept[key], definitions)
    if "description" in kept:
        kept["description"] = " ".join(str(kept["description"]).split())
    return kept


def _fillable(default: object) -> bool:
    """May an API server write this default into what users store? A whole object would carry our own field names."""
    return default not in (None, [], ()) and not isinstance(default, dict)


def json_schema() -> Schema:
    """One PodPolicy document, for editors (yaml-language-server) and `trimtab policies schema`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://trimtab.dev/schemas/{KIND}-{VERSION}.json",
        "title": KIND,
        "description": "What may be done to pods when they are admitted, and when.",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"enum": [API_VERSION]},
            "kind": {"enum": [KIND]},
            "metadata": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": _NAME},
            },
            "spec": spec_schema(),
            "status": {"type": "object"},
        },
    }


def fields_at(path: Path) -> tuple[str, ...]:
    """The names known where the last step of this path stands; empty where any name may stand."""
    schema: Schema = {"properties": {"spec": spec_schema(), "metadata": {"properties": {"name": {}}}}}
    for step in path[:-1]:
        if isinstance(step, int):
            schema = schema.get("items", {})
        else:
            extra = schema.get("additionalProperties")
            schema = schema.get("properties", {}).get(step) or (extra if isinstance(extra, dict) else {})
    return tuple(schema.get("properties", ()))


def crd() -> Schema:
    """The CustomResourceDefinition. Unknown fields are kept, so that our own webhook can name them."""
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
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(),
                    "schema": {"openAPIV3Schema": _structural_root()},
                }
            ],
        },
    }


def _columns() -> list[Schema]:
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
    return {
        "type": "object",
        "description": "What may be done to pods when they are admitted, and when.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _structural(spec_schema()),
            "status": status.schema(),
        },
    }


def _structural(schema: Schema) -> Schema:
    """As the API server wants a schema: unknown fields preserved, no `additionalProperties: false`."""
    kept = {k: v for k, v in schema.items() if not (k == "additionalProperties" and v is False)}
    if "properties" in kept:
        kept["properties"] = {name: _structural(part) for name, part in kept["properties"].items()}
        kept["x-kubernetes-preserve-unknown-fields"] = True
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _structural(kept[key])
    if kept.get("x-kubernetes-int-or-string"):
        kept.pop("type", None)
    return kept
