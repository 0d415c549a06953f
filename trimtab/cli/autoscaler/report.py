"""The report of `trimtab autoscaler propose`, and its table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from msgspec import structs
from rich.text import Text

from trimtab.autoscaling.simulation.propose_autoscaler import AutoscalerProposal, ReplayedFlags
from trimtab.autoscaling.simulation.replay_nodes import NodeHistory
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reporting.columns import Column, ReportView, Section, number_column
from trimtab.cluster.format_count import format_count

SHOWN_REPLAYS = 8
"""The number of rows of the table; the other output formats have all."""


class ReplayRow(ReportPart, frozen=True, kw_only=True):
    """One set of flags, and what the cluster autoscaler would have done with these flags."""

    flags: list[str]
    """The flags that differ from the defaults."""
    mean_nodes: float
    """The number of nodes, on average over the replayed hours."""
    final_nodes: int
    """The number of nodes at the end of the replay."""
    removed: int
    """The number of nodes that were removed."""
    evictions: int
    """The number of evictions."""
    bought: int
    """The number of nodes that were bought."""
    bought_back: int
    """The number of nodes that were bought within an hour after a node was removed."""
    pending_pod_minutes: float
    """The minutes that pods waited for a node, summed over all pods."""
    dollars: float | None
    """The cost of the nodes in the replayed time; null if a node has no known price."""


class AutoscalerProposeReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab autoscaler propose`. Published as deploy/schemas/autoscaler-propose-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab autoscaler propose"
    api_version: str = API_VERSION
    kind: str = "AutoscalerProposeReport"
    hours: float
    """The hours that were replayed."""
    nodes: int
    """The number of nodes at the beginning of the replay."""
    pods: int
    """The number of pods at the beginning of the replay."""
    reason: ReasonReport
    """Why these flags are proposed, or why the present ones stay."""
    present: ReplayRow
    """What happens with the present flags."""
    proposed: ReplayRow
    """What happens with the proposed flags."""
    replays: list[ReplayRow]
    """The results of all sets of flags, the cheapest first."""
    notes: list[str]
    """The assumptions of the replay, one sentence each."""


def build_autoscaler_report(
    proposal: AutoscalerProposal, history: NodeHistory, notes: tuple[str, ...]
) -> AutoscalerProposeReport:
    """Returns the report of a proposal."""
    return AutoscalerProposeReport(
        hours=round(proposal.present.result.seconds / 3600, 1),
        nodes=len(history.nodes),
        pods=sum(sum(pods.values()) for _, pods in history.nodes),
        reason=report_reason(proposal.reason),
        present=_build_row(proposal.present),
        proposed=_build_row(proposal.chosen),
        replays=[_build_row(replayed) for replayed in proposal.replays],
        notes=list(notes),
    )


def _build_row(replayed: ReplayedFlags) -> ReplayRow:
    result = replayed.result
    return ReplayRow(
        flags=list(replayed.flags.format_arguments()),
        mean_nodes=round(result.mean_nodes, 2),
        final_nodes=result.final_nodes,
        removed=result.removed,
        evictions=result.evictions,
        bought=result.bought,
        bought_back=result.bought_back,
        pending_pod_minutes=round(result.pending_pod_seconds / 60, 1),
        dollars=None if result.dollars is None else round(result.dollars, 2),
    )


class _NamedReplay(NamedTuple):
    name: str
    """`present`, `proposed`, or an empty string."""
    replay: ReplayRow


def _list_replays(report: AutoscalerProposeReport) -> list[_NamedReplay]:
    """Returns the present flags, the proposed ones, and the others, the cheapest first."""
    named = [_NamedReplay("present", report.present)]
    if report.proposed != report.present:
        named.append(_NamedReplay("proposed", report.proposed))
    others = [row for row in report.replays if row not in (report.present, report.proposed)]
    return [*named, *(_NamedReplay("", row) for row in others)]


def _select_shown(report: AutoscalerProposeReport) -> list[_NamedReplay]:
    """Returns the first rows, of those with the same outcome only the first."""
    by_outcome: dict[tuple[object, ...], _NamedReplay] = {}
    for row in _list_replays(report):
        by_outcome.setdefault(structs.astuple(structs.replace(row.replay, flags=[row.name]))[1:], row)
    rows = list(by_outcome.values())
    return rows[: sum(bool(row.name) for row in rows) + SHOWN_REPLAYS]


def _describe_proposal(report: AutoscalerProposeReport) -> Iterator[str]:
    yield f"{report.reason.text[:1].upper()}{report.reason.text[1:]}."
    if report.proposed != report.present:
        yield "\n".join(report.proposed.flags)


def _count_hidden(report: AutoscalerProposeReport) -> Iterator[str]:
    hidden = len(_list_replays(report)) - len(_select_shown(report))
    if hidden:
        yield f"{format_count(hidden, 'more set')} of flags, with the same outcome or a higher cost: -o json"


def _format_flags(row: _NamedReplay) -> str | Text:
    flags = "\n".join(flag.removeprefix("--scale-down-") for flag in row.replay.flags)
    return Text.assemble((row.name, "bold"), f"\n{flags}") if row.name else flags


VIEW: ReportView[AutoscalerProposeReport] = ReportView(
    title="trimtab autoscaler propose",
    sections=(
        Section(
            key="replays",
            title=lambda report: (
                f"{report.hours:g} hours, with {format_count(report.nodes, 'node')} and "
                f"{format_count(report.pods, 'pod')} at the beginning"
            ),
            rows=_list_replays,
            drawn=_select_shown,
            columns=(
                Column("Flags", _format_flags),
                number_column("Nodes", lambda row: row.replay.mean_nodes, "{:g}"),
                number_column("Nodes at the end", lambda row: row.replay.final_nodes, "{}", rank=3),
                number_column("Removed", lambda row: row.replay.removed, "{}", rank=5),
                number_column("Evictions", lambda row: row.replay.evictions, "{}", rank=2),
                number_column("Nodes added again", lambda row: row.replay.bought_back, "{}", rank=4),
                number_column("Pod minutes pending", lambda row: row.replay.pending_pod_minutes, "{:g}", rank=1),
                number_column("$", lambda row: row.replay.dollars, "{:,.2f}"),
            ),
            before=_describe_proposal,
            after=_count_hidden,
            name=lambda row: f"flags/{','.join(flag.removeprefix('--') for flag in row.replay.flags)}",
        ),
    ),
    notes=lambda report: report.notes,
)
"""The present flags, the proposed ones, and the cheapest others."""
