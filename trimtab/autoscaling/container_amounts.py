"""Reads the requests, limits and quality of service of containers and pod templates, as numbers in millicores and
bytes."""

from collections.abc import Iterable
from enum import StrEnum

from trimtab.cluster.api.meta import ResourceList, UnsetType, value_or
from trimtab.cluster.api.pod import Container, PodSpec
from trimtab.cluster.quantity import NotAQuantity, Written, format_quantity, scheduler_value

CPU, MEMORY = "cpu", "memory"
RESOURCES = (CPU, MEMORY)
ALWAYS = "Always"


class QualityOfService(StrEnum):
    """Kubernetes' quality of service classes (core/v1 PodQOSClass)."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def read_amount(resource: str, written: Written | None) -> int | None:
    """Returns an amount in millicores or bytes, or None if it is absent or is not a quantity."""
    if written is None:
        return None
    try:
        return scheduler_value(resource, written)
    except NotAQuantity:
        return None


def amount_in(amounts: ResourceList | UnsetType, resource: str) -> int | None:
    """Returns the amount of a resource in a list of amounts, or None if it has none."""
    return read_amount(resource, value_or(amounts, {}).get(resource))


def request_of(container: Container, resource: str) -> int | None:
    """Returns the container's request. If it has none, returns its limit, which the API server would set as the
    request; None if it has neither."""
    resources = value_or(container.resources, None)
    if resources is None:
        return None
    request = amount_in(resources.requests, resource)
    return request if request is not None else amount_in(resources.limits, resource)


def limit_of(container: Container, resource: str) -> int | None:
    """Returns the container's limit, or None if it has none."""
    resources = value_or(container.resources, None)
    return None if resources is None else amount_in(resources.limits, resource)


def running_containers(spec: PodSpec) -> tuple[Container, ...]:
    """Returns the containers that run for the pod's whole life: its main containers and its sidecars."""
    return (*spec.containers, *(c for c in spec.init_containers if c.restart_policy == ALWAYS))


def running_request(spec: PodSpec, resource: str) -> int:
    """Returns what a pod requests while it runs, without overhead: its pod-level request, otherwise the sum of its main
    containers and sidecars."""
    whole = value_or(spec.resources, None)
    pod_level = None if whole is None else amount_in(whole.requests, resource)
    if pod_level is not None:
        return pod_level
    total = sum(request_of(container, resource) or 0 for container in running_containers(spec))
    # With a pod-level limit alone, the API server takes the sum or, without any request, the limit.
    return total or (0 if whole is None else amount_in(whole.limits, resource) or 0)


def vpa_containers(spec: PodSpec) -> tuple[Container, ...]:
    """Returns the containers whose requests a VPA recommends and sets: its recommender and its webhook leave out init
    containers, sidecars included."""
    return spec.containers


def quality_of(spec: PodSpec) -> QualityOfService:
    """Returns the pod's quality of service class (kubectl/pkg/util/qos `ComputePodQOS`):

    - BestEffort: no container, init container included, has a request or limit of cpu or memory above zero;
    - Guaranteed: every container has limits of both cpu and memory, and its requests equal its limits;
    - Burstable: any other pod.

    Pod-level requests and limits count like those of one container.
    """
    whole = value_or(spec.resources, None)
    parts = [Container(name="", resources=whole)] if whole is not None else [*spec.containers, *spec.init_containers]
    amounts = [(request_of(part, r), limit_of(part, r)) for part in parts for r in RESOURCES]
    if not any(request or limit for request, limit in amounts):
        return QualityOfService.BEST_EFFORT
    if all(limit and request == limit for request, limit in amounts):
        return QualityOfService.GUARANTEED
    return QualityOfService.BURSTABLE


def sum_requests(containers: Iterable[Container], resource: str) -> int | None:
    """Returns the sum of the requests, or None if a container has none."""
    requests = [request_of(container, resource) for container in containers]
    return None if not requests or None in requests else sum(filter(None, requests))


def format_amount(resource: str, number: float) -> str:
    """Returns an amount as messages show it: 250m, 512Mi, 1.5Gi. Memory is rounded to a whole MiB, cpu to a
    millicore."""
    if resource != MEMORY:
        return format_quantity(resource, round(number))
    mebibytes = round(number / (1 << 20))
    if mebibytes == 0:
        return format_quantity(MEMORY, round(number))
    return f"{mebibytes / 1024:g}Gi" if mebibytes >= 1024 and mebibytes % 256 == 0 else f"{mebibytes}Mi"
