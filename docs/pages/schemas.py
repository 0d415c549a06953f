"""docs/reference/json-schemas.md: the documents that machines read, field by field at the top."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

import trimtab.cli
from docs.pages.product_modules import import_modules
from trimtab.cli.output import ReportPart

_HEAD = """# JSON Schemas

The documents that `-o json` and `-o yaml` print have JSON Schemas. Every document has
`apiVersion: trimtab.dev/v1alpha1` and a `kind`; this page names its other fields at the top. All of them are always
present. Within a version, fields may be added, but none is removed or changes its meaning. The schema has the types,
and `trimtab explain FIELD` or `trimtab explain COMMAND.FIELD` says what a field means.
"""
_FILES = "../../deploy/schemas"
_COMMON_FIELDS = {"apiVersion", "kind"}


def list_reports() -> dict[str, type[ReportPart]]:
    """Name of the schema's file → report, for all reports in trimtab.cli. A report says in `printed_by` which command
    prints it; the file is named after its `kind`."""
    for _ in import_modules(trimtab.cli):
        pass
    reports = [one for one in _subclasses(ReportPart) if "printed_by" in vars(one)]
    return dict(sorted((re.sub("(?<!^)(?=[A-Z])", "-", kind_of(one)).lower(), one) for one in reports))


def kind_of(report: type[ReportPart]) -> str:
    """Returns the `kind` of the document that a report is; an empty text for what is only a part of one."""
    kinds = [one.default for one in msgspec.structs.fields(report) if one.name == "kind"]
    return kinds[0] if kinds and isinstance(kinds[0], str) else ""


def _subclasses(base: type[ReportPart]) -> Iterator[type[ReportPart]]:
    for one in base.__subclasses__():
        yield one
        yield from _subclasses(one)


def page(reports: Mapping[str, type[ReportPart]]) -> str:
    """`reports`: name of the schema's file → report."""
    parts = [_HEAD]
    for name, report in reports.items():
        parts += _report(name, report)
    policy = f"[podpolicy.schema.json]({_FILES}/podpolicy.schema.json)"
    parts += [
        "## PodPolicy\n",
        f"The schema of policies: {policy}. [The policy language](policy-language.md) describes every field.\n",
    ]
    return "\n".join(parts)


def _report(name: str, report: type[ReportPart]) -> Iterator[str]:
    file = f"{name}.schema.json"
    fields = msgspec.json.schema(report)["$defs"][report.__name__]["properties"]
    names = ", ".join(f"`{field}`" for field in fields if field not in _COMMON_FIELDS)
    yield f"## {report.__name__}\n"
    yield f"`{report.printed_by} -o json` ([schema]({_FILES}/{file})): {names}.\n"


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
