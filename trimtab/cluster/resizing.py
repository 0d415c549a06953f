"""What does a pod ask for while it is resized in place?

The scheduler counts the larger of what a container asks for and what its node has set aside for it (component-helpers
`PodRequests` with status, 1.36): a pod that shrinks still holds its old room, one that grows counts its new one. So it
is with sidecars; an init container that ends has nothing to resize.
"""

from collections.abc import Mapping

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change, get
from trimtab.cluster.api.pod import Container, Pod, Resources
from trimtab.cluster.quantity import NotAQuantity

Held = Mapping[str, ResourceList | UnsetType]
"""Container → what its node has set aside for it."""


def resized(pod: Pod) -> Pod:
    """With the larger requests; the pod itself where nothing is under way."""
    status, spec = pod.status, pod.spec
    if not any(found.allocated_resources for found in (*status.container_statuses, *status.init_container_statuses)):
        return pod
    held = {found.name: found.allocated_resources for found in status.container_statuses}
    beside = {found.name: found.allocated_resources for found in status.init_container_statuses}
    sidecars = [container for container in spec.init_containers if container.restart_policy == "Always"]
    if not any(_differs(c, held) for c in spec.containers) and not any(_differs(c, beside) for c in sidecars):
        return pod
    mains = tuple(_larger(container, held) for container in spec.containers)
    inits = tuple(_larger(c, beside) if c in sidecars else c for c in spec.init_containers)
    return change(pod, spec=change(spec, containers=mains, init_containers=inits))


def _differs(container: Container, allocated: Held) -> bool:
    """As written: the API server and the kubelet write equal amounts alike."""
    found = allocated.get(container.name)
    return bool(found) and not isinstance(found, UnsetType) and found != _asked(container)


def _asked(container: Container) -> ResourceList:
    resources = container.resources
    return {} if isinstance(resources, UnsetType) else get(resources.requests, {})


def _larger(container: Container, allocated: Held) -> Container:
    asked, held = _asked(container), get(allocated.get(container.name) or {}, {})
    both = {name: _more(name, asked, held) for name in (*asked, *(name for name in held if name not in asked))}
    return change(container, resources=change(get(container.resources, Resources()), requests=both))


def _more(name: str, asked: ResourceList, held: ResourceList) -> object:
    """What cannot be read stays as it is asked: it is told where requests are summed."""
    if name not in asked or name not in held:
        return asked.get(name, held.get(name))
    try:
        return held[name] if quantity.of(name, held[name]) > quantity.of(name, asked[name]) else asked[name]
    except NotAQuantity:
        return asked[name]
