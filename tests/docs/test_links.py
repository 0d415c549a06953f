"""Every link of the repository's pages leads to a file that is there, and to a heading that is in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "policies", "tests", "deploy")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
_MARKDOWN = MarkdownIt("commonmark").enable("table")


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    return tuple(_MARKDOWN.parse(page.read_text(encoding="utf-8")))


@cache
def anchors(page: Path) -> frozenset[str]:
    """As GitHub names headings: small letters, no punctuation, a number where one comes again."""
    counts: Counter[str] = Counter()
    names = set()
    for here, text in zip(tokens(page), tokens(page)[1:], strict=False):
        if here.type == "heading_open":
            plain = "".join(part.content for part in text.children or () if part.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
            names.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
            counts[slug] += 1
    return frozenset(names)


def links(page: Path) -> Iterator[str]:
    for block in tokens(page):
        for part in block.children or ():
            to = part.attrGet("href") or part.attrGet("src")
            if to and not re.match(r"[a-z]+:", str(to)):
                yield str(to)


def broken(page: Path) -> list[str]:
    actual_links = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            actual_links.append(link)
    return actual_links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_broken(page: Path) -> None:
    assert broken(page) == []


def test_a_file_and_a_heading_that_are_not_there_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Some *words*, and `code`\n\n# Twice\n\n# Twice\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#some-words-and-code) [b](other.md#twice-1) [c](other.md#thrice) [d](gone.md)")
    assert broken(page) == ["other.md#thrice", "gone.md"]


def test_every_page_can_be_reached_from_the_first_one() -> None:
    first = ROOT / "docs" / "README.md"
    reached, waiting = {first}, [first]
    while waiting:
        page = waiting.pop()
        to = {(page.parent / link.partition("#")[0]).resolve() for link in links(page) if not link.startswith("#")}
        new = {result for result in to if result.suffix == ".md" and result.exists()} - reached
        reached |= new
        waiting += new
    assert sorted(set((ROOT / "docs").rglob("*.md")) - reached) == []
