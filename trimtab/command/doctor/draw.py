"""The report as a table: what needs somebody stands with its fix under it."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trimtab.command.doctor.report import DoctorReport, FindingReport

_STYLES = {"ok": "green", "warn": "yellow", "error": "red", "unknown": "magenta"}


def draw(console: Console, report: DoctorReport) -> None:
    console.print(f"{report.server}, namespace {report.namespace}")
    table = Table("", "check", "finding", box=None, pad_edge=False)
    for found in report.findings:
        style = _STYLES[found.severity]
        table.add_row(f"[{style}]{found.severity}[/]", found.check, _told(found))
    console.print(table)
    for name in report.left_out:
        console.print(f"left out: {name}")
    console.print(_sum(report))


def _told(found: FindingReport) -> str:
    told = escape(found.reason.text)
    if found.severity == "ok":
        return told
    return f"{told} [dim]\\[{found.reason.code}][/]\n[bold]→[/] {escape(found.fix)}"


def _sum(report: DoctorReport) -> str:
    counts = ", ".join(f"{count} {severity}" for severity, count in report.counts.items() if count)
    return f"[bold green]well[/]: {counts}" if report.well else f"[bold red]not well[/]: {counts}"
