"""Sizes a pod as a whole: one request for all its containers, from the usage of their sum.

The sum peaks less than the peaks together, where the containers do not peak at the same time. The pod's request is what
the rule gives for the average container, times their number: a rule that leaves large workloads less headroom must not
take the sum of small ones for one large container.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.usage_rule import UsageRule
from trimtab.sizing import reasons
from trimtab.sizing.request import ROUNDING_STEP, compute_amount
from trimtab.sizing.statistics import UsageStatistics

MIN_KUBELET = (1, 34)
"""The oldest kubelet, as (major, minor), that puts pod-level resources into force by default (KEP-2837)."""
_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?:\D|\Z)", re.ASCII)
_MAX_NAMES = 3


@dataclass(frozen=True, slots=True)
class KubeletVersions:
    """The nodes that may take a pod, by what their kubelets do with pod-level resources."""

    nodes: int = 0
    """The number of nodes that may take the pod."""
    older: tuple[str, ...] = ()
    """The nodes whose kubelet is older than `MIN_KUBELET`."""
    unknown: tuple[str, ...] = ()
    """The nodes whose kubelet's version is not known."""


def parse_kubelet_version(text: str) -> tuple[int, int] | None:
    """Returns (major, minor) of a kubelet's version such as v1.36.2-eks-1, or None if the text is no version."""
    match = _VERSION.match(text)
    return None if match is None else (int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLevelSubject:
    """One resource of a pod that may be requested for the pod as a whole."""

    resource: str
    containers: int
    """The number of containers that run as long as the pod does."""
    separate: int
    """What the containers would request together, each by its own usage, in millicores or bytes."""
    has_pod_level: bool = False
    """Whether the pod already sets resources for all its containers together."""
    is_guaranteed: bool = False
    is_windows: bool = False
    kubelets: KubeletVersions = KubeletVersions()
    vpa: str = ""
    """The name of the VPA that sizes the pod's containers; empty if there is none."""
    hpa: str = ""
    """The name of an HPA that scales by the utilization of this resource of whole pods; empty if there is none."""
    container_hpa: str = ""
    """The name of an HPA that scales by the utilization of this resource of one container; empty if there is none."""
    default_by: str = ""
    """The name of a LimitRange that gives a request to containers without one; empty if there is none."""
    default_request: int = 0
    """The request that each container gets from it, in millicores or bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLevelProposal:
    """One request for all containers of a pod."""

    request: int
    """The request in millicores or bytes."""
    reason: Reason


def propose_pod_level(
    subject: PodLevelSubject, statistics: UsageStatistics | NotYet, rule: UsageRule
) -> PodLevelProposal | Reason | NotYet:
    """Returns the request for the pod as a whole; the reason why its containers should request for themselves; or
    NotYet if the usage of the sum is not known for long enough. `statistics` are those of the average container."""
    refusal = _why_not(subject)
    if refusal is not None:
        return refusal
    if isinstance(statistics, NotYet):
        return statistics
    request = round_up_sum(subject.resource, subject.containers * compute_amount(rule, statistics))
    defaults = subject.containers * subject.default_request
    if subject.default_by and defaults > request:
        return reasons.POD_LEVEL_LIMIT_RANGE(
            f"LimitRange {subject.default_by} gives the containers {_format(subject, defaults)} together, but the pod "
            f"would request {_format(subject, request)}"
        )
    if request >= subject.separate:
        together = _format(subject, subject.separate)
        return reasons.POD_LEVEL_SAVES_NOTHING(
            f"the pod would request {_format(subject, request)}, and its containers {together} together"
        )
    sentence = (
        f"the sum of {format_count(subject.containers, 'container')} needs {_format(subject, request)}, and their "
        f"requests together would be {_format(subject, subject.separate)}"
    )
    return PodLevelProposal(request=request, reason=reasons.FROM_POD_SUM(sentence))


def _why_not(subject: PodLevelSubject) -> Reason | None:
    """Returns why the pod's containers should request for themselves, as far as that does not depend on usage.

    - A VPA, or an HPA by the utilization of whole pods, reads and writes requests of containers or of the pod: a
      smaller sum would scale out.
    - An HPA by the utilization of one container needs that container's request.
    - A node with an older kubelet would run the pod as if it had no requests.
    """
    kubelets = subject.kubelets
    if subject.containers < 2:
        return reasons.POD_LEVEL_ONE_CONTAINER("the pod has a single container")
    if subject.has_pod_level:
        return reasons.POD_LEVEL_SET("the pod already requests for all its containers together")
    if subject.is_guaranteed:
        return reasons.POD_LEVEL_GUARANTEED("the pod is Guaranteed, so its containers' limits are their requests")
    if subject.is_windows:
        return reasons.POD_LEVEL_WINDOWS("the pod runs on Windows")
    if subject.vpa:
        return reasons.POD_LEVEL_VPA(f"VPA {subject.vpa} sizes the containers")
    if subject.hpa:
        return reasons.POD_LEVEL_HPA(
            f"HPA {subject.hpa} scales by a share of the {subject.resource} request of the pod"
        )
    if subject.container_hpa:
        return reasons.POD_LEVEL_CONTAINER_HPA(
            f"HPA {subject.container_hpa} scales by a share of the {subject.resource} request of one container"
        )
    if kubelets.older:
        names = join_first(kubelets.older, _MAX_NAMES)
        return reasons.POD_LEVEL_KUBELET(
            f"the kubelet of {format_count(len(kubelets.older), 'node')} is older than 1.34: {names}"
        )
    if kubelets.unknown or not kubelets.nodes:
        names = join_first(kubelets.unknown, _MAX_NAMES) or "no node that the pod may use is known"
        return reasons.POD_LEVEL_KUBELET(f"the version of a kubelet that may run the pod is not known: {names}")
    return None


def round_up_sum(resource: str, amount: float) -> int:
    """Returns an amount in cores or bytes as whole millicores or mebibytes, rounded up."""
    step = ROUNDING_STEP[resource]
    return ceil((amount * 1000 if resource == "cpu" else amount) / step - 1e-6) * step


def _format(subject: PodLevelSubject, amount: int) -> str:
    return quantity.format_quantity(subject.resource, amount)
