"""One record, told twice: counted, and logged where a pod was changed or something went wrong."""

import msgspec

from trimtab.admission.answer import Record
from trimtab.admission.judge import Outcome
from trimtab.runtime.log import Logger
from webhook.metrics import Meters

_OURS = {Outcome.UNSAFE: "self-check", Outcome.FAILED: "answer"}
"""Outcomes that are bugs of ours, by the kind they are counted as."""


def tell(record: Record, meters: Meters, log: Logger) -> None:
    """Count the record; log it where somebody may ask about it later."""
    meters.outcome(record.outcome.value, dry_run=record.dry_run)
    if record.outcome in _OURS:
        meters.failed(_OURS[record.outcome])
        log.error("review failed", outcome=record.outcome.value, problem=record.problem, **_where(record))
    decision = record.decision
    if decision is None:
        return
    for found in decision.changes if record.outcome is Outcome.CHANGED else ():
        meters.decided(found.policy, action(found.field), found.reason.code.name)
    for left in decision.left:
        meters.decided(left.policy, action(left.field), left.reason.code.name)
    for would in decision.would:
        meters.decided(would.policy, action(would.field), "would-change")
    for failure in decision.failures:
        meters.failed("action")
        log.error("an action failed", failure=failure, **_where(record))
    if record.outcome is Outcome.CHANGED:
        meters.patched(len(msgspec.json.encode(record.operations)))
        policies = sorted({found.policy for found in decision.changes if found.policy})
        log.info("pod changed", policies=policies, fields=len(decision.changes), **_where(record))
    elif record.outcome is Outcome.DENIED:
        log.warning("pod denied", why=str(decision.denied), **_where(record))


def _where(record: Record) -> dict[str, object]:
    return {"uid": record.uid, "namespace": record.namespace, "pod": record.name, "dry_run": record.dry_run}


def action(field: str) -> str:
    """A field without what names a container or a label, so that the words stay few."""
    head, bracket, rest = field.partition("[")
    if bracket and head.endswith("ontainers"):
        return rest.partition("].")[2] or head
    return head or "policy"
