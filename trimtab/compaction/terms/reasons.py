"""Reasons why a pod stays because of its own terms: one code per rule."""

from trimtab.cluster.reason import Code, Reason

OUTSIDE_OWN_WINDOWS = Code(
    "pod-outside-own-windows",
    "None of the windows in which the pod may be evicted is open. It names them in the annotation "
    "trimtab.dev/disruption-windows.",
    "Wait. The terms of its pods keep a node for at most podTerms.maxDelay of the pool. An ordered drain evicts the "
    "pod now with --override-protection.",
)
SPENT_FOR_TODAY = Code(
    "pod-disruptions-spent",
    "Trimtab has evicted as many pods of the workload in 24 hours as they allow. They state the number in the "
    "annotation trimtab.dev/disruptions-per-day.",
    "Wait, or raise the number. The terms of its pods keep a node for at most podTerms.maxDelay of the pool.",
)
UNREADABLE_TERMS = Code(
    "pod-terms-unreadable",
    "An annotation of the pod about its evictions cannot be read or met.",
    "Correct the annotation as the message says. Until then the pod stays, but not for longer than podTerms.maxDelay "
    "of the pool.",
)
TERM_CODES = frozenset({OUTSIDE_OWN_WINDOWS, SPENT_FOR_TODAY, UNREADABLE_TERMS})
"""The codes with which the terms of pods keep a node."""


def is_kept_by_terms(reason: Reason | None) -> bool:
    """Returns whether a pod stays with this reason because of its own terms. None: it does not stay."""
    return reason is not None and reason.code in TERM_CODES
