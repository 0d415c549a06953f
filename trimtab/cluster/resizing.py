"""What does a pod ask for while it is resized in place?

The scheduler counts the largest of what a container asks for, what its node has set aside for it, and what it really
has (component-helpers `PodRequests` with status, 1.36): a pod that shrinks still holds its old room, one that grows
counts its new one. So it is with sidecars, and with a pod that asks as a whole; an init container that ends has nothing
to resize. The scheduler compares sums over containers; ours can only be larger.
"""

from collections.abc import Iterable, Mapping

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, change, get
from trimtab.cluster.api.pod import Container, ContainerStatus, Pod, PodStatus, Resources
from trimtab.cluster.quantity import NotAQuantity, Written
from trimtab.cluster.resources import requests_of

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
    if not any(found.allocated_resources or found.resources for found in statuses):
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
        return quantity.write(name, max(0, quantity.of(name, held) - quantity.of(name, overhead[name])))
    except NotAQuantity:
        return held


def _largest(asked: ResourceList, held: ResourceList) -> ResourceList:
    return asked | {name: _more(name, asked, held) for name in held}


def _more(name: str, asked: ResourceList, held: ResourceList) -> Written:
    """What cannot be read stays as it is asked: it is told where requests are summed."""
    if name not in asked:
        return held[name]
    try:
        return held[name] if quantity.of(name, held[name]) > quantity.of(name, asked[name]) else asked[name]
    except NotAQuantity:
        return asked[name]
