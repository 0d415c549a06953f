"""The reports of `trimtab fleet` on a terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.fleet.machine_groups import MachineGroupReport
from trimtab.cli.fleet.report import (
    FailureReport,
    FleetMachinesReport,
    FleetPlanReport,
    FleetRecommendReport,
    FleetReport,
    MergeReport,
    PoolLine,
    RequestLine,
)
from trimtab.cluster.format_count import format_count

MAX_ROWS = 20
"""The largest number of rows of a table; the report in JSON has all of them."""


def format_money(amount: float | None) -> str:
    """Returns an amount in dollars per month as text; a dash if the amount is not known."""
    if amount is None:
        return "-"
    return f"${amount:,.0f}" if abs(amount) >= 100 else f"${amount:,.2f}"


def _draw_table(console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Draw a table. Columns whose name begins with a space contain numbers and are aligned to the right."""
    all_rows = list(rows)
    if not all_rows:
        return
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column.strip(), justify="right" if column.startswith(" ") else "left")
    for row in all_rows[:MAX_ROWS]:
        table.add_row(*row)
    console.print(table)
    if len(all_rows) > MAX_ROWS:
        console.print(
            Text(
                f"{format_count(len(all_rows) - MAX_ROWS, 'more row is', 'more rows are')} not shown; "
                "-o json contains all of them."
            )
        )


def _draw_failures(console: Console, failures: Sequence[FailureReport]) -> None:
    for failure in failures:
        console.print(Text(f"The cluster {failure.cluster} is left out: {failure.problem}", style="red"))


def _draw_notes(console: Console, notes: Iterable[str]) -> None:
    for note in notes:
        console.print(Text(note, style="dim"))


def _draw_requests(console: Console, title: str, first: str, lines: Sequence[RequestLine]) -> None:
    _draw_table(
        console, title,
        [first, " containers", " changes", " unknown", " too small", " now", " proposed", " saved", " waste"],
        [
            (
                line.value or "(no label)", f"{line.containers:,}", f"{line.changes:,}", f"{line.unknown:,}",
                f"{line.too_small:,}", format_money(line.monthly_now), format_money(line.monthly_proposed),
                format_money(line.monthly_saved), format_money(line.monthly_waste),
            )
            for line in lines
        ],
    )  # fmt: skip


def draw_recommend(console: Console, report: FleetRecommendReport) -> None:
    """Draw the sums, and the containers with the largest changes."""
    total = report.total
    console.print(
        Text(
            f"{format_count(total.containers, 'container')} in {format_count(len(report.clusters), 'cluster')}: "
            f"{format_count(total.changes, 'change')}, {total.unknown:,} with too little usage; rule "
            f"{report.rule} over {report.days} days saves {format_money(total.monthly_saved)} a month."
        )
    )
    _draw_requests(console, "Clusters, sorted by unneeded requests (dollars a month)", "cluster", report.clusters)
    _draw_requests(console, "Teams, sorted by unneeded requests (dollars a month)", "team", report.teams)
    _draw_table(
        console, "The largest changes",
        ["cluster", "workload", "container", " cpu", " memory", " saved a month"],
        [
            (
                one.cluster, f"{one.namespace}/{one.workload}", one.container,
                _change(one.cpu_now, one.cpu_proposed), _change(one.memory_now, one.memory_proposed),
                format_money(one.monthly_saved),
            )
            for one in report.largest
        ],
    )  # fmt: skip
    _draw_failures(console, report.failures)
    _draw_notes(console, report.notes)


def _change(now: str | None, proposed: str | None) -> str:
    return f"{now or '-'} → {proposed}" if proposed is not None else now or "-"


