"""`trimtab explain` knows every word of Trimtab's own that a message names."""

import re
from functools import cache

import pytest

from tests.architecture.source_words import messages, source_files
from trimtab.cli.explain.catalog import find_entries, load_catalog
from trimtab.cli.explain.verb_options import find_options

WORDS = {
    "a setting": r"\bTRIMTAB_[A-Z][A-Z_]+[A-Z]\b",
    "an annotation, label or taint": r"\btrimtab\.dev/[a-z][a-z-]+[a-z]\b",
    "a metric": r"\btrimtab_[a-z_]+[a-z]\b",
    "a field of a pool": r"\b(?:underUsed|age|keep|pace|resize|optOut|protect|lead)\.[a-z][A-Za-z]+\b",
    "a rule": r"\b[LN]\d\d\b",
    "what a message says to explain": r"trimtab explain ([a-z0-9_.\-]+[a-z0-9])",
}
"""What a word is → how it looks in a message."""
OTHER_THINGS = {
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
