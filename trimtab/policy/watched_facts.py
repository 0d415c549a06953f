"""Builds policies and `ClusterFacts` step by step from the changes that watches deliver, for the webhook, the watchdog
and the compactor. There are no threads here, no clock and no connection to the API server: a process decides what it
watches and when it builds facts.

Objects are first reduced to what decisions read. Values that change all the time and that no decision reads (a node's
heartbeat, a Deployment's status) are dropped, so that their changes do not count as changes of the facts.

    projections = projections_by_kind(own_namespace)                  # what is retained of an object
    cache = FactsCache(own_namespace)
    cache.put("LimitRange", ("team-a", "guard"), projections["LimitRange"](item))
    cache.drop("Namespace", ("", "team-b"))
    facts = cache.build_facts(listed_kinds)

Every unchanged part of the facts, and every unchanged value in a part, is the same object as before. So a cache of what
was computed from a value may look up the value by identity. The facts do not depend on the order of the changes, and
equal those that `from_snapshot` makes of the same objects; only a shard of recommendations that becomes unreadable
keeps its last content. Only one thread may use it.

`PolicyStore` keeps the policies that are in effect while users edit them one by one in the cluster. If a new version of
a policy is not valid, the mistake is reported and the last valid version stays in effect. Other policies are not
affected. `WatchedPolicies` has both, and the reach of the VPA's webhook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from trimtab.cluster.api.admissionregistration import Custom
from trimtab.cluster.api.autoscaling import (
    ContainerRecommendation,
    HorizontalPodAutoscaler,
    VerticalPodAutoscaler,
    VPAStatus,
)
from trimtab.cluster.api.autoscaling import VPARecommendation as Recommended
from trimtab.cluster.api.core import Lease, LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.meta import ApiObject, Metadata, change, value_or
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.cluster_autoscaler import growing_groups
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node_shapes import daemon_spec, shaped_node
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pause_mark import pause_reason
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import Workloads
from trimtab.cluster.replicas import Replicas, replicas_from_annotations, replicas_of, updated_pods_of
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.cluster.yaml_documents import Document
from trimtab.policy import vpa_webhook
from trimtab.policy.autoscalers import RESIZING
from trimtab.policy.cluster_facts import (
    ALL_KINDS,
    OWN_NAMESPACE,
    OWNERS,
    ClusterFacts,
    age_order,
    controller_of,
    creation_time,
    decode_shard,
    hpa_target,
    name_order,
    namespace_of,
    vpa_target,
)
from trimtab.policy.facts_index import (
    AutoscalerStatus,
    FactsTable,
    GroupedMap,
    Key,
    KindOwnerFacts,
    LimitRangeFacts,
    NamedFacts,
    NamespaceFacts,
    NodeFacts,
    OwnerFacts,
    PersistentMap,
    RecommendationShards,
    RetainedNamespace,
    RetainedOwner,
)
from trimtab.policy.load import load_document
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.policy_kind import API_VERSION, KIND
from trimtab.policy.vpa_webhook import EVERYWHERE, Endpoints, Service, WebhookReach, WebhookTarget

COUNTED = frozenset({"Deployment", "StatefulSet", "ReplicationController", "DaemonSet", "Job"})
"""Kinds of owners that are watched as whole objects, because their spec says how many pods they want. Two kinds are
missing, because their metadata is enough: ReplicaSets, of which there are ten for each Deployment and which carry that
number in their annotations, and CronJobs, which want no pods themselves."""

AUTOSCALER = "AutoscalerStatus"
"""The name, used like a kind, under which the cluster autoscaler's status ConfigMap is stored, to separate it from the
ConfigMaps with recommendations."""

Hold = Callable[[Any], Any]


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
    responses stay valid nevertheless (`decision_reads.Freshness.USED`)."""
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


