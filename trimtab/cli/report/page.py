"""The joined report as one HTML page."""

from functools import partial
from pathlib import Path

from rich.text import Text

from trimtab.cli.page.before_after import Change, draw_days
from trimtab.cli.page.console_page import PageConsole
from trimtab.cli.page.origin import PageOrigin, render_origin
from trimtab.cli.report.report import JoinedPart, JoinedReport, JoinedTable
from trimtab.cli.report.table import VIEW
from trimtab.cli.reporting.columns import Column
from trimtab.cli.reporting.draw import draw_section, draw_table
from trimtab.cli.reports.replay_words import ALONE, format_money
from trimtab.cluster.format_count import format_count, join_first

SHOWN_FILES = 5


def render_page(report: JoinedReport) -> str:
    """Returns an HTML document that loads nothing; all texts of the reports are escaped."""
    page = PageConsole(table_level=3)
    page.add_heading("The sums")
    for section in VIEW.list_sections(report):
        draw_section(page, report, section)
    for note in report.notes:
        page.print(note)
    for part in report.parts:
        _draw_part(page, part)
    facts = tuple((part.sum, part.title) for part in report.parts if part.sum)
    origin = PageOrigin(
        cluster=f"Joined from {join_first([Path(part.file).name for part in report.parts], SHOWN_FILES)}",
        at=f"{report.at[:10]} {report.at[11:16]} UTC",
        version=report.trimtab_version,
        command=report.command,
    )
    return page.render_page(report.title, report.headline, facts, render_origin(origin))


def _draw_part(page: PageConsole, part: JoinedPart) -> None:
    page.add_heading(part.title)
    page.print(Text(part.answer, style="bold"))
    bars = [
        Change(
            name=one.day,
            before=one.alone,
            before_text=_format_day(one.alone, part),
            after=one.would_be,
            after_text=_format_day(one.would_be, part),
        )
        for one in part.days
    ]
    if bars:
        page.add_picture(draw_days(bars, ALONE, f"with {part.would_be}", "cost" if part.has_prices else "core hours"))
    for table in part.tables:
        if table.rows:
            _draw_table(page, table)
    for note in part.notes:
        page.print(Text(note, style="dim"))


def _format_day(amount: float, part: JoinedPart) -> str:
    return format_money(amount) if part.has_prices else f"{amount:,.0f}"


def _draw_table(page: PageConsole, table: JoinedTable) -> None:
    columns: list[Column[list[str]]] = [
        Column(title, partial(_read_cell, number), align="right" if number in table.numbers else "left")
        for number, title in enumerate(table.columns)
    ]
    draw_table(page, table.rows, columns, table.title)
    if table.more:
        page.print(Text(f"… and {format_count(table.more, 'more row')} in the report itself", style="dim"))


def _read_cell(number: int, row: list[str]) -> str:
    return row[number]
