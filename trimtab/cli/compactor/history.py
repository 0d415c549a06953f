"""The report of `trimtab compactor history`: the stored decisions, filtered by pool, node and time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReportPart, create_console
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section
from trimtab.cli.reporting.draw import draw_report
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.inputs.compactor_state import ClusterLogin, CompactorState, read_compactor_state

DAY_SECONDS = 86_400
WATCH_SECONDS = 5
"""How often `--watch` reads the state. The compactor stores its state after every decision; it plans every 30 s by
default."""
NO_DECISION = "the compactor has stored no decision"
EVICTED, REFUSED = "evicted", "refused"
EVICTION_DECISIONS = (EVICTED, REFUSED)


class RecordReport(ReportPart, frozen=True, kw_only=True):
    """One decision of the compactor."""

    at: str
    """When the decision was made, as RFC 3339."""
    pool: str
    """The pool."""
    what: str
    """What was decided, in one word."""
    code: str
    """The code of the reason for the decision."""
    why: str
    """The reason as a sentence with its values."""
    node: str
    """The node that the decision is about; empty if it is about none."""
    pod: str
    """The pod that the decision is about, as namespace/name; empty if it is about none."""
    drain: str
    """The identifier of the drain that the decision is part of; empty if it is part of none."""
    rehearsed: bool
    """Whether the compactor only rehearsed: it decided, and wrote nothing."""


class HistoryReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab compactor history`. Published as deploy/schemas/compactor-history-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab compactor history"
    api_version: str = API_VERSION
    kind: str = "CompactorHistoryReport"
    records: list[RecordReport]
    """The decisions, the oldest first."""
    empty_because: str = ""
    """Why the report contains no decision; empty if it contains one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """The filters for the decisions in a report. A filter that is empty or None selects all decisions."""

    pool: str | None = None
    node: str | None = None
    since: Seconds | None = None
    limit: int | None = None
    """The largest number of decisions in the report. If there are more, only the newest are shown; None for all."""
    evictions: bool = True
    """Whether evictions of single pods are among the decisions."""


def build_history_report(state: CompactorState, filters: HistoryFilter | None = None) -> HistoryReport:
    """Returns a report of the stored decisions that the filters select."""
    filters = filters or HistoryFilter()
    selected = sorted(
        (
            record
            for pool_state in state.pool_states.values()
            for record in pool_state.ring
            if filters.pool in (None, record.pool)
            and filters.node in (None, record.node)
            and (filters.evictions or record.what not in EVICTION_DECISIONS)
        ),
        key=lambda record: record.at,
    )
    since = filters.since
    records = [record for record in selected if since is None or record.at >= since]
    return HistoryReport(
        empty_because="" if records else _explain_emptiness(selected, since, state.read_at),
        records=[
            RecordReport(
                at=format_timestamp(record.at),
                pool=record.pool,
                what=record.what,
                code=record.code,
                why=record.why,
                node=record.node,
                pod=record.pod,
                drain=record.drain,
                rehearsed=record.rehearsed,
            )
            for record in records[-filters.limit if filters.limit else 0 :]
        ],
    )


def _explain_emptiness(selected: Sequence[HistoryEntry], since: Seconds | None, read_at: Seconds) -> str:
    """Returns the reason why the report contains no decision, as text.

    `selected`: the decisions that the other filters select, at any time, the oldest first. `since`: the time from which
    decisions are shown."""
    if not selected or since is None:
        return NO_DECISION
    last = format_timestamp(selected[-1].at)
    return f"no decision in the last {_describe_seconds(int(read_at - since))}; the last decision was at {last}"


def _describe_seconds(seconds: int) -> str:
    """Returns a number of seconds as text, in the largest unit that divides it exactly: `5 minutes`."""
    for size, unit in ((DAY_SECONDS, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0 and seconds:
            return f"{seconds // size} {unit}" + ("" if seconds == size else "s")
    return f"{seconds} seconds"


_DECISIONS: Section[HistoryReport, RecordReport] = Section(
    key="decisions",
    rows=lambda report: report.records,
    columns=(
        Column("at", lambda record: record.at),
        Column("pool", lambda record: record.pool, rank=3),
        Column("what", lambda record: record.what + " (rehearsed)" * record.rehearsed),
        Column("node", lambda record: record.node or "–", is_wide=True, rank=2),
        Column("pod", lambda record: record.pod or "–", is_wide=True, rank=4),
        Column("drain", lambda record: record.drain or "–", is_wide=True, rank=5),
        Column("why", lambda record: record.why, min_width=20),
        Column("reason", lambda record: record.code, rank=1),
    ),
    name=lambda record: f"node/{record.node}",
    named=lambda report: [record for record in report.records if record.node],
    empty=lambda report: [report.empty_because or NO_DECISION],
    is_log=True,
    frame=Frame.NONE,
)
VIEW: ReportView[HistoryReport] = ReportView(title="trimtab compactor", sections=(_DECISIONS,))
"""A row per decision; with -o wide it also has the node, the pod and the drain."""
WHOLE_VIEW = replace(VIEW, sections=(replace(_DECISIONS, drawn=_DECISIONS.rows),))
"""The same for a number of decisions that the user gave."""


def new_records(earlier: HistoryReport, later: HistoryReport) -> HistoryReport:
    """Returns a report of the decisions in the later report that are not in the earlier one."""
    earlier_records = set(earlier.records)
    return HistoryReport(records=[record for record in later.records if record not in earlier_records])


def watch_history(login: ClusterLogin, filters: HistoryFilter, report: HistoryReport, *, is_wide: bool) -> None:
    """Print each new decision, until the user stops the command."""
    try:
        while True:
            time.sleep(WATCH_SECONDS)
            later = build_history_report(read_compactor_state(login), filters)
            added = new_records(report, later)
            if added.records:
                draw_report(create_console(), added, VIEW, is_wide=is_wide)
            report = later
    except KeyboardInterrupt:
        return
