"""The report of `trimtab why node`, and its drawing: who cordoned the node, since when, and how to undo it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from rich.text import Text

from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import ReportView
from trimtab.cli.reports.drain_waits import list_drain_waits
from trimtab.cli.why.report import SHARED_SECTIONS, PodDecisionReport, PodEventReport, list_chain
from trimtab.cluster.api.core import Node
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import CANDIDATE_TAINT, NodeInfo, node_from_api
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pool import KEEP_ANNOTATION, PoolIndex, pool_name
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.annotation import DrainAnnotation, NotAuthentic, read_annotation
from trimtab.compaction.drain.order_entry import ORDERS
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.order.record import read_record
from trimtab.compactor.soft_taint import LEAVING
from trimtab.inputs.compactor_state import CompactorState
from trimtab.inputs.order_records import describe_record


class NodeCordonReport(ReportPart, frozen=True, kw_only=True):
    """Who made the node unschedulable, since when, and how to undo that."""

    by: str
    """The origin: trimtab, autoscaler or other; `none` if pods can be scheduled on the node."""
    text: str
    """Who cordoned the node, since when, and how to undo it, as sentences."""
    since: str
    """When the node became unschedulable, as RFC 3339; empty if that is not known."""
    undo: list[str]
    """What makes pods schedulable on the node again, as commands or sentences."""


class WhyNodeReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab why node`. Published as deploy/schemas/why-node-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab why node NAME"
    api_version: str = API_VERSION
    kind: str = "WhyNodeReport"
    name: str
    """The name of the node."""
    exists: bool = True
    """Whether the node exists. If it does not, `cordon` says whether the compactor drained it, and `pools` are the
    pools of the decisions about it."""
    pools: list[str]
    """The pools of the node."""
    cordoned: bool
    """Whether the node takes no new pods."""
    cordon: NodeCordonReport
    """Which client cordoned the node, since when, and how to undo it."""
    plan: str
    """The node's position in the last plan of its pool, as text; empty if no plan contains the node."""
    chain: list[str]
    """The reasons of a plan of the cluster for draining the node or leaving it, as of `trimtab plan --explain node`.

    Empty without --cluster if the node is being drained."""
    decisions: list[PodDecisionReport]
    """The compactor's decisions about the node and its pods."""
    events: list[PodEventReport]
    """The Events about the node."""
    notes: list[str]
    """What could not be read, one sentence each."""


@dataclass(frozen=True, slots=True)
class FieldWriter:
    """The client (field manager) that was the last to write a field, according to the object's managedFields."""

    manager: str
    time: str


def find_cordon_writer(document: Mapping[str, Any]) -> FieldWriter | None:
    """Returns the client that set `spec.unschedulable` of the node, or None if the node's managedFields do not show
    it."""
    entries = (document.get("metadata") or {}).get("managedFields") or ()
    for entry in entries:
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}):
            return FieldWriter(str(entry.get("manager", "")), str(entry.get("time") or ""))
    return None


