"""The report of `trimtab why pod`, and its drawing on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.text import Text

from trimtab.admission.audit.original_pod import reconstruct_submitted
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, Frame, Paragraph, ReportView, Section, number_column
from trimtab.cli.reports.running_pods import RunningFindingReport
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.owner import OwnerKey, owner_chain
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.pool_state import STATE_LABEL, HistoryEntry, PoolState, decode_state
from trimtab.diagnosis.gone_pod import find_owner, find_siblings
from trimtab.diagnosis.original_values import Decided, explain_change
from trimtab.diagnosis.pending_pod import explain_pending
from trimtab.policy.changed_annotation import read_claimed_annotation
from trimtab.policy.cluster_facts import ClusterFacts


class AppliedChangeReport(ReportPart, frozen=True, kw_only=True):
    """One field that the webhook set or removed when the pod was admitted."""

    policy: str
    """The policy that made the change; empty for changes of Trimtab itself, such as the overhead of a RuntimeClass."""
    field: str
    """The path of the field, such as containers[app].requests.cpu."""
    before: str | None
    """The value that the author wrote, by the template of the pod's owner; `nothing` if the template has no value.

    Null if the value is not known."""
    value: str
    """`removed`, or the new value of the field."""
    why: str
    """The reason why the policy would make the same change now, or what has changed since the pod was admitted."""


class PodDecisionReport(ReportPart, frozen=True, kw_only=True):
    """A decision of the compactor about the pod, or about an earlier pod of the same owner."""

    at: str
    """When the decision was made, as RFC 3339."""
    pod: str
    """The pod, as namespace/name."""
    what: str
    """What was decided, in one word."""
    code: str
    """The code of the reason for the decision."""
    why: str
    """The reason as a sentence with its values."""


class PodEventReport(ReportPart, frozen=True, kw_only=True):
    """All Events about the object with the same reason, source and container."""

    first: str
    """When the first of these Events happened."""
    at: str
    """When the last of these Events happened."""
    count: int
    """How often it happened."""
    reason: str
    """The reason of the Events."""
    source: str
    """The component that reported them."""
    note: str
    """The message of the last of these Events."""


class WhyPodReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab why pod`. Published as deploy/schemas/why-pod-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab why pod NAMESPACE/NAME"
    api_version: str = API_VERSION
    kind: str = "WhyPodReport"
    namespace: str
    """The namespace of the pod."""
    name: str
    """The name of the pod."""
    exists: bool
    """Whether the pod exists. If it does not, `changes` are those of another pod of its owner."""
    owners: list[str]
    """The pod's owners as Kind/name, from the nearest controller to the topmost one."""
    created: str
    """When the pod was created, as RFC 3339; empty if that is not known."""
    node: str
    """The node of the pod; empty if it has none."""
    pending: str
    """Whether and how Trimtab is a cause of the pod's waiting if the pod is Pending; empty for any other pod."""
    changes: list[AppliedChangeReport] | None
    """The changes at admission, by the pod's annotation, whose signature is not verified here; null if the pod has no
    such annotation."""
    findings: list[RunningFindingReport]
    """The differences between the pod and what policies would set now, each with its reason.

    Policies that do not select the pod are included."""
    chain: list[str]
    """The reasons of a plan of the cluster for moving the pod or leaving it, as of `trimtab plan --explain pod`.

    Empty without --cluster."""
    decisions: list[PodDecisionReport]
    """The compactor's decisions about the pod and its predecessors."""
    events: list[PodEventReport]
    """The Events about the pod."""
    log: list[str]
    """Lines of the webhook's log about the pod."""
    notes: list[str]
    """What could not be read, one sentence each."""


@dataclass(frozen=True, slots=True)
class LiveTraces:
    """The Events and log lines about a pod, which only a live cluster has."""

    events: tuple[PodEventReport, ...] = ()
    log: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NO_TRACES = LiveTraces(notes=("A snapshot contains neither Events nor the webhook's log.",))


