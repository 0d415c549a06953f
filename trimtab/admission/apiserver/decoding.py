"""Can the API server read this pod, and which quantity does it keep?

Every quantity is parsed on the way in, and rounded up to thousandths (`SetDefaults_ResourceList`,
pkg/apis/core/v1/defaults.go, 1.36): "250u" of cpu is stored as 1m. Text that is no quantity is a 400; in what a
webhook made of the pod it is a 500 that `failurePolicy: Ignore` does not cover.
"""

from collections.abc import Iterator

from trimtab.admission.apiserver.outcome import Refused
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change, get
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy.facts import Facts

PLUGIN = "decoding"
_MICRO = 10**6
_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
UNREADABLE = Refused(400, PLUGIN, f'Pod in version "v1" cannot be handled as a Pod: {_WRONG}')
UNREADABLE_RESULT = Refused(500, PLUGIN, f"Internal error occurred: {_WRONG}")
"""What a webhook made of the pod cannot be read."""


def decode(pod: Pod, facts: Facts, namespace: str) -> Pod | Refused:
    """The pod with quantities that can be stored; otherwise as it came."""
    if not readable(pod):
        return UNREADABLE
    if all(_storable(value) for part in _lists(pod.spec) for value in part.values()):
        return pod
    return change(pod, spec=_rounded(pod.spec))


def readable(pod: Pod) -> bool:
    """Is every quantity one?"""
    return all(quantity.is_quantity(value) for part in _lists(pod.spec) for value in part.values())


def _lists(spec: PodSpec) -> Iterator[ResourceList]:
    for part in (*(c.resources for c in spec.containers + spec.init_containers), spec.resources):
        yield requests_of(part)
        yield limits_of(part)
    yield get(spec.overhead, {})


def stored(written: ResourceList) -> ResourceList:
    """Quantities as the API server keeps them in any object, LimitRanges, quotas and runtime classes too."""
    if all(map(_storable, written.values())):
        return written
    return {name: value if _storable(value) else f"{quantity.milli(value)}m" for name, value in written.items()}


def _storable(value: Written) -> bool:
    return quantity.parse(value) % _MICRO == 0


def _rounded(spec: PodSpec) -> PodSpec:
    return change(
        spec,
        containers=tuple(map(_container, spec.containers)),
        init_containers=tuple(map(_container, spec.init_containers)),
        resources=_resources(spec.resources),
        overhead=_list(spec.overhead),
    )


def _container(container: Container) -> Container:
    return change(container, resources=_resources(container.resources))


def _resources(resources: Resources | UnsetType) -> Resources | UnsetType:
    if isinstance(resources, UnsetType):
        return resources
    return change(resources, requests=_list(resources.requests), limits=_list(resources.limits))


def _list(written: ResourceList | UnsetType) -> ResourceList | UnsetType:
    return written if isinstance(written, UnsetType) else stored(written)
