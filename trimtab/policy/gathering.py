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

from trimtab.cluster.api.rules import PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.scaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.owner import Owner
from trimtab.policy.facts import EVERYTHING, OWN_NAMESPACE, Facts, by_age, by_name, home, hpa_target, vpa_target
from trimtab.policy.held import OWNERS
from trimtab.policy.parts import Key, LimitRanges, Named, Namespaces, Nodes, Owners, Part, Shards, Target
from trimtab.policy.table import Groups, Table


class Gathering:
    """What was told of the cluster so far."""

    def __init__(self, own_namespace: str = OWN_NAMESPACE) -> None:
        self._namespaces = Namespaces(own_namespace)
        self._runtime_classes: Named[RuntimeClass] = Named()
        self._priority_classes: Named[PriorityClass] = Named()
        self._limit_ranges = LimitRanges()
        self._quotas: Groups[Key, str, ResourceQuota] = Groups(home, by_name)
        self._vpas: Groups[Key, Target, VerticalPodAutoscaler] = Groups(vpa_target, by_age)
        self._hpas: Groups[Key, Target, HorizontalPodAutoscaler] = Groups(hpa_target, by_name)
        self._owners: Table[Target, Owner | None] = Table()
        self._nodes = Nodes()
        self._shards = Shards()
        self._parts: dict[str, Part] = {
            "Namespace": self._namespaces, "RuntimeClass": self._runtime_classes,
            "PriorityClass": self._priority_classes, "LimitRange": self._limit_ranges, "ResourceQuota": self._quotas,
            "VerticalPodAutoscaler": self._vpas, "HorizontalPodAutoscaler": self._hpas, "Node": self._nodes,
            "ConfigMap": self._shards, **{kind: Owners(kind, self._owners) for kind in OWNERS},
        }  # fmt: skip
        self._last = Facts()

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

    def facts(self, known: frozenset[str] = EVERYTHING, *, vpa_acts: bool = True) -> Facts:
        """Everything told, indexed. The same object as last time where nothing differs."""
        found = Facts(
            known=known,
            namespaces=self._namespaces.whole(),
            runtime_classes=self._runtime_classes.whole(),
            priority_classes=self._priority_classes.whole(),
            limit_ranges=self._limit_ranges.whole(),
            bounds=self._limit_ranges.bounds(),
            quotas=self._quotas.whole(),
            vpas=self._vpas.whole(),
            vpa_acts=vpa_acts,
            hpas=self._hpas.whole(),
            owners=self._owners.whole(),
            recommendations=self._shards.whole(),
            largest_node=self._nodes.largest(),
            problems=self._shards.problems(),
        )
        if not _same(self._last, found):
            self._last = found
        return self._last


_SMALL = frozenset({"known", "vpa_acts", "problems"})
"""Parts that are compared by value; the others are the same object or differ."""


def _same(a: Facts, b: Facts) -> bool:
    for part in fields(Facts):
        mine, other = getattr(a, part.name), getattr(b, part.name)
        if mine is not other and not (part.name in _SMALL and mine == other):
            return False
    return True
