"""The key of a pool's setting stands in one module: its declaration. Reasons and messages name it within a sentence."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import pytest

from docs.pages.reason_codes import product_codes
from tests.architecture.source_words import ROOT, source_files
from trimtab.cluster.documents.declared_fields import ANY_KEY, iterate_fields
from trimtab.cluster.documents.document_schema import schema_of
from trimtab.cluster.pool import Headroom, Pool
from trimtab.cluster.pool_config import pool_settings

OTHER_MEANINGS = {
    "autoscaler": "a verb, and the process",
    "canary": "a state of a resize",
    "count": "of a histogram or an Event",
    "days": "a column, a window of samples",
    "drains": "what the compactor does",
    "dryRun": "a parameter of the API server",
    "enabled": "a field of other documents, and of `Pool`",
    "from": "a key of rules and policies",
    "goal": "a column",
    "groups": "the groups of a user, in reviews and orders",
    "headroom": "of a usage rule",
    "jobs": "a resource of the API",
    "keep": "a word of policies",
    "labels": "a field of every object",
    "mode": "a column, a field of policies",
    "node": "a column, a resource of the API",
    "nodes": "a column, a resource of the API",
    "percent": "a key of reservation profiles",
    "pod": "a column, a resource of the API",
    "pods": "a column, a resource of the API",
    "preset": "a heading of a page",
    "prices": "an input",
    "replace": "an operation of a JSON patch",
    "resize": "a subresource of pods",
    "timeZone": "a field of CronJobs",
    "to": "a key of reservation profiles",
    "windows": "an operating system",
}
"""Keys that are words of other subjects as well. Their paths, such as `pace.drains`, still stand in one module."""
RESOURCES = {name for one in iterate_fields(Pool) if one.document.keys for name in one.document.keys.names}
PATHS = {one.document.path for one in iterate_fields(Pool)}
_WORDS = re.compile(r"[A-Za-z]+([.][A-Za-z*]+)*")


def keys_of(schema: dict[str, Any]) -> Iterator[str]:
    """Every key of the schema, also those in lists."""
    for key, inner in schema.get("properties", {}).items():
        yield from (key, *keys_of(inner))
    for inner in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])):
        yield from keys_of(inner)


KEYS = sorted({*keys_of(schema_of(pool_settings()))} - RESOURCES)


def constants_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The strings that are keys or paths; a docstring is no constant of the program."""
    nodes = list(nodes)
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    constants = {node for node in nodes if isinstance(node, ast.Constant)} - docstrings
    return {node.value for node in constants if isinstance(node.value, str) and _WORDS.fullmatch(node.value)}


@cache
def constants() -> dict[str, set[str]]:
    return {file.name: constants_in(file.nodes) for file in source_files(("trimtab",))}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_a_constant_of_one_module(key: str) -> None:
    texts = {path for path in PATHS if key in path.split(".")} - OTHER_MEANINGS.keys()
    texts |= {key} - OTHER_MEANINGS.keys()
    modules = [name for name, words in constants().items() if words & texts]
    assert len(modules) == (1 if texts else 0), modules


def test_a_word_of_another_subject_is_used_there() -> None:
    uses = {word: [name for name, words in constants().items() if word in words] for word in OTHER_MEANINGS}
    declarations = {"trimtab/cluster/pool.py", "trimtab/cluster/pool_values.py"}
    assert [word for word, names in uses.items() if not {*names} - declarations] == []


@pytest.mark.parametrize("key", KEYS)
def test_the_generated_page_has_the_key(key: str) -> None:
    page = (ROOT / "docs" / "reference" / "pool.md").read_text(encoding="utf-8")
    assert re.search(rf"[`.{{ ]{key}\b", page)


def test_no_reference_page_that_is_written_by_hand_names_a_key() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")}
    words = {name: {*re.findall(r"\w+", text)} for name, text in pages.items() if not text.startswith("<!-- Generated")}
    keys = {key for key in KEYS if not key.islower()} - OTHER_MEANINGS.keys()
    assert keys
    assert {name: keys & own for name, own in words.items() if keys & own} == {}


def test_a_reason_names_only_settings_that_are_declared() -> None:
    sections = {path.rpartition(".")[0] for path in PATHS if "." in path}
    names = re.compile(rf"\b(?:{'|'.join(sorted(sections, reverse=True))})[.][a-z]\w*")
    texts = [f"{code.means} {code.todo}" for code in product_codes()]
    paths = PATHS | sections | {path.replace(ANY_KEY, name) for path in PATHS for name in RESOURCES}
    assert {name for text in texts for name in names.findall(text)} - paths == set()


SETTINGS_OF_POOLS = [(cls, one.name) for cls in (Pool, Headroom) for one in fields(cls)]
_BASES = {"pool", "headroom"}


@cache
def attributes_of_pools() -> set[str]:
    """The attributes that are read of a variable or an attribute `pool` or `headroom`, outside of the declaration and
    of the messages about mistakes in the settings."""
    files = [file for file in source_files(("trimtab",)) if not file.name.startswith("trimtab/cluster/pool")]
    return {
        node.attr
        for file in files
        for node in file.nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] in _BASES
    }


@pytest.mark.parametrize(("cls", "name"), SETTINGS_OF_POOLS)
def test_a_setting_is_read_where_it_is_obeyed(cls: type, name: str) -> None:
    assert name in attributes_of_pools(), f"no code reads pool.{name}: nothing obeys this setting of {cls.__name__}"


def test_a_planted_key_is_seen() -> None:
    planted = ast.walk(ast.parse('"""pace.leastGain"""\nsettings["pace"]["leastGain"]\nf"raise {x} or pace.leastGain"'))
    assert constants_in(planted) == {"pace", "leastGain"}
