"""Names and grain of the source stay as the house style has them (docs/reference/vocabulary.md)."""

import ast
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from tests.architecture.source_words import (
    SourceFile,
    compared_sentences,
    files_of_tests,
    one_word_functions,
    participle_variables,
    source_files,
)

ONE_PER_PROCESS = {"Settings", "Process", "Loop", "Metrics"}
"""Public class names that each process has."""


def test_no_public_class_name_is_used_twice() -> None:
    files = defaultdict(list)
    for file in source_files():
        for node in file.classes():
            files[node.name].append(file.name)
    assert {name: where for name, where in files.items() if len(where) > 1 and name not in ONE_PER_PROCESS} == {}


SHARED_FILE_NAMES = {
    *("__init__", "reasons", "settings", "metrics", "process", "loop", "command", "report"),
    *("table", "page"),  # how a verb draws its report on a terminal, and as HTML
}
"""File names that more than two packages may have."""

CODES_BESIDE_RULES = (
    "trimtab/policy/lint",
    "trimtab/autoscaling/",
    "trimtab/machines/",
    "trimtab/idle/",
    "trimtab/cluster/",
)
"""Where a rule declares its code beside itself; `cluster` has one code and the type."""


def test_a_file_name_says_its_subject() -> None:
    folders = defaultdict(list)
    for file in source_files():
        folders[Path(file.name).stem].append(Path(file.name).parent.name)
    assert {stem: where for stem, where in folders.items() if len(where) > 2 and stem not in SHARED_FILE_NAMES} == {}


def test_reason_codes_are_declared_in_the_module_of_reasons() -> None:
    declaring = {
        file.name
        for file in source_files()
        for node in file.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "Code"
    }
    assert [
        name for name in sorted(declaring) if Path(name).stem != "reasons" and not name.startswith(CODES_BESIDE_RULES)
    ] == []


def test_no_file_is_too_long_and_most_are_long_enough() -> None:
    lines = {file.name: file.lines for file in source_files()}
    assert {name: count for name, count in lines.items() if count > 480} == {}, (
        "split the file by its subjects: one module, named after its subject, for each; reasons may become a package's"
    )
    assert median(lines.values()) >= 130


@pytest.mark.parametrize(
    ("files", "share"), [(source_files(), 0.005), (files_of_tests(), 0.01)], ids=["product", "tests"]
)
def test_no_variable_is_a_bare_participle(files: tuple[SourceFile, ...], share: float) -> None:
    variables = sum(1 for file in files for _ in file.variables())
    participles = participle_variables(files)
    assert len(participles) <= share * variables, participles[:50]


MAX_COMPARED_SENTENCES = 150
"""Assertions that may compare a text of five words or more: what is left are the words of other programs (the API
server's refusals), manifests, expressions, and rules of text."""


def test_few_tests_compare_a_sentence() -> None:
    """Tests name codes and facts (tests/reasons.py); what the verbs print is pinned once, in tests/golden."""
    places = [f"{file.name}:{line}" for file in files_of_tests() for line in compared_sentences(file)]
    assert len(places) <= MAX_COMPARED_SENTENCES, places


def test_most_functions_have_a_name_of_several_words() -> None:
    one_word, total = one_word_functions()
    assert len(one_word) < 0.45 * total, one_word[:50]
