"""What the status of a DrainOrder says. Its size has a bound, whatever the cluster has."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.drain.order_entry import OrderEntry
from trimtab.compaction.order.order_object import (
    NodePlan,
    NodeRemark,
    OrderCondition,
    OrderObject,
    OrderStatus,
    Phase,
)
from trimtab.compaction.order.order_plan import OrderPlan
from trimtab.compaction.order.order_round import OrderPhase, OrderRound

MAX_PLAN, MAX_REMARKS, MAX_OVERRIDES = 50, 20, 20
MAX_NODE_TEXT, MAX_MESSAGE = 300, 1000


def waiting_status(order: OrderObject, reason: Reason, now: Seconds) -> OrderStatus:
    """Returns the status of an order that is not accepted yet."""
    return _with_conditions(order, Phase.WAITING, reason.code.name, reason.sentence, OrderStatus(), now)


def refused_status(order: OrderObject, reason: Reason, now: Seconds) -> OrderStatus:
    """Returns the status of an order that will not be begun."""
    return _with_conditions(order, Phase.REFUSED, reason.code.name, reason.sentence, OrderStatus(), now)


def progress_status(
    order: OrderObject,
    entry: OrderEntry,
    round_: OrderRound,
    plan: OrderPlan | None,
    hold: Reason | None,
    overrides: Iterable[str],
    now: Seconds,
) -> OrderStatus:
    """Returns the status of an order that was accepted.

    plan: the plan that was made last; None if this leader has made none. hold: why the order waits although it has not
    ended."""
    phases = round_.phases
    done = [node for node, phase in phases.items() if phase in (OrderPhase.EMPTY, OrderPhase.LEFT)]
    status = OrderStatus(
        nodes=len(entry.nodes),
        empty=len(done),
        cordoned=len(round_.cordoned),
        since=format_timestamp(entry.since),
        waves=len(plan.waves) if plan is not None else order.status.waves,
        plan=_list_plan(plan) if plan is not None else order.status.plan[:MAX_PLAN],
        done=tuple(done[:MAX_PLAN]),
        waiting=_remarks(round_.waits),
        failed=_remarks(round_.failures),
        overrides=tuple(dict.fromkeys(overrides))[:MAX_OVERRIDES],
    )
    if entry.ended:
        phase = Phase.DONE if entry.succeeded else Phase.FAILED
        return _with_conditions(order, phase, entry.ended, entry.ended_why, status, now)
    phase = Phase.DRAINING if round_.cordoned or done else Phase.WAITING
    first = hold or round_.stop or next(iter(round_.failures.values()), None) or next(iter(round_.waits.values()), None)
    code, text = (first.code.name, first.sentence) if first is not None else ("", "")
    return _with_conditions(order, phase, code, text, status, now)


def ended_status(order: OrderObject, entry: OrderEntry, cordoned: int, now: Seconds) -> OrderStatus:
    """Returns the status of an order that has ended, by its entry: what the status says of single nodes stays.

    cordoned: how many nodes are cordoned for it."""
    phase = Phase.DONE if entry.succeeded else Phase.FAILED
    before = order.status
    status = OrderStatus(
        nodes=len(entry.nodes),
        empty=min(before.empty, len(entry.nodes)),
        cordoned=cordoned,
        since=format_timestamp(entry.since),
        waves=before.waves,
        plan=before.plan[:MAX_PLAN],
        done=before.done[:MAX_PLAN],
        failed=before.failed[:MAX_REMARKS],
        overrides=before.overrides[:MAX_OVERRIDES],
    )
    return _with_conditions(order, phase, entry.ended, entry.ended_why, status, now)


def _list_plan(plan: OrderPlan) -> tuple[NodePlan, ...]:
    steps = [
        NodePlan(node=step.node, wave=number, evictions=len(step.moves))
        for number, wave in enumerate(plan.waves, start=1)
        for step in wave.steps
    ]
    return tuple(steps[:MAX_PLAN])


def _remarks(reasons: Mapping[str, Reason]) -> tuple[NodeRemark, ...]:
    return tuple(
        NodeRemark(node=node, reason=reason.code.name, message=reason.sentence[:MAX_NODE_TEXT])
        for node, reason in list(reasons.items())[:MAX_REMARKS]
    )


def _with_conditions(
    order: OrderObject, phase: Phase, reason: str, message: str, status: OrderStatus, now: Seconds
) -> OrderStatus:
    message = message[:MAX_MESSAGE]
    is_accepted = "True" if status.since else "False"
    is_complete = "True" if phase is Phase.DONE else "False"
    before = {condition.type: condition for condition in order.status.conditions}
    conditions = []
    cause = camel_case(reason) or phase.value
    accepted_word = "Accepted" if status.since else cause
    for kind, value, word in (("Accepted", is_accepted, accepted_word), ("Complete", is_complete, cause)):
        last = before.get(kind)
        since = last.last_transition_time if last is not None and last.status == value else format_timestamp(now)
        conditions.append(
            OrderCondition(
                type=kind,
                status=value,
                reason=word,
                message=message,
                last_transition_time=since,
                observed_generation=order.generation,
            )
        )
    return msgspec.structs.replace(
        status,
        phase=phase.value,
        observed_generation=order.generation,
        reason=reason,
        message=message,
        conditions=tuple(conditions),
    )


def camel_case(code: str) -> str:
    """Returns the code of a reason as Kubernetes writes the reason of a condition or an Event: "OrderNoRoom"."""
    return "".join(part.capitalize() for part in code.split("-"))


def to_document(status: OrderStatus) -> dict[str, Any]:
    """Returns the status as it is stored."""
    document: dict[str, Any] = msgspec.to_builtins(status)
    return msgspec.json.decode(msgspec.json.encode(document))  # type: ignore[no-any-return]


def differs(order: OrderObject, status: OrderStatus) -> bool:
    """Returns whether the status has to be written: the stored one differs."""
    return bool(order.stored_status != to_document(status))
