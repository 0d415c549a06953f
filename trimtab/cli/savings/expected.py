"""The report of `trimtab savings --expected`: what the compactor's drains promised, and what became of them.

Both are in the states of pools. Drains of days before the first record, of other versions, are not in it: they are
counted and named, and not compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from rich.text import Text

from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, Frame, Paragraph, ReportView, Section, number_column
from trimtab.cli.savings.report import DAY_SECONDS, HOUR_SECONDS, SavedAmount
from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.promises import DayPromises
from trimtab.compaction.drain.savings import add_amounts, convert_amount, format_amounts

_UPPER_BOUND = (
    "The node hours are an upper bound: the computation assumes that a removed node would have run until now. A "
    "setback may have ended its saving: the autoscaler has added a node, or a pod has waited for one."
)


class PromisePart(ReportPart, frozen=True, kw_only=True):
    """The drains of one pool, one day, or all."""

    name: str
    """The pool, the day in UTC, or `total`."""
    begun: int
    """The number of drains that began."""
    promised: list[SavedAmount]
    """What the drains that began promised to save."""
    removed: int
    """The number of drained nodes that were removed."""
    saves: list[SavedAmount]
    """What the removed nodes save, by the plans that chose them."""
    unkept: int
    """The number of drains that ended without a removal."""
    under_way: int | None
    """The number of drains that have not ended; null for one day."""
    setbacks: int
    """How often a pod waited, or a node was added, because of a drain."""
    node_hours: float
    """The hours since the removals, for all removed nodes together: an upper bound, because a node may have been added
    since."""


class ExpectedSavingsReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab savings --expected`. Published as deploy/schemas/expected-savings-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab savings --expected"
    api_version: str = API_VERSION
    kind: str = "ExpectedSavingsReport"
    since: str
    """The beginning of the first day, as RFC 3339."""
    until: str
    """The end of the report, as RFC 3339."""
    total: PromisePart
    """All pools together."""
    pools: list[PromisePart]
    """The promises of each pool."""
    days: list[PromisePart]
    """The promises of each day."""
    unrecorded: int
    """The number of nodes that were removed in the period before promises were recorded."""
    begun_before: int
    """The number of drains that ended in the period, or are under way, and began before it, or before promises were
    recorded."""
    notes: list[str]
    """What is not recorded, one sentence each."""


def build_expected_report(
    states: Mapping[str, PoolState], since: Seconds, now: Seconds, *, only: str | None = None
) -> ExpectedSavingsReport:
    """Returns what the drains since a time promised and what became of them, of all pools or of the pool `only`."""
    chosen = {pool: state for pool, state in sorted(states.items()) if only in (None, pool)}
    first_day = format_timestamp(since)[:10]
    days = {
        pool: {name: day for name, day in state.promise_days.items() if name >= first_day}
        for pool, state in chosen.items()
    }
    names = sorted({name for days_of_pool in days.values() for name in days_of_pool})
    unrecorded = {pool: _count_unrecorded(state, first_day) for pool, state in chosen.items()}
    every_day = [day for days_of_pool in days.values() for day in days_of_pool.values()]
    total = _sum_promises("total", every_day, now, sum(len(state.drains) for state in chosen.values()))
    begun_before = max(0, total.removed + total.unkept + (total.under_way or 0) - total.begun)
    return ExpectedSavingsReport(
        since=format_timestamp(since - since % DAY_SECONDS),
        until=format_timestamp(now),
        total=total,
        pools=[_sum_promises(pool, days[pool].values(), now, len(state.drains)) for pool, state in chosen.items()],
        days=[_sum_promises(name, [part[name] for part in days.values() if name in part], now, None) for name in names],
        unrecorded=sum(unrecorded.values()),
        begun_before=begun_before,
        notes=list(_list_notes(chosen, unrecorded, begun_before)),
    )


def _count_unrecorded(state: PoolState, first_day: str) -> int:
    """Returns how many nodes were removed without a record of promises, by an earlier version."""
    removed = sum(day.nodes for name, day in state.saved_days.items() if name >= first_day)
    return max(0, removed - sum(day.kept for name, day in state.promise_days.items() if name >= first_day))


def _list_notes(states: Mapping[str, PoolState], unrecorded: Mapping[str, int], begun_before: int) -> Iterator[str]:
    if not states:
        yield "No state of a pool is stored: the compactor has not run, or the capture does not have its ConfigMaps."
    if begun_before:
        drains = format_count(begun_before, "drain")
        yield (
            f"{drains} that ended or are under way began before this time, or before promises were recorded: their "
            "promises are not in the sum."
        )
    if any(day.kept for state in states.values() for day in state.promise_days.values()):
        yield _UPPER_BOUND
    for pool, count in unrecorded.items():
        if count:
            begin = min(states[pool].promise_days, default="")
            since = f"only since {begin}" if begin else "not at all so far"
            nodes = format_count(count, "node was removed", "nodes were removed")
            yield f"In pool {pool} promises are recorded {since}: {nodes} before, and not compared."


def _sum_promises(name: str, days: Iterable[DayPromises], now: Seconds, under_way: int | None) -> PromisePart:
    parts = list(days)
    seconds = sum(part.kept * max(0, now - part.at) for part in parts)
    return PromisePart(
        name=name,
        begun=sum(part.begun for part in parts),
        promised=_convert_amounts(add_amounts(part.promised for part in parts)),
        removed=sum(part.kept for part in parts),
        saves=_convert_amounts(add_amounts(part.saved for part in parts)),
        unkept=sum(part.unkept for part in parts),
        under_way=under_way,
        setbacks=sum(part.setbacks for part in parts),
        node_hours=round(seconds / HOUR_SECONDS, 1),
    )


def _convert_amounts(worth: Mapping[str, int]) -> list[SavedAmount]:
    converted = [convert_amount(amount, unit) for unit, amount in sorted(worth.items())]
    return [SavedAmount(amount=amount, unit=unit) for amount, unit in converted]


def _describe(report: ExpectedSavingsReport) -> Iterator[Paragraph]:
    total = report.total
    if not (total.begun or total.removed or total.unkept or total.under_way):
        yield Text(f"Since {report.since[:10]} no drain is recorded, so nothing was promised.", style="bold")
        return
    promised = f" promised {format_amounts(total.promised)}" if total.promised else " began"
    saves = f", which saves {format_amounts(total.saves)}" if total.saves else ""
    removed = format_count(total.removed, "node was removed", "nodes were removed")
    yield Text(
        f"Since {report.since[:10]}: {format_count(total.begun, 'drain')}{promised}; {removed}{saves}", style="bold"
    )
    yield Text(
        f"{format_count(total.unkept, 'drain')} ended without a removal, {total.under_way or 0} under way, "
        f"{format_count(total.setbacks, 'setback')}; at most {total.node_hours:,.1f} node hours saved so far."
    )


def _list_columns(title: str) -> tuple[Column[PromisePart], ...]:
    return (
        Column(title, lambda part: part.name),
        number_column("drains", lambda part: part.begun),
        Column("promised", lambda part: format_amounts(part.promised)),
        number_column("removed", lambda part: part.removed),
        Column("saves", lambda part: format_amounts(part.saves)),
        number_column("not removed", lambda part: part.unkept, rank=1),
        number_column("under way", lambda part: part.under_way, rank=3),
        number_column("setbacks", lambda part: part.setbacks, rank=2),
        number_column("node hours, at most", lambda part: part.node_hours, "{:,.1f}", rank=4),
    )


EXPECTED_VIEW: ReportView[ExpectedSavingsReport] = ReportView(
    title="trimtab savings --expected",
    before=_describe,
    sections=(
        Section(
            key="pools",
            rows=lambda report: report.pools,
            columns=_list_columns("pool"),
            name=lambda part: f"pool/{part.name}",
            frame=Frame.NONE,
        ),
        Section(key="days", rows=lambda report: report.days, columns=_list_columns("day"), frame=Frame.NONE),
    ),
    notes=lambda report: report.notes,
)
"""How the comparison is shown: the sums, a table by pool, and a table by day."""
