"""docs/reference/json-schemas.md: the documents that machines read, field by field at the top."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_HEAD = """# JSON Schemas

The documents that `-o json` and `-o yaml` print have schemas, in the files that this page names. Every document has
`apiVersion: trimtab.dev/v1alpha1` and a `kind`, and every field is always present. Within a version, fields may be
added, but no field is removed or changes its meaning.
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
        f"The schema of policies: {policy}. [The policy language](policy-language.md) describes every field.\n",
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
        yield f"| `{field}` | {type_of(found)} |"
    yield ""


def type_of(found: Mapping[str, Any]) -> str:
    """The type of a field in words, from its schema."""
    if "$ref" in found:
        return f"`{found['$ref'].rpartition('/')[2]}`"
    if "anyOf" in found:
        return " or ".join(map(type_of, found["anyOf"]))
    if found.get("type") == "array":
        return f"list of {type_of(found.get('items', {}))}"
    if found.get("type") == "object" and isinstance(found.get("additionalProperties"), dict):
        return f"map to {type_of(found['additionalProperties'])}"
    return str(found.get("type", "any"))