def describe_cordon(
    node: NodeInfo, document: Mapping[str, Any], pods_left: int | None, waits_for: str = "", order: str = ""
) -> NodeCordonReport:
    """Returns what made the node unschedulable.

    document: the node as the API server returns it. pods_left: the number of pods of the drain that still exist; None
    if it is not known. waits_for: the budgets that allow no eviction of these pods, as text. order: the name of the
    DrainOrder of the annotation, according to the state; empty if the state does not know it.
    """
    annotation = read_annotation(node, None)
    claim = annotation.claim if isinstance(annotation, NotAuthentic) else annotation
    release = f"trimtab compactor release --yes {node.name}"
    if node.removal_taint is not None:
        text = f"an autoscaler is deleting this node (taint {node.removal_taint.key})"
        drained = ", after Trimtab's compactor had drained the node" if claim is not None else ""
        return NodeCordonReport(by="autoscaler", text=text + drained, since="", undo=[])
    if isinstance(claim, DrainAnnotation) and claim.order is not None:
        name = order or "NAME"
        return NodeCordonReport(
            by="trimtab",
            text=_describe_ordered_drain(node, claim, order, pods_left, waits_for),
            since=format_timestamp(claim.since),
            undo=[
                f"kubectl delete drainorder {name} -n {claim.home or 'NAMESPACE'}  (ends the order; its nodes are "
                "uncordoned)",
                f"{release}  (uncordons the node; the order does not cordon it again)",
            ],
        )
    if isinstance(claim, DrainAnnotation):
        return NodeCordonReport(
            by="trimtab",
            text=_describe_drain(node, claim, pods_left, waits_for),
            since=format_timestamp(claim.since),
            undo=[
                f"{release}  (uncordons the node; its drain ends)",
                "trimtab compactor pause  (ends all drains)",
                f"kubectl annotate node {node.name} {KEEP_ANNOTATION}=true  (prevents further drains of the node)",
            ],
        )
    if isinstance(claim, Unreadable):
        return NodeCordonReport(
            by="trimtab",
            text=f"the node has a drain annotation that cannot be read: {claim.problem}",
            since="",
            undo=[release],
        )
    if not node.is_cordoned:
        return NodeCordonReport(by="none", text="no client cordoned this node", since="", undo=[])
    writer, record = find_cordon_writer(document), read_record(node.annotations, node.name)
    text = "a client other than Trimtab's compactor cordoned this node" + (
        f": the field manager {writer.manager}" if writer is not None else "; the node does not show which client"
    )
    return NodeCordonReport(
        by="other",
        text=f"{text}; according to its record: {describe_record(record)}" if record is not None else text,
        since=writer.time if writer is not None else "",
        undo=[f"trimtab drain --release --yes {node.name}" if record is not None else f"kubectl uncordon {node.name}"],
    )


def _describe_ordered_drain(
    node: NodeInfo, claim: DrainAnnotation, order: str, pods_left: int | None, waits_for: str
) -> str:
    assert claim.order is not None
    owner = f"Trimtab's compactor{f' of namespace {claim.home}' if claim.home else ''}"
    about = f"DrainOrder {order}" if order else f"a DrainOrder that its state does not know (uid {claim.order.order})"
    if claim.order.waits:
        progress = "; the node waits for its wave"
    elif claim.emptied is not None:
        progress = (
            f"; the node has had no pods to evict since {format_timestamp(claim.emptied)}, and stays cordoned until "
            "the order is deleted"
        )
    else:
        progress = f"; {pods_left} of {format_count(len(claim.moves), 'pod')} are left" if pods_left is not None else ""
        progress += f"; {waits_for}" if waits_for else ""
    if claim.order.was_cordoned:
        progress += "; another client had cordoned the node before"
    state = "holds this cordoned node" if node.is_cordoned else "held this node, which another client has uncordoned,"
    return f"{owner} {state} for {about}{progress}"


def _describe_drain(node: NodeInfo, claim: DrainAnnotation, pods_left: int | None, waits_for: str) -> str:
    owner = f"Trimtab's compactor{f' of namespace {claim.home}' if claim.home else ''}"
    if claim.emptied is not None:
        progress = (
            f"; the node has had no pods to evict since {format_timestamp(claim.emptied)} and waits for the "
            "cluster autoscaler"
        )
    else:
        progress = f"; {pods_left} of {format_count(len(claim.moves), 'pod')} are left" if pods_left is not None else ""
        progress += f"; {waits_for}" if waits_for else ""
    state = (
        "cordoned this node to drain it"
        if node.is_cordoned
        else "drained this node, and another client has uncordoned it since,"
    )
    return f"{owner} {state} for pool {claim.pool} (drain {claim.drain}){progress}"


