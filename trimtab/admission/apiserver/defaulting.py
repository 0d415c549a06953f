"""Simulates how the API applies defaults to pods, and rejects quantities that the API server cannot parse.

Defaults are those of `SetDefaults_Pod` and `SetDefaults_PodSpec` (pkg/apis/core/v1/defaults.go, 1.36), for the fields
that `cluster.api` decodes. They apply only to pods: in the template of a Deployment, no request is derived from a
limit.

Every quantity is parsed when the object arrives. An invalid one is answered with 400; in the result of a webhook it is
answered with 500, which `failurePolicy: Ignore` does not cover.
"""

from collections.abc import Iterator

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change, value_or
from trimtab.cluster.api.pod import Container, Pod, PodSecurityContext, PodSpec, Resources
from trimtab.cluster.resources import is_pod_level, limits_of, requests_of
from trimtab.policy.cluster_facts import ClusterFacts

DEFAULTING = "defaulting"
_NO_SECURITY_CONTEXT = PodSecurityContext()


def set_defaults(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the pod with requests derived from limits, with pod-level requests, and with the fields that every stored
    pod has. Never rejects."""
    spec = change(
        pod.spec,
        containers=tuple(_default_container(c, pod.spec) for c in pod.spec.containers),
        init_containers=tuple(_default_container(c, pod.spec) for c in pod.spec.init_containers),
        restart_policy=pod.spec.restart_policy or "Always",
        scheduler_name=pod.spec.scheduler_name or "default-scheduler",
        security_context=pod.spec.security_context or _NO_SECURITY_CONTEXT,
        termination_grace_period_seconds=30
        if pod.spec.termination_grace_period_seconds is None
        else pod.spec.termination_grace_period_seconds,
    )
    return change(pod, spec=resource_sums.round_spec(_default_pod_level(spec)))


def _default_container(container: Container, spec: PodSpec) -> Container:
    """Returns the container with a request for each of its limits. `resources` is always set afterwards, because the
    server writes `resources: {}` if there is nothing in it."""
    old = value_or(container.resources, Resources())
    missing = {n: v for n, v in value_or(old.limits, {}).items() if n not in value_or(old.requests, {})}
    resources = change(old, requests=value_or(old.requests, {}) | missing) if missing else old
    ports = container.ports
    # `SetDefaults_Pod`: on the host network each container port is a host port.
    if spec.host_network:
        ports = tuple(change(p, host_port=p.host_port or p.container_port) for p in ports)
    return change(container, resources=resources, ports=ports)


def _default_pod_level(spec: PodSpec) -> PodSpec:
    """Returns the spec with pod-level requests, if pod-level limits are set (KEP-2837). For a resource without a
    pod-level request, the request is the sum of the containers' requests or, if there is none, the limit."""
    if isinstance(spec.resources, UnsetType):
        return spec
    limits = _default_hugepage_limits(spec, spec.resources)
    requests = _default_pod_requests(spec, value_or(spec.resources.requests, {}), limits)
    resources = spec.resources
    if limits:
        resources = change(resources, limits=limits)
    if requests:
        resources = change(resources, requests=requests)
    return change(spec, resources=resources)


def _default_hugepage_limits(spec: PodSpec, own: Resources) -> ResourceList:
    """Returns the pod-level limits, completed with the containers' huge pages that the pod does not name itself
    (`defaultHugePagePodLimits`)."""
    limits, requests = value_or(own.limits, {}), value_or(own.requests, {})
    if not limits and not requests:
        return limits
    named = limits.keys() | requests.keys()
    container_limits = resource_sums.sum_containers(spec, limits_of).items()
    return limits | {n: v for n, v in container_limits if n.startswith("hugepages-") and n not in named}


def _default_pod_requests(spec: PodSpec, own: ResourceList, limits: ResourceList) -> ResourceList:
    """Returns the pod-level requests (`defaultPodRequests`). They are completed only if the pod has pod-level limits.
    Requests for huge pages are copied from the limit, never summed over the containers."""
    if not limits:
        return own
    container_requests = {
        n: v for n, v in resource_sums.sum_containers(spec, requests_of).items() if n in ("cpu", "memory")
    }
    return {n: v for n, v in limits.items() if is_pod_level(n)} | container_requests | own


PLUGIN = "decoding"
_INVALID_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
UNREADABLE = PodRejected(400, PLUGIN, f'Pod in version "v1" cannot be handled as a Pod: {_INVALID_QUANTITY}')
UNREADABLE_RESULT = PodRejected(500, PLUGIN, f"Internal error occurred: {_INVALID_QUANTITY}")
"""The rejection of a pod that a webhook returned with an unreadable quantity."""


def check_quantities(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the pod as submitted if all its quantities can be parsed, otherwise the rejection with 400."""
    return pod if has_readable_quantities(pod) else UNREADABLE


def has_readable_quantities(pod: Pod) -> bool:
    """Returns whether every quantity can be parsed."""
    return all(quantity.is_quantity(value) for part in _resource_lists(pod.spec) for value in part.values())


def _resource_lists(spec: PodSpec) -> Iterator[ResourceList]:
    for part in (*(c.resources for c in spec.containers + spec.init_containers), spec.resources):
        yield requests_of(part)
        yield limits_of(part)
    yield value_or(spec.overhead, {})
