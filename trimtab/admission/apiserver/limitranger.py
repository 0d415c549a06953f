"""What does a namespace's LimitRange put into a pod, and when does it refuse it?

The LimitRanger plugin (plugin/pkg/admission/limitranger/admission.go, 1.36). Defaults are per container and only for
what is missing; the annotation tells what was set *this time* and is never taken back, so it outlives the limits it
speaks of. Several LimitRanges are visited by name here; the server's order is not promised, the first to speak wins.

Which bounds of a LimitRange item do these requests and limits break, in the server's words?

(`minConstraint`, `maxConstraint`, `limitRequestRatioConstraint` in plugin/pkg/admission/limitranger/admission.go,
1.36.) Complaints come in the order min, max, ratio, resources by name; the server's order within each is random.
"""

from collections.abc import Callable, Iterator

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.outcome import PodRejected, forbidden
from trimtab.admission.apiserver.resource_sums import stored
from trimtab.cluster import quantity
from trimtab.cluster.api.core import LimitRange, LimitRangeItem
from trimtab.cluster.api.meta import ResourceList, change, get
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources
from trimtab.cluster.limit_ranges import above_max, above_ratio, below_min, defaulted, ratio_of
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy.cluster_facts import ClusterFacts

_Constraint = Callable[[str, str, Written, Written | None, Written | None], str | None]
_shown = quantity.canonical


def broken(item: LimitRangeItem, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    """One sentence per bound and resource that is broken."""
    checks: tuple[tuple[ResourceList, _Constraint], ...] = (
        (item.min, _min),
        (item.max, _max),
        (item.max_limit_request_ratio, _ratio),
    )
    for demanded, check in checks:
        for name in sorted(demanded):
            said = check(name, item.type, demanded[name], requests.get(name), limits.get(name))
            if said:
                yield said


def _min(name: str, kind: str, least: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"minimum {name} usage per {kind} is {_shown(least)}"
    match below_min(quantity.milli(least), _milli(request), _milli(limit)):
        case "unspecified":
            return f"{start}.  No request is specified"
        case "request":
            return f"{start}, but request is {_shown(request or 0)}"
        case "limit":
            return f"{start}, but limit is {_shown(limit or 0)}"
    return None


def _max(name: str, kind: str, most: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"maximum {name} usage per {kind} is {_shown(most)}"
    match above_max(quantity.milli(most), _milli(request), _milli(limit)):
        case "unspecified":
            return f"{start}.  No limit is specified"
        case "limit":
            return f"{start}, but limit is {_shown(limit or 0)}"
        case "request":
            return f"{start}, but request is {_shown(request or 0)}"
    return None


def _ratio(name: str, kind: str, most: Written, request: Written | None, limit: Written | None) -> str | None:
    start = f"{name} max limit to request ratio per {kind} is {_shown(most)}"
    asked, allowed = _milli(request), _milli(limit)
    match above_ratio(quantity.milli(most), asked, allowed):
        case "request":
            return f"{start}, but no request is specified or request is 0"
        case "unspecified":
            return f"{start}, but no limit is specified or limit is 0"
        case "limit":
            return f"{start}, but provided ratio is {ratio_of(asked or 1, allowed or 0):.6f}"
    return None


def _milli(written: Written | None) -> int | None:
    return None if written is None else quantity.milli(written)


PLUGIN = "LimitRanger"
ANNOTATION = "kubernetes.io/limit-ranger"


def admit(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """The pod with the namespace's defaults, and the annotation that says so. Never refuses."""
    for limit_range in facts.limit_ranges.get(namespace, ()):
        pod = _defaults(pod, *_default_resources(limit_range))
    return pod


def validate(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Refused by the first LimitRange whose bounds the pod breaks, with all that one's complaints."""
    for limit_range in facts.limit_ranges.get(namespace, ()):
        refused = forbidden(PLUGIN, _complaints(pod.spec, limit_range))
        if refused:
            return refused
    return pod


def _items(limit_range: LimitRange) -> Iterator[LimitRangeItem]:
    """As the server keeps them: rounded, `max` standing in for a missing default."""
    for item in map(defaulted, limit_range.spec.limits):
        named = ("min", "max", "default", "default_request", "max_limit_request_ratio")
        yield change(item, **{name: stored(getattr(item, name)) for name in named})


def _default_resources(limit_range: LimitRange) -> tuple[ResourceList, ResourceList]:
    """Requests and limits for a container; of several items the last to name a resource counts."""
    requests: ResourceList = {}
    limits: ResourceList = {}
    for item in _items(limit_range):
        if item.type == "Container":
            requests |= item.default_request
            limits |= item.default
    return requests, limits


def _defaults(pod: Pod, requests: ResourceList, limits: ResourceList) -> Pod:
    told: list[str] = []

    def fill(containers: tuple[Container, ...], kind: str) -> tuple[Container, ...]:
        return tuple(_filled(c, requests, limits, kind, told) for c in containers)

    # The plugin visits containers before init containers; the annotation's order shows it.
    spec = change(pod.spec, containers=fill(pod.spec.containers, "container"))
    spec = change(spec, init_containers=fill(spec.init_containers, "init container"))
    if not told:
        return pod
    note = {ANNOTATION: "LimitRanger plugin set: " + "; ".join(told)}
    annotations = get(pod.metadata.annotations, {}) | note
    return change(pod, metadata=change(pod.metadata, annotations=annotations), spec=spec)


def _filled(
    container: Container, requests: ResourceList, limits: ResourceList, kind: str, told: list[str]
) -> Container:
    resources = get(container.resources, Resources())
    for part, defaults in (("request", requests), ("limit", limits)):
        have = requests_of(resources) if part == "request" else limits_of(resources)
        missing = {name: defaults[name] for name in sorted(defaults) if name not in have}
        if missing:
            told.append(f"{', '.join(missing)} {part} for {kind} {container.name}")
            resources = change(resources, **{f"{part}s": have | missing})
    return change(container, resources=resources)


def _complaints(spec: PodSpec, limit_range: LimitRange) -> Iterator[str]:
    for item in _items(limit_range):
        if item.type == "Container":
            for container in spec.containers + spec.init_containers:
                yield from broken(item, requests_of(container.resources), limits_of(container.resources))
        elif item.type == "Pod":
            yield from _pod_complaints(spec, item)


def _pod_complaints(spec: PodSpec, item: LimitRangeItem) -> Iterator[str]:
    """Overhead is not counted; pod-level cpu and memory stand in for the containers' sum."""
    own = get(spec.resources, Resources())
    requests = resource_sums.containers(spec, requests_of) | _cpu_and_memory(requests_of(own))
    limits = resource_sums.containers(spec, limits_of) | _cpu_and_memory(limits_of(own))
    yield from broken(item, requests, limits)


def _cpu_and_memory(written: ResourceList) -> ResourceList:
    return {name: value for name, value in written.items() if name in ("cpu", "memory")}
