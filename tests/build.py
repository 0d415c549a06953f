"""A world in three lines: pods, containers and what surrounds them, with defaults that don't matter.

    web = pod(container(limits={"cpu": "1"}))
    world = facts(limit_range(default={"cpu": "500m"}), runtime_class("kata", overhead={"cpu": "250m"}))

Everything namespaced lives in NAMESPACE unless told otherwise.
"""

from collections import defaultdict
from typing import Any

from trimtab.cluster.api.meta import UNSET, Metadata, ResourceList, Shape
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources, Toleration
from trimtab.cluster.api.rules import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Overhead,
    PriorityClass,
    QuotaSpec,
    QuotaStatus,
    ResourceQuota,
    RuntimeClass,
    Scheduling,
)
from trimtab.cluster.snapshot import Snapshot
from trimtab.policy.facts import Facts, from_snapshot

NAMESPACE = "team-a"


def resources(requests: ResourceList | None = None, limits: ResourceList | None = None) -> Any:
    """UNSET where nothing is said, as in a manifest that says nothing."""
    if requests is None and limits is None:
        return UNSET
    return Resources(
        requests=UNSET if requests is None else requests,
        limits=UNSET if limits is None else limits,
    )


def container(
    name: str = "app", *, requests: ResourceList | None = None, limits: ResourceList | None = None, **fields: Any
) -> Container:
    return Container(name=name, image=fields.pop("image", "app:1"), resources=resources(requests, limits), **fields)


def pod(
    *containers: Container,
    name: str = "web",
    labels: Any = UNSET,
    annotations: Any = UNSET,
    init: tuple[Container, ...] = (),
    **spec: Any,
) -> Pod:
    """One plain container unless some are given; everything else is a field of the spec."""
    return Pod(
        metadata=Metadata(name=name, labels=labels, annotations=annotations),
        spec=PodSpec(containers=containers or (container(),), init_containers=init, **spec),
    )


def toleration(key: str = "", value: str = "", effect: str = "", *, operator: str = "", seconds: Any = UNSET) -> Any:
    return Toleration(key=key, operator=operator, value=value, effect=effect, toleration_seconds=seconds)


def item(kind: str = "Container", **bounds: Any) -> LimitRangeItem:
    """default, default_request, min, max, max_limit_request_ratio."""
    return LimitRangeItem(type=kind, **bounds)


def limit_range(
    *items: LimitRangeItem, name: str = "bounds", namespace: str = NAMESPACE, kind: str = "Container", **bounds: Any
) -> LimitRange:
    """Of the items given, or of one item with these bounds."""
    metadata = Metadata(name=name, namespace=namespace)
    return LimitRange(metadata=metadata, spec=LimitRangeSpec(limits=items or (item(kind, **bounds),)))


def runtime_class(
    name: str = "kata",
    *,
    overhead: ResourceList | None = None,
    node_selector: dict[str, str] | None = None,
    tolerations: tuple[Toleration, ...] = (),
) -> RuntimeClass:
    return RuntimeClass(
        metadata=Metadata(name=name),
        handler=name,
        overhead=Overhead(pod_fixed=overhead or {}),
        scheduling=Scheduling(node_selector=node_selector or {}, tolerations=tolerations),
    )


def priority_class(name: str, value: int, **fields: Any) -> PriorityClass:
    return PriorityClass(metadata=Metadata(name=name), value=value, **fields)


def quota(
    hard: ResourceList, *, used: ResourceList | None = None, name: str = "q", namespace: str = NAMESPACE, **spec: Any
) -> ResourceQuota:
    """With `used`, its status is known; without, it is a quota from a file."""
    return ResourceQuota(
        metadata=Metadata(name=name, namespace=namespace),
        spec=QuotaSpec(hard=hard, **spec),
        status=QuotaStatus() if used is None else QuotaStatus(hard=hard, used=used),
    )


def facts(*objects: Shape, vpa_acts: bool = True) -> Facts:
    """What a snapshot of just these objects would tell."""
    found: dict[str, list[Shape]] = defaultdict(list)
    for each in objects:
        found[type(each).__name__].append(each)
    return from_snapshot(Snapshot({kind: tuple(same) for kind, same in found.items()}), vpa_acts=vpa_acts)
