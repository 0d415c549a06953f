"""Which decisions are sent as notifications, and as which bytes: for Slack, as JSON, or as CloudEvents.

Slack's incoming webhooks take `{"text": …}`, in which `&`, `<` and `>` are escaped, and so do Mattermost and
Rocket.Chat (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks). A CloudEvent is sent alone, in
the structured mode of its HTTP binding (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal

import msgspec

from trimtab.compaction.drain.pool_state import HistoryEntry

NotificationFormat = Literal["slack", "json", "cloudevents"]
TITLES = {
    "planned": "plan",
    "emptied": "node drained",
    "removed": "node removed",
    "released": "drain reverted",
    "abandoned": "drain abandoned",
    "closed": "pool closed",
    "unreadable": "state not readable",
    "not-authentic": "annotation not authentic",
    "left-surged": "workload left surged",
    "resize-reverted": "resize reverted",
    "resize-stopped": "resize stopped",
}
"""Decision → its title. Other decisions are steps of these, and are not sent: evictions, cordons, single resizes."""
MAX_LINES = 20
"""The largest number of decisions in one message; the rest is a number."""
MAX_TEXT = 300
"""The largest number of characters of a reason in a chat room."""


@dataclass(frozen=True, slots=True)
class Message:
    """The body of one request, and its media type."""

    body: bytes
    content_type: str


def is_notified(decision: HistoryEntry) -> bool:
    """Returns whether the decision is sent.

    Of a rehearsal only the plan is: what the compactor wants. Its other decisions say what did not happen.
    """
    return decision.what in TITLES and (not decision.rehearsed or decision.what == "planned")


def render_messages(
    decisions: Sequence[HistoryEntry], form: NotificationFormat, source: str, left_out: int
) -> list[Message]:
    """Returns the messages for these decisions, the oldest decision first.

    `source` names the cluster. `left_out` is the number of earlier decisions that were not sent, because there were too
    many. As CloudEvents each decision is a message; otherwise all are one.
    """
    shown = decisions[-MAX_LINES:]
    left_out += len(decisions) - len(shown)
    if form == "cloudevents":
        return [_render_event(decision, source) for decision in shown]
    if form == "json":
        body = {"source": source, "decisions": [_as_data(decision) for decision in shown], "leftOut": left_out}
        return [_as_message(body, "application/json")]
    lines = [f"*Trimtab, {_escape(source)}*", *map(_render_line, shown)]
    if left_out:
        lines.append(f"{left_out} more decisions: `trimtab compactor history`")
    return [_as_message({"text": "\n".join(lines)}, "application/json")]


def _render_line(decision: HistoryEntry) -> str:
    title = "would drain" if decision.rehearsed else TITLES[decision.what]
    place = ", ".join(part for part in (decision.node, f"pool {decision.pool}" if decision.pool else "") if part)
    reason = decision.why if len(decision.why) <= MAX_TEXT else decision.why[: MAX_TEXT - 1] + "…"
    return _escape(f"• {title}: {place}: {reason}")


def _escape(text: str) -> str:
    # Without these three, no text of a cluster can mention a channel or become a link.
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(escaped.split())


def _as_data(decision: HistoryEntry) -> dict[str, Any]:
    """Returns the fields of the decision that have a value."""
    data: dict[str, Any] = {
        "time": _format_time(decision.at),
        "decision": decision.what,
        "pool": decision.pool,
        "node": decision.node,
        "code": decision.code,
        "reason": decision.why,
        "drain": decision.drain,
        "rehearsed": decision.rehearsed,
    }
    return {name: value for name, value in data.items() if value}


def _render_event(decision: HistoryEntry, source: str) -> Message:
    identity = "\n".join((str(decision.at), decision.what, decision.pool, decision.node, decision.drain, decision.why))
    event = {
        "specversion": "1.0",
        # The same decision has the same id, so that a receiver can leave out what it gets again after a retry.
        "id": sha256(identity.encode()).hexdigest()[:32],
        "source": f"/trimtab/compactor/{source}",
        "type": f"dev.trimtab.compactor.{decision.what}",
        "time": _format_time(decision.at),
        "datacontenttype": "application/json",
        "data": _as_data(decision),
    }
    if subject := decision.node or decision.pool:
        event["subject"] = subject
    return _as_message(event, "application/cloudevents+json; charset=utf-8")


def _as_message(body: dict[str, Any], content_type: str) -> Message:
    return Message(msgspec.json.encode(body), content_type)


def _format_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
