"""The value of `trimtab report`: the sums first, then a part for each report that it joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.report.printed_reports import (
    SHAPES,
    Printed,
    PrintedAmount,
    PrintedFigures,
    PrintedLint,
    PrintedPlan,
    PrintedRecommendation,
    PrintedReplay,
    PrintedSavingsReport,
)
from trimtab.cli.reports.replay_words import (
    RECORDED,
    describe_doubt,
    describe_evictions,
    describe_model_error,
    describe_saving,
    format_money,
    format_signed,
)
from trimtab.cluster.format_count import format_count
from trimtab.compaction.drain.savings import format_amount, format_amounts

MAX_ROWS = 12
"""The largest number of rows of a table: the reports themselves have all of them."""


class JoinedTable(ReportPart, frozen=True, kw_only=True):
    """A table of texts."""

    title: str
    """The title of the table; empty if it has none."""
    columns: list[str]
    """The titles of the columns."""
    rows: list[list[str]]
    """The cells, row by row."""
    numbers: list[int]
    """The positions of the columns that hold numbers."""
    more: int
    """How many further rows the report has."""


class JoinedDay(ReportPart, frozen=True, kw_only=True):
    """A day of a replay, in dollars or, without prices, in core hours."""

    day: str
    """The day in UTC."""
    alone: float
    """What the day would have been with the autoscaler alone, in the replay."""
    would_be: float
    """What the day would have been with Trimtab in addition."""


class JoinedPart(ReportPart, frozen=True, kw_only=True):
    """What one report says."""

    kind: str
    """The kind of the report, such as PlanReport."""
    title: str
    """The title of the report."""
    file: str
    """The file of the report."""
    sum: str
    """The sum in few words, such as "$1,234 a month"; empty if the report has none."""
    answer: str
    """The answer of the report, as a sentence."""
    tables: list[JoinedTable]
    """The tables of the report, shortened to their first rows."""
    days: list[JoinedDay]
    """The days of a replay; empty for other reports."""
    has_prices: bool
    """Whether `days` are in dollars."""
    would_be: str
    """What the days would have been with: a variant of the replay; empty without days."""
    notes: list[str]
    """The notes of the report."""


class JoinedReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab report`. Published as deploy/schemas/joined-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab report FILE..."
    api_version: str = API_VERSION
    kind: str = "JoinedReport"
    title: str
    """The title of the page."""
    headline: str
    """The answer of the first report."""
    at: str
    """When the report was made, as RFC 3339."""
    trimtab_version: str
    """The version of Trimtab that made the report."""
    command: str
    """The command that makes this report again."""
    parts: list[JoinedPart]
    """What the reports say: replay, plan, recommend, savings, lint."""
    notes: list[str]
    """What the reports have in common, one sentence each."""


def join_reports(
    reports: Sequence[tuple[str, str, Printed]], *, title: str, at: str, version: str, command: str
) -> JoinedReport:
    """Returns the joined report. `reports`: the file, the kind and what was read of each."""
    kinds, order = Counter(kind for _, kind, _ in reports), list(SHAPES)
    parts = [
        _JOINED[kind](printed, file, f" ({file})" if kinds[kind] > 1 else "")
        for file, kind, printed in sorted(reports, key=lambda one: (order.index(one[1]), one[0]))
    ]
    return JoinedReport(
        title=title,
        headline=parts[0].answer,
        at=at,
        trimtab_version=version,
        command=command,
        parts=parts,
        notes=list(_list_notes(kinds, {one.cluster for _, _, one in reports if isinstance(one, PrintedReplay)})),
    )


def _list_notes(kinds: Mapping[str, int], clusters: set[str]) -> Iterator[str]:
    if len(clusters) > 1:
        names = ", ".join(sorted(cluster or "unknown" for cluster in clusters))
        yield f"The replays are of {len(clusters)} clusters: {names}."
    if len([kind for kind in kinds if kind != "LintReport"]) > 1:
        yield (
            "The sums are not to be added up: smaller requests save money only when nodes go, a plan is about one "
            "minute, and a replay about the days that were recorded."
        )
    absent = [_COMMANDS[kind] for kind in SHAPES if kind not in kinds]
    if absent:
        yield f"Not in this report: {', '.join(absent)}."


_COMMANDS = {
    "ReplayReport": "what recorded days would have cost (trimtab replay)",
    "PlanReport": "which nodes can be drained now (trimtab plan)",
    "RecommendReport": "requests from usage (trimtab recommend)",
    "SavingsReport": "what removed nodes saved so far (trimtab savings)",
    "LintReport": "what works against each other (trimtab lint)",
}


def _join_replay(replay: PrintedReplay, file: str, suffix: str) -> JoinedPart:
    chosen = next((row for row in replay.variants if row.variant == replay.details), None)
    has_prices = bool(replay.days) and all(row.cost is not None for row in replay.days)
    # What was recorded has no saving: all variants are compared with the first replay.
    alone = next((row for row in replay.variants if row.saved_core_hours is not None), None)
    alone_days = {row.day: row for row in replay.days if alone is not None and row.variant == alone.variant}
    saving, evictions = "–", describe_evictions(0, None)
    if chosen is not None and alone is not None:
        saving = describe_saving(chosen.saved_core_hours, chosen.saved, alone.core_hours)
        evictions = describe_evictions(chosen.evictions or 0, alone.evictions)
    error = replay.model_error
    notes = [describe_model_error(error, replay.measured_error)] if error is not None else []
    recorded = next((row for row in replay.variants if row.variant == RECORDED), None)
    if chosen is not None and recorded is not None:
        notes.append(describe_doubt(chosen.saved_core_hours, recorded.core_hours, error, replay.own_drains))
    notes += replay.notes
    gaps = format_count(len(replay.missing), "thing")
    notes.append(f"Cluster {replay.cluster or 'unknown'}; {gaps} that {replay.source} cannot show: see the replay.")
    notes += [f"Repeat it with: {replay.command}"] if replay.command else []
    return JoinedPart(
        kind="ReplayReport",
        title=f"What {replay.since[:10]} to {replay.until[:10]} would have cost{suffix}",
        file=file,
        sum=saving,
        answer=f"{replay.since[:10]} to {replay.until[:10]}, {replay.details}: {saving}, with {evictions}",
        tables=[
            _make_table(f"Variants{suffix}", _VARIANT_COLUMNS, map(_describe_variant, replay.variants)),
            _make_table(
                f"Disturbed workloads{suffix}",
                ("workload", "evictions"),
                ((one.workload, f"{one.evictions:,}") for one in replay.workloads),
            ),
        ],
        days=[
            JoinedDay(
                day=row.day,
                alone=_measure(alone_days[row.day], has_prices=has_prices),
                would_be=_measure(row, has_prices=has_prices),
            )
            for row in replay.days
            if row.variant == replay.details and row.day in alone_days
        ],
        has_prices=has_prices,
        would_be=replay.details,
        notes=[note for note in notes if note],
    )


_VARIANT_COLUMNS = ("variant", "core hours", "core hours saved", "money saved", "bought", "evictions", "long waits")


def _describe_variant(row: PrintedFigures) -> tuple[str, ...]:
    return (
        row.variant,
        f"{row.core_hours:,.0f}",
        "–" if row.saved_core_hours is None else format_signed(row.saved_core_hours),
        "–" if row.saved is None else format_money(row.saved),
        f"{row.bought:,}",
        "–" if row.evictions is None else f"{row.evictions:,}",
        "–" if row.long_waits is None else f"{row.long_waits:,}",
    )


def _measure(row: PrintedFigures, *, has_prices: bool) -> float:
    return row.cost if has_prices and row.cost is not None else row.core_hours


def _join_plan(plan: PrintedPlan, file: str, suffix: str) -> JoinedPart:
    steps = [step for wave in plan.waves for step in wave.nodes]
    pools: dict[str, tuple[int, int, float]] = {}
    for step in steps:
        nodes, pods, saved = pools.get(step.pool, (0, 0, 0.0))
        pools[step.pool] = nodes + 1, pods + len(step.moves), saved + step.saves.amount
    unit, saved_now = plan.saves.unit, _describe_amount(plan.saves)
    guessed = f"{_describe_amount(plan.guessed)} of the saving depends on estimated prices."
    count, evictions = len(steps), format_count(plan.evictions, "eviction")
    return JoinedPart(
        kind="PlanReport",
        title=f"Which nodes can be drained{suffix}",
        file=file,
        sum=saved_now,
        answer=f"{plan.nodes_before} → {format_count(plan.nodes_after, 'node')} now: {saved_now}, with {evictions}",
        tables=[
            _make_table(
                f"Nodes to drain: {count}{suffix}",
                ("pool", "nodes", "pods that move", "saves"),
                (
                    (pool or "–", f"{nodes:,}", f"{pods:,}", format_amount(round(saved, 2), unit))
                    for pool, (nodes, pods, saved) in sorted(pools.items())
                ),
            ),
            _make_table(
                f"What keeps the other nodes{suffix}",
                ("reason", "more nodes", "costs", "what to do"),
                (
                    (one.code, f"{one.more_nodes:,}", _describe_amount(one.costs), one.todo)
                    for one in plan.keepers
                    if one.more_nodes
                ),
            ),
        ],
        **_NO_DAYS,
        notes=[guessed] if plan.guessed.amount else [],
    )


def _join_recommendation(report: PrintedRecommendation, file: str, suffix: str) -> JoinedPart:
    is_priced = any(one.monthly_saved is not None for one in report.containers)
    saved = f"{format_money(report.saved)} a month" if is_priced else ""
    change = f": {format_money(abs(report.saved))} a month {'less' if report.saved >= 0 else 'more'}" if saved else ""
    count = format_count(len(report.containers), "container")
    unknown = f"{format_count(report.unknown, 'container has', 'containers have')} too little usage."
    largest = [one for one in report.containers if one.monthly_saved]
    return JoinedPart(
        kind="RecommendReport",
        title=f"What pods request, and what they use{suffix}",
        file=file,
        sum=saved,
        answer=f"{report.changes} of {count} would have another request{change}",
        tables=[
            _make_table(
                f"Requests by namespace{suffix}",
                ("namespace", "containers", "changes", "now, a month", "proposed, a month", "saved, a month"),
                (
                    (
                        one.value or "–",
                        f"{one.containers:,}",
                        f"{one.changes:,}",
                        *(
                            "–" if amount is None else format_money(amount)
                            for amount in (one.monthly_now, one.monthly_proposed, one.monthly_saved)
                        ),
                    )
                    for one in report.totals
                ),
            ),
            _make_table(
                f"The largest changes{suffix}",
                ("container", "saved, a month"),
                (
                    (f"{one.namespace}/{one.workload}/{one.container}", format_money(one.monthly_saved or 0.0))
                    for one in largest
                ),
            ),
        ],
        **_NO_DAYS,
        notes=[unknown] if report.unknown else [],
    )


def _join_savings(report: PrintedSavingsReport, file: str, suffix: str) -> JoinedPart:
    saved = format_amounts(report.total.saves)
    nodes = format_count(report.total.nodes or 0, "node was removed", "nodes were removed")
    so_far = report.total.dollars_so_far
    money = f"; at most {format_money(so_far)} so far" if so_far is not None else ""
    return JoinedPart(
        kind="SavingsReport",
        title=f"What removed nodes have saved{suffix}",
        file=file,
        sum=saved,
        answer=f"Since {report.since[:10]}, {nodes}: {saved}{money}",
        tables=[
            _make_table(
                f"Removed nodes by pool{suffix}",
                ("pool", "nodes", "saves", "so far, at most"),
                (
                    (
                        one.name,
                        "–" if one.nodes is None else f"{one.nodes:,}",
                        format_amounts(one.saves),
                        "–" if one.dollars_so_far is None else format_money(one.dollars_so_far),
                    )
                    for one in report.pools
                ),
            )
        ],
        **_NO_DAYS,
        notes=[],
    )


def _join_lint(report: PrintedLint, file: str, suffix: str) -> JoinedPart:
    by_rule: dict[tuple[str, str], list[str]] = {}
    order = {"error": 0, "warning": 1}
    for one in sorted(report.findings, key=lambda finding: order.get(finding.severity, 2)):
        by_rule.setdefault((one.severity, one.rule), []).append(one.sentence)
    counts = ", ".join(format_count(report.counts.get(name, 0), name) for name in ("error", "warning"))
    skipped = f"{format_count(len(report.not_checked), 'rule was', 'rules were')} not checked, because data is missing."
    return JoinedPart(
        kind="LintReport",
        title=f"What works against each other{suffix}",
        file=file,
        sum=counts,
        answer=f"{counts} in {format_count(report.objects, 'object')}, by {format_count(report.rules, 'rule')}",
        tables=[
            _make_table(
                f"Findings by rule{suffix}",
                ("rule", "severity", "findings", "for example"),
                (
                    (rule, severity, f"{len(sentences):,}", sentences[0])
                    for (severity, rule), sentences in by_rule.items()
                ),
            )
        ],
        **_NO_DAYS,
        notes=[skipped] if report.not_checked else [],
    )


_NO_DAYS: dict[str, Any] = {"days": [], "has_prices": False, "would_be": ""}
_JOINED: Mapping[str, Callable[[Any, str, str], JoinedPart]] = {
    "ReplayReport": _join_replay,
    "PlanReport": _join_plan,
    "RecommendReport": _join_recommendation,
    "SavingsReport": _join_savings,
    "LintReport": _join_lint,
}
_NUMBERS = frozenset(
    {
        *_VARIANT_COLUMNS[1:],
        *("nodes", "pods that move", "saves", "more nodes", "costs", "containers", "changes", "findings"),
        *("now, a month", "proposed, a month", "saved, a month", "so far, at most"),
    }
)
"""The columns that hold numbers."""


def _make_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> JoinedTable:
    whole = [list(row) for row in rows]
    return JoinedTable(
        title=title,
        columns=list(columns),
        rows=whole[:MAX_ROWS],
        numbers=[number for number, column in enumerate(columns) if column in _NUMBERS],
        more=max(0, len(whole) - MAX_ROWS),
    )


def _describe_amount(saving: PrintedAmount) -> str:
    return format_amount(saving.amount, saving.unit)
