"""The costs that pods state for their evictions, summed over the nodes that they would leave."""

from collections.abc import Iterable, Mapping, Sequence

from trimtab.cluster.disruption_terms import read_terms
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool


def sum_costs(
    moving: Iterable[int], pods: Sequence[PodInfo], node_of: Sequence[int], pool_of: Mapping[int, Pool]
) -> dict[int, int]:
    """Returns node → the sum of the costs that its moving pods state, at most the ceiling of its pool; nodes without
    any are left out. `moving`: numbers in `pods`; `node_of`: pod → node."""
    costs: dict[int, int] = {}
    for number in moving:
        if not pods[number].annotations:
            continue
        node = node_of[number]
        pool = pool_of[node]
        ceiling = pool.max_term_cost
        if cost := min(ceiling, costs.get(node, 0) + read_terms(pods[number].annotations).capped_cost(ceiling)):
            costs[node] = cost
    return costs
