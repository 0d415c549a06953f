"""The resources that a pod requests, and its quality of service class.

Sums are computed as the scheduler computes them (k8s.io/component-helpers/resource `PodRequests`, 1.36): the requests
of containers and sidecars are added; each init container is added to the sidecars that start before it; the larger of
the two counts. Pod-level resources replace these sums where they are set, and overhead is added. Amounts are in the
scheduler's units: millicores for cpu, whole units for any other resource.

While a pod is resized in place, the scheduler counts the largest of what a container requests, what its node has
allocated to it, and what it actually has (component-helpers `PodRequests` with status, 1.36): a pod that shrinks still
counts with its old size, a pod that grows counts with its new one. A resize that the kubelet calls Infeasible never
happens on this node, so what the container requests does not count then (`IsPodResizeInfeasible`). The same holds for
sidecars and for pod-level resources; an init container that ends cannot be resized. The scheduler compares sums over
containers, whereas here each container is compared, so a sum can only be larger than the scheduler's.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, ResourceList, UnsetType, change, value_or
from trimtab.cluster.api.pod import Container, ContainerStatus, Pod, PodSpec, Resources
from trimtab.cluster.quantity import NotAQuantity, Written

Amounts = dict[str, int]
"""Resource name → amount in the scheduler's unit (`quantity.scheduler_value`)."""


class GrowingAmounts(Amounts):
    """The amounts to which a VPA that resizes the pod in place may raise its requests on its node."""


class LeastAmounts(Amounts):
    """The amounts that a pod's successor requests at least. It may request more, because the template from which its
    owner creates it is not known."""


UNKNOWN_AMOUNTS = LeastAmounts()
"""The amounts of a successor about which nothing is known."""

POD_LEVEL = ("cpu", "memory")
"""The resources that `spec.resources` may name, besides hugepages-* (KEP-2837)."""


class QoS(StrEnum):
    """The quality of service class of a pod, as Kubernetes defines it."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Role(StrEnum):
    """The role of a container in its pod."""

    MAIN = "main"
    INIT = "init"
    SIDECAR = "sidecar"
    """An init container with restartPolicy Always: it runs as long as the pod does."""


def role_of(container: Container, *, init: bool) -> Role:
    """Returns the role of a container; `init` says whether it is one of the init containers."""
    if not init:
        return Role.MAIN
    return Role.SIDECAR if container.restart_policy == "Always" else Role.INIT


def requests_of(resources: Resources | UnsetType) -> ResourceList:
    """Returns the requests as written; empty if there are none."""
    return {} if resources is UNSET or resources.requests is UNSET else resources.requests


def limits_of(resources: Resources | UnsetType) -> ResourceList:
    """Returns the limits as written; empty if there are none."""
    return {} if resources is UNSET or resources.limits is UNSET else resources.limits


def scheduler_amounts(quantities: Mapping[str, Written]) -> Amounts:
    """Returns quantities as amounts in the scheduler's units. Raises NotAQuantity."""
    return {name: quantity.scheduler_value(name, value) for name, value in quantities.items()}


def is_same_list(a: Mapping[str, Written], b: Mapping[str, Written]) -> bool:
    """Returns whether two resource lists are equal by Kubernetes' semantic equality: the same resources, quantities
    compared by value."""
    return a.keys() == b.keys() and all(quantity.is_same_quantity(a[name], b[name]) for name in a)


def sum_amounts(*parts: Mapping[str, int]) -> Amounts:
    """Returns, for each resource, the sum over all parts."""
    total: Amounts = {}
    for part in parts:
        for name, number in part.items():
            total[name] = total.get(name, 0) + number
    return total


def larger_amounts(a: Mapping[str, int], b: Mapping[str, int]) -> Amounts:
    """Returns, for each resource, the larger of the two amounts."""
    return {name: max(a.get(name, 0), b.get(name, 0)) for name in a.keys() | b.keys()}


def pod_requests(spec: PodSpec) -> Amounts:
    """Returns what the scheduler reserves for this pod, overhead included."""
    requests = requests_without_overhead(spec)
    return requests if spec.overhead is UNSET else sum_amounts(requests, scheduler_amounts(spec.overhead))


def negative_request(spec: PodSpec) -> Written | None:
    """Returns a request or an overhead that is less than zero, or None if there is none. Raises NotAQuantity."""
    all_resources = (spec.resources, *(container.resources for container in all_containers(spec)))
    parts = (*map(requests_of, all_resources), value_or(spec.overhead, {}))
    return next((text for part in parts for text in part.values() if quantity.parse(text) < 0), None)


