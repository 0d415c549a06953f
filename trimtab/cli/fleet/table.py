"""How the reports of `trimtab fleet` are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rich.text import Text

from trimtab.cli.fleet.machine_groups import MachineGroupReport
from trimtab.cli.fleet.report import (
    ClusterMoneyLine,
    ClusterPlanLine,
    DecisionReport,
    FailureReport,
    FleetMachinesReport,
    FleetPlanReport,
    FleetRecommendReport,
    FleetReport,
    MergeReport,
    PoolLine,
    RequestLine,
)
from trimtab.cli.reporting.columns import Column, Paragraph, ReportView, Section, number_column
from trimtab.cluster.format_count import format_count

MAX_ROWS = 20
"""The largest number of rows of a table; the other output formats have all of them."""


def format_money(amount: float | None) -> str:
    """Returns an amount in dollars per month as text; a dash if the amount is not known."""
    if amount is None:
        return "-"
    return f"${amount:,.0f}" if abs(amount) >= 100 else f"${amount:,.2f}"


def _money_column(title: str, read: Callable[[Any], float | None], rank: int) -> Column[Any]:
    return number_column(title, read, format_money, none="-", rank=rank)


def _list_lines(
    key: str,
    title: str,
    rows: Callable[[Any], Sequence[Any]],
    *columns: Column[Any],
    name: Callable[[Any], str] | None = None,
) -> Section[Any, Any]:
    """Returns a table of the first rows."""
    return Section(
        key=key,
        title=title,
        rows=rows,
        columns=columns,
        name=name,
        max_rows=MAX_ROWS,
        more=lambda hidden: Text(
            f"{format_count(hidden, 'more row is', 'more rows are')} not shown; -o json contains all of them."
        ),
    )


_CLUSTER: Column[Any] = Column("cluster", lambda line: line.cluster)
_NODES: Column[Any] = number_column("nodes", lambda line: line.nodes, rank=3)
_DRAINED: Column[Any] = number_column("to drain", lambda line: line.nodes_to_remove, rank=2)
_KARPENTER: Column[Any] = number_column("Karpenter's", lambda line: line.karpenter_nodes, rank=5)
_COST: Column[Any] = _money_column("cost a month", lambda line: line.monthly_cost, 1)
_SAVED: Column[Any] = _money_column("saved a month", lambda line: line.monthly_saved, 0)


def _name_cluster(line: Any) -> str:
    return f"cluster/{line.cluster}"


def _list_requests(
    key: str, title: str, rows: Callable[[Any], Sequence[RequestLine]], first: str
) -> Section[Any, RequestLine]:
    return _list_lines(
        key,
        title,
        rows,
        Column(first, lambda line: line.value or "(no label)"),
        number_column("containers", lambda line: line.containers, rank=4),
        number_column("changes", lambda line: line.changes, rank=3),
        number_column("unknown", lambda line: line.unknown, rank=6),
        number_column("too small", lambda line: line.too_small, rank=5),
        _money_column("now", lambda line: line.monthly_now, 1),
        _money_column("proposed", lambda line: line.monthly_proposed, 2),
        _money_column("saved", lambda line: line.monthly_saved, 0),
        _money_column("waste", lambda line: line.monthly_waste, 0),
        name=lambda line: f"{first}/{line.value or '(no label)'}",
    )


_TEAMS = _list_requests(
    "teams", "Teams, sorted by unneeded requests (dollars a month)", lambda report: report.teams, "team"
)
_POOLS: Section[Any, PoolLine] = _list_lines(
    "pools",
    "Pools, sorted by saving",
    lambda report: report.pools,
    _CLUSTER,
    Column("pool", lambda line: line.pool or "(none)"),
    _NODES,
    _DRAINED,
    _COST,
    _SAVED,
    name=lambda line: f"pool/{line.pool or '(none)'}",
)


def _format_clusters(group: MachineGroupReport) -> str:
    more = f" and {len(group.clusters) - 6} more clusters" if len(group.clusters) > 6 else ""
    return ", ".join(group.clusters[:6]) + more


def _format_types(group: MachineGroupReport) -> str:
    types = (f"{kind.nodes} × {kind.name} {format_money(kind.monthly_cost)}" for kind in group.types[:3])
    return ", ".join(types) or group.problem


def _list_groups(rows: Callable[[Any], Sequence[MachineGroupReport]]) -> Section[Any, MachineGroupReport]:
    return _list_lines(
        "machines",
        "Machine types for groups of similar clusters, sorted by cost",
        rows,
        Column("clusters", _format_clusters, value=lambda group: " ".join(group.clusters)),
        Column("region", lambda group: group.region or "(unknown)", rank=1),
        number_column("cores", lambda group: group.cores, "{:,.1f}", rank=3),
        number_column("GiB", lambda group: group.gib, "{:,.1f}", rank=4),
        number_column("GiB per core", lambda group: group.gib_per_core, "{:.2f}", rank=5),
        _money_column("today a month", lambda group: group.monthly_cost, 2),
        Column("best types", _format_types, min_width=16),
        name=lambda group: f"machine/{group.types[0].name if group.types else '(none)'}",
    )


def _describe_failures(failures: Iterable[FailureReport]) -> Iterator[Paragraph]:
    for failure in failures:
        yield Text(f"The cluster {failure.cluster} is left out: {failure.problem}", style="red")


def _change(now: str | None, proposed: str | None) -> str:
    return f"{now or '-'} → {proposed}" if proposed is not None else now or "-"


def _describe_recommend(report: FleetRecommendReport) -> str:
    total = report.total
    return (
        f"{format_count(total.containers, 'container')} in {format_count(len(report.clusters), 'cluster')}: "
        f"{format_count(total.changes, 'change')}, {total.unknown:,} with too little usage; rule "
        f"{report.rule} over {report.days} days saves {format_money(total.monthly_saved)} a month."
    )


_LARGEST: Section[FleetRecommendReport, DecisionReport] = _list_lines(
    "changes",
    "The largest changes",
    lambda report: report.largest,
    _CLUSTER,
    Column("workload", lambda change: f"{change.namespace}/{change.workload}"),
    Column("container", lambda change: change.container, rank=3),
    Column("cpu", lambda change: _change(change.cpu_now, change.cpu_proposed), align="right", rank=1),
    Column("memory", lambda change: _change(change.memory_now, change.memory_proposed), align="right", rank=2),
    _SAVED,
    name=lambda change: change.workload,
)
RECOMMEND_VIEW: ReportView[FleetRecommendReport] = ReportView(
    title="trimtab fleet recommend",
    before=lambda report: [Text(_describe_recommend(report))],
    sections=(
        _list_requests(
            "clusters",
            "Clusters, sorted by unneeded requests (dollars a month)",
            lambda report: report.clusters,
            "cluster",
        ),
        _TEAMS,
        _LARGEST,
    ),
    after=lambda report: _describe_failures(report.failures),
    notes=lambda report: report.notes,
)
"""The sums, and the containers with the largest changes."""


def _describe_plan(report: FleetPlanReport) -> str:
    if not report.nodes_to_remove:
        clusters = format_count(len(report.clusters), "cluster")
        return f"None of {format_count(report.nodes, 'node')} in {clusters} can be drained."
    return (
        f"{report.nodes_to_remove:,} of {format_count(report.nodes, 'node')} in "
        f"{format_count(len(report.clusters), 'cluster')} can be drained by "
        f"{format_count(report.evictions, 'eviction')}, which saves {format_money(report.monthly_saved)} of "
        f"{format_money(report.monthly_cost)} a month."
    )


_PLANS: Section[FleetPlanReport, ClusterPlanLine] = _list_lines(
    "clusters",
    "Clusters, sorted by saving",
    lambda report: report.clusters,
    _CLUSTER,
    _NODES,
    _DRAINED,
    number_column("evictions", lambda line: line.evictions, rank=4),
    _KARPENTER,
    _COST,
    _SAVED,
    name=_name_cluster,
)
PLAN_VIEW: ReportView[FleetPlanReport] = ReportView(
    title="trimtab fleet plan",
    before=lambda report: [Text(_describe_plan(report))],
    sections=(_PLANS, _POOLS),
    after=lambda report: _describe_failures(report.failures),
)
"""What a compaction of each cluster saves."""

MACHINES_VIEW: ReportView[FleetMachinesReport] = ReportView(
    title="trimtab fleet machines",
    sections=(_list_groups(lambda report: report.groups),),
    after=lambda report: _describe_failures(report.failures),
    notes=lambda report: report.notes,
)
"""The machine types for each group."""


_CLUSTERS: Section[FleetReport, ClusterMoneyLine] = _list_lines(
    "clusters",
    "Clusters, sorted by unneeded cost (dollars a month)",
    lambda report: report.clusters,
    _CLUSTER,
    _NODES,
    _money_column("cost", lambda line: line.monthly_cost, 0),
    _money_column("requested", lambda line: line.requests.monthly_now if line.requests else None, 4),
    _money_column("waste", lambda line: line.requests.monthly_waste if line.requests else None, 0),
    _money_column("plan saves", lambda line: line.saved_by_plan, 1),
    _DRAINED,
    _KARPENTER,
    name=_name_cluster,
)
_MERGES: Section[FleetReport, MergeReport] = _list_lines(
    "merges",
    "Clusters to merge, sorted by saving",
    lambda report: report.merges,
    Column("merge", lambda merge: merge.source),
    Column("into", lambda merge: merge.target),
    _SAVED,
    number_column("nodes removed", lambda merge: merge.nodes_removed, "{}", rank=2),
    number_column("nodes added", lambda merge: merge.nodes_added, "{}", rank=3),
    Column("what the merge requires", lambda merge: merge.text, rank=1, is_below=True, min_width=20),
    name=lambda merge: f"cluster/{merge.source}",
)
REPORT_VIEW: ReportView[FleetReport] = ReportView(
    title="trimtab fleet report",
    before=lambda report: [
        Text(
            f"{format_count(len(report.clusters), 'cluster')} cost {format_money(report.monthly_cost)} a month: "
            f"requests that are not needed cost {format_money(report.monthly_waste)}, and compaction with the "
            f"present requests saves {format_money(report.saved_by_plan)}."
        )
    ],
    sections=(_CLUSTERS, _TEAMS, _POOLS, _MERGES, _list_groups(lambda report: report.machines)),
    after=lambda report: _describe_failures(report.failures),
    notes=lambda report: report.notes,
)
"""What the clusters, teams and pools of the fleet cost and could save."""
