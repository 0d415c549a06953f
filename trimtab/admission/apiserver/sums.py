"""What do a pod's containers come to, written as the API server writes a sum?

`resources` counts in the scheduler's numbers; messages and defaults show quantities. `Quantity.Add` (apimachinery
resource/quantity.go) keeps the notation of what it adds to, unless that is zero: "512Mi" + "1" is "536870913".
"""

import re
from collections.abc import Callable

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType
from trimtab.cluster.api.pod import PodSpec, Resources
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
    return total | {name: add(total[name], value) if name in total else value for name, value in part.items()}


def larger(total: ResourceList, part: ResourceList) -> ResourceList:
    """The larger of each resource."""
    more = {n: v for n, v in part.items() if n not in total or quantity.compare(v, total[n]) > 0}
    return total | more


def containers(spec: PodSpec, read: Read) -> ResourceList:
    """All containers, without pod-level resources and overhead.

    (`AggregateContainerRequests` and `AggregateContainerLimits`, k8s.io/component-helpers/resource/helpers.go, 0.36.)
    """
    running: ResourceList = {}
    for container in spec.containers:
        running = plus(running, read(container.resources))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in spec.init_containers:
        own = read(container.resources)
        if container.restart_policy == "Always":
            running, sidecars = plus(running, own), plus(sidecars, own)
            starting = larger(starting, sidecars)
        else:
            starting = larger(starting, plus(own, sidecars))
    return larger(running, starting)


def pod_level(name: str) -> bool:
    """May `spec.resources` name this resource (`IsSupportedPodLevelResource`)?"""
    return name in ("cpu", "memory") or name.startswith("hugepages-")
