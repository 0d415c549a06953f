"""The report of `trimtab autoscaler propose`, and its table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.autoscaling.simulation.propose_autoscaler import AutoscalerProposal, ReplayedFlags
from trimtab.autoscaling.simulation.replay_nodes import NodeHistory
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cluster.format_count import format_count

SHOWN_REPLAYS = 8
"""The number of rows of the table; the report in JSON has all."""


class ReplayRow(ReportPart, frozen=True, kw_only=True):
    """One set of flags, and what the cluster autoscaler would have done with these flags."""

    flags: list[str]
    mean_nodes: float
    final_nodes: int
    removed: int
    evictions: int
    bought: int
    bought_back: int
    """The number of nodes that were bought within an hour after a node was removed."""
    pending_pod_minutes: float
    """The minutes that pods waited for a node, summed over all pods."""
    dollars: float | None
    """The cost of the nodes in the replayed time; null if a node has no known price."""


class AutoscalerProposeReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab autoscaler propose`. Published as deploy/schemas/autoscaler-propose-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "AutoscalerProposeReport"
    hours: float
    """The hours that were replayed."""
    nodes: int
    """The number of nodes at the beginning of the replay."""
    pods: int
    reason: ReasonReport
    present: ReplayRow
    proposed: ReplayRow
    replays: list[ReplayRow]
    """The results of all sets of flags, the cheapest first."""
    notes: list[str]


def build_autoscaler_report(
    proposal: AutoscalerProposal, history: NodeHistory, notes: tuple[str, ...]
) -> AutoscalerProposeReport:
    """Returns the report of a proposal."""
    return AutoscalerProposeReport(
        hours=round(proposal.present.result.seconds / 3600, 1), nodes=len(history.nodes),
        pods=sum(sum(pods.values()) for _, pods in history.nodes), reason=report_reason(proposal.reason),
        present=_build_row(proposal.present), proposed=_build_row(proposal.chosen),
        replays=[_build_row(replayed) for replayed in proposal.replays], notes=list(notes),
    )  # fmt: skip


def _build_row(replayed: ReplayedFlags) -> ReplayRow:
    result = replayed.result
    return ReplayRow(
        flags=list(replayed.flags.format_arguments()), mean_nodes=round(result.mean_nodes, 2),
        final_nodes=result.final_nodes, removed=result.removed, evictions=result.evictions, bought=result.bought,
        bought_back=result.bought_back, pending_pod_minutes=round(result.pending_pod_seconds / 60, 1),
        dollars=None if result.dollars is None else round(result.dollars, 2),
    )  # fmt: skip


def draw_autoscaler_report(console: Console, report: AutoscalerProposeReport) -> None:
    """Draw a table of the present flags, the proposed ones, and the cheapest others."""
    table = Table(title=f"{report.hours:g} hours, with {format_count(report.nodes, 'node')} and "
    f"{format_count(report.pods, 'pod')} at the beginning",
                  title_justify="left", header_style="bold")  # fmt: skip
    for column in (
        "Flags",
        "Nodes",
        "Nodes at the end",
        "Removed",
        "Evictions",
        "Nodes added again",
        "Pod minutes pending",
        "$",
    ):
        table.add_column(column, overflow="fold", justify="left" if column == "Flags" else "right")
    _add_row(table, "present", report.present)
    if report.proposed != report.present:
        _add_row(table, "proposed", report.proposed)
    others = [row for row in report.replays if row not in (report.present, report.proposed)]
    for row in others[:SHOWN_REPLAYS]:
        _add_row(table, "", row)
    console.print(table)
    if len(others) > SHOWN_REPLAYS:
        console.print(f"The report (-o json) contains {len(others) - SHOWN_REPLAYS} more sets of flags.")
    console.print(report.reason.text)
    if report.proposed != report.present:
        console.print("\n".join(report.proposed.flags))
    for note in report.notes:
        console.print(note)


def _add_row(table: Table, name: str, row: ReplayRow) -> None:
    flags = "\n".join(flag.removeprefix("--scale-down-") for flag in row.flags)
    table.add_row(
        Text.assemble((name, "bold"), f"\n{flags}") if name else flags,
        f"{row.mean_nodes:g}", str(row.final_nodes), str(row.removed),
        str(row.evictions), str(row.bought_back), f"{row.pending_pod_minutes:g}",
        "–" if row.dollars is None else f"{row.dollars:,.2f}",
    )  # fmt: skip
