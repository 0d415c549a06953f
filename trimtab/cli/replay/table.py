"""How the report of `trimtab replay` is shown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trimtab.cli.replay.report import RECORDED, ReplayedFigures, ReplayedWorkload, ReplayGap, ReplayReport
from trimtab.cli.reporting.columns import Column, Paragraph, ReportView, Section, number_column
from trimtab.cluster.format_count import format_count

SHOWN_WORKLOADS = 12


def _money(amount: float) -> str:
    return f"−${-amount:,.2f}" if amount < 0 else f"${amount:,.2f}"


def _signed(amount: float) -> str:
    return f"{amount:,.1f}".replace("-", "−")


_NODE_HOURS: Column[ReplayedFigures] = number_column("node hours", lambda row: row.node_hours, "{:,.1f}")
_SAVED_NODES: Column[ReplayedFigures] = number_column(
    "node hours saved", lambda row: row.saved_node_hours, _signed, rank=6
)
_CORE_HOURS: Column[ReplayedFigures] = number_column("core hours", lambda row: row.core_hours, "{:,.0f}", rank=7)
_SAVED_CORES: Column[ReplayedFigures] = number_column("core hours saved", lambda row: row.saved_core_hours, _signed)
_COST: Column[ReplayedFigures] = number_column("cost", lambda row: row.cost, _money, rank=4)
_SAVED: Column[ReplayedFigures] = number_column("money saved", lambda row: row.saved, _money, rank=3)
_BOUGHT: Column[ReplayedFigures] = number_column("bought", lambda row: row.bought, rank=2)
_EVICTIONS: Column[ReplayedFigures] = number_column("evictions", lambda row: row.evictions)
_WAITS: Column[ReplayedFigures] = number_column("long waits", lambda row: row.long_waits, rank=1)
_WAITED: Column[ReplayedFigures] = number_column("waited", lambda row: row.wait_seconds, "{:,.0f} s", rank=5)
_WORKLOAD: Column[ReplayedWorkload] = Column("workload", lambda row: row.workload)
_MISSING: Column[ReplayGap] = Column("missing", lambda row: row.what, min_width=20)
_AMOUNTS = (_NODE_HOURS, _SAVED_NODES, _CORE_HOURS, _SAVED_CORES, _COST, _SAVED, _BOUGHT, _EVICTIONS, _WAITS, _WAITED)


def _describe_replay(report: ReplayReport) -> Iterator[Paragraph]:
    yield Text(
        f"{report.since[:16]} to {report.until[:16]} UTC: {report.hours:,.1f} h of captures, one each "
        f"{report.every_seconds} s",
        style="bold",
    )
    best = next((row for row in report.variants if row.variant == report.details), None)
    if best is not None and best.saved_core_hours is not None:
        money = f" ({_money(best.saved)})" if best.saved is not None else ""
        verb = "saved" if best.saved_core_hours >= 0 else "cost"
        yield Text(
            f"{report.details} would have {verb} {abs(best.saved_core_hours):,.1f} core hours{money}, with "
            f"{format_count(best.evictions or 0, 'eviction')}{_describe_repeats(report)}."
        )
    if report.model_error is not None:
        difference = f"{report.model_error:+.1%}".replace("-", "−")
        yield Text(
            f"The replay of the autoscaler alone has {difference} core hours against what was; {report.measured_error}."
        )


def _describe_repeats(report: ReplayReport) -> str:
    if report.repeats == 1:
        return ""
    least, most = _signed(report.saved_least), _signed(report.saved_most)
    return f"; from {least} to {most} in {report.repeats} replays, which differ in the order of equal nodes"


def _describe_source(report: ReplayReport) -> Iterator[Paragraph]:
    if report.best_day:
        yield Text(f"{report.details} saves most on {report.best_day}, and least on {report.worst_day or '–'}.")
    yield Text(
        f"Cluster {report.cluster or 'unknown'}, {report.rounds:,} captures, {report.pod_states:,} states of pods; "
        f"{report.printed_by}, version {report.trimtab_version}.",
        style="dim",
    )


def _chosen(report: ReplayReport, rows: list[ReplayedFigures]) -> list[ReplayedFigures]:
    return [row for row in rows if row.variant in (RECORDED, report.details)]


VIEW: ReportView[ReplayReport] = ReportView(
    title="trimtab replay",
    before=_describe_replay,
    sections=(
        Section(
            key="variants",
            rows=lambda report: report.variants,
            columns=(Column("variant", lambda row: row.variant, min_width=16), *_AMOUNTS),
        ),
        Section(
            key="days",
            title=lambda report: f"By day: as it was, and {report.details}",
            rows=lambda report: report.days,
            drawn=lambda report: _chosen(report, report.days),
            columns=(
                Column("day", lambda row: row.day),
                Column("variant", lambda row: row.variant, min_width=16),
                *_AMOUNTS,
            ),
        ),
        Section(
            key="pools",
            title=lambda report: f"By pool: as it was, and {report.details}",
            rows=lambda report: report.pools,
            drawn=lambda report: _chosen(report, report.pools),
            columns=(
                Column("pool", lambda row: row.pool or "–"),
                Column("variant", lambda row: row.variant, min_width=16),
                _NODE_HOURS,
                _SAVED_NODES,
                _CORE_HOURS,
                _SAVED_CORES,
                _COST,
                _SAVED,
                _BOUGHT,
            ),
        ),
        Section(
            key="workloads",
            title=lambda report: f"What {report.details} would have disturbed",
            rows=lambda report: report.workloads,
            max_rows=SHOWN_WORKLOADS,
            more=lambda count: Text(f"… and {count} more"),
            columns=(
                _WORKLOAD,
                number_column("evictions", lambda row: row.evictions),
            ),
        ),
        Section(
            key="missing",
            title="What captures do not show",
            rows=lambda report: report.missing,
            columns=(
                _MISSING,
                Column("what it can change", lambda row: row.changes, min_width=20),
            ),
        ),
    ),
    after=_describe_source,
    notes=lambda report: report.notes,
)
