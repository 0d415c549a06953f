"""A rule about requests of pods as a whole (pod-level resources)."""

from trimtab.autoscaling.container_amounts import (
    RESOURCES,
    amount_in,
    format_amount,
    request_of,
    running_containers,
)
from trimtab.autoscaling.lint_snapshot import LintSnapshot, LintWorkload
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, lint_rule
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.quantity import NotAQuantity, scheduler_value
from trimtab.cluster.whole_pods import MIN_KUBELET


@lint_rule(
    "L50",
    LintSeverity.ERROR,
    "Requests of a pod as a whole that are refused, or not put into force",
    why="The API server refuses a pod whose containers request more together than the pod does, and a LimitRange gives "
    "each container without a request a default one. A kubelet older than 1.34 runs the pod as if it requested "
    "nothing, and an API server older than 1.34 drops the field.",
    source="Kubernetes, KEP-2837; plugin/pkg/admission/limitranger/admission.go",
    fix="Raise the request of the pod, lower those of the containers, or remove the default request of the LimitRange. "
    "Give the containers requests of their own until all nodes have a kubelet of 1.34 or newer.",
)
def unusable_pod_level(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each resource of a pod with a pod-level request that is below what its containers request,
    with the defaults of LimitRanges, or that a node may not put into force, because the oldest kubelet is older than
    1.34 and no container has a request of its own."""
    for workload in snapshot.workloads:
        whole = value_or(workload.spec.resources, None)
        requests = {} if whole is None else {resource: amount_in(whole.requests, resource) for resource in RESOURCES}
        for resource, request in requests.items():
            if request is None:
                continue
            together, limit_range = _sum_with_defaults(snapshot, workload, resource)
            path = (*workload.template_path, "resources", "requests", resource)
            if together > request:
                default = f"with the default of LimitRange {limit_range} " if limit_range else ""
                yield rule.report_problem(
                    workload.subject,
                    f"{workload.subject} requests {format_amount(resource, request)} of {resource} for all containers "
                    f"of a pod, but {default}the containers request {format_amount(resource, together)} together.",
                    path=path,
                )
            elif snapshot.minor is not None and snapshot.minor < MIN_KUBELET[1] and not together:
                yield rule.report_problem(
                    workload.subject,
                    f"{workload.subject} requests {resource} for all containers of a pod, but a kubelet of version "
                    f"1.{snapshot.minor} does not put this into force.",
                    path=path,
                )


def _sum_with_defaults(snapshot: LintSnapshot, workload: LintWorkload, resource: str) -> tuple[int, str]:
    """Returns what the containers request together, and the LimitRange that gives some of them a request; its name is
    empty if none does."""
    default = snapshot.bounds_in(workload.namespace, resource).default_request
    total, limit_range = 0, ""
    for container in running_containers(workload.spec):
        request = request_of(container, resource)
        if request is None and default is not None:
            try:
                request, limit_range = scheduler_value(resource, default.value), default.by
            except NotAQuantity:
                continue
        total += request or 0
    return total, limit_range
