"""Joins the notes that say the same of different objects, so that a reader reads each statement once.

A note is a sentence that names objects, numbers and files. Two notes are alike if they differ in nothing else. A report
keeps all of its notes: JSON and YAML have them; a terminal, a pipe and a page show one of those that are alike, and
count the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from trimtab.cluster.format_count import format_count, join_first

MAX_NAMES = 3
"""The largest number of names of other objects that a joined note has."""
_NAME = re.compile(r"\d|\w[/_.:=-]\w|[a-z][A-Z]|['\"\[\]]")
"""Matches a word that names something: shop/web-0, m5.large, StatefulSet, 24, 'a'."""
_KINDS = re.compile("Deployment|Job|Node|Pod|Secret|Service|VPA|HPA|PodPolicy")
_NAMED = re.compile("container|group|namespace|node|pod|policy|pool|workload")
"""Matches words after which a name stands: `pool web`."""
_NO_NAMES = re.compile(
    "an?|and|are|as|at|because|but|by|can|cannot|does|for|from|ha[ds]|have|in|is|it|not?|of|on|or|requests?|so|that|the"
    "|their|to|uses?|was|were|whose|which|will|with|without"
)
"""Matches words after a word of `_NAMED` that are no name."""
_SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does"}


def group_notes(notes: Iterable[str]) -> list[str]:
    """Returns the notes in their order, those that are alike as one: the first, with the number of the others and the
    first of their names."""
    alike: dict[tuple[str, ...], list[tuple[str, tuple[str, ...]]]] = {}
    for note in dict.fromkeys(notes):
        words, names = _split_note(note)
        alike.setdefault(words, []).append((note, names))
    return [_join_notes(group) for group in alike.values()]


def _split_note(note: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the words of a note, in the singular and with an empty word in place of each name, and the names."""
    words: list[str] = []
    names: list[str] = []
    before = ""
    for word in note.split():
        core = word.strip(",.:;()")
        if not _is_name(core, before):
            words.append(_SINGULAR.get(word, word).removesuffix("s"))
        elif words and not words[-1]:
            names[-1] += f" {core}"
        else:
            words.append("")
            names.append(core)
        before = word
    return tuple(words), tuple(names)


def _is_name(word: str, before: str) -> bool:
    if word.startswith("-") or "`" in word:  # an option, or a command
        return False
    is_named = bool(_NAMED.fullmatch(before)) and not _NO_NAMES.fullmatch(word)
    return is_named or bool(_NAME.search(word)) or bool(_KINDS.fullmatch(word))


def _join_notes(group: list[tuple[str, tuple[str, ...]]]) -> str:
    first, _ = group[0]
    if len(group) == 1:
        return first
    columns = zip(*(names for _, names in group), strict=True)
    different = [column for column in columns if len(set(column)) > 1 and not all(map(_is_number, column))]
    others = list(dict.fromkeys(different[0][1:])) if different else []
    names = f": {join_first(others, MAX_NAMES)}" if others else ""
    return f"{first} ({format_count(len(group) - 1, 'more note')} like this one{names})"


def _is_number(name: str) -> bool:
    return not re.search(r"[A-Za-z]", name)
