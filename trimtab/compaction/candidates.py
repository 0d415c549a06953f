"""Decides which nodes may be tried, and why the others may not.

The rules need no search, and are checked in order. `pool_refusal` decides for a whole pool at the present time,
`CandidateChecker.rejection_reason` for one node.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import CANDIDATE_TAINT, NodeInfo, describe_scale_up
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pool import KEEP_ANNOTATION, RENAMED_KEEP, Pool, PoolIndex, Precedence
from trimtab.cluster.reason import Code, Reason
from trimtab.cluster.several_autoscalers import autoscaler_of_pool, highest_threshold
from trimtab.cluster.timestamps import Seconds, is_any_open
from trimtab.compaction import reasons as r
from trimtab.compaction.plan_types import Observations
from trimtab.compaction.room_forecast import NeededRoom
from trimtab.scheduling.cluster_model import ClusterModel

NO_SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DELAY_DELETION_PREFIX = "delay-deletion.cluster-autoscaler.kubernetes.io/"
STARTUP_TAINTS = ("startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/")
UNINITIALIZED = ("node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered")
CORDONED_BY_US = "trimtab.dev/cordoned-for"
"""The annotation that the compactor writes on a node in the same patch as the cordon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningContext:
    """The time and circumstances for which a plan is made."""

    now: Seconds | None = None
    """The time of the snapshot. None: rules that need the time are skipped, and the plan notes that."""
    observations: Observations | None = None
    """What was recorded in earlier rounds. None: no pod of the pools is assumed to be moving."""
    autoscaler: Autoscaler | None = None
    """The state of the cluster autoscaler, or None if it is unknown."""
    own_cordons: Collection[str] = ()
    """The nodes that this compactor has cordoned, according to annotations with a valid signature. An offline plan has
    no key, so it knows of none."""
    other_compactors: Mapping[str, str] = field(default_factory=dict)
    """Node → namespace of another compactor whose annotation is on the node."""
    unverified: Mapping[str, str] = field(default_factory=dict)
    """Node → what is wrong with its annotation, for annotations whose signature is not valid."""
    overdue: frozenset[str] = frozenset()
    """Nodes that were left to the autoscaler, but that it has not removed within the usual time. Something must be
    keeping them."""
    moved_pods: frozenset[str] = frozenset()
    """Pods (namespace/name) that were moved recently and must not be moved again."""
    aims: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Pool → the nodes that the plan in progress drains. A pool without an entry gets a new plan.

    While pods of the pool are moving, no other node of the pool is drained. Nodes of the plan that cannot be drained
    now receive no pods.
    """
    needed_room: Mapping[str, NeededRoom] = field(default_factory=dict)
    """Pool → what has to stay free in it because its pods will request it soon, for pools with a forecast."""
    waived_pods: frozenset[str] = frozenset()
    """Pods (namespace/name) that count as evictable whatever blocks them; used for plan variants."""
    described_groups: Mapping[str, NodeInfo] = field(default_factory=dict)
    """Node group without a node → its next node, as the user describes it. Its name is empty."""
    plans_karpenter: bool = False
    """Whether Karpenter's nodes are planned like other nodes. Only the report about Karpenter does so."""


