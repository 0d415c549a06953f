"""Everything a search needs, read off the world once: who may move, who may go, what it saves, what it takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.compaction.blockers import Judge, Moves, Owner, Stays
from trimtab.compaction.candidates import Nodes, Now, pool_refusal, young_receivers
from trimtab.compaction.reasons import BLOCKED, FEW
from trimtab.compaction.search.groups import Groups
from trimtab.compaction.search.lasts import Zones
from trimtab.compaction.search.limits import Limits
from trimtab.compaction.search.promises import Promises
from trimtab.compaction.search.weigh import by_evictions, weigh
from trimtab.packing.errands import Errand, Errands
from trimtab.packing.kinds import Kind
from trimtab.packing.room import Room
from trimtab.packing.world import World


@dataclass(slots=True, eq=False)
class Prepared:
    world: World
    room: Room
    now: Now
    judge: Judge
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
    budget_of: dict[int, int] = field(default_factory=dict)
    candidates: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    """Candidates that nobody looked at closely, the last to go last; only where a part of a plan was asked for."""
    errands: list[Errand | None] = field(default_factory=list)
    ways: Errands = field(init=False)
    """Made them; knows the sets of nodes that they may go to."""
    saves: dict[int, int] = field(default_factory=dict)
    unit: str = ""
    limits: list[Limits | None] = field(default_factory=list)
    reserved: list[tuple[Kind, int]] = field(default_factory=list)
    """Room taken for pods that are not there yet."""


def prepare(world: World, pools: Sequence[Pool], now: Now, most: int | None = None) -> Prepared:
    """`most` is how many candidates are looked at closely, those that promise most; None is all of them."""
    made = Prepared(world, Room(world), now, Judge.of(world.inventory, now.at), {})
    nodes = Nodes(world, pools, now)
    _assign(made, nodes)
    _close(made)
    _refuse_pools(made, pools)
    _refuse_nodes(made, nodes)
    _few(made, pools)
    made.saves, made.unit = weigh(world, made.pool_of)
    _judge(made, most)
    _promise(made, pools)
    _limit(made)
    _errands(made)
    return made


def _assign(made: Prepared, nodes: Nodes) -> None:
    for number in range(len(made.world.nodes)):
        found = nodes.pool_of(number)
        if isinstance(found, Reason):
            made.refusals[number] = found
        else:
            made.pool_of[number] = found


def _close(made: Prepared) -> None:
    for number in young_receivers(made.world, made.pool_of, made.now.at):
        made.room.closed[number] = 1


def _refuse_pools(made: Prepared, pools: Sequence[Pool]) -> None:
    members: dict[str, list[int]] = {pool.name: [] for pool in pools}
    for number, pool in made.pool_of.items():
        members[pool.name].append(number)
    for pool in pools:
        refusal = pool_refusal(pool, members[pool.name], made.world, made.now)
        if refusal is not None:
            made.pools[pool.name] = refusal


def _refuse_nodes(made: Prepared, nodes: Nodes) -> None:
    for number, pool in made.pool_of.items():
        refusal = nodes.refusal(number, pool) or made.pools.get(pool.name)
        if refusal is not None:
            made.refusals[number] = refusal
        else:
            made.candidates.append(number)


def _few(made: Prepared, pools: Sequence[Pool]) -> None:
    """Some pools want to see several nodes under the line before one goes."""
    for pool in pools:
        mine = [n for n in made.candidates if made.pool_of[n] is pool]
        if len(mine) < pool.under_count:
            for number in mine:
                made.refusals[number] = FEW(
                    f"pool {pool.name} has {len(mine)} nodes under the line and wants to see {pool.under_count}"
                )
            made.candidates = [n for n in made.candidates if made.pool_of[n] is not pool]


def _judge(made: Prepared, most: int | None) -> None:
    made.loads = [[] for _ in made.world.nodes]
    close = made.candidates
    if most is not None:
        ranked = by_evictions(made.candidates, made.world.on, made.saves)
        close, made.later = sorted(ranked[:most]), ranked[most:]
    made.unsettled = made.judge.unsettled(made.now.moved)
    for node in close:
        _judge_node(made, node, made.pool_of[node])
    made.candidates = [n for n in close if n not in made.pinned]


def _judge_node(made: Prepared, node: int, pool: Pool) -> None:
    pods, moved, load, known = made.world.pods, made.now.moved, made.loads[node], made.judge.known(pool)
    for number in made.world.on[node]:
        pod = pods[number]
        verdict = known.get(pod.alike)
        if verdict is None:
            verdict = made.judge.verdict(pod, pool)
        if moved:
            verdict = made.judge.moved(pod, verdict) if pod.key in moved else verdict
            verdict = made.judge.patient(pod, verdict, made.unsettled) if made.unsettled else verdict
        if type(verdict) is Moves:
            load.append(number)
            if verdict.budget is not None:
                made.budget_of[number] = verdict.budget
        elif isinstance(verdict, Stays):
            made.pods[number] = verdict.reason
            made.pinned.add(node)
            made.refusals.setdefault(node, BLOCKED(f"node {made.world.nodes[node].name} stays: {verdict.reason}"))


def _promise(made: Prepared, pools: Sequence[Pool]) -> None:
    """Room for pods that are not there yet, before any is given away."""
    order = (*by_evictions(made.candidates, made.loads, made.saves), *made.later)
    promises = Promises(made.room, order, made.pool_of)
    promises.waiting()
    promises.returning()
    promises.leaving(made.now.observations.draining if made.now.observations is not None else ())
    for pool in pools:
        if pool.headroom.largest_pod:
            promises.largest(pool, _movable(made, pool))
    made.reserved = promises.kept
    made.refusals |= promises.holders
    for node in (*made.candidates, *made.later):
        refusal = promises.pools.get(made.pool_of[node].name)
        if refusal is not None:
            made.refusals[node] = refusal
    made.pools |= promises.pools
    made.candidates, made.later = (
        [n for n in part if n not in made.refusals] for part in (made.candidates, made.later)
    )


def _movable(made: Prepared, pool: Pool) -> list[int]:
    """Pods of the pool that may move; of nodes not looked at closely, all but those that belong to their node."""
    pods = made.world.pods
    close = [p for n in made.candidates if made.pool_of[n] is pool for p in made.loads[n]]
    rest = [p for n in made.later if made.pool_of[n] is pool for p in made.world.on[n]]
    return close + [p for p in rest if not (pods[p].daemon or pods[p].static)]


def _limit(made: Prepared) -> None:
    by_pool: dict[int, tuple[Pool, list[int]]] = {}
    for number, pool in made.pool_of.items():
        by_pool.setdefault(id(pool), (pool, []))[1].append(number)
    scaler = made.now.autoscaler
    made.limits, zones, groups = [None] * len(made.world.nodes), Zones(made.world), Groups.read(made.world, scaler)
    for pool, numbers in by_pool.values():
        limits = Limits(pool, made.world, numbers, zones, groups, scaler.least(pool.name) if scaler else 0)
        for number in numbers:
            made.limits[number] = limits
    for kind, node in made.reserved:
        found = made.limits[node]
        if found is not None:
            found.arrive(kind, node)


def _errands(made: Prepared) -> None:
    """Errands read the room's counts; so they come after everything that reserves room."""
    kinds, made.ways = made.world.next_of, Errands(made.room)
    made.errands = [None] * len(kinds)
    errands, free, of = made.errands, made.ways.free, made.ways.of
    for node in made.candidates:
        load = made.loads[node]
        for pod in load:
            kind = kinds[pod]
            found = free.get(kind.number)
            errands[pod] = found if found is not None else of(kind, node)
        load.sort(key=lambda pod: kinds[pod].rank)