def build_why_report(
    pod: Pod,
    snapshot: Snapshot,
    facts: ClusterFacts,
    findings: Sequence[RunningFindingReport],
    traces: LiveTraces,
    decided: Decided | None = None,
    chain: Sequence[str] = (),
) -> WhyPodReport:
    """Returns a report of what is known of the pod.

    `decided`: the changes that the policies would make now to the owner's next pod; None if they are not known.
    `chain`: what a plan says of the pod."""
    namespace = pod.metadata.namespace
    owners = find_owners(pod, facts)
    changes = list_applied_changes(pod, decided)
    changed_fields = None if changes is None else [change.field for change in changes]
    return WhyPodReport(
        namespace=namespace,
        name=pod.metadata.name,
        exists=True,
        owners=list(map(str, owners)),
        created=pod.metadata.creation_timestamp or "",
        node=pod.spec.node_name or "",
        pending=explain_pending(pod, changed_fields, owners, list_states(snapshot)),
        changes=changes,
        findings=list(findings),
        chain=list(chain),
        decisions=list(_find_decisions(namespace, pod.metadata.name, owners, snapshot)),
        events=list(traces.events),
        log=list(traces.log),
        notes=list(traces.notes),
    )


def build_gone_report(
    namespace: str, name: str, snapshot: Snapshot, decided: Decided | None, traces: LiveTraces
) -> WhyPodReport | None:
    """Returns a report of what is known of a pod that does not exist, or None if nothing is known."""
    stored = sorted(list_stored_decisions(snapshot), key=lambda record: record.at)
    owner = find_owner(namespace, name, snapshot, stored)
    owners = (owner,) if owner is not None else ()
    decisions = list(_find_decisions(namespace, name, owners, snapshot))
    own = [record for record in stored if record.pod == f"{namespace}/{name}"]
    if owner is None and not (decisions or traces.events or traces.log):
        return None
    siblings = find_siblings(namespace, owner, snapshot) if owner is not None else []
    notes = [
        "The pod does not exist any more, and its annotation with the changes is gone, so Trimtab does not know "
        "for certain what was changed in the pod."
    ]
    if siblings:
        notes.append(f"The changes that are shown are those of {siblings[0].metadata.name}, another pod of {owner}.")
    elif owner is not None:
        notes.append(f"No other pod of {owner} exists.")
    if not own:
        notes.append(
            "No stored decision of the compactor is about this pod, so another client or its controller deleted it."
        )
    if not traces.events:
        notes.append("No Event about this pod is left; an API server keeps Events for an hour by default.")
    return WhyPodReport(
        namespace=namespace,
        name=name,
        exists=False,
        owners=list(map(str, owners)),
        created="",
        node=next((record.node for record in reversed(own) if record.node), ""),
        pending="",
        changes=list_applied_changes(siblings[0], decided) if siblings else None,
        findings=[],
        chain=[],
        decisions=decisions,
        events=list(traces.events),
        log=list(traces.log),
        notes=[*notes, *traces.notes],
    )


def find_owners(pod: Pod, facts: ClusterFacts) -> tuple[OwnerKey, ...]:
    """Returns the pod's controllers, from the nearest to the topmost."""
    return owner_chain(pod.metadata, pod.metadata.namespace, facts.owners.get)


def list_applied_changes(pod: Pod, decided: Decided | None = None) -> list[AppliedChangeReport] | None:
    """Returns the changes that the pod's annotation names, or None if there is no readable annotation."""
    namespace = pod.metadata.namespace
    # The annotation is bound to the name that the pod was submitted with, which the API server may have extended.
    annotation = read_claimed_annotation(pod, namespace)
    if annotation is None:
        annotation = read_claimed_annotation(reconstruct_submitted(pod), namespace)
    if annotation is None:
        return None
    return [
        AppliedChangeReport(policy=policy, field=field, before=before, value=value, why=why)
        for policy, fields in annotation.by.items()
        for field, value in fields.items()
        for before, why in [explain_change(policy, field, value, decided)]
    ]


def _find_decisions(
    namespace: str, name: str, owners: Sequence[OwnerKey], snapshot: Snapshot
) -> Iterator[PodDecisionReport]:
    """Yields the stored decisions about the pod and about earlier pods of its owners, the oldest first."""
    prefix, names = f"{namespace}/", set(map(str, owners))
    for record in sorted(list_stored_decisions(snapshot), key=lambda record: record.at):
        if record.pod == prefix + name or (record.pod.startswith(prefix) and record.owner in names):
            yield PodDecisionReport(
                at=format_timestamp(record.at), pod=record.pod, what=record.what, code=record.code, why=record.why
            )


def list_stored_decisions(snapshot: Snapshot) -> Iterator[HistoryEntry]:
    """Yields all decisions that the states of pools hold."""
    for state in list_states(snapshot):
        yield from state.ring


def list_states(snapshot: Snapshot) -> Iterator[PoolState]:
    """Yields the state of each pool that can be read."""
    for shape in snapshot.objects_of(ConfigMap):
        if STATE_LABEL in (shape.metadata.labels or {}):
            state = decode_state(shape.metadata.name, shape.data)
            if isinstance(state, PoolState):
                yield state


