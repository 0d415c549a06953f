"""Validates the resources of containers and pods, and pod overhead, with the API server's messages."""

from collections.abc import Callable, Iterator

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.validate_names import format_invalid, qualified_name_errors
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, value_or
from trimtab.cluster.api.pod import PodSpec, Resources
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import is_pod_level, limits_of, requests_of

_NameValidator = Callable[[str, str], Iterator[str]]
_STANDARD = {"cpu", "memory", "ephemeral-storage"}
_QUOTA_RESOURCES = {f"{side}.{part}" for side in ("requests", "limits") for part in _STANDARD} | {
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers"),
}


def container_resource_errors(field: str, resources: Resources | None) -> Iterator[str]:
    """Yields the errors of resource names and quantities, and of requests above their limit."""
    if resources is not None and not _is_trivially_valid(requests_of(resources), limits_of(resources)):
        yield from _requirement_errors(field, requests_of(resources), limits_of(resources), _container_name_errors)


def _is_trivially_valid(requests: ResourceList, limits: ResourceList) -> bool:
    """Returns whether only standard resource names are used and no request exceeds its limit, as in nearly every
    container."""
    for name, value in limits.items():
        if name not in _STANDARD or quantity.parse(value) < 0:
            return False
    for name, value in requests.items():
        if (
            name not in _STANDARD
            or quantity.parse(value) < 0
            or quantity.compare_quantities(value, limits.get(name, value)) > 0
        ):
            return False
    return True


def overhead_errors(field: str, overhead: ResourceList) -> Iterator[str]:
    """Yields the errors of overhead. It is validated like the limits of a container, and the messages name a field of
    `limits`."""
    yield from _requirement_errors(field, {}, overhead, _container_name_errors)


def pod_resource_errors(spec: PodSpec) -> Iterator[str]:
    """Yields the errors of pod-level resources (KEP-2837): only cpu, memory and huge pages are allowed, and they must
    be at least the sum of the containers' requests."""
    if isinstance(spec.resources, UnsetType):
        return
    if not isinstance(spec.os, UnsetType) and spec.os.name == "windows":
        yield "spec.resources: Forbidden: may not be set for a windows pod"
        return
    requests, limits = requests_of(spec.resources), limits_of(spec.resources)
    yield from _requirement_errors("spec.resources", requests, limits, _pod_name_errors)
    yield from _sum_errors(spec, requests, limits)


def _requirement_errors(
    field: str, requests: ResourceList, limits: ResourceList, validate_name: _NameValidator
) -> Iterator[str]:
    for name, value in limits.items():
        yield from _limit_errors(f"{field}.limits[{name}]", name, value, validate_name)
    for name, value in requests.items():
        yield from validate_name(f"{field}.requests[{name}]", name)
        yield from _amount_errors(f"{field}.requests[{name}]", name, value)
        yield from _compare_with_limit(field, name, value, limits.get(name))
        yield from _page_size_errors(f"{field}.requests[{name}]", name, value)
    names = requests.keys() | limits.keys()
    if any(map(_is_hugepages, names)) and not names & {"cpu", "memory"}:
        yield f"{field}: Forbidden: HugePages require cpu or memory"


def _limit_errors(field: str, name: str, value: Written, validate_name: _NameValidator) -> Iterator[str]:
    yield from validate_name(field, name)
    yield from _amount_errors(field, name, value)
    yield from _page_size_errors(field, name, value)


def _amount_errors(field: str, name: str, value: Written) -> Iterator[str]:
    if quantity.parse(value) < 0:
        yield format_invalid(field, quantity.canonical_form(value), "must be greater than or equal to 0")
    if _is_extended(name) and quantity.to_milli(value) % 1000:
        yield format_invalid(field, quantity.canonical_form(value), "must be an integer")


def _compare_with_limit(field: str, name: str, request: Written, limit: Written | None) -> Iterator[str]:
    is_fixed = _is_hugepages(name) or not _is_native(name)
    if limit is None:
        if is_fixed:
            yield f"{field}.limits: Required value: Limit must be set for non overcommitable resources"
        return
    difference = quantity.compare_quantities(request, limit)
    if difference and (is_fixed or difference > 0):
        relation = "equal to" if is_fixed else "less than or equal to"
        why = f"must be {relation} {name} limit of {quantity.canonical_form(limit)}"
        yield format_invalid(f"{field}.requests", quantity.canonical_form(request), why)


def _page_size_errors(field: str, name: str, value: Written) -> Iterator[str]:
    if not _is_hugepages(name):
        return
    size = name.removeprefix("hugepages-")
    if not quantity.is_quantity(size) or quantity.parse(size) <= 0 or quantity.parse(value) % quantity.parse(size):
        shown = quantity.canonical_form(value)
        yield format_invalid(field, shown, f"{shown} is not positive integer multiple of {name}")


def _sum_errors(spec: PodSpec, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    """Yields the errors of containers that exceed the pod-level resources.

    The containers' requests together must be at most the pod's request. Each container's limit must be at most the
    pod's limit; for huge pages, the containers' limits together must be too."""
    for name, total in resource_sums.sum_containers(spec, requests_of).items():
        if name in requests and quantity.compare_quantities(total, requests[name]) > 0:
            yield _less_than_sum_error(f"spec.resources.requests[{name}]", requests[name], "requests", total)
    for name, total in resource_sums.sum_containers(spec, limits_of).items():
        if _is_hugepages(name) and name in limits and quantity.compare_quantities(total, limits[name]) > 0:
            yield _less_than_sum_error(f"spec.resources.limits[{name}]", limits[name], "limits", total)
    for index, container in enumerate(spec.containers):
        for name, value in limits_of(value_or(container.resources, Resources())).items():
            if name in limits and quantity.compare_quantities(value, limits[name]) > 0:
                why = f"must be less than or equal to pod limits of {quantity.canonical_form(limits[name])}"
                yield format_invalid(
                    f"spec.resources.containers[{index}][{name}].limits", quantity.canonical_form(value), why
                )


def _less_than_sum_error(field: str, pod_level: Written, side: str, total: Written) -> str:
    why = f"must be greater than or equal to aggregate container {side} of {quantity.canonical_form(total)}"
    return format_invalid(field, quantity.canonical_form(pod_level), why)


def _standard_name_errors(field: str, name: str) -> Iterator[str]:
    yield from (format_invalid(field, name, why) for why in qualified_name_errors(name))
    if "/" not in name and not (_is_hugepages(name) or name in _STANDARD | _QUOTA_RESOURCES):
        yield format_invalid(field, name, "must be a standard resource type or fully qualified")


def _container_name_errors(field: str, name: str) -> Iterator[str]:
    if name in _STANDARD:
        return
    yield from _standard_name_errors(field, name)
    if "/" not in name and not _is_hugepages(name):
        yield format_invalid(field, name, "must be a standard resource for containers")
    # `ValidateContainerResourceName`: native names are those without a domain or in kubernetes.io; all others are
    # extended resources.
    elif not _is_native(name) and not _is_extended(name):
        yield format_invalid(field, name, "doesn't follow extended resource name standard")


def _pod_name_errors(field: str, name: str) -> Iterator[str]:
    errors = list(_standard_name_errors(field, name))
    yield from errors
    if not errors and not is_pod_level(name):
        yield f'{field}: Unsupported value: "{name}": supported values: "cpu", "hugepages-", "memory"'


def _is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return (
        not _is_native(name) and not name.startswith("requests.") and not any(qualified_name_errors(f"requests.{name}"))
    )
