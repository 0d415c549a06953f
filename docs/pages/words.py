"""The words of the vocabulary, the columns of tables and the fields of reports, as `trimtab explain` explains them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec

from docs.pages.schemas import type_of
from trimtab.cli.catalog import COLUMN, REPORT_FIELD, WORD, CatalogEntry
from trimtab.cli.output import ReportPart

PAGE = Path(__file__).resolve().parents[1] / "reference" / "vocabulary.md"
COLUMNS = Path(__file__).with_name("columns.txt")
"""The titles of columns, in lines like those of the page. Only `trimtab explain` prints them."""
COLUMNS_PAGE = "docs/reference/vocabulary.md#columns-of-tables"
_ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (.+?)(?: \*(.+)\*)?$", re.MULTILINE)
"""The words, what they mean, and where they come from; of a column, what prints it."""
_OF_EVERY_DOCUMENT = {
    "api_version": "The version of the document's format, trimtab.dev/v1alpha1.",
    "kind": "The kind of the document, such as PlanReport.",
}
"""The attributes that every whole report has, so that none describes them."""


def vocabulary() -> Iterator[CatalogEntry]:
    """An entry for each word of the page and each title of a column; a row may have several."""
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        page = f"docs/reference/vocabulary.md#{title.strip().lower().replace(' ', '-')}"
        yield from _entries(text, WORD, page)
    yield from _entries(COLUMNS.read_text(encoding="utf-8"), COLUMN, COLUMNS_PAGE)


def _entries(text: str, kind: str, page: str) -> Iterator[CatalogEntry]:
    for first, means, origin in _ENTRY.findall(text):
        for word, qualifier in _words_of(first, is_column=kind == COLUMN):
            name = f"{word} ({qualifier})" if qualifier else word
            yield CatalogEntry(
                kind=kind, name=name, means=_plain(means), value=_plain(origin).replace("`", ""), page=page
            )


def _words_of(cell: str, *, is_column: bool) -> Iterator[tuple[str, str]]:
    """(word, what it is said of) of each word in a cell: `action (of a drain)`; `blocked, evictable (pod)`. Titles of
    columns may contain a comma, so semicolons separate them."""
    name, _, rest = cell.partition(" (")
    for word in _plain(name).replace("`", "").split(";" if is_column else ","):
        yield word.strip(), rest.removesuffix(")")


def _plain(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("*", "").strip()


def report_fields(
    reports: Mapping[str, type[ReportPart]], docs_of: Callable[[Any], dict[str, str]]
) -> Iterator[CatalogEntry]:
    """An entry for each name of a field, with its meanings in the reports. A field without a docstring means nothing.

    reports: name of the schema's file → report; docs_of: class → field → its text."""
    commands: dict[str, dict[str, dict[str, None]]] = {}
    types: dict[str, dict[str, None]] = {}
    # Classes of the API have some names that classes of reports have as well.
    classes = {one.__name__: one for one in sorted(_parts(msgspec.Struct), key=lambda one: issubclass(one, ReportPart))}
    for report in reports.values():
        command = " ".join(takewhile(re.compile(r"[a-z][a-z-]*").fullmatch, report.printed_by.split()))
        for name, schema in msgspec.json.schema(report)["$defs"].items():
            part = classes[name]
            docs = (_OF_EVERY_DOCUMENT if part is report else {}) | docs_of(part)
            for attribute, field in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
                types.setdefault(field, {})[type_of(schema["properties"][field]).replace("`", "")] = None
                if attribute in docs:
                    commands.setdefault(field, {}).setdefault(docs[attribute], {})[command] = None
    for field in sorted(types):
        yield CatalogEntry(
            kind=REPORT_FIELD,
            name=field,
            means=_list_meanings(commands.get(field, {})),
            value=" or ".join(types[field]),
            page="docs/reference/json-schemas.md",
        )


def _parts(base: type[msgspec.Struct]) -> Iterable[type[msgspec.Struct]]:
    for one in base.__subclasses__():
        yield one
        yield from _parts(one)


def _list_meanings(commands_by_meaning: Mapping[str, Iterable[str]]) -> str:
    """A line for each meaning, after the commands whose reports have it: first the meaning that most commands have."""
    rows = [(", ".join(f"`{one}`" for one in found), _plain(means)) for means, found in commands_by_meaning.items()]
    return "\n".join(f"{names}: {means}" for names, means in sorted(rows, key=lambda row: -row[0].count(",")))
