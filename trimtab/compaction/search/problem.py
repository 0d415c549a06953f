"""Everything a search needs, read off the world once: who may move, who may go, what it saves, what it takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.node import INSTANCE_TYPE
from trimtab.cluster.pool import Goal, Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction.blockers import FREE, SKIPPED, Blocked, Evictable, EvictionChecker, Owner, Verdict
from trimtab.compaction.candidates import CandidateChecker, PlanningContext, closed_receivers, pool_refusal
from trimtab.compaction.reasons import BLOCKED, FEW, PAID
from trimtab.compaction.search.node_order import by_evictions, node_order
from trimtab.compaction.search.pool_limits import NodeGroupMinimums, PoolLimits, ZoneMinimums
from trimtab.compaction.search.reserved_capacity import ReservedCapacity
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.placement_requests import PlacementRequest, PlacementRequests
from trimtab.scheduling.pod_class import PodClass


@dataclass(slots=True, eq=False)
class CompactionProblem:
    world: ClusterModel
    room: FreeCapacity
    now: PlanningContext
    judge: EvictionChecker
    pool_of: dict[int, Pool]
    """Nodes that are in exactly one pool."""
    refusals: dict[int, Reason] = field(default_factory=dict)
    pools: dict[str, Reason] = field(default_factory=dict)
    pods: dict[int, Reason] = field(default_factory=dict)
    """Pod → why it must stay."""
    unsettled: frozenset[Owner] = frozenset()
    """Workloads of which a pod was moved and is not ready yet."""
    pinned: set[int] = field(default_factory=set)
    """Nodes that could be tried but for a pod that must stay."""
    loads: list[list[int]] = field(default_factory=list)
    """Node → pods that must move with it, largest first."""
    movers: list[int] = field(default_factory=list)
    """All of these pods, by their numbers."""
    moving: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Candidate → what these pods need elsewhere: of the scarcer resource, and of the other."""
    budget_of: dict[int, int] = field(default_factory=dict)
    candidates: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    """Candidates that nobody looked at closely, the last to go last; only where a part of a plan was asked for."""
    errands: list[PlacementRequest | None] = field(default_factory=list)
    ways: PlacementRequests = field(init=False)
    """Made them; knows the sets of nodes that they may go to."""
    saves: dict[int, int] = field(default_factory=dict)
    unit: str = ""
    limits: list[PoolLimits | None] = field(default_factory=list)
    reserved: list[tuple[PodClass, int]] = field(default_factory=list)
    """Room taken for pods that are not there yet."""
    ignored: list[str] = field(default_factory=list)
    """Pods that wait and keep no pool from shrinking, each in words."""


def prepare(
    world: ClusterModel, pools: Sequence[Pool], now: PlanningContext, most: int | None = None
) -> CompactionProblem:
    """`most` is how many candidates are looked at closely, those that promise most; None is all of them."""
    made = CompactionProblem(world, FreeCapacity(world), now, EvictionChecker.of(world.inventory, now.at), {})
    made.room.keep_room_to_grow()
    nodes = CandidateChecker(world, pools, now)
    _assign(made, nodes)
    _close(made)
    _refuse_pools(made, pools)
    _refuse_nodes(made, nodes)
    _few(made, pools)
    made.saves, made.unit = node_order(world, made.pool_of)
    _judge(made, most)
    _commit(made, pools)
    _promise(made, pools)
    _keep_aimed_at_empty(made)
    _limit(made)
    _errands(made)
    return made


def _assign(made: CompactionProblem, nodes: CandidateChecker) -> None:
    for number in range(len(made.world.nodes)):
        found = nodes.pool_of(number)
        if isinstance(found, Reason):
            made.refusals[number] = found
        else:
            made.pool_of[number] = found


def _close(made: CompactionProblem) -> None:
    for number in closed_receivers(made.world, made.pool_of, made.now.at):
        made.room.closed[number] = 1


def _refuse_pools(made: CompactionProblem, pools: Sequence[Pool]) -> None:
    members: dict[str, list[int]] = {pool.name: [] for pool in pools}
    for number, pool in made.pool_of.items():
        members[pool.name].append(number)
    for pool in pools:
        refusal = pool_refusal(pool, members[pool.name], made.world, made.now)
        if refusal is not None:
            made.pools[pool.name] = refusal


