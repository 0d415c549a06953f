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
    by_age,
    by_name,
    home,
    hpa_target,
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
        self._quotas: GroupedMap[Key, str, ResourceQuota] = GroupedMap(home, by_name)
        self._vpas: GroupedMap[Key, Target, VerticalPodAutoscaler] = GroupedMap(vpa_target, by_age)
        self._hpas: GroupedMap[Key, Target, HorizontalPodAutoscaler] = GroupedMap(hpa_target, by_name)
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
            namespaces=self._namespaces.whole(),
            runtime_classes=self._runtime_classes.whole(),
            priority_classes=self._priority_classes.whole(),
            limit_ranges=self._limit_ranges.whole(),
            bounds=self._limit_ranges.bounds(),
            quotas=self._quotas.whole(),
            vpas=self._vpas.whole(),
            vpa_reach=vpa_reach,
            hpas=self._hpas.whole(),
            owners=self._owners.above(),
            created=self._owners.created(),
            replicas=self._owners.replicas(),
            updated=self._owners.updated(),
            recommendations=self._shards.whole(),
            largest_node=self._nodes.largest(),
            nodes=self._nodes.whole(),
            machines=self._nodes.machines(),
            problems=self._shards.problems(),
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
