"""The report of `trimtab simulate --churn`: what each variant cost and disturbed, and how they compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import ClassVar

from rich.text import Text

from trimtab.autoscaling.churn.attainable import FrontierPoint, least_core_hours
from trimtab.autoscaling.churn.churn_script import ChurnOptions
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, ReportView, Section, number_column
from trimtab.cli.simulate.churn_run import ALONE, ALONE_07, ChurnRun
from trimtab.cluster.format_count import format_count


class ChurnVariantReport(ReportPart, frozen=True, kw_only=True):
    """The figures of one variant of one seed. Times are in seconds of the simulated cluster."""

    seed: int
    """The number from which the events are generated."""
    variant: str
    """Who empties nodes: the stand-in for the cluster autoscaler alone, with its threshold, or Trimtab beside it."""
    core_hours: float
    """The allocatable cores of all nodes × hours."""
    cost: float
    """The price of all nodes, in dollars."""
    evictions: int
    """The number of evictions."""
    evictions_per_core_hour: float | None
    """The evictions divided by the core hours that were saved against the stand-in alone with the threshold 0.5; null
    if none were."""
    bought: int
    """The number of nodes that were added."""
    returned_within_hour: int
    """The number of added nodes that an autoscaler removed within an hour."""
    pending_seconds: float
    """The sum of the times for which pods waited for a node."""
    wait_p99: float
    """The seconds that 99 % of the pods that waited for a node waited at most."""
    wait_longest: float
    """The longest wait of a pod for a node, in seconds."""
    moved_twice: int
    """The number of evictions of pods that had replaced an evicted pod at most an hour before."""
    broken: int
    """The number of evictions after which a PodDisruptionBudget had too few ready pods."""
    cordons_left: int
    """The number of nodes that were still cordoned half an hour after the last event."""


class ChurnComparison(ReportPart, frozen=True, kw_only=True):
    """One variant with Trimtab, compared with the stand-in alone: all seeds together."""

    variant: str
    """The variant with Trimtab."""
    core_hours_over_autoscaler: float
    """The core hours divided by those of the stand-in alone with the threshold 0.5."""
    core_hours_over_autoscaler_07: float
    """The core hours divided by those of the stand-in alone with the threshold 0.7."""
    worst_seed: float
    """The largest `coreHoursOverAutoscaler` of a single seed."""
    bought_without: int
    """The number of nodes that the stand-in alone added."""
    attainable_core_hours: float
    """The smallest `coreHoursOverAutoscaler` that any policy could have with as many purchases."""
    bought_over_without: float | None
    """The nodes that were added, divided by those of the stand-in alone; null if it added none."""
    twice_share: float
    """The share of evictions that moved a pod which had itself replaced an evicted one at most an hour before; 0 to
    1."""
    wait_p99_over_seconds: float
    """The largest difference of the 99th percentiles of waits between this variant and the stand-in alone."""


class ChurnAttainable(ReportPart, frozen=True, kw_only=True):
    """What no policy can surpass, even if it knew the churn in advance: all seeds together."""

    purchase_price: float
    """How many core hours a purchase may cost to be avoided."""
    core_hours_over_autoscaler: float
    """The fewest core hours with so many purchases, divided by those of the stand-in alone with the threshold 0.5."""
    bought_over_without: float | None
    """The nodes that are added then, divided by those of the stand-in alone; null if it added none."""


class ChurnReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab simulate --churn`. Published as deploy/schemas/churn-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab simulate --churn"
    api_version: str = API_VERSION
    kind: str = "ChurnReport"
    hours: float
    """The simulated hours."""
    is_from_trace: bool
    """Whether sizes and lifetimes of pods are those of the trace; otherwise they are generated."""
    variants: list[ChurnVariantReport]
    """The figures of each variant of each seed."""
    comparisons: list[ChurnComparison]
    """Each variant with Trimtab, compared with the stand-in alone."""
    attainable: list[ChurnAttainable]
    """The fewest core hours for each number of purchases, for a policy that knows all events in advance."""
    notes: list[str]
    """What the simulation assumes, one sentence each."""


def build_churn_report(
    options: ChurnOptions, runs: Sequence[ChurnRun], frontier: Sequence[FrontierPoint], *, is_from_trace: bool
) -> ChurnReport:
    """Returns the report of all variants of all seeds. `frontier`: what was attainable in these seeds together."""
    alone = {run.seed: run for run in runs if run.variant is ALONE}
    return ChurnReport(
        hours=options.hours,
        is_from_trace=is_from_trace,
        variants=[_report_variant(run, alone[run.seed]) for run in runs],
        comparisons=list(_compare_variants(runs, alone, frontier)),
        attainable=list(_report_frontier(alone, frontier)),
        notes=[
            f"The stand-in for the cluster autoscaler runs with {' '.join(StandInFlags().format_arguments())}.",
            "The hours before the first half hour, and the rest after the last event, are not measured."
            if options.warm_up_seconds == 1800
            else f"The first {options.warm_up_seconds} seconds are not measured.",
        ],
    )


def _report_variant(run: ChurnRun, alone: ChurnRun) -> ChurnVariantReport:
    outcome = run.outcome
    saved = alone.outcome.core_hours - outcome.core_hours
    return ChurnVariantReport(
        seed=run.seed,
        variant=run.variant.name,
        core_hours=round(outcome.core_hours, 1),
        cost=round(outcome.dollars, 2),
        evictions=outcome.evictions,
        evictions_per_core_hour=round(outcome.evictions / saved, 2) if saved > 0 else None,
        bought=outcome.bought,
        returned_within_hour=outcome.returned_within_hour,
        pending_seconds=round(outcome.pending_seconds, 1),
        wait_p99=round(outcome.wait_p99, 1),
        wait_longest=round(outcome.wait_longest, 1),
        moved_twice=outcome.moved_twice,
        broken=outcome.broken,
        cordons_left=outcome.cordons_left,
    )


def _report_frontier(alone: dict[int, ChurnRun], frontier: Sequence[FrontierPoint]) -> Iterator[ChurnAttainable]:
    core_hours = fsum(run.outcome.core_hours for run in alone.values())
    bought = sum(run.outcome.bought for run in alone.values())
    for point in frontier:
        yield ChurnAttainable(
            purchase_price=point.price,
            core_hours_over_autoscaler=round(point.core_hours / core_hours, 3),
            bought_over_without=round(point.bought / bought, 3) if bought else None,
        )


def _compare_variants(
    runs: Sequence[ChurnRun], alone: dict[int, ChurnRun], frontier: Sequence[FrontierPoint]
) -> Iterator[ChurnComparison]:
    alone_07 = fsum(run.outcome.core_hours for run in runs if run.variant is ALONE_07)
    core_hours = fsum(run.outcome.core_hours for run in alone.values())
    bought = sum(run.outcome.bought for run in alone.values())
    for name in dict.fromkeys(run.variant.name for run in runs if run.variant.precedence is not None):
        outcomes = {run.seed: run.outcome for run in runs if run.variant.name == name}
        evictions = sum(outcome.evictions for outcome in outcomes.values())
        total = fsum(outcome.core_hours for outcome in outcomes.values())
        yield ChurnComparison(
            variant=name,
            core_hours_over_autoscaler=round(total / core_hours, 3),
            core_hours_over_autoscaler_07=round(total / alone_07, 3),
            worst_seed=round(
                max(outcome.core_hours / alone[seed].outcome.core_hours for seed, outcome in outcomes.items()), 3
            ),
            attainable_core_hours=round(
                least_core_hours(frontier, sum(outcome.bought for outcome in outcomes.values())) / core_hours, 3
            ),
            bought_without=bought,
            bought_over_without=(
                round(sum(outcome.bought for outcome in outcomes.values()) / bought, 3) if bought else None
            ),
            twice_share=(
                round(sum(outcome.moved_twice for outcome in outcomes.values()) / evictions, 4) if evictions else 0.0
            ),
            wait_p99_over_seconds=round(
                max(outcome.wait_p99 - alone[seed].outcome.wait_p99 for seed, outcome in outcomes.items()), 1
            ),
        )


_VARIANT_COLUMNS: tuple[Column[ChurnVariantReport], ...] = (
    number_column("seed", lambda row: row.seed, "{}"),
    Column("variant", lambda row: row.variant),
    number_column("core hours", lambda row: row.core_hours, "{:,.0f}"),
    number_column("cost", lambda row: row.cost, "${:,.2f}", rank=5),
    number_column("evictions", lambda row: row.evictions),
    number_column("evictions per core hour", lambda row: row.evictions_per_core_hour, "{:.2f}", rank=4),
    number_column("bought", lambda row: row.bought),
    number_column("returned in an hour", lambda row: row.returned_within_hour, rank=3),
    number_column("p99 wait", lambda row: row.wait_p99, "{:.0f} s", rank=1),
    number_column("longest wait", lambda row: row.wait_longest, "{:.0f} s", rank=6),
    number_column("moved twice", lambda row: row.moved_twice, rank=2),
    number_column("broken", lambda row: row.broken, rank=7),
    number_column("cordons left", lambda row: row.cordons_left, rank=8),
)
_COMPARISON_COLUMNS: tuple[Column[ChurnComparison], ...] = (
    Column("compared", lambda row: row.variant),
    number_column("core hours, relative", lambda row: row.core_hours_over_autoscaler, "{:.3f}"),
    number_column("relative to 0.7", lambda row: row.core_hours_over_autoscaler_07, "{:.3f}", rank=1),
    number_column("worst seed", lambda row: row.worst_seed, "{:.3f}", rank=2),
    number_column("attainable", lambda row: row.attainable_core_hours, "{:.3f}", rank=4),
    number_column("bought, relative", lambda row: row.bought_over_without, "{:.2f}"),
    number_column("moved twice", lambda row: row.twice_share, "{:.1%}"),
    number_column("p99 wait, more", lambda row: row.wait_p99_over_seconds, "{:+.0f} s", rank=3),
)

_ATTAINABLE_COLUMNS: tuple[Column[ChurnAttainable], ...] = (
    number_column("a purchase counts", lambda row: row.purchase_price, "{:g} core hours"),
    number_column("core hours, relative", lambda row: row.core_hours_over_autoscaler, "{:.3f}"),
    number_column("bought, relative", lambda row: row.bought_over_without, "{:.2f}"),
)


def _describe_churn(report: ChurnReport) -> Iterator[Text]:
    seeds = len({row.seed for row in report.variants})
    origin = "the openb trace" if report.is_from_trace else "generated shapes"
    yield Text(f"{report.hours:g} hours of churn, {format_count(seeds, 'seed')}, pods of {origin}", style="bold")


VIEW: ReportView[ChurnReport] = ReportView(
    title="trimtab simulate --churn",
    before=_describe_churn,
    sections=(
        Section(key="variants", rows=lambda report: report.variants, columns=_VARIANT_COLUMNS),
        Section(key="comparisons", rows=lambda report: report.comparisons, columns=_COMPARISON_COLUMNS),
        Section(
            key="attainable",
            rows=lambda report: report.attainable,
            columns=_ATTAINABLE_COLUMNS,
            before=lambda _: [Text("No policy can surpass these, even if it knew what comes:")],
        ),
    ),
    notes=lambda report: report.notes,
)
