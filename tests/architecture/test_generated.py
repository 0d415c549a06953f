"""What is generated from the code is as the code says now."""

from docs.generate import ROOT, everything


def test_no_generated_file_is_stale() -> None:
    texts = everything()
    assert len(texts) > 90
    stale = [name for name, text in texts.items() if (ROOT / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run `make generate`"
