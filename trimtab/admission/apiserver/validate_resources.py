"""May a container, a pod or an overhead ask for this much of that?"""

from collections.abc import Callable, Iterator

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.validate_names import invalid, qualified
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, get
from trimtab.cluster.api.pod import PodSpec, Resources
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import is_pod_level, limits_of, requests_of

_Named = Callable[[str, str], Iterator[str]]
_STANDARD = {"cpu", "memory", "ephemeral-storage"}
_OF_QUOTAS = {f"{side}.{part}" for side in ("requests", "limits") for part in _STANDARD} | {
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers"),
}


def of_container(field: str, resources: Resources | None) -> Iterator[str]:
    """Names, quantities, and each request at most its limit."""
    if resources is not None and not _is_usual(requests_of(resources), limits_of(resources)):
        yield from _requirements(field, requests_of(resources), limits_of(resources), _container_name)


def _is_usual(requests: ResourceList, limits: ResourceList) -> bool:
    """What nearly every container asks for, and nothing wrong with it: standard names, no request above its limit."""
    for name, value in limits.items():
        if name not in _STANDARD or quantity.parse(value) < 0:
            return False
    for name, value in requests.items():
        if name not in _STANDARD or quantity.parse(value) < 0 or quantity.compare(value, limits.get(name, value)) > 0:
            return False
    return True


def of_overhead(field: str, overhead: ResourceList) -> Iterator[str]:
    """Checked as if it were a container's limits: the field in the message says so."""
    yield from _requirements(field, {}, overhead, _container_name)


def of_pod(spec: PodSpec) -> Iterator[str]:
    """Pod-level resources (KEP-2837): cpu, memory, huge pages; at least what the containers ask for together."""
    if isinstance(spec.resources, UnsetType):
        return
    if not isinstance(spec.os, UnsetType) and spec.os.name == "windows":
        yield "spec.resources: Forbidden: may not be set for a windows pod"
        return
    requests, limits = requests_of(spec.resources), limits_of(spec.resources)
    yield from _requirements("spec.resources", requests, limits, _pod_name)
    yield from _together(spec, requests, limits)


def _requirements(field: str, requests: ResourceList, limits: ResourceList, named: _Named) -> Iterator[str]:
    for name, value in limits.items():
        yield from _one(f"{field}.limits[{name}]", name, value, named)
    for name, value in requests.items():
        yield from named(f"{field}.requests[{name}]", name)
        yield from _amount(f"{field}.requests[{name}]", name, value)
        yield from _against_limit(field, name, value, limits.get(name))
        yield from _pages(f"{field}.requests[{name}]", name, value)
    every = requests.keys() | limits.keys()
    if any(map(_huge, every)) and not every & {"cpu", "memory"}:
        yield f"{field}: Forbidden: HugePages require cpu or memory"


def _one(field: str, name: str, value: Written, named: _Named) -> Iterator[str]:
    yield from named(field, name)
    yield from _amount(field, name, value)
    yield from _pages(field, name, value)


def _amount(field: str, name: str, value: Written) -> Iterator[str]:
    if quantity.parse(value) < 0:
        yield invalid(field, quantity.canonical(value), "must be greater than or equal to 0")
    if _extended(name) and quantity.milli(value) % 1000:
        yield invalid(field, quantity.canonical(value), "must be an integer")


def _against_limit(field: str, name: str, request: Written, limit: Written | None) -> Iterator[str]:
    fixed = _huge(name) or not _native(name)
    if limit is None:
        if fixed:
            yield f"{field}.limits: Required value: Limit must be set for non overcommitable resources"
        return
    more = quantity.compare(request, limit)
    if more and (fixed or more > 0):
        relation = "equal to" if fixed else "less than or equal to"
        why = f"must be {relation} {name} limit of {quantity.canonical(limit)}"
        yield invalid(f"{field}.requests", quantity.canonical(request), why)


def _pages(field: str, name: str, value: Written) -> Iterator[str]:
    if not _huge(name):
        return
    size = name.removeprefix("hugepages-")
    if not quantity.is_quantity(size) or quantity.parse(size) <= 0 or quantity.parse(value) % quantity.parse(size):
        shown = quantity.canonical(value)
        yield invalid(field, shown, f"{shown} is not positive integer multiple of {name}")


def _together(spec: PodSpec, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    """Requests: the sum at most the pod's. Limits: each container's at most the pod's; huge pages also their sum."""
    for name, total in resource_sums.containers(spec, requests_of).items():
        if name in requests and quantity.compare(total, requests[name]) > 0:
            yield _less_than_sum(f"spec.resources.requests[{name}]", requests[name], "requests", total)
    for name, total in resource_sums.containers(spec, limits_of).items():
        if _huge(name) and name in limits and quantity.compare(total, limits[name]) > 0:
            yield _less_than_sum(f"spec.resources.limits[{name}]", limits[name], "limits", total)
    for place, container in enumerate(spec.containers):
        for name, value in limits_of(get(container.resources, Resources())).items():
            if name in limits and quantity.compare(value, limits[name]) > 0:
                why = f"must be less than or equal to pod limits of {quantity.canonical(limits[name])}"
                yield invalid(f"spec.resources.containers[{place}][{name}].limits", quantity.canonical(value), why)


def _less_than_sum(field: str, own: Written, side: str, total: Written) -> str:
    why = f"must be greater than or equal to aggregate container {side} of {quantity.canonical(total)}"
    return invalid(field, quantity.canonical(own), why)


def _standard(field: str, name: str) -> Iterator[str]:
    yield from (invalid(field, name, why) for why in qualified(name))
    if "/" not in name and not (_huge(name) or name in _STANDARD | _OF_QUOTAS):
        yield invalid(field, name, "must be a standard resource type or fully qualified")


def _container_name(field: str, name: str) -> Iterator[str]:
    if name in _STANDARD:
        return
    yield from _standard(field, name)
    if "/" not in name and not _huge(name):
        yield invalid(field, name, "must be a standard resource for containers")
    elif not _native(name) and not _extended(name):
        yield invalid(field, name, "doesn't follow extended resource name standard")


def _pod_name(field: str, name: str) -> Iterator[str]:
    wrong = list(_standard(field, name))
    yield from wrong
    if not wrong and not is_pod_level(name):
        yield f'{field}: Unsupported value: "{name}": supported values: "cpu", "hugepages-", "memory"'


def _huge(name: str) -> bool:
    return name.startswith("hugepages-")


def _native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _extended(name: str) -> bool:
    return not _native(name) and not name.startswith("requests.") and not any(qualified(f"requests.{name}"))
