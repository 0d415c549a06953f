"""A table keeps its words whole: columns are left out by rank, and named; rows become cards before a word is broken."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from trimtab.cli.plain_columns import PlainConsole
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, fixed
from trimtab.cli.reporting.draw import draw_report

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
        key="workloads", rows=lambda report: report, columns=fixed(*COLUMNS), title=lambda report: "Workloads",
        frame=frame, empty=lambda report: ["No workload."], after=lambda report: ["That is all."],
    )  # fmt: skip
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
        "Workloads", "shop/a-deployment-with-a-name", "  Why: no usage", "  Region: eu-central-1", "shop/web",
    ]  # fmt: skip


def test_no_row_is_said_in_words() -> None:
    assert drawn(80, []).splitlines() == ["No workload.", "A note."]


def test_lines_of_a_pipe_have_any_length() -> None:
    text = StringIO()
    draw_report(PlainConsole(file=text, width=20), ROWS, view_of(ROWS))
    assert "shop/a-deployment-with-a-name   no usage   eu-central-1" in text.getvalue()


WORDS = st.text("abc-", min_size=1, max_size=30)
CELLS = st.lists(WORDS, max_size=4).map(" ".join)


@given(st.lists(st.tuples(WORDS, CELLS, CELLS), min_size=1, max_size=4), st.integers(10, 120), st.sampled_from(Frame))
def test_no_word_is_broken(rows: list[Row], width: int, frame: Frame) -> None:
    text = drawn(width, rows, frame=frame)
    is_shown = {"Why": "Why" in text.split("Not shown")[0], "Region": "Region" in text.split("Not shown")[0]}
    pieces = text.replace("│", " ").split()
    assert all(row[0] in pieces for row in rows)
    for position, title in ((1, "Why"), (2, "Region")):
        if is_shown[title]:
            assert all(word in pieces for row in rows for word in row[position].split())
