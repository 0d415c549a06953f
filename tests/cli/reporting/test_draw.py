"""A table keeps its words whole: columns are left out by rank, and named; rows become cards before a word is broken."""

from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.panel import Panel

from trimtab.cli.plain_columns import PlainConsole
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section
from trimtab.cli.reporting.draw import build_table, draw_report, draw_section

Row = tuple[str, str, str]
COLUMNS: tuple[Column[Row], ...] = (
    Column("Workload", lambda row: row[0]),
    Column("Why", lambda row: row[1], rank=1),
    Column("Region", lambda row: row[2], rank=2),
    Column("Note", lambda row: "a-note", is_wide=True, rank=3),
)
ROWS = [("shop/a-deployment-with-a-name", "no usage", "eu-central-1"), ("shop/web", "", "eu")]


def view_of(rows: list[Row], frame: Frame = Frame.BOX) -> ReportView[list[Row]]:
    section: Section[list[Row], Row] = Section(
        key="workloads",
        rows=lambda report: report,
        columns=COLUMNS,
        title="Workloads",
        frame=frame,
        empty=lambda report: ["No workload."],
        after=lambda report: ["That is all."],
    )
    return ReportView(title="a report", sections=(section,), notes=lambda report: ["A note."])


def drawn(width: int, rows: list[Row] = ROWS, *, is_wide: bool = False, frame: Frame = Frame.BOX) -> str:
    text = StringIO()
    draw_report(Console(file=text, width=width), rows, view_of(rows, frame), is_wide=is_wide)
    return text.getvalue()


def test_a_wide_terminal_shows_every_column() -> None:
    text = drawn(100)
    assert all(title in text for title in ("Workloads", "Workload", "Why", "Region", "That is all.", "A note."))
    assert "Not shown" not in text


def test_a_column_of_the_wide_table_is_shown_there_only() -> None:
    assert ("a-note" in drawn(100), "a-note" in drawn(100, is_wide=True)) == (False, True)


@pytest.mark.parametrize(
    ("width", "missing"), [(80, ""), (56, ""), (50, "Region"), (40, "Why, Region")], ids=lambda value: str(value)
)
def test_the_columns_of_the_highest_ranks_are_left_out_first_and_named(width: int, missing: str) -> None:
    text = " ".join(drawn(width).split())
    assert ("Not shown" in text) is bool(missing)
    assert f"the terminal is narrow: {missing}" in text or not missing


def test_rows_become_cards_where_no_table_fits() -> None:
    lines = drawn(24).splitlines()
    assert lines[:5] == [
        "Workloads",
        "shop/a-deployment-with-a-name",
        "  Why: no usage",
        "  Region: eu-central-1",
        "shop/web",
    ]


def test_no_row_is_said_in_words() -> None:
    assert drawn(80, []).splitlines() == ["No workload.", "Note: A note."]


def test_lines_of_a_pipe_have_any_length() -> None:
    text = StringIO()
    draw_report(PlainConsole(file=text, width=20), ROWS, view_of(ROWS))
    assert "shop/a-deployment-with-a-name   no usage   eu-central-1" in text.getvalue()


def section_of(**options: Any) -> Section[list[Row], Row]:
    """A section of two columns, the second of which is a sentence."""
    columns: tuple[Column[Row], ...] = (
        Column("Workload", lambda row: row[0]),
        Column("Why", lambda row: row[1], rank=1, is_below=True, min_width=20),
    )
    return Section(key="workloads", rows=lambda report: report, columns=columns, **options)


def drawn_section(width: int, rows: list[Row], **options: Any) -> list[str]:
    text = StringIO()
    draw_section(Console(file=text, width=width), rows, section_of(**options))
    return [line.rstrip() for line in text.getvalue().splitlines()]


SENTENCE = "the usage is not known well enough, because there is only a day of it"


def test_a_sentence_without_room_is_printed_below_the_table() -> None:
    lines = drawn_section(36, [("shop/a-deployment", SENTENCE, "")], frame=Frame.NONE)
    assert lines[:3] == ["Workload", "shop/a-deployment", "shop/a-deployment"]
    assert " ".join(lines[3:]).split() == SENTENCE.split()


def test_a_column_with_room_for_its_sentence_stays_in_the_table() -> None:
    lines = drawn_section(48, [("shop/a-deployment", SENTENCE, "")], frame=Frame.NONE)
    assert lines[1].startswith("shop/a-deployment  the usage is")


