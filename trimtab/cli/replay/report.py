"""The report of `trimtab replay`: what recorded days would have cost and disturbed, for each variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trimtab.autoscaling.replay.daily_outcome import DAY, HOUR, DailyOutcome, DayPods
from trimtab.autoscaling.replay.recording import Stretch
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.replay.measured_error import MEASURED_ERROR, SCRAPED_ERROR
from trimtab.cli.replay.missing_inputs import MissingInput
from trimtab.cli.replay.recorded_world import RecordedWorld
from trimtab.cli.replay.recording_notes import list_recording_notes
from trimtab.cli.replay.run import ReplayedVariant, ReplaySteps
from trimtab.cli.reports.replay_words import RECORDED
from trimtab.cluster.timestamps import format_timestamp

CAPTURES, STATE_METRICS = "captures", "kube-state-metrics"
WHOLE_DAY_SHARE = 0.9
"""Days are compared that are recorded for at least this share of the longest one: in a few hours, little is saved."""


class ReplayedFigures(ReportPart, frozen=True, kw_only=True):
    """One variant: in all, on one day, or in one pool."""

    variant: str
    """Who empties nodes: `as it was` for the recording, an autoscaler with its threshold, or Trimtab in addition."""
    day: str
    """The day in UTC; empty for all days."""
    pool: str
    """The node pool; empty for all pools."""
    hours: float
    """The recorded hours that are counted here: a day may be recorded in part only."""
    node_hours: float
    """The nodes × hours."""
    saved_node_hours: float | None
    """The node hours of the autoscaler alone in the replay, less those of this variant; null for what was recorded."""
    core_hours: float
    """The allocatable cores of all nodes × hours. Where nodes have several sizes, these say more than node hours."""
    saved_core_hours: float | None
    """The core hours of the autoscaler alone in the replay, less those of this variant; null for what was recorded."""
    cost: float | None
    """In dollars; null if a node has no known price."""
    saved: float | None
    """The dollars that are saved against the autoscaler alone; null as above."""
    bought: int
    """The number of nodes that were added."""
    evictions: int | None
    """Null where the recording does not show it: for one pool, and for what was recorded."""
    long_waits: int | None
    """The number of pods that waited for a node for a minute or longer; null for one pool."""
    wait_seconds: float | None
    """The sum of the times for which pods waited for a node; null for one pool."""


class ReplayedWorkload(ReportPart, frozen=True, kw_only=True):
    """A workload of which pods would have been evicted."""

    workload: str
    """The workload."""
    evictions: int
    """The number of its pods that would have been evicted."""


class ReplayGap(ReportPart, frozen=True, kw_only=True):
    """Something that the input does not contain."""

    what: str
    """What is not known, and what this can change."""
    changes: str
    """What the answer could be without it."""


class ReplayReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab replay`. Published as deploy/schemas/replay-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab replay"
    api_version: str = API_VERSION
    kind: str = "ReplayReport"
    cluster: str
    """The uid of the namespace kube-system, which identifies the cluster; empty if the recording does not have it."""
    source: str
    """What was recorded: `captures`, or `kube-state-metrics`, which shows less."""
    since: str
    """The beginning of the recording, as RFC 3339."""
    until: str
    """The end of the recording, as RFC 3339."""
    hours: float
    """The recorded hours without gaps: only these are in the sums."""
    every_seconds: int
    """The seconds between two captures, or between two points of kube-state-metrics."""
    rounds: int
    """The number of captures or points."""
    pod_states: int
    """The number of different states of pods that were recorded: how large the recording is."""
    trimtab_version: str
    """The version of Trimtab that made the report."""
    command: str = ""
    """The command that makes this report again; empty if no command made it."""
    details: str
    """The variant of which the days, the pools and the workloads are shown."""
    repeats: int
    """How often each variant was replayed; the figures are averages. A small recording is replayed several times, each
    time with other names of new nodes and another order of the first pods, by which ties fall."""
    saved_least: float
    """The core hours that the variant of the details saves in the repeat in which it saves least."""
    saved_most: float
    """The same in the repeat in which it saves most."""
    model_error: float | None
    """The core hours of the autoscaler alone in the replay, divided by those that were recorded, less 1."""
    own_drains: int
    """How many nodes Trimtab itself was seen to drain while this was recorded. If it was any, what was already has
    their saving, so that `modelError` is not only an error."""
    measured_error: str
    """How far replays from captures were from runs of the same hours, as measured."""
    variants: list[ReplayedFigures]
    """What each variant cost, over all recorded hours."""
    days: list[ReplayedFigures]
    """Each day of each variant."""
    pools: list[ReplayedFigures]
    """Each pool of each variant."""
    pool_days: list[ReplayedFigures]
    """Each day of each pool: as it was, with the autoscaler alone, and in the variant of the details."""
    best_day: str
    """The day on which the variant of the details saves most, of those that are recorded (nearly) as long as any; empty
    if it saves on none."""
    worst_day: str
    """The day of these on which it saves least, or loses most; empty if all are equal."""
    workloads: list[ReplayedWorkload]
    """The workloads that the variant of the details disturbs, those with the most evictions first."""
    missing: list[ReplayGap]
    """What the recording does not show, each with what it can change."""
    notes: list[str]
    """What of this recording changes how the answer is to be read, and what the replay rests on, one sentence each."""

    def find_variant(self, name: str) -> ReplayedFigures | None:
        """Returns the sums of this variant; None if it was not replayed."""
        return next((row for row in self.variants if row.variant == name), None)

    def find_alone(self) -> ReplayedFigures | None:
        """Returns the sums of the autoscaler alone, with which all variants are compared."""
        return next((row for row in self.variants if row.saved_core_hours is not None), None)


def build_replay_report(
    recorded: RecordedWorld,
    was: DailyOutcome,
    variants: Sequence[ReplayedVariant],
    steps: ReplaySteps,
    missing: Sequence[MissingInput],
    *,
    details: str,
    version: str,
) -> ReplayReport:
    """Returns the report. The first variant is the autoscaler alone, with which the others are compared."""
    alone = variants[0].outcome
    has_prices = all(recorded.world.prices.values())
    outcomes: list[tuple[str, DailyOutcome]] = [(RECORDED, was)]
    outcomes += [(one.variant.name, one.outcome) for one in variants]
    days = sorted({day for _, outcome in outcomes for day, _ in outcome.pools})
    pools = sorted({pool for _, outcome in outcomes for _, pool in outcome.pools})
    build_rows = _RowBuilder(alone, recorded.world.stretches, has_prices).build_rows
    chosen = next(one for one in variants if one.variant.name == details)
    rows_of_days = [
        row for name, outcome in outcomes for row in build_rows(name, outcome, [(day, None) for day in days])
    ]
    best_day, worst_day = choose_days([one for one in rows_of_days if one.variant == details])
    savings = [before - after for before, after in zip(variants[0].core_hours, chosen.core_hours, strict=True)]
    recorded_seconds = was.sum_pools().core_seconds
    return ReplayReport(
        cluster=recorded.cluster,
        source=STATE_METRICS if recorded.from_prometheus else CAPTURES,
        since=format_timestamp(recorded.begin),
        until=format_timestamp(recorded.end),
        hours=round(recorded.seconds / HOUR, 2),
        every_seconds=recorded.every_seconds,
        rounds=recorded.rounds,
        pod_states=recorded.pod_states,
        trimtab_version=version,
        details=details,
        repeats=len(chosen.core_hours),
        saved_least=_round_signed(min(savings), 1),
        saved_most=_round_signed(max(savings), 1),
        model_error=(
            _round_signed(alone.sum_pools().core_seconds / recorded_seconds - 1, 4) if recorded_seconds else None
        ),
        own_drains=recorded.own_drains,
        measured_error=f"{MEASURED_ERROR}{SCRAPED_ERROR}" if recorded.from_prometheus else MEASURED_ERROR,
        variants=[row for name, outcome in outcomes for row in build_rows(name, outcome, [(None, None)])],
        days=rows_of_days,
        pools=[
            row for name, outcome in outcomes for row in build_rows(name, outcome, [(None, pool) for pool in pools])
        ],
        pool_days=[
            row
            for rows in zip(
                *(
                    build_rows(name, outcome, [(day, pool) for day in days for pool in pools])
                    for name, outcome in outcomes
                    if name in (RECORDED, variants[0].variant.name, details)
                ),
                strict=True,
            )
            for row in rows
        ],
        best_day=best_day,
        worst_day=worst_day,
        workloads=list(_list_workloads(chosen)),
        missing=[ReplayGap(what=one.what, changes=one.changes) for one in missing],
        notes=[*list_recording_notes(recorded), *_list_notes(steps)],
    )


Place = tuple[int | None, str | None]
"""(day, pool); None: all of them."""


@dataclass(frozen=True, slots=True)
class _RowBuilder:
    alone: DailyOutcome
    stretches: Sequence[Stretch]
    has_prices: bool

    def build_rows(self, name: str, outcome: DailyOutcome, places: Sequence[Place]) -> Iterator[ReplayedFigures]:
        """Yields a row for each place; their whole numbers have the sum of all places together."""
        pods = [outcome.sum_pods(day) if pool is None else DayPods() for day, pool in places]
        counts = zip(
            round_parts([outcome.sum_pools(*place).bought for place in places]),
            round_parts([one.evictions for one in pods]),
            round_parts([one.waits for one in pods]),
            round_parts([one.wait_seconds for one in pods]),
            strict=True,
        )
        for place, (bought, evictions, waits, wait_seconds) in zip(places, counts, strict=True):
            day, pool = place
            machines, before = outcome.sum_pools(day, pool), self.alone.sum_pools(day, pool)
            saved_nodes = (before.node_seconds - machines.node_seconds) / HOUR
            saved_cores = (before.core_seconds - machines.core_seconds) / HOUR
            dollars = (before.micro_dollar_hours - machines.micro_dollar_hours) / 1e6
            is_recorded = name == RECORDED
            yield ReplayedFigures(
                variant=name,
                day="" if day is None else format_timestamp(day * DAY)[:10],
                pool=pool or "",
                hours=round(sum(_count_seconds(stretch, day) for stretch in self.stretches) / HOUR, 2),
                node_hours=round(machines.node_seconds / HOUR, 1),
                saved_node_hours=None if is_recorded else _round_signed(saved_nodes, 1),
                core_hours=round(machines.core_seconds / HOUR, 1),
                saved_core_hours=None if is_recorded else _round_signed(saved_cores, 1),
                cost=round(machines.micro_dollar_hours / 1e6, 2) if self.has_prices else None,
                saved=_round_signed(dollars, 2) if self.has_prices and not is_recorded else None,
                bought=bought,
                evictions=None if is_recorded or pool is not None else evictions,
                long_waits=None if pool is not None else waits,
                wait_seconds=None if pool is not None else wait_seconds,
            )


def _round_signed(amount: float, digits: int) -> float:
    """Returns the rounded amount; zero has no sign."""
    return round(amount, digits) + 0.0


def round_parts(parts: Sequence[float]) -> list[int]:
    """Returns whole numbers for averages of several replays; their sum is that of the averages, rounded."""
    total, shown, whole = 0.0, 0, list[int]()
    for part in parts:
        total += part
        whole.append(round(total) - shown)
        shown += whole[-1]
    return whole


def _count_seconds(stretch: Stretch, day: int | None) -> int:
    """Returns how much of the day (None: of any time) is recorded in the stretch."""
    if day is None:
        return stretch.end - stretch.begin
    return max(0, min(stretch.end, (day + 1) * DAY) - max(stretch.begin, day * DAY))


def choose_days(rows: Sequence[ReplayedFigures]) -> tuple[str, str]:
    """Returns (the best day, the worst day) of a variant, as the fields of the report say."""
    longest = max((row.hours for row in rows), default=0.0)
    whole = [row for row in rows if row.hours >= WHOLE_DAY_SHARE * longest]
    by_saving = sorted(whole, key=lambda row: (-(row.saved_core_hours or 0.0), row.day))
    if not by_saving or by_saving[0].saved_core_hours == by_saving[-1].saved_core_hours:
        return "", ""
    best, worst = by_saving[0], by_saving[-1]
    return best.day if (best.saved_core_hours or 0.0) > 0 else "", worst.day


def _list_workloads(variant: ReplayedVariant) -> Iterator[ReplayedWorkload]:
    """Yields the workloads, those with the most evictions first. Their rounded averages have the sum of the variant."""
    repeats = len(variant.core_hours)
    names = sorted(variant.evicted, key=lambda name: (-variant.evicted[name], name))
    counts = dict(zip(names, round_parts([variant.evicted[name] / repeats for name in names]), strict=True))
    for workload in sorted(counts, key=lambda name: (-counts[name], name)):
        if counts[workload]:
            yield ReplayedWorkload(workload=workload, evictions=counts[workload])


def _list_notes(steps: ReplaySteps) -> Iterator[str]:
    if steps != ReplaySteps():
        yield (
            f"The recording is large, so the autoscaler of the replay scans every {steps.scan} s, and the compactor "
            f"plans every {steps.plan} s and continues drains every {steps.poll} s."
        )
