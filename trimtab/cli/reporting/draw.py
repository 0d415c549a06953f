"""Draws a report with rows on a console. No other module makes tables.

A table that does not fit is not squeezed: words would be broken, and a name in two halves can be neither read nor
copied. Columns are left out instead, in the order of their ranks, and the last line names them. If the remaining ones
do not fit either, each row becomes a card: one line for each cell.

A terminal shows one screen of an answer: the first rows of a table, and the first notes. What is left out is counted,
and `-o wide` has all of it. A pipe, a page and a file have all rows of a section that does not limit them itself.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from trimtab.cli.plain_columns import cell_lines
from trimtab.cli.printable_text import ReportConsole
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section
from trimtab.cli.reporting.notes import group_notes
from trimtab.cluster.format_count import format_count

R = TypeVar("R")
_ANY_WIDTH = 100_000
GREY = "bright_black"
MAX_ROWS = 20
"""The largest number of rows, or of lines of cards, that a terminal shows of a table."""
MIN_CARDS = 3
MAX_ROWS_WITH_TEXTS = 6
"""The largest number of rows whose texts a narrow terminal shows."""
WIDE = 120
"""The width from which a row has room for its texts."""
MAX_NOTES = 4


def draw_report(console: Console, report: R, view: ReportView[R], *, is_wide: bool = False) -> None:
    """Draws all sections with their texts, and the notes."""
    _print_all(console, view.before(report))
    for section in view.list_sections(report):
        draw_section(console, report, section, is_wide=is_wide)
    _print_all(console, view.after(report))
    notes = group_notes(view.notes(report))
    max_notes = MAX_NOTES if is_screen(console) and not is_wide else len(notes)
    for note in notes[:max_notes]:
        console.print(Text(f"Note: {note}", style=GREY))
    if notes[max_notes:]:
        console.print(Text(f"… and {format_count(len(notes[max_notes:]), 'more note')}: -o wide", style=GREY))


def is_screen(console: Console) -> bool:
    """Returns whether the console is a terminal, which has a width and shows a screen at a time."""
    return not (isinstance(console, ReportConsole) and console.has_any_width)


def draw_section(console: Console, report: R, section: Section[R, Any], *, is_wide: bool = False) -> None:
    """Draws one section: its table as far as it fits, with its texts."""
    rows = (section.drawn or section.rows)(report)
    if not rows and section.lines is None and section.empty is not None:
        _print_all(console, section.empty(report))
        return
    _print_all(console, section.before(report))
    if section.screen_lines is not None and is_screen(console) and not is_wide:
        _print_all(console, section.screen_lines(report))
    elif section.lines is not None:
        _print_all(console, section.lines(report))
    else:
        columns = [column for column in section.list_columns(report) if is_wide or not column.is_wide]
        title = section.title(report) if callable(section.title) else section.title
        limit = section.max_rows
        if limit is None and section.drawn is None and is_screen(console):
            limit = MAX_ROWS
        if is_wide:
            limit = None
        first = rows[-limit:] if section.is_log and limit is not None else rows
        count = draw_table(console, first, columns, title, section.frame, max_rows=limit, is_wide=is_wide)
        if count < len(rows):
            more = section.more or _count_hidden_rows
            console.print(more(len(rows) - count))
    _print_all(console, section.after(report))


def _count_hidden_rows(hidden: int) -> Text:
    return Text(f"… and {format_count(hidden, 'more row')}: -o wide", style=GREY)


def draw_table(
    console: Console,
    rows: Sequence[Any],
    columns: Sequence[Column[Any]],
    title: str = "",
    frame: Frame = Frame.BOX,
    *,
    max_rows: int | None = None,
    is_wide: bool = False,
) -> int:
    """Draws the rows with as many columns as fit, and names the other columns. Returns how many rows are drawn: at most
    `max_rows`, and fewer of them as cards."""
    rows = rows[:max_rows]
    has_any_width = not is_screen(console)
    is_brief = not has_any_width and not is_wide and len(rows) > MAX_ROWS_WITH_TEXTS and console.width < WIDE
    shown = [column for column in columns if not (is_brief and column.is_below)]
    while True:
        table = build_table(rows, shown, title, frame)
        least = max(shown, key=lambda column: column.rank)
        is_fitting = has_any_width or table.fit(console, console.width)
        if not least.rank and not is_fitting:
            # Cells that wrap are better than cards.
            table.least_widths = (0,) * len(shown)
            is_fitting = table.fit(console, console.width)
        if is_fitting or not least.rank:
            break
        shown.remove(least)
    if not is_fitting:
        if max_rows is not None:
            rows = rows[: max(MIN_CARDS, MAX_ROWS // len(columns))]
        _print_cards(console, rows, columns, title)
        return len(rows)
    console.print(table)
    below = [column for column in columns if column.is_below and column not in shown]
    if below and not is_brief:
        _print_cards(console, rows, [columns[0], *below], "", has_titles=False)
    elif below:
        texts = ", ".join(column.title for column in below)
        console.print(f"Not shown, because there are many rows: {texts} (see -o wide).", style="dim")
    missing = [column.title for column in columns if column not in shown and column.title and not column.is_below]
    if missing and rows:
        names = ", ".join(missing)
        console.print(f"Not shown, because the terminal is narrow: {names} (see -o json or -o csv).", style="dim")
    return len(rows)


_FRAMES: dict[Frame, dict[str, Any]] = {
    Frame.BOX: {"header_style": "bold"},
    Frame.ROWS: {"header_style": "bold", "show_lines": True},
    Frame.NONE: {"box": None, "pad_edge": False},
    Frame.SCREEN: {"box": None, "pad_edge": False, "expand": True, "header_style": "bold"},
    Frame.GRID: {"box": None, "pad_edge": False, "show_edge": False, "padding": (0, 2), "collapse_padding": True},
}


def build_table(
    rows: Iterable[Any], columns: Sequence[Column[Any]], title: str = "", frame: Frame = Frame.BOX
) -> _FittedTable:
    """Returns the table of these rows and columns. Titles are shown if there are any."""
    options: dict[str, Any] = {"title": title, "title_justify": "left"} if title else {}
    has_titles = frame is not Frame.GRID and any(column.title for column in columns)
    table = _FittedTable(**options, **_FRAMES[frame], show_header=has_titles)
    table.least_widths = tuple(column.min_width for column in columns)
    is_screen = frame is Frame.SCREEN
    for column in columns:
        table.add_column(
            column.title,
            justify=column.align,
            style=column.style,
            ratio=column.ratio,
            overflow="ellipsis" if is_screen else "fold",
            no_wrap=is_screen,
        )
    for row in rows:
        table.add_row(*(column.cell(row) for column in columns))
    return table


def build_grid(rows: Sequence[Sequence[RenderableType]]) -> RenderableType:
    """Returns a table without titles that shows these cells."""
    columns: list[Column[Any]] = [Column("", itemgetter(number)) for number in range(len(rows[0]) if rows else 0)]
    return build_table(rows, columns, frame=Frame.GRID)


class _FittedTable(Table):
    """A table that breaks no word if there is room, also within a panel. Left to itself, a table shortens its widest
    column, also below a word."""

    least_widths: tuple[int, ...] = ()
    """The least width of each column."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.expand:
            self.fit(console, options.max_width)
        yield from super().__rich_console__(console, options)

    def fit(self, console: Console, width: int) -> bool:
        """Returns whether the table fits without breaking a word, and sets the widths of its columns so that it does:
        each has its longest word or its least width, and what is left goes first to the columns that lack least, so
        that as few as possible wrap."""
        options = console.options.update(width=_ANY_WIDTH)
        for column in self.columns:
            column.width = None
        words = [_measure(console, options, self, number) for number in range(len(self.columns))]
        frame_width = self.__rich_measure__(console, options).minimum - sum(need.minimum for need in words)
        needs = [
            Measurement(max(need.minimum, min(least, need.maximum)), need.maximum)
            for need, least in zip(words, self.least_widths, strict=True)
        ]
        space = width - frame_width - sum(need.minimum for need in needs)
        if space < 0 or sum(need.span for need in needs) <= space:
            return space >= 0
        wrapping = sorted(zip(needs, self.columns, strict=True), key=lambda pair: pair[0].span)
        for position, (need, column) in enumerate(wrapping):
            extra = min(need.span, space // (len(wrapping) - position))
            column.width, space = need.minimum + extra, space - extra
        return True


def _measure(console: Console, options: ConsoleOptions, table: Table, number: int) -> Measurement:
    """Returns the widths of a column without the blanks beside it."""
    column = table.columns[number]
    parts = [*([column.header] if table.show_header else []), *column.cells]
    measured = [
        Measurement.get(console, options, console.render_str(part) if isinstance(part, str) else part) for part in parts
    ]
    return Measurement(max(each.minimum for each in measured), max(each.maximum for each in measured))


def _print_cards(
    console: Console, rows: Sequence[Any], columns: Sequence[Column[Any]], title: str, *, has_titles: bool = True
) -> None:
    """Prints each row as lines of a title and a cell. A word that is longer than a line stays whole."""
    if title:
        console.print(title, style="italic")
    first, *others = columns
    for row in rows:
        # A number alone says nothing.
        head = f"{first.title}: " * (first.align == "right") + "; ".join(cell_lines(first.cell(row)))
        lines = [Text(line, "bold") for line in _wrap(head, console.width)]
        for column in others:
            content = cell_lines(column.cell(row))
            if content and has_titles:
                start = f"  {column.title}: "
                texts = _wrap(start + "; ".join(content), console.width)
                lines += [Text.assemble((texts[0][: len(start)], "dim"), texts[0][len(start) :]), *map(Text, texts[1:])]
            else:
                lines += [Text(text) for line in content for text in _wrap(f"  {line}", console.width)]
        console.print(Text("\n").join(lines), overflow="ignore", crop=False)


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _print_all(console: Console, paragraphs: Any) -> None:
    paragraph: RenderableType
    for paragraph in paragraphs:
        console.print(paragraph)
