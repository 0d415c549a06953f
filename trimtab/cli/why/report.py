"""The report of `trimtab why pod`, and its drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.admission.audit.original_pod import reconstruct_submitted
from trimtab.cli.admit.running_pods import RunningFindingReport
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.owner import Owner, owner_chain
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.pool_state import STATE_LABEL, HistoryEntry, PoolState, decode_state
from trimtab.policy.changed_annotation import read_claimed_annotation
from trimtab.policy.cluster_facts import ClusterFacts


class AppliedChangeReport(ReportPart, frozen=True, kw_only=True):
    """One field that the webhook set or removed when the pod was admitted."""

    policy: str
    """Empty for what Trimtab itself did, such as a RuntimeClass's overhead."""
    field: str
    value: str
    """`removed`, or the value that the field got."""


class PodDecisionReport(ReportPart, frozen=True, kw_only=True):
    """A decision of the compactor about the pod, or about an earlier pod of the same owner."""

    at: str
    pod: str
    what: str
    code: str
    why: str


class PodEventReport(ReportPart, frozen=True, kw_only=True):
    """An Event about the pod."""

    at: str
    reason: str
    source: str
    note: str


class WhyPodReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/why-pod-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "WhyPodReport"
    namespace: str
    name: str
    owners: list[str]
    """Kind/name, from the nearest controller to the topmost one."""
    created: str
    node: str
    changes: list[AppliedChangeReport] | None
    """By the pod's annotation, which is not verified here; null if the pod has none."""
    findings: list[RunningFindingReport]
    """Where the pod differs from what policies would set now, each with its reason; policies that leave it out
    included."""
    decisions: list[PodDecisionReport]
    events: list[PodEventReport]
    log: list[str]
    """Lines of the webhook's log about the pod."""
    notes: list[str]


@dataclass(frozen=True, slots=True)
class LiveTraces:
    """What only a live cluster has."""

    events: tuple[PodEventReport, ...] = ()
    log: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def build_why_report(
    pod: Pod, snapshot: Snapshot, facts: ClusterFacts, findings: Sequence[RunningFindingReport], traces: LiveTraces
) -> WhyPodReport:
    """Join what is known of the pod."""
    namespace = pod.metadata.namespace
    owners = find_owners(pod, facts)
    return WhyPodReport(
        namespace=namespace, name=pod.metadata.name, owners=list(map(str, owners)),
        created=pod.metadata.creation_timestamp or "", node=pod.spec.node_name or "",
        changes=list_applied_changes(pod), findings=list(findings),
        decisions=list(_find_decisions(pod, owners, snapshot)), events=list(traces.events), log=list(traces.log),
        notes=list(traces.notes),
    )  # fmt: skip


def find_owners(pod: Pod, facts: ClusterFacts) -> tuple[Owner, ...]:
    """Returns the pod's controllers, from the nearest to the topmost."""
    above = facts.owners.get
    return owner_chain(
        pod.metadata, pod.metadata.namespace, lambda namespace, owner: above((namespace, owner.kind, owner.name))
    )


def list_applied_changes(pod: Pod) -> list[AppliedChangeReport] | None:
    """Returns the changes that the pod's annotation names, or None without a readable one."""
    namespace = pod.metadata.namespace
    # The annotation is bound to the name that the pod was submitted with, which the API server may have extended.
    annotation = read_claimed_annotation(pod, namespace)
    if annotation is None:
        annotation = read_claimed_annotation(reconstruct_submitted(pod), namespace)
    if annotation is None:
        return None
    return [
        AppliedChangeReport(policy=policy, field=field, value=value)
        for policy, fields in annotation.by.items()
        for field, value in fields.items()
    ]


def _find_decisions(pod: Pod, owners: Sequence[Owner], snapshot: Snapshot) -> Iterator[PodDecisionReport]:
    """Yields the stored decisions about the pod and about earlier pods of its owners, the oldest first."""
    prefix, names = f"{pod.metadata.namespace}/", set(map(str, owners))
    for record in sorted(_stored_decisions(snapshot), key=lambda record: record.at):
        if record.pod == prefix + pod.metadata.name or (record.pod.startswith(prefix) and record.owner in names):
            yield PodDecisionReport(
                at=format_timestamp(record.at), pod=record.pod, what=record.what, code=record.code, why=record.why
            )


def _stored_decisions(snapshot: Snapshot) -> Iterator[HistoryEntry]:
    for shape in snapshot.objects_of(ConfigMap):
        if STATE_LABEL in (shape.metadata.labels or {}):
            state = decode_state(shape.metadata.name, shape.data)
            if isinstance(state, PoolState):
                yield from state.ring


def draw_why(console: Console, report: WhyPodReport) -> None:
    """Draw the pod's line of origin, then a table for each source that has something."""
    owners = " of ".join(report.owners) or "without a controller"
    node = f", on node {report.node}" if report.node else ", on no node yet"
    console.print(Text.assemble((f"Pod {report.namespace}/{report.name}", "bold"), f"  {owners}{node}"))
    console.print(Text(f"created {report.created}"))
    if report.changes is None:
        console.print("The pod has no annotation of Trimtab: the webhook did not change it.")
    else:
        draw_named_table(
            console, "Changed on admission, by the pod's annotation (not verified here)", ("policy", "field", "value"),
            [(change.policy or "–", change.field, change.value) for change in report.changes],
        )  # fmt: skip
    draw_named_table(
        console, "Now, by the policies in force", ("policy", "state", "reason", "why"),
        [(one.policy or "–", one.what, one.reason.code, one.reason.text) for one in report.findings],
    )  # fmt: skip
    draw_named_table(
        console, "Decisions of the compactor", ("at", "pod", "what", "reason", "why"),
        [(one.at, one.pod, one.what, one.code, one.why) for one in report.decisions],
    )  # fmt: skip
    draw_named_table(
        console, "Events", ("at", "reason", "from", "note"),
        [(one.at, one.reason, one.source, one.note) for one in report.events],
    )  # fmt: skip
    draw_named_table(console, "The webhook's log", ("line",), [(line,) for line in report.log])
    for note in report.notes:
        console.print(Text(note, style="bright_black"))


def draw_named_table(console: Console, title: str, names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Draw the rows under a title; nothing without rows."""
    if not rows:
        return
    table = Table(*names, title=title, title_justify="left", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
