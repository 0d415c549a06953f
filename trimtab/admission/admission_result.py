"""Decides one pod, builds a patch that is safe to send, and defines the result for the log, metrics and audit
annotations."""

from enum import StrEnum

import msgspec

from trimtab.admission.consequences import withhold_harmful_actions
from trimtab.admission.json_patch import Operation, check_patch, diff_pods
from trimtab.admission.quota_headroom import NO_ANSWERS, QuotaAnswers, quota_increases, store_increases
from trimtab.admission.reasons import QUOTA_MAY_REFUSE
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.policy import reasons, required_actions
from trimtab.policy.applicable_policies import ApplicablePolicies
from trimtab.policy.changed_annotation import ChangedAnnotation, read_trusted_annotation
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decide import Decision, Watched, decide_with_policies, with_watched_changes
from trimtab.policy.match import always_left_alone
from trimtab.policy.metadata_reads import MetadataReads
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings, PodBeforeAndAfter, PodContext, Withheld
from trimtab.policy.pod_size_limits import SizeExcess, find_excess
from trimtab.policy.podpolicy import Policies


class AdmissionOutcome(StrEnum):
    """The result of a review. There is a fixed set of values, because metrics use them as a label."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    """No policy applies to the pod."""
    DENIED = "denied"
    NOT_OURS = "not-ours"
    """The review is not about the creation of a pod."""
    UNREADABLE = "unreadable"
    """The object cannot be decoded as a pod."""
    UNSAFE = "unsafe"
    """The patch failed its check, which is a bug of Trimtab. The pod is admitted unchanged."""
    FAILED = "failed"
    """An exception was raised, which is a bug of Trimtab. The pod is admitted unchanged."""
    TOO_LARGE = "too-large"
    """The pod has more parts than Trimtab decides on. It is admitted unchanged."""
    MALFORMED = "malformed"
    """The body is not a review with a uid, so there is no request that could be answered."""


class PodDecision(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The decision on a pod that is about to be created, with its patch."""

    outcome: AdmissionOutcome
    decision: Decision
    operations: tuple[Operation, ...] = ()
    """The operations of the patch; empty unless the outcome is CHANGED."""
    problem: str = ""
    """The problem, if the patch is not safe: with the outcome UNSAFE, or with DENIED if a policy requires the changes
    of the patch. With TOO_LARGE, it says of which parts the pod has too many."""

    def apply_to(self, pod: Pod) -> Pod:
        """Returns the pod after the response: the decided pod if the outcome is CHANGED, otherwise `pod` itself."""
        return self.decision.pod if self.outcome is AdmissionOutcome.CHANGED else pod


