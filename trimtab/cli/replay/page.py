"""The report of `trimtab replay` as one HTML page: the answer, a picture of the days, and tables.

A day or a pool is one row with both numbers, so that the page is short on a phone; the other formats have all columns.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from trimtab.cli.page.before_after import Change, draw_days
from trimtab.cli.page.console_page import PageConsole
from trimtab.cli.page.origin import find_origin, render_origin
from trimtab.cli.replay.report import ReplayedFigures, ReplayReport
from trimtab.cli.replay.table import (
    VIEW,
    ComparedFigures,
    answer_replay,
    compare_figures,
    describe_cluster,
    describe_days,
    describe_repeats,
)
from trimtab.cli.reporting.columns import Column, number_column
from trimtab.cli.reporting.draw import draw_section, draw_table
from trimtab.cli.reports.replay_words import ALONE, describe_saving, format_money, format_signed
from trimtab.cluster.format_count import format_count

WHOLE_DAY_HOURS = 23.5
"""A day of which less is recorded says so in the picture."""


def _compare(title: str, count: Callable[[ReplayedFigures], int | None]) -> Column[ComparedFigures]:
    """Returns a column with the count of the autoscaler alone, and that of the variant."""
    return Column(title, lambda row: f"{count(row.alone) or 0:,} → {count(row.would_be) or 0:,}", align="right")


_DAY: Column[ComparedFigures] = Column("day", lambda row: row.was.day)
_HOURS: Column[ComparedFigures] = number_column("hours", lambda row: row.was.hours, "{:,.1f}")
_POOL: Column[ComparedFigures] = Column("pool", lambda row: row.was.pool or "–")
_MACHINES: tuple[Column[ComparedFigures], ...] = (
    Column("as it was", lambda row: _describe_nodes(row.was.core_hours, row.was.cost), align="right"),
    Column("autoscaler alone", lambda row: _describe_nodes(row.alone.core_hours, row.alone.cost), align="right"),
    Column("with Trimtab", lambda row: _describe_nodes(row.would_be.core_hours, row.would_be.cost), align="right"),
    number_column("core hours saved", lambda row: row.would_be.saved_core_hours, format_signed),
)
_BOUGHT: Column[ComparedFigures] = _compare("bought", lambda row: row.bought)
_PODS: tuple[Column[ComparedFigures], ...] = (
    _compare("evictions", lambda row: row.evictions),
    _compare("long waits", lambda row: row.long_waits),
)


def render_page(report: ReplayReport) -> str:
    """Returns an HTML document that loads nothing; all texts of the report are escaped."""
    page = PageConsole()
    # The first paragraph is the answer, which is the headline of a page.
    for paragraph in islice(VIEW.before(report), 1, None):
        page.print(paragraph)
    repeats = describe_repeats(report)
    if repeats:
        page.print(f"Core hours saved: {repeats}.")
    has_prices = all(row.cost is not None for row in report.days)
    days = compare_figures(report, report.days)
    if days:
        page.add_heading("Day by day")
        bars = [_draw_day(pair, has_prices=has_prices) for pair in days]
        page.add_picture(draw_days(bars, ALONE, f"with {report.details}", "cost" if has_prices else "core hours"))
    sections = {section.key: section for section in VIEW.list_sections(report)}
    draw_section(page, report, sections["variants"], is_wide=True)
    what = f"core hours{' and cost' if has_prices else ''}; counts are of the autoscaler alone → {report.details}"
    draw_table(page, days, (_DAY, _HOURS, *_MACHINES, _BOUGHT, *_PODS), f"By day: {what}")
    pools = compare_figures(report, report.pools)
    draw_table(page, pools, (_POOL, *_MACHINES, _BOUGHT), f"By pool: {what}")
    if len(pools) > 1:
        draw_table(
            page,
            compare_figures(report, report.pool_days),
            (_DAY, _POOL, *_MACHINES, _BOUGHT),
            f"By day and pool: {what}",
        )
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


def _describe_nodes(core_hours: float, cost: float | None) -> str:
    return f"{core_hours:,.0f}" if cost is None else f"{core_hours:,.0f}, {format_money(cost)}"


def _draw_day(pair: ComparedFigures, *, has_prices: bool) -> Change:
    alone, would_be = pair.measure(has_prices=has_prices)
    name = pair.was.day if pair.was.hours >= WHOLE_DAY_HOURS else f"{pair.was.day}, {pair.was.hours:,.1f} h"
    write = format_money if has_prices else "{:,.0f}".format
    return Change(name=name, before=alone, before_text=write(alone), after=would_be, after_text=write(would_be))


def _list_facts(report: ReplayReport) -> Iterator[tuple[str, str]]:
    alone, would_be = report.find_alone(), report.find_variant(report.details)
    if alone is None or would_be is None:
        return
    yield f"{alone.node_hours:,.1f} → {would_be.node_hours:,.1f}", "node hours, without → with Trimtab"
    if alone.cost is not None and would_be.cost is not None:
        yield f"{format_money(alone.cost)} → {format_money(would_be.cost)}", "cost of the nodes"
    workloads = format_count(len(report.workloads), "workload")
    yield f"{alone.evictions or 0:,} → {would_be.evictions or 0:,}", f"evictions, with Trimtab in {workloads}"
    yield f"{alone.long_waits or 0:,} → {would_be.long_waits or 0:,}", "waits for a node of a minute or longer"
    yield f"{alone.bought:,} → {would_be.bought:,}", "nodes bought"
    days = {row.day: row for row in report.days if row.variant == report.details}
    for day, what in ((report.best_day, "best"), (report.worst_day, "worst")):
        if day in days:
            yield describe_saving(days[day].saved_core_hours, days[day].saved), f"on {day}, the {what} day"
