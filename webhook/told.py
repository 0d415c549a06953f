"""One record, told twice: counted, and logged where a pod was changed or something went wrong."""

from trimtab.admission.judge import Outcome
from trimtab.admission.record import Record
from trimtab.runtime.log import Logger
from webhook.metrics import Meters
from webhook.tally import Tally

_OURS = {Outcome.UNSAFE: "self-check", Outcome.FAILED: "answer"}
"""Outcomes that are bugs of ours, by the kind they are counted as."""


class Teller:
    """Tells what came of each review."""

    def __init__(self, meters: Meters, log: Logger) -> None:
        self._meters, self._log = meters, log
        self._tally = Tally(meters)

    def metrics(self) -> bytes:
        """For a scrape, with every review told so far in it."""
        self._tally.pour()
        return self._meters.render()

    def tell(self, record: Record) -> None:
        """Count the record; log it where somebody may ask about it later."""
        self._tally.add(record)
        outcome, decision = record.outcome, record.decision
        if outcome is Outcome.CHANGED and decision is not None:
            policies = record.finding.policies
            self._log.info("pod changed", policies=policies, fields=len(decision.changes), **_where(record))
        elif outcome is Outcome.DENIED and decision is not None:
            self._log.warning("pod denied", why=str(decision.denied), **_where(record))
        elif outcome in _OURS:
            self._meters.failed(_OURS[outcome])
            self._log.error("review failed", outcome=outcome.value, problem=record.problem, **_where(record))
        for failure in decision.failures if decision is not None else ():
            self._meters.failed("action")
            self._log.error("an action failed", failure=failure, **_where(record))


def _where(record: Record) -> dict[str, object]:
    return {"uid": record.uid, "namespace": record.namespace, "pod": record.name, "dry_run": record.dry_run}
