"""Names and grain of the source stay as the house style has them (docs/contributing.md)."""

from collections import defaultdict
from statistics import median

from tests.architecture.source_words import one_word_functions, participle_variables, source_files

ONE_PER_PROCESS = {"Settings", "Process", "Loop", "Metrics"}
"""Public class names that each process has."""


def test_no_public_class_name_is_used_twice() -> None:
    files = defaultdict(list)
    for file in source_files():
        for node in file.classes():
            files[node.name].append(file.name)
    assert {name: where for name, where in files.items() if len(where) > 1 and name not in ONE_PER_PROCESS} == {}


def test_no_file_is_too_long_and_most_are_long_enough() -> None:
    lines = {file.name: file.lines for file in source_files()}
    assert {name: count for name, count in lines.items() if count > 480} == {}
    assert median(lines.values()) >= 130


def test_no_variable_is_a_bare_participle() -> None:
    variables = sum(1 for file in source_files() for _ in file.variables())
    participles = participle_variables()
    assert len(participles) < 0.005 * variables, participles[:50]


def test_most_functions_have_a_name_of_several_words() -> None:
    one_word, total = one_word_functions()
    assert len(one_word) < 0.45 * total, one_word[:50]
