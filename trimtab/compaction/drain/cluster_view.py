"""The observed cluster at one time: the single input of every decision of a round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import Autoscaler, with_options
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.several_autoscalers import autoscaler_of_pool
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, PodToEvict


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Everything that the decisions of one round read. Decisions do not read the cluster themselves."""

    now: Seconds
    """When the cluster was observed, in seconds since 1970."""
    inventory: Inventory
    pools: tuple[Pool, ...] = ()
    autoscaler: Autoscaler | None = None
    """The state of the cluster autoscaler, or None if it is unknown."""
    top_owners: Mapping[OwnerKey, OwnerKey] = field(default_factory=dict)
    """Owner → its own owner, such as the Deployment of a ReplicaSet."""
    annotations: DrainAnnotations = field(default_factory=DrainAnnotations)
    """The drain annotations on nodes, grouped by whether they are authentic."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Node → resourceVersion. With it, a write fails if the node has changed since it was observed."""
    pool_errors: tuple[str, ...] = ()
    """A sentence for each pool whose settings have a mistake."""
    namespace: str = ""
    """The compactor's own namespace."""
    paused: str = ""
    """Why nothing may be done now, as text; empty if steps may be taken."""
    evicted_uids: frozenset[str] = frozenset()
    """Uids of pods that have been evicted, but that this view still shows unchanged, because it was taken before."""

    opened_counts: Mapping[str, int] = field(default_factory=dict)
    """Pool → how many of its drained nodes were uncordoned in the last hour for pending pods."""
    deleting_nodes: frozenset[str] = frozenset()
    """Nodes with drains in progress that the autoscaler has recently begun to delete."""
    executed_seconds: Mapping[str, float] = field(default_factory=dict)
    """Drain → the seconds for which this replica has executed it. A drain without an entry counts as executed by this
    replica from its beginning."""

    @property
    def acting_pools(self) -> list[Pool]:
        """The pools of which nodes may be drained, and not only in a dry run."""
        return [pool for pool in self.pools if pool.enabled and not pool.dry_run]

    @property
    def autoscaler_deletions(self) -> Mapping[str, str]:
        """Node → pool, for nodes that the autoscaler is removing from pools with `autoscaler: lead`. They count towards
        the pool's limits and towards disruption budgets."""
        leading = [pool for pool in self.pools if pool.autoscaler is Precedence.LEAD]
        going = [node for node in self.inventory.nodes if node.removal_taint is not None] if leading else []
        return {node.name: pool.name for pool in leading for node in going if pool.has_node(node)}

    def annotated_nodes(self) -> list[tuple[NodeInfo, DrainAnnotation | Unreadable]]:
        """Returns the nodes with an authentic annotation of this compactor. The node whose drain began first comes
        first, so that its drain also ends first."""
        ours = self.annotations.ours
        pairs = [(node, ours[node.name]) for node in self.inventory.nodes if node.name in ours] if ours else []
        return sorted(
            pairs, key=lambda pair: (pair[1].since if isinstance(pair[1], DrainAnnotation) else 0, pair[0].name)
        )

    def moving_drains(self) -> list[tuple[NodeInfo, DrainAnnotation | Unreadable]]:
        """Returns the annotated nodes with those of DrainOrders, whose pods move as well."""
        ordered = self.annotations.ordered
        return [
            *self.annotated_nodes(),
            *((node, ordered[node.name]) for node in self.inventory.nodes if node.name in ordered),
        ]

    def autoscaler_of(self, pool: str) -> Autoscaler | None:
        """Returns the state of the autoscaler of this pool, with the options of the pool's node groups, or None if its
        state is unknown."""
        config = self.find_pool(pool)
        if self.autoscaler is None or config is None:
            return self.autoscaler
        nodes = [node for node in self.inventory.nodes if config.has_node(node)]
        return with_options(autoscaler_of_pool(self.autoscaler, pool, nodes), config.group_options)

    def find_pool(self, name: str) -> Pool | None:
        """Returns the pool of this name, or None if there is none."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def find_node(self, name: str) -> NodeInfo | None:
        """Returns the node of this name, or None if there is none."""
        return next((node for node in self.inventory.nodes if node.name == name), None)


@dataclass(slots=True)
class Workloads:
    """The ready and the missing pods of each workload, counted when they are asked for. Pods with a deletion timestamp
    do not count."""

    view: ClusterView
    _pods: dict[OwnerKey, tuple[int, list[PodInfo]]] = field(default_factory=dict)
    """Owner → (its ready pods, those that are not ready)."""
    _replica_sets: dict[OwnerKey, list[OwnerKey]] = field(default_factory=dict)
    """Deployment → what owns its pods."""

    def ready_count(self, key: OwnerKey) -> int:
        """Returns how many pods of the owner are ready."""
        return self._pods_of(key)[0]

    def unready_pods(self, key: OwnerKey) -> list[PodInfo]:
        """Returns the pods of the owner that are not ready."""
        return self._pods_of(key)[1]

    def all_ready_count(self, top: OwnerKey) -> int:
        """Returns the ready pods of all ReplicaSets of a Deployment; for any other owner, its own ready pods."""
        if not self._replica_sets:
            for key in self.view.top_owners:
                self._replica_sets.setdefault(self.top_owner(key), []).append(key)
        own = [top] if self.top_owner(top) == top else []
        return sum([self.ready_count(key) for key in {*own, *self._replica_sets.get(top, ())}])

    def _pods_of(self, key: OwnerKey) -> tuple[int, list[PodInfo]]:
        counted = self._pods.get(key)
        if counted is None:
            pods = self.view.inventory.pod_index.by_owner.get(key, ())
            present = [pod for pod in pods if not (pod.is_finished or is_gone(pod, self.view))]
            unready = [pod for pod in present if not pod.is_ready]
            counted = self._pods[key] = len(present) - len(unready), unready
        return counted

    def wanted_replicas(self, key: OwnerKey) -> int:
        """Returns how many replicas the owner wants; 0 if it no longer exists or has no such number."""
        scale = self.view.inventory.owners.get(key)
        return scale.wanted or 0 if scale is not None else 0

    def missing_replicas(self, key: OwnerKey) -> int:
        """Returns how many wanted pods are not ready."""
        return max(0, self.wanted_replicas(key) - self.ready_count(key))

    def newly_missing(self, move: PodToEvict) -> int:
        """Returns how many more pods the owner of this pod lacks now than when the drain began."""
        return max(0, self.missing_replicas(move.owner_key) - move.missing)

    def create_failure(self, key: OwnerKey) -> str:
        """Returns why the owner's controller cannot create a pod now, or an empty string while it can."""
        scale = self.view.inventory.owners.get(key)
        return scale.failure if scale is not None else ""

    def top_owner(self, key: OwnerKey) -> OwnerKey:
        """Returns the Deployment that owns this owner, or the owner itself if there is none."""
        top = self.view.top_owners.get(key)
        return top if top is not None and top.kind == "Deployment" else key

    def replicas_and_missing(self, key: OwnerKey) -> tuple[int, int]:
        """Returns (wanted pods, missing pods) of the whole workload: for a Deployment, of all its ReplicaSets."""
        top = self.top_owner(key)
        wanted = self.wanted_replicas(top)
        # In a rollout the pods of a Deployment have two ReplicaSets, and each of them alone looks complete.
        return max(wanted, self.wanted_replicas(key)), max(
            self.missing_replicas(key), wanted - self.all_ready_count(top)
        )


def is_gone(pod: PodInfo, view: ClusterView) -> bool:
    """Returns whether the pod is being deleted, whichever client deleted it."""
    return pod.deletion_requested_at is not None or pod.uid in view.evicted_uids
