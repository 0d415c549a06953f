"""Reasons why a pod stays because of its own terms: one code per rule."""

from trimtab.cluster.reason import Code, Reason

OUTSIDE_OWN_WINDOWS = Code(
    "pod-outside-own-windows",
    "The pod names windows in which it may be evicted (annotation trimtab.dev/disruption-windows), and none is open.",
    "Wait. The terms of its pods keep a node for at most podTerms.maxDelay of the pool. An ordered drain evicts the "
    "pod now with --override-protection.",
)
SPENT_FOR_TODAY = Code(
    "pod-disruptions-spent",
    "Pods of the workload state how many of them may be evicted in 24 hours (annotation "
    "trimtab.dev/disruptions-per-day), and Trimtab has evicted that many.",
    "Wait, or raise the number. The terms of its pods keep a node for at most podTerms.maxDelay of the pool.",
)
UNREADABLE_TERMS = Code(
    "pod-terms-unreadable",
    "The pod has an annotation about its own evictions that cannot be read, or that no eviction could ever meet.",
    "Correct the annotation as the message says. Until then the pod stays, but not for longer than podTerms.maxDelay "
    "of the pool.",
)
TERM_CODES = frozenset({OUTSIDE_OWN_WINDOWS, SPENT_FOR_TODAY, UNREADABLE_TERMS})
"""The codes with which the terms of pods keep a node."""


def is_kept_by_terms(reason: Reason | None) -> bool:
    """Returns whether a pod stays with this reason because of its own terms. None: it does not stay."""
    return reason is not None and reason.code in TERM_CODES
