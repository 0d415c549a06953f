"""`trimtab explain` knows every word of Trimtab's own that a message names."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source_words import ROOT, SourceFile, messages, source_files
from trimtab.cli.catalog import COLUMN, REPORT_FIELD, WORD, find_entries, load_catalog
from trimtab.cli.explain.verb_options import find_options
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


@pytest.mark.parametrize("word", [*PRESETS, "wave", "surge", "severity", "confidence", "grace", "more nodes"])
def test_explain_knows_presets_and_the_words_of_plans(word: str) -> None:
    assert any(entry.means for entry in find_entries(load_catalog(), word))


def test_an_entry_says_what_its_name_means() -> None:
    assert [
        entry.name for entry in load_catalog() if entry.kind in (WORD, COLUMN, REPORT_FIELD) and not entry.means
    ] == []
