"""Reduces objects of the cluster to what decisions read.

Values that change all the time and that no decision reads (a node's heartbeat, a Deployment's status) are dropped, so
that their changes do not count as changes of the facts.
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
from trimtab.cluster.api.core import Lease, LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.meta import ApiObject, Labels, Metadata, change, value_or
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.cluster_autoscaler import growing_groups
from trimtab.cluster.node_shapes import daemon_spec, shaped_node
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.pool import pause_reason
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import Workloads
from trimtab.cluster.replicas import Replicas, replicas_from_annotations, replicas_of, updated_pods_of
from trimtab.cluster.snapshot import SHAPES_BY_KIND, ConfigMap
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.policy.autoscalers import RESIZING
from trimtab.policy.cluster_facts import creation_time, decode_shard

OWNERS = tuple(kind for kind, shape in SHAPES_BY_KIND.items() if issubclass(shape, Workload))
"""Kinds that own pods, or that own other owners of pods."""
COUNTED = frozenset({"Deployment", "StatefulSet", "ReplicationController", "DaemonSet", "Job"})
"""Kinds of owners that are watched as whole objects, because their spec says how many pods they want. Two kinds are
missing, because their metadata is enough: ReplicaSets, of which there are ten for each Deployment and which carry that
number in their annotations, and CronJobs, which want no pods themselves."""

AUTOSCALER = "AutoscalerStatus"
"""The name, used like a kind, under which the cluster autoscaler's status ConfigMap is stored, to separate it from the
ConfigMaps with recommendations."""

Hold = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class RetainedNamespace:
    """The labels of a namespace, and whether the namespace pauses Trimtab."""

    labels: Labels = field(default_factory=dict)
    paused: bool = False


@dataclass(frozen=True, slots=True)
class RetainedOwner:
    """An owner of pods, reduced to what decisions read."""

    above: OwnerKey | None
    """The owner's own controller, or None if it has none."""
    created: Seconds | None = None
    """The creation time of an owner without a controller, or None if it is not known."""
    replicas: Replicas | None = None
    """How many pods the owner wants, or None if it has no such number."""
    updated: int = 0
    """The number of existing pods of the owner's current template."""
    daemon: PodSpec | None = None
    """For a DaemonSet, the spec of the pod that runs on each node; None for any other kind."""


def projections_by_kind(own_namespace: str) -> Mapping[str, Hold]:
    """Returns kind → the function that reduces objects of this kind to the form that `FactsCache` takes."""

    def shard(config_map: ConfigMap) -> Workloads | Unreadable | None:
        return decode_shard(config_map, own_namespace)

    return {
        "Namespace": retain_namespace,
        "RuntimeClass": retain_named,
        "PriorityClass": retain_named,
        "LimitRange": retain_named,
        "ResourceQuota": retain_quota,
        "VerticalPodAutoscaler": retain_vpa,
        "HorizontalPodAutoscaler": retain_named,
        "Node": shaped_node,
        "ConfigMap": shard,
        AUTOSCALER: growing_groups,
        "Lease": retain_lease,
        **{kind: owner_projection(kind) for kind in OWNERS},
    }


def retain_namespace(item: Namespace) -> RetainedNamespace:
    """Returns the labels of the namespace, and whether it pauses Trimtab."""
    return RetainedNamespace(value_or(item.metadata.labels, {}), bool(pause_reason(item.metadata)))


def retain_lease(item: Lease) -> Seconds | None:
    """Returns until when the Lease is held, or None if it has no holder."""
    renewed = parse_timestamp(item.spec.renew_time)
    # client-go: a leader that stops releases its Lease by an empty holder.
    if renewed is None or not item.spec.holder_identity or not item.spec.lease_duration_seconds:
        return None
    return renewed + item.spec.lease_duration_seconds


N = TypeVar("N", RuntimeClass, PriorityClass, LimitRange, HorizontalPodAutoscaler, ResourceQuota, VerticalPodAutoscaler)


def retain_named(item: N) -> N:
    """Returns the object with its metadata reduced to name, namespace and creation time."""
    meta = item.metadata
    # Labels, annotations and managed fields are the larger part of most objects, and no decision reads them.
    bare = Metadata(name=meta.name, namespace=meta.namespace, creation_timestamp=meta.creation_timestamp)
    return change(item, metadata=bare)


def retain_quota(item: ResourceQuota) -> ResourceQuota:
    """Returns the quota with its spec and status. The used amounts in the status change with every pod, but cached
    responses stay valid nevertheless (`fact_dependencies.Freshness.USED`)."""
    return retain_named(item)


def retain_vpa(item: VerticalPodAutoscaler) -> VerticalPodAutoscaler:
    """Returns the VPA without the bounds of its recommendation, which change every minute and which the webhook does
    not need."""
    entries = item.status.recommendation.container_recommendations
    targets = tuple(ContainerRecommendation(container_name=e.container_name, target=e.target) for e in entries)
    return change(retain_named(item), status=VPAStatus(recommendation=Recommended(container_recommendations=targets)))


def retain_vpa_with_growth(item: VerticalPodAutoscaler) -> VerticalPodAutoscaler:
    """Returns the VPA reduced as `retain_vpa` does, but with the upper bounds of its recommendation if it resizes pods
    in place, because plans need them."""
    if item.spec.update_policy.update_mode not in RESIZING:
        return retain_vpa(item)
    entries = item.status.recommendation.container_recommendations
    bounds = tuple(
        ContainerRecommendation(container_name=e.container_name, target=e.target, upper_bound=e.upper_bound)
        for e in entries
    )
    return change(retain_named(item), status=VPAStatus(recommendation=Recommended(container_recommendations=bounds)))


def owner_projection(kind: str) -> Callable[[Workload], RetainedOwner]:
    """Returns the function that reduces owners of this kind."""
    if kind == "ReplicaSet":
        return lambda item: retain_owner(item, replicas_from_annotations(item.metadata))
    # A CronJob: its Jobs have the pods.
    if kind not in COUNTED:
        return retain_owner
    if kind == "DaemonSet":
        return lambda item: replace(_retain_counted_owner(kind, item), daemon=daemon_spec(item))
    return lambda item: _retain_counted_owner(kind, item)


def _retain_counted_owner(kind: str, item: Workload) -> RetainedOwner:
    return retain_owner(item, replicas_of(kind, item), updated_pods_of(kind, item))


def retain_owner(item: Workload | ApiObject, replicas: Replicas | None = None, updated: int = 0) -> RetainedOwner:
    """Returns the owner's controller, or its creation time if it has no controller, and how many pods it wants and
    has."""
    controller = controller_of(item)
    # Only the age of the topmost owner is ever read.
    created = creation_time(item.metadata) if controller is None else None  # type: ignore[union-attr]
    return RetainedOwner(controller, created, replicas, updated)


def controller_of(item: Workload | ApiObject) -> OwnerKey | None:
    """Returns the object's controller, or None if it has none."""
    # The same default as in `cluster_facts.from_snapshot`.
    metadata: Metadata = item.metadata  # type: ignore[union-attr]
    controller = controller_key(metadata, metadata.namespace or "default")
    return None if controller is None else _shared_owner(controller)


# The Jobs of one CronJob share one `OwnerKey` object.
@lru_cache(maxsize=20_000)
def _shared_owner(owner: OwnerKey) -> OwnerKey:
    return owner