class FactsCache:
    """The objects of the cluster as received so far, reduced to what decisions read."""

    def __init__(self, own_namespace: str = OWN_NAMESPACE) -> None:
        self._namespaces = NamespaceFacts(own_namespace)
        self._runtime_classes: NamedFacts[RuntimeClass] = NamedFacts()
        self._priority_classes: NamedFacts[PriorityClass] = NamedFacts()
        self._limit_ranges = LimitRangeFacts()
        self._quotas: GroupedMap[Key, str, ResourceQuota] = GroupedMap(namespace_of, name_order)
        self._vpas: GroupedMap[Key, OwnerKey, VerticalPodAutoscaler] = GroupedMap(vpa_target, age_order)
        self._hpas: GroupedMap[Key, OwnerKey, HorizontalPodAutoscaler] = GroupedMap(hpa_target, name_order)
        self._owners = OwnerFacts()
        self._nodes = NodeFacts(self._owners)
        self._shards = RecommendationShards()
        self._parts: dict[str, FactsTable] = {
            "Namespace": self._namespaces,
            "RuntimeClass": self._runtime_classes,
            "PriorityClass": self._priority_classes,
            "LimitRange": self._limit_ranges,
            "ResourceQuota": self._quotas,
            "VerticalPodAutoscaler": self._vpas,
            "HorizontalPodAutoscaler": self._hpas,
            "Node": self._nodes,
            "ConfigMap": self._shards,
            AUTOSCALER: AutoscalerStatus(self._nodes),
            **{kind: KindOwnerFacts(kind, self._owners) for kind in OWNERS},
        }
        self._last = ClusterFacts()

    def put(self, kind: str, key: Key, retained: Any) -> None:
        """Adds or replaces an object. `retained` is its reduced form, by `projections_by_kind`."""
        self._parts[kind].put(key, retained)

    def drop(self, kind: str, key: Key) -> None:
        """Removes an object, if it is there."""
        self._parts[kind].drop(key)

    @property
    def is_paused(self) -> bool:
        """Whether Trimtab's own namespace says that all changes must stop."""
        return self._namespaces.paused

    def build_facts(
        self,
        listed_kinds: frozenset[str] = ALL_KINDS,
        *,
        vpa_reach: tuple[WebhookReach, ...] = EVERYWHERE,
        fresh_leases: frozenset[str] | None = None,
    ) -> ClusterFacts:
        """Returns the facts from everything received so far; the same `ClusterFacts` object as last time if nothing
        differs."""
        # Equal becomes identical: readers compare by identity to see that nothing changed.
        if vpa_reach == self._last.vpa_reach:
            vpa_reach = self._last.vpa_reach
        facts = ClusterFacts(
            listed_kinds=listed_kinds,
            namespaces=self._namespaces.current_mapping(),
            runtime_classes=self._runtime_classes.current_mapping(),
            priority_classes=self._priority_classes.current_mapping(),
            limit_ranges=self._limit_ranges.current_mapping(),
            bounds=self._limit_ranges.bounds_by_namespace(),
            quotas=self._quotas.current_mapping(),
            vpas=self._vpas.current_mapping(),
            vpa_reach=vpa_reach,
            hpas=self._hpas.current_mapping(),
            owners=self._owners.controller_by_owner(),
            created=self._owners.creation_by_owner(),
            replicas=self._owners.replicas_by_owner(),
            updated=self._owners.updated_by_owner(),
            recommendations=self._shards.current_recommendations(),
            largest_node=self._nodes.largest_allocatable(),
            nodes=self._nodes.current_shapes(),
            machines=self._nodes.nodes_by_machine(),
            fresh_leases=fresh_leases,
            problems=self._shards.unreadable_shards(),
        )
        if not _is_same(self._last, facts):
            self._last = facts
        return self._last


def _is_same(last: ClusterFacts, new: ClusterFacts) -> bool:
    for field in fields(ClusterFacts):
        mine, other = getattr(last, field.name), getattr(new, field.name)
        # Mappings that are equal are the same object; only the kinds that are known and the problems are built anew.
        if mine is not other and not (isinstance(mine, frozenset | tuple) and mine == other):
            return False
    return True


Loaded = PodPolicy | tuple[ConfigError, ...]
"""A policy, or all mistakes in its document."""


def load_object(item: Custom) -> Loaded:
    """Returns the policy of a PodPolicy object in the cluster, or the mistakes in it, with the same messages as for
    files. A policy that the harm brake holds has the mode `warn`."""
    metadata = {"name": item.metadata.name, "generation": item.metadata.generation}
    value = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": item.spec, "status": item.status}
    policy, mistakes = load_document(Document(file=KIND, index=0, value=value))
    return tuple(mistakes) if policy is None else policy


class PolicyStore:
    """The last valid version of every policy. Only one thread may use it."""

    def __init__(self) -> None:
        self._policies: PersistentMap[str, PodPolicy] = PersistentMap()
        self._broken: PersistentMap[str, tuple[ConfigError, ...]] = PersistentMap()
        # The mapping that `current_policies` returned last as a set, and that set.
        self._last: tuple[Mapping[str, PodPolicy], Policies] = ({}, Policies())

    def put(self, name: str, loaded: Loaded) -> None:
        if isinstance(loaded, PodPolicy):
            self._policies.put(name, loaded)
            self._broken.drop(name)
        else:
            # The last valid version stays in effect: a typing error must not lift a policy from a running cluster.
            self._broken.put(name, loaded)

    def drop(self, name: str) -> None:
        self._policies.drop(name)
        self._broken.drop(name)

    def current_policies(self) -> Policies:
        """Returns all policies in effect, in the order in which they decide; the same object as last time if nothing
        differs."""
        by_name = self._policies.current_mapping()
        if by_name is not self._last[0]:
            self._last = by_name, Policies.from_policies(*by_name.values())
        return self._last[1]

    def invalid_documents(self) -> Mapping[str, tuple[ConfigError, ...]]:
        """Returns policy name → the mistakes in its document; the same object as last time if nothing differs."""
        return self._broken.current_mapping()


