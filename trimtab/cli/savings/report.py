"""The report of `trimtab savings`, and its tables.

For each day and pool, the compactor stores how many nodes were removed, what their removal saves, and the namespaces of
their pods. The dollars saved so far are computed as if every removed node would otherwise still run today, so the true
amount may be lower.
"""

from collections.abc import Callable, Iterable, Mapping
from math import fsum
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section
from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.savings import (
    MONEY,
    OTHER_NAMESPACES,
    DaySavings,
    add_amounts,
    convert_amount,
    format_amount,
    format_amounts,
)

HOUR_SECONDS, DAY_SECONDS = 3600, 86_400
OTHERS = "(others)"
"""The name of the team for nodes without pods, and for pods whose namespaces the stored day does not name."""
TeamOf = Callable[[str], str]
"""A function that returns the team of a namespace."""


class SavedAmount(ReportPart, frozen=True, kw_only=True):
    """What the removal of nodes saves, with the unit."""

    amount: float
    """The amount, in `unit`."""
    unit: str
    """The unit: `dollars a month`, `cores` if no price is known, `nodes`, or `average nodes` if the pools have
    different goals."""


class SavingsPart(ReportPart, frozen=True, kw_only=True):
    """The savings of one pool, one team or one day."""

    name: str
    """The pool, the team, the day in UTC, or `total`."""
    nodes: int | None
    """The number of nodes that were removed; null for a team, because teams share nodes."""
    saves: list[SavedAmount]
    """What the removed nodes save, one amount for each unit."""
    dollars_so_far: float | None
    """The dollars saved since the removals, if the nodes would otherwise still run; null without prices."""


class SavingsReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab savings`. Published as deploy/schemas/savings-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab savings"
    api_version: str = API_VERSION
    kind: str = "SavingsReport"
    since: str
    """The beginning of the first day, as RFC 3339."""
    until: str
    """The end of the period, as RFC 3339. Each day of the report begins at midnight UTC."""
    total: SavingsPart
    """All pools together."""
    pools: list[SavingsPart]
    """The savings of each pool."""
    teams: list[SavingsPart]
    """The savings of each team, or of each namespace without a label for teams."""
    days: list[SavingsPart]
    """The savings of each day on which a node was removed."""
    notes: list[str]
    """What the savings rest on, one sentence each."""


def build_savings_report(
    states: Mapping[str, PoolState], since: Seconds, now: Seconds, team_of: TeamOf, *, only: str | None = None
) -> SavingsReport:
    """Returns the savings since a time, of all pools or of the pool `only`."""
    chosen = {pool: state for pool, state in sorted(states.items()) if only in (None, pool)}
    first_day = format_timestamp(since)[:10]
    days = {
        (pool, name): day
        for pool, state in chosen.items()
        for name, day in state.saved_days.items()
        if name >= first_day
    }
    by_pool = {pool: [day for (name, _), day in days.items() if name == pool] for pool in chosen}
    by_day = {name: [day for (_, each), day in days.items() if each == name] for name in sorted({d for _, d in days})}
    earlier = sum(state.saved for state in chosen.values()) - sum(
        day.nodes for state in chosen.values() for day in state.saved_days.values()
    )
    notes = []
    if days or earlier:
        notes.append(
            "The money saved so far is an upper bound: the computation assumes that a removed node would have run "
            "until now."
        )
    if earlier:
        notes.append(f"{_count(earlier)} before the first day that is stored, so no sum includes these nodes.")
    return SavingsReport(
        since=format_timestamp(since - since % DAY_SECONDS),
        until=format_timestamp(now),
        total=_sum_days("total", days.values(), now),
        pools=[_sum_days(pool, days_of_part, now) for pool, days_of_part in by_pool.items()],
        teams=_sum_teams(days.values(), now, team_of),
        days=[_sum_days(name, days_of_part, now) for name, days_of_part in by_day.items()],
        notes=notes,
    )


def _count(nodes: int) -> str:
    return format_count(nodes, "node was removed", "nodes were removed")


def _sum_days(name: str, days: Iterable[DaySavings], now: Seconds) -> SavingsPart:
    all_days = list(days)
    worth = add_amounts(day.worth for day in all_days)
    dollars = fsum(_dollars(day.worth.get(MONEY, 0), day, now) for day in all_days)
    return _part(name, sum(day.nodes for day in all_days), worth, dollars)


def _sum_teams(days: Iterable[DaySavings], now: Seconds, team_of: TeamOf) -> list[SavingsPart]:
    worth: dict[str, dict[str, int]] = {}
    dollars: dict[str, float] = {}
    for day in days:
        for unit, shares in day.namespaces.items():
            for namespace, amount in shares.items():
                team = OTHERS if namespace == OTHER_NAMESPACES else team_of(namespace)
                worth[team] = add_amounts((worth.get(team, {}), {unit: amount}))
                dollars[team] = dollars.get(team, 0) + (_dollars(amount, day, now) if unit == MONEY else 0)
    parts = [_part(team, None, worth[team], dollars[team]) for team in worth]
    return sorted(parts, key=lambda part: (part.name == OTHERS, [-each.amount for each in part.saves], part.name))


def _part(name: str, nodes: int | None, worth: Mapping[str, int], dollars: float) -> SavingsPart:
    converted = [convert_amount(amount, unit) for unit, amount in sorted(worth.items())]
    return SavingsPart(
        name=name,
        nodes=nodes,
        saves=[SavedAmount(amount=amount, unit=unit) for amount, unit in converted],
        dollars_so_far=round(dollars, 2) if MONEY in worth else None,
    )


def _dollars(micro_dollars_an_hour: int, day: DaySavings, now: Seconds) -> float:
    return micro_dollars_an_hour / 1e6 * max(0, now - day.at) / HOUR_SECONDS


def _describe(total: SavingsPart) -> str:
    amounts = "".join(f", {format_amount(each.amount, each.unit)}" for each in total.saves)
    money = f", at most {_money(total)} saved so far" if total.dollars_so_far is not None else ""
    return f"{_count(total.nodes or 0)}{amounts}{money}"


def _money(part: SavingsPart) -> str:
    return "–" if part.dollars_so_far is None else f"${part.dollars_so_far:,.2f}"


_NODES: Column[SavingsPart] = Column("nodes", lambda part: str(part.nodes), value=lambda part: part.nodes)
_SAVES: Column[SavingsPart] = Column("saves", lambda part: format_amounts(part.saves))
_SAVED: Column[SavingsPart] = Column("saved so far, at most", _money, value=lambda part: part.dollars_so_far, rank=1)


def _name_column(title: str) -> Column[SavingsPart]:
    return Column(title, lambda part: part.name)


VIEW: ReportView[SavingsReport] = ReportView(
    title="trimtab savings",
    before=lambda report: [f"Since {report.since[:10]}: {_describe(report.total)}"],
    sections=(
        Section(
            key="pools",
            rows=lambda report: report.pools,
            columns=(_name_column("pool"), _NODES, _SAVES, _SAVED),
            name=lambda part: f"pool/{part.name}",
            frame=Frame.NONE,
        ),
        Section(
            key="teams",
            rows=lambda report: report.teams,
            columns=(_name_column("team"), _SAVES, _SAVED),
            frame=Frame.NONE,
        ),
    ),
    notes=lambda report: report.notes,
)
"""How the savings are shown: the total, a table by pool, and a table by team."""
