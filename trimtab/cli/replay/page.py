"""The report of `trimtab replay` as one HTML page: the answer, a picture of the days, and tables.

A day or a pool is one row with both numbers, so that the page is short on a phone; the other formats have all columns.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from trimtab.cli.page.before_after import Change, draw_days
from trimtab.cli.page.console_page import PageConsole
from trimtab.cli.page.origin import find_origin, render_origin
from trimtab.cli.replay.report import ReplayedFigures, ReplayReport
from trimtab.cli.replay.table import VIEW, ReplayedPair, answer_replay, describe_cluster, describe_days, pair_figures
from trimtab.cli.reporting.columns import Column, number_column
from trimtab.cli.reporting.draw import draw_section, draw_table
from trimtab.cli.reports.replay_words import RECORDED, describe_saving, format_money, format_signed
from trimtab.cluster.format_count import format_count

_DAY: Column[ReplayedPair] = Column("day", lambda row: row.was.day)
_POOL: Column[ReplayedPair] = Column("pool", lambda row: row.was.pool or "–")
_MACHINES: tuple[Column[ReplayedPair], ...] = (
    Column("as it was", lambda row: _describe_nodes(row.was), align="right"),
    Column("would have been", lambda row: _describe_nodes(row.would_be), align="right"),
    number_column("core hours saved", lambda row: row.would_be.saved_core_hours, format_signed),
)
_BOUGHT: Column[ReplayedPair] = Column(
    "bought", lambda row: f"{row.was.bought:,} → {row.would_be.bought:,}", align="right"
)
_PODS: tuple[Column[ReplayedPair], ...] = (
    number_column("evictions", lambda row: row.would_be.evictions),
    Column("long waits", lambda row: f"{row.was.long_waits or 0:,} → {row.would_be.long_waits or 0:,}", align="right"),
)


def render_page(report: ReplayReport) -> str:
    """Returns an HTML document that loads nothing; all texts of the report are escaped."""
    page = PageConsole()
    # The first paragraph is the answer, which is the headline of a page.
    for paragraph in islice(VIEW.before(report), 1, None):
        page.print(paragraph)
    has_prices = all(row.cost is not None for row in report.days)
    days = pair_figures(report, report.days)
    if days:
        page.add_heading("Day by day")
        bars = [_draw_day(pair, has_prices=has_prices) for pair in days]
        page.add_picture(draw_days(bars, RECORDED, f"with {report.details}", "cost" if has_prices else "core hours"))
    sections = {section.key: section for section in VIEW.list_sections(report)}
    draw_section(page, report, sections["variants"], is_wide=True)
    draw_table(page, days, (_DAY, *_MACHINES, _BOUGHT, *_PODS), f"By day: {RECORDED}, and {report.details}")
    pools = pair_figures(report, report.pools)
    draw_table(page, pools, (_POOL, *_MACHINES, _BOUGHT), f"By pool: {RECORDED}, and {report.details}")
    if len(pools) > 1:
        draw_table(page, pair_figures(report, report.pool_days), (_DAY, _POOL, *_MACHINES, _BOUGHT), "By day and pool")
    draw_section(page, report, sections["workloads"])
    draw_section(page, report, sections["missing"])
    for paragraph in describe_days(report):
        page.print(paragraph)
    for note in VIEW.notes(report):
        page.print(note, style="dim")
    origin = replace(
        find_origin(),
        cluster=describe_cluster(report),
        version=report.trimtab_version,
        command=report.command or report.printed_by,
    )
    return page.render_page(VIEW.title, answer_replay(report), tuple(_list_facts(report)), render_origin(origin))


def _describe_nodes(row: ReplayedFigures) -> str:
    money = f", {format_money(row.cost)}" if row.cost is not None else ""
    return f"{row.core_hours:,.0f}{money}"


def _draw_day(pair: ReplayedPair, *, has_prices: bool) -> Change:
    (was, was_text), (would_be, would_be_text) = (_measure(row, has_prices) for row in (pair.was, pair.would_be))
    return Change(name=pair.was.day, before=was, before_text=was_text, after=would_be, after_text=would_be_text)


def _measure(row: ReplayedFigures, has_prices: bool) -> tuple[float, str]:
    amount = row.cost if has_prices and row.cost is not None else row.core_hours
    return amount, format_money(amount) if has_prices else f"{amount:,.0f}"


def _list_facts(report: ReplayReport) -> Iterator[tuple[str, str]]:
    was, would_be = (report.find_variant(name) for name in (RECORDED, report.details))
    if was is None or would_be is None:
        return
    yield f"{was.node_hours:,.1f} → {would_be.node_hours:,.1f}", "node hours"
    if was.cost is not None and would_be.cost is not None:
        yield f"{format_money(was.cost)} → {format_money(would_be.cost)}", "cost of the nodes"
    yield f"{would_be.evictions or 0:,}", f"evictions, in {format_count(len(report.workloads), 'workload')}"
    yield f"{was.long_waits or 0:,} → {would_be.long_waits or 0:,}", "waits for a node of a minute or longer"
    yield f"{was.bought:,} → {would_be.bought:,}", "nodes bought"
    days = {row.day: row for row in report.days if row.variant == report.details}
    for day, what in ((report.best_day, "best"), (report.worst_day, "worst")):
        if day in days:
            yield describe_saving(days[day].saved_core_hours, days[day].saved), f"on {day}, the {what} day"
