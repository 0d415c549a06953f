"""What do a pod's containers come to, written as the API server writes a sum?

`resources` counts in the scheduler's numbers; messages and defaults show quantities. `Quantity.Add` (apimachinery
resource/quantity.go) keeps the notation of what it adds to, unless that is zero: "512Mi" + "1" is "536870913".

Which quantity does the API server keep?

Nothing finer than a thousandth: `SetDefaults_ResourceList` (pkg/apis/core/v1/defaults.go, 1.36) rounds up, in pods as
in LimitRanges, quotas and runtime classes. "250u" of cpu is stored as 1m. It is the last of the defaults: what is made
of other fields (a pod-level request of the containers') is made of them unrounded.
"""

import re
from collections.abc import Callable

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.quantity import NANO, Written

Read = Callable[[Resources | UnsetType], ResourceList]
"""Requests or limits of a container: `resources.requests_of`, `resources.limits_of`."""

_EXPONENT = re.compile(r".*[eE][+-]?\d+")


def add(a: Written, b: Written) -> str:
    """The sum, in the notation of `a`, or of `b` where `a` is zero."""
    first = quantity.parse(a)
    return _write(first + quantity.parse(b), like=str(a if first else b))


def _write(nano: int, like: str) -> str:
    if like.endswith("i") and nano % NANO == 0 and abs(nano) >= 1024 * NANO:
        return quantity.memory_signed(nano // NANO)
    return quantity.canonical(f"{nano}e-9" if _EXPONENT.fullmatch(like) else f"{nano}n")


def plus(total: ResourceList, part: ResourceList) -> ResourceList:
    """Both together, resource by resource."""
    found = dict(total)
    _add_to(found, part)
    return found


def larger(total: ResourceList, part: ResourceList) -> ResourceList:
    """The larger of each resource."""
    found = dict(total)
    _raise_to(found, part)
    return found


def _add_to(total: ResourceList, part: ResourceList) -> None:
    for name, value in part.items():
        total[name] = add(total[name], value) if name in total else value


def _raise_to(total: ResourceList, part: ResourceList) -> None:
    for name, value in part.items():
        if name not in total or quantity.compare(value, total[name]) > 0:
            total[name] = value


def containers(spec: PodSpec, read: Read) -> ResourceList:
    """All containers, without pod-level resources and overhead.

    (`AggregateContainerRequests` and `AggregateContainerLimits`, k8s.io/component-helpers/resource/helpers.go, 0.36.)
    An init container is compared by the resources it names: of the others the sidecars before it ask for as much as
    when they were compared themselves.
    """
    running: ResourceList = {}
    for container in spec.containers:
        _add_to(running, read(container.resources))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in spec.init_containers:
        own = read(container.resources)
        if container.restart_policy == "Always":
            _add_to(running, own)
            _add_to(sidecars, own)
            _raise_to(starting, {name: sidecars[name] for name in own})
        else:
            _raise_to(starting, {n: add(v, sidecars[n]) if n in sidecars else v for n, v in own.items()})
    return larger(running, starting)


_MICRO = 10**6


def stored(written: ResourceList) -> ResourceList:
    """Quantities as they are kept; the very same where nothing has to be rounded."""
    if all(map(_storable, written.values())):
        return written
    return {name: value if _storable(value) else f"{quantity.milli(value)}m" for name, value in written.items()}


def rounded(spec: PodSpec) -> PodSpec:
    """Containers, pod-level resources and overhead."""
    return change(
        spec,
        containers=tuple(map(_container, spec.containers)),
        init_containers=tuple(map(_container, spec.init_containers)),
        resources=_resources(spec.resources),
        overhead=_list(spec.overhead),
    )


def _storable(value: Written) -> bool:
    return quantity.parse(value) % _MICRO == 0


def _container(container: Container) -> Container:
    resources = _resources(container.resources)
    return container if resources is container.resources else change(container, resources=resources)


def _resources(resources: Resources | UnsetType) -> Resources | UnsetType:
    if isinstance(resources, UnsetType):
        return resources
    requests, limits = _list(resources.requests), _list(resources.limits)
    if requests is resources.requests and limits is resources.limits:
        return resources
    return change(resources, requests=requests, limits=limits)


def _list(written: ResourceList | UnsetType) -> ResourceList | UnsetType:
    return written if isinstance(written, UnsetType) else stored(written)
