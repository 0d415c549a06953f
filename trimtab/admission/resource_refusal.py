"""Whether the API server refuses a pod for its requests and limits: by validation, a LimitRange or a quota.

The rest of the pod does not count here, such as a PriorityClass that files need not have.
"""

from trimtab.admission.apiserver import defaulting, limitranger, resourcequota
from trimtab.admission.apiserver.outcome import PodRejected, join_errors
from trimtab.admission.apiserver.validate_pod import container_resource_errors, pod_resource_errors
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import all_containers
from trimtab.policy.cluster_facts import ClusterFacts

VALIDATION = "validation"


def complete_resources(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod:
    """Returns the pod with the requests and limits that the API server adds before it validates the pod: requests from
    limits, pod-level requests, then those of LimitRanges."""
    for step in (defaulting.set_defaults, limitranger.apply_limit_ranges):
        result = step(pod, facts, namespace)
        pod = pod if isinstance(result, PodRejected) else result
    return pod


def refuse_resources(pod: Pod, facts: ClusterFacts, namespace: str, *, by_quotas: bool = True) -> PodRejected | None:
    """Returns why the API server refuses the pod for its requests and limits; None if it accepts them. The quantities
    must be readable."""
    completed = complete_resources(pod, facts, namespace)
    errors = [
        error
        for container in all_containers(completed.spec)
        for error in container_resource_errors(
            f"spec.containers[{container.name}].resources", value_or(container.resources, None)
        )
    ] + list(pod_resource_errors(completed.spec))
    if errors:
        return PodRejected(422, VALIDATION, join_errors(errors))
    checks = (limitranger.check_limit_ranges, *((resourcequota.check_quotas,) if by_quotas else ()))
    results = (check(completed, facts, namespace) for check in checks)
    return next((result for result in results if isinstance(result, PodRejected)), None)
