"""What do we make of this pod: a decision, and a patch that is safe to send?"""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.admission.check import problem
from trimtab.admission.patch import Operation, diff
from trimtab.cluster.api.pod import Pod
from trimtab.policy.decide import Decision, decided
from trimtab.policy.document import Policies
from trimtab.policy.facts import Facts
from trimtab.policy.subject import DEFAULT_TERMS, Terms


class Outcome(StrEnum):
    """What became of a review. Bounded: metrics carry it."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    """A pod no policy is asked about."""
    DENIED = "denied"
    NOT_OURS = "not-ours"
    """Not the creation of a pod."""
    UNREADABLE = "unreadable"
    """The object makes no sense as a pod."""
    UNSAFE = "unsafe"
    """The patch failed its check: our bug; the pod went through unchanged."""
    FAILED = "failed"
    """Something broke: our bug; the pod went through unchanged."""
    MALFORMED = "malformed"
    """No review at all: nothing to answer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on a pod that is to be created, and its patch."""

    outcome: Outcome
    decision: Decision
    operations: tuple[Operation, ...] = ()
    """Empty unless the outcome is CHANGED."""
    problem: str = ""
    """Why the patch is not safe; only with UNSAFE."""

    def applied(self, pod: Pod) -> Pod:
        """The pod after our answer: the one decided, or the very one that came."""
        return self.decision.pod if self.outcome is Outcome.CHANGED else pod


def judge(pod: Pod, policies: Policies, facts: Facts, namespace: str, terms: Terms = DEFAULT_TERMS) -> Verdict:
    """Decide, make the patch, and try it before anybody else does."""
    decision, asked = decided(pod, policies, facts, namespace, terms)
    if decision.denied is not None:
        return Verdict(outcome=Outcome.DENIED, decision=decision)
    if decision.skipped is not None:
        return Verdict(outcome=Outcome.SKIPPED, decision=decision)
    operations = diff(pod, decision.pod)
    if not operations:
        return Verdict(outcome=Outcome.UNCHANGED, decision=decision)

    def again(found: Pod) -> Pod:
        return decided(found, policies, facts, namespace, terms, watching=False, like=asked)[0].pod

    wrong = problem(pod, decision.pod, operations, again, facts, namespace, terms)
    if wrong is not None:
        return Verdict(outcome=Outcome.UNSAFE, decision=decision, problem=wrong)
    return Verdict(outcome=Outcome.CHANGED, decision=decision, operations=operations)
