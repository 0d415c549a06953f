"""What does a pod ask for while it is resized in place?

The scheduler counts the larger of what a container asks for and what its node has set aside for it (component-helpers
`PodRequests` with status, 1.36): a pod that shrinks still holds its old room, one that grows counts its new one.
"""

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change, get
from trimtab.cluster.api.pod import Container, Pod, Resources
from trimtab.cluster.quantity import NotAQuantity


def resized(pod: Pod) -> Pod:
    """With the larger requests; the pod itself where nothing is under way."""
    allocated = {status.name: status.allocated_resources for status in pod.status.container_statuses}
    if not allocated or not any(_differs(container, allocated) for container in pod.spec.containers):
        return pod
    containers = tuple(_larger(container, allocated) for container in pod.spec.containers)
    return change(pod, spec=change(pod.spec, containers=containers))


def _differs(container: Container, allocated: dict[str, ResourceList | UnsetType]) -> bool:
    """As written: the API server and the kubelet write equal amounts alike."""
    found = allocated.get(container.name)
    return bool(found) and not isinstance(found, UnsetType) and found != _asked(container)


def _asked(container: Container) -> ResourceList:
    resources = container.resources
    return {} if isinstance(resources, UnsetType) else get(resources.requests, {})


def _larger(container: Container, allocated: dict[str, ResourceList | UnsetType]) -> Container:
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
