"""docs/reference/json-schemas.md: the documents that machines read, field by field at the top."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_HEAD = """# JSON Schemas

What `-o json` and `-o yaml` print has a schema, in the files named here. Every document carries `apiVersion:
trimtab.dev/v1alpha1` and its `kind`; every field is always there. Fields may be added within a version, none is taken
away or changes its meaning.
"""
_FILES = "../../deploy/schemas"


def page(reports: Mapping[str, type[msgspec.Struct]], printed_by: Mapping[str, str]) -> str:
    """`reports`: file → what is published in it; `printed_by`: the command."""
    parts = [_HEAD]
    for name, report in reports.items():
        parts += _report(name, report, printed_by[name])
    policy = f"[podpolicy.schema.json]({_FILES}/podpolicy.schema.json)"
    parts += [
        "## PodPolicy\n",
        f"What people write: {policy}; field by field in [the policy language](policy-language.md).\n",
    ]
    return "\n".join(parts)


def _report(name: str, report: type[msgspec.Struct], command: str) -> Iterator[str]:
    file = f"{name}.schema.json"
    yield f"## {report.__name__}\n"
    yield f"Printed by `{command} -o json`; [{file}]({_FILES}/{file}).\n"
    yield "| field | type |"
    yield "|---|---|"
    schema = msgspec.json.schema(report)
    fields: Mapping[str, Any] = schema["$defs"][report.__name__]["properties"]
    for field, found in fields.items():
        yield f"| `{field}` | {_type(found)} |"
    yield ""


def _type(found: Mapping[str, Any]) -> str:
    if "$ref" in found:
        return f"`{found['$ref'].rpartition('/')[2]}`"
    if "anyOf" in found:
        return " or ".join(map(_type, found["anyOf"]))
    if found.get("type") == "array":
        return f"list of {_type(found.get('items', {}))}"
    if found.get("type") == "object" and isinstance(found.get("additionalProperties"), dict):
        return f"map to {_type(found['additionalProperties'])}"
    return str(found.get("type", "any"))
