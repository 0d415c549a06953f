"""What came of one review, for whoever tells it: the log, the metrics, the audit annotations."""

import msgspec

from trimtab.admission.judge import Outcome
from trimtab.admission.patch import Operation
from trimtab.policy.decide import Decision


class Finding(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """What was found of a pod, whoever's review it came in. Pods that are alike share one."""

    outcome: Outcome
    decision: Decision | None = None
    policies: tuple[str, ...] = ()
    """Those that changed the pod, by name; empty unless the outcome is CHANGED."""
    patch: bytes = b""
    """The operations as they are sent; empty where nothing changes."""
    problem: str = ""
    """What failed, where something did."""
    warnings: tuple[str, ...] = ()
    response: bytes = b""
    """The end of the answer (`review.allow`, `review.deny`)."""


class Record(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One review and what was found."""

    finding: Finding
    uid: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False

    @property
    def outcome(self) -> Outcome:
        return self.finding.outcome

    @property
    def decision(self) -> Decision | None:
        return self.finding.decision

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Read from the patch: for whoever wants to see them, not for the hot path."""
        return tuple(msgspec.json.decode(self.finding.patch)) if self.finding.patch else ()

    @property
    def problem(self) -> str:
        return self.finding.problem

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.finding.warnings
