"""The report of `trimtab recommend` on a terminal, and as CSV."""

import csv
import io
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.recommend.report import ComparisonReport, ContainerReport, RecommendReport, ResourceReport, TotalReport
from trimtab.sizing.reasons import NO_USAGE

GREY = "bright_black"
MOST = 40
"""Rows on a terminal; all of them are in the other forms."""
WIDE = 110
"""Columns of a terminal from which on reasons have a column of their own."""


def draw(console: Console, report: RecommendReport) -> None:
    """What it comes to, all together and by namespace, what changed, then container by container."""
    console.print(Text(headline(report), style="bold"))
    if report.total.monthly_now is not None and report.changes:
        console.print(Text(in_all(report)))
    if report.against is not None:
        _draw_against(console, report.against)
    for by in dict.fromkeys(one.by for one in report.totals):
        _draw_totals(console, [one for one in report.totals if one.by == by])
    if report.containers:
        _draw_containers(console, report.containers[:MOST])
    if len(report.containers) > MOST:
        more = len(report.containers) - MOST
        console.print(Text(f"… and {more} more; all of them: -o csv, -o json or -o html", style=GREY))
    for note in report.notes:
        console.print(Text(f"Note: {note}", style=GREY))


_COLUMNS = (
    ("Container", False), (">Pods", True), (">CPU", False), (">Memory", False), (">Saves $", True), ("Severity", True),
    (">Sure", False), ("Why", False),
)  # fmt: skip
"""Title, and whether it takes a snapshot to know it; ">" is right-aligned."""


def _draw_containers(console: Console, rows: Sequence[ContainerReport]) -> None:
    """With the reasons beside the numbers where there is room for sentences, else below."""
    is_wide, here = console.width >= WIDE, any(row.replicas is not None for row in rows)
    columns = [column for column in _COLUMNS if is_wide or column[0] != "Why"]
    table = Table(header_style="bold", expand=False, border_style=GREY)
    for name, of_snapshot in columns:
        if here or not of_snapshot:
            table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    for row in rows:
        cells: tuple[str | Text, ...] = (*_cells(row), Text(because(row), style=GREY))
        table.add_row(
            *(cell for cell, (_, of_snapshot) in zip(cells, columns, strict=False) if here or not of_snapshot)
        )
    console.print(table)
    for row in rows if not is_wide else ():
        console.print(Text(f"{_name(row)}"), Text(f"  {because(row)}".replace("\n", "\n  "), style=GREY), sep="\n")


def _draw_totals(console: Console, found: Sequence[TotalReport]) -> None:
    """Nothing where there is but one group, or where no snapshot tells requests: the headline says as much."""
    known = [one for one in found if one.monthly_now is not None]
    if len(known) < 2:
        return
    table = Table(header_style="bold", expand=False, border_style=GREY)
    for name in (_title(found[0]), ">Containers", ">Cores", ">GiB", ">$ a month", ">Saves $"):
        table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    for one in known[:MOST]:
        table.add_row(one.value or "–", str(one.containers), *amounts(one))
    console.print(table)
    if len(known) > MOST:
        console.print(Text(f"… and {len(known) - MOST} more; all of them: -o json", style=GREY))


def _title(one: TotalReport) -> str:
    by = one.by or ""
    return by.capitalize() if by in ("namespace", "kind", "cluster") else by


def amounts(one: TotalReport) -> tuple[str, str, str, str]:
    """Cores, GiB and dollars before and after, and what that saves."""
    pairs = ((one.cpu_now, one.cpu_proposed), (one.memory_now, one.memory_proposed))
    cores, gib = (f"{_amount(now)} → {_amount(proposed)}" for now, proposed in pairs)
    return cores, gib, f"{one.monthly_now or 0:,.0f} → {one.monthly_proposed or 0:,.0f}", money(one.monthly_saved)


def _amount(value: float | None) -> str:
    """Small amounts to the hundredth, so that none of them is nothing."""
    found = value or 0.0
    return f"{found:,.2f}" if found < 10 else f"{found:,.1f}"


UNSURE = 0.5
"""Confidence below which neither a policy nor a patch lowers a request unless they are told to."""


def in_all(report: RecommendReport) -> str:
    """What all of it comes to, and how much of what it saves is doubtful."""
    cores, gib, dollars, _ = amounts(report.total)
    text = f"Requests of all pods: {cores} cores, {gib} GiB, {dollars} dollars a month."
    doubtful = (row for row in report.containers if (found := _confidence(row)) is not None and found < UNSURE)
    unsure = sum(max(0.0, row.monthly_saved or 0.0) for row in doubtful)
    return text + (f" Containers of which less than half is sure save ${unsure:,.2f} of it." if unsure >= 1 else "")


def money(saved: float | None) -> str:
    """Dollars that are saved; with a minus where it costs more, as in every form of the report."""
    return "" if saved is None else f"{saved + 0.0:,.2f}"


