"""Which nodes may be tried at all, and why not the others?

Rules that need no search, in the order they are asked. `pool_refusal` speaks for a whole pool at this moment,
`CandidateChecker.refusal` for one node.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from trimtab.cluster.cluster_autoscaler import Autoscaler, with_options
from trimtab.cluster.node import CANDIDATE_TAINT, NodeInfo, describe_scale_up
from trimtab.cluster.pool import KEEP, RENAMED_KEEP, Pool, PoolIndex, Precedence
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.timestamps import Seconds, open_now
from trimtab.compaction import reasons as r
from trimtab.compaction.blockers import leave
from trimtab.compaction.plan_types import Observations
from trimtab.scheduling.cluster_model import ClusterModel

NO_SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
KARPENTER_POOL = "karpenter.sh/nodepool"
DELAY = "delay-deletion.cluster-autoscaler.kubernetes.io/"
STARTING = ("startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/")
UNINITIALIZED = ("node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered")
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
SLICE, CHIPS = "cloud.google.com/gke-tpu-topology", "google.com/tpu"
"""How a node's TPU slice is laid out ("2x2x4"), and the resource that counts the chips of one node."""
CORDONED_BY_US = "trimtab.dev/cordoned-for"
"""Our annotation, written in the same patch as the cordon."""
MOST_UNREADY = 45
"""Percent of nodes that are not ready at which nobody should plan (the autoscaler's own rule, and more than 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningContext:
    """The moment a plan is made in."""

    at: Seconds | None = None
    """None: no rule that needs a clock is applied, and the plan says so."""
    observations: Observations | None = None
    """None: pools are taken for settled."""
    autoscaler: Autoscaler | None = None
    """None: nothing is known of it."""
    ours: Collection[str] = ()
    """Nodes whose cordon is ours by an authentic note. An offline plan holds no key, and knows of none."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Node → namespace of the other compactor whose note stands on it."""
    doubtful: Mapping[str, str] = field(default_factory=dict)
    """Node → what is wrong with its note, which is not authentic."""
    overdue: frozenset[str] = frozenset()
    """Nodes that were left to the autoscaler for longer than it takes to remove one: something keeps them."""
    moved: frozenset[str] = frozenset()
    """Pods (namespace/name) that were moved not long ago: they are left in peace."""
    aims: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Pool → nodes that the plan under way empties: no other goes before its pods have settled, and those of them that
    cannot go at this moment are no place for pods. A pool that is not named is planned afresh."""
    waived: frozenset[str] = frozenset()
    """Pods (namespace/name) that are taken for free to move, whatever keeps them: what a plan would be then."""
    plans_karpenter: bool = False
    """Whether Karpenter's nodes are planned as if they were ours: what could go, not what will."""


