"""What does the API fill in before anybody looks, and again after every webhook that changed the pod?

`SetDefaults_Pod` and `SetDefaults_PodSpec` (pkg/apis/core/v1/defaults.go, 1.36), for the fields our shapes name. Only
for pods: in a Deployment's template a request is not made of its limit.
"""

from trimtab.admission.apiserver import rounding, sums
from trimtab.admission.apiserver.outcome import Refused
from trimtab.cluster.api.meta import ResourceList, UnsetType, change, get
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy.facts import Facts

PLUGIN = "defaulting"


def default(pod: Pod, facts: Facts, namespace: str) -> Pod | Refused:
    """The pod with requests from limits, pod-level requests, and the fields every stored pod has. Never refuses."""
    spec = change(
        pod.spec,
        containers=tuple(_container(c, pod.spec) for c in pod.spec.containers),
        init_containers=tuple(_container(c, pod.spec) for c in pod.spec.init_containers),
        restart_policy=pod.spec.restart_policy or "Always",
        scheduler_name=pod.spec.scheduler_name or "default-scheduler",
        termination_grace_period_seconds=_grace(pod.spec),
    )
    return change(pod, spec=rounding.rounded(_pod_level(spec)))


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
    found = sums.containers(spec, limits_of).items()
    return limits | {n: v for n, v in found if n.startswith("hugepages-") and n not in named}


def _requests(spec: PodSpec, own: ResourceList, limits: ResourceList) -> ResourceList:
    """`defaultPodRequests`: only where the pod has limits; huge pages come from the limit alone."""
    if not limits:
        return own
    asked = {n: v for n, v in sums.containers(spec, requests_of).items() if n in ("cpu", "memory")}
    return {n: v for n, v in limits.items() if sums.pod_level(n)} | asked | own
