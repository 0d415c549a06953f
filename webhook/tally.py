"""How often was what found? Counted by finding, and put into the meters when somebody asks.

A decision counts under twenty labels. Pods that are alike share one finding, so a review adds one to one number, and
the twenty are worked out once for all of them.
"""

from collections import Counter
from threading import Lock

from trimtab.admission.judge import Outcome
from trimtab.admission.record import Finding, Record
from webhook.metrics import Meters

MOST = 512
"""Different findings held back; with more the meters are brought up to date."""


class Tally:
    """Counts records for the meters. Safe from any thread."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._lock = Lock()
        self._held: dict[tuple[int, bool], list[int]] = {}
        self._findings: dict[int, Finding] = {}
        """Held beside their counts, so that no other finding gets their id."""

    def add(self, record: Record) -> None:
        """Count one review."""
        finding = record.finding
        key = id(finding), record.dry_run
        with self._lock:
            count = self._held.get(key)
            if count is not None:
                count[0] += 1
                return
            self._held[key] = [1]
            self._findings[key[0]] = finding
            if len(self._held) >= MOST:
                self._pour()

    def pour(self) -> None:
        """Put all that is held back into the meters."""
        with self._lock:
            self._pour()

    def _pour(self) -> None:
        held, self._held = self._held, {}
        findings, self._findings = self._findings, {}
        decided: Counter[tuple[str, str, str]] = Counter()
        for (number, dry_run), (times,) in held.items():
            finding = findings[number]
            self._meters.outcome(finding.outcome.value, dry_run=dry_run, times=times)
            if finding.outcome is Outcome.CHANGED:
                self._meters.patched(len(finding.patch), times)
            for words in _decided(finding):
                decided[words] += times
        for (policy, what, reason), times in decided.items():
            self._meters.decided(policy, what, reason, times)


def _decided(finding: Finding) -> list[tuple[str, str, str]]:
    """Policy, action and reason of each thing that was said of the pod."""
    decision = finding.decision
    if decision is None:
        return []
    changes = decision.changes if finding.outcome is Outcome.CHANGED else ()
    found = [(c.policy, action(c.field), c.reason.code.name) for c in changes]
    found += [(left.policy, action(left.field), left.reason.code.name) for left in decision.left]
    return found + [(would.policy, action(would.field), "would-change") for would in decision.would]


def action(field: str) -> str:
    """A field without what names a container or a label, so that the words stay few."""
    head, bracket, rest = field.partition("[")
    if bracket and head.endswith("ontainers"):
        return rest.partition("].")[2] or head
    return head or "policy"