def _describe_pod(report: WhyPodReport) -> Iterator[Paragraph]:
    """Yields the origin of the pod, and why it is as it is."""
    owners = " of ".join(report.owners) or "without a controller"
    node = f", on node {report.node}" if report.node else ", on no node yet"
    yield Text.assemble((f"Pod {report.namespace}/{report.name}", "bold"), f"  {owners}{node}")
    yield Text(f"created {report.created}" if report.exists else "The pod does not exist any more.")
    if report.pending:
        yield Text(report.pending, style="bold")
    elif report.changes is None and report.exists:
        yield "The pod has no annotation of Trimtab, so the webhook did not change it."


def _title_changes(report: WhyPodReport) -> str:
    whose = "the pod's annotation" if report.exists else "the annotation of another pod of its owner"
    return f"Changes on admission, according to {whose} (its signature is not verified here)"


_CHANGES: Section[WhyPodReport, AppliedChangeReport] = Section(
    key="changes",
    title=_title_changes,
    rows=lambda report: report.changes or (),
    columns=(
        Column("policy", lambda change: change.policy or "–"),
        Column("field", lambda change: change.field),
        Column("change", lambda change: f"{change.before or '?'} → {change.value}"),
        Column("because", lambda change: change.why, rank=1, is_below=True, min_width=20),
    ),
    name=lambda change: f"podpolicy/{change.policy}",
    named=lambda report: [change for change in report.changes or () if change.policy],
    frame=Frame.NONE,
)
_POLICIES: Section[WhyPodReport, RunningFindingReport] = Section(
    key="policies",
    title="The pod and the policies",
    rows=lambda report: report.findings,
    columns=(
        Column("policy", lambda finding: finding.policy or "–"),
        Column("state", lambda finding: finding.what),
        Column("reason", lambda finding: finding.reason.code),
        Column("why", lambda finding: finding.reason.text, rank=1, is_below=True, min_width=20),
    ),
    name=lambda finding: f"podpolicy/{finding.policy}",
    named=lambda report: [finding for finding in report.findings if finding.policy],
    frame=Frame.NONE,
)
_DECISIONS: Section[Any, PodDecisionReport] = Section(
    is_log=True,
    key="decisions",
    title="Decisions of the compactor",
    rows=lambda report: report.decisions,
    columns=(
        Column("at", lambda decision: decision.at),
        Column("pod", lambda decision: decision.pod or "–", rank=3),
        Column("what", lambda decision: decision.what),
        Column("reason", lambda decision: decision.code, rank=2),
        Column("why", lambda decision: decision.why, rank=1, is_below=True, min_width=20),
    ),
    name=lambda decision: f"pod/{decision.pod.rpartition('/')[2]}",
    named=lambda report: [decision for decision in report.decisions if decision.pod],
    frame=Frame.NONE,
)
_EVENTS: Section[Any, PodEventReport] = Section(
    is_log=True,
    key="events",
    title="Events",
    rows=lambda report: report.events,
    columns=(
        Column("first", lambda event: "" if event.first == event.at else event.first, rank=4),
        Column("last", lambda event: event.at),
        number_column("×", lambda event: event.count, "{}", align="left", rank=3),
        Column("reason", lambda event: event.reason),
        Column("from", lambda event: event.source, rank=2),
        Column("note", lambda event: event.note, rank=1, is_below=True, min_width=20),
    ),
    frame=Frame.NONE,
)
_LOG: Section[WhyPodReport, str] = Section(
    is_log=True,
    key="log",
    title="The webhook's log",
    rows=lambda report: report.log,
    columns=(Column("line", lambda line: line),),
    frame=Frame.NONE,
)


def list_chain(kind: str) -> Section[Any, str]:
    """Returns the section with what a plan says of a node or a pod."""
    return Section(
        key="plan",
        title=f"What a plan of this cluster says of the {kind}",
        rows=lambda report: report.chain,
        columns=(Column("reason", lambda reason: reason),),
        frame=Frame.GRID,
    )


SHARED_SECTIONS: tuple[Section[Any, Any], ...] = (_DECISIONS, _EVENTS)
"""The sections that pods and nodes have."""
POD_VIEW: ReportView[WhyPodReport] = ReportView(
    title="trimtab why pod",
    before=_describe_pod,
    sections=(_CHANGES, _POLICIES, list_chain("pod"), *SHARED_SECTIONS, _LOG),
    notes=lambda report: report.notes,
)
"""A line about the pod's origin, then a table for each source that has something to show."""
