"""How the report of `trimtab admit --running` is shown."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, no_paragraphs, number_column
from trimtab.cli.reports.running_pods import RunningFindingReport, RunningReport, TallyReport
from trimtab.cluster.format_count import format_count, join_first

_GREY = "bright_black"

_HIDDEN_KINDS = ("watching", "left-out", "withheld")
MAX_ROWS = 60
MAX_NAMES = 3
"""The largest number of workloads that are named for each policy and reason."""


class _CauseRow(NamedTuple):
    """The pods that differ from one policy for one reason."""

    policy: str
    code: str
    pods: int
    workloads: tuple[str, ...]


def _group_by_cause(findings: Sequence[RunningFindingReport]) -> list[_CauseRow]:
    """Returns a row for each policy and reason, those with the most pods first."""
    groups: dict[tuple[str, str], list[RunningFindingReport]] = {}
    for finding in findings:
        groups.setdefault((finding.policy, finding.reason.code), []).append(finding)
    rows = [
        _CauseRow(
            policy or "–",
            code,
            sum(finding.pods for finding in group),
            tuple(f"{finding.namespace}/{finding.owner.partition('/')[2]}" for finding in group),
        )
        for (policy, code), group in groups.items()
    ]
    return sorted(rows, key=lambda row: -row.pods)


def view_running(*, explain: bool, is_screen: bool = False) -> ReportView[RunningReport]:
    """Returns a row per owner and cause, then the numbers of each policy; on one screen, a row per policy and cause."""

    def select_shown(report: RunningReport) -> list[RunningFindingReport]:
        return [finding for finding in report.findings if explain or finding.what not in _HIDDEN_KINDS]

    findings: Section[RunningReport, RunningFindingReport] = Section(
        key="findings",
        title="Running pods that differ from policies",
        rows=select_shown,
        max_rows=None if explain else MAX_ROWS,
        more=lambda hidden: Text(
            f"{format_count(hidden, 'more pod differs', 'more pods differ')} from policies: --details prints all of "
            "them",
            style=_GREY,
        ),
        columns=(
            Column("Pods of", _format_owner, value=lambda finding: f"{finding.namespace}/{finding.owner}"),
            number_column("×", lambda finding: finding.pods, "{}", rank=1),
            Column("Policy", lambda finding: finding.policy or "–"),
            Column("Why", _format_reason, min_width=20),
            Column("What differs", lambda finding: Text(_format_finding_changes(finding)), rank=2),
        ),
        name=lambda finding: finding.owner,
        frame=Frame.ROWS,
    )
    causes: Section[RunningReport, _CauseRow] = Section(
        key="findings",
        rows=lambda report: _group_by_cause(select_shown(report)),
        columns=(
            number_column("Pods", lambda row: row.pods),
            Column("Policy", lambda row: row.policy),
            Column("Why", lambda row: row.code),
            Column("Workloads", lambda row: join_first(row.workloads, MAX_NAMES), rank=1, min_width=20),
        ),
        after=_suggest_more,
    )
    return ReportView(
        title="trimtab admit --running",
        before=_describe_running if is_screen else no_paragraphs,
        sections=(causes, _TALLIES) if is_screen else (findings, _TALLIES),
        after=no_paragraphs if is_screen else _describe_running,
        notes=lambda report: report.notes,
    )


def _suggest_more(report: RunningReport) -> Iterator[Text]:
    yield Text("Each workload and what differs: --details; what a reason means: trimtab explain CODE", style=_GREY)


def _format_owner(finding: RunningFindingReport) -> Text:
    kind, _, name = finding.owner.partition("/")
    return Text.assemble((f"{kind} ", _GREY), name, (f"\nin {finding.namespace}", _GREY))


def _format_reason(finding: RunningFindingReport) -> Text:
    return Text.assemble(finding.reason.code, (f"\n{finding.reason.text}", _GREY))


def _describe_running(report: RunningReport) -> Iterator[Text]:
    if report.overhead.wrong is not None:
        yield Text(report.overhead.wrong.text, style="red")
    wrong = sum(finding.pods for finding in report.findings if finding.what == "unpatched")
    yield Text(
        f"{wrong} of {format_count(report.pods, 'running pod')} {'lacks' if wrong == 1 else 'lack'} changes that "
        "policies would make.",
        style="bold",
    )


def _format_finding_changes(finding: RunningFindingReport) -> str:
    rows = [
        f"{change.field}: {_format_value(change.before)} → {_format_value(change.after)}"
        for change in finding.changes[:6]
    ]
    return "\n".join([*rows, *(["…"] if len(finding.changes) > 6 else [])]) or "–"


def _format_value(value: object) -> str:
    return "none" if value is None else str(value)


def _tally_column(title: str, read: Callable[[TallyReport], int], rank: int = 0) -> Column[TallyReport]:
    return Column(title, lambda tally: str(read(tally) or "–"), value=read, align="right", rank=rank)


_TALLIES: Section[RunningReport, TallyReport] = Section(
    key="policies",
    title="Policies and running pods",
    rows=lambda report: report.policies,
    columns=(
        Column("Policy", lambda tally: tally.policy),
        Column("Mode", lambda tally: tally.mode, rank=1),
        _tally_column("Matched", lambda tally: tally.matched),
        _tally_column("Changed", lambda tally: tally.changed),
        _tally_column("Unpatched", lambda tally: tally.unpatched),
        _tally_column("Would", lambda tally: tally.would, 2),
        _tally_column("Skipped", lambda tally: tally.skipped, 3),
        _tally_column("Overruled", lambda tally: tally.overruled, 4),
    ),
    empty=None,
)
