"""In which order nodes are tried and drained: by what the removal of each saves, in waves, and move by move.

- Waves: a PodDisruptionBudget that allows k disruptions allows k evictions in each wave. A node with more pods of a
  budget than the budget allows is the only node of its wave that uses the budget, and evicts these pods in turns; each
  turn waits for the successors of the one before.
- Replay: as far as possible, the search has chosen targets that fit in any order. `replay_drain` makes every move of a
  node in the plan's own order: the pod leaves, its successor is checked by all filters of kube-scheduler, and is
  placed. If one move of a node fails, the node is left out, and its moves are undone.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from trimtab.cluster.pool import Goal, Pool
from trimtab.cluster.reason import NotYet
from trimtab.machines.prices import amount_of, price_key, quote_price, with_estimates
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import fits_on_node

SHARE_UNIT = 1_000_000
"""The savings of an average node of its pool, as a number. It is the unit of savings if the pools measure savings in
different units."""


def node_order(model: ClusterModel, pools: Mapping[int, Pool]) -> tuple[dict[int, int], str]:
    """Returns (node → what its removal saves, the unit).

    A node without a known price gets the price per core of the other nodes. If no price is known at all, cores are the
    unit.
    """
    goals = {pool.goal for pool in pools.values()}
    if goals == {Goal.NODES}:
        return dict.fromkeys(pools, 1), "nodes"
    cores = {node: model.allocatable_amount(node, "cpu") for node in pools}
    # Nodes with equal keys have one price, known or not: a cluster has few types of machines.
    amounts: dict[object, int | NotYet] = {}
    quoted: dict[int, int | NotYet] = {}
    for node, pool in pools.items():
        key = (id(pool), price_key(model.nodes[node]))
        if key not in amounts:
            amounts[key] = amount_of(quote_price(model.nodes[node], pool.prices))
        quoted[node] = amounts[key]
    prices = with_estimates(quoted, cores)
    unit = "micro-dollars an hour" if prices else "millicores"
    prices = prices or cores
    if goals <= {Goal.COST}:
        return prices, unit
    return _pool_shares(pools, prices), "millionths of an average node of the pool"


def _pool_shares(pools: Mapping[int, Pool], prices: Mapping[int, int]) -> dict[int, int]:
    totals: dict[str, list[int]] = {}
    for node, pool in pools.items():
        total = totals.setdefault(pool.name, [0, 0])
        total[0] += prices[node]
        total[1] += 1

    def share(node: int, pool: Pool) -> int:
        total, count = totals[pool.name]
        return SHARE_UNIT if pool.goal is Goal.NODES else prices[node] * SHARE_UNIT * count // max(1, total)

    return {node: share(node, pool) for node, pool in pools.items()}


NO_SURCHARGE: Mapping[int, int] = {}


def by_evictions(
    nodes: Sequence[int],
    loads: Sequence[Sequence[int]],
    saves: Mapping[int, int],
    surcharge: Mapping[int, int] = NO_SURCHARGE,
) -> list[int]:
    """Returns the nodes sorted by evictions per saved price, the fewest first; then by the smaller saving, then by
    number. `surcharge`: node → what counts like so many further evictions."""
    extra = surcharge.get
    return sorted(nodes, key=lambda n: (((len(loads[n]) + extra(n, 0)) << 40) // max(1, saves[n]), saves[n], n))


def by_evictions_and_capacity(
    nodes: Sequence[int],
    loads: Sequence[Sequence[int]],
    saves: Mapping[int, int],
    capacity_removed: Mapping[int, int],
    weight: int,
    surcharge: Mapping[int, int] = NO_SURCHARGE,
) -> list[int]:
    """Returns the nodes sorted as by `by_evictions`, but also by the capacity that a drain removes, which matters if
    capacity is scarce.

    `weight` is the weight of capacity relative to evictions. Both are compared as shares of their sums over all nodes.
    `surcharge` is as in `by_evictions`.
    """
    extra = surcharge.get
    total_pods, total_capacity = (
        max(1, sum(len(loads[n]) for n in nodes)),
        max(1, sum(capacity_removed[n] for n in nodes)),
    )
    return sorted(
        nodes,
        # Shifted by 40 bits before the division: the order stays exact in integers.
        key=lambda n: (
            (((len(loads[n]) + extra(n, 0)) * total_capacity + weight * capacity_removed[n] * total_pods) << 40)
            // max(1, saves[n]),
            saves[n],
            n,
        ),
    )


Needs = Mapping[int, int]
"""Budget → the number of its pods on a node."""


def arrange_waves(nodes: Sequence[int], needs: Mapping[int, Needs], allowed: Sequence[int]) -> list[list[int]]:
    """Returns the waves: each node is in the first wave whose budgets still allow it. Within a wave, the order of
    `nodes` is kept."""
    waves: list[list[int]] = []
    ledgers: list[dict[int, int]] = []
    for node in nodes:
        # A node that needs more than the budget allows takes the whole budget of the wave, and spends it again in each
        # turn.
        cost = {budget: min(count, allowed[budget]) for budget, count in needs[node].items()}
        number = next((n for n, spent in enumerate(ledgers) if _is_within_budgets(spent, cost, allowed)), len(waves))
        if number == len(waves):
            waves.append([])
            ledgers.append({})
        waves[number].append(node)
        for budget, amount in cost.items():
            ledgers[number][budget] = ledgers[number].get(budget, 0) + amount
    return waves


def _is_within_budgets(spent: Mapping[int, int], cost: Mapping[int, int], allowed: Sequence[int]) -> bool:
    for budget, amount in cost.items():
        before = spent.get(budget)
        if before is not None and before + amount > allowed[budget]:
            return False
    return True


def eviction_turns(
    pods: Sequence[int], budget_of: Mapping[int, int], allowed: Sequence[int]
) -> tuple[Sequence[int], Sequence[int]]:
    """Returns (pods in order of their turns, the turn of each). No turn has more pods of a budget than the budget
    allows."""
    budgets = [budget for pod in pods if (budget := budget_of.get(pod)) is not None]
    if len(set(budgets)) == len(budgets):
        return pods, [0] * len(pods)
    counts: Counter[int] = Counter()
    pods_with_turns = []
    for pod in pods:
        budget = budget_of.get(pod)
        turn = 0
        if budget is not None:
            turn = counts[budget] // allowed[budget]
            counts[budget] += 1
        pods_with_turns.append((pod, turn))
    pods_with_turns.sort(key=lambda item: item[1])
    return [pod for pod, _ in pods_with_turns], [turn for _, turn in pods_with_turns]


MAX_FIRST_NODES = 24
"""The maximum number of nodes that are tried as the first one of the plan."""
MAX_NODES_TO_REORDER = 100
"""A plan with more nodes than this is not reordered, because its first wave is full enough without that."""
EARLY_FRACTION = 10
"""The early part of a plan has one in this many of its evictions (the first tenth)."""


def choose_first_node(
    nodes: Sequence[int], needs: Mapping[int, Needs], allowed: Sequence[int], value: Mapping[int, tuple[int, int]]
) -> list[int]:
    """Returns the nodes with a better first node, if another one saves more in the early part of the plan; otherwise in
    the given order.

    The node that is best by itself is not always the best first one, because its budgets may keep the next nodes out of
    the first wave. `value` is node → (evictions, savings).
    """
    if len(nodes) > MAX_NODES_TO_REORDER:
        return list(nodes)
    early = sum(value[node][0] for node in nodes) // EARLY_FRACTION + 1
    costs = {node: {b: min(count, allowed[b]) for b, count in needs[node].items()} for node in nodes}
    best, best_savings = list(nodes), _early_savings(nodes, costs, allowed, value, early)
    for heads in _possible_heads(nodes[:MAX_FIRST_NODES]):
        order = [*heads, *(node for node in nodes if node not in heads)]
        savings = _early_savings(order, costs, allowed, value, early)
        if savings > best_savings:
            best, best_savings = order, savings
    return best


def defer_dear_nodes(
    nodes: Sequence[int], chosen: Sequence[int], dear: Container[int], by_cost: Sequence[int]
) -> list[int]:
    """Returns the nodes by their costs, after those that `choose_first_node` put in front.

    nodes: the nodes in the order without costs. chosen: that order with a better beginning. dear: the nodes whose pods
    state costs. by_cost: the nodes in the order with costs. A dear node is not put in front, and the beginning does not
    depend on costs: so a higher cost never moves its node forward, nor the wave in which it is drained.
    """
    count = next(k for k in range(len(nodes) + 1) if [n for n in nodes if n not in chosen[:k]] == list(chosen[k:]))
    heads = [node for node in chosen[:count] if node not in dear]
    return [*heads, *(node for node in by_cost if node not in heads)]


def _possible_heads(nodes: Sequence[int]) -> list[tuple[int, ...]]:
    return [(n,) for n in nodes] + [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]


def _early_savings(
    order: Sequence[int],
    costs: Mapping[int, Needs],
    allowed: Sequence[int],
    value: Mapping[int, tuple[int, int]],
    early: int,
) -> int:
    """Returns what the first wave saves within its first `early` evictions.

    `costs`: node → budget → evictions that the node needs. `allowed`: the evictions that each budget allows. `value`:
    node → (evictions, savings)."""
    spent: dict[int, int] = {}
    total = 0
    for node in order:
        if not _is_within_budgets(spent, costs[node], allowed):
            continue
        early -= value[node][0]
        if early < 0:
            break
        total += value[node][1]
        for budget, amount in costs[node].items():
            spent[budget] = spent.get(budget, 0) + amount
    return total


def replay_drain(capacity: FreeCapacity, node: int, pods: Sequence[int], dest: Mapping[int, int]) -> bool:
    """Makes all moves of one node's drain in `capacity`, and returns whether they were made. If one of them is not
    possible, none is made. `dest` is pod → target node."""
    kind_of, next_of = capacity.world.class_of, capacity.world.successor_class_of
    capacity.cordon_node(node)
    for position, pod in enumerate(pods):
        groups, pod_class, target = kind_of[pod].member_groups, next_of[pod], dest[pod]
        if groups:
            capacity.uncount_pod(groups, node)
        if not fits_on_node(capacity, pod_class, target):
            capacity.count_pod(groups, node)
            undo_replay(capacity, node, pods[:position], dest)
            return False
        capacity.add_pod(pod_class, target)
    return True


def undo_replay(capacity: FreeCapacity, node: int, pods: Iterable[int], dest: Mapping[int, int]) -> None:
    """Undoes `replay_drain`."""
    for pod in reversed(list(pods)):
        capacity.remove_pod(capacity.world.successor_class_of[pod], dest[pod])
        capacity.count_pod(capacity.world.class_of[pod].member_groups, node)
    capacity.uncordon_node(node)
