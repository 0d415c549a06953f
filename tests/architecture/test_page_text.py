"""Pages are plain English, as messages are (test_user_text.py). Decision records quote the words of their day."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source_words import ROOT
from tests.architecture.test_user_text import BANNED
from tests.architecture.user_text import UserText

FOLDERS = ("docs", "policies", "deploy", "tests/controlplane")
HISTORY = ("docs/decisions", "docs/reference/vocabulary.md")
"""Records of past decisions, and the page that explains the words themselves."""
_CODE = (r"(?ms)^ *```.*?^ *```", r"(?m)^ {4,}[^-* |0-9\n].*$", r"`[^`\n]+`", r"\]\([^)]*\)", r"(?s)<!--.*?-->")
"""Blocks and words of code, targets of links, comments: not prose."""


def pages() -> list[Path]:
    pages = [page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")]
    named = [ROOT / "README.md", ROOT / "SECURITY.md", *pages]
    return sorted(page for page in named if not page.relative_to(ROOT).as_posix().startswith(HISTORY))


def prose(page: Path) -> Iterator[UserText]:
    text = page.read_text(encoding="utf-8")
    for code in _CODE:
        text = re.sub(code, lambda match: "x" + "\n" * match[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        yield UserText(f"{page.relative_to(ROOT)}:{number}", line)


@pytest.mark.parametrize(("banned", "instead"), BANNED.items(), ids=BANNED)
def test_no_page_has_a_phrase_that_readers_stumble_over(banned: str, instead: str) -> None:
    lines = [line for page in pages() for line in prose(page)]
    assert len(lines) > 5000
    assert [f"{one.place}: {one.text}" for one in lines if re.search(banned, one.text)] == [], instead


def test_code_is_no_prose() -> None:
    page = ROOT / "docs" / "README.md"
    assert page in pages()
    assert not any("](" in line.text for line in prose(page))
