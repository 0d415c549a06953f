"""What do we make of this pod: a decision, and a patch that is safe to send?

What came of one review, for whoever tells it: the log, the metrics, the audit annotations.
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from trimtab.admission.consequences import sound
from trimtab.admission.json_patch import Operation, diff, problem
from trimtab.admission.quota_headroom import NO_ANSWERS, QuotaAnswers, keep, raised
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons, required_actions
from trimtab.policy.applicable_policies import ApplicablePolicies
from trimtab.policy.changed_annotation import ChangedAnnotation, read
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decide import Decision, decided
from trimtab.policy.match import always_left_alone
from trimtab.policy.pod_context import DEFAULT_TERMS, AdmissionSettings, PodContext, Withheld
from trimtab.policy.pod_size_limits import SizeExcess, excess
from trimtab.policy.podpolicy import Policies


class AdmissionOutcome(StrEnum):
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
    TOO_LARGE = "too-large"
    """It holds more than is decided about; the pod went through unchanged."""
    MALFORMED = "malformed"
    """No review at all: nothing to answer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDecision:
    """The decision on a pod that is to be created, and its patch."""

    outcome: AdmissionOutcome
    decision: Decision
    operations: tuple[Operation, ...] = ()
    """Empty unless the outcome is CHANGED."""
    problem: str = ""
    """Why the patch is not safe; with UNSAFE, and with DENIED where a policy requires what the patch would do. With
    TOO_LARGE, what the pod holds too much of."""

    def applied(self, pod: Pod) -> Pod:
        """The pod after our answer: the one decided, or the very one that came."""
        return self.decision.pod if self.outcome is AdmissionOutcome.CHANGED else pod


def judge(
    pod: Pod,
    policies: Policies,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings = DEFAULT_TERMS,
    marked: ChangedAnnotation | None = None,
    body: bytes = b"",
    answers: QuotaAnswers = NO_ANSWERS,
) -> PodDecision:
    """Decide, make the patch, and try it before anybody else does.

    marked: what earlier calls did to the pod; body: its own bytes; as `decided` takes them.
    answers: what its siblings were told of quotas; what is told now is kept there.
    """
    over = excess(pod)
    if over is not None and (verdict := _undecided(over, pod, policies, facts, namespace, terms)) is not None:
        return verdict
    if marked is None:
        marked = read(pod, namespace, terms.signer)  # once, however often is decided: its author chose how large it is
    subject = PodContext(pod=pod, namespace=namespace, facts=facts, terms=terms, body=body)
    decision, asked = decided(subject, policies, marked=marked, is_marker_read=True)
    if decision.denied is not None:
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=decision)
    if decision.skipped is not None:
        return PodDecision(outcome=AdmissionOutcome.SKIPPED, decision=decision)

    def without(withheld: Withheld, watching: bool) -> tuple[Decision, ApplicablePolicies | None]:
        left_out = subject.without(withheld)
        return decided(left_out, policies, watching=watching, marked=marked, is_marker_read=True)

    decision, asked = sound(pod, decision, asked, without, facts, namespace, terms, answers)
    if decision.denied is not None:
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=decision)
    operations = diff(pod, decision.pod)
    if not operations:
        return PodDecision(outcome=AdmissionOutcome.UNCHANGED, decision=decision)

    def again(found: Pod) -> Pod:
        assert asked is not None  # whoever is skipped is not changed
        if asked.subject.pod is found:
            return found  # the last round was asked about this very pod, and gave it back
        now = asked.subject.as_now(found)
        return decided(now, policies, watching=False, like=asked, marked=decision.marker, is_marker_read=True)[0].pod

    is_warned = any(left.reason.code is reasons.QUOTA_MAY_REFUSE for left in decision.left)
    wrong = problem(pod, decision.pod, operations, again, facts, namespace, terms, quota_may_refuse=is_warned)
    if wrong is not None and (requiring := required_actions.requiring(asked)):
        denied = change(decision, pod=pod, changes=(), denied=required_actions.undecided(requiring, wrong))
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=denied, problem=wrong)
    if wrong is not None:
        return PodDecision(outcome=AdmissionOutcome.UNSAFE, decision=decision, problem=wrong)
    if answers is not NO_ANSWERS and not is_warned:
        later = PodContext(pod=decision.pod, namespace=namespace, facts=facts)
        keep(raised(pod, decision.pod, facts, namespace, terms), later, answers)
    return PodDecision(outcome=AdmissionOutcome.CHANGED, decision=decision, operations=operations)


def _undecided(
    over: SizeExcess, pod: Pod, policies: Policies, facts: ClusterFacts, namespace: str, terms: AdmissionSettings
) -> PodDecision | None:
    """Of a pod that holds too much to be decided about; None where nothing would be decided of it anyway."""
    if always_left_alone(PodContext(pod=pod, namespace=namespace, facts=facts, terms=terms)) is not None:
        return None
    names = required_actions.required_policies_for(policies, facts, namespace, terms, pod)
    if names:
        denied = required_actions.undecided(names, str(over))
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=Decision(pod=pod, denied=denied))
    skipped = reasons.TOO_LARGE(str(over))
    return PodDecision(
        outcome=AdmissionOutcome.TOO_LARGE, decision=Decision(pod=pod, skipped=skipped), problem=_told(skipped)
    )


def _told(reason: Reason) -> str:
    return f"{reason} [{reason.code.name}]"


class AdmissionFinding(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """What was found of a pod, whoever's review it came in. Pods that are alike share one."""

    outcome: AdmissionOutcome
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


class _User(msgspec.Struct):
    username: str = ""


class AdmissionRecord(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One review and what was found."""

    finding: AdmissionFinding
    uid: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    user_info: msgspec.Raw = msgspec.Raw()
    """Who asks, as it came."""
    size: int = 0
    """Bytes of the whole review."""

    @property
    def user(self) -> str:
        """The name of who asks; empty where it is not said."""
        try:
            return msgspec.json.decode(self.user_info, type=_User).username
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return ""

    @property
    def outcome(self) -> AdmissionOutcome:
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
