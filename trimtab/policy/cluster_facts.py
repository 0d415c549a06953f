"""Holds what a decision may read of the cluster: `ClusterFacts`, filled from a snapshot file or from watches.

Absent is not the same as empty: a kind that has not been listed yet is not in `listed_kinds`, and nothing is decided
that depends on it.

`Derived` computes a value once per object of the cluster, and not again for each pod. This matters because a user who
may create an autoscaler may create a large one, or thousands for one workload.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.core import LimitRange, Namespace, Node, PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.meta import ApiObject, Labels, Metadata, value_or
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.api.workload import DaemonSet, Workload
from trimtab.cluster.cluster_autoscaler import growing_groups_of_any
from trimtab.cluster.kinds import CRON_JOB
from trimtab.cluster.limit_ranges import LimitRangeBounds, container_bounds
from trimtab.cluster.node_shapes import (
    NO_NODES,
    Machine,
    Machines,
    NodeShape,
    NodeShapes,
    OneMachine,
    ShapeCounter,
    daemon_spec,
    shaped_node,
    shapes_by_state,
)
from trimtab.cluster.own_objects import OWN_NAMESPACE as OWN_NAMESPACE
from trimtab.cluster.owner import OwnerKey, controller_key, owner_chain, target_key
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import (
    PAYLOAD_KEY,
    RECOMMENDATIONS_LABEL,
    ContainerUsage,
    Recommendations,
    Workloads,
    decode,
)
from trimtab.cluster.replicas import Replicas, replicas_from_annotations, replicas_of, updated_pods_of
from trimtab.cluster.resources import larger_amounts
from trimtab.cluster.snapshot import SHAPES_BY_KIND, ConfigMap, Snapshot
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.policy.vpa_webhook import EVERYWHERE, WebhookReach

ALL_KINDS = frozenset(
    {"Namespace", "RuntimeClass", "LimitRange", "ResourceQuota", "PriorityClass", "Node"}
    | {"VerticalPodAutoscaler", "HorizontalPodAutoscaler"}
)
OWNERS = tuple(kind for kind, shape in SHAPES_BY_KIND.items() if issubclass(shape, Workload))
"""Kinds that own pods, or that own other owners of pods."""


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """Facts about the cluster, indexed once and read many times. Mappings are keyed by name, or by namespace for
    objects that have one."""

    listed_kinds: frozenset[str] = ALL_KINDS
    """The kinds that have been listed at least once. Nothing is known about the objects of any other kind."""
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    limit_ranges: Mapping[str, tuple[LimitRange, ...]] = field(default_factory=dict)
    bounds: Mapping[str, Mapping[str, LimitRangeBounds]] = field(default_factory=dict)
    """Namespace → resource → the bounds that its LimitRanges set for containers; computed from `limit_ranges`."""
    quotas: Mapping[str, tuple[ResourceQuota, ...]] = field(default_factory=dict)
    vpas: Mapping[OwnerKey, tuple[VerticalPodAutoscaler, ...]] = field(default_factory=dict)
    """Workload → the VPAs that target it, oldest first."""
    vpa_reach: tuple[WebhookReach, ...] = EVERYWHERE
    """The pods for which the VPA's own webhook is called. If there are none, no VPA changes requests, and all pods
    count as having no VPA."""
    hpas: Mapping[OwnerKey, tuple[HorizontalPodAutoscaler, ...]] = field(default_factory=dict)
    """Workload → the HPAs that target it, in order of name."""
    owners: Mapping[OwnerKey, OwnerKey | None] = field(default_factory=dict)
    """Object → its controller, or None if the object is known to have none."""
    replicas: Mapping[OwnerKey, Replicas] = field(default_factory=dict)
    """Owner → how many pods it wants. Owners without such a number are not in the
    mapping."""
    updated: Mapping[OwnerKey, int] = field(default_factory=dict)
    """Owner → the number of existing pods of its current template, if there are any."""
    created: Mapping[OwnerKey, Seconds] = field(default_factory=dict)
    """Owner that has no controller itself → its creation time, if it is known."""
    recommendations: Recommendations = field(default_factory=Recommendations)
    largest_node: Mapping[str, int] = field(default_factory=dict)
    """Resource → the most that one node of the cluster can hold; empty if no node is known."""
    nodes: NodeShapes = NO_NODES
    """The node shapes that accept pods (labels, taints and allocatable amounts that nodes share), and the DaemonSets on
    such nodes."""
    machines: Machines = field(default_factory=dict)
    """(label, value) that identifies a single node → the nodes with it, in order of name. Cordoned nodes are left
    out."""
    fresh_leases: frozenset[str] | None = None
    """NAMESPACE/NAME of the Leases that a scheduler's leader renews, or None if no Leases are read, as from a file."""
    problems: tuple[Unreadable, ...] = ()
    """Objects that could not be decoded."""

    @property
    def vpa_acts(self) -> bool:
        """Whether the VPA's own webhook is called for any pod at all."""
        return bool(self.vpa_reach)

    def find_controller(self, owner: OwnerKey) -> OwnerKey | None:
        """Returns the controller of an owner, as far as it is known or follows from the owner's name.

        The CronJob of a Job that is not listed yet follows from the Job's name, which ends in the scheduled time (eight
        digits).
        """
        # One lookup for nearly every owner: each is recorded.
        if owner.kind != "Job" or owner in self.owners:
            return self.owners.get(owner)
        # pkg/controller/cronjob/utils.go, `getJobName`: "{name}-{minutes since 1970}".
        base, dash, minute = owner.name.rpartition("-")
        if not (dash and len(minute) == 8 and minute.isdecimal()):
            return None
        controller = OwnerKey(owner.namespace, CRON_JOB, base)
        return controller if controller in self.owners else None

    def owner_chain(self, pod: Pod, namespace: str) -> tuple[OwnerKey, ...]:
        """Returns the pod's controllers, the nearest first."""
        return owner_chain(pod.metadata, namespace, self.find_controller)


