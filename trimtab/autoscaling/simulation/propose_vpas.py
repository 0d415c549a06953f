"""Proposes VPAs to add, to change and to remove, based on usage and nodes.

A VPA is worth its evictions if usage is large and varies: above 50m or 100 MB, and with P95 more than twice P5
(Gardener's pod autoscaling guide). Otherwise a fixed request at P95 is as good. A proposed VPA changes only requests.
Its minimum is what an idle container needs, and its maximum what a node can hold. It does not control a resource by
whose utilization an HPA scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil
from typing import Any

from trimtab.autoscaling.container_amounts import format_amount
from trimtab.autoscaling.simulation.proposal_reasons import (
    VPA_DIFFERS,
    VPA_FITS,
    VPA_NEEDS_HISTORY,
    VPA_OWNED_BY_HPA,
    VPA_POD_LEVEL,
    VPA_QUOTA,
    VPA_REFUSED,
    VPA_TOO_SMALL,
    VPA_TOO_STEADY,
    VPA_WORTH_IT,
)
from trimtab.autoscaling.simulation.simulate_vpa import RESOURCES, PodSeries, recommend_from_series
from trimtab.cluster.format_count import format_count
from trimtab.cluster.free_name import choose_free_name
from trimtab.cluster.limit_ranges import RequestBound
from trimtab.cluster.quantity import format_quantity, is_quantity, scheduler_value
from trimtab.cluster.reason import Reason
from trimtab.histogram.vpa_estimators import DEFAULT_FLAGS, RecommenderFlags

SMALL = {"cpu": 50, "memory": 100_000_000}
"""The P95 of usage, in millicores and bytes. Up to this usage, a VPA is not worth its evictions."""
MIN_SPREAD = 2.0
"""The ratio of P95 to P5 above which a VPA is worth its evictions."""
MIN_HISTORY_SECONDS, MIN_SAMPLES = 86400, 100
IDLE_SHARE = 0.25
"""The share of samples that count as idle. These are the samples with the lowest usage."""
_STEPS = {"cpu": 1, "memory": 1 << 20}
IN_PLACE_VERSION = (1, 33)
"""The first Kubernetes version in which pods can be resized in place by default."""
API_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Rollout": "argoproj.io/v1alpha1",
    "DeploymentConfig": "apps.openshift.io/v1",
}
"""The kinds for which a VPA is proposed, with their API versions: their pods run all the time, and a VPA finds them by
the kind's `scale` subresource (or is built for the kind)."""


