"""Which quantity does the API server keep?

Nothing finer than a thousandth: `SetDefaults_ResourceList` (pkg/apis/core/v1/defaults.go, 1.36) rounds up, in pods as
in LimitRanges, quotas and runtime classes. "250u" of cpu is stored as 1m. It is the last of the defaults: what is made
of other fields (a pod-level request of the containers') is made of them unrounded.
"""

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.quantity import Written

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
