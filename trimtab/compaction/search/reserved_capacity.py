"""Reserves capacity for pods that are on no node yet.

While a plan is made, capacity is reserved for pending pods, for pods that their owners are about to recreate, for the
pods of capacity buffers, and, if the pool's headroom demands it, for one more pod as large as the pool's largest. It is
reserved on a node that stays anyway, or else on the candidate that would be drained last, which then stays. Pods with
scheduling gates and placeholder pods do not wait for a node, so nothing is reserved for them. For a pod that a
DaemonSet is about to create, capacity is reserved on the node that lacks it.

If a pending pod fits on no node, but would fit on an empty node of a pool, nothing is drained in that pool until the
pod has waited for longer than the pool's limit. A pod that would not even fit on an empty node prevents no drains. The
notes name both kinds of pods.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import change
from trimtab.cluster.format_count import format_count
from trimtab.cluster.owner import NO_OWNER_KEY, OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction import reasons as r
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.pod_class import PodClass

RECREATING_KINDS = ("ReplicaSet", "StatefulSet", "ReplicationController")
"""Kinds of owners whose controller recreates a pod that was deleted."""

MAX_BUFFER_PODS = 500
"""The maximum number of pods of CapacityBuffers for which capacity is kept. Without a limit, anyone who may create a
buffer could reserve any amount."""


@dataclass(slots=True)
class ReservedCapacity:
    """Reserves capacity in `capacity`, and records which nodes stay and which pools are blocked because of that."""

    capacity: FreeCapacity
    order: Sequence[int]
    """The candidates; the first one is drained first."""
    pool_of: dict[int, Pool]
    reserved: list[tuple[PodClass, int]] = field(default_factory=list)
    """(pod class, node) for all capacity that was reserved."""
    reserving_nodes: dict[int, Reason] = field(default_factory=dict)
    """Candidates that stay because capacity is reserved on them."""
    blocked_pools: dict[str, Reason] = field(default_factory=dict)
    """Pool → why nothing may be drained in it while a pod is pending."""
    now: Seconds | None = None
    """The time of the snapshot. None: it is not known how long a pod has waited."""
    ignored: list[str] = field(default_factory=list)
    """Sentences about pending pods that are ignored, so that they do not prevent drains, and about capacity buffers for
    which less capacity than requested is reserved."""

    def reserve_for(self, pod_class: PodClass, beneficiary: str, among: Iterable[int] | None = None) -> bool:
        """Reserves capacity for one more pod of this class. Returns whether there was enough.

        A class that cannot be judged (a claim that is not bound yet, another scheduler) is reserved for nevertheless:
        the pod may run on fewer nodes than assumed, but it will need the capacity on some node.
        """
        # `change` copies: the pod class itself keeps its reason, and a plan still does not place its pods.
        pod_class = pod_class if pod_class.unjudged_reason is None else change(pod_class, unjudged_reason=None)
        candidates = set(self.order) - set(self.reserving_nodes)
        nodes = range(len(self.capacity.world.nodes)) if among is None else list(among)
        last = [n for n in reversed(self.order) if n in candidates and (among is None or n in set(nodes))]
        for node in (*(n for n in nodes if n not in candidates), *last):
            if fits_on_node(self.capacity, pod_class, node):
                self.capacity.add_pod(pod_class, node)
                self.reserved.append((pod_class, node))
                if node in candidates:
                    name = self.capacity.world.nodes[node].name
                    self.reserving_nodes[node] = r.PROMISED(f"capacity on node {name} is reserved for {beneficiary}")
                return True
        return False

    def reserve_for_pending(self) -> None:
        """Reserves capacity for pending pods: first for those to which a preemption has promised a node, on that node,
        as kube-scheduler counts them (framework/runtime, RunFilterPluginsWithNominatedPods)."""
        model = self.capacity.world
        waiting = [(pod, pod_class) for pod, pod_class in model.pending_pods if pod.needs_node]
        nominated = [(pod, pod_class) for pod, pod_class in waiting if self._nominated_node(pod) >= 0]
        for pod, pod_class in nominated:
            self._reserve_nominated(pod, pod_class)
        promised = {pod.key for pod, _ in nominated}
        for pod, pod_class in waiting:
            if pod.key in promised:
                continue
            if not self.reserve_for(pod_class, f"pod {pod.key}, which is Pending"):
                self._block_pools(pod, pod_class)

    def _nominated_node(self, pod: PodInfo) -> int:
        """Returns the node that a preemption has promised to the pod, or -1 if there is none, or if the node accepts no
        pods, so that the scheduler must look for another one."""
        node = self.capacity.world.node_numbers.get(pod.nominated_node, -1)
        return node if node >= 0 and self.capacity.world.nodes[node].is_staying else -1

    def _reserve_nominated(self, pod: PodInfo, pod_class: PodClass) -> None:
        node = self._nominated_node(pod)
        name = self.capacity.world.nodes[node].name
        pod_class = pod_class if pod_class.unjudged_reason is None else change(pod_class, unjudged_reason=None)
        if fits_on_node(self.capacity, pod_class, node):
            self.capacity.add_pod(pod_class, node)
            self.reserved.append((pod_class, node))
        else:
            # The pods that the preemption evicts are still there. What they free is promised, so nothing else may be
            # placed there until the pod has arrived.
            self.capacity.closed_nodes[node] = 1
        if node in self.order:
            self.reserving_nodes.setdefault(
                node, r.PROMISED(f"capacity on node {name} is reserved for pod {pod.key}, which is nominated to it")
            )

    def _block_pools(self, pod: PodInfo, pod_class: PodClass) -> None:
        """Blocks the pools with a node that could hold the pod if the node were empty."""
        reason = r.PODS_WAIT(f"pod {pod.key} is Pending and could run in the pool")
        pools = {
            pool.name: pool
            for node, pool in self.pool_of.items()
            if _fits_empty_node(self.capacity.world, pod_class, node)
        }
        if not pools:
            self.ignored.append(
                f"pod {pod.key} is Pending, but would fit on no node of any pool, not even on an empty one"
            )
        for pool in pools.values():
            if self.now is not None and pod.created is not None and self.now - pod.created > pool.pending_limit:
                self.ignored.append(
                    f"pod {pod.key} has been Pending for more than {pool.pending_limit} s, so pool {pool.name} "
                    "no longer waits for it"
                )
            else:
                self.blocked_pools.setdefault(pool.name, reason)

    def reserve_for_missing(self) -> None:
        """Reserves capacity for pods that were evicted and that their owner has not recreated yet. Otherwise this
        capacity would be used twice."""
        for name, pod_class, count in missing_replicas(self.capacity.world):
            for _ in range(count):
                if not self.reserve_for(pod_class, f"a pod that {name} is about to recreate"):
                    break

    def reserve_for_daemons(self) -> None:
        """Reserves capacity for the pods that DaemonSets are about to create, on each node that lacks its pod. A node
        on which such a pod does not fit is left as it is."""
        model = self.capacity.world
        for daemon, pod_class in model.daemon_pods:
            judged = pod_class if pod_class.unjudged_reason is None else change(pod_class, unjudged_reason=None)
            count = 0
            for number, node in enumerate(model.nodes):
                if node.name in daemon.nodes or not node.nature.is_machine:
                    continue
                if fits_on_node(self.capacity, judged, number):
                    self.capacity.add_pod(judged, number)
                    self.reserved.append((judged, number))
                    count += 1
            if count:
                self.ignored.append(
                    f"capacity on {format_count(count, 'node')} is reserved for a pod that {daemon.owner.described} is "
                    "about to create"
                )

    def reserve_for_buffers(self) -> None:
        """Reserves capacity for the pods of CapacityBuffers. Otherwise the autoscaler would add nodes in place of the
        drained ones."""
        remaining = MAX_BUFFER_PODS
        for buffer, pod_class in self.capacity.world.buffer_pods:
            wanted = min(buffer.replicas, remaining)
            count = next(
                (n for n in range(wanted) if not self.reserve_for(pod_class, f"capacity buffer {buffer.key}")), wanted
            )
            remaining -= count
            if count < buffer.replicas:
                self.ignored.append(
                    f"capacity is reserved for {count} of {format_count(buffer.replicas, 'pod')} of capacity "
                    f"buffer {buffer.key}"
                )

    def reserve_for_draining(self, draining: Iterable[str]) -> None:
        """Reserves capacity for the pods that are still on nodes which are being drained, because this plan does not
        move these pods."""
        model, candidates = self.capacity.world, set(self.order)
        for node in (model.node_numbers[name] for name in sorted(draining) if name in model.node_numbers):
            for pod in pods_left_to_move(model, node) if node not in candidates else ():
                self.reserve_for(
                    model.successor_class_of[pod], f"pod {model.pods[pod].key}, whose node is being drained"
                )

    def reserve_for_largest(self, pool: Pool, pods: Iterable[int]) -> None:
        """Reserves capacity for one more pod as large as the largest movable pod of the pool. If there is not enough
        now, nothing is reserved."""
        classes = self.capacity.world.successor_class_of
        largest = max(pods, key=lambda pod: (classes[pod].major, classes[pod].minor, -pod), default=None)
        if largest is not None:
            unconstrained = change(
                classes[largest],
                member_groups=(),
                forbidden_groups=(),
                spreads=(),
                affinity=None,
                has_constraints=False,
            )
            members = [node for node, of_node in self.pool_of.items() if of_node is pool]
            largest_of = f"one more pod as large as the largest of pool {pool.name} (keep.headroom.largestPod)"
            self.reserve_for(unconstrained, largest_of, members)


def pods_left_to_move(model: ClusterModel, node: int) -> list[int]:
    """Returns the pods of a node that is being drained that still have to move: not those of DaemonSets, static,
    finished, or with a deletion timestamp."""
    pods = model.pods
    return [
        pod
        for pod in model.pods_on_node[node]
        if not (
            pods[pod].is_daemon
            or pods[pod].is_static
            or pods[pod].is_finished
            or pods[pod].deletion_requested_at is not None
        )
    ]


def _fits_empty_node(model: ClusterModel, pod_class: PodClass, node: int) -> bool:
    """Returns whether a pod of this class would fit on the node if the node were empty."""
    if model.node_sets[pod_class.node_set][node] == 0:
        return False
    requested = [*zip(model.main_resources, (pod_class.major, pod_class.minor), strict=True)]
    requested += [(model.other_resources[number], amount) for number, amount in pod_class.other_requests]
    return all(
        amount <= model.allocatable_amount(node, name) for name, amount in requested if not name.startswith("volumes:")
    )


def missing_replicas(model: ClusterModel) -> list[tuple[str, PodClass, int]]:
    """Returns (owner, pod class, number of pods that the owner will recreate). Pods with a deletion timestamp count as
    deleted."""
    # A ReplicaSet counts a pod with a deletion timestamp as gone and recreates it, so `ready` decides and not
    # `replicas`.
    wanted_counts = {
        owner: scale.wanted
        for owner, scale in model.inventory.owners.items()
        if owner.kind in RECREATING_KINDS and scale.wanted is not None and scale.ready < scale.wanted
    }
    if not wanted_counts:
        return []
    present = dict.fromkeys(wanted_counts, 0)
    class_of_owner: dict[OwnerKey, PodClass] = {}
    name, last, is_wanted = NO_OWNER_KEY, None, False
    for pod, pod_class in (*zip(model.pods, model.successor_class_of, strict=True), *model.pending_pods):
        # Pods are sorted by name, so those of one owner follow each other.
        if pod.owner is not last:
            name, last = pod.owner or NO_OWNER_KEY, pod.owner
            is_wanted = name in wanted_counts
        if is_wanted:
            present[name] += pod.deletion_requested_at is None
            class_of_owner.setdefault(name, pod_class)
    return [
        (owner.described, class_of_owner[owner], wanted_counts[owner] - present[owner])
        for owner in sorted(class_of_owner)
        if wanted_counts[owner] > present[owner]
    ]
