"""Why the containers of a pod should request for themselves, and not the pod as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.reason import Reason
from trimtab.cluster.schedulers import KNOWN_SCHEDULERS
from trimtab.policy.pod_level import reasons

_MAX_NAMES = 3


@dataclass(frozen=True, slots=True)
class KubeletVersions:
    """The nodes that may take a pod, by what their kubelets do with pod-level resources."""

    nodes: int = 0
    """The number of nodes, or of kinds of nodes, that may take the pod."""
    older: tuple[str, ...] = ()
    """The nodes whose kubelet is older than `whole_pods.MIN_KUBELET`, or the versions of such kubelets."""
    unknown: tuple[str, ...] = ()
    """The nodes whose kubelet's version is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLevelSubject:
    """One resource of a pod that may be requested for the pod as a whole."""

    resource: str
    containers: int
    """The number of containers that run as long as the pod does."""
    separate: int | None
    """What the containers would request together, each by its own usage, in millicores or bytes; None if one of them
    would request nothing."""
    has_pod_level: bool = False
    """Whether the pod already sets resources for all its containers together."""
    is_guaranteed: bool = False
    is_windows: bool = False
    has_huge_pages: bool = False
    """Whether a container of the pod has huge pages."""
    scheduler: str = ""
    """The name of the scheduler that places the pod, as the pod's author wrote it; empty for the default one."""
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


def explain_separate_requests(subject: PodLevelSubject) -> Reason | None:
    """Returns why the pod's containers should request for themselves, as far as that depends on the pod and its
    autoscalers; None if nothing speaks against one request.

    - A scheduler that is no kube-scheduler may count only the requests of containers.
    - A VPA, or an HPA by the utilization of whole pods, reads and writes requests of containers or of the pod: a
      smaller sum would scale out.
    - An HPA by the utilization of one container needs that container's request.
    """
    if subject.containers < 2:
        return reasons.POD_LEVEL_ONE_CONTAINER("the pod has a single container")
    if subject.has_pod_level:
        return reasons.POD_LEVEL_SET("the pod already requests for all its containers together")
    if subject.is_guaranteed:
        return reasons.POD_LEVEL_GUARANTEED("the pod is Guaranteed, so its containers' limits are their requests")
    if subject.is_windows:
        return reasons.POD_LEVEL_WINDOWS("the pod runs on Windows")
    if subject.has_huge_pages:
        return reasons.POD_LEVEL_HUGE_PAGES("a container of the pod has huge pages")
    if subject.scheduler and subject.scheduler not in KNOWN_SCHEDULERS:
        return reasons.POD_LEVEL_SCHEDULER(f"the scheduler {subject.scheduler} places the pod")
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
    return None


def explain_kubelets(kubelets: KubeletVersions) -> Reason | None:
    """Returns which node would run the pod as if it requested nothing, or might; None if every node that may take the
    pod has a kubelet that is new enough."""
    if kubelets.older:
        names = join_first(kubelets.older, _MAX_NAMES)
        return reasons.POD_LEVEL_KUBELET(f"a node that may take the pod has a kubelet older than 1.34: {names}")
    if kubelets.unknown or not kubelets.nodes:
        names = join_first(kubelets.unknown, _MAX_NAMES) or "no node that the pod may use is known"
        return reasons.POD_LEVEL_KUBELET(f"the version of a kubelet that may run the pod is not known: {names}")
    return None


def explain_useless_request(subject: PodLevelSubject, request: int) -> Reason | None:
    """Returns why this request of the pod as a whole, in millicores or bytes, would be refused by what a LimitRange
    gives to the containers, or would save nothing; None if it saves something."""
    defaults = subject.containers * subject.default_request
    if subject.default_by and defaults > request:
        return reasons.POD_LEVEL_LIMIT_RANGE(
            f"LimitRange {subject.default_by} gives the containers {_format(subject, defaults)} together, but the pod "
            f"would request {_format(subject, request)}"
        )
    if subject.separate is not None and request >= subject.separate:
        together = _format(subject, subject.separate)
        return reasons.POD_LEVEL_SAVES_NOTHING(
            f"the pod would request {_format(subject, request)}, and its containers {together} together"
        )
    return None


def describe_pod_request(subject: PodLevelSubject, request: int) -> Reason:
    """Returns the reason for this request of the pod as a whole, in millicores or bytes."""
    count = format_count(subject.containers, "container")
    sentence = f"the sum of {count} needs {_format(subject, request)}"
    if subject.separate is not None:
        sentence += f", and their requests together would be {_format(subject, subject.separate)}"
    return reasons.FROM_POD_SUM(sentence)


def _format(subject: PodLevelSubject, amount: int) -> str:
    return quantity.format_quantity(subject.resource, amount)