def requests_without_overhead(spec: PodSpec, only: str | None = None) -> Amounts:
    """Returns what the pod's containers request together, for all resources or only one. It is this sum, without
    overhead, that a LimitRange of type Pod bounds."""
    global _last_requests
    if only is not None:
        return _pod_amounts(spec, _only_resource(requests_of, only))
    # A review needs the requests of the original and of the changed pod several times. Specs are immutable, so identity
    # is enough.
    for last_spec, last_amounts in _last_requests:
        if last_spec is spec:
            return last_amounts
    requests = _pod_amounts(spec, requests_of)
    _last_requests = ((spec, requests), *_last_requests[:1])
    return requests


# The last two specs with their requests; a tuple, so that another thread sees either the old or the new pair.
_last_requests: tuple[tuple[PodSpec, Amounts], ...] = ()


def pod_limits(spec: PodSpec) -> Amounts:
    """Returns the most that the pod can use, provided that every container has a limit. Overhead is added to limits
    that are not zero."""
    limits = limits_without_overhead(spec)
    overhead = scheduler_amounts(value_or(spec.overhead, {}))
    return {name: number + overhead.get(name, 0) if number else 0 for name, number in limits.items()}


def limits_without_overhead(spec: PodSpec, only: str | None = None) -> Amounts:
    """Returns the sum of the limits of those containers that have one, for all resources or only one."""
    return _pod_amounts(spec, limits_of if only is None else _only_resource(limits_of, only))


_ListReader = Callable[[Resources | UnsetType], ResourceList]
"""A function that returns the requests, or the limits, of a container's resources."""


def _only_resource(read: _ListReader, name: str) -> _ListReader:
    """Returns a function that reads a single resource, because a pod may name hundreds of resources that are not
    needed."""

    def read_one(resources: Resources | UnsetType) -> ResourceList:
        resource_list = read(resources)
        return {name: resource_list[name]} if name in resource_list else {}

    return read_one


def _pod_amounts(spec: PodSpec, read: _ListReader) -> Amounts:
    running: Amounts = {}
    for container in spec.containers:
        if container.resources is UNSET:
            continue
        for name, value in read(container.resources).items():
            # Written out instead of `plus`: this is the innermost loop of admission and planning.
            running[name] = running.get(name, 0) + quantity.scheduler_value(name, value)
    # Nearly all pods end here.
    if not spec.init_containers and spec.resources is UNSET:
        return {name: max(number, 0) for name, number in running.items()}
    sidecars: Amounts = {}
    starting: Amounts = {}
    # An init container runs while the sidecars before it run, so its requests add to theirs; init containers that end
    # run one after another, so their maximum counts (KEP-753).
    for container in spec.init_containers:
        # Only the resources that it names: of the others, the sidecars before it request no more than before.
        for name, number in scheduler_amounts(read(container.resources)).items():
            together = sidecars.get(name, 0) + number
            starting[name] = max(starting.get(name, 0), together)
            if container.restart_policy == "Always":
                sidecars[name] = together
    total = larger_amounts(sum_amounts(running, sidecars), starting)
    resource_list = read(spec.resources)
    return total | scheduler_amounts({name: value for name, value in resource_list.items() if is_pod_level(name)})


def is_pod_level(name: str) -> bool:
    """Returns whether `spec.resources` may name this resource (`IsSupportedPodLevelResource`)."""
    return name in POD_LEVEL or name.startswith("hugepages-")


def qos_class(spec: PodSpec) -> QoS:
    """Returns the quality of service class, determined as in `ComputePodQOS` (pkg/apis/core/helper/qos): only cpu and
    memory count, and a zero counts as absent."""
    parts = [spec.resources] if spec.resources is not UNSET else [c.resources for c in all_containers(spec)]
    # Sums over all parts. Written out for cpu and memory, because this runs for every pod on admission.
    is_complete, requested_cpu, limited_cpu, requested_memory, limited_memory = True, 0, 0, 0, 0
    for part in parts:
        if part is UNSET:  # the most common case in a pod with many containers
            is_complete = False
            continue
        requests, limits = requests_of(part), limits_of(part)
        cpu = max(quantity.parse(limits["cpu"]), 0) if "cpu" in limits else 0
        memory = max(quantity.parse(limits["memory"]), 0) if "memory" in limits else 0
        is_complete = is_complete and cpu > 0 and memory > 0
        limited_cpu, limited_memory = limited_cpu + cpu, limited_memory + memory
        if "cpu" in requests:
            requested_cpu += max(quantity.parse(requests["cpu"]), 0)
        if "memory" in requests:
            requested_memory += max(quantity.parse(requests["memory"]), 0)
    if not (requested_cpu or limited_cpu or requested_memory or limited_memory):
        return QoS.BEST_EFFORT
    is_guaranteed = is_complete and (requested_cpu, requested_memory) == (limited_cpu, limited_memory)
    return QoS.GUARANTEED if is_guaranteed else QoS.BURSTABLE


def all_containers(spec: PodSpec) -> tuple[Container, ...]:
    """Returns all containers, init containers first, in the order in which Kubernetes visits them."""
    return spec.init_containers + spec.containers


Held = Mapping[str, tuple[ResourceList, ...]]
"""Container → (what its node has allocated to it, what it actually has). Either may be empty."""


