"""What does the API fill in before anybody looks, and again after every webhook that changed the pod?

`SetDefaults_Pod` and `SetDefaults_PodSpec` (pkg/apis/core/v1/defaults.go, 1.36), for the fields our shapes name. Only
for pods: in a Deployment's template a request is not made of its limit.

Can the API server read this pod?

Every quantity is parsed on the way in. Text that is none is a 400; in what a webhook made of the pod it is a 500 that
`failurePolicy: Ignore` does not cover.
"""

from collections.abc import Iterator

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change, get
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources
from trimtab.cluster.resources import is_pod_level, limits_of, requests_of
from trimtab.policy.cluster_facts import ClusterFacts

DEFAULTING = "defaulting"


def default(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """The pod with requests from limits, pod-level requests, and the fields every stored pod has. Never refuses."""
    spec = change(
        pod.spec,
        containers=tuple(_container(c, pod.spec) for c in pod.spec.containers),
        init_containers=tuple(_container(c, pod.spec) for c in pod.spec.init_containers),
        restart_policy=pod.spec.restart_policy or "Always",
        scheduler_name=pod.spec.scheduler_name or "default-scheduler",
        termination_grace_period_seconds=_grace(pod.spec),
    )
    return change(pod, spec=resource_sums.rounded(_pod_level(spec)))


def _grace(spec: PodSpec) -> int:
    return 30 if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds


def _container(container: Container, spec: PodSpec) -> Container:
    """`resources` is always there afterwards: the server writes `resources: {}` where nothing was said."""
    old = get(container.resources, Resources())
    missing = {n: v for n, v in get(old.limits, {}).items() if n not in get(old.requests, {})}
    resources = change(old, requests=get(old.requests, {}) | missing) if missing else old
    ports = container.ports
    if spec.host_network:
        ports = tuple(change(p, host_port=p.host_port or p.container_port) for p in ports)
    return change(container, resources=resources, ports=ports)


def _pod_level(spec: PodSpec) -> PodSpec:
    """Pod-level limits bring pod-level requests: what the containers ask for, else the limit (KEP-2837)."""
    if isinstance(spec.resources, UnsetType):
        return spec
    limits = _hugepages(spec, spec.resources)
    requests = _requests(spec, get(spec.resources.requests, {}), limits)
    resources = spec.resources
    if limits:
        resources = change(resources, limits=limits)
    if requests:
        resources = change(resources, requests=requests)
    return change(spec, resources=resources)


def _hugepages(spec: PodSpec, own: Resources) -> ResourceList:
    """The limits of huge pages that containers have and the pod does not name (`defaultHugePagePodLimits`)."""
    limits, requests = get(own.limits, {}), get(own.requests, {})
    if not limits and not requests:
        return limits
    named = limits.keys() | requests.keys()
    found = resource_sums.containers(spec, limits_of).items()
    return limits | {n: v for n, v in found if n.startswith("hugepages-") and n not in named}


def _requests(spec: PodSpec, own: ResourceList, limits: ResourceList) -> ResourceList:
    """`defaultPodRequests`: only where the pod has limits; huge pages come from the limit alone."""
    if not limits:
        return own
    asked = {n: v for n, v in resource_sums.containers(spec, requests_of).items() if n in ("cpu", "memory")}
    return {n: v for n, v in limits.items() if is_pod_level(n)} | asked | own


PLUGIN = "decoding"
_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
UNREADABLE = PodRejected(400, PLUGIN, f'Pod in version "v1" cannot be handled as a Pod: {_WRONG}')
UNREADABLE_RESULT = PodRejected(500, PLUGIN, f"Internal error occurred: {_WRONG}")
"""What a webhook made of the pod cannot be read."""


def decode(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """The pod as it came, if all its quantities are some."""
    return pod if readable(pod) else UNREADABLE


def readable(pod: Pod) -> bool:
    """Is every quantity one?"""
    return all(quantity.is_quantity(value) for part in _lists(pod.spec) for value in part.values())


def _lists(spec: PodSpec) -> Iterator[ResourceList]:
    for part in (*(c.resources for c in spec.containers + spec.init_containers), spec.resources):
        yield requests_of(part)
        yield limits_of(part)
    yield get(spec.overhead, {})
