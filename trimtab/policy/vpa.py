"""Does a VerticalPodAutoscaler size this container, and may we?

For each container and resource exactly one owner: the VPA, once it recommends and its webhook can act; the policy
with P5 while the VPA has nothing to say yet; the policy with P95 where no VPA will ever act. The rules are those of
the VPA's own admission controller (target by namespace, kind and name; the oldest VPA counts; `Off` does nothing;
init containers and sidecars are not its business).
"""

from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.advice import Advice, given
from trimtab.cluster.api.meta import UnsetType
from trimtab.cluster.api.scaling import ContainerPolicy, VerticalPodAutoscaler
from trimtab.cluster.resources import Role
from trimtab.policy.subject import Place, Subject

_FLOOR = {"cpu": "25m", "memory": "250Mi"}
"""Per pod, shared by its containers (recommender flags pod-recommendation-min-cpu-millicores, -memory-mb; the latter
counts in units of 1024 * 1024 bytes, whatever it is called)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """How a VPA stands to one resource of one container."""

    name: str
    """The VPA's."""
    recommends: bool
    """It has a recommendation: its webhook decides."""
    keeps_ratio: bool
    """controlledValues RequestsAndLimits: it multiplies a limit as it multiplies the request."""
    floor: int
    """The scheduler's number; the VPA evicts what is below."""
    ceiling: int | None


BOOST = "vpaCpuStartupBoost/"
"""Annotation, the container's name behind it: the VPA gave the container more cpu for its start."""


def boosts(subject: Subject, place: Place, resource: str) -> bool:
    """Is the VPA boosting this container's cpu? What it wrote down to go back to must stay true."""
    return resource == "cpu" and f"{BOOST}{place.container.name}" in subject.annotations


def of(subject: Subject) -> VerticalPodAutoscaler | None:
    """The VPA that manages this pod; None where none does or its webhook cannot act.

    A VPA targets the topmost controller that is well known or can be scaled. Whether a custom one can be scaled is
    not known here: it is looked at, and so is what stands below it, down to the first well-known one.
    """
    if not subject.facts.vpas or not subject.facts.vpa_acts:
        return None
    for owner in reversed(subject.owners):
        for vpa in subject.facts.vpas.get((subject.namespace, owner.kind, owner.name), ()):
            if vpa.spec.update_policy.update_mode != "Off":
                return vpa
        if owner.kind in _WELL_KNOWN:
            break
    return None


def advised(subject: Subject, place: Place, resource: str) -> Advice | None:
    """What a VPA says of this container, whether it acts by itself or not (`Off`); the oldest that says anything."""
    for owner in reversed(subject.owners):
        for vpa in subject.facts.vpas.get((subject.namespace, owner.kind, owner.name), ()):
            for container, about, advice in given(vpa):
                if (container, about) == (place.container.name, resource):
                    return advice
    return None


_WELL_KNOWN = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


def sizing(vpa: VerticalPodAutoscaler | None, subject: Subject, place: Place, resource: str) -> Sizing | None:
    """How the VPA stands to this container's resource; None: not at all."""
    if vpa is None or place.role is not Role.MAIN:
        return None
    policy = _policy(vpa, place.container.name)
    controlled = policy.controlled_resources
    if policy.mode == "Off" or (not isinstance(controlled, UnsetType) and resource not in controlled):
        return None
    least = quantity.of(resource, policy.min_allowed.get(resource, 0))
    share = _share(resource, len(subject.pod.spec.containers))
    most = policy.max_allowed.get(resource)
    return Sizing(
        name=vpa.metadata.name,
        recommends=_recommends(vpa, place.container.name, resource),
        keeps_ratio=policy.controlled_values == "RequestsAndLimits",
        floor=max(least, share),
        ceiling=None if most is None else quantity.of(resource, most),
    )


def _share(resource: str, containers: int) -> int:
    """The floor of one container, rounded up to whole millicores and MiB: a floor that is read should be readable."""
    step = 1 if resource == "cpu" else 1 << 20
    part = quantity.of(resource, _FLOOR.get(resource, 0)) // max(1, containers)
    return -(-part // step) * step


def _policy(vpa: VerticalPodAutoscaler, container: str) -> ContainerPolicy:
    """By exact name first, then `*`."""
    policies = {p.container_name: p for p in vpa.spec.resource_policy.container_policies}
    return policies.get(container) or policies.get("*") or ContainerPolicy()


def _recommends(vpa: VerticalPodAutoscaler, container: str, resource: str) -> bool:
    found = vpa.status.recommendation.container_recommendations
    return any(r.container_name == container and resource in r.target for r in found)
