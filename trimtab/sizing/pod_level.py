"""Sizes a pod as a whole: one request for all its containers, from the usage of their sum.

The sum peaks less than the peaks together, where the containers do not peak at the same time. The pod's request is what
the rule gives for the average container, times their number: a rule that leaves large workloads less headroom must not
take the sum of small ones for one large container.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.usage_rule import UsageRule
from trimtab.policy.pod_level.obstacles import (
    KubeletVersions,
    PodLevelSubject,
    describe_pod_request,
    explain_kubelets,
    explain_separate_requests,
    explain_useless_request,
)
from trimtab.sizing.request import ROUNDING_STEP, compute_amount
from trimtab.sizing.statistics import UsageStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLevelProposal:
    """One request for all containers of a pod."""

    request: int
    """The request in millicores or bytes."""
    reason: Reason


def propose_pod_level(
    subject: PodLevelSubject, kubelets: KubeletVersions, statistics: UsageStatistics | NotYet, rule: UsageRule
) -> PodLevelProposal | Reason | NotYet:
    """Returns the request for the pod as a whole; the reason why its containers should request for themselves; or
    NotYet if the usage of the sum is not known for long enough. `statistics` are those of the average container."""
    refusal = explain_separate_requests(subject) or explain_kubelets(kubelets)
    if refusal is not None:
        return refusal
    if isinstance(statistics, NotYet):
        return statistics
    request = round_up_sum(subject.resource, subject.containers * compute_amount(rule, statistics))
    refusal = explain_useless_request(subject, request)
    if refusal is not None:
        return refusal
    return PodLevelProposal(request=request, reason=describe_pod_request(subject, request))


def round_up_sum(resource: str, amount: float) -> int:
    """Returns an amount in cores or bytes as whole millicores or mebibytes, rounded up."""
    step = ROUNDING_STEP[resource]
    return ceil((amount * 1000 if resource == "cpu" else amount) / step - 1e-6) * step
