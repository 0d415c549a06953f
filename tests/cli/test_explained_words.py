"""`trimtab explain` knows every word of Trimtab's own that a message names."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from docs.pages.field_docs import own_docs
from docs.pages.schemas import list_reports
from tests.architecture.source_words import ROOT, SourceFile, messages, source_files
from trimtab.cli.catalog import COLUMN, REPORT_FIELD, WORD, find_entries, load_catalog
from trimtab.cli.explain.verb_options import find_options
from trimtab.cli.output import ReportPart
from trimtab.cluster.pool import PRESETS

WORDS = {
    "a setting": r"\bTRIMTAB_[A-Z][A-Z_]+[A-Z]\b",
    "an annotation, label or taint": r"\btrimtab\.dev/[a-z][a-z-]+[a-z]\b",
    "a metric": r"\btrimtab_[a-z_]+[a-z]\b",
    "a field of a pool": r"\b(?:underUsed|age|keep|pace|resize|optOut|protect|lead)\.[a-z][A-Za-z]+\b",
    "a rule": r"\b[LN]\d\d\b",
    "a field with its value": r"`([a-z][A-Za-z.]+): [^`]*`",
    "what a message says to explain": r"trimtab explain ([a-z0-9_.\-]+[a-z0-9])",
}
"""What a word is → how it looks in a message."""
OTHER_THINGS = {
    **dict.fromkeys(("failurePolicy", "reinvocationPolicy", "controlledValues"), "a field of Kubernetes or the VPA"),
    **dict.fromkeys(("compactor.resize", "webhook.timeoutSeconds", "recommender.vpa"), "a value of the chart"),
    "trimtab.dev/burstable-by-default": "the name of a compiled policy",
    "trimtab.dev/compactor": "the name of a controller, which Events show",
    "trimtab.dev/watchdog": "the name of a controller, which Events show",
    "trimtab.dev/schemas": "the address of the schemas",
}
MEANING = re.compile(r"(`trimtab [a-z -]+`(, )?)+: .{8,}")
NAMES_SAY_ENOUGH = ("trimtab.cli.fleet.", "trimtab.cli.reports.machines")
"""Where a field whose name another report explains, such as `cluster` and `nodes`, has no docstring of its own."""
OWN_OPTIONS = ("autoscaler-flags", "fix", "usage", "cluster", "take-over", "params")


@cache
def texts_in_source() -> tuple[str, ...]:
    """Every text in the source that is no docstring."""
    return tuple(text for file in source_files(("trimtab",)) for _, text in messages(file))


@pytest.mark.parametrize("what", WORDS)
def test_explain_knows_every_word_that_looks_like(what: str) -> None:
    catalog = load_catalog()
    words = {match[match.lastindex or 0] for text in texts_in_source() for match in re.finditer(WORDS[what], text)}
    assert words
    assert sorted(word for word in words - OTHER_THINGS.keys() if not find_entries(catalog, word)) == []


@pytest.mark.parametrize("group", ["pace", "pool.pace", "keep", "keep.headroom", "age", "underUsed"])
def test_a_group_of_pool_fields_is_explained_with_its_fields(group: str) -> None:
    names = [entry.name for entry in find_entries(load_catalog(), group)]
    assert group.removeprefix("pool.") in names


@pytest.mark.parametrize("option", OWN_OPTIONS)
def test_an_option_is_explained_with_its_verbs(option: str) -> None:
    entries = find_options(f"--{option}")
    assert entries
    assert all(entry.value.startswith("trimtab ") and entry.means for entry in entries)


# ── what tables, reports and presets name ────────────────────────────────────
OUTPUTS = Path(__file__).parents[1] / "golden" / "outputs"


def titles_in_stored_outputs() -> set[str]:
    """The cells of lines that are all in upper case, as the titles of columns in a pipe."""
    texts = [file.read_text() for file in OUTPUTS.rglob("*.txt")]
    lines = [re.split(r" {2,}", line.strip()) for text in texts for line in text.splitlines()]
    return {cell for line in lines if len(line) > 1 and all(map(IS_TITLE, line)) for cell in line}


IS_TITLE = re.compile(r"[A-Z$][A-Z0-9 %,./()$-]*").fullmatch


def titles_in_source() -> set[str]:
    """The titles of columns, and those that are passed to functions that return a column."""
    return {title for file in source_files(("trimtab/cli",)) for node in file.nodes for title in _titles(node, file)}


def _titles(node: ast.AST, file: SourceFile) -> Iterator[str]:
    if not isinstance(node, ast.Call):
        return
    called = ast.unparse(node.func)
    parts = [keyword.value for keyword in node.keywords if called == "Column" and keyword.arg in ("title", "csv_title")]
    own = {each.name for each in file.functions() if each.returns and "Column[" in ast.unparse(each.returns)}
    if called in {"number_column", "saving_column", *own}:
        parts += node.args[:1]
    yield from (part.value for part in parts if isinstance(part, ast.Constant) and part.value)


@pytest.mark.parametrize("titles", [titles_in_stored_outputs, titles_in_source])
def test_explain_knows_every_title_of_a_column(titles: Callable[[], set[str]]) -> None:
    catalog = load_catalog()
    assert len(titles()) > 60
    assert sorted(title for title in titles() if not find_entries(catalog, title)) == []


def test_explain_knows_every_field_of_every_report() -> None:
    catalog = load_catalog()
    schemas = [json.loads(file.read_text()) for file in (ROOT / "deploy" / "schemas").glob("*-report.schema.json")]
    names = {name for schema in schemas for part in schema["$defs"].values() for name in part.get("properties", ())}
    assert len(names) > 300
    assert sorted(name for name in names if not find_entries(catalog, name)) == []


def test_every_meaning_of_a_field_is_that_of_the_field_itself() -> None:
    """A field without a docstring has no meaning: what its report is about would say nothing of it."""
    lines = [
        (entry.name, line)
        for entry in load_catalog()
        if entry.kind == REPORT_FIELD
        for line in entry.means.splitlines()
    ]
    assert len(lines) > 700
    assert [name for name, line in lines if not MEANING.fullmatch(line)] == []


@pytest.mark.parametrize("report", sorted(list_reports()))
def test_every_field_in_each_part_of_a_report_has_a_docstring(report: str) -> None:
    schema = msgspec.json.schema(list_reports()[report])
    parts = {part.__name__: part for part in _list_parts(ReportPart)}
    fields = [(name, attribute) for name in schema["$defs"] for attribute in parts[name].__struct_fields__]
    assert len(fields) > 3
    assert [
        (name, attribute)
        for name, attribute in fields
        if attribute not in own_docs(parts[name])
        and not (hasattr(parts[name], "printed_by") and attribute in ("api_version", "kind"))
        and not parts[name].__module__.startswith(NAMES_SAY_ENOUGH)
    ] == []


def _list_parts(base: type[ReportPart]) -> Iterator[type[ReportPart]]:
    for part in base.__subclasses__():
        yield part
        yield from _list_parts(part)


@pytest.mark.parametrize(
    ("path", "fact"),
    [
        ("plan.waves", "The drains"),
        ("drain.waves", "number of waves"),
        ("waves", "`trimtab drain`: The number"),
        ("replace.replacements", "The replacements"),
        ("fleet plan.nodesToRemove", "the plan removes"),
    ],
)
def test_a_field_of_a_report_is_found_by_its_command_and_its_path(path: str, fact: str) -> None:
    [entry] = find_entries(load_catalog(), path)
    assert fact in entry.means


@pytest.mark.parametrize("path", ["plan.nothing", "nothing.waves", "plan."])
def test_a_path_of_no_report_is_not_known(path: str) -> None:
    assert find_entries(load_catalog(), path) == []


@pytest.mark.parametrize("word", [*PRESETS, "wave", "surge", "severity", "confidence", "grace", "more nodes"])
def test_explain_knows_presets_and_the_words_of_plans(word: str) -> None:
    assert any(entry.means for entry in find_entries(load_catalog(), word))


def test_an_entry_says_what_its_name_means() -> None:
    assert [
        entry.name for entry in load_catalog() if entry.kind in (WORD, COLUMN, REPORT_FIELD) and not entry.means
    ] == []