NO_FACTS = ClusterFacts(listed_kinds=frozenset())
"""The facts before any kind has been listed: fields that depend on the cluster are not changed, and this is
reported."""


def from_snapshot(
    snapshot: Snapshot, *, vpa_reach: tuple[WebhookReach, ...] = EVERYWHERE, own_namespace: str = OWN_NAMESPACE
) -> ClusterFacts:
    """Returns the facts of one snapshot. Objects that are not in the snapshot count as not existing."""
    replicas, updated = _replica_counts(snapshot)
    shapes, closed, machines = _node_shapes(snapshot)
    growing = growing_groups_of_any(snapshot.objects_of(ConfigMap))
    by_target = sorted(
        snapshot.objects_of(DaemonSet), key=lambda d: (d.metadata.namespace or "default", d.metadata.name)
    )
    daemons = tuple(daemon for daemon in map(daemon_spec, by_target) if daemon is not None)
    ranges = _group_by_namespace(snapshot.objects_of(LimitRange))
    recommendations, problems = _decode_recommendations(snapshot.objects_of(ConfigMap), own_namespace)
    hpas = snapshot.objects_of(HorizontalPodAutoscaler)
    grouped: dict[OwnerKey, list[HorizontalPodAutoscaler]] = {}
    for hpa in sorted(hpas, key=name_order):
        grouped.setdefault(hpa_target(hpa), []).append(hpa)
    return ClusterFacts(
        namespaces={n.metadata.name: value_or(n.metadata.labels, {}) for n in snapshot.objects_of(Namespace)},
        runtime_classes={c.metadata.name: c for c in snapshot.objects_of(RuntimeClass)},
        priority_classes={c.metadata.name: c for c in snapshot.objects_of(PriorityClass)},
        limit_ranges=ranges,
        bounds={namespace: container_bounds(items) for namespace, items in ranges.items()},
        quotas=_group_by_namespace(snapshot.objects_of(ResourceQuota)),
        vpas=_group_vpas(snapshot.objects_of(VerticalPodAutoscaler)),
        vpa_reach=vpa_reach,
        hpas={target: tuple(same) for target, same in grouped.items()},
        owners=_owner_mapping(snapshot),
        replicas=replicas,
        updated=updated,
        created=_creation_times(snapshot),
        recommendations=recommendations,
        largest_node=largest_allocatable(shapes),
        nodes=build_node_shapes(shapes, daemons, closed, growing),
        machines=machines,
        problems=problems,
    )


_Namespaced = TypeVar("_Namespaced", LimitRange, ResourceQuota)


