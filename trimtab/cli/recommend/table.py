"""The report of `trimtab recommend` on a terminal, and as CSV."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.csv_table import Cell, format_csv_table
from trimtab.cli.plain_columns import PlainConsole
from trimtab.cli.recommend.report import (
    ComparisonReport,
    ContainerNames,
    ContainerReport,
    RecommendReport,
    ResourceReport,
    TotalReport,
)
from trimtab.cluster.format_count import format_count
from trimtab.sizing.reasons import NO_USAGE

GREY = "bright_black"
MAX_ROWS = 40
"""The largest number of rows on a terminal; the other output formats have all rows."""
MIN_WIDTH_FOR_REASONS = 110
"""The width of a terminal in characters from which the table has a column for reasons."""


def draw_recommendations(console: Console, report: RecommendReport) -> None:
    """Draw the headline, the totals, the comparison with an earlier report, then a row per container."""
    console.print(Text(format_headline(report), style="bold"))
    if report.total.monthly_now is not None and report.changes:
        console.print(Text(describe_total(report)))
    if report.against is not None:
        _draw_against(console, report.against)
    for by in dict.fromkeys(total.by for total in report.totals):
        _draw_totals(console, [total for total in report.totals if total.by == by])
    if report.containers:
        _draw_containers(console, report.containers[:MAX_ROWS])
    if len(report.containers) > MAX_ROWS:
        more = len(report.containers) - MAX_ROWS
        console.print(
            Text(
                f"{format_count(more, 'more container is', 'more containers are')} not shown: -o csv, -o json "
                "and -o html contain all of them",
                style=GREY,
            )
        )
    for note in report.notes:
        console.print(Text(f"Note: {note}", style=GREY))


_COLUMNS = (
    ("Container", False), (">Pods", True), (">CPU", False), (">Memory", False), (">Saves $", True), ("Severity", True),
    (">Sure", False), ("Why", False),
)  # fmt: skip
"""The title of each column, and whether it needs a snapshot; a title with ">" is aligned to the right."""


def _draw_containers(console: Console, rows: Sequence[ContainerReport]) -> None:
    """Draw a row per container; on a wide terminal reasons have a column, otherwise they are below the table."""
    is_wide = isinstance(console, PlainConsole) or console.width >= MIN_WIDTH_FOR_REASONS
    has_snapshot = any(row.replicas is not None for row in rows)
    columns = [column for column in _COLUMNS if is_wide or column[0] != "Why"]
    table = Table(header_style="bold", expand=False, border_style=GREY)
    for name, needs_snapshot in columns:
        if has_snapshot or not needs_snapshot:
            table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    names = ContainerNames(rows)
    for row in rows:
        cells: tuple[str | Text, ...] = (*_row_cells(row, names), Text(describe_reasons(row), style=GREY))
        table.add_row(
            *(
                cell
                for cell, (_, needs_snapshot) in zip(cells, columns, strict=False)
                if has_snapshot or not needs_snapshot
            )
        )
    console.print(table)
    for row in rows if not is_wide else ():
        console.print(
            Text(_container_name(row, names)),
            Text(f"  {describe_reasons(row)}".replace("\n", "\n  "), style=GREY),
            sep="\n",
        )


def _draw_totals(console: Console, totals: Sequence[TotalReport]) -> None:
    """Draw the totals of all groups. Nothing is drawn if only one group has a cost, because the headline already shows
    its numbers."""
    priced = [total for total in totals if total.monthly_now is not None]
    if len(priced) < 2:
        return
    table = Table(header_style="bold", expand=False, border_style=GREY)
    for name in (_title(totals[0]), ">Containers", ">Cores", ">GiB", ">$ a month", ">Saves $"):
        table.add_column(name.lstrip(">"), justify="right" if name[0] == ">" else "left", overflow="fold")
    for total in priced[:MAX_ROWS]:
        table.add_row(total.value or "–", str(total.containers), *format_total(total))
    console.print(table)
    if len(priced) > MAX_ROWS:
        console.print(
            Text(
                f"{format_count(len(priced) - MAX_ROWS, 'more row is', 'more rows are')} not shown: -o json "
                "contains all of them",
                style=GREY,
            )
        )


def _title(total: TotalReport) -> str:
    by = total.by or ""
    return by.capitalize() if by in ("namespace", "kind", "cluster") else by


def format_total(total: TotalReport) -> tuple[str, str, str, str]:
    """Returns the cores, the GiB and the dollars, each before and after, and the saving, as text."""
    pairs = ((total.cpu_now, total.cpu_proposed), (total.memory_now, total.memory_proposed))
    cores, gib = (f"{_format_amount(now)} → {_format_amount(proposed)}" for now, proposed in pairs)
    return (
        cores,
        gib,
        f"{total.monthly_now or 0:,.0f} → {total.monthly_proposed or 0:,.0f}",
        format_dollars(total.monthly_saved),
    )


def _format_amount(value: float | None) -> str:
    """Returns the amount as text. An amount below 10 has two decimals, so that a small amount is not shown as 0.0."""
    amount = value or 0.0
    return f"{amount:,.2f}" if amount < 10 else f"{amount:,.1f}"


UNSURE = 0.5
"""The confidence below which by default neither a policy nor a patch lowers a request."""


def describe_total(report: RecommendReport) -> str:
    """Returns a sentence with the sum of all requests before and after, and the part of the saving that is doubtful."""
    cores, gib, dollars, _ = format_total(report.total)
    text = f"Requests of all pods: {cores} cores, {gib} GiB, {dollars} dollars a month."
    doubtful = (
        row for row in report.containers if (confidence := _confidence(row)) is not None and confidence < UNSURE
    )
    unsure = sum(max(0.0, row.monthly_saved or 0.0) for row in doubtful)
    return text + (f" ${unsure:,.2f} of the saving has a confidence below 50%." if unsure >= 1 else "")


def format_dollars(saved: float | None) -> str:
    """Returns the saved dollars as text; negative if the proposal costs more, empty if the saving is not known."""
    return "" if saved is None else f"{saved + 0.0:,.2f}"


def _draw_against(console: Console, against: ComparisonReport) -> None:
    console.print(Text(describe_changes(against)))
    # A container has a difference for each resource, under one name.
    names_of_places = ContainerNames({difference.place for difference in against.differences})
    for difference in against.differences[:MAX_ROWS]:
        name = f"{names_of_places.name_of(difference.place)} {difference.resource}"
        console.print(
            Text(
                f"  {name}: {difference.before or 'none'} → {difference.after or 'none'}"
                f" ({CHANGE_WORDS.get(difference.what, difference.what)})"
            )
        )
    if len(against.differences) > MAX_ROWS:
        console.print(
            Text(
                f"  {len(against.differences) - MAX_ROWS} more differences are not shown: -o json contains all of them",
                style=GREY,
            )
        )
    for title, places in (("new", against.new), ("gone", against.gone)):
        if places:
            names = ", ".join(map(ContainerNames(places).name_of, places[:MAX_NAMES]))
            more = f" and {len(places) - MAX_NAMES} more" if len(places) > MAX_NAMES else ""
            console.print(Text(f"  {title}: {names}{more}"))


MAX_NAMES = 10
CHANGE_WORDS = {"applied": "as recommended", "request-changed": "request", "recommendation-changed": "recommendation"}


def describe_changes(against: ComparisonReport) -> str:
    """Returns a sentence with the numbers of changes since the earlier report."""
    counts = Counter(difference.what for difference in against.differences)
    request_count, recommendation_count = counts["request-changed"], counts["recommendation-changed"]
    parts = [
        f"{counts['applied']} applied as recommended",
        f"{request_count} other request{'' if request_count == 1 else 's'} changed",
        f"{recommendation_count} recommendation{'' if recommendation_count == 1 else 's'} changed",
        f"{len(against.new)} new in this report",
        f"{len(against.gone)} no longer in this report",
    ]
    when = f"the report of {against.at}" if against.at else "that report"
    return f"Since {when}, which would have saved ${against.saved:,.2f} a month: {', '.join(parts)}."


def format_headline(report: RecommendReport) -> str:
    count = len(report.containers)
    verb = "saves" if report.saved >= 0 else "costs"
    money = (
        f"${abs(report.saved):,.2f} a month" if any(row.monthly_saved is not None for row in report.containers) else ""
    )
    unknown = (
        f"; {format_count(report.unknown, 'container has', 'containers have')} too little usage"
        if report.unknown
        else ""
    )
    containers = f"{report.changes} of {count} container{'s' if count != 1 else ''}"
    is_known = any(row.replicas is not None for row in report.containers)
    change = f"{containers} would have a different request" if is_known else f"A request for {containers}"
    return f"{change}{f': that {verb} {money}' if money and report.changes else ''}{unknown}"


def _row_cells(row: ContainerReport, names: ContainerNames) -> tuple[str, ...]:
    pods = "" if row.replicas is None else str(row.replicas)
    if row.hours_per_month is not None:
        pods = f"{row.hours_per_month:,.0f} h" if row.hours_per_month >= 1 else "< 1 h"
    is_in_snapshot = row.replicas is not None
    return (
        _container_name(row, names),
        pods,
        format_change(row.cpu, is_in_snapshot=is_in_snapshot),
        format_change(row.memory, is_in_snapshot=is_in_snapshot),
        format_dollars(row.monthly_saved),
        row.severity,
        format_confidence(row) or "–",
    )


def _container_name(row: ContainerReport, names: ContainerNames) -> str:
    where = f"{row.cluster or '–'}: " if row.cluster is not None else ""
    return f"{where}{names.name_of(row)}"


def format_confidence(row: ContainerReport) -> str:
    """Returns the lower of the confidences of cpu and memory in percent, or an empty string if there is none."""
    confidence = _confidence(row)
    return "" if confidence is None else f"{confidence:.0%}"


def _confidence(row: ContainerReport) -> float | None:
    return min((part.confidence for part in (row.cpu, row.memory) if part.confidence is not None), default=None)


def format_change(part: ResourceReport, *, is_in_snapshot: bool) -> str:
    """Returns the change as in "250m → 96m", or the request if it stays unchanged.

    If the container is not in a snapshot, its present request is not known, and only the proposal is returned.
    """
    if not is_in_snapshot:
        return part.proposed or "–"
    now = part.now or "none"
    return f"{now} → {part.proposed}" if part.proposed else now


def describe_reasons(row: ContainerReport) -> str:
    """Returns the reasons for both resources as text. If they are equal, the text contains them only once."""
    texts = [_resource_reasons(part) for part in (row.cpu, row.memory)]
    if texts[0] == texts[1]:
        return texts[0]
    return "\n".join(f"{name}: {text}" for name, text in zip(("cpu", "memory"), texts, strict=True))


def _resource_reasons(part: ResourceReport) -> str:
    """Returns the reasons for one resource as text.

    If there is too little usage, the text also says how much there is and how much is needed."""
    text = "; ".join(reason.text for reason in part.reasons)
    is_little = part.missing is not None and part.missing.reason.code != NO_USAGE.name
    return f"{text}: {part.missing.have} of {part.missing.need}" if part.missing and is_little else text


COLUMNS = ("now", "limit", "proposed", "p5", "p50", "p95", "p99", "max", "days", "samples", "confidence")


def format_csv(report: RecommendReport) -> str:
    """Returns the report as CSV, with a row per container; an unknown value is an empty cell."""
    names = [f"{resource}_{column}" for resource in ("cpu", "memory") for column in COLUMNS]
    paid = ("monthly_now", "monthly_proposed", "monthly_saved")
    first = [report.by] if report.by else []
    titles = [*first, "namespace", "kind", "workload", "container", "replicas", "hours_per_month"]
    rows: list[list[Cell]] = [[*titles, *names, *paid, "severity", "why"]]
    for row in report.containers:
        cells = [getattr(part, column) for part in (row.cpu, row.memory) for column in COLUMNS]
        dollars = [getattr(row, name) for name in paid]
        where = [row.cluster] if report.by else []
        values = [*where, row.namespace, row.kind, row.workload, row.container, row.replicas, row.hours_per_month]
        why = describe_reasons(row).replace("\n", "; ")
        rows.append([*values, *cells, *dollars, row.severity, why])
    return format_csv_table(rows)
