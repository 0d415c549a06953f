"""What does a pod ask for, and which quality of service does it get?

Sums as the scheduler makes them (k8s.io/component-helpers/resource `PodRequests`, 1.36): containers and sidecars
together, each init container beside the sidecars started before it, the larger of the two, pod-level resources
instead where given, overhead on top. Numbers are the scheduler's: millicores for cpu, whole units for the rest.

What does a pod ask for while it is resized in place?

The scheduler counts the largest of what a container asks for, what its node has set aside for it, and what it really
has (component-helpers `PodRequests` with status, 1.36): a pod that shrinks still holds its old room, one that grows
counts its new one. So it is with sidecars, and with a pod that asks as a whole; an init container that ends has nothing
to resize. The scheduler compares sums over containers; ours can only be larger.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, ResourceList, UnsetType, change, get
from trimtab.cluster.api.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, Resources
from trimtab.cluster.quantity import NotAQuantity, Written

Amounts = dict[str, int]
"""Resource name → the scheduler's number (`quantity.of`)."""


class GrowingAmounts(Amounts):
    """What a pod may come to ask for where it is, without being made again: a VPA resizes it on its node."""


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
    return {} if resources is UNSET or resources.requests is UNSET else resources.requests


def limits_of(resources: Resources | UnsetType) -> ResourceList:
    """The limits written; empty where there are none."""
    return {} if resources is UNSET or resources.limits is UNSET else resources.limits


def amounts(written: Mapping[str, Written]) -> Amounts:
    return {name: quantity.scheduler_value(name, value) for name, value in written.items()}


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
    found = requests_without_overhead(spec)
    return found if spec.overhead is UNSET else plus(found, amounts(spec.overhead))


def below_zero(spec: PodSpec) -> Written | None:
    """A request, or an overhead, of less than nothing; None where there is none. Raises NotAQuantity."""
    asked = (spec.resources, *(container.resources for container in all_containers(spec)))
    parts = (*map(requests_of, asked), get(spec.overhead, {}))
    return next((text for part in parts for text in part.values() if quantity.parse(text) < 0), None)


def requests_without_overhead(spec: PodSpec, only: str | None = None) -> Amounts:
    """What the pod's own containers ask for together, of all resources or of one: what a LimitRange of type Pod
    bounds."""
    global _last_requests
    if only is not None:
        return _pod_amounts(spec, _of_one(requests_of, only))
    # A review asks several times for the pod as it came and as it will be. Specs never change, so identity is enough.
    for known, amounts_of_known in _last_requests:
        if known is spec:
            return amounts_of_known
    found = _pod_amounts(spec, requests_of)
    _last_requests = ((spec, found), *_last_requests[:1])
    return found


_last_requests: tuple[tuple[PodSpec, Amounts], ...] = ()
"""The last two specs and what they ask for; a tuple, so that another thread sees all of it or none."""


def pod_limits(spec: PodSpec) -> Amounts:
    """What the pod may use at the most, where every container says so; overhead is added to what is not zero."""
    found = limits_without_overhead(spec)
    overhead = amounts(get(spec.overhead, {}))
    return {name: number + overhead.get(name, 0) if number else 0 for name, number in found.items()}


def limits_without_overhead(spec: PodSpec, only: str | None = None) -> Amounts:
    """The containers' limits together, of those that have one; of all resources or of one."""
    return _pod_amounts(spec, limits_of if only is None else _of_one(limits_of, only))


_Read = Callable[[Resources | UnsetType], ResourceList]
"""Requests or limits."""


def _of_one(read: _Read, name: str) -> _Read:
    """The same of one resource: a pod may name hundreds that nobody asks for."""

    def read_one(resources: Resources | UnsetType) -> ResourceList:
        written = read(resources)
        return {name: written[name]} if name in written else {}

    return read_one


def _pod_amounts(spec: PodSpec, read: _Read) -> Amounts:
    running: Amounts = {}
    for container in spec.containers:
        if container.resources is UNSET:
            continue
        for name, value in read(container.resources).items():
            running[name] = running.get(name, 0) + quantity.scheduler_value(name, value)
    if not spec.init_containers and spec.resources is UNSET:
        return {name: max(number, 0) for name, number in running.items()}
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers:
        # By the resources it names alone: of the others the sidecars before it ask for no more than they did.
        for name, number in amounts(read(container.resources)).items():
            together = sidecars.get(name, 0) + number
            starting[name] = max(starting.get(name, 0), together)
            if container.restart_policy == "Always":
                sidecars[name] = together
    total = larger(plus(running, sidecars), starting)
    return total | _pod_level(read(spec.resources))


def _pod_level(written: ResourceList) -> Amounts:
    return amounts({name: value for name, value in written.items() if is_pod_level(name)})


def is_pod_level(name: str) -> bool:
    """May `spec.resources` name this resource (`IsSupportedPodLevelResource`)?"""
    return name in POD_LEVEL or name.startswith("hugepages-")