POLICY, CONFIGURATION, SLICE, LEASE = "PodPolicy", "MutatingWebhookConfiguration", "EndpointSlice", "Lease"


class WatchedPolicies:
    """The policies, the cluster facts, and the reach of the VPA's webhook. Only one thread may use it."""

    def __init__(self, own_namespace: str, fixed: Policies | None = None) -> None:
        """`fixed` are policies from files, which are used instead of those in the cluster."""
        self._fixed = fixed
        self._store = PolicyStore()
        self._facts_cache = FactsCache(own_namespace)
        self._targets: dict[Key, tuple[WebhookTarget, ...]] = {}
        self._slices: dict[Key, Endpoints] = {}
        self._leases: dict[Key, Seconds | None] = {}
        """Lease → the time until which it is held."""

    def put(self, kind: str, key: Key, retained: Any) -> None:
        """Adds or replaces an object. `retained` is the reduced form for its kind, which `load_object`,
        `find_vpa_targets`, `retain_endpoints` or a function of `projections_by_kind` returns."""
        if kind == POLICY:
            self._store.put(key[1], retained)
        elif kind == CONFIGURATION:
            self._targets[key] = retained
        elif kind == SLICE:
            self._slices[key] = retained
        elif kind == LEASE:
            self._leases[key] = retained
        else:
            self._facts_cache.put(kind, key, retained)

    def drop(self, kind: str, key: Key) -> None:
        """Removes an object, if it is there."""
        if kind == POLICY:
            self._store.drop(key[1])
        elif kind == CONFIGURATION:
            self._targets.pop(key, None)
        elif kind == SLICE:
            self._slices.pop(key, None)
        elif kind == LEASE:
            self._leases.pop(key, None)
        else:
            self._facts_cache.drop(kind, key)

    @property
    def policies(self) -> Policies:
        """The policies in effect; the same object as last time if nothing differs."""
        return self._fixed if self._fixed is not None else self._store.current_policies()

    def invalid_documents(self) -> Mapping[str, tuple[ConfigError, ...]]:
        """Returns policy name → the mistakes in its document in the cluster."""
        return self._store.invalid_documents()

    @property
    def is_paused(self) -> bool:
        """Whether Trimtab's own namespace says that all changes must stop."""
        return self._facts_cache.is_paused

    @property
    def vpa_services(self) -> frozenset[Service]:
        """The Services whose endpoints must be watched to know whether the VPA's webhook can act."""
        return vpa_webhook.target_services(self._targets)

    @property
    def scheduler_leases(self) -> frozenset[Key]:
        """The Leases that must be watched to know whether the schedulers that policies set are running, as (namespace,
        name)."""
        return self.policies.compute_once(scheduler_leases)

    def forget_added_lists(self) -> None:
        """Removes all EndpointSlices and Leases, because a different set of them is watched from now on."""
        self._slices.clear()
        self._leases.clear()

    def build_facts(
        self,
        vpa_reach: tuple[WebhookReach, ...] | None = None,
        now: Seconds | None = None,
        listed_kinds: frozenset[str] = ALL_KINDS,
    ) -> ClusterFacts:
        """Returns the facts from everything received so far; the same object as last time if nothing differs.

        `vpa_reach`: the pods for which the VPA's webhook is assumed to act; None: as its configurations and endpoints
        say. `now`: the time, which decides which Leases are fresh; None: no Leases are watched. `listed_kinds`: the
        kinds of which all objects are known.
        """
        if vpa_reach is None:
            vpa_reach = vpa_webhook.find_webhook_reach(self._targets, self._slices)
        return self._facts_cache.build_facts(listed_kinds, vpa_reach=vpa_reach, fresh_leases=self._fresh_leases(now))

    def _fresh_leases(self, now: Seconds | None) -> frozenset[str] | None:
        if now is None:
            return None
        held = self._leases.items()
        return frozenset("/".join(key) for key, until in held if until is not None and now <= until)


def scheduler_leases(policies: Policies) -> frozenset[Key]:
    """Returns the Leases of the schedulers that policies set, as (namespace, name)."""
    chosen = (policy.spec.actions.scheduler_name for policy in policies.all if policy.spec.enabled)
    leases = (choice.watched_lease for choice in chosen if choice is not None)
    pairs = (lease.partition("/") for lease in leases if lease is not None)
    return frozenset((namespace, name) for namespace, _, name in pairs)