@dataclass(slots=True)
class CandidateChecker:
    world: ClusterModel
    pools: Sequence[Pool]
    now: PlanningContext
    index: PoolIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = PoolIndex(self.pools)

    def pool_of(self, number: int) -> Pool | Reason:
        """The one pool of a node."""
        node = self.world.nodes[number]
        found = self.index.of(node)
        if len(found) == 1:
            return found[0]
        if not found:
            return r.NO_POOL(f"node {node.name} belongs to no pool")
        names = " and ".join(pool.name for pool in found)
        return r.SHARED_POOLS(f"node {node.name} belongs to pools {names}")

    def refusal(self, number: int, pool: Pool) -> Reason | None:
        """Why this node is no candidate, before any search; None when it is one."""
        node = self.world.nodes[number]
        return (
            self._unreadable(number) or self._belongs_to_others(node) or self._noted(node) or _annotated(node, pool)
            or _state(node, self.now.ours) or _wanted_by_autoscaler(node, pool)
            or self._not_aimed_at(node, pool) or self._young(node, pool) or self._failed(node)
            or self._busy(number, pool) or self._brief(node, pool)
        )  # fmt: skip

    def _unreadable(self, number: int) -> Reason | None:
        doubt = self.world.doubtful.get(number)
        return r.UNREADABLE(f"node {self.world.nodes[number].name}: {doubt}") if doubt is not None else None

    def _belongs_to_others(self, node: NodeInfo) -> Reason | None:
        if KARPENTER_POOL in node.labels and not self.now.plans_karpenter:
            return r.KARPENTER(f"node {node.name} belongs to Karpenter ({node.labels[KARPENTER_POOL]})")
        return _belongs_to_others(node)

    def _noted(self, node: NodeInfo) -> Reason | None:
        problem = self.now.doubtful.get(node.name)
        if problem is not None:
            return r.DOUBTFUL_CORDON(problem)
        home = self.now.others.get(node.name)
        if home is None:
            return None
        return r.FOREIGN_CORDON(f"node {node.name} was cordoned by the compactor of namespace {home}")

    def _not_aimed_at(self, node: NodeInfo, pool: Pool) -> Reason | None:
        aim = self.now.aims.get(pool.name)
        if aim is None or node.name in aim:
            return None
        return r.NOT_AIMED_AT(f"the plan under way in pool {pool.name} leaves node {node.name} where it is")

    def _young(self, node: NodeInfo, pool: Pool) -> Reason | None:
        if self.now.at is None or node.created is None:
            return None
        age = self.now.at - node.created
        if age < pool.node_age:
            return r.YOUNG(f"node {node.name} is {age} s old; pool {pool.name} wants {pool.node_age} s")
        return None

    def _failed(self, node: NodeInfo) -> Reason | None:
        seen = self.now.observations
        failure = seen.failures.get(node.name) if seen is not None else None
        if failure is not None and self.now.at is not None and self.now.at < failure.until:
            return r.BACK_OFF(
                f"emptying node {node.name} failed {failure.times} times; next try in {failure.until - self.now.at} s"
            )
        return None

    def _busy(self, number: int, pool: Pool) -> Reason | None:
        for resource, percent in sorted(pool.under.items()):
            have = self.world.amount(number, resource)
            used = have - self._free(number, resource)
            if have and used * 100 > percent * have:
                share = used * 1000 // have
                name = self.world.nodes[number].name
                return r.BUSY(f"node {name} has {share / 10:.1f} % of its {resource} requested, more than {percent} %")
        return None

    def _free(self, number: int, resource: str) -> int:
        world = self.world
        if resource in world.resources:
            return (world.major, world.minor)[world.resources.index(resource)][number]
        if resource == "pods":
            return world.slots[number]
        return (
            world.rest[world.names.index(resource)][number]
            if resource in world.names
            else world.amount(number, resource)
        )

    def _brief(self, node: NodeInfo, pool: Pool) -> Reason | None:
        seen, at = self.now.observations, self.now.at
        if seen is None or at is None or not pool.under_for:
            return None
        since = seen.under_since.get(node.name)
        lasted = at - since if since is not None else 0
        if lasted < pool.under_for:
            return r.NOT_LONG(f"node {node.name} has been under the line for {lasted} s of {pool.under_for} s")
        return None

    def under(self, number: int, pool: Pool) -> bool:
        """Is the node under the pool's line now? What observations are made of."""
        return self._unreadable(number) is None and self._busy(number, pool) is None

    def all_under(self, pool: Pool) -> tuple[str, ...]:
        """Names of the pool's nodes that are."""
        mine = (number for number, node in enumerate(self.world.nodes) if self.index.only(node) is pool)
        return tuple(self.world.nodes[number].name for number in mine if self.under(number, pool))


def _belongs_to_others(node: NodeInfo) -> Reason | None:
    if any(label in node.labels for label in CONTROL_PLANE):
        return r.CONTROL_PLANE(f"node {node.name} runs the control plane")
    if _of_a_slice(node):
        return r.AS_A_WHOLE(f"node {node.name} is one of several hosts of a TPU slice ({node.labels[SLICE]})")
    if node.going is not None:
        return r.GOING_NODE(f"node {node.name} is currently being deleted (taint {node.going.key})")
    return None


def _of_a_slice(node: NodeInfo) -> bool:
    """A slice with more chips than the node has spans several nodes, which GKE scales as one."""
    sizes = node.labels.get(SLICE, "").split("x")
    if isinstance(node.allocatable, Unreadable) or not all(size.isdecimal() for size in sizes):
        return False
    return prod(map(int, sizes)) > node.allocatable.get(CHIPS, 0)


def keeping(pool: Pool) -> tuple[str, ...]:
    """Annotations by which people say that a node of this pool shall stay."""
    return (KEEP, RENAMED_KEEP, NO_SCALE_DOWN, DO_NOT_DISRUPT, *pool.keep_nodes)


def kept(node: NodeInfo, keys: Iterable[str]) -> Reason | None:
    """What one of these annotations says; None where none keeps it."""
    said = (leave(f"node {node.name}", key, node.annotations.get(key), r.KEPT) for key in keys)
    return next((found for found in said if found is not None), None)


def _annotated(node: NodeInfo, pool: Pool) -> Reason | None:
    if (found := kept(node, keeping(pool))) is not None:
        return found
    for key in sorted(node.annotations):
        if key.startswith(DELAY):
            return r.KEPT(f"node {node.name} says {key}")
    return None