def with_resize(pod: Pod) -> Pod:
    """Returns the pod with the largest requests that count during its resize; the same object if no resize is under
    way."""
    status, spec = pod.status, pod.spec
    # Most pods have none of these fields: they are returned before anything is built.
    if not (status.allocated_resources or status.resources):
        for own_status in status.container_statuses + status.init_container_statuses:
            if own_status.allocated_resources or own_status.resources:
                break
        else:
            return pod
    # Whether the kubelet has found that the resize of the pod can never fit on its node.
    pending = next((c for c in status.conditions if c.type == "PodResizePending"), None)
    is_infeasible = pending is not None and pending.reason == "Infeasible"
    held_by_container, held_by_sidecar = (
        _node_amounts(status.container_statuses),
        _node_amounts(status.init_container_statuses),
    )
    sidecars = [container for container in spec.init_containers if container.restart_policy == "Always"]
    pod_level = _largest_pod_level(pod, is_infeasible)
    has_difference = any(_differs_from_spec(c, held_by_container) for c in spec.containers) or any(
        _differs_from_spec(c, held_by_sidecar) for c in sidecars
    )
    if not has_difference and pod_level is None:
        return pod
    mains = tuple(_with_largest_requests(c, held_by_container, is_infeasible) for c in spec.containers)
    inits = tuple(
        _with_largest_requests(c, held_by_sidecar, is_infeasible) if c in sidecars else c for c in spec.init_containers
    )
    resources = (
        spec.resources if pod_level is None else change(value_or(spec.resources, Resources()), requests=pod_level)
    )
    return change(pod, spec=change(spec, containers=mains, init_containers=inits, resources=resources))


def _node_amounts(statuses: Iterable[ContainerStatus]) -> Held:
    return {
        status.name: (value_or(status.allocated_resources, {}), requests_of(status.resources)) for status in statuses
    }


def _differs_from_spec(container: Container, node_amounts: Held) -> bool:
    """Returns whether the amounts on the node differ from those of the spec. They are compared as text: the API server
    and the kubelet write equal amounts the same way."""
    requests = requests_of(container.resources)
    return any(node_amount and node_amount != requests for node_amount in node_amounts.get(container.name, ()))


def _counted_requests(requests: ResourceList, actual: ResourceList, is_infeasible: bool) -> ResourceList:
    """Returns the requests of the spec that count beside the amounts on the node: of an infeasible resize, those that
    cannot be resized, provided that the status says what the container has."""
    if not is_infeasible or not actual:
        return requests
    return {name: value for name, value in requests.items() if name not in actual}


def _with_largest_requests(container: Container, node_amounts: Held, is_infeasible: bool) -> Container:
    held = node_amounts.get(container.name, ())
    actual = held[1] if held else {}
    requests = _counted_requests(requests_of(container.resources), actual, is_infeasible)
    for node_amount in held:
        requests = _merge_largest(requests, node_amount)
    return change(container, resources=change(value_or(container.resources, Resources()), requests=requests))


def _largest_pod_level(pod: Pod, is_infeasible: bool) -> ResourceList | None:
    """Returns the pod-level requests that count during a resize. Returns None if there are no pod-level requests, or if
    they are those of the spec.

    The amounts in the pod's status include overhead.
    """
    requests, status, overhead = requests_of(pod.spec.resources), pod.status, value_or(pod.spec.overhead, {})
    if not requests:
        return None
    largest = _counted_requests(requests, requests_of(status.resources), is_infeasible)
    for node_amount in (value_or(status.allocated_resources, {}), requests_of(status.resources)):
        largest = _merge_largest(
            largest,
            {name: _without_overhead(name, node_amount[name], overhead) for name in node_amount if name in requests},
        )
    return None if largest == requests else largest


def _without_overhead(name: str, node_amount: Written, overhead: ResourceList) -> Written:
    if name not in overhead:
        return node_amount
    try:
        return quantity.format_quantity(
            name, max(0, quantity.scheduler_value(name, node_amount) - quantity.scheduler_value(name, overhead[name]))
        )
    except NotAQuantity:
        return node_amount


def _merge_largest(requests: ResourceList, node_amounts: ResourceList) -> ResourceList:
    return requests | {name: _larger_quantity(name, requests, node_amounts) for name in node_amounts}


def _larger_quantity(name: str, requests: ResourceList, node_amounts: ResourceList) -> Written:
    """Returns the largest quantity of a resource among the request and the node's amounts. A node's amount that cannot
    be parsed is ignored; a request that cannot be parsed is kept, so that the sum of the requests reports it."""
    if name not in requests:
        return node_amounts[name]
    try:
        return (
            node_amounts[name]
            if quantity.scheduler_value(name, node_amounts[name]) > quantity.scheduler_value(name, requests[name])
            else requests[name]
        )
    except NotAQuantity:
        return requests[name]