def test_a_short_cell_stays_on_one_line_beside_a_long_one() -> None:
    lines = drawn_section(60, [("a deployment", SENTENCE, "")], frame=Frame.NONE)
    assert lines[1].startswith("a deployment  the usage")


def test_rows_that_are_not_drawn_are_counted() -> None:
    rows = [(f"shop/web-{number}", "", "") for number in range(5)]
    lines = drawn_section(40, rows, max_rows=2, more=lambda hidden: f"{hidden} more rows", frame=Frame.NONE)
    assert lines == ["Workload    Why", "shop/web-0", "shop/web-1", "3 more rows"]


def test_a_section_may_be_sentences() -> None:
    assert drawn_section(40, [], lines=lambda report: ["No row."]) == ["No row."]


def test_a_table_in_a_panel_breaks_no_word() -> None:
    text = StringIO()
    columns: tuple[Column[Row], ...] = (Column("", lambda row: row[0]), Column("", lambda row: row[1]))
    table = build_table([("nodeAffinity.required", SENTENCE, "")], columns, frame=Frame.GRID)
    Console(file=text, width=44).print(Panel(table))
    assert "nodeAffinity.required  the usage is" in text.getvalue()


MANY = [(f"shop/web-{number}", SENTENCE, "") for number in range(30)]


def test_a_terminal_shows_the_first_rows_and_counts_the_others() -> None:
    lines = drawn_section(200, MANY, frame=Frame.NONE)
    assert (len(lines), "10 more rows" in lines[-1]) == (22, True)
    assert lines[1].startswith("shop/web-0 ")


def test_a_log_shows_its_last_rows() -> None:
    lines = drawn_section(200, MANY, frame=Frame.NONE, is_log=True)
    assert (lines[1].split()[0], lines[20].split()[0]) == ("shop/web-10", "shop/web-29")


def test_the_wide_table_and_a_pipe_have_all_rows() -> None:
    for console, is_wide in ((Console(file=StringIO(), width=200), True), (PlainConsole(file=StringIO()), False)):
        draw_section(console, MANY, section_of(), is_wide=is_wide)
        assert isinstance(console.file, StringIO)
        assert console.file.getvalue().count("shop/web-") == len(MANY)


def test_a_narrow_terminal_repeats_no_text_of_many_rows() -> None:
    lines = drawn_section(60, MANY[:8], frame=Frame.NONE)
    assert (len(lines), "many rows: Why" in lines[-1]) == (10, True)
    assert " ".join(drawn_section(60, MANY[:2], frame=Frame.NONE)).count("not known well enough") == 2


def test_cards_are_as_few_as_fit_on_a_screen() -> None:
    lines = drawn_section(12, MANY, frame=Frame.NONE)
    assert lines[-1].endswith("-o wide")
    assert sum(line.startswith("shop/web-") for line in lines) < len(MANY)


def test_the_first_notes_are_shown_and_the_others_counted() -> None:
    notes = ["It is dark.", "He was late again.", "She reads a book.", "They sing.", "You wait."]
    view: ReportView[list[Row]] = ReportView(title="", sections=(), notes=lambda report: notes)
    for is_wide, count in ((False, 4), (True, 5)):
        text = StringIO()
        draw_report(Console(file=text, width=80), [], view, is_wide=is_wide)
        assert text.getvalue().count("Note: ") == count
        assert ("1 more note" in text.getvalue()) is not is_wide


WORDS = st.text("abc-", min_size=1, max_size=30)
CELLS = st.lists(WORDS, max_size=4).map(" ".join)


FRAMES = st.sampled_from([frame for frame in Frame if frame is not Frame.SCREEN])


@given(st.lists(st.tuples(WORDS, CELLS, CELLS), min_size=1, max_size=4), st.integers(10, 120), FRAMES)
def test_no_word_is_broken(rows: list[Row], width: int, frame: Frame) -> None:
    text = drawn(width, rows, frame=frame)
    is_shown = {"Why": "Why" in text.split("Not shown")[0], "Region": "Region" in text.split("Not shown")[0]}
    pieces = text.replace("│", " ").split()
    assert all(row[0] in pieces for row in rows)
    for position, title in ((1, "Why"), (2, "Region")):
        if is_shown[title]:
            assert all(word in pieces for row in rows for word in row[position].split())