def qos(spec: PodSpec) -> QoS:
    """By `ComputePodQOS` (pkg/apis/core/helper/qos): only cpu and memory count, zeros count as absent."""
    parts = [spec.resources] if spec.resources is not UNSET else [c.resources for c in all_containers(spec)]
    # Sums of all parts, cpu and memory each: asked for, limited.
    is_complete, asked_cpu, limited_cpu, asked_memory, limited_memory = True, 0, 0, 0, 0
    for part in parts:
        if part is UNSET:  # most of a pod of many containers
            is_complete = False
            continue
        requests, limits = requests_of(part), limits_of(part)
        cpu = _positive(limits["cpu"]) if "cpu" in limits else 0
        memory = _positive(limits["memory"]) if "memory" in limits else 0
        is_complete = is_complete and cpu > 0 and memory > 0
        limited_cpu, limited_memory = limited_cpu + cpu, limited_memory + memory
        if "cpu" in requests:
            asked_cpu += _positive(requests["cpu"])
        if "memory" in requests:
            asked_memory += _positive(requests["memory"])
    if not (asked_cpu or limited_cpu or asked_memory or limited_memory):
        return QoS.BEST_EFFORT
    is_guaranteed = is_complete and (asked_cpu, asked_memory) == (limited_cpu, limited_memory)
    return QoS.GUARANTEED if is_guaranteed else QoS.BURSTABLE


def _positive(written: Written) -> int:
    number = quantity.parse(written)
    return number if number > 0 else 0


def all_containers(spec: PodSpec) -> tuple[Container, ...]:
    """Init containers first, as Kubernetes lists them when it visits all."""
    return spec.init_containers + spec.containers


Held = Mapping[str, tuple[ResourceList, ...]]
"""Container → what its node has set aside for it, and what it really has; either may be empty."""


def resized(pod: Pod) -> Pod:
    """With the largest requests; the pod itself where nothing is under way."""
    status, spec = pod.status, pod.spec
    statuses: tuple[ContainerStatus | PodStatus, ...] = (
        *status.container_statuses,
        *status.init_container_statuses,
        status,
    )
    for found in statuses:
        if found.allocated_resources or found.resources:
            break
    else:
        return pod
    held, beside = _held(status.container_statuses), _held(status.init_container_statuses)
    sidecars = [container for container in spec.init_containers if container.restart_policy == "Always"]
    whole = _whole(pod)
    apart = any(_differs(c, held) for c in spec.containers) or any(_differs(c, beside) for c in sidecars)
    if not apart and whole is None:
        return pod
    mains = tuple(_larger(container, held) for container in spec.containers)
    inits = tuple(_larger(c, beside) if c in sidecars else c for c in spec.init_containers)
    resources = spec.resources if whole is None else change(get(spec.resources, Resources()), requests=whole)
    return change(pod, spec=change(spec, containers=mains, init_containers=inits, resources=resources))


def _held(statuses: Iterable[ContainerStatus]) -> Held:
    return {found.name: (get(found.allocated_resources, {}), requests_of(found.resources)) for found in statuses}


def _differs(container: Container, held: Held) -> bool:
    """As written: the API server and the kubelet write equal amounts alike."""
    asked = requests_of(container.resources)
    return any(found and found != asked for found in held.get(container.name, ()))


def _larger(container: Container, held: Held) -> Container:
    both = requests_of(container.resources)
    for found in held.get(container.name, ()):
        both = _largest(both, found)
    return change(container, resources=change(get(container.resources, Resources()), requests=both))


def _whole(pod: Pod) -> ResourceList | None:
    """What the pod as a whole asks for or holds; None where it asks as its containers do, or holds no more.

    In its status overhead is included.
    """
    asked, status, overhead = requests_of(pod.spec.resources), pod.status, get(pod.spec.overhead, {})
    if not asked:
        return None
    found = asked
    for held in (get(status.allocated_resources, {}), requests_of(status.resources)):
        found = _largest(found, {name: _less(name, held[name], overhead) for name in held if name in asked})
    return None if found == asked else found


def _less(name: str, held: Written, overhead: ResourceList) -> Written:
    if name not in overhead:
        return held
    try:
        return quantity.format_quantity(
            name, max(0, quantity.scheduler_value(name, held) - quantity.scheduler_value(name, overhead[name]))
        )
    except NotAQuantity:
        return held


def _largest(asked: ResourceList, held: ResourceList) -> ResourceList:
    return asked | {name: _more(name, asked, held) for name in held}


def _more(name: str, asked: ResourceList, held: ResourceList) -> Written:
    """What cannot be read stays as it is asked: it is told where requests are summed."""
    if name not in asked:
        return held[name]
    try:
        return (
            held[name]
            if quantity.scheduler_value(name, held[name]) > quantity.scheduler_value(name, asked[name])
            else asked[name]
        )
    except NotAQuantity:
        return asked[name]