def _refuse_nodes(made: CompactionProblem, nodes: CandidateChecker) -> None:
    for number, pool in made.pool_of.items():
        refusal = nodes.refusal(number, pool) or made.pools.get(pool.name)
        if refusal is not None:
            made.refusals[number] = refusal
        else:
            made.candidates.append(number)


def _few(made: CompactionProblem, pools: Sequence[Pool]) -> None:
    """Some pools want to see several nodes under the line before one goes."""
    for pool in pools:
        mine = [n for n in made.candidates if made.pool_of[n] is pool]
        if len(mine) < pool.under_count:
            for number in mine:
                made.refusals[number] = FEW(
                    f"pool {pool.name} has {len(mine)} nodes under the line and wants to see {pool.under_count}"
                )
            made.candidates = [n for n in made.candidates if made.pool_of[n] is not pool]


def _judge(made: CompactionProblem, most: int | None) -> None:
    made.loads = [[] for _ in made.world.nodes]
    close = made.candidates
    if most is not None:
        ranked = by_evictions(made.candidates, made.world.on, made.saves)
        close, made.later = sorted(ranked[:most]), ranked[most:]
    made.unsettled = made.judge.unsettled(made.now.moved)
    _judge_pods(made, close)
    made.candidates = [n for n in close if n not in made.pinned]


def _judge_pods(made: CompactionProblem, nodes: Sequence[int]) -> None:
    """Of the pods of these nodes, in the order of their names: there replicas come one after the other."""
    judge, loads, budget_of, is_anew = made.judge, made.loads, made.budget_of, not made.now.moved
    waived = made.now.waived
    pools: list[Pool | None] = [None] * len(made.world.nodes)
    for node in nodes:
        pools[node] = made.pool_of[node]
    last: tuple[Pool | None, int] = (None, -1)
    verdict: Verdict = SKIPPED
    for number, (pod, node) in enumerate(zip(made.world.pods, made.world.node_of, strict=True)):
        pool = pools[node]
        if pool is None:
            continue
        alike = pod.alike
        if alike < 0 or alike != last[1] or pool is not last[0]:
            known = judge.known(pool)
            verdict = known.get(alike) or judge.verdict(pod, pool)
            last = (pool, alike if is_anew and alike in known else -1)
        if waived and type(verdict) is Blocked and pod.key in waived:
            verdict = SKIPPED if pod.daemon else FREE
        if not is_anew:
            verdict = judge.moved(pod, verdict) if pod.key in made.now.moved else verdict
            verdict = judge.patient(pod, verdict, made.unsettled) if made.unsettled else verdict
        if type(verdict) is Evictable:
            loads[node].append(number)
            made.movers.append(number)
            if verdict.budget is not None:
                budget_of[number] = verdict.budget
        elif verdict is not SKIPPED and isinstance(verdict, Blocked):
            made.pods[number] = verdict.reason
            made.pinned.add(node)
            made.refusals.setdefault(node, BLOCKED(f"node {made.world.nodes[node].name} stays: {verdict.reason}"))


def _commit(made: CompactionProblem, pools: Sequence[Pool]) -> None:
    """Nodes that are paid for whether they run or not stay, where a pool's goal is money.

    A commitment covers as many nodes of its type: first those that stay anyway, then those that would go last.
    """
    for pool in pools:
        if pool.goal is Goal.COST:
            for kind, count in pool.commitments.items():
                for number in _covered(made, pool, kind, count):
                    made.refusals[number] = PAID(
                        f"node {made.world.nodes[number].name} is one of {count} nodes of type {kind} that are paid"
                        " for whether they run or not"
                    )
    made.candidates, made.later = (
        [n for n in part if n not in made.refusals] for part in (made.candidates, made.later)
    )


