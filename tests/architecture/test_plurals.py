"""A count is written with `format_count`, so that one pod is "1 pod"."""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from tests.architecture.source_words import source_files

NOUNS = (
    "pods|nodes|workloads|containers|replicas|policies|clusters|evictions|rows|objects|samples|points|types|values|"
    "cases|rules|budgets|drains|findings|groups|targets|workloads|checkpoints|zones|volumes|services|namespaces"
)
_PLURAL = re.compile(rf"^ ((more|other|new|running|failed|live|further) )?({NOUNS})\b")
_CONSTANT = re.compile(r"[A-Z_.a-z]*\b_?[A-Z][A-Z_]+")
"""A constant is never one."""
MAX_BARE_PLURALS = 25
"""The places that still write a count by hand. The number only falls: a new count is written with `format_count`."""


def bare_plurals(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yields (line, expression) of each value that is followed by a plural noun in an f-string."""
    for node in nodes:
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, words in pairwise(parts):
            if not (isinstance(value, ast.FormattedValue) and isinstance(words, ast.Constant)):
                continue
            source = ast.unparse(value.value)
            is_count = not source.startswith("format_count(") and not _CONSTANT.fullmatch(source)
            # A name before a verb ("web selects pods") is no count: between it and the noun is nothing else.
            if is_count and _PLURAL.match(str(words.value)):
                yield value.lineno, source


def test_a_count_with_its_plural_by_hand_is_found() -> None:
    assert [source for _, source in bare_plurals(nodes_of('f"{n} pods, {m} nodes"'))] == ["n", "m"]
    no_counts = ('f"{MAX} rows"', "f\"{format_count(n, 'pod')} more\"", 'f"{name} selects pods"')
    assert [text for text in no_counts if list(bare_plurals(nodes_of(text)))] == []


def test_no_more_places_write_a_count_by_hand() -> None:
    places = [f"{file.name}:{line}: {source}" for file in source_files() for line, source in bare_plurals(file.nodes)]
    assert len(places) <= MAX_BARE_PLURALS, "\n".join(places)


def nodes_of(text: str) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(text))
