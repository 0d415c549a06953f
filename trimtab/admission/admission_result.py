"""The result of a review, for the response, the log, the metrics and the audit annotations."""

from enum import StrEnum

import msgspec

from trimtab.admission.json_patch import Operation
from trimtab.cluster.api.pod import Pod
from trimtab.policy.decide import Decision


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


class AdmissionRecord(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """What was decided about a pod, without anything that depends on the admission request. Identical pods share one
    record."""

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

    @property
    def patch_operations(self) -> tuple[Operation, ...]:
        """The operations, decoded from the patch. Decoding takes too long to do it for every review."""
        return tuple(msgspec.json.decode(self.patch)) if self.patch else ()