def _state(node: NodeInfo, ours: Collection[str]) -> Reason | None:
    if not node.ready:
        return r.NOT_READY(f"node {node.name} is not ready")
    if node.cordoned and node.name not in ours:
        unverified = f"; its annotation {CORDONED_BY_US} is unverified" if CORDONED_BY_US in node.annotations else ""
        return r.FOREIGN_CORDON(f"node {node.name} was cordoned by somebody else{unverified}")
    if node.maintained:
        return r.MAINTAINED(f"another client drains or maintains node {node.name} (condition {node.maintained})")
    for taint in node.taints:
        if taint.key.startswith(STARTING) or taint.key in UNINITIALIZED:
            return r.STARTING(f"node {node.name} still carries the startup taint {taint.key}")
    return None


def _wanted_by_autoscaler(node: NodeInfo, pool: Pool) -> Reason | None:
    if pool.autoscaler is Precedence.LEAD and node.autoscaler_candidate:
        return r.AUTOSCALERS(f"the cluster autoscaler means to remove node {node.name} (taint {CANDIDATE_TAINT})")
    return None


def closed_receivers(world: ClusterModel, pools: Mapping[int, Pool], at: Seconds | None) -> list[int]:
    """Nodes of pools that are no place for pods: too young, not whole yet, in maintenance or soon to be, or about to be
    removed by the autoscaler."""
    return [
        number
        for number, node in enumerate(world.nodes)
        if any(taint.key.startswith(STARTING) or taint.key in UNINITIALIZED for taint in node.taints)
        or node.lifecycle
        or (number in pools and _takes_no_pods(node, pools[number], at))
    ]


def _takes_no_pods(node: NodeInfo, pool: Pool, at: Seconds | None) -> bool:
    if _wanted_by_autoscaler(node, pool) is not None:
        return True
    return at is not None and node.created is not None and at - node.created < pool.receiver_age


def pool_refusal(pool: Pool, nodes: Sequence[int], world: ClusterModel, now: PlanningContext) -> Reason | None:
    """Why nothing is planned in this pool at this moment; None when something may be."""
    if not pool.enabled:
        return r.POOL_OFF(f"pool {pool.name} is switched off")
    if not nodes and any(pool.has(node) for node in world.nodes):
        return r.SHARED_POOLS(f"every node of pool {pool.name} belongs to another pool, too")
    if not nodes:
        return r.EMPTY_POOL(f"no node belongs to pool {pool.name}")
    members = [world.nodes[number] for number in nodes]
    return _unwell(world) or _timing(pool, nodes, world, now) or _autoscaler(pool, members, now)


def _unwell(world: ClusterModel) -> Reason | None:
    unready = sum(not node.ready for node in world.nodes)
    if unready > 3 and unready * 100 > MOST_UNREADY * len(world.nodes):
        return r.UNWELL(f"{unready} of {len(world.nodes)} nodes are not ready")
    return None


def _timing(pool: Pool, nodes: Sequence[int], world: ClusterModel, now: PlanningContext) -> Reason | None:
    if now.at is None:
        return None
    if not open_now(pool.windows, now.at):
        return r.CLOSED_WINDOW(f"pool {pool.name} may not act at this time")
    born = [created for number in nodes if (created := world.nodes[number].created) is not None]
    newest = max(born, default=None)
    if newest is not None and now.at - newest < pool.quiet:
        return r.NOT_QUIET(f"a node joined pool {pool.name} {now.at - newest} s ago; it waits {pool.quiet} s")
    return None


def _autoscaler(pool: Pool, nodes: Iterable[NodeInfo], now: PlanningContext) -> Reason | None:
    found = now.autoscaler
    if found is None:
        return None
    if not found.scale_down:
        return r.NO_SCALE_DOWN("the cluster autoscaler never removes nodes (--scale-down-enabled=false)")
    if found.silent(now.at):
        return r.NO_AUTOSCALER(f"the cluster autoscaler {found.silence(now.at or 0)}")
    if found.restarting:
        return r.NO_AUTOSCALER("the cluster autoscaler took its status away: it restarts, or somebody ended it")
    if not found.healthy:
        return r.AUTOSCALER_ILL("the cluster autoscaler calls the cluster unhealthy")
    threshold, most = with_options(found, pool.group_options).threshold, pool.lead_max_threshold
    if pool.autoscaler is Precedence.LEAD and not pool.dry_run and threshold > most:
        return r.THRESHOLD_TOO_HIGH(
            f"pool {pool.name} leads, and the cluster autoscaler removes nodes under {threshold} % by itself;"
            f" lead.maxThreshold allows {most} %"
        )
    busy = describe_scale_up(found, pool.name, nodes)
    return r.SCALING_UP(f"the cluster autoscaler is scaling up {busy}") if busy else None