def _covered(made: CompactionProblem, pool: Pool, kind: str, count: int) -> list[int]:
    """Candidates of the type that the commitment to `count` nodes covers."""
    nodes, tried = made.world.nodes, {*made.candidates, *made.later}
    mine = [n for n, its in made.pool_of.items() if its is pool and nodes[n].labels.get(INSTANCE_TYPE) == kind]
    leaves = [n for n in mine if nodes[n].going is not None or nodes[n].name in made.now.ours]
    free = by_evictions([n for n in mine if n in tried and n not in leaves], made.loads, made.saves)
    stay = len(mine) - len(free) - len(leaves)
    return free[-(count - stay) :] if count > stay else []


def _promise(made: CompactionProblem, pools: Sequence[Pool]) -> None:
    """Room for pods that are not there yet, before any is given away."""
    order = (*by_evictions(made.candidates, made.loads, made.saves), *made.later)
    promises = ReservedCapacity(made.room, order, made.pool_of, at=made.now.at)
    promises.waiting()
    promises.returning()
    promises.buffers()
    promises.leaving(made.now.observations.draining if made.now.observations is not None else ())
    for pool in pools:
        if pool.headroom.largest_pod:
            promises.largest(pool, _movable(made, pool))
    made.reserved, made.ignored = promises.kept, promises.ignored
    made.refusals |= promises.holders
    for node in (*made.candidates, *made.later):
        refusal = promises.pools.get(made.pool_of[node].name)
        if refusal is not None:
            made.refusals[node] = refusal
    made.pools |= promises.pools
    made.candidates, made.later = (
        [n for n in part if n not in made.refusals] for part in (made.candidates, made.later)
    )


def _keep_aimed_at_empty(made: CompactionProblem) -> None:
    """What the plan under way will empty once it can is no place for pods: they would move twice."""
    planned = {*made.candidates, *made.later}
    for number, pool in made.pool_of.items() if made.now.aims else ():
        if made.world.nodes[number].name in made.now.aims.get(pool.name, ()) and number not in planned:
            made.room.closed[number] = 1


def _movable(made: CompactionProblem, pool: Pool) -> list[int]:
    """Pods of the pool that may move; of nodes not looked at closely, all but those that belong to their node."""
    pods = made.world.pods
    close = [p for n in made.candidates if made.pool_of[n] is pool for p in made.loads[n]]
    rest = [p for n in made.later if made.pool_of[n] is pool for p in made.world.on[n]]
    return close + [p for p in rest if not (pods[p].daemon or pods[p].static)]


def _limit(made: CompactionProblem) -> None:
    by_pool: dict[int, tuple[Pool, list[int]]] = {}
    for number, pool in made.pool_of.items():
        by_pool.setdefault(id(pool), (pool, []))[1].append(number)
    scaler = made.now.autoscaler
    made.limits, zones, groups = (
        [None] * len(made.world.nodes),
        ZoneMinimums(made.world),
        NodeGroupMinimums.read(made.world, scaler),
    )
    for pool, numbers in by_pool.values():
        limits = PoolLimits(pool, made.world, numbers, zones, groups, scaler.least(pool.name) if scaler else 0)
        for number in numbers:
            made.limits[number] = limits
    for kind, node in made.reserved:
        found = made.limits[node]
        if found is not None:
            found.arrive(kind, node)


def _errands(made: CompactionProblem) -> None:
    """Errands read the room's counts; so they come after everything that reserves room."""
    kinds, made.ways = made.world.next_of, PlacementRequests(made.room)
    made.errands = [None] * len(kinds)
    errands, free, node_of = made.errands, made.ways.free.get, made.world.node_of
    is_candidate = bytearray(len(made.world.nodes))
    for node in made.candidates:
        is_candidate[node] = 1
    last: PodClass | None = None
    errand: PlacementRequest | None = None
    for pod in made.movers:
        if not is_candidate[node_of[pod]]:
            continue
        if kinds[pod] is not last:
            last = kinds[pod]
            errand = free(last.number)
        if errand is not None:
            errands[pod] = errand
        else:
            errands[pod] = made.ways.of(last, node_of[pod])
            errand = free(last.number)
    ranks = [kind.rank for kind in kinds]
    majors, minors = [kind.major for kind in kinds], [kind.minor for kind in kinds]
    for node in made.candidates:
        load = made.loads[node]
        load.sort(key=ranks.__getitem__)
        made.moving[node] = (sum([majors[pod] for pod in load]), sum([minors[pod] for pod in load]))