@dataclass(slots=True)
class CandidateChecker:
    """Decides for each node of one snapshot whether it is a candidate."""

    model: ClusterModel
    pools: Sequence[Pool]
    context: PlanningContext
    index: PoolIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = PoolIndex(self.pools)

    def find_pool(self, number: int) -> Pool | Reason:
        """Returns the pool of a node, or the reason if the node is in no pool or in several."""
        node = self.model.nodes[number]
        if (sign := node.nature.sign_of(NodeKind.SERVERLESS)) is not None:
            return r.NO_MACHINE(f"node {node.name} is no machine: {sign.platform} ({sign.evidence})")
        pools = self.index.pools_of(node)
        if len(pools) == 1:
            return pools[0]
        if not pools:
            return r.NO_POOL(f"node {node.name} belongs to no pool")
        names = " and ".join(pool.name for pool in pools)
        return r.SHARED_POOLS(f"node {node.name} belongs to pools {names}")

    def rejection_reason(self, number: int, pool: Pool) -> Reason | None:
        """Returns why this node is not a candidate, as far as this can be decided without a search; None if no rule
        rejects it."""
        node = self.model.nodes[number]
        return (
            self._unreadable_reason(number)
            or self._other_owner_reason(node)
            or self._drain_annotation_reason(node)
            or _annotation_reason(node, pool)
            or _state_reason(node, self.context.own_cordons)
            or _autoscaler_candidate_reason(node, pool)
            or self._not_in_plan_reason(node, pool)
            or self._age_reason(node, pool)
            or self._back_off_reason(node)
            or self._failing_namespace_reason(number, pool)
            or self._utilization_reason(number, pool)
            or self._duration_reason(node, pool)
        )

    def _unreadable_reason(self, number: int) -> Reason | None:
        doubt = self.model.unreadable_nodes.get(number)
        return (
            r.UNREADABLE(f"something about node {self.model.nodes[number].name} cannot be read: {doubt}")
            if doubt is not None
            else None
        )

    def _other_owner_reason(self, node: NodeInfo) -> Reason | None:
        sign = node.nature.sign_of(NodeKind.KARPENTER)
        if sign is not None and not self.context.plans_karpenter:
            return r.KARPENTER(f"node {node.name} belongs to Karpenter ({sign.platform})")
        return _special_node_reason(node)

    def _drain_annotation_reason(self, node: NodeInfo) -> Reason | None:
        problem = self.context.unverified.get(node.name)
        if problem is not None:
            return r.DOUBTFUL_CORDON(problem)
        namespace = self.context.other_compactors.get(node.name)
        if namespace is None:
            return None
        return r.FOREIGN_CORDON(f"node {node.name} was cordoned by the compactor of namespace {namespace}")

    def _not_in_plan_reason(self, node: NodeInfo, pool: Pool) -> Reason | None:
        nodes = self.context.aims.get(pool.name)
        if nodes is None or node.name in nodes:
            return None
        return r.NOT_AIMED_AT(
            f"pods of pool {pool.name} are still moving, and the plan in progress keeps node {node.name}"
        )

    def _age_reason(self, node: NodeInfo, pool: Pool) -> Reason | None:
        if self.context.now is None or node.created is None:
            return None
        age = self.context.now - node.created
        if age < pool.node_age:
            return r.YOUNG(
                f"node {node.name} is {age} s old, but pool {pool.name} requires an age of {pool.node_age} s"
            )
        return None

    def _back_off_reason(self, node: NodeInfo) -> Reason | None:
        observations = self.context.observations
        failure = observations.failures.get(node.name) if observations is not None else None
        if failure is not None and self.context.now is not None and self.context.now < failure.retry_after:
            return r.BACK_OFF(
                f"the drain of node {node.name} failed {failure.times} time{'' if failure.times == 1 else 's'};"
                f" the next attempt is in {failure.retry_after - self.context.now} s"
            )
        return None

    def _failing_namespace_reason(self, number: int, pool: Pool) -> Reason | None:
        observations, now = self.context.observations, self.context.now
        if observations is None or now is None or not observations.failing:
            return None
        pods = (self.model.pods[pod] for pod in self.model.pods_on_node[number])
        namespaces = {pod.namespace for pod in pods if not (pod.is_daemon or pod.is_static)}
        for namespace in sorted(namespaces):
            failure = observations.failing.get((pool.name, namespace))
            if failure is not None and now < failure.retry_after:
                return r.BACK_OFF(
                    f"node {self.model.nodes[number].name} has pods of namespace {namespace}, because of which "
                    f"{format_count(failure.times, 'drain')} of pool {pool.name} failed; the next attempt is in "
                    f"{failure.retry_after - now} s"
                )
        return None

    def _utilization_reason(self, number: int, pool: Pool) -> Reason | None:
        for resource, percent in sorted(pool.under.items()):
            allocatable = self.model.allocatable_amount(number, resource)
            requested = allocatable - self._free_amount(number, resource)
            if allocatable and requested * 100 > percent * allocatable:
                share = requested * 1000 // allocatable
                name = self.model.nodes[number].name
                return r.BUSY(
                    f"{share / 10:.1f} % of the {resource} of node {name} is requested, more than the threshold "
                    f"of {percent} %"
                )
        return None

    def _free_amount(self, number: int, resource: str) -> int:
        model = self.model
        if resource in model.main_resources:
            return (model.major, model.minor)[model.main_resources.index(resource)][number]
        if resource == "pods":
            return model.slots[number]
        return (
            model.other_free[model.other_resources.index(resource)][number]
            if resource in model.other_resources
            else model.allocatable_amount(number, resource)
        )

    def _duration_reason(self, node: NodeInfo, pool: Pool) -> Reason | None:
        observations, at = self.context.observations, self.context.now
        if observations is None or at is None or not pool.under_for:
            return None
        since = observations.under_since.get(node.name)
        duration = at - since if since is not None else 0
        if duration < pool.under_for:
            return r.NOT_LONG(
                f"node {node.name} has been under the threshold for only {duration} s, but the pool requires "
                f"{pool.under_for} s"
            )
        return None

    def is_under_threshold(self, number: int, pool: Pool) -> bool:
        """Returns whether the node is under the pool's threshold now. The result is recorded in the observations."""
        return self._unreadable_reason(number) is None and self._utilization_reason(number, pool) is None

    def is_under_in_part(self, number: int, pool: Pool) -> bool:
        """Returns whether the node is under the pool's threshold for one of its resources, so that it has unused room
        of it."""
        thresholds = (replace(pool, under={resource: percent}) for resource, percent in pool.under.items())
        return any(self._utilization_reason(number, threshold) is None for threshold in thresholds)

    def nodes_under_threshold(self, pool: Pool) -> tuple[str, ...]:
        """Returns the names of the pool's nodes that are under its threshold."""
        members = (number for number, node in enumerate(self.model.nodes) if self.index.only_pool_of(node) is pool)
        return tuple(self.model.nodes[number].name for number in members if self.is_under_threshold(number, pool))


