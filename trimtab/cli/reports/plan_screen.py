"""The report of `trimtab plan` on one screen: the answer, the nodes to drain, and why the others stay.

`--details` and `-o wide` show the rest: targets, prices, presets, pools, policies for misplaced pods and notes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text

from trimtab.cli.reporting.columns import Column, Paragraph, ReportView, Section, number_column, paragraph_section
from trimtab.cli.reporting.notes import group_notes
from trimtab.cli.reports.node_costs import format_saving
from trimtab.cli.reports.plan import PlanReport, StayReport, StepReport
from trimtab.cli.reports.plan_comparison import KeeperReport
from trimtab.cli.reports.plan_table import GREY, VIEW, group_by_code, select_costly_keepers
from trimtab.cli.reports.replacements import list_replacement_sections
from trimtab.cli.reports.resizes import list_resize_sections, saving_column
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import find_common_domain

MAX_NODES = 12
MAX_REASONS = 6
MAX_ADVICE = 2
"""The largest number of reasons with advice."""
MAX_POOLS = 3
"""The largest number of pools whose reason is printed."""


@dataclass(frozen=True, slots=True)
class _DrainRow:
    """A node that is drained, as a row."""

    wave: int
    node: str
    step: StepReport


@dataclass(frozen=True, slots=True)
class _ReasonRow:
    """A reason that keeps nodes, as a row."""

    code: str
    stays: Sequence[StayReport]
    keeper: KeeperReport | None
    """What a plan without this reason would save; None if that is nothing, or if it was not computed."""

    @property
    def saving_text(self) -> str:
        """What more a plan without this reason would save."""
        return f"{format_saving(self.keeper.costs)} more" if self.keeper is not None else "–"


def view_on_screen(report: PlanReport) -> ReportView[PlanReport]:
    """Returns how this report is shown on one screen; with --explain, as with --details."""
    if report.explained:
        return VIEW
    suffix = find_common_domain([node.name for node in report.nodes])
    has_pools = len({step.pool for wave in report.waves for step in wave.nodes}) > 1
    has_companions = any(step.companions for wave in report.waves for step in wave.nodes)
    pool: Column[_DrainRow] = Column("Pool", lambda row: row.step.pool, rank=3)
    companions: Column[_DrainRow] = number_column("Companions", lambda row: len(row.step.companions), "{}", rank=2)
    drained: Section[PlanReport, _DrainRow] = Section(
        key="nodes",
        rows=lambda report: [
            _DrainRow(wave.number, step.node.removesuffix(suffix), step) for wave in report.waves for step in wave.nodes
        ],
        columns=(
            number_column("Wave", lambda row: row.wave, "{}", rank=1),
            Column("Node", lambda row: row.node),
            *((pool,) if has_pools else ()),
            saving_column("Saves", lambda row: row.step.saves),
            number_column("Pods", lambda row: len(row.step.moves), "{}", rank=2),
            *((companions,) if has_companions else ()),
            number_column("Targets", lambda row: len({move.target for move in row.step.moves}), "{}", rank=4),
        ),
        max_rows=MAX_NODES,
        more=lambda hidden: Text(f"… and {format_count(hidden, 'more node')}: --details", style=GREY),
    )
    reasons: Section[PlanReport, _ReasonRow] = Section(
        key="reasons",
        rows=_list_reasons,
        columns=(
            number_column("Nodes", lambda row: len(row.stays), "{}"),
            Column("Why they stay", lambda row: row.code),
            Column("For example", lambda row: row.stays[0].node.removesuffix(suffix), rank=2),
            Column("Without this reason", lambda row: row.saving_text, align="right", rank=1),
        ),
        after=_describe_advice,
        max_rows=MAX_REASONS,
        more=lambda hidden: Text(f"… and {format_count(hidden, 'more reason')}: --details", style=GREY),
    )
    sections: tuple[Section[PlanReport, Any], ...] = (
        *list_resize_sections(lambda report: report.resize),
        paragraph_section(lambda report: _describe_names(suffix)),
        drained,
        *list_replacement_sections(lambda report: report.replace),
        paragraph_section(_describe_pools),
        reasons,
    )
    return replace(
        VIEW, before=_describe_answer, sections=sections, after=_describe_rest, notes=lambda report: (), texts={}
    )


def _describe_answer(report: PlanReport) -> Iterator[Paragraph]:
    yield from VIEW.before(report)
    guessed = [price for price in report.prices if price.is_guessed]
    if report.guessed.amount:
        regions = "; ".join(dict.fromkeys(price.text for price in guessed))
        yield Text(f"Prices are estimated: {regions}", style="yellow")


def _describe_names(suffix: str) -> Iterator[Text]:
    if suffix:
        yield Text(f"Names of nodes end in {suffix}", style=GREY)


def _describe_pools(report: PlanReport) -> Iterator[Text]:
    """Yields the pools in which nothing is planned for a reason of the whole pool."""
    refused = [pool for pool in report.pools if pool.refused is not None]
    for pool in refused[:MAX_POOLS]:
        assert pool.refused is not None
        yield Text(f"Pool {pool.name}: {pool.refused.text}", style="yellow")
    if len(refused) > MAX_POOLS:
        yield Text(f"… and {format_count(len(refused) - MAX_POOLS, 'more pool')}: --details", style=GREY)


def _list_reasons(report: PlanReport) -> list[_ReasonRow]:
    """Returns the reasons, those without which more would be saved first."""
    costly = {keeper.code: keeper for keeper in select_costly_keepers(report)}
    rows = []
    for _, stays in group_by_code(report.stays):
        code = stays[0].blocked_by or stays[0].reason.code
        rows.append(_ReasonRow(code, stays, costly.get(code)))
    return sorted(rows, key=lambda row: (-(row.keeper.costs.amount if row.keeper else 0), -len(row.stays), row.code))


def _describe_advice(report: PlanReport) -> Iterator[Text]:
    for keeper in select_costly_keepers(report)[:MAX_ADVICE]:
        # The first sentence is what to do; the others say when not.
        advice = keeper.todo.partition(". ")[0].rstrip(".")
        yield Text(f"{keeper.code}: {advice}.")


def _describe_rest(report: PlanReport) -> Iterator[Text]:
    if report.presets:
        outcomes = ", ".join(
            f"{preset.name} → {preset.nodes_after}{' (this plan)' if preset.is_planned else ''}"
            for preset in report.presets
        )
        yield Text(f"Nodes left by preset: {outcomes}")
    karpenter = report.karpenter
    if karpenter is not None:
        yield Text(f"Karpenter itself consolidates {format_count(karpenter.nodes, 'node')}: --details")
    misplaced = sum(len(group.pods) for group in report.misplaced)
    if misplaced:
        yield Text(f"{format_count(misplaced, 'pod')} could be placed better by a policy: --details")
    notes = f"{format_count(len(group_notes(report.notes)), 'assumption')}, " if report.notes else ""
    yield Text(
        f"Why a node stays: trimtab why node NAME, with the same --cluster. {notes}targets, prices: --details",
        style=GREY,
    )
