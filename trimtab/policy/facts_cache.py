"""Facts that grow with the cluster: told what came and went, and whole at any moment.

    held = holds(own_namespace)                                     # what is kept of an object
    gathering = Gathering(own_namespace)
    gathering.put("LimitRange", ("team-a", "guard"), held["LimitRange"](item))
    gathering.drop("Namespace", ("", "team-b"))
    facts = gathering.facts(known)

Every part of the facts that does not differ from the time before is the very same object, and so is every value in
a part that does: whoever remembers what followed from one may look it up by identity. The same objects give the same
facts whatever came in between: `from_snapshot` of what is there now, but that a shard of recommendations that turned
bad keeps what it said last. Not for two threads.
"""

from dataclasses import fields
from typing import Any

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.core import PriorityClass, ResourceQuota, RuntimeClass
from trimtab.policy.cluster_facts import (
    EVERYTHING,
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
    Target,
)
from trimtab.policy.retained_facts import AUTOSCALER, OWNERS
from trimtab.policy.vpa_webhook import EVERYWHERE, WebhookReach


class FactsCache:
    """What was told of the cluster so far."""

    def __init__(self, own_namespace: str = OWN_NAMESPACE) -> None:
        self._namespaces = NamespaceFacts(own_namespace)
        self._runtime_classes: NamedFacts[RuntimeClass] = NamedFacts()
        self._priority_classes: NamedFacts[PriorityClass] = NamedFacts()
        self._limit_ranges = LimitRangeFacts()
        self._quotas: GroupedMap[Key, str, ResourceQuota] = GroupedMap(namespace_of, name_order)
        self._vpas: GroupedMap[Key, Target, VerticalPodAutoscaler] = GroupedMap(vpa_target, age_order)
        self._hpas: GroupedMap[Key, Target, HorizontalPodAutoscaler] = GroupedMap(hpa_target, name_order)
        self._owners = OwnerFacts()
        self._nodes = NodeFacts(self._owners)
        self._shards = RecommendationShards()
        self._parts: dict[str, FactsTable] = {
            "Namespace": self._namespaces, "RuntimeClass": self._runtime_classes,
            "PriorityClass": self._priority_classes, "LimitRange": self._limit_ranges, "ResourceQuota": self._quotas,
            "VerticalPodAutoscaler": self._vpas, "HorizontalPodAutoscaler": self._hpas, "Node": self._nodes,
            "ConfigMap": self._shards, AUTOSCALER: AutoscalerStatus(self._nodes),
            **{kind: KindOwnerFacts(kind, self._owners) for kind in OWNERS},
        }  # fmt: skip
        self._last = ClusterFacts()

    def put(self, kind: str, key: Key, held: Any) -> None:
        """It is there, and this is kept of it (see `held`)."""
        self._parts[kind].put(key, held)

    def drop(self, kind: str, key: Key) -> None:
        """It is gone. What was never there may go, too."""
        self._parts[kind].drop(key)

    @property
    def paused(self) -> bool:
        """Does our own namespace say that every change stops?"""
        return self._namespaces.paused

    def facts(
        self, known: frozenset[str] = EVERYTHING, *, vpa_reach: tuple[WebhookReach, ...] = EVERYWHERE
    ) -> ClusterFacts:
        """Everything told, indexed. The same object as last time where nothing differs."""
        if vpa_reach == self._last.vpa_reach:  # the same object, by which readers tell that nothing changed
            vpa_reach = self._last.vpa_reach
        found = ClusterFacts(
            known=known,
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
            problems=self._shards.unreadable_shards(),
        )
        if not _same(self._last, found):
            self._last = found
        return self._last


_SMALL = frozenset({"known", "problems"})
"""Parts that are compared by value; the others are the same object or differ."""


def _same(a: ClusterFacts, b: ClusterFacts) -> bool:
    for part in fields(ClusterFacts):
        mine, other = getattr(a, part.name), getattr(b, part.name)
        if mine is not other and not (part.name in _SMALL and mine == other):
            return False
    return True
