"""How the report of `trimtab replay` is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from trimtab.cli.replay.report import (
    CAPTURES,
    STATE_METRICS,
    ReplayedFigures,
    ReplayedWorkload,
    ReplayGap,
    ReplayReport,
)
from trimtab.cli.reporting.columns import Column, Frame, Paragraph, ReportView, Section, number_column
from trimtab.cli.reports.replay_words import (
    RECORDED,
    describe_doubt,
    describe_evictions,
    describe_model_error,
    describe_saving,
    format_money,
    format_signed,
)
from trimtab.cluster.format_count import format_count, join_first

SHOWN_WORKLOADS, SHOWN_DAYS, SHOWN_NAMES = 12, 7, 4
_ROUND = {CAPTURES: "capture", STATE_METRICS: "point"}
"""What was recorded → one part of it, of one time."""

_NODE_HOURS: Column[ReplayedFigures] = number_column("node hours", lambda row: row.node_hours, "{:,.1f}")
_SAVED_NODES: Column[ReplayedFigures] = number_column(
    "node hours saved", lambda row: row.saved_node_hours, format_signed, rank=6
)
_CORE_HOURS: Column[ReplayedFigures] = number_column("core hours", lambda row: row.core_hours, "{:,.0f}", rank=7)
_SAVED_CORES: Column[ReplayedFigures] = number_column(
    "core hours saved", lambda row: row.saved_core_hours, format_signed
)
_COST: Column[ReplayedFigures] = number_column("cost", lambda row: row.cost, format_money, rank=4)
_SAVED: Column[ReplayedFigures] = number_column("money saved", lambda row: row.saved, format_money, rank=3)
_BOUGHT: Column[ReplayedFigures] = number_column("bought", lambda row: row.bought, rank=2)
_EVICTIONS: Column[ReplayedFigures] = number_column("evictions", lambda row: row.evictions)
_WAITS: Column[ReplayedFigures] = number_column("long waits", lambda row: row.long_waits, rank=1)
_WAITED: Column[ReplayedFigures] = number_column("waited", lambda row: row.wait_seconds, "{:,.0f} s", rank=5)
_WORKLOAD: Column[ReplayedWorkload] = Column("workload", lambda row: row.workload)
_MISSING: Column[ReplayGap] = Column("missing", lambda row: row.what, min_width=20)
_MACHINES = (_NODE_HOURS, _SAVED_NODES, _CORE_HOURS, _SAVED_CORES, _COST, _SAVED, _BOUGHT)
_AMOUNTS = (*_MACHINES, _EVICTIONS, _WAITS, _WAITED)


def answer_replay(report: ReplayReport) -> str:
    """Returns the answer as a sentence: what the variant of the details would have saved, and how many evictions that
    would have needed."""
    row, alone = report.find_variant(report.details), report.find_alone()
    if row is None or row.saved_core_hours is None or alone is None:
        return f"{report.hours:,.1f} hours were replayed"
    saving = describe_saving(row.saved_core_hours, row.saved, alone.core_hours)
    return f"{report.details}: {saving}, with {describe_evictions(row.evictions or 0, alone.evictions)}"


def _describe_replay(report: ReplayReport) -> Iterator[Paragraph]:
    repeats = describe_repeats(report)
    yield Text(f"{answer_replay(report)}{f'; {repeats}' if repeats else ''}", style="bold")
    yield Text(
        f"{report.since[:16]} to {report.until[:16]} UTC: {report.hours:,.1f} h of {report.source}, one "
        f"{_ROUND[report.source]} each {report.every_seconds} s. Savings are against the cluster autoscaler alone in "
        "the replay."
    )
    if report.model_error is None:
        return
    yield Text(describe_model_error(report.model_error, report.measured_error))
    was, row = report.find_variant(RECORDED), report.find_variant(report.details)
    if was is not None and row is not None:
        doubt = describe_doubt(row.saved_core_hours, was.core_hours, report.model_error, report.own_drains)
        if doubt:
            yield Text(doubt, style="yellow")


def describe_repeats(report: ReplayReport) -> str:
    """Returns by how much the repeats of the variant of the details differ, as the end of a sentence; empty without
    repeats."""
    if report.repeats == 1:
        return ""
    least, most = format_signed(report.saved_least), format_signed(report.saved_most)
    span = "the same" if least == most else f"from {least} to {most}"
    return f"{span} in {report.repeats} replays, which differ in the order of equal nodes"


def describe_cluster(report: ReplayReport) -> str:
    """Returns the cluster and how much was recorded of it, as the start of a sentence."""
    rounds = format_count(report.rounds, _ROUND[report.source])
    cluster = f"Cluster {report.cluster}" if report.cluster else f"A cluster without a name in {report.source}"
    return f"{cluster}: {rounds}, {format_count(report.pod_states, 'state')} of pods"


def describe_days(report: ReplayReport) -> Iterator[Paragraph]:
    """Yields which day is the best one, and which the worst."""
    if report.best_day:
        yield Text(f"{report.details} saves most on {report.best_day}, and least on {report.worst_day}.")
    elif report.worst_day:
        yield Text(f"{report.details} saves on no day, and costs most on {report.worst_day}.")


def _describe_source(report: ReplayReport) -> Iterator[Paragraph]:
    yield from describe_days(report)
    command = report.command or report.printed_by
    yield Text(f"{describe_cluster(report)}; trimtab {report.trimtab_version}: {command}", style="dim")


def _chosen(report: ReplayReport, rows: list[ReplayedFigures]) -> list[ReplayedFigures]:
    return [row for row in rows if row.variant in (RECORDED, report.details)]


def _name_workload(row: ReplayedWorkload) -> str:
    """Returns KIND/NAME of `Deployment shop/web`; a pod without an owner is written as `shop/web`."""
    kind, _, key = row.workload.rpartition(" ")
    return f"{kind or 'Pod'}/{key.rpartition('/')[2]}"


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
                number_column("hours", lambda row: row.hours, "{:,.1f}", rank=8),
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
                *_MACHINES,
            ),
        ),
        Section(
            key="pool days",
            title="By day and pool",
            rows=lambda report: report.pool_days,
            drawn=lambda report: (
                _chosen(report, report.pool_days) if len({row.pool for row in report.pool_days}) > 1 else ()
            ),
            columns=(
                Column("day", lambda row: row.day),
                Column("pool", lambda row: row.pool or "–"),
                Column("variant", lambda row: row.variant, min_width=16),
                *_MACHINES,
            ),
        ),
        Section(
            key="workloads",
            title=lambda report: f"What {report.details} and the autoscaler would have disturbed",
            rows=lambda report: report.workloads,
            name=_name_workload,
            max_rows=SHOWN_WORKLOADS,
            more=lambda count: Text(f"… and {count} more"),
            columns=(
                _WORKLOAD,
                number_column("evictions", lambda row: row.evictions),
            ),
        ),
        Section(
            key="missing",
            title=lambda report: f"What {report.source} {'do' if report.source == CAPTURES else 'does'} not show",
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


@dataclass(frozen=True, slots=True)
class ComparedFigures:
    """A day, a pool, or a day of a pool: as it was, with the autoscaler alone in the replay, and in the variant of the
    details. The variant is compared with the autoscaler alone."""

    was: ReplayedFigures
    alone: ReplayedFigures
    would_be: ReplayedFigures

    def measure(self, *, has_prices: bool) -> tuple[float, float]:
        """Returns (of the autoscaler alone, of the variant): the dollars or, without prices, the core hours."""
        if has_prices and self.alone.cost is not None and self.would_be.cost is not None:
            return self.alone.cost, self.would_be.cost
        return self.alone.core_hours, self.would_be.core_hours


def compare_figures(report: ReplayReport, rows: Sequence[ReplayedFigures]) -> list[ComparedFigures]:
    """Returns what was recorded, each with what the replays have for the same day and pool."""
    by_place = {(row.variant, row.day, row.pool): row for row in rows}
    sums = report.find_alone()
    names = (RECORDED, sums.variant if sums is not None else "", report.details)
    compared = []
    for row in rows:
        places = [(name, row.day, row.pool) for name in names]
        if row.variant == report.details and all(place in by_place for place in places):
            compared.append(ComparedFigures(*(by_place[place] for place in places)))
    return compared


def _describe_rest(report: ReplayReport) -> Iterator[Paragraph]:
    if report.workloads:
        names = join_first([f"{row.workload} {row.evictions}" for row in report.workloads], SHOWN_NAMES)
        yield Text(f"Evictions by workload: {names}")
    yield from _describe_source(report)
    do = "do" if report.source == CAPTURES else "does"
    yield Text(f"What {report.source} {do} not show, pools and workloads: -o wide, or -o html", style="dim")


SCREEN_VIEW: ReportView[ReplayReport] = replace(
    VIEW,
    sections=(
        Section(
            key="variants",
            rows=lambda report: report.variants,
            columns=(
                Column("variant", lambda row: row.variant, min_width=16),
                _SAVED_CORES,
                _SAVED,
                _BOUGHT,
                _EVICTIONS,
                _WAITS,
            ),
            frame=Frame.NONE,
        ),
        Section(
            key="days",
            title="Core hours by day (UTC), recorded and in the replay",
            rows=lambda report: compare_figures(report, report.days),
            columns=(
                Column("day", lambda row: row.was.day),
                number_column("hours", lambda row: row.was.hours, "{:,.1f}", rank=2),
                number_column("as it was", lambda row: row.was.core_hours, "{:,.0f}"),
                number_column("autoscaler alone", lambda row: row.alone.core_hours, "{:,.0f}"),
                number_column("with Trimtab", lambda row: row.would_be.core_hours, "{:,.0f}"),
                number_column("saved", lambda row: row.would_be.saved_core_hours, format_signed),
                number_column("evictions", lambda row: row.would_be.evictions, rank=1),
            ),
            max_rows=SHOWN_DAYS,
            more=lambda count: Text(f"… and {format_count(count, 'more day')}: -o wide"),
            frame=Frame.NONE,
        ),
    ),
    after=_describe_rest,
    notes=lambda report: report.notes,
)
"""The report on one screen: the answer, the variants and the days. `-o wide` shows the rest."""
