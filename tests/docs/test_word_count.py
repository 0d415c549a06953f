"""The documentation stays short enough to be read. Tables, commands and manifests count too, as `wc -w` counts them."""

from tests.docs.test_links import ROOT

MAX_WORDS = 105_000


def test_all_pages_together_have_no_more_words_than_decided() -> None:
    counts = {
        page.relative_to(ROOT).as_posix(): len(page.read_text(encoding="utf-8").split())
        for page in (ROOT / "docs").rglob("*.md")
    }
    longest = sorted(counts.items(), key=lambda item: -item[1])[:10]
    assert sum(counts.values()) <= MAX_WORDS, f"the longest pages: {longest}"