def _special_node_reason(node: NodeInfo) -> Reason | None:
    if (edge := node.nature.sign_of(NodeKind.EDGE)) is not None:
        return r.EDGE_NODE(f"node {node.name} is an edge node of {edge.platform} ({edge.evidence})")
    if node.nature.sign_of(NodeKind.CONTROL_PLANE) is not None:
        return r.CONTROL_PLANE(f"node {node.name} runs the control plane")
    if (tpu_slice := node.nature.sign_of(NodeKind.SLICE_HOST)) is not None:
        return r.AS_A_WHOLE(f"node {node.name} is one of several hosts of a TPU slice ({tpu_slice.platform})")
    if node.removal_taint is not None:
        return r.GOING_NODE(f"node {node.name} is being deleted (taint {node.removal_taint.key})")
    return None


def keep_annotations(pool: Pool) -> tuple[str, ...]:
    """Returns the names of the annotations that keep a node of this pool from being drained."""
    return (KEEP_ANNOTATION, RENAMED_KEEP, NO_SCALE_DOWN, DO_NOT_DISRUPT, *pool.keep_nodes)


def node_keep_reason(node: NodeInfo, keys: Iterable[str]) -> Reason | None:
    """Returns the reason of the first annotation that keeps the node from being drained, or None if none does."""
    reasons = (keep_reason(f"node {node.name}", key, node.annotations.get(key), r.KEPT) for key in keys)
    return next((reason for reason in reasons if reason is not None), None)