class VpaAction(StrEnum):
    """What to do about the VPA of a workload."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"
    KEEP = "keep"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ContainerHistory:
    """The usage of one container of a workload, in millicores and bytes, by resource."""

    name: str
    low: Mapping[str, int]
    """Resource → P5 of the usage."""
    high: Mapping[str, int]
    """Resource → P95 of the usage."""
    idle_target: Mapping[str, int]
    """Resource → the target that the recommender gives for the idle samples alone."""
    seconds: int
    samples: int


RequestRange = tuple[int, int | None]
"""(minAllowed, maxAllowed or None) of a container, in millicores or bytes."""
RefuseRequests = Callable[[str, Mapping[str, RequestRange]], str]
"""A function of a resource and of the ranges of the containers. It returns why the API server would refuse the pod with
requests within the ranges; empty if it accepts them."""


def _accept_all(resource: str, ranges: Mapping[str, RequestRange]) -> str:
    return ""


PromiseRequests = Callable[[Mapping[str, Mapping[str, RequestRange]]], None]
"""A function that records resource → container → the range within which a proposed VPA sets requests."""


def _promise_nothing(ranges: Mapping[str, Mapping[str, RequestRange]]) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadHistory:
    """One workload, with everything on which the proposal for its VPA depends."""

    namespace: str
    kind: str
    name: str
    replicas: int
    containers: tuple[ContainerHistory, ...]
    max_allowed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Container → resource → the largest request with which its pod fits on a node next to the DaemonSets. Empty if
    this is unknown."""
    hpa_resources: frozenset[str] = frozenset()
    """The resources by whose utilization an HPA scales the workload."""
    vpas: tuple[Mapping[str, Any], ...] = ()
    """Existing VPAs of the workload, as manifests."""
    has_pod_level: bool = False
    """Whether the pod sets resources for all its containers together."""
    floors: Mapping[str, Mapping[str, RequestBound]] = field(default_factory=dict)
    """Container → resource → the smallest request that LimitRanges allow. A VPA does not respect their
    maxLimitRequestRatio."""
    refuse_requests: RefuseRequests = _accept_all
    """Returns why the API server would refuse requests that a VPA may set, by the bounds of a single pod."""
    refuse_by_quotas: RefuseRequests = _accept_all
    """Returns why a ResourceQuota would refuse one of the workload's pods if all have requests that a VPA may set."""
    promise_requests: PromiseRequests = _promise_nothing
    """Records the requests that the proposed VPA may set, so that other proposals leave room for them."""
    initial_requests: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Container → resource → the request with which its pods are created, as far as they have one."""
    quota_caps: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Container → resource → the maxAllowed with which all pods fit into the ResourceQuotas, where these are tighter
    than the nodes."""
    taken_names: frozenset[str] = frozenset()
    """The names that a new VPA cannot have: those of other VPAs of the namespace, existing or proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaProposal:
    """What to do about the VPA of one workload."""

    workload: WorkloadHistory
    action: VpaAction
    reason: Reason
    manifest: Mapping[str, Any] | None = None
    """The manifest of the VPA as it should be, or None if there should be none."""
    existing: str = ""
    """The name of the existing VPA; empty if there is none."""


def summarize_container(
    name: str, series: Sequence[PodSeries], flags: RecommenderFlags = DEFAULT_FLAGS, containers: int = 1
) -> ContainerHistory:
    """Returns the history of one container from the series of its pods."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    idle: list[PodSeries] = []
    for resource in RESOURCES:
        own = [one for one in series if one.resource == resource]
        ordered = sorted(value for one in own for value in one.values)
        if not ordered:
            continue
        unit = 1000 if resource == "cpu" else 1
        low[resource], high[resource] = (ceil(_rank(ordered, share) * unit) for share in (0.05, 0.95))
        threshold = _rank(ordered, IDLE_SHARE)
        for one in own:
            kept = [(time, value) for time, value in zip(one.times, one.values, strict=True) if value <= threshold]
            idle += [PodSeries(one.pod, resource, *map(list, zip(*kept, strict=True)))] if kept else []
    estimates = recommend_from_series(idle, flags, containers)
    times = [time for one in series for time in (one.times[0], one.times[-1]) if len(one.times)]
    return ContainerHistory(
        name,
        low,
        high,
        {resource: estimate.target for resource, estimate in estimates.items()},
        max(times) - min(times) if times else 0,
        sum(len(one.times) for one in series),
    )


