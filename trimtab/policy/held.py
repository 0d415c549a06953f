"""What is kept of an object for decisions?

As little as they read, so that what changes all the time and decides nothing (a quota's use, a node's heartbeat, a
Deployment's status) is no change at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from trimtab.cluster.api.meta import Labels, Metadata, Shape, change, get
from trimtab.cluster.api.node import Node
from trimtab.cluster.api.rules import LimitRange, Namespace, PriorityClass, QuotaStatus, ResourceQuota, RuntimeClass
from trimtab.cluster.api.scaling import (
    ContainerRecommendation,
    HorizontalPodAutoscaler,
    VerticalPodAutoscaler,
    VPAStatus,
)
from trimtab.cluster.api.scaling import VPARecommendation as Recommended
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.owner import Owner
from trimtab.cluster.paused import paused
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import Workloads
from trimtab.cluster.resources import amounts
from trimtab.cluster.snapshot import KINDS, ConfigMap
from trimtab.policy.facts import shard_of

OWNERS = tuple(kind for kind, shape in KINDS.items() if shape is Workload)
"""Kinds that own pods, or own what owns pods."""

Hold = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SeenNamespace:
    labels: Labels = field(default_factory=dict)
    paused: bool = False


def holds(own_namespace: str) -> Mapping[str, Hold]:
    """Kind → what is held of its objects, in the form `Gathering` takes."""

    def shard(found: ConfigMap) -> Workloads | Unreadable | None:
        return shard_of(found, own_namespace)

    return {
        "Namespace": namespace, "RuntimeClass": named, "PriorityClass": named, "LimitRange": named,
        "ResourceQuota": quota, "VerticalPodAutoscaler": vpa, "HorizontalPodAutoscaler": named,
        "Node": node, "ConfigMap": shard, **dict.fromkeys(OWNERS, owner),
    }  # fmt: skip


def namespace(found: Namespace) -> SeenNamespace:
    return SeenNamespace(get(found.metadata.labels, {}), bool(paused(found.metadata)))


N = TypeVar("N", RuntimeClass, PriorityClass, LimitRange, HorizontalPodAutoscaler, ResourceQuota, VerticalPodAutoscaler)


def named(found: N) -> N:
    """All of it but who it is: name, namespace and age are enough of that."""
    meta = found.metadata
    bare = Metadata(name=meta.name, namespace=meta.namespace, creation_timestamp=meta.creation_timestamp)
    return change(found, metadata=bare)


def quota(found: ResourceQuota) -> ResourceQuota:
    """What it counts; how much is used changes with every pod and decides nothing here."""
    return change(named(found), status=QuotaStatus())


def vpa(found: VerticalPodAutoscaler) -> VerticalPodAutoscaler:
    """Without the bounds around its recommendation, which move every minute."""
    said = found.status.recommendation.container_recommendations
    targets = tuple(ContainerRecommendation(container_name=s.container_name, target=s.target) for s in said)
    return change(named(found), status=VPAStatus(recommendation=Recommended(container_recommendations=targets)))


def node(found: Node) -> Mapping[str, int] | None:
    """What it can hold; None while it takes no pods."""
    return None if found.spec.unschedulable else amounts(found.status.allocatable)


def owner(found: Workload | Shape) -> Owner | None:
    """Its own controller; None where it has none."""
    above = found.metadata.controller  # type: ignore[union-attr]
    return _owner(above.kind, above.name) if above else None


_owner = lru_cache(maxsize=20_000)(Owner)
"""The Jobs of one CronJob share theirs."""
