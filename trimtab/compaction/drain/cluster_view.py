"""What does the compactor see at one moment? One value that every decision of that moment is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import Autoscaler, with_options
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import Owner
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, PodToEvict

Key = tuple[str, str, str]
"""(namespace, kind, name) of an owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    at: Seconds
    inventory: Inventory
    pools: tuple[Pool, ...] = ()
    autoscaler: Autoscaler | None = None
    """None: nothing is known of it."""
    tops: Mapping[Key, Owner] = field(default_factory=dict)
    """Owner → who owns it: a ReplicaSet's Deployment."""
    notes: DrainAnnotations = field(default_factory=DrainAnnotations)
    """What stands on nodes, as far as it is authentic."""
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

    opened: Mapping[str, int] = field(default_factory=dict)
    """Pool → emptied nodes of it that were opened in the last hour for pods that waited."""
    deleting: frozenset[str] = frozenset()
    """Nodes of drains of ours that the autoscaler had begun to delete not long ago."""
    led: Mapping[str, float] = field(default_factory=dict)
    """Drain → seconds for which whoever asks has carried it on; one that is not named: from its beginning."""

    @property
    def autoscaler_deletions(self) -> Mapping[str, str]:
        """Node → pool, of what the autoscaler removes in pools that lead: it counts in their pace and budgets."""
        leading = [pool for pool in self.pools if pool.autoscaler is Precedence.LEAD]
        going = [node for node in self.inventory.nodes if node.going is not None] if leading else []
        return {node.name: pool.name for pool in leading for node in going if pool.has(node)}

    def noted(self) -> list[tuple[NodeInfo, DrainAnnotation | Unreadable]]:
        """Nodes with an authentic note of ours, the oldest drain first: what was begun first ends first."""
        ours = self.notes.ours
        found = [(node, ours[node.name]) for node in self.inventory.nodes if node.name in ours] if ours else []
        return sorted(
            found, key=lambda pair: (pair[1].since if isinstance(pair[1], DrainAnnotation) else 0, pair[0].name)
        )

    def autoscaler_of(self, pool: str) -> Autoscaler | None:
        """The autoscaler as it treats the pool of this name; None: nothing is known of it."""
        found = self.pool(pool)
        if self.autoscaler is None or found is None:
            return self.autoscaler
        return with_options(self.autoscaler, found.group_options)

    def pool(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)

    def node(self, name: str) -> NodeInfo | None:
        return next((node for node in self.inventory.nodes if node.name == name), None)


@dataclass(slots=True)
class Workloads:
    """How whole is each workload, by the pods that are seen now? Pods on their way out count as gone."""

    view: ClusterView
    ready: dict[Key, int] = field(default_factory=dict)
    unready: dict[Key, list[PodInfo]] = field(default_factory=dict)
    all_ready: dict[Key, int] = field(default_factory=dict)
    """Deployment → ready pods of all its ReplicaSets; any other owner → its own."""

    @classmethod
    def of(cls, view: ClusterView) -> "Workloads":
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

    def newly_missing(self, move: PodToEvict) -> int:
        """Pods that the owner of this pod lacks beyond those it lacked when the drain began."""
        return max(0, self.missing(move.workload) - move.missing)

    def failure(self, key: Key) -> str:
        """Why the owner's controller cannot create a pod now; empty while it can."""
        scale = self.view.inventory.owners.get(key)
        return scale.failure if scale is not None else ""

    def above(self, key: Key) -> Key:
        """The Deployment that owns the owner; the owner itself where none does."""
        top = self.view.tops.get(key)
        return (key[0], top.kind, top.name) if top is not None and top.kind == "Deployment" else key

    def together(self, key: Key) -> tuple[int, int]:
        """(pods wanted, of them missing) of the whole workload: in a rollout a Deployment has pods of two owners."""
        top = self.above(key)
        wanted = self.wanted(top)
        return max(wanted, self.wanted(key)), max(self.missing(key), wanted - self.all_ready.get(top, 0))


def gone(pod: PodInfo, view: ClusterView) -> bool:
    """On its way out, by anybody's hand."""
    return pod.deleted is not None or pod.uid in view.flight
