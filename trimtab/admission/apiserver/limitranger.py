"""Simulates the LimitRanger plugin: defaults for containers, and the rejection of pods outside a LimitRange's bounds.

The plugin is plugin/pkg/admission/limitranger/admission.go, 1.36. Defaults are applied per container and only to
missing amounts. The plugin's annotation lists what was set in this pass; it is never removed, so it may outlive the
LimitRange. Several LimitRanges are processed in order of name here; the server guarantees no order, and the first
default counts.

The bounds follow `minConstraint`, `maxConstraint` and `limitRequestRatioConstraint` in the same file. Errors are
ordered by min, max, ratio, and resource name; the server's order within each is random.
"""

from collections.abc import Callable, Iterator

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.outcome import PodRejected, forbid_pod
from trimtab.admission.apiserver.resource_sums import round_quantities
from trimtab.cluster import quantity
from trimtab.cluster.api.core import LimitRange, LimitRangeItem
from trimtab.cluster.api.meta import ResourceList, change, value_or
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources
from trimtab.cluster.limit_ranges import breach_of_max, breach_of_min, breach_of_ratio, ratio_of, with_defaults
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy.cluster_facts import ClusterFacts

_Constraint = Callable[[str, str, Written, Written | None, Written | None], str | None]
_canonical = quantity.canonical_form


def violated_bounds(item: LimitRangeItem, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    """Yields an error for each bound that is violated, and for each resource."""
    checks: tuple[tuple[ResourceList, _Constraint], ...] = (
        (item.min, _check_min),
        (item.max, _check_max),
        (item.max_limit_request_ratio, _check_ratio),
    )
    for bound, check in checks:
        for name in sorted(bound):
            error = check(name, item.type, bound[name], requests.get(name), limits.get(name))
            if error:
                yield error


def _check_min(name: str, kind: str, minimum: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"minimum {name} usage per {kind} is {_canonical(minimum)}"
    match breach_of_min(quantity.to_milli(minimum), _milli_or_none(request), _milli_or_none(limit)):
        case "unspecified":
            return f"{start}.  No request is specified"
        case "request":
            return f"{start}, but request is {_canonical(request or 0)}"
        case "limit":
            return f"{start}, but limit is {_canonical(limit or 0)}"
    return None


def _check_max(name: str, kind: str, maximum: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"maximum {name} usage per {kind} is {_canonical(maximum)}"
    match breach_of_max(quantity.to_milli(maximum), _milli_or_none(request), _milli_or_none(limit)):
        case "unspecified":
            return f"{start}.  No limit is specified"
        case "limit":
            return f"{start}, but limit is {_canonical(limit or 0)}"
        case "request":
            return f"{start}, but request is {_canonical(request or 0)}"
    return None


def _check_ratio(
    name: str, kind: str, max_ratio: Written, request: Written | None, limit: Written | None
) -> str | None:
    start = f"{name} max limit to request ratio per {kind} is {_canonical(max_ratio)}"
    request_milli, limit_milli = _milli_or_none(request), _milli_or_none(limit)
    match breach_of_ratio(quantity.to_milli(max_ratio), request_milli, limit_milli):
        case "request":
            return f"{start}, but no request is specified or request is 0"
        case "unspecified":
            return f"{start}, but no limit is specified or limit is 0"
        case "limit":
            return f"{start}, but provided ratio is {ratio_of(request_milli or 1, limit_milli or 0):.6f}"
    return None


def _milli_or_none(value: Written | None) -> int | None:
    return None if value is None else quantity.to_milli(value)


PLUGIN = "LimitRanger"
ANNOTATION = "kubernetes.io/limit-ranger"


def apply_limit_ranges(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the pod with the namespace's defaults, and with the annotation that lists them. Never rejects."""
    for limit_range in facts.limit_ranges.get(namespace, ()):
        pod = _apply_defaults(pod, *_default_resources(limit_range))
    return pod


def check_limit_ranges(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the rejection by the first LimitRange whose bounds the pod violates, with all errors of that LimitRange;
    otherwise the pod."""
    for limit_range in facts.limit_ranges.get(namespace, ()):
        rejection = forbid_pod(PLUGIN, _bound_errors(pod.spec, limit_range))
        if rejection:
            return rejection
    return pod


def _defaulted_items(limit_range: LimitRange) -> Iterator[LimitRangeItem]:
    """Yields the items as the server stores them: rounded, and with `max` as the default limit if none is set."""
    for item in map(with_defaults, limit_range.spec.limits):
        fields = ("min", "max", "default", "default_request", "max_limit_request_ratio")
        yield change(item, **{name: round_quantities(getattr(item, name)) for name in fields})


def _default_resources(limit_range: LimitRange) -> tuple[ResourceList, ResourceList]:
    """Returns the default requests and the default limits of a container. If several items name a resource, the last
    one counts."""
    requests: ResourceList = {}
    limits: ResourceList = {}
    for item in _defaulted_items(limit_range):
        if item.type == "Container":
            requests |= item.default_request
            limits |= item.default
    return requests, limits


def _apply_defaults(pod: Pod, requests: ResourceList, limits: ResourceList) -> Pod:
    messages: list[str] = []

    def fill_containers(containers: tuple[Container, ...], kind: str) -> tuple[Container, ...]:
        return tuple(_fill_container(container, requests, limits, kind, messages) for container in containers)

    # The plugin visits containers before init containers; the annotation's order shows it.
    spec = change(pod.spec, containers=fill_containers(pod.spec.containers, "container"))
    spec = change(spec, init_containers=fill_containers(spec.init_containers, "init container"))
    if not messages:
        return pod
    annotation = {ANNOTATION: "LimitRanger plugin set: " + "; ".join(messages)}
    annotations = value_or(pod.metadata.annotations, {}) | annotation
    return change(pod, metadata=change(pod.metadata, annotations=annotations), spec=spec)


def _fill_container(
    container: Container, requests: ResourceList, limits: ResourceList, kind: str, messages: list[str]
) -> Container:
    resources = value_or(container.resources, Resources())
    for part, defaults in (("request", requests), ("limit", limits)):
        present = requests_of(resources) if part == "request" else limits_of(resources)
        missing = {name: defaults[name] for name in sorted(defaults) if name not in present}
        if missing:
            messages.append(f"{', '.join(missing)} {part} for {kind} {container.name}")
            resources = change(resources, **{f"{part}s": present | missing})
    return change(container, resources=resources)


def _bound_errors(spec: PodSpec, limit_range: LimitRange) -> Iterator[str]:
    for item in _defaulted_items(limit_range):
        if item.type == "Container":
            for container in spec.containers + spec.init_containers:
                yield from violated_bounds(item, requests_of(container.resources), limits_of(container.resources))
        elif item.type == "Pod":
            yield from _pod_bound_errors(spec, item)


def _pod_bound_errors(spec: PodSpec, item: LimitRangeItem) -> Iterator[str]:
    """Yields the errors of the pod as a whole. Overhead is not counted; pod-level cpu and memory replace the sum over
    the containers."""
    pod_level = value_or(spec.resources, Resources())
    requests = resource_sums.sum_containers(spec, requests_of) | _cpu_and_memory(requests_of(pod_level))
    limits = resource_sums.sum_containers(spec, limits_of) | _cpu_and_memory(limits_of(pod_level))
    yield from violated_bounds(item, requests, limits)


def _cpu_and_memory(amounts: ResourceList) -> ResourceList:
    return {name: value for name, value in amounts.items() if name in ("cpu", "memory")}
