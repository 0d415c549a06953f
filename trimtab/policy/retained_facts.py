"""What is kept of an object for decisions?

As little as they read, so that what changes all the time and decides nothing (a quota's use, a node's heartbeat, a
Deployment's status) is no change at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

from trimtab.cluster.api.autoscaling import (
    ContainerRecommendation,
    HorizontalPodAutoscaler,
    VerticalPodAutoscaler,
    VPAStatus,
)
from trimtab.cluster.api.autoscaling import VPARecommendation as Recommended
from trimtab.cluster.api.core import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.meta import ApiObject, Labels, Metadata, change, get
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.cluster_autoscaler import growing_groups
from trimtab.cluster.node_shapes import daemon_of, seen_node
from trimtab.cluster.owner import Owner
from trimtab.cluster.pool import paused
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import Workloads
from trimtab.cluster.replicas import Replicas, replicas_of, replicas_told, updated_of
from trimtab.cluster.snapshot import KINDS, ConfigMap
from trimtab.cluster.timestamps import Seconds
from trimtab.policy.autoscalers import RESIZING
from trimtab.policy.cluster_facts import creation_time, decode_shard

OWNERS = tuple(kind for kind, shape in KINDS.items() if issubclass(shape, Workload))
"""Kinds that own pods, or own what owns pods."""
COUNTED = frozenset({"Deployment", "StatefulSet", "ReplicationController", "DaemonSet", "Job"})
"""Owners that are read whole, for how many pods they want. Of ReplicaSets there are ten for each Deployment, whose
annotations tell it, and a CronJob wants none: of both the metadata is enough."""

AUTOSCALER = "AutoscalerStatus"
"""The cluster autoscaler's status ConfigMap, told apart from ours."""

Hold = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class RetainedNamespace:
    labels: Labels = field(default_factory=dict)
    paused: bool = False


@dataclass(frozen=True, slots=True)
class RetainedOwner:
    """What is kept of an owner of pods."""

    above: Owner | None
    """Its own controller; None where it has none."""
    created: Seconds | None = None
    """When it was made, of one without a controller; None where that is not known."""
    replicas: Replicas | None = None
    """How many pods it wants; None where it does not say."""
    updated: int = 0
    """Pods of its present template that exist."""
    daemon: PodSpec | None = None
    """Of a DaemonSet: what it runs on each node."""


def holds(own_namespace: str) -> Mapping[str, Hold]:
    """Kind → what is held of its objects, in the form `FactsCache` takes."""

    def shard(found: ConfigMap) -> Workloads | Unreadable | None:
        return decode_shard(found, own_namespace)

    return {
        "Namespace": retain_namespace, "RuntimeClass": retain_named, "PriorityClass": retain_named,
        "LimitRange": retain_named, "ResourceQuota": retain_quota, "VerticalPodAutoscaler": retain_vpa,
        "HorizontalPodAutoscaler": retain_named, "Node": seen_node, "ConfigMap": shard, AUTOSCALER: growing_groups,
        **{kind: owner_projection(kind) for kind in OWNERS},
    }  # fmt: skip


def retain_namespace(found: Namespace) -> RetainedNamespace:
    return RetainedNamespace(get(found.metadata.labels, {}), bool(paused(found.metadata)))


N = TypeVar("N", RuntimeClass, PriorityClass, LimitRange, HorizontalPodAutoscaler, ResourceQuota, VerticalPodAutoscaler)


def retain_named(found: N) -> N:
    """All of it but who it is: name, namespace and age are enough of that."""
    meta = found.metadata
    bare = Metadata(name=meta.name, namespace=meta.namespace, creation_timestamp=meta.creation_timestamp)
    return change(found, metadata=bare)


def retain_quota(found: ResourceQuota) -> ResourceQuota:
    """What it counts, what it allows and how much of that is used: the last changes with every pod, and answers that
    are remembered stay (`cluster_facts.Freshness.USED`)."""
    return retain_named(found)


def retain_vpa(found: VerticalPodAutoscaler) -> VerticalPodAutoscaler:
    """Without the bounds around its recommendation, which move every minute."""
    said = found.status.recommendation.container_recommendations
    targets = tuple(ContainerRecommendation(container_name=s.container_name, target=s.target) for s in said)
    return change(retain_named(found), status=VPAStatus(recommendation=Recommended(container_recommendations=targets)))


def vpa_with_growth(found: VerticalPodAutoscaler) -> VerticalPodAutoscaler:
    """The same with its upper bounds where it resizes pods in place: they change all the time, and plans count them."""
    if found.spec.update_policy.update_mode not in RESIZING:
        return retain_vpa(found)
    said = found.status.recommendation.container_recommendations
    bounds = tuple(
        ContainerRecommendation(container_name=s.container_name, target=s.target, upper_bound=s.upper_bound)
        for s in said
    )
    return change(retain_named(found), status=VPAStatus(recommendation=Recommended(container_recommendations=bounds)))


def owner_projection(kind: str) -> Callable[[Workload], RetainedOwner]:
    """What is held of an owner of this kind."""
    if kind == "ReplicaSet":
        return lambda found: retain_owner(found, replicas_told(found.metadata))
    if kind not in COUNTED:
        return retain_owner
    if kind == "DaemonSet":
        return lambda found: replace(_counted(kind, found), daemon=daemon_of(found))
    return lambda found: _counted(kind, found)


def _counted(kind: str, found: Workload) -> RetainedOwner:
    return retain_owner(found, replicas_of(kind, found), updated_of(kind, found))


def retain_owner(found: Workload | ApiObject, replicas: Replicas | None = None, updated: int = 0) -> RetainedOwner:
    """Its own controller, or when it was made where it has none; and its pods."""
    above = owner(found)
    created = creation_time(found.metadata) if above is None else None  # type: ignore[union-attr]
    return RetainedOwner(above, created, replicas, updated)


def owner(found: Workload | ApiObject) -> Owner | None:
    """Its own controller; None where it has none."""
    above = found.metadata.controller  # type: ignore[union-attr]
    return _owner(above.kind, above.name) if above else None


_owner = lru_cache(maxsize=20_000)(Owner)
"""The Jobs of one CronJob share theirs."""
