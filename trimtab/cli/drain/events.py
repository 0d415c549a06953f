"""What `trimtab drain` prints while it works: a line for each event, or with -o json a document in one line."""

from typing import ClassVar

import msgspec

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.print_text import print_text
from trimtab.cluster.control_characters import escape_in_json, on_one_line
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compactor.order.order_steps import OrderEvent


class DrainEvent(ReportPart, frozen=True, kw_only=True):
    """One event of a drain: each is a line. Published as deploy/schemas/drain-event.schema.json."""

    printed_by: ClassVar[str] = "trimtab drain"
    api_version: str = API_VERSION
    kind: str = "DrainEvent"
    at: str
    """When it happened, as RFC 3339."""
    order: str
    """The identifier of the order, which the records of its nodes have as well."""
    event: str
    """One of: planned, cordoned, begun, evicted, refused, waiting, emptied, skipped, failed, left, retried, stopped,
    ended, done; with --release: recorded, released."""
    node: str
    """The node that the event is about; empty if it is about the whole order."""
    pod: str
    """The pod that the event is about, as namespace/name; empty if it is about none."""
    text: str
    """The event as a sentence."""
    reason: ReasonReport | None
    """Null if there is no code of a reason."""


def print_event(event: OrderEvent, order: str, *, as_json: bool) -> None:
    """Print the event."""
    text = event.reason.sentence if event.reason is not None else event.text
    if not as_json:
        about = event.node or "order"
        print_text(on_one_line(f"{format_timestamp(event.at)}  {about}  {event.what}  {text}"))
        return
    document = DrainEvent(
        at=format_timestamp(event.at),
        order=order,
        event=event.what,
        node=event.node,
        pod=event.pod,
        text=text,
        reason=report_reason(event.reason) if event.reason is not None else None,
    )
    # A line at once, also in a pipe.
    print_text(escape_in_json(msgspec.json.encode(document).decode()))
