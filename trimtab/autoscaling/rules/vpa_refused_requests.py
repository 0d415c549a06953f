"""A rule about VPAs with whose requests the API server refuses pods."""

from trimtab.autoscaling.container_amounts import (
    RESOURCES,
    amount_in,
    format_amount,
    request_of,
    running_containers,
    vpa_containers,
)
from trimtab.autoscaling.lint_snapshot import (
    LintSnapshot,
    LintWorkload,
    container_policy_of,
    controls_resource,
    policies_path,
)
from trimtab.autoscaling.ratio_minima import REQUESTS_ONLY, minimum_changes, unmet_minima
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, lint_rule
from trimtab.autoscaling.rules.vpa_bounds import active_vpas
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.quantity import format_quantity


@lint_rule(
    "L47",
    LintSeverity.ERROR,
    "A VPA whose requests make the API server refuse the pods",
    why="The VPA evicts a pod because of its requests, and the API server refuses the pod that should replace it. "
    "A VPA respects neither the maxLimitRequestRatio of a LimitRange nor the resources of the pod as a whole.",
    source="VPA, pkg/utils/vpa/capping.go; Kubernetes, plugin/pkg/admission/limitranger/admission.go and KEP-2837; "
    "kubernetes/autoscaler issue 1812",
    fix="Set minAllowed at least to the limit divided by the ratio. Remove the VPA of a workload with pod-level "
    "resources, or let its maxAllowed together stay within the pod-level request.",
)
def refused_requests(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each container with RequestsOnly whose minAllowed is below its limit divided by a
    LimitRange's ratio, and for each resource of a pod with pod-level resources that the VPA may raise too far."""
    for vpa, subject, workload in active_vpas(snapshot):
        if workload is None:
            continue
        for container in vpa_containers(workload.spec):
            if container_policy_of(vpa, container.name).controlled_values != REQUESTS_ONLY:
                continue
            minima = unmet_minima(snapshot, vpa, workload, container)
            for resource, least in minima.items():
                ratio = snapshot.bounds_in(workload.namespace, resource).ratio
                assert ratio is not None
                yield rule.report_problem(
                    subject,
                    f"{subject} may set a {resource} request below {format_quantity(resource, least)} for container "
                    f"{container.name}, but LimitRange {ratio.by} allows a limit of at most {ratio.value} times the "
                    "request.",
                    path=(*policies_path(vpa, container.name), "minAllowed", resource),
                    changes=minimum_changes(snapshot, vpa, subject, container.name, minima),
                )
        for resource in RESOURCES:
            pod_level = _pod_level_request(workload, resource)
            if pod_level is None or not _may_exceed(vpa, workload, resource, pod_level):
                continue
            yield rule.report_problem(
                subject,
                f"{subject} may raise the {resource} requests of the containers of {workload.subject} above the "
                f"pod-level request of {format_amount(resource, pod_level)}.",
                path=("spec", "resourcePolicy"),
            )


def _pod_level_request(workload: LintWorkload, resource: str) -> int | None:
    """Returns the amount that the containers may request together; None without pod-level resources."""
    resources = value_or(workload.spec.resources, None)
    if resources is None:
        return None
    request = amount_in(resources.requests, resource)
    return request if request is not None else amount_in(resources.limits, resource)


def _may_exceed(vpa: VerticalPodAutoscaler, workload: LintWorkload, resource: str, pod_level: int) -> bool:
    """Returns whether the largest requests that the VPA may set are together above the pod-level request."""
    total, is_controlled = 0, False
    sized = {one.name for one in vpa_containers(workload.spec)}
    for container in running_containers(workload.spec):
        if container.name not in sized or not controls_resource(vpa, container.name, resource):
            total += request_of(container, resource) or 0
            continue
        is_controlled = True
        most = amount_in(container_policy_of(vpa, container.name).max_allowed, resource)
        if most is None:
            return True
        total += most
    return is_controlled and total > pod_level
