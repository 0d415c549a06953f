"""The input of a search, read from the cluster model once: pods that may move, candidates, savings and limits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import INSTANCE_TYPE_LABEL
from trimtab.cluster.node_groups import NodeGroups
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod_groups import PodGroup
from trimtab.cluster.pool import Goal, Pool
from trimtab.cluster.pool_values import GroupMode
from trimtab.cluster.reason import Reason
from trimtab.compaction.blockers import IGNORED, UNRESTRICTED, Blocked, Evictable, EvictionChecker, Verdict
from trimtab.compaction.candidates import CandidateChecker, PlanningContext, closed_receivers, pool_refusal
from trimtab.compaction.reasons import BLOCKED, FEW, PAID, TOLERATES_CORDON, UNFIT_CHOICE
from trimtab.compaction.search.drain_order import by_evictions, node_order
from trimtab.compaction.search.pool_limits import NodeGroupMinimums, PoolLimits, ZoneMinimums
from trimtab.compaction.search.reserved_capacity import ReservedCapacity
from trimtab.compaction.surge.find_surge import Surge
from trimtab.compaction.terms.term_ledger import EMPTY_LEDGER
from trimtab.scheduling import node_filters
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import has_free_resources
from trimtab.scheduling.placement import PlacementRequest, PlacementRequests
from trimtab.scheduling.pod_class import PodClass
from trimtab.scheduling.run_conditions import unfit_reason


@dataclass(slots=True, eq=False)
class CompactionProblem:
    """The input of a search. `prepare_problem` fills it step by step; the search changes nothing in it but
    `capacity`."""

    model: ClusterModel
    capacity: FreeCapacity
    context: PlanningContext
    eviction_checker: EvictionChecker
    pool_of: dict[int, Pool]
    """Node → its pool, for nodes that are in exactly one pool."""
    refusals: dict[int, Reason] = field(default_factory=dict)
    """Node → why it is not drained."""
    pool_refusals: dict[str, Reason] = field(default_factory=dict)
    """Pool → why nothing is planned in it now."""
    blocked_pods: dict[int, Reason] = field(default_factory=dict)
    """Pod → why it may not be evicted."""
    unsettled_owners: frozenset[OwnerKey] = frozenset()
    """Workloads with a pod that was moved recently and is not ready yet."""
    pinned_nodes: set[int] = field(default_factory=set)
    """Nodes that would be candidates if one of their pods could be evicted."""
    pods_to_move: list[list[int]] = field(default_factory=list)
    """Node → the pods that must move when it is drained, largest first."""
    movable_pods: list[int] = field(default_factory=list)
    """The numbers of the pods in `pods_to_move`, sorted."""
    moving_amounts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Candidate → the sum of what its moving pods request, as (major, minor)."""
    budget_of: dict[int, int] = field(default_factory=dict)
    """Pod → the number of the PodDisruptionBudget that selects it."""
    surge_of: dict[int, Surge] = field(default_factory=dict)
    """Pod → what its Deployment must be given before its budget allows the eviction; other pods are left out."""
    term_costs: dict[int, int] = field(default_factory=dict)
    """Node → the sum of the costs that its moving pods state, at most the pool's ceiling; other nodes are left out."""
    companions: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Node → the pods on other nodes that are evicted with it, because they are of one group with pods of the node."""
    group_of: Mapping[int, PodGroup] = field(default_factory=dict)
    """Pod → its group, for groups that move as a whole."""
    candidates: list[int] = field(default_factory=list)
    unexamined: list[int] = field(default_factory=list)
    """Candidates that were not examined closely, sorted so that those to be drained last are at the end. Empty unless
    only a part of a plan was requested."""
    requests: list[PlacementRequest | None] = field(default_factory=list)
    """Pod → its placement request, or None if its placement depends on the order of moves."""
    placement_requests: PlacementRequests = field(init=False)
    """The object that created the requests. It holds the sets of nodes to which they refer."""
    savings: dict[int, int] = field(default_factory=dict)
    """Node → what its removal saves, in `unit`."""
    unit: str = ""
    limits: list[PoolLimits | None] = field(default_factory=list)
    """Node → the limits of its pool, or None if it is in no pool."""
    node_groups: NodeGroups = field(default_factory=NodeGroups)
    """The node groups of the cluster autoscaler, and the nodes whose group is not known."""
    reserved: list[tuple[PodClass, int]] = field(default_factory=list)
    """(pod class, node) of the capacity that is reserved for pods that do not exist yet."""
    ignored: list[str] = field(default_factory=list)
    """Sentences about pending pods that are ignored, so that they do not prevent drains, and about capacity buffers for
    which less capacity than requested is reserved."""

    @property
    def surge_counts(self) -> dict[int, int]:
        """Node → the number of additional pods that run for a while when the node is drained; nodes without any are
        left out."""
        by_node: dict[int, dict[OwnerKey, int]] = {}
        for pod, surge in self.surge_of.items():
            by_node.setdefault(self.model.node_of[pod], {})[surge.deployment] = surge.extra
        return {node: sum(extras.values()) for node, extras in by_node.items()}

    @property
    def extra_moves(self) -> dict[int, int]:
        """Node → the number of pods that start or move for its drain besides its own; nodes without any are left
        out."""
        if not self.companions:
            return self.surge_counts
        return dict(Counter(self.surge_counts) + Counter({node: len(pods) for node, pods in self.companions.items()}))

    @property
    def surcharges(self) -> dict[int, int]:
        """Node → what counts like so many further evictions where nodes are put in order: additional pods, and the
        costs that the pods state; nodes without any are left out."""
        return dict(Counter(self.extra_moves) + Counter(self.term_costs)) if self.term_costs else self.extra_moves

    def budget_needs(self, node: int) -> Counter[int]:
        """Returns budget → how many of its disruptions the drain of the node needs, those of companions included."""
        needs = Counter([number for pod in self.pods_to_move[node] if (number := self.budget_of.get(pod)) is not None])
        index = self.eviction_checker.pdb_index
        for companion in self.companions.get(node, ()):
            pod = self.model.pods[companion]
            needs.update(index.matching_numbers(pod.namespace, pod.requirements.labels))
        return needs

    @property
    def allowed_disruptions(self) -> list[int]:
        """Budget → how many evictions it allows at a time: now, or after the surge of a pod that it selects."""
        surged = {self.budget_of[pod] for pod in self.surge_of}
        return [
            max(budget.allowed, 1 if number in surged else 0) for number, budget in enumerate(self.model.inventory.pdbs)
        ]


def prepare_problem(
    model: ClusterModel, pools: Sequence[Pool], context: PlanningContext, most: int | None = None
) -> CompactionProblem:
    """Returns the input of a search, read from the cluster model.

    `most` is the number of candidates, the most promising ones, that are examined closely; None means all.
    """
    problem = CompactionProblem(
        model,
        FreeCapacity(model),
        context,
        EvictionChecker.for_inventory(
            model.inventory,
            context.now,
            context.autoscaler,
            context.observations.terms if context.observations is not None else EMPTY_LEDGER,
            pools,
        ),
        {},
    )
    # The order of these steps matters: each reads what the ones before have set.
    problem.capacity.reserve_growth()
    nodes = CandidateChecker(model, pools, context)
    _assign_pools(problem, nodes)
    for number in closed_receivers(problem.model, problem.pool_of, problem.context.now):
        problem.capacity.closed_nodes[number] = 1
    _refuse_pools(problem, pools)
    _refuse_nodes(problem, nodes)
    _refuse_below_count(problem, pools)
    problem.savings, problem.unit = node_order(model, problem.pool_of)
    _choose_candidates(problem, most)
    _refuse_unfit_choices(problem)
    _refuse_committed(problem, pools)
    _reserve_capacity(problem, pools)
    _close_planned_nodes(problem)
    _set_limits(problem)
    _create_requests(problem)
    return problem


def _assign_pools(problem: CompactionProblem, nodes: CandidateChecker) -> None:
    for number in range(len(problem.model.nodes)):
        pool = nodes.find_pool(number)
        if isinstance(pool, Reason):
            problem.refusals[number] = pool
        else:
            problem.pool_of[number] = pool


def _refuse_pools(problem: CompactionProblem, pools: Sequence[Pool]) -> None:
    members: dict[str, list[int]] = {pool.name: [] for pool in pools}
    for number, pool in problem.pool_of.items():
        members[pool.name].append(number)
    for pool in pools:
        reason = pool_refusal(pool, members[pool.name], problem.model, problem.context)
        if reason is not None:
            problem.pool_refusals[pool.name] = reason


def _refuse_nodes(problem: CompactionProblem, nodes: CandidateChecker) -> None:
    for number, pool in problem.pool_of.items():
        reason = nodes.rejection_reason(number, pool) or problem.pool_refusals.get(pool.name)
        if reason is not None:
            problem.refusals[number] = reason
        else:
            problem.candidates.append(number)


def _refuse_below_count(problem: CompactionProblem, pools: Sequence[Pool]) -> None:
    """Rejects all candidates of a pool if fewer nodes than its settings require are under the threshold."""
    for pool in pools:
        candidates = [n for n in problem.candidates if problem.pool_of[n] is pool]
        if len(candidates) < pool.under_count:
            count = format_count(len(candidates), "node")
            says = (
                f"only {count} of pool {pool.name} have requests under the threshold, but the pool requires "
                f"{pool.under_count}"
            )
            problem.refusals |= dict.fromkeys(candidates, FEW(says))
            problem.candidates = [n for n in problem.candidates if problem.pool_of[n] is not pool]


def _choose_candidates(problem: CompactionProblem, most: int | None) -> None:
    problem.pods_to_move = [[] for _ in problem.model.nodes]
    examined = problem.candidates
    if most is not None:
        ranked = by_evictions(problem.candidates, problem.model.pods_on_node, problem.savings)
        examined, problem.unexamined = sorted(ranked[:most]), ranked[most:]
    problem.unsettled_owners = problem.eviction_checker.unsettled_owners(problem.context.moved_pods)
    _judge_pods(problem, examined)
    _block_returning_pods(problem)
    if any(pool.groups is GroupMode.MOVE for pool in problem.pool_of.values()):
        # Most plans need neither of these modules, and start sooner without them.
        from trimtab.compaction.search.companions import plan_groups

        plan_groups(problem, examined)
    if any(problem.model.pods[number].annotations for number in problem.movable_pods):
        from trimtab.compaction.search.stated_terms import apply_terms

        apply_terms(problem, examined)
    problem.candidates = [n for n in examined if n not in problem.pinned_nodes]


def _judge_pods(problem: CompactionProblem, nodes: Sequence[int]) -> None:
    """Decides for the pods of these nodes whether they may be evicted. Pods are sorted by name, so that the replicas of
    a workload follow each other."""
    checker, loads, budget_of = problem.eviction_checker, problem.pods_to_move, problem.budget_of
    movable_pods, nothing_moved, waived_pods = (
        problem.movable_pods,
        not problem.context.moved_pods,
        problem.context.waived_pods,
    )
    pools: list[tuple[Pool, dict[int, Verdict]] | None] = [None] * len(problem.model.nodes)
    for node in nodes:
        pool = problem.pool_of[node]
        pools[node] = (pool, checker.cached_verdicts(pool, problem.model.nodes[node].name))
    # Pods are sorted by name, so replicas follow each other: one comparison replaces the lookup for most of them.
    last_verdicts: dict[int, Verdict] | None = None
    last_template = -1
    verdict: Verdict = IGNORED
    for number, (pod, node) in enumerate(zip(problem.model.pods, problem.model.node_of, strict=True)):
        own = pools[node]
        if own is None:
            continue
        pool, verdicts = own
        template = pod.likeness
        if template < 0 or template != last_template or verdicts is not last_verdicts:
            last_verdicts = verdicts
            verdict = verdicts.get(template) or checker.judge_pod(pod, pool)
            last_template = template if nothing_moved and template in verdicts else -1
        if waived_pods and type(verdict) is Blocked and pod.key in waived_pods:
            verdict = IGNORED if pod.is_daemon else UNRESTRICTED
        if not nothing_moved:
            verdict = checker.block_moved(pod, verdict) if pod.key in problem.context.moved_pods else verdict
            verdict = (
                checker.block_unsettled(pod, verdict, problem.unsettled_owners) if problem.unsettled_owners else verdict
            )
        if type(verdict) is Evictable:
            loads[node].append(number)
            movable_pods.append(number)
            if verdict.budget is not None:
                budget_of[number] = verdict.budget
            if verdict.surge is not None:
                problem.surge_of[number] = verdict.surge
        elif verdict is not IGNORED and isinstance(verdict, Blocked):
            problem.blocked_pods[number] = verdict.reason
            problem.pinned_nodes.add(node)
            problem.refusals.setdefault(node, BLOCKED(f"node {problem.model.nodes[node].name} stays: {verdict.reason}"))


def _block_returning_pods(problem: CompactionProblem) -> None:
    """Blocks the pods whose successors the scheduler may place on the node that they leave, because they tolerate its
    cordon: the drain would evict them again and again, and never empty the node."""
    model, waived_pods = problem.model, problem.context.waived_pods
    tolerant = {one for one in {*model.successor_class_of} if node_filters.tolerates_cordon(one.ask)}
    for number in problem.movable_pods if tolerant else ():
        if model.successor_class_of[number] not in tolerant or model.pods[number].key in waived_pods:
            continue
        if (reason := returning_reason(model, number)) is not None:
            node = model.node_of[number]
            problem.blocked_pods[number] = reason
            problem.pinned_nodes.add(node)
            problem.refusals.setdefault(node, BLOCKED(f"node {model.nodes[node].name} stays: {reason}"))


def returning_reason(model: ClusterModel, number: int) -> Reason | None:
    """Returns the reason if the scheduler may place the successor of this pod on the node that the pod leaves,
    otherwise None. A drain would evict such a pod again and again, and never empty the node."""
    pod_class, pod, node = model.successor_class_of[number], model.pods[number], model.nodes[model.node_of[number]]
    # A pod without an owner has no successor.
    if pod.owner is None or not node_filters.may_return(pod_class.ask, pod_class.volumes, node):
        return None
    return TOLERATES_CORDON(
        f"pod {pod.key} tolerates the cordon of node {node.name}, so the scheduler may place its successor there again"
    )


def _refuse_unfit_choices(problem: CompactionProblem) -> None:
    """Rejects the candidates with a pod that kube-scheduler could place on a node where it does not run: the plan names
    a better node, but the scheduler makes its own choice."""
    model = problem.model
    unfit_by_class: dict[int, list[int]] = {}
    for node in problem.candidates if model.unfit_sets else ():
        for pod in problem.pods_to_move[node]:
            pod_class = model.successor_class_of[pod]
            if pod_class.unfit_set < 0:
                continue
            if pod_class.number not in unfit_by_class:
                unfit_by_class[pod_class.number] = [
                    number
                    for number, is_unfit in enumerate(model.unfit_sets[pod_class.unfit_set])
                    if is_unfit
                    and model.nodes[number].is_staying
                    and has_free_resources(problem.capacity, pod_class, number)
                ]
            choices = [number for number in unfit_by_class[pod_class.number] if number != node]
            if choices:
                reason = unfit_reason(pod_class.conditions, model.nodes[choices[0]])
                problem.refusals[node] = UNFIT_CHOICE(
                    f"the scheduler could place pod {model.pods[pod].key} on node {model.nodes[choices[0]].name}, but "
                    f"{reason}"
                )
                break
    problem.candidates = [node for node in problem.candidates if node not in problem.refusals]


def _refuse_committed(problem: CompactionProblem, pools: Sequence[Pool]) -> None:
    """In pools whose goal is cost, rejects nodes that are covered by a commitment, because they are paid for even if
    they are removed.

    A commitment covers a number of nodes of its type: first the nodes that stay anyway, then the candidates that would
    be drained last.
    """
    for pool in pools:
        if pool.goal is Goal.COST:
            for instance_type, count in pool.commitments.items():
                for number in _covered_candidates(problem, pool, instance_type, count):
                    problem.refusals[number] = PAID(
                        f"node {problem.model.nodes[number].name} is one of {count} nodes of type "
                        f"{instance_type} that you pay for whether they run or not"
                    )
    problem.candidates, problem.unexamined = (
        [n for n in candidates if n not in problem.refusals] for candidates in (problem.candidates, problem.unexamined)
    )


def _covered_candidates(problem: CompactionProblem, pool: Pool, instance_type: str, count: int) -> list[int]:
    """Returns the candidates of the instance type that the commitment to `count` nodes covers."""
    nodes, candidates = problem.model.nodes, {*problem.candidates, *problem.unexamined}
    members = [
        n
        for n, of_node in problem.pool_of.items()
        if of_node is pool and nodes[n].labels.get(INSTANCE_TYPE_LABEL) == instance_type
    ]
    draining = [
        n for n in members if nodes[n].removal_taint is not None or nodes[n].name in problem.context.own_cordons
    ]
    # The cheapest nodes to drain come first: the commitment covers those that would be drained last.
    candidates_left = by_evictions(
        [n for n in members if n in candidates and n not in draining], problem.pods_to_move, problem.savings
    )
    staying = len(members) - len(candidates_left) - len(draining)
    return candidates_left[-(count - staying) :] if count > staying else []


def _reserve_capacity(problem: CompactionProblem, pools: Sequence[Pool]) -> None:
    """Reserves capacity for pods that do not exist yet, before the search uses any capacity."""
    order = (*by_evictions(problem.candidates, problem.pods_to_move, problem.savings), *problem.unexamined)
    reserved = ReservedCapacity(problem.capacity, order, problem.pool_of, now=problem.context.now)
    reserved.reserve_for_pending()
    reserved.reserve_for_daemons()
    reserved.reserve_for_missing()
    reserved.reserve_for_buffers()
    reserved.reserve_for_draining(
        problem.context.observations.draining if problem.context.observations is not None else ()
    )
    for pool in pools:
        if pool.headroom.largest_pod:
            reserved.reserve_for_largest(pool, _movable_pods_of(problem, pool))
    problem.reserved, problem.ignored = reserved.reserved, reserved.ignored
    problem.refusals |= reserved.reserving_nodes
    for node in (*problem.candidates, *problem.unexamined):
        reason = reserved.blocked_pools.get(problem.pool_of[node].name)
        if reason is not None:
            problem.refusals[node] = reason
    problem.pool_refusals |= reserved.blocked_pools
    problem.candidates, problem.unexamined = (
        [n for n in part if n not in problem.refusals] for part in (problem.candidates, problem.unexamined)
    )


def _close_planned_nodes(problem: CompactionProblem) -> None:
    """Closes the nodes that the plan in progress will drain later. A pod that is placed on one of them would have to
    move twice."""
    planned = {*problem.candidates, *problem.unexamined}
    for number, pool in problem.pool_of.items() if problem.context.aims else ():
        if problem.model.nodes[number].name in problem.context.aims.get(pool.name, ()) and number not in planned:
            problem.capacity.closed_nodes[number] = 1


def _movable_pods_of(problem: CompactionProblem, pool: Pool) -> list[int]:
    """Returns the pods of the pool that may be evicted. For nodes that were not examined closely, these are all pods
    except those of DaemonSets and static pods."""
    pods = problem.model.pods
    close = [p for n in problem.candidates if problem.pool_of[n] is pool for p in problem.pods_to_move[n]]
    rest = [p for n in problem.unexamined if problem.pool_of[n] is pool for p in problem.model.pods_on_node[n]]
    return close + [p for p in rest if not (pods[p].is_daemon or pods[p].is_static)]


def _set_limits(problem: CompactionProblem) -> None:
    by_pool: dict[int, tuple[Pool, list[int]]] = {}
    for number, pool in problem.pool_of.items():
        by_pool.setdefault(id(pool), (pool, []))[1].append(number)
    autoscaler = problem.context.autoscaler
    problem.limits, zones, groups = (
        [None] * len(problem.model.nodes),
        ZoneMinimums(problem.model),
        NodeGroupMinimums.from_autoscaler(problem.model, autoscaler, problem.pool_of),
    )
    problem.node_groups = groups.groups
    for pool, numbers in by_pool.values():
        limits = PoolLimits(
            pool,
            problem.model,
            numbers,
            zones,
            groups,
            autoscaler.min_nodes_of_pool(pool.name) if autoscaler else 0,
            problem.context.needed_room.get(pool.name),
        )
        for number in numbers:
            problem.limits[number] = limits
    for pod_class, node in problem.reserved:
        pool_limits = problem.limits[node]
        if pool_limits is not None:
            pool_limits.count_arrival(pod_class, node)


def _create_requests(problem: CompactionProblem) -> None:
    """Creates the placement requests. They read the pod counts in the capacity, so this must happen after all
    reservations."""
    classes, problem.placement_requests = problem.model.successor_class_of, PlacementRequests(problem.capacity)
    problem.requests = [None] * len(classes)
    requests, free, node_of = problem.requests, problem.placement_requests.unbound_requests.get, problem.model.node_of
    is_candidate = bytearray(len(problem.model.nodes))
    for node in problem.candidates:
        is_candidate[node] = 1
    last: PodClass | None = None
    request: PlacementRequest | None = None
    for pod in problem.movable_pods:
        if not is_candidate[node_of[pod]]:
            continue
        if classes[pod] is not last:
            last = classes[pod]
            request = free(last.number)
        if request is not None:
            requests[pod] = request
        else:
            requests[pod] = problem.placement_requests.request_for(last, node_of[pod])
            request = free(last.number)
    sort_keys = [one.sort_key for one in classes]
    for node in problem.candidates:
        load = problem.pods_to_move[node]
        load.sort(key=sort_keys.__getitem__)
        moving = [classes[pod] for pod in load]
        problem.moving_amounts[node] = (sum([one.major for one in moving]), sum([one.minor for one in moving]))
