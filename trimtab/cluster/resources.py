"""What does a pod ask for, and which quality of service does it get?

Sums as the scheduler makes them (k8s.io/component-helpers/resource `PodRequests`, 1.36): containers and sidecars
together, each init container beside the sidecars started before it, the larger of the two, pod-level resources
instead where given, overhead on top. Numbers are the scheduler's: millicores for cpu, whole units for the rest.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, ResourceList, UnsetType, get
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.quantity import Written

Amounts = dict[str, int]
"""Resource name → the scheduler's number (`quantity.of`)."""

POD_LEVEL = ("cpu", "memory")
"""What `spec.resources` may name, hugepages-* aside (KEP-2837)."""


class QoS(StrEnum):
    """The quality of service class, by Kubernetes' own rule."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Role(StrEnum):
    """What a container is in its pod."""

    MAIN = "main"
    INIT = "init"
    SIDECAR = "sidecar"
    """An init container with restartPolicy Always: it runs as long as the pod does."""


def role(container: Container, *, init: bool) -> Role:
    if not init:
        return Role.MAIN
    return Role.SIDECAR if container.restart_policy == "Always" else Role.INIT


def requests_of(resources: Resources | UnsetType) -> ResourceList:
    """The requests written; empty where there are none."""
    return {} if resources is UNSET else get(resources.requests, {})


def limits_of(resources: Resources | UnsetType) -> ResourceList:
    """The limits written; empty where there are none."""
    return {} if resources is UNSET else get(resources.limits, {})


def amounts(written: Mapping[str, Written]) -> Amounts:
    return {name: quantity.of(name, value) for name, value in written.items()}


def same(a: Mapping[str, Written], b: Mapping[str, Written]) -> bool:
    """Kubernetes' semantic equality: the same resources, quantities compared by value."""
    return a.keys() == b.keys() and all(quantity.same(a[name], b[name]) for name in a)


def plus(*parts: Mapping[str, int]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, 0) + number
    return total


def larger(a: Mapping[str, int], b: Mapping[str, int]) -> Amounts:
    """The larger of each resource."""
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in a.keys() | b.keys()}


def pod_requests(spec: PodSpec) -> Amounts:
    """What the scheduler reserves for this pod, overhead included."""
    return plus(requests_without_overhead(spec), amounts(get(spec.overhead, {})))


def below_zero(spec: PodSpec) -> Written | None:
    """A request, or an overhead, of less than nothing; None where there is none. Raises NotAQuantity."""
    asked = (spec.resources, *(container.resources for container in all_containers(spec)))
    parts = (*map(requests_of, asked), get(spec.overhead, {}))
    return next((text for part in parts for text in part.values() if quantity.parse(text) < 0), None)


def requests_without_overhead(spec: PodSpec) -> Amounts:
    """What the pod's own containers ask for together: what a LimitRange of type Pod bounds."""
    return _whole(spec, requests_of)


def pod_limits(spec: PodSpec) -> Amounts:
    """What the pod may use at the most, where every container says so; overhead is added to what is not zero."""
    found = limits_without_overhead(spec)
    overhead = amounts(get(spec.overhead, {}))
    return {name: number + overhead.get(name, 0) if number else 0 for name, number in found.items()}


def limits_without_overhead(spec: PodSpec) -> Amounts:
    """The containers' limits together, of those that have one."""
    return _whole(spec, limits_of)


def _whole(spec: PodSpec, read: Callable[[Resources | UnsetType], ResourceList]) -> Amounts:
    running = plus(*(amounts(read(container.resources)) for container in spec.containers))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers:
        own = amounts(read(container.resources))
        if container.restart_policy == "Always":
            sidecars = plus(sidecars, own)
            starting = larger(starting, sidecars)
        else:
            starting = larger(starting, plus(sidecars, own))
    total = larger(plus(running, sidecars), starting)
    return total | _pod_level(read(spec.resources))


def _pod_level(written: ResourceList) -> Amounts:
    return amounts({k: v for k, v in written.items() if k in POD_LEVEL or k.startswith("hugepages-")})


def qos(spec: PodSpec) -> QoS:
    """By `ComputePodQOS` (pkg/apis/core/helper/qos): only cpu and memory count, zeros count as absent."""
    parts = [spec.resources] if spec.resources is not UNSET else [c.resources for c in all_containers(spec)]
    complete, anything, above = True, False, dict.fromkeys(POD_LEVEL, 0)
    for part in parts:
        requests, limits = requests_of(part), limits_of(part)
        for name in POD_LEVEL:
            asked, limited = _positive(requests.get(name)), _positive(limits.get(name))
            complete = complete and limited > 0
            anything = anything or asked > 0 or limited > 0
            above[name] += limited - asked
    if not anything:
        return QoS.BEST_EFFORT
    return QoS.GUARANTEED if complete and not any(above.values()) else QoS.BURSTABLE


def _positive(written: Written | None) -> int:
    number = 0 if written is None else quantity.parse(written)
    return number if number > 0 else 0


def all_containers(spec: PodSpec) -> tuple[Container, ...]:
    """Init containers first, as Kubernetes lists them when it visits all."""
    return spec.init_containers + spec.containers