def propose_vpa(workload: WorkloadHistory, version: tuple[int, int] | None = None) -> VpaProposal:
    """Returns what to do about the VPA of a workload. `version` is that of the API server, such as (1, 33), or None if
    it is unknown."""
    existing = str(_mapping(workload.vpas[0].get("metadata")).get("name")) if workload.vpas else ""

    def decide(action: VpaAction, reason: Reason, manifest: Mapping[str, Any] | None = None) -> VpaProposal:
        return VpaProposal(workload=workload, action=action, reason=reason, manifest=manifest, existing=existing)

    seconds = max((container.seconds for container in workload.containers), default=0)
    samples = max((container.samples for container in workload.containers), default=0)
    keep, remove = (VpaAction.KEEP, VpaAction.REMOVE) if existing else (VpaAction.NONE, VpaAction.NONE)
    if seconds < MIN_HISTORY_SECONDS or samples < MIN_SAMPLES:
        return decide(keep, VPA_NEEDS_HISTORY(f"{seconds / 3600:.0f} h with {format_count(samples, 'sample')}"))
    large = {
        container.name: tuple(resource for resource in RESOURCES if container.high.get(resource, 0) > SMALL[resource])
        for container in workload.containers
    }
    if not any(large.values()):
        return decide(remove, VPA_TOO_SMALL("the 95th percentile of the usage is at most 50m and 100 MB"))
    varying = {
        container.name: tuple(
            resource
            for resource in large[container.name]
            if container.high[resource] > MIN_SPREAD * max(1, container.low[resource])
        )
        for container in workload.containers
    }
    if not any(varying.values()):
        steady = _describe_usage(workload, large)
        return decide(
            remove,
            VPA_TOO_STEADY(
                f"the 95th percentile of the large resources ({steady}) is at most {MIN_SPREAD:g} times the 5th"
            ),
        )
    free = {name: tuple(r for r in resources if r not in workload.hpa_resources) for name, resources in varying.items()}
    if not any(free.values()):
        return decide(remove, VPA_OWNED_BY_HPA(f"an HPA scales on {' and '.join(sorted(workload.hpa_resources))}"))
    if workload.has_pod_level:
        return decide(remove, VPA_POD_LEVEL("the pod sets resources for all its containers together"))
    refusals = dict[str, Reason]()
    for resource in RESOURCES:
        result = _bound_requests(workload, free, resource)
        if isinstance(result, Reason):
            refusals[resource] = result
        else:
            workload = result
    accepted = {name: tuple(r for r in resources if r not in refusals) for name, resources in free.items()}
    if not any(accepted.values()):
        return decide(remove, next(iter(refusals.values())))
    free = accepted
    workload.promise_requests({resource: _request_ranges(workload, free, resource) for resource in RESOURCES})
    name = existing or choose_free_name(workload.name, workload.kind, workload.taken_names)
    manifest = _render_vpa(workload, free, name, version)
    if not existing:
        # A phrase for each minAllowed that LimitRanges raise.
        because = [
            _describe_usage(workload, free),
            *[
                f"{container.name}: {floor.phrase} {format_quantity(resource, floor.amount)}"
                for container in workload.containers
                for resource in free[container.name]
                if (floor := workload.floors.get(container.name, {}).get(resource)) is not None
                and floor.amount == _least_request(workload, container, resource)
            ],
            *_describe_caps(workload, free),
        ]
        return decide(VpaAction.ADD, VPA_WORTH_IT("; ".join(because)), manifest)
    differences = _list_differences(workload, workload.vpas[0], manifest)
    if not differences:
        return decide(VpaAction.KEEP, VPA_FITS("the VPA is already the one that Trimtab would propose"), manifest)
    return decide(VpaAction.CHANGE, VPA_DIFFERS(", ".join(differences)), manifest)


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def _describe_usage(workload: WorkloadHistory, resources: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(
        f"{container.name}: {resource} from {format_amount(resource, container.low[resource])} (P5) to "
        f"{format_amount(resource, container.high[resource])} (P95)"
        for container in workload.containers
        for resource in resources[container.name]
    )


def _render_vpa(
    workload: WorkloadHistory, resources: Mapping[str, Sequence[str]], name: str, version: tuple[int, int] | None
) -> dict[str, Any]:
    policies: list[dict[str, Any]] = []
    for container in workload.containers:
        controlled = resources[container.name]
        if not controlled:
            policies.append({"containerName": container.name, "mode": "Off"})
            continue
        policy: dict[str, Any] = {
            "containerName": container.name,
            "controlledResources": list(controlled),
            "controlledValues": "RequestsOnly",
        }
        most = workload.max_allowed.get(container.name, {})
        least = {resource: _least_request(workload, container, resource) for resource in controlled}
        policy["minAllowed"] = {resource: format_quantity(resource, amount) for resource, amount in least.items()}
        if upper := {name: format_quantity(name, most[name]) for name in controlled if name in most}:
            policy["maxAllowed"] = upper
        policies.append(policy)
    spec: dict[str, Any] = {
        "targetRef": {"apiVersion": API_VERSIONS[workload.kind], "kind": workload.kind, "name": workload.name},
        "updatePolicy": {"updateMode": choose_update_mode(version)},
        "resourcePolicy": {"containerPolicies": policies},
    }
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name, "namespace": workload.namespace},
        "spec": spec,
    }


