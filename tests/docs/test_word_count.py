"""The documentation stays short enough to be read. Tables, commands and manifests count too, as `wc -w` counts them."""

import pytest

from tests.docs.test_links import ROOT

MAX_WORDS = 105_000
MAX_PAGE_WORDS = 2_600


def test_all_pages_together_have_no_more_words_than_decided() -> None:
    counts = {
        page.relative_to(ROOT).as_posix(): len(page.read_text(encoding="utf-8").split())
        for page in (ROOT / "docs").rglob("*.md")
    }
    longest = sorted(counts.items(), key=lambda item: -item[1])[:10]
    assert sum(counts.values()) <= MAX_WORDS, f"the longest pages: {longest}"


@pytest.mark.parametrize(("folder", "most"), [("how-to", 20), ("explanation", 9)])
def test_pages_are_few_enough_that_a_reader_finds_the_one_to_read(folder: str, most: int) -> None:
    """A further task is a section of the page whose reader has it, or takes the place of a page."""
    pages = sorted(page.stem for page in (ROOT / "docs" / folder).glob("*.md"))
    assert 0 < len(pages) <= most, pages


LOOKED_UP = {"runbooks", "threat-model"}
"""Pages of which one section is read: that of an alert, of an account, of a threat."""


@pytest.mark.parametrize("folder", ["how-to", "explanation"])
def test_no_page_is_longer_than_a_reader_bears(folder: str) -> None:
    counts = {
        page.stem: len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs" / folder).glob("*.md")
    }
    assert {stem: count for stem, count in counts.items() if count > MAX_PAGE_WORDS and stem not in LOOKED_UP} == {}
