"""Finds words that a narrow terminal shows in two pieces, by comparison with what the same command prints elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FRAMES = re.compile("[\u2500-\u257f]+")
"""Lines around tables and cards."""
_EDGES = ".,:;()…"


def find_broken_words(narrow: str, elsewhere: Iterable[str]) -> list[str]:
    """Returns the pieces of words in the text of a narrow terminal, each with the word that it is a piece of.

    `elsewhere`: the same report on a wide terminal, and in a pipe, where no cell is wrapped. A piece is the beginning
    of a word that is only elsewhere, and is no word there."""
    pieces = set(_iterate_words(narrow))
    words = {word for text in elsewhere for word in _iterate_words(text)}
    missing = sorted(words - pieces)
    return [
        f"{piece} of {word}"
        for piece in sorted(pieces - words)
        for word in missing
        if _is_beginning(piece, word, pieces)
    ]


def _is_beginning(piece: str, word: str, pieces: set[str]) -> bool:
    """Returns whether the word is this piece and another one."""
    return word.startswith(piece) and any(word[len(piece) :].startswith(rest) for rest in pieces if rest != word)


def _iterate_words(text: str) -> Iterator[str]:
    for word in _FRAMES.sub(" ", text).lower().split():
        core = word.strip(_EDGES)
        if any(map(str.isalnum, core)):  # a bar is no word
            yield core
