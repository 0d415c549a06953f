"""The report of `trimtab admit` on one screen: the answer, a line for each pod, and a line for changes that are alike.

`--details` and `-o wide` have every field of every pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.text import Text

from trimtab.cli.reporting.columns import Column, Paragraph, ReportView, Section, no_paragraphs, number_column
from trimtab.cli.reports.admission import AdmitReport, ChangeReport, PodReport
from trimtab.cli.reports.admission_table import GREY, describe_totals, format_amount, view_admission
from trimtab.cluster.format_count import format_count, join_first

MAX_PODS_IN_FULL = 4
"""The largest number of pods that one screen shows with all their changes."""
MAX_CHANGES = 8
"""The largest number of lines with changes."""
MAX_REFUSED = 3
_NOT_APPLIED = "the mode of the policy is not `apply`, so a pod does not get this change"
MAX_NAMES = 3


def view_admission_on_screen(report: AdmitReport) -> ReportView[AdmitReport]:
    """Returns how this report is shown on one screen; a few pods are shown in full."""
    whole = view_admission(explain=False)
    if len(report.pods) <= MAX_PODS_IN_FULL:
        return whole
    changes: Section[AdmitReport, object] = Section(
        key="changes", rows=lambda report: (), columns=(), lines=_list_alike
    )
    return replace(whole, before=describe_totals, sections=(_PODS, changes), after=no_paragraphs)


def _is_touched(pod: PodReport) -> bool:
    return bool(pod.changes or pod.would or pod.refused is not None or pod.problem)


def _amount_column(title: str, side: str, resource: str, rank: int) -> Column[PodReport]:
    def cell(pod: PodReport) -> Text:
        if pod.refused is not None:
            return Text("refused", style="red") if (side, resource) == ("requests", "cpu") else Text("")
        return format_amount(pod, side, resource)

    return Column(title, cell, align="right", rank=rank, min_width=14)


_PODS: Section[AdmitReport, PodReport] = Section(
    key="pods",
    rows=lambda report: sorted(report.pods, key=lambda pod: not _is_touched(pod)),
    columns=(
        Column("Pods of", lambda pod: f"{pod.namespace}/{pod.name}"),
        Column("Kind", lambda pod: pod.kind, rank=6),
        number_column("×", lambda pod: pod.replicas, "{}", rank=5),
        _amount_column("CPU request", "requests", "cpu", 0),
        _amount_column("Memory request", "requests", "memory", 1),
        _amount_column("CPU limit", "limits", "cpu", 2),
        _amount_column("Memory limit", "limits", "memory", 3),
    ),
)


def _list_alike(report: AdmitReport) -> Iterator[Paragraph]:
    """Yields the refused pods, then a line for each policy and field, with the pods that it changes."""
    refused = [pod for pod in report.pods if pod.refused is not None]
    for pod in refused[:MAX_REFUSED]:
        assert pod.refused is not None
        yield Text(f"{pod.kind} {pod.namespace}/{pod.name} is refused: {pod.refused.message}", style="red")
    if refused[MAX_REFUSED:]:
        yield Text(f"… and {format_count(len(refused[MAX_REFUSED:]), 'more pod')} refused: --details", style=GREY)
    groups: dict[tuple[str, str, bool], dict[str, ChangeReport]] = {}
    for pod in report.pods:
        for would_change, change in [(False, one) for one in pod.changes] + [(True, one) for one in pod.would]:
            key = change.policy, change.field.rpartition("].")[2], would_change
            groups.setdefault(key, {})[f"{pod.namespace}/{pod.name}"] = change
    for (policy, field, would_change), pods in list(groups.items())[:MAX_CHANGES]:
        does = "would change" if would_change else "changes"
        first = next(iter(pods.values()))
        yield Text.assemble(
            (policy or "Trimtab", "bold"),
            f" {does} {field} of {join_first(list(pods), MAX_NAMES)} ({format_count(len(pods), 'pod')}): ",
            (_NOT_APPLIED if would_change else first.reason.text, GREY),
        )
    if len(groups) > MAX_CHANGES:
        yield Text(f"… and {format_count(len(groups) - MAX_CHANGES, 'more kind')} of changes", style=GREY)
    warnings = sum(bool(pod.warnings or pod.problem or pod.vpa is not None) for pod in report.pods)
    more = f"{format_count(warnings, 'pod has', 'pods have')} warnings. " if warnings else ""
    yield Text(f"{more}Each pod and each field: --details", style=GREY)
