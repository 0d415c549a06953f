"""The record that an order writes on a node: the value of `trimtab.dev/drain-order`, in the same patch as the cordon.

It is not signed, because a user's own login writes it, with nothing installed. So it is only read by people and by
`trimtab drain --resume` and `--release`, which show it first; no process acts on it. What is undone is a cordon whose
author the object itself names: the API server records in `metadata.managedFields` who set which field.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from trimtab.cluster.api.core import Taint
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotation, Moment, Word

ORDER_ANNOTATION = "trimtab.dev/drain-order"
ORDER_MANAGER = "trimtab-drain"
"""The field manager of the writes of an order."""
ORDER_TAINT = "trimtab.dev/drain-order-pending"
"""The key of the soft taint on nodes that an order could not begin; its value is the name of the order."""
MAX_TEXT = 500
"""The largest number of characters of a text in a record."""
MAX_ORDER_NODES = 500
"""The largest number of nodes of one order: each record names them all."""
VERSION = 1

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


class OrderRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be known of an order on one of its nodes."""

    order: Word
    """The name of the order, the same on all its nodes."""
    since: Moment
    by: Text = ""
    """The user who ordered it, as the API server knows them; empty if it does not say."""
    why: Text = ""
    """The reason that the user gave."""
    nodes: tuple[Annotated[str, msgspec.Meta(max_length=253)], ...] = ()
    """All nodes of the order."""
    was_cordoned: bool = False
    """Whether the node was cordoned before, so that the order did not cordon it."""
    drain: DrainAnnotation | None = None
    """The drain of this node, since it has begun."""
    v: int = VERSION

    @property
    def is_emptied(self) -> bool:
        """Whether the order has emptied the node."""
        return self.drain is not None and self.drain.emptied is not None


def encode_record(record: OrderRecord) -> str:
    """Returns the value of the annotation."""
    return msgspec.json.encode(record).decode()


def read_record(annotations: Mapping[str, str], node: str) -> OrderRecord | Unreadable | None:
    """Returns the record in the annotations of a node; None if there is none, and Unreadable if it cannot be decoded,
    which any client that may patch nodes can bring about."""
    text = annotations.get(ORDER_ANNOTATION)
    if text is None:
        return None
    where = f"annotation {ORDER_ANNOTATION} of node {node}"
    try:
        record = msgspec.json.decode(text, type=OrderRecord)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Unreadable(where, str(error))
    if record.v != VERSION:
        return Unreadable(where, f"the record has the version {record.v}, but this Trimtab reads version {VERSION}")
    return record


def order_taint(order: str) -> Taint:
    """Returns the soft taint of an order, which keeps successors off a node that the order could not begin."""
    return Taint(key=ORDER_TAINT, value=order, effect="PreferNoSchedule")


def order_of_taint(taint: Taint) -> str:
    """Returns the name of the order that wrote the taint; empty for any other taint."""
    return taint.value if taint.key == ORDER_TAINT else ""


def proves_cordon(managed_fields: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether the object itself proves that an order cordoned it: the manager of orders owns both the cordon
    and the record. A client that set the cordon later would own it instead.

    managed_fields: `metadata.managedFields` of the node."""
    for entry in managed_fields:
        fields = entry.get("fieldsV1")
        if entry.get("manager") != ORDER_MANAGER or not isinstance(fields, dict):
            continue
        if _has_path(fields, "f:spec", "f:unschedulable") and _has_path(
            fields, "f:metadata", "f:annotations", f"f:{ORDER_ANNOTATION}"
        ):
            return True
    return False


def owns_count(managed_fields: Sequence[Mapping[str, Any]], field: str) -> bool:
    """Returns whether the object itself proves that an order set its count: the manager of orders owns that field, and
    no other manager does.

    managed_fields: `metadata.managedFields` of a Deployment or a HorizontalPodAutoscaler. field: `replicas` or
    `minReplicas`."""
    owners = [
        entry.get("manager")
        for entry in managed_fields
        if isinstance(entry.get("fieldsV1"), dict) and _has_path(entry["fieldsV1"], "f:spec", f"f:{field}")
    ]
    return owners == [ORDER_MANAGER]


def _has_path(fields: Any, *path: str) -> bool:
    for key in path:
        if not isinstance(fields, dict) or key not in fields:
            return False
        fields = fields[key]
    return True


def is_own_cordon(node: NodeInfo, managed_fields: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether `--release` may uncordon the node: it is cordoned, nobody deletes it, and the object proves that
    an order cordoned it."""
    return node.is_cordoned and node.removal_taint is None and proves_cordon(managed_fields)
