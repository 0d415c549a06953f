"""What a report with rows consists of. JSON and YAML are the report's value itself; everything else follows from here.

A report is read on a terminal of 80 columns, in a pipe, as a page and in a spreadsheet. So a column says what it shows,
which value a program gets, and how much its reader would miss it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from rich.console import RenderableType

if TYPE_CHECKING:
    from trimtab.cli.csv_table import Cell

R = TypeVar("R")
Row = TypeVar("Row")
Paragraph = RenderableType
"""A text of a report; a `rich.text.Text` may have styles."""


class Frame(Enum):
    """How a table is drawn on a terminal."""

    BOX = "box"
    """Lines around the table, and between its columns."""
    ROWS = "rows"
    """Lines around all cells, for rows of several lines."""
    NONE = "none"
    """Columns separated by blanks, as kubectl prints them."""
    SCREEN = "screen"
    """The whole width of a live screen. A cell that is too long ends with an ellipsis."""
    GRID = "grid"
    """Columns without titles."""


def no_paragraphs(report: Any) -> Iterable[Paragraph]:
    """Returns no texts."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """A column of a table."""

    title: str = field(kw_only=False)
    cell: Callable[[Row], RenderableType] = field(kw_only=False)
    """Returns what the table shows of a row."""
    value: Callable[[Row], Cell] | None = None
    """Returns what CSV contains of a row: a number without its unit; None for the text that the table shows."""
    csv_title: str = ""
    """The title in CSV, where columns of several tables with one title are one column; empty for `title`."""
    rank: int = 0
    """In a narrow terminal, the column with the highest rank is left out first; one of rank 0 never is."""
    align: Literal["left", "right"] = "left"
    is_wide: bool = False
    """Whether the column is shown with `-o wide` only (and in CSV)."""
    is_below: bool = False
    """Whether the cells are printed below the table if the column is left out."""
    min_width: int = 0
    """The width below which a text of several words cannot be read well."""
    ratio: int | None = None
    """The share of the column in a table that has the whole width."""
    style: str = ""


def number_column(
    title: str,
    value: Callable[[Row], int | float | None],
    form: str | Callable[[float], str] = "{:,}",
    *,
    none: str = "–",
    **options: Any,
) -> Column[Row]:
    """Returns a column of numbers, aligned to the right. `form` is a format string or writes the number; `none` is
    shown for None."""
    write = form.format if isinstance(form, str) else form

    def cell(row: Row) -> str:
        number = value(row)
        return none if number is None else write(number)

    return Column(title, cell, value=value, **{"align": "right", **options})


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(Generic[R, Row]):
    """A part of a report: a table, with the texts before and after it."""

    key: str
    """The name of the table in CSV, if the report has several; sections with the same key are one table."""
    rows: Callable[[R], Sequence[Row]]
    columns: tuple[Column[Row], ...] | Callable[[R], tuple[Column[Row], ...]]
    """The columns, or a function that returns those of a report: a column without any value helps no reader."""
    title: str | Callable[[R], str] = ""
    name: Callable[[Row], str] | None = None
    """Returns KIND/NAME of the row's object, for `-o name`; None if rows of another section name it."""
    named: Callable[[R], Sequence[Row]] | None = None
    """Returns the rows whose names are printed, if these are not all."""
    before: Callable[[R], Iterable[Paragraph]] = no_paragraphs
    after: Callable[[R], Iterable[Paragraph]] = no_paragraphs
    empty: Callable[[R], Iterable[Paragraph]] | None = no_paragraphs
    """Returns what is printed instead if there are no rows; None for a table without rows."""
    drawn: Callable[[R], Sequence[Row]] | None = None
    """Returns the rows that are drawn, if these are not all."""
    max_rows: int | None = None
    """The largest number of rows that are drawn; the other formats have all of them."""
    is_log: bool = False
    """Whether the last rows are the newest: a terminal that does not show all rows shows these."""
    more: Callable[[int], Paragraph] | None = None
    """Returns what is printed below the table about the number of rows that are not drawn."""
    lines: Callable[[R], Iterable[Paragraph]] | None = None
    """Returns what is drawn instead of a table."""
    screen_lines: Callable[[R], Iterable[Paragraph]] | None = None
    """Returns what a terminal shows instead of `lines` without `-o wide`, if these would be longer than a screen."""
    csv_columns: tuple[Column[Row], ...] | Callable[[R], tuple[Column[Row], ...]] | None = None
    """The columns in CSV, if these are others than those of the table; without any, CSV has no such table."""
    frame: Frame = Frame.BOX

    def list_columns(self, report: R) -> tuple[Column[Row], ...]:
        """Returns the columns of the table."""
        return self.columns(report) if callable(self.columns) else self.columns

    def list_csv_columns(self, report: R) -> tuple[Column[Row], ...]:
        """Returns the columns in CSV."""
        if self.csv_columns is None:
            return self.list_columns(report)
        return self.csv_columns(report) if callable(self.csv_columns) else self.csv_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView(Generic[R]):
    """How a report is shown."""

    title: str
    """The title of the page."""
    sections: tuple[Section[R, Any], ...] | Callable[[R], tuple[Section[R, Any], ...]]
    """The sections, or a function that returns those of a report."""
    before: Callable[[R], Iterable[Paragraph]] = no_paragraphs
    after: Callable[[R], Iterable[Paragraph]] = no_paragraphs
    notes: Callable[[R], Iterable[str]] = field(default=no_paragraphs)  # type: ignore[assignment]
    texts: Mapping[str, Callable[[R], str]] = field(default_factory=dict)
    """Format → a function that returns the report as text: formats of other tools, and `html` for a page that is not
    what a terminal shows."""

    def list_sections(self, report: R) -> tuple[Section[R, Any], ...]:
        """Returns the sections of this report."""
        return self.sections(report) if callable(self.sections) else self.sections


def paragraph_section(lines: Callable[[R], Iterable[Paragraph]]) -> Section[R, Any]:
    """Returns a section that is only text between tables."""
    return Section(key="", rows=lambda report: (), columns=(), lines=lines)