def _draw_against(console: Console, against: ComparisonReport) -> None:
    console.print(Text(since(against)))
    for one in against.differences[:MOST]:
        place = one.place
        name = f"{place.namespace}/{place.workload}/{place.container} {one.resource}"
        console.print(
            Text(f"  {name}: {one.before or 'none'} → {one.after or 'none'} ({WORDS.get(one.what, one.what)})")
        )
    if len(against.differences) > MOST:
        console.print(Text(f"  … and {len(against.differences) - MOST} more; all of them: -o json", style=GREY))
    for title, places in (("new", against.new), ("gone", against.gone)):
        if places:
            names = ", ".join(f"{one.namespace}/{one.workload}/{one.container}" for one in places[:MOST_NAMES])
            more = f" and {len(places) - MOST_NAMES} more" if len(places) > MOST_NAMES else ""
            console.print(Text(f"  {title}: {names}{more}"))


MOST_NAMES = 10
WORDS = {"applied": "as recommended", "request-changed": "request", "recommendation-changed": "recommendation"}


def since(against: ComparisonReport) -> str:
    """How much changed, in one sentence."""
    counts = Counter(one.what for one in against.differences)
    other, news = counts["request-changed"], counts["recommendation-changed"]
    parts = [
        f"{counts['applied']} applied", f"{other} other request{'' if other == 1 else 's'} changed",
        f"{news} recommendation{'' if news == 1 else 's'} changed", f"{len(against.new)} new",
        f"{len(against.gone)} gone",
    ]  # fmt: skip
    when = f"the report of {against.at}" if against.at else "that report"
    return f"Since {when}, which would have saved ${against.saved:,.2f} a month: {', '.join(parts)}."


def headline(report: RecommendReport) -> str:
    count = len(report.containers)
    verb = "saves" if report.saved >= 0 else "costs"
    money = f"${abs(report.saved):,.2f} a month" if any(r.monthly_saved is not None for r in report.containers) else ""
    unknown = f"; of {report.unknown} too little is known" if report.unknown else ""
    containers = f"{report.changes} of {count} container{'s' if count != 1 else ''}"
    is_known = any(row.replicas is not None for row in report.containers)
    change = f"{containers} would ask for something else" if is_known else f"A request for {containers}"
    return f"{change}{f': that {verb} {money}' if money and report.changes else ''}{unknown}"


def _cells(row: ContainerReport) -> tuple[str, ...]:
    pods = "" if row.replicas is None else str(row.replicas)
    if row.hours_per_month is not None:
        pods = f"{row.hours_per_month:,.0f} h" if row.hours_per_month >= 1 else "< 1 h"
    here = row.replicas is not None
    return (
        _name(row),
        pods,
        change(row.cpu, known=here),
        change(row.memory, known=here),
        money(row.monthly_saved),
        row.severity,
        sure(row) or "–",
    )


def _name(row: ContainerReport) -> str:
    where = f"{row.cluster or '–'}: " if row.cluster is not None else ""
    return f"{where}{row.namespace}/{row.workload}/{row.container}"


def sure(row: ContainerReport) -> str:
    """Of the resource that is known less well; empty where neither is."""
    found = _confidence(row)
    return "" if found is None else f"{found:.0%}"


def _confidence(row: ContainerReport) -> float | None:
    return min((part.confidence for part in (row.cpu, row.memory) if part.confidence is not None), default=None)


def change(part: ResourceReport, *, known: bool) -> str:
    """ "250m → 96m"; what stays, as it is. `known`: is it known what stands? Else only what is proposed."""
    if not known:
        return part.proposed or "–"
    now = part.now or "none"
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
    is_little = part.missing is not None and part.missing.reason.code != NO_USAGE.name
    return f"{text}: {part.missing.have} of {part.missing.need}" if part.missing and is_little else text


COLUMNS = ("now", "limit", "proposed", "p5", "p50", "p95", "p99", "max", "days", "samples", "confidence")


def as_csv(report: RecommendReport) -> str:
    """A row for each container; what is not known is empty."""
    text = io.StringIO()
    names = [f"{resource}_{column}" for resource in ("cpu", "memory") for column in COLUMNS]
    paid = ("monthly_now", "monthly_proposed", "monthly_saved")
    out = csv.writer(text, lineterminator="\n")
    first = [report.by] if report.by else []
    out.writerow([*first, "namespace", "kind", "workload", "container", "replicas", "hours_per_month", *names, *paid,
                  "severity", "why"])  # fmt: skip
    for row in report.containers:
        cells = [getattr(part, column) for part in (row.cpu, row.memory) for column in COLUMNS]
        dollars = [getattr(row, name) for name in paid]
        where = [row.cluster] if report.by else []
        out.writerow([*where, row.namespace, row.kind, row.workload, row.container, row.replicas, row.hours_per_month,
                      *cells, *dollars, row.severity, because(row).replace("\n", "; ")])  # fmt: skip
    return text.getvalue()