def namespace_of(item: LimitRange | ResourceQuota) -> str:
    """Returns the namespace of an object; `default` if the object has none."""
    return item.metadata.namespace or "default"


def name_order(item: LimitRange | ResourceQuota | HorizontalPodAutoscaler) -> str:
    """Returns the name of an object. Objects of one namespace are sorted by it, so that equal facts always give equal
    decisions."""
    return item.metadata.name


def age_order(vpa: VerticalPodAutoscaler) -> tuple[str, str]:
    """Returns the sort key of a VPA. The oldest VPA comes first, and it is the one that counts for a workload."""
    # RFC 3339 timestamps in UTC sort as text.
    return (vpa.metadata.creation_timestamp or "", vpa.metadata.name)


def vpa_target(vpa: VerticalPodAutoscaler) -> OwnerKey:
    """Returns the VPA's target."""
    return target_key(vpa.spec.target_ref, vpa.metadata.namespace or "default")


def hpa_target(hpa: HorizontalPodAutoscaler) -> OwnerKey:
    """Returns the HPA's target."""
    return target_key(hpa.spec.scale_target_ref, hpa.metadata.namespace or "default")


def _group_by_namespace(objects: Iterable[_Namespaced]) -> dict[str, tuple[_Namespaced, ...]]:
    grouped: dict[str, list[_Namespaced]] = {}
    for item in sorted(objects, key=name_order):
        grouped.setdefault(namespace_of(item), []).append(item)
    return {namespace: tuple(items) for namespace, items in grouped.items()}


def _group_vpas(vpas: Iterable[VerticalPodAutoscaler]) -> dict[OwnerKey, tuple[VerticalPodAutoscaler, ...]]:
    grouped: dict[OwnerKey, list[VerticalPodAutoscaler]] = {}
    for vpa in sorted(vpas, key=age_order):
        grouped.setdefault(vpa_target(vpa), []).append(vpa)
    return {target: tuple(same) for target, same in grouped.items()}


def _owner_mapping(snapshot: Snapshot) -> dict[OwnerKey, OwnerKey | None]:
    owners: dict[OwnerKey, OwnerKey | None] = {}
    for kind, item in snapshot.iterate_workloads():
        # Manifests in files may leave the namespace out; `kubectl` then uses the one of its context.
        namespace = item.metadata.namespace or "default"
        owners[OwnerKey(namespace, kind, item.metadata.name)] = controller_key(item.metadata, namespace)
    return owners


def _replica_counts(snapshot: Snapshot) -> tuple[dict[OwnerKey, Replicas], dict[OwnerKey, int]]:
    """Returns owner → how many replicas it wants, and owner → how many pods of its current template exist."""
    replicas: dict[OwnerKey, Replicas] = {}
    updated: dict[OwnerKey, int] = {}
    for kind, item in snapshot.iterate_workloads():
        key = OwnerKey(item.metadata.namespace or "default", kind, item.metadata.name)
        existing = updated_pods_of(kind, item)
        # A process watches only the metadata of ReplicaSets (see `watched_facts.COUNTED`). A snapshot must give the
        # same facts, so the numbers of a ReplicaSet's spec and status are not read here either.
        is_metadata_only = kind == "ReplicaSet"
        wanted = replicas_from_annotations(item.metadata) if is_metadata_only else replicas_of(kind, item)
        if wanted is not None:
            replicas[key] = wanted
            if existing and not is_metadata_only:
                updated[key] = existing
    return replicas, updated


def _creation_times(snapshot: Snapshot) -> dict[OwnerKey, Seconds]:
    times: dict[OwnerKey, Seconds] = {}
    for kind, item in snapshot.iterate_workloads():
        timestamp = creation_time(item.metadata)
        # Only the topmost owner decides whether a recommendation is older than the workload.
        if item.metadata.controller_owner is None and timestamp is not None:
            times[OwnerKey(item.metadata.namespace or "default", kind, item.metadata.name)] = timestamp
    return times


def _node_shapes(snapshot: Snapshot) -> tuple[tuple[NodeShape, ...], tuple[NodeShape, ...], Machines]:
    """Returns the shapes of nodes that accept pods, the shapes of cordoned nodes, and the labels and values that
    identify a single node."""
    counter = ShapeCounter()
    nodes = [node for node in map(shaped_node, snapshot.objects_of(Node)) if node is not None]
    machines: dict[Machine, tuple[OneMachine, ...]] = {}
    for node in sorted(nodes, key=lambda item: item.name):
        for single in counter.put(node):
            machines[single.machine] = (*machines.get(single.machine, ()), single)
    return (*shapes_by_state(counter.sorted_shapes()), machines)


