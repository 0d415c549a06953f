"""What one run of an order has observed of its nodes, so that it cordons no node a second time.

The record on a node disappears when another user releases the node, and when the node is deleted and registers again.
Without this history, such a node would look like one that is not cordoned yet. Another run of `trimtab drain` does not
need it: it takes its nodes from the records. The compactor stores it (`order_entry`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster.node import NodeInfo
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.order.record import OrderRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderNodeHistory:
    """What was observed of one node of an order."""

    uid: str
    """The uid of the Node object when it was observed first."""
    had_record: bool = False
    """Whether the node has had a record of the order."""
    was_emptied: bool = False
    """Whether the record has said that the node is empty."""
    surging: DrainAnnotation | None = None
    """The drain of the node as it was observed last, if it has given a Deployment more pods."""
    was_skipped: bool = False
    """Whether the order has left the node out, because it could not be emptied when the order began."""


def extend_history(
    history: Mapping[str, OrderNodeHistory],
    names: Iterable[str],
    nodes: Iterable[NodeInfo],
    records: Mapping[str, OrderRecord],
) -> dict[str, OrderNodeHistory]:
    """Returns the history with what is observed now.

    names: the nodes of the order. records: node → its record of the order."""
    members, extended = frozenset(names), dict(history)
    for node in nodes:
        if node.name not in members:
            continue
        before = history.get(node.name) or OrderNodeHistory(uid=node.uid)
        record = records.get(node.name)
        extended[node.name] = OrderNodeHistory(
            uid=before.uid,
            had_record=before.had_record or record is not None,
            was_emptied=before.was_emptied or (record is not None and record.is_emptied),
            was_skipped=before.was_skipped,
            surging=record.drain if record is not None and record.drain and record.drain.surged else before.surging,
        )
    return extended
