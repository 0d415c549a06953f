"""The report of `trimtab recommend` on a terminal, and as CSV."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import fsum
from operator import attrgetter
from typing import Any

from rich.text import Text

from trimtab.cli.csv_table import Cell
from trimtab.cli.recommend.pod_level import WholePodReport, WholePodResourceReport
from trimtab.cli.recommend.report import (
    ComparisonReport,
    ContainerNames,
    ContainerReport,
    RecommendReport,
    ResourceReport,
    TotalReport,
)
from trimtab.cli.reporting.columns import Column, ReportView, Section, number_column
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import format_shortage
from trimtab.sizing.reasons import NO_USAGE

GREY = "bright_black"
MAX_ROWS = 15
"""The largest number of rows of containers; the wide table and the other output formats have all rows."""
MAX_TOTALS = 5
WIDTH_OF_CHANGE = 15
"""The width of `1536Mi → 1285Mi`: a change stands on one line."""


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
    unsure = fsum(max(0.0, row.monthly_saved or 0.0) for row in doubtful)
    part = "All" if report.saved <= unsure else f"${unsure:,.2f}"
    return text + (f" {part} of the saving has a confidence below 50%." if unsure >= 1 else "")


def format_dollars(saved: float | None) -> str:
    """Returns the saved dollars as text; negative if the proposal costs more, empty if the saving is not known."""
    return "" if saved is None else f"{saved + 0.0:,.2f}"


def _describe_against(against: ComparisonReport) -> Iterator[Text]:
    yield Text(describe_changes(against))
    # A container has a difference for each resource, under one name.
    names_of_places = ContainerNames({difference.place for difference in against.differences})
    for difference in against.differences[:MAX_ROWS]:
        name = f"{names_of_places.name_of(difference.place)} {difference.resource}"
        yield Text(
            f"  {name}: {difference.before or 'none'} → {difference.after or 'none'}"
            f" ({CHANGE_WORDS.get(difference.what, difference.what)})"
        )
    hidden = len(against.differences) - MAX_ROWS
    if hidden > 0:
        yield Text(f"  {hidden} more differences are not shown", style=GREY)
    for title, places in (("new", against.new), ("gone", against.gone)):
        if places:
            names = ", ".join(map(ContainerNames(places).name_of, places[:MAX_NAMES]))
            more = f" and {len(places) - MAX_NAMES} more" if len(places) > MAX_NAMES else ""
            yield Text(f"  {title}: {names}{more}")


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
    if count == 0:
        return "There is no container to report."
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


def _count_pods(row: ContainerReport) -> str:
    if row.hours_per_month is not None:
        return f"{row.hours_per_month:,.0f} h" if row.hours_per_month >= 1 else "< 1 h"
    return "" if row.replicas is None else str(row.replicas)


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
    return f"{text} ({format_shortage(part.missing.have, part.missing.need)})" if part.missing and is_little else text


COLUMNS = ("now", "limit", "proposed", "p5", "p50", "p95", "p99", "max", "days", "samples", "confidence")
"""The fields of each resource in CSV."""


def _list_csv_columns(report: RecommendReport) -> tuple[Column[ContainerReport], ...]:
    """Returns the columns in CSV, with a row per container; an unknown value is an empty cell."""
    titles = ("namespace", "kind", "workload", "container", "replicas", "hours_per_month")
    paid = ("monthly_now", "monthly_proposed", "monthly_saved")
    return (
        *([_csv_column(report.by, attrgetter("cluster"))] if report.by else ()),
        *(_csv_column(title, attrgetter(title)) for title in titles),
        *(
            _csv_column(f"{resource}_{name}", attrgetter(f"{resource}.{name}"))
            for resource in ("cpu", "memory")
            for name in COLUMNS
        ),
        *(_csv_column(title, attrgetter(title)) for title in (*paid, "severity")),
        _csv_column("why", lambda row: describe_reasons(row).replace("\n", "; ")),
    )


def _csv_column(title: str, value: Callable[[ContainerReport], Cell]) -> Column[ContainerReport]:
    return Column(title, lambda row: str(value(row)), value=value)


def _list_columns(report: RecommendReport) -> tuple[Column[ContainerReport], ...]:
    """Returns the columns of the table; those that need a snapshot are left out without one."""
    names = ContainerNames(report.containers[:MAX_ROWS])
    has_snapshot = any(row.replicas is not None for row in report.containers[:MAX_ROWS])
    of_snapshot: tuple[Column[ContainerReport], ...] = (
        number_column("Saves $", lambda row: row.monthly_saved, format_dollars, none="", rank=1),
        Column("Severity", lambda row: row.severity, rank=3),
    )
    pods: Column[ContainerReport] = Column("Pods", _count_pods, align="right", rank=4)
    return (
        Column("Container", lambda row: _container_name(row, names)),
        *((pods,) if has_snapshot else ()),
        _change_column("CPU", lambda row: row.cpu),
        _change_column("Memory", lambda row: row.memory),
        *(of_snapshot if has_snapshot else ()),
        Column("Sure", lambda row: format_confidence(row) or "–", align="right", rank=2),
        Column("Why", describe_reasons, style=GREY, rank=5, is_below=True, min_width=30),
    )


def _change_column(title: str, read: Callable[[ContainerReport], ResourceReport]) -> Column[ContainerReport]:
    return Column(
        title,
        lambda row: format_change(read(row), is_in_snapshot=row.replicas is not None),
        align="right",
        min_width=WIDTH_OF_CHANGE,
    )


_CONTAINERS: Section[RecommendReport, ContainerReport] = Section(
    key="containers",
    rows=lambda report: report.containers,
    max_rows=MAX_ROWS,
    more=lambda hidden: Text(f"… and {format_count(hidden, 'more container')}: -o wide, -o csv or -o html", style=GREY),
    columns=_list_columns,
    csv_columns=_list_csv_columns,
    name=lambda row: f"{row.kind}/{row.workload}",
)


def _pod_change(part: WholePodResourceReport) -> str:
    return f"{part.separate} → {part.proposed}" if part.proposed else part.separate


def _describe_pod(row: WholePodReport) -> str:
    texts = dict.fromkeys((row.cpu.reason.text, row.memory.reason.text))
    return "; ".join(texts)


_PODS: Section[RecommendReport, WholePodReport] = Section(
    key="pods",
    rows=lambda report: report.pods,
    max_rows=MAX_ROWS,
    columns=(
        Column("Whole pods", lambda row: f"{row.namespace}/{row.workload}"),
        number_column("Containers", lambda row: row.containers, "{}", rank=4),
        Column("CPU", lambda row: _pod_change(row.cpu), align="right"),
        Column("Memory", lambda row: _pod_change(row.memory), align="right"),
        number_column("Saves $", lambda row: row.monthly_saved, format_dollars, rank=1),
        Column("Why", _describe_pod, style=GREY, rank=5, is_below=True, min_width=30),
    ),
    csv_columns=(),
)


def _list_sections(report: RecommendReport) -> tuple[Section[RecommendReport, Any], ...]:
    groups = dict.fromkeys(total.by for total in report.totals)
    totals = (_list_totals([total for total in report.totals if total.by == by]) for by in groups)
    return (*totals, _CONTAINERS, *((_PODS,) if report.pods else ()))


def _list_totals(totals: Sequence[TotalReport]) -> Section[RecommendReport, TotalReport]:
    """Returns the totals of all groups; none if only one group has a cost, because the headline already shows its
    numbers."""
    priced = [total for total in totals if total.monthly_now is not None]
    by = totals[0].by or ""
    return Section(
        key="totals",
        rows=lambda report: priced if len(priced) > 1 else (),
        columns=(
            Column(by.capitalize() if by in ("namespace", "kind", "cluster") else by, lambda total: total.value or "–"),
            number_column("Containers", lambda total: total.containers, "{}", rank=3),
            *(
                Column(title, _total_cell(position), align="right", rank=rank, min_width=WIDTH_OF_CHANGE)
                for position, (title, rank) in enumerate((("Cores", 2), ("GiB", 1), ("$ a month", 0), ("Saves $", 0)))
            ),
        ),
        csv_columns=(),
        max_rows=MAX_TOTALS,
    )


def _total_cell(position: int) -> Callable[[TotalReport], str]:
    return lambda total: format_total(total)[position]


def _describe_report(report: RecommendReport) -> Iterator[Text]:
    yield Text(format_headline(report), style="bold")
    if report.total.monthly_now is not None and report.changes:
        yield Text(describe_total(report))
    if report.against is not None:
        yield from _describe_against(report.against)


VIEW: ReportView[RecommendReport] = ReportView(
    title="trimtab recommend",
    before=_describe_report,
    sections=_list_sections,
    notes=lambda report: report.notes,
)
"""The headline, the totals, the comparison with an earlier report, then a row per container."""