def _annotation_reason(node: NodeInfo, pool: Pool) -> Reason | None:
    if (reason := node_keep_reason(node, keep_annotations(pool))) is not None:
        return reason
    for key in sorted(node.annotations):
        if key.startswith(DELAY_DELETION_PREFIX):
            return r.KEPT(f"node {node.name} has the annotation {key}")
    return None


def _state_reason(node: NodeInfo, ours: Collection[str]) -> Reason | None:
    if not node.is_ready:
        return r.NOT_READY(f"node {node.name} is not ready")
    if node.is_cordoned and node.name not in ours:
        if CORDONED_BY_US in node.annotations:
            return r.TRIMTABS_CORDON(
                f"according to its annotation, Trimtab's compactor drains node {node.name} "
                f"(`trimtab why node {node.name}`)"
            )
        return r.FOREIGN_CORDON(f"a client other than Trimtab cordoned node {node.name}")
    if node.maintenance_condition:
        return r.MAINTAINED(
            f"another client drains or maintains node {node.name} (condition {node.maintenance_condition})"
        )
    for taint in node.taints:
        if taint.key.startswith(STARTUP_TAINTS) or taint.key in UNINITIALIZED:
            return r.STARTING(f"node {node.name} still has the startup taint {taint.key}")
    return None


def _autoscaler_candidate_reason(node: NodeInfo, pool: Pool) -> Reason | None:
    if pool.autoscaler is Precedence.LEAD and node.autoscaler_candidate:
        return r.AUTOSCALERS(f"the cluster autoscaler is about to remove node {node.name} (taint {CANDIDATE_TAINT})")
    return None


def closed_receivers(model: ClusterModel, pools: Mapping[int, Pool], at: Seconds | None) -> list[int]:
    """Returns the nodes that must receive no pods: nodes that are too young, still starting, in or before maintenance,
    or about to be removed."""
    return [
        number
        for number, node in enumerate(model.nodes)
        if any(taint.key.startswith(STARTUP_TAINTS) or taint.key in UNINITIALIZED for taint in node.taints)
        or node.lifecycle
        or (number in pools and _is_closed_receiver(node, pools[number], at))
    ]


def _is_closed_receiver(node: NodeInfo, pool: Pool, at: Seconds | None) -> bool:
    if _autoscaler_candidate_reason(node, pool) is not None:
        return True
    return at is not None and node.created is not None and at - node.created < pool.receiver_age


def pool_refusal(pool: Pool, nodes: Sequence[int], model: ClusterModel, context: PlanningContext) -> Reason | None:
    """Returns why nothing is planned in this pool now, or None if its nodes may be drained."""
    if not pool.enabled:
        return r.POOL_OFF(f"pool {pool.name} is disabled")
    if not nodes and any(pool.has_node(node) for node in model.nodes):
        return r.SHARED_POOLS(f"every node of pool {pool.name} also belongs to another pool")
    if not nodes:
        return r.EMPTY_POOL(f"no node belongs to pool {pool.name}")
    members = [model.nodes[number] for number in nodes]
    return (
        _cluster_health_reason(model, context.autoscaler)
        or _timing_reason(pool, nodes, model, context)
        or _autoscaler_reason(pool, members, context)
    )


def _cluster_health_reason(model: ClusterModel, autoscaler: Autoscaler | None) -> Reason | None:
    """Returns the reason if so many nodes are not ready that the autoscaler stops its work."""
    machines = model.inventory.machines
    unready = sum(not node.is_ready for node in machines)
    members = [member.flags for member in autoscaler.each] if autoscaler is not None else [{}]
    percent = min(f.MAX_UNREADY_PERCENT.number_in(flags) for flags in members)
    count = min(f.OK_UNREADY_COUNT.number_in(flags) for flags in members)
    if unready > count and unready * 100 > percent * len(machines):
        return r.UNWELL(f"{unready} of {format_count(len(machines), 'node')} of the cluster are not ready")
    return None


