"""What is known of a node that does not exist any more: by the compactor's stored decisions about it."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.cli.why.node_report import NodeCordonReport, WhyNodeReport, list_node_decisions, report_decision
from trimtab.cli.why.report import PodEventReport
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.inputs.compactor_state import CompactorState

_DRAIN_DECISIONS = ("started", "emptied", "removed", "abandoned")
_DELETION_NOTE = "Trimtab never deletes a node: the cluster autoscaler, or another client, deleted it."
_LIMIT_NOTE = "The compactor stores a limited number of decisions, so older ones may be missing."


def build_gone_node_report(
    name: str, state: CompactorState, events: Sequence[PodEventReport], notes: Sequence[str]
) -> WhyNodeReport | None:
    """Returns a report of what is known of a node that does not exist, or None if nothing is known."""
    records = list_node_decisions(name, state)
    if not records and not events:
        return None
    pools = list(dict.fromkeys(record.pool for record in records))
    return WhyNodeReport(
        name=name,
        exists=False,
        pools=pools,
        cordoned=False,
        cordon=_describe_end(records),
        plan="",
        chain=[],
        decisions=list(map(report_decision, records)),
        events=list(events),
        notes=[_DELETION_NOTE, _LIMIT_NOTE, *notes],
    )


def _describe_end(records: Sequence[HistoryEntry]) -> NodeCordonReport:
    """Returns whether and when the compactor drained the node.

    `records`: the compactor's decisions about the node, the oldest first."""
    acted = [record for record in records if not record.rehearsed]
    ending = next((record for record in reversed(acted) if record.what in _DRAIN_DECISIONS), None)
    if ending is None:
        text = "no stored decision says that Trimtab's compactor drained this node"
        return NodeCordonReport(by="none", text=text, since="", undo=[])
    start = next((record for record in acted if record.what == "started" and record.drain == ending.drain), None)
    began = f", begun at {format_timestamp(start.at)}" if start is not None else ""
    drain = f"pool {ending.pool} (drain {ending.drain}{began})" if ending.drain else f"pool {ending.pool}{began}"
    time = format_timestamp(ending.at)
    sentences = {
        "removed": f"Trimtab's compactor drained this node for {drain}, and the empty node was gone at {time}",
        "emptied": f"Trimtab's compactor drained this node for {drain}, and at {time} the node had no pods to evict",
        "abandoned": f"Trimtab's compactor began to drain this node for {drain}, and ended the drain at {time}: "
        f"{ending.why}",
        "started": f"Trimtab's compactor began to drain this node for pool {ending.pool} at {time}",
    }
    return NodeCordonReport(by="trimtab", text=sentences[ending.what], since=time, undo=[])