def build_node_shapes(
    shapes: tuple[NodeShape, ...],
    daemons: tuple[PodSpec, ...],
    closed: tuple[NodeShape, ...],
    growing: tuple[str, ...] | None,
) -> NodeShapes:
    """Returns the node shapes; the object `NO_NODES` itself if nothing is known about nodes."""
    nodes = NodeShapes(shapes, daemons, closed, growing)
    # One object for "no nodes": `FactDependencies` compares nodes by identity.
    return NO_NODES if nodes == NO_NODES else nodes


def controller_of(item: Workload | ApiObject) -> OwnerKey | None:
    """Returns the object's controller, or None if it has none."""
    # The same default as in `from_snapshot`.
    metadata: Metadata = item.metadata  # type: ignore[union-attr]
    controller = controller_key(metadata, metadata.namespace or "default")
    return None if controller is None else _shared_owner(controller)


# The Jobs of one CronJob share one `OwnerKey` object.
@lru_cache(maxsize=20_000)
def _shared_owner(owner: OwnerKey) -> OwnerKey:
    return owner


def creation_time(metadata: Metadata) -> Seconds | None:
    """Returns the creation time, or None if it is absent or cannot be parsed."""
    return parse_timestamp(metadata.creation_timestamp)


def _decode_recommendations(
    maps: Iterable[ConfigMap], own_namespace: str
) -> tuple[Recommendations, tuple[Unreadable, ...]]:
    """Returns the recommendations of all shards and the problems of shards that cannot be decoded. If two shards hold
    the same workload, the last one in order of name counts."""
    workloads: dict[str, Mapping[str, ContainerUsage]] = {}
    problems: list[Unreadable] = []
    # Watches deliver shards in any order; the order of names makes both ways of building facts agree.
    for shard in sorted(maps, key=lambda item: item.metadata.name):
        decoded = decode_shard(shard, own_namespace)
        if isinstance(decoded, Unreadable):
            problems.append(decoded)
        else:
            workloads |= decoded or {}
    return Recommendations(workloads), tuple(problems)


def decode_shard(config_map: ConfigMap, own_namespace: str) -> Workloads | Unreadable | None:
    """Returns the workloads in a shard of recommendations; Unreadable if it cannot be decoded; None if it is not a
    shard.

    Only ConfigMaps in Trimtab's own namespace are trusted, because every tenant can write the label in theirs.
    """
    if (
        value_or(config_map.metadata.labels, {}).get(RECOMMENDATIONS_LABEL) != "v1"
        or config_map.metadata.namespace != own_namespace
    ):
        return None
    name = f"ConfigMap {config_map.metadata.namespace}/{config_map.metadata.name}"
    return decode(name, config_map.data.get(PAYLOAD_KEY, ""))


def largest_allocatable(shapes: Iterable[NodeShape]) -> dict[str, int]:
    """Returns, for each resource, the largest allocatable amount of any node shape."""
    largest: dict[str, int] = {}
    for shape in shapes:
        largest = larger_amounts(largest, shape.allocatable)
    return largest


K = TypeVar("K")
V = TypeVar("V")

# Objects whose value is cached at once, unless there is room for more.
MAX_CACHED_OBJECTS = 256


class Derived(Generic[K, V]):
    """Caches `make(source)` for each object `source`. Sources must be immutable. Two equal objects are cached
    separately."""

    def __init__(self, make: Callable[[K], V], room: int = MAX_CACHED_OBJECTS) -> None:
        """`room` is the largest number of objects whose values are cached at the same time."""
        self._make, self._room = make, room
        self._cache: dict[int, tuple[K, V]] = {}

    def value_for(self, source: K) -> V:
        """Returns `make(source)`, from the cache if it was computed for this same object."""
        # The entry holds the object itself, so that Python cannot give its id to another object.
        entry = self._cache.get(id(source))
        if entry is not None and entry[0] is source:
            return entry[1]
        value = self._make(source)
        if len(self._cache) >= self._room:
            self._cache.clear()
        self._cache[id(source)] = (source, value)
        return value
