"""Builds `ClusterFacts` step by step from the changes that watches deliver.

    projections = projections_by_kind(own_namespace)                  # what is retained of an object
    cache = FactsCache(own_namespace)
    cache.put("LimitRange", ("team-a", "guard"), projections["LimitRange"](item))
    cache.drop("Namespace", ("", "team-b"))
    facts = cache.build_facts(listed_kinds)

Every unchanged part of the facts, and every unchanged value in a part, is the same object as before. So a cache of what
was computed from a value may look up the value by identity. The facts do not depend on the order of the changes, and
equal those that `from_snapshot` makes of the same objects; only a shard of recommendations that becomes unreadable
keeps its last content. Only one thread may use it.
"""

from dataclasses import fields
from typing import Any

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.core import PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.owner import OwnerKey
from trimtab.policy.cluster_facts import (
    ALL_KINDS,
    OWN_NAMESPACE,
    ClusterFacts,
    age_order,
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
    RecommendationShards,
)
from trimtab.policy.retained_facts import AUTOSCALER, OWNERS
from trimtab.policy.vpa_webhook import EVERYWHERE, WebhookReach


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
        """Adds or replaces an object. `retained` is its reduced form from `retained_facts`."""
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
