"""The report of `trimtab recommend` on a terminal, and as CSV."""

import csv
import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.command.recommend.report import ContainerReport, RecommendReport, ResourceReport

GREY = "bright_black"
MOST = 40
"""Rows on a terminal; all of them are in the other forms."""


def draw(console: Console, report: RecommendReport) -> None:
    """What it comes to, then container by container."""
    console.print(Text(headline(report), style="bold"))
    table = Table(header_style="bold", expand=False, border_style=GREY)
    for name in ("Container", ">Pods", ">CPU", ">Memory", ">$/month", ">Sure", "Why"):
        table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    for row in report.containers[:MOST]:
        table.add_row(*_cells(row))
    if report.containers:
        console.print(table)
    if len(report.containers) > MOST:
        more = len(report.containers) - MOST
        console.print(Text(f"… and {more} more; all of them: -o csv, -o json or -o html", style=GREY))
    for note in report.notes:
        console.print(Text(f"Note: {note}", style=GREY))


def headline(report: RecommendReport) -> str:
    count = len(report.containers)
    verb = "saves" if report.saved >= 0 else "costs"
    money = f"${abs(report.saved):,.2f} a month" if any(r.monthly_saved is not None for r in report.containers) else ""
    unknown = f"; of {report.unknown} too little is known" if report.unknown else ""
    change = f"{report.changes} of {count} container{'s' if count != 1 else ''} would ask for something else"
    return f"{change}{f': that {verb} {money}' if money and report.changes else ''}{unknown}"


def _cells(row: ContainerReport) -> tuple[str | Text, ...]:
    name = Text.assemble(f"{row.namespace}/{row.workload}", ("/", GREY), row.container)
    saved = "" if row.monthly_saved is None else f"{0.0 - row.monthly_saved:+,.2f}"
    pods = "" if row.replicas is None else str(row.replicas)
    here = row.replicas is not None
    return (
        name,
        pods,
        change(row.cpu, known=here),
        change(row.memory, known=here),
        saved,
        sure(row) or "–",
        Text(because(row), style=GREY),
    )


def sure(row: ContainerReport) -> str:
    """Of the resource that is known less well; empty where neither is."""
    found = [part.confidence for part in (row.cpu, row.memory) if part.confidence is not None]
    return f"{min(found):.0%}" if found else ""


def change(part: ResourceReport, *, known: bool) -> str:
    """ "250m → 96m"; what stays, as it is. `known`: is it known what stands? Then no request is none."""
    now = part.now or ("none" if known else "?")
    return f"{now} → {part.proposed}" if part.proposed else now


def because(row: ContainerReport) -> str:
    """Both resources' reasons, once where they are the same."""
    texts = [_text(part) for part in (row.cpu, row.memory)]
    if texts[0] == texts[1]:
        return texts[0]
    return "\n".join(f"{name}: {text}" for name, text in zip(("cpu", "memory"), texts, strict=True))


def _text(part: ResourceReport) -> str:
    """Its reasons; where too little is known, also what there is of what it takes."""
    text = "; ".join(reason.text for reason in part.reasons)
    return f"{text}: {part.missing.have} of {part.missing.need}" if part.missing else text


COLUMNS = ("now", "limit", "proposed", "p5", "p50", "p95", "p99", "max", "days", "samples", "confidence")


def as_csv(report: RecommendReport) -> str:
    """A row for each container; what is not known is empty."""
    text = io.StringIO()
    names = [f"{resource}_{column}" for resource in ("cpu", "memory") for column in COLUMNS]
    money = ("monthly_now", "monthly_proposed", "monthly_saved")
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["namespace", "kind", "workload", "container", "replicas", *names, *money, "why"])
    for row in report.containers:
        cells = [getattr(part, column) for part in (row.cpu, row.memory) for column in COLUMNS]
        paid = [getattr(row, name) for name in money]
        out.writerow([row.namespace, row.kind, row.workload, row.container, row.replicas, *cells, *paid,
                      because(row).replace("\n", "; ")])  # fmt: skip
    return text.getvalue()