def _timing_reason(pool: Pool, nodes: Sequence[int], model: ClusterModel, context: PlanningContext) -> Reason | None:
    if context.now is None:
        return None
    if not is_any_open(pool.windows, context.now):
        return r.CLOSED_WINDOW(f"the time is outside of the windows in which nodes of pool {pool.name} may be drained")
    created_times = [created for number in nodes if (created := model.nodes[number].created) is not None]
    newest = max(created_times, default=None)
    if newest is not None and context.now - newest < pool.quiet:
        return r.NOT_QUIET(
            f"a node joined pool {pool.name} {context.now - newest} s ago, and the pool waits {pool.quiet} s after that"
        )
    return None


def _autoscaler_reason(pool: Pool, nodes: Collection[NodeInfo], context: PlanningContext) -> Reason | None:
    if context.autoscaler is None:
        return None
    autoscaler = autoscaler_of_pool(context.autoscaler, pool.name, nodes)
    for member in autoscaler.each:
        if (reason := _member_reason(member, context)) is not None:
            return reason
    threshold = highest_threshold(context.autoscaler, pool.name, nodes, pool.group_options)
    most = pool.lead_max_threshold
    if pool.autoscaler is Precedence.LEAD and not pool.dry_run and threshold > most:
        return r.THRESHOLD_TOO_HIGH(
            f"pool {pool.name} has `autoscaler: lead`, but the cluster autoscaler itself removes nodes whose "
            f"utilization is under {threshold} %, more than the {most} % that lead.maxThreshold allows"
        )
    scaling = describe_scale_up(autoscaler, pool.name, nodes)
    return r.SCALING_UP(f"the cluster autoscaler is scaling up {scaling}") if scaling else None


def _member_reason(autoscaler: Autoscaler, context: PlanningContext) -> Reason | None:
    """Returns why nothing may be drained where this autoscaler removes the nodes, or None."""
    place = "" if not context.autoscaler or not context.autoscaler.members else f" (status {autoscaler.name})"
    if not autoscaler.scale_down:
        return r.NO_SCALE_DOWN(f"the cluster autoscaler never removes nodes (--scale-down-enabled=false){place}")
    if autoscaler.is_silent(context.now):
        return r.NO_AUTOSCALER(f"{autoscaler.silence_reason(context.now or 0)}{place}")
    if autoscaler.restarting:
        return r.NO_AUTOSCALER(f"the cluster autoscaler deleted its status, because it restarts or was stopped{place}")
    if not autoscaler.healthy:
        return r.AUTOSCALER_ILL(f"the cluster autoscaler reports the cluster as unhealthy{place}")
    return None


def keep_reason(subject: str, key: str, value: str | None, code: Code) -> Reason | None:
    """Returns the reason for which an annotation keeps a pod or node, or None if it is absent or `false`.

    `subject` is the pod or node as the message names it, for example "pod web/a". Any other value than `true` and
    `false` is reported as unreadable and keeps it too, because its author intended something.
    """
    # Karpenter ignores a malformed `do-not-disrupt`, and the cluster autoscaler only knows `true`; but a wrong guess
    # costs an unwanted restart.
    if value is None or value == "false":
        return None
    if key == RENAMED_KEEP:
        return r.MISREAD(f"{subject} has the annotation {key}, which now has another name: use {KEEP_ANNOTATION}")
    if value == "true":
        return code(f"{subject} has the annotation {key}: {value}")
    return unreadable_reason(subject, key, value)


def unreadable_reason(subject: str, key: str, value: str) -> Reason:
    """Returns the reason for an annotation with a value that is neither true, false nor a duration."""
    return r.MISREAD(
        f"{subject} has the annotation {key} with the value {value[:40]!r}, which Trimtab does not understand"
    )