def decide_pod(
    pod: Pod,
    policies: Policies,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings = DEFAULT_SETTINGS,
    marked: ChangedAnnotation | None = None,
    body: bytes = b"",
    answers: QuotaAnswers = NO_ANSWERS,
    reads: MetadataReads | None = None,
) -> PodDecision:
    """Decides a pod, builds the patch, and checks the patch before it is sent.

    `marked`: what earlier calls of the webhook changed in the pod. `body`: the bytes of the pod. Both are passed to
    `decide_with_policies`. `answers`: the decisions about quotas that the pod's siblings got; those for this pod are
    added. `reads`: the record of the values that are read from the pod's metadata.
    """
    size_excess = find_excess(pod)
    if (
        size_excess is not None
        and (oversized_result := _oversized_decision(size_excess, pod, policies, facts, namespace, terms)) is not None
    ):
        return oversized_result
    if marked is None:
        # The marker is read once for all decisions below: the author of the pod chose how large it is.
        marked = read_trusted_annotation(pod, namespace, terms.signer)
    subject = PodContext(pod=pod, namespace=namespace, facts=facts, settings=terms, body=body, reads=reads)
    watched: list[Watched] = []
    decision, applicable = decide_with_policies(subject, policies, marked=marked, is_marker_read=True, watched=watched)
    if decision.denied is not None:
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=with_watched_changes(decision, watched))
    if decision.skipped is not None:
        return PodDecision(outcome=AdmissionOutcome.SKIPPED, decision=decision)

    def decide_without(withheld: Withheld, watching: bool) -> tuple[Decision, ApplicablePolicies | None]:
        context, of_this = subject.with_withheld(withheld), watched if watching else []
        return decide_with_policies(
            context, policies, watching=watching, marked=marked, is_marker_read=True, watched=of_this
        )

    decision, applicable = withhold_harmful_actions(subject, decision, applicable, decide_without, answers)
    decision = with_watched_changes(decision, watched)
    if decision.denied is not None:
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=decision)
    operations = diff_pods(pod, decision.pod)
    if not operations:
        return PodDecision(outcome=AdmissionOutcome.UNCHANGED, decision=decision)

    def decide_again(candidate: Pod) -> Pod:
        assert applicable is not None  # a skipped pod is not changed
        if applicable.subject.pod is candidate:
            return candidate  # the last decision was made on this very pod, and left it unchanged
        context = applicable.subject.with_pod(candidate)
        return decide_with_policies(
            context, policies, watching=False, like=applicable, marked=decision.marker, is_marker_read=True
        )[0].pod

    is_warned = any(kept_field.reason.code is QUOTA_MAY_REFUSE for kept_field in decision.fields_kept)
    pods = PodBeforeAndAfter(before=subject, after=subject.with_pod(decision.pod))
    patch_problem = check_patch(pods, operations, decide_again, quota_may_refuse=is_warned)
    if patch_problem is not None and (requiring := required_actions.requiring_policy_names(applicable)):
        denied = change(
            decision, pod=pod, changes=(), denied=required_actions.undecided_reason(requiring, patch_problem)
        )
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=denied, problem=patch_problem)
    if patch_problem is not None:
        return PodDecision(outcome=AdmissionOutcome.UNSAFE, decision=decision, problem=patch_problem)
    if answers is not NO_ANSWERS and not is_warned:
        store_increases(quota_increases(pods), pods.after, answers)
    return PodDecision(outcome=AdmissionOutcome.CHANGED, decision=decision, operations=operations)


def _oversized_decision(
    size_excess: SizeExcess, pod: Pod, policies: Policies, facts: ClusterFacts, namespace: str, terms: AdmissionSettings
) -> PodDecision | None:
    """Returns the decision on a pod that is too large to be decided. None if the pod is not too large, or if no policy
    would be evaluated for it anyway."""
    if always_left_alone(PodContext(pod=pod, namespace=namespace, facts=facts, settings=terms)) is not None:
        return None
    names = required_actions.required_policies_for(policies, facts, namespace, terms, pod)
    if names:
        denied = required_actions.undecided_reason(names, str(size_excess))
        return PodDecision(outcome=AdmissionOutcome.DENIED, decision=Decision(pod=pod, denied=denied))
    skipped = reasons.TOO_LARGE(str(size_excess))
    return PodDecision(
        outcome=AdmissionOutcome.TOO_LARGE,
        decision=Decision(pod=pod, skipped=skipped),
        problem=f"{skipped} [{skipped.code.name}]",
    )


class AdmissionFinding(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """The result of deciding a pod, without anything that depends on the admission request. Identical pods share one
    finding."""

    outcome: AdmissionOutcome
    decision: Decision | None = None
    policies: tuple[str, ...] = ()
    """The names of the policies that changed the pod; empty unless the outcome is CHANGED."""
    patch: bytes = b""
    """The JSON patch as it is sent; empty if nothing is changed."""
    problem: str = ""
    """What failed; empty if nothing did."""
    warnings: tuple[str, ...] = ()
    response: bytes = b""
    """The last part of the encoded response, after the uid, as returned by `admission_review.encode_allowed` or
    `encode_denied`."""


class _User(msgspec.Struct):
    username: str = ""


class AdmissionRecord(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One review, with its finding."""

    finding: AdmissionFinding
    uid: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    user_info: msgspec.Raw = msgspec.Raw()
    """The user who sent the request, as JSON that is not decoded yet."""
    size: int = 0
    """The size of the whole review in bytes."""

    @property
    def user_name(self) -> str:
        """The name of the user who sent the request; empty if it is absent or cannot be read."""
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
    def patch_operations(self) -> tuple[Operation, ...]:
        """The operations, decoded from the patch. Decoding takes too long to do it for every review."""
        return tuple(msgspec.json.decode(self.finding.patch)) if self.finding.patch else ()

    @property
    def problem(self) -> str:
        return self.finding.problem

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.finding.warnings
