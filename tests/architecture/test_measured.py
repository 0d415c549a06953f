"""Every number with a unit in README and in the explanations is joined to what measured it, or says what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from docs.pages import measured
from docs.pages.measured import (
    SENTENCES,
    Block,
    find_unresolved,
    iter_blocks,
    pages,
    read_document,
    replace_figures,
    show_value,
)
from trimtab.cli.replay.measured_error import MEASURED_ERROR, SCRAPED_ERROR

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = {
    "bench-x": {
        "figures": {"cores": {"value": "5350", "shown": "5 350 cores"}},
        "texts": ["3 ms"],
        "conditions": ["310 nodes"],
        "writes": ["measured"],
    }
}


def unresolved(text: str) -> list[str]:
    return [problem for block in iter_blocks("page", text) for problem in find_unresolved(block, DOCUMENT)]


@pytest.mark.parametrize("page", pages(), ids=[page.stem for page in pages()])
def test_every_number_with_a_unit_is_joined_to_its_measurement(page: Path) -> None:
    document = read_document()
    blocks = iter_blocks(page.name, page.read_text(encoding="utf-8"))
    assert [problem for block in blocks for problem in find_unresolved(block, document)] == []


@pytest.mark.parametrize("name", read_document())
def test_a_measurement_has_a_command_or_says_how_it_was_made(name: str) -> None:
    measurement = read_document()[name]
    assert re.fullmatch(r"[0-9a-f]{7,40}\+?", measurement["commit"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", measurement["date"])
    assert measurement["machine"]
    assert bool(measurement["command"]) != bool(measurement.get("how"))


@pytest.mark.parametrize("name", [name for name, each in read_document().items() if each["command"]])
def test_the_command_of_a_measurement_exists(name: str) -> None:
    target, _, rest = read_document()[name]["command"].removeprefix("make ").partition(" ")
    makefiles = [ROOT / "Makefile", *ROOT.glob("tests/*/Makefile.inc")]
    if target == "python":
        assert (ROOT / (rest.removeprefix("-m ").replace(".", "/") + ".py")).exists()
    else:
        assert any(re.search(rf"^{target}:", file.read_text(), re.MULTILINE) for file in makefiles)
    if "E2E_FILES=" in rest:
        assert (ROOT / rest.removeprefix("E2E_FILES=")).exists()


def test_no_measurement_is_kept_that_no_page_names() -> None:
    names = {name for page in pages() for block in iter_blocks("", page.read_text()) for name in block.names}
    assert set(read_document()) <= names | set(SENTENCES)


@pytest.mark.parametrize(("name", "sentence"), [("bench-replay", MEASURED_ERROR + SCRAPED_ERROR)])
def test_a_sentence_that_a_command_prints_quotes_what_was_measured(name: str, sentence: str) -> None:
    document = read_document()
    block = Block("sentence", sentence, "measured", (name,))
    assert find_unresolved(block, document) == []
    shown = {figure["shown"] for figure in document[name]["figures"].values() if figure.get("shown")}
    assert shown == set(block.numbers), f"write these into {SENTENCES[name].relative_to(ROOT)}"


def test_each_sentence_of_a_measurement_is_compared_with_it() -> None:
    assert set(SENTENCES) == {"bench-replay"}
    assert all(name in read_document() for name in SENTENCES)


def test_a_number_without_a_mark_is_reported() -> None:
    assert unresolved("It takes 3 ms.\n") == ["3 ms: the block has no mark"]


def test_a_number_that_the_measurement_does_not_have_is_reported() -> None:
    assert unresolved("<!-- measured: bench-x -->\n4 ms with 310 nodes\n") == ["4 ms: not in bench-x"]
    assert unresolved("<!-- measured: bench-x -->\n3 ms with 310 nodes\n") == []


def test_a_cell_of_a_table_of_figures_is_a_number_too() -> None:
    table = "<!-- measured: bench-x -->\n| | cores freed |\n|---|---|\n| ours | 5 350 |\n| theirs | 9 |\n"
    assert unresolved(table) == ["9: not in bench-x"]


def test_unknown_names_are_reported() -> None:
    assert unresolved("<!-- measured: bench-y -->\nText.\n") == ["no measurement: bench-y"]
    assert unresolved("<!-- not measured: guesses -->\n3 ms\n") == ["no kind of number: guesses"]
    assert unresolved("<!-- not measured: settings -->\n3 ms, `4 ms`\n") == []


def test_what_a_bench_writes_needs_no_mark_of_its_own() -> None:
    assert unresolved("<!-- measured -->\n\n9 ms\n\n<!-- /measured -->\n") == []
    assert unresolved("<!-- other -->\n\n9 ms\n\n<!-- /other -->\n") == ["no bench writes other"]


@pytest.mark.parametrize(
    ("shown", "value", "text"),
    [("5 350 cores", "5422", "5 422 cores"), ("98.8 %", "99", "99.0 %"), ("0.4 s", "0.31", "0.3 s")],
)
def test_a_new_value_is_written_as_the_earlier_one(shown: str, value: str, text: str) -> None:
    assert show_value(shown, value) == text


def test_a_share_that_is_written_in_percent_stays_so() -> None:
    assert show_value("98.8 %", "0.991", 100) == "99.1 %"
    assert show_value("0.9 %", "0.8") == "0.8 %"


def test_a_text_that_does_not_begin_with_its_number_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with its number"):
        show_value("under 5 ms", "4")


@pytest.mark.parametrize("name", read_document())
def test_the_text_of_a_figure_is_its_value(name: str) -> None:
    figures = [figure for figure in read_document()[name]["figures"].values() if figure.get("shown")]
    assert [show_value(f["shown"], f["value"], f.get("scale", 1)) for f in figures] == [f["shown"] for f in figures]


def test_a_new_value_is_written_into_the_blocks_of_its_measurement_alone() -> None:
    text = "<!-- measured: bench-x -->\n5 350 cores, 15 350 cores\n\n<!-- measured: other -->\n5 350 cores\n"
    changed = replace_figures(text, "bench-x", {"5 350 cores": "5 400 cores"})
    assert changed == text.replace("-x -->\n5 350 cores,", "-x -->\n5 400 cores,")


def test_a_block_ends_where_the_check_of_its_numbers_says() -> None:
    text = "<!-- measured: bench-x -->\n5 350 cores\n```\nx\n```\n5 350 cores\n"
    [block] = [block for block in iter_blocks("page", text) if "bench-x" in block.names]
    changed = replace_figures(text, "bench-x", {"5 350 cores": "5 400 cores"})
    assert changed.count("5 400 cores") == block.text.count("5 350 cores")


def test_a_bench_records_its_figures_with_their_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "DOCUMENT", tmp_path / "measured.json")
    monkeypatch.setattr(measured, "pages", lambda: (tmp_path / "page.md",))
    monkeypatch.setattr(measured, "SENTENCES", {"bench-x": tmp_path / "sentence.py"})
    (tmp_path / "sentence.py").write_text('SENTENCE = "up to 5 350 cores"\n')
    (tmp_path / "measured.json").write_text(
        json.dumps({"bench-x": {"command": "make bench-x", "commit": "0000000", **DOCUMENT["bench-x"]}})
    )
    (tmp_path / "page.md").write_text("<!-- measured: bench-x -->\n5 350 cores\n\n| cores |\n")
    measured.record_figures("bench-x", {"cores": "5400.2"}, commit="abc1234", date="2026-11-28", machine="2 cores")
    assert "5 400 cores" in (tmp_path / "page.md").read_text()
    assert "5 400 cores" in (tmp_path / "sentence.py").read_text()
    assert measured.read_document()["bench-x"]["figures"]["cores"] == {
        "value": "5400.2",
        "shown": "5 400 cores",
        "commit": "abc1234",
        "date": "2026-11-28",
        "machine": "2 cores",
    }
    assert measured.read_document()["bench-x"]["commit"] == "0000000"
