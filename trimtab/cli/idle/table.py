"""How the report of `trimtab idle` is shown: a table for each part that is not empty, with the saving in its title."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import fsum
from typing import Any

from trimtab.cli.idle.report import ClaimRow, IdleReport, MissedSleepRow, ObjectName, OrphanRow, SleeperRow
from trimtab.cli.reporting.columns import Column, ReportView, Section

_GIB = 1 << 30
IdleRow = OrphanRow | SleeperRow | MissedSleepRow | ClaimRow


def _format(name: ObjectName) -> str:
    return f"{name.kind} {name.namespace}/{name.name}" if name.namespace else f"{name.kind} {name.name}"


def _name_row(row: IdleRow) -> str:
    return f"{row.object.kind}/{row.object.name}"


def _money(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:,.2f}"


def _sum_money(rows: Sequence[SleeperRow] | Sequence[OrphanRow]) -> str:
    return f"${fsum(row.dollars_per_month or 0.0 for row in rows):,.2f} a month"


def _object_column(title: str) -> Column[Any]:
    return Column(title, lambda row: _format(row.object), csv_title="object")


_COST: Column[Any] = Column(
    "$ a month",
    lambda row: _money(row.dollars_per_month),
    value=lambda row: row.dollars_per_month,
    align="right",
    rank=1,
)


def _gibibytes(title: str, read: Callable[[ClaimRow], int]) -> Column[ClaimRow]:
    return Column(title, lambda row: f"{read(row) / _GIB:.1f} GiB", value=lambda row: f"{read(row) / _GIB:.1f}Gi")


_SLEEPERS: Section[IdleReport, SleeperRow] = Section(
    key="sleepers",
    rows=lambda report: report.sleepers,
    title=lambda report: f"Workloads that could sleep ({report.zone}): {_sum_money(report.sleepers)}",
    columns=(
        _object_column("Workload"),
        Column("Quiet", lambda row: ", ".join(row.windows)),
        Column(
            "Hours a week",
            lambda row: str(row.hours_per_week),
            value=lambda row: row.hours_per_week,
            align="right",
            rank=2,
        ),
        _COST,
    ),
    name=_name_row,
)
_MISSED: Section[IdleReport, MissedSleepRow] = Section(
    key="missed sleep",
    rows=lambda report: report.missed_sleep,
    title="Sleep schedules that do not match the usage",
    columns=(
        _object_column("Workload"),
        Column("Schedule", lambda row: row.schedule),
        Column("Quiet, but running", lambda row: ", ".join(row.awake_and_quiet) or "–", rank=2),
        Column("Asleep, but busy", lambda row: ", ".join(row.asleep_and_busy) or "–", rank=3),
        _COST,
    ),
    name=_name_row,
)
_CLAIMS: Section[IdleReport, ClaimRow] = Section(
    key="claims",
    rows=lambda report: report.claims,
    title="Claims",
    columns=(
        _object_column("Claim"),
        _gibibytes("Used", lambda row: row.used_bytes),
        _gibibytes("Size", lambda row: row.capacity_bytes),
        Column("What", lambda row: row.reason.text, rank=3, is_below=True, min_width=24),
        _COST,
    ),
    name=_name_row,
)


def _checked(report: IdleReport) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in report.checked.items())


_ORPHANS: Section[IdleReport, OrphanRow] = Section(
    key="orphans",
    rows=lambda report: report.orphans,
    title=lambda report: f"Objects that no pod names (of {_checked(report)}): {_sum_money(report.orphans)}",
    columns=(
        _object_column("Object"),
        Column("What is known", lambda row: row.reason.text, min_width=24),
        Column("Since", lambda row: row.created or "–", rank=2),
        _COST,
    ),
    name=_name_row,
    empty=lambda report: [
        f"Every object that was checked is named by another object (checked: {_checked(report) or 'nothing'})."
    ],
)


def _describe_rest(report: IdleReport) -> Iterator[str]:
    """Yields what was not checked."""
    left_out = Counter(row.reason.code for row in report.unjudged)
    if left_out:
        kinds = ", ".join(f"{count} {code}" for code, count in sorted(left_out.items()))
        yield (
            "Objects of these kinds were not checked, because a component may read such objects although no "
            f"other object names them: {kinds}."
        )


def _list_notes(report: IdleReport) -> Iterator[str]:
    for row in report.unknown:
        yield f"Trimtab does not know {row.subject}: {row.reason.text} (have {row.have}, need {row.need})."
    yield from report.notes


VIEW: ReportView[IdleReport] = ReportView(
    title="trimtab idle", sections=(_SLEEPERS, _MISSED, _CLAIMS, _ORPHANS), after=_describe_rest, notes=_list_notes
)