def build_why_node_report(
    document: Mapping[str, Any],
    state: CompactorState,
    events: Sequence[PodEventReport],
    notes: Sequence[str],
    chain: Sequence[str] = (),
) -> WhyNodeReport:
    """Returns the report of all that is known about the node.

    document: the node as the API server returns it. chain: what a plan says of it."""
    node = node_from_api(msgspec.convert(document, Node))
    claims = {item.name: claim for item, claim in state.list_annotations()}
    claim = claims.get(node.name)
    pods_left = state.count_remaining_pods(claim) if isinstance(claim, DrainAnnotation) else None
    waits_for = list_drain_waits(state).get(node.name, "")
    orders = state.pool_states.get(ORDERS, PoolState()).orders
    mark = claim.order if isinstance(claim, DrainAnnotation) else None
    entry = orders.get(mark.order) if mark is not None else None
    pools = [pool.name for pool in PoolIndex(state.pools.pools).pools_of(node)]
    return WhyNodeReport(
        name=node.name,
        pools=pools,
        cordoned=node.is_cordoned,
        cordon=describe_cordon(node, document, pods_left, waits_for, entry.name if entry is not None else ""),
        plan=_describe_plan(node.name, state),
        chain=list(chain),
        decisions=list(map(report_decision, list_node_decisions(node.name, state))),
        events=list(events),
        notes=[*_list_notes(node, pools, has_pools=bool(state.pools.pools)), *notes],
    )


def _describe_plan(name: str, state: CompactorState) -> str:
    for pool, memory in sorted(state.pool_states.items()):
        if name in memory.plan:
            return f"number {memory.plan.index(name) + 1} of {len(memory.plan)} in the last plan of pool {pool}"
    return ""


def _list_notes(node: NodeInfo, pools: Sequence[str], *, has_pools: bool) -> Iterable[str]:
    keys = {taint.key for taint in node.taints}
    if LEAVING in keys:
        yield (
            f"Trimtab's soft taint {LEAVING} is on this node: the scheduler avoids the node, because a plan "
            "drains it soon. The taint rejects no pod."
        )
    if CANDIDATE_TAINT in keys:
        yield (
            f"The cluster autoscaler's taint {CANDIDATE_TAINT} is on this node: the autoscaler does not need the node."
        )
    if (sign := node.nature.sign_of(NodeKind.SERVERLESS)) is not None:
        yield f"The node is no machine: {sign.platform} ({sign.evidence}). The compactor never drains such a node."
    elif not has_pools:
        yield (
            "The cluster has no pool of Trimtab, so no compactor drains the node. A plan assumes the preset balanced "
            "for its nodes."
        )
    elif not pools:
        label = pool_name(node)
        named = (
            f"the node's label names the pool {label}, which has no ConfigMap"
            if label
            else "no label of the node names a pool"
        )
        yield f"The node is in no pool of Trimtab ({named}), so the compactor never drains it."


def list_node_decisions(name: str, state: CompactorState) -> list[HistoryEntry]:
    """Returns the stored decisions about the node and its pods, the oldest first."""
    entries = (entry for memory in state.pool_states.values() for entry in memory.ring if entry.node == name)
    return sorted(entries, key=lambda entry: entry.at)


def report_decision(entry: HistoryEntry) -> PodDecisionReport:
    """Returns the report of one stored decision."""
    what = f"{entry.what} (rehearsed)" if entry.rehearsed else entry.what
    return PodDecisionReport(at=format_timestamp(entry.at), pod=entry.pod, what=what, code=entry.code, why=entry.why)


def _describe_node(report: WhyNodeReport) -> Iterator[Text]:
    """Yields who cordoned the node and how to undo it, and its position in the plan."""
    pools = f"pool {' and '.join(report.pools)}" if report.pools else "no pool"
    state = "cordoned" if report.cordoned else "open for pods"
    state = state if report.exists else "does not exist any more"
    # Without pools of its own, a plan assumes pools: its reasons say which.
    place = f"in {pools}, " if report.pools or (report.exists and not report.chain) else ""
    yield Text.assemble((f"Node {report.name}", "bold"), f"  {place}{state}")
    is_since = report.cordon.since and report.exists
    since = f", since {report.cordon.since}" if is_since else ""
    text = report.cordon.text + since
    yield Text(f"{text[0].upper()}{text[1:]}.")
    if report.cordon.undo:
        yield Text("To undo the cordon:")
        yield from (Text(f"  {command}") for command in report.cordon.undo)
    if report.plan:
        yield Text(f"In the plan, the node is {report.plan}.")


NODE_VIEW: ReportView[WhyNodeReport] = ReportView(
    title="trimtab why node",
    before=_describe_node,
    sections=(list_chain("node"), *SHARED_SECTIONS),
    notes=lambda report: report.notes,
)
"""Who cordoned the node and how to undo it, then its position in the plan, the decisions about it, and its Events."""