def draw_plan(console: Console, report: FleetPlanReport) -> None:
    """Draw what a compaction of each cluster saves."""
    console.print(
        Text(
            f"{report.nodes_to_remove:,} of {format_count(report.nodes, 'node')} in "
            f"{format_count(len(report.clusters), 'cluster')} can be drained by "
            f"{format_count(report.evictions, 'eviction')}, which saves {format_money(report.monthly_saved)} of "
            f"{format_money(report.monthly_cost)} a month."
        )
    )
    _draw_table(
        console, "Clusters, sorted by saving",
        ["cluster", " nodes", " to drain", " evictions", " Karpenter's", " cost a month", " saved a month"],
        [
            (
                one.cluster, f"{one.nodes:,}", f"{one.nodes_to_remove:,}", f"{one.evictions:,}",
                f"{one.karpenter_nodes:,}", format_money(one.monthly_cost), format_money(one.monthly_saved),
            )
            for one in report.clusters
        ],
    )  # fmt: skip
    _draw_pools(console, report.pools)
    _draw_failures(console, report.failures)


def _draw_pools(console: Console, pools: Sequence[PoolLine]) -> None:
    _draw_table(
        console, "Pools, sorted by saving",
        ["cluster", "pool", " nodes", " to drain", " cost a month", " saved a month"],
        [
            (
                one.cluster, one.pool or "(none)", f"{one.nodes:,}", f"{one.nodes_to_remove:,}",
                format_money(one.monthly_cost), format_money(one.monthly_saved),
            )
            for one in pools
        ],
    )  # fmt: skip


def draw_machines(console: Console, report: FleetMachinesReport) -> None:
    """Draw the machine types for each group."""
    _draw_groups(console, report.groups)
    _draw_failures(console, report.failures)
    _draw_notes(console, report.notes)


def _draw_groups(console: Console, groups: Sequence[MachineGroupReport]) -> None:
    _draw_table(
        console, "Machine types for groups of similar clusters, sorted by cost",
        ["clusters", "region", " cores", " GiB", " GiB per core", " today a month", "best types"],
        [
            (
                ", ".join(one.clusters[:6]) + (f" and {len(one.clusters) - 6} "
                                               "more clusters" if len(one.clusters) > 6 else ""),
                one.region or "(unknown)", f"{one.cores:,.1f}", f"{one.gib:,.1f}", f"{one.gib_per_core:.2f}",
                format_money(one.monthly_cost),
                ", ".join(f"{kind.nodes} × {kind.name} {format_money(kind.monthly_cost)}" for kind in one.types[:3])
                or one.problem,
            )
            for one in groups
        ],
    )  # fmt: skip


def draw_report(console: Console, report: FleetReport) -> None:
    """Draw what the clusters, teams and pools of the fleet cost and could save."""
    console.print(
        Text(
            f"{format_count(len(report.clusters), 'cluster')} cost {format_money(report.monthly_cost)} a month: "
            f"requests that are not needed cost {format_money(report.monthly_waste)}, and compaction with the "
            f"present requests saves {format_money(report.saved_by_plan)}."
        )
    )
    _draw_table(
        console, "Clusters, sorted by unneeded cost (dollars a month)",
        ["cluster", " nodes", " cost", " requested", " waste", " plan saves", " to drain", " Karpenter's"],
        [
            (
                one.cluster, f"{one.nodes:,}", format_money(one.monthly_cost),
                format_money(one.requests.monthly_now if one.requests else None),
                format_money(one.requests.monthly_waste if one.requests else None), format_money(one.saved_by_plan),
                f"{one.nodes_to_remove:,}", f"{one.karpenter_nodes:,}",
            )
            for one in report.clusters
        ],
    )  # fmt: skip
    _draw_requests(console, "Teams, sorted by unneeded requests (dollars a month)", "team", report.teams)
    _draw_pools(console, report.pools)
    _draw_merges(console, report.merges)
    _draw_groups(console, report.machines)
    _draw_failures(console, report.failures)
    _draw_notes(console, report.notes)


def _draw_merges(console: Console, merges: Sequence[MergeReport]) -> None:
    _draw_table(
        console, "Clusters to merge, sorted by saving",
        ["merge", "into", " saved a month", " nodes removed", " nodes added", "what the merge requires"],
        [
            (
                one.source, one.target, format_money(one.monthly_saved), str(one.nodes_removed), str(one.nodes_added),
                one.text,
            )
            for one in merges
        ],
    )  # fmt: skip
