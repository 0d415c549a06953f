"""The report of `trimtab idle` as tables."""

from collections import Counter

from rich.console import Console
from rich.table import Table

from trimtab.cli.idle.report import IdleReport, ObjectName

_GIB = 1 << 30


def draw_idle_report(console: Console, report: IdleReport) -> None:
    """Draw every part of the report that is not empty, with the saving in its title."""
    _draw_sleepers(console, report)
    _draw_missed(console, report)
    _draw_claims(console, report)
    _draw_orphans(console, report)
    left_out = Counter(row.reason.code for row in report.unjudged)
    if left_out:
        kinds = ", ".join(f"{count} {code}" for code, count in sorted(left_out.items()))
        console.print(
            "Objects of these kinds were not checked, because a component may read such objects although no "
            f"other object names them: {kinds}."
        )
    for row in report.unknown:
        sentence = f"Trimtab cannot decide about {row.subject}: {row.reason.text} (have {row.have}, need {row.need})."
        console.print(sentence)
    for note in report.notes:
        console.print(note)


def _draw_sleepers(console: Console, report: IdleReport) -> None:
    if not report.sleepers:
        return
    total = sum(row.dollars_per_month or 0.0 for row in report.sleepers)
    table = _table(
        f"Workloads that could sleep ({report.zone}): ${total:,.2f} a month",
        "Workload",
        "Quiet",
        "Hours a week",
        "$ a month",
    )
    for row in report.sleepers:
        table.add_row(
            _format(row.object), ", ".join(row.windows), str(row.hours_per_week), _money(row.dollars_per_month)
        )
    console.print(table)


def _draw_missed(console: Console, report: IdleReport) -> None:
    if not report.missed_sleep:
        return
    table = _table(
        "Sleep schedules that do not match the usage",
        "Workload",
        "Schedule",
        "Quiet, but running",
        "Asleep, but busy",
        "$ a month",
    )
    for row in report.missed_sleep:
        table.add_row(_format(row.object), row.schedule, ", ".join(row.awake_and_quiet) or "–",
                      ", ".join(row.asleep_and_busy) or "–", _money(row.dollars_per_month))  # fmt: skip
    console.print(table)


def _draw_claims(console: Console, report: IdleReport) -> None:
    if not report.claims:
        return
    table = _table("Claims", "Claim", "Used", "Size", "What", "$ a month")
    for row in report.claims:
        table.add_row(_format(row.object), f"{row.used_bytes / _GIB:.1f} GiB", f"{row.capacity_bytes / _GIB:.1f} GiB",
                      row.reason.text, _money(row.dollars_per_month))  # fmt: skip
    console.print(table)


def _draw_orphans(console: Console, report: IdleReport) -> None:
    judged = ", ".join(f"{count} {kind}" for kind, count in report.checked.items())
    if not report.orphans:
        console.print(f"Every object that was checked is named by another object (checked: {judged or 'nothing'}).")
        return
    total = sum(row.dollars_per_month or 0.0 for row in report.orphans)
    table = _table(
        f"Objects that no pod names (of {judged}): ${total:,.2f} a month",
        "Object",
        "What is known",
        "Since",
        "$ a month",
    )
    for row in report.orphans:
        table.add_row(_format(row.object), row.reason.text, row.created or "–", _money(row.dollars_per_month))
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(
            column, overflow="fold", justify="right" if column in ("$ a month", "Hours a week") else "left"
        )
    return table


def _format(name: ObjectName) -> str:
    return f"{name.kind} {name.namespace}/{name.name}" if name.namespace else f"{name.kind} {name.name}"


def _money(dollars: float | None) -> str:
    return "–" if dollars is None else f"{dollars:,.2f}"