def _least_request(workload: WorkloadHistory, container: ContainerHistory, resource: str) -> int:
    """Returns the minAllowed of a container: what it needs when idle, at most what a node holds and what its pods
    request when they are created, and at least what LimitRanges require. A pod that requests less is evicted at once.
    """
    idle = _round_up(resource, container.idle_target.get(resource, 0))
    idle = min(idle, workload.initial_requests.get(container.name, {}).get(resource, idle))
    most = workload.max_allowed.get(container.name, {}).get(resource, idle)
    floor = workload.floors.get(container.name, {}).get(resource)
    return max(min(idle, most), 0 if floor is None else floor.amount)


def _bound_requests(
    workload: WorkloadHistory, resources: Mapping[str, Sequence[str]], resource: str
) -> WorkloadHistory | Reason:
    """Returns the workload with the maxAllowed of this resource with which its pods fit into the ResourceQuotas, or why
    a VPA must not control the resource."""
    refusal = _find_refusal(workload, resources, resource)
    if refusal:
        return VPA_REFUSED(refusal)
    ranges = _request_ranges(workload, resources, resource)
    if not ranges or not workload.refuse_by_quotas(resource, ranges):
        return workload
    low = {container.name: container.low.get(resource, 0) for container in workload.containers}
    # With less than the lowest usage, a VPA has nothing to adapt, and its evictions gain nothing.
    refusal = workload.refuse_by_quotas(resource, {name: _use_range(one, low[name]) for name, one in ranges.items()})
    if refusal:
        return VPA_QUOTA(refusal)
    # The largest amount by which every maxAllowed can exceed its minAllowed, up to what a node holds.
    fitting, refused = 0, _LARGEST_INCREASE
    while refused - fitting > _STEPS[resource]:
        middle = (fitting + refused) // 2
        is_refused = workload.refuse_by_quotas(resource, _narrow_ranges(ranges, middle))
        fitting, refused = (fitting, middle) if is_refused else (middle, refused)
    caps = {
        name: max(least, most // _STEPS[resource] * _STEPS[resource])
        for name, (least, most) in _narrow_ranges(ranges, fitting).items()
    }
    return replace(
        workload,
        max_allowed=_with_amounts(workload.max_allowed, resource, caps),
        quota_caps=_with_amounts(workload.quota_caps, resource, caps),
    )


_LARGEST_INCREASE = 1 << 50


def _use_range(allowed: RequestRange, usage: int) -> tuple[int, int]:
    least, most = allowed
    amount = max(least, usage if most is None else min(most, usage))
    return amount, amount


def _narrow_ranges(ranges: Mapping[str, RequestRange], increase: int) -> dict[str, tuple[int, int]]:
    return {
        name: (least, least + increase if most is None else min(most, least + increase))
        for name, (least, most) in ranges.items()
    }


def _with_amounts(
    amounts: Mapping[str, Mapping[str, int]], resource: str, added: Mapping[str, int]
) -> dict[str, Mapping[str, int]]:
    return {**amounts, **{name: {**amounts.get(name, {}), resource: amount} for name, amount in added.items()}}


def _request_ranges(
    workload: WorkloadHistory, resources: Mapping[str, Sequence[str]], resource: str
) -> dict[str, RequestRange]:
    """Returns container → the range within which the VPA sets this resource, for the containers whose resource it
    controls."""
    return {
        container.name: (
            _least_request(workload, container, resource),
            workload.max_allowed.get(container.name, {}).get(resource),
        )
        for container in workload.containers
        if resource in resources[container.name]
    }


def _find_refusal(workload: WorkloadHistory, resources: Mapping[str, Sequence[str]], resource: str) -> str:
    """Returns why a VPA must not control this resource, by the bounds of a single pod; empty if it may."""
    ranges = _request_ranges(workload, resources, resource)
    for name, (least, most) in ranges.items():
        if most is not None and least > most:
            phrase = workload.floors[name][resource].phrase
            required, room = (format_quantity(resource, amount) for amount in (least, most))
            return f"{phrase} {required}, but a node holds only {room}"
    return workload.refuse_requests(resource, ranges) if ranges else ""


def _describe_caps(workload: WorkloadHistory, resources: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns a phrase for each maxAllowed that ResourceQuotas lower."""
    return [
        f"{name}: a ResourceQuota has room for at most {format_quantity(resource, amount)} of {resource} in each pod"
        for name, amounts in workload.quota_caps.items()
        for resource, amount in amounts.items()
        if resource in resources.get(name, ())
    ]


def choose_update_mode(version: tuple[int, int] | None) -> str:
    """Returns InPlaceOrRecreate if the API server can resize pods in place, otherwise Recreate."""
    return "InPlaceOrRecreate" if version is not None and version >= IN_PLACE_VERSION else "Recreate"


def _list_differences(workload: WorkloadHistory, existing: Mapping[str, Any], proposed: Mapping[str, Any]) -> list[str]:
    """Returns the fields in which an existing VPA differs from the proposed one. Bounds that its author has set are
    accepted, except for a minAllowed with which the API server would refuse the pods."""
    old, new = _mapping(existing.get("spec")), _mapping(proposed.get("spec"))
    mode = _mapping(old.get("updatePolicy")).get("updateMode")
    differences = []
    # Off and Initial are their author's will: nobody should be evicted.
    if mode not in ("Off", "Initial") and mode != new["updatePolicy"]["updateMode"]:
        differences.append(f"updateMode {mode or 'unset'}")
    policies = {
        policy.get("containerName"): policy
        for policy in map(_mapping, _mapping(old.get("resourcePolicy")).get("containerPolicies") or ())
    }
    for policy in new["resourcePolicy"]["containerPolicies"]:
        own = policies.get(policy["containerName"]) or policies.get("*") or {}
        if policy.get("mode") == "Off" or own.get("mode") == "Off":
            continue
        if own.get("controlledValues") != "RequestsOnly":
            differences.append(f"{policy['containerName']} changes limits")
        differences += [
            f"{policy['containerName']} has no {part}"
            for part in ("minAllowed", "maxAllowed")
            if part in policy and not own.get(part)
        ]
        differences += [
            f"{policy['containerName']} has minAllowed {own['minAllowed'][resource]} of {resource}, but {floor.phrase} "
            f"{format_quantity(resource, floor.amount)}"
            for resource, floor in workload.floors.get(policy["containerName"], {}).items()
            if resource in policy["minAllowed"] and _is_below(own.get("minAllowed"), resource, floor.amount)
        ]
        differences += [
            f"{policy['containerName']} may request more {resource} than {format_quantity(resource, cap)}, for which "
            "a ResourceQuota has room"
            for resource, cap in workload.quota_caps.get(policy["containerName"], {}).items()
            if own.get("maxAllowed")
            and resource in policy["minAllowed"]
            and not _is_below(own["maxAllowed"], resource, cap + 1)
        ]
    return differences


def _is_below(amounts: Any, resource: str, floor: int) -> bool:
    text = _mapping(amounts).get(resource)
    return text is not None and is_quantity(text) and scheduler_value(resource, text) < floor


def _round_up(resource: str, amount: int) -> int:
    step = _STEPS[resource]
    return max(step, -(-amount // step) * step)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
