"""What does the compactor see at one moment? One value that every decision of that moment is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.autoscaler import Autoscaler
from trimtab.cluster.inventory import Inventory
from trimtab.cluster.moment import Seconds
from trimtab.cluster.node import Node
from trimtab.cluster.owner import Owner
from trimtab.cluster.pod import Pod
from trimtab.cluster.pool import Pool

Key = tuple[str, str, str]
"""(namespace, kind, name) of an owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    at: Seconds
    inventory: Inventory
    pools: tuple[Pool, ...] = ()
    autoscaler: Autoscaler | None = None
    """None: nothing is known of it."""
    tops: Mapping[Key, Owner] = field(default_factory=dict)
    """Owner → who owns it: a ReplicaSet's Deployment."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Node → resourceVersion: what a write is decided on."""
    unread: tuple[str, ...] = ()
    """Pools that have a mistake, each in words."""
    home: str = ""
    """Our own namespace."""
    paused: str = ""
    """Why nothing may be done now, in words; empty when it may."""
    flight: frozenset[str] = frozenset()
    """Uids of pods that were evicted and are still seen as if they were not: this view is older than that."""

    led: Mapping[str, float] = field(default_factory=dict)
    """Drain → seconds for which whoever asks has carried it on; one that is not named: from its beginning."""

    def pool(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)

    def node(self, name: str) -> Node | None:
        return next((node for node in self.inventory.nodes if node.name == name), None)


@dataclass(slots=True)
class Workloads:
    """How whole is each workload, by the pods that are seen now? Pods on their way out count as gone."""

    view: View
    ready: dict[Key, int] = field(default_factory=dict)
    unready: dict[Key, list[Pod]] = field(default_factory=dict)
    all_ready: dict[Key, int] = field(default_factory=dict)
    """Deployment → ready pods of all its ReplicaSets; any other owner → its own."""

    @classmethod
    def of(cls, view: View) -> "Workloads":
        made = cls(view)
        for pod in view.inventory.pods:
            if pod.owner is None or pod.finished or gone(pod, view):
                continue
            key = (pod.namespace, pod.owner.kind, pod.owner.name)
            if pod.ready:
                made.ready[key] = made.ready.get(key, 0) + 1
            else:
                made.unready.setdefault(key, []).append(pod)
        for key, count in made.ready.items():
            top = made.above(key)
            made.all_ready[top] = made.all_ready.get(top, 0) + count
        return made

    def wanted(self, key: Key) -> int:
        """0 where the owner is gone or does not say."""
        scale = self.view.inventory.owners.get(key)
        return scale.wanted or 0 if scale is not None else 0

    def missing(self, key: Key) -> int:
        """Pods it wants and does not have ready."""
        return max(0, self.wanted(key) - self.ready.get(key, 0))

    def above(self, key: Key) -> Key:
        """The Deployment that owns the owner; the owner itself where none does."""
        top = self.view.tops.get(key)
        return (key[0], top.kind, top.name) if top is not None and top.kind == "Deployment" else key

    def together(self, key: Key) -> tuple[int, int]:
        """(pods wanted, of them missing) of the whole workload: in a rollout a Deployment has pods of two owners."""
        top = self.above(key)
        wanted = self.wanted(top)
        return max(wanted, self.wanted(key)), max(self.missing(key), wanted - self.all_ready.get(top, 0))


def gone(pod: Pod, view: View) -> bool:
    """On its way out, by anybody's hand."""
    return pod.deleted is not None or pod.uid in view.flight
