"""Calculates how much of a workload is held by nodes that are paid for whether they run or not, and for which part
other nodes must be bought.

Reserved instances and committed use do not lower the price of a type: nodes up to the commitment cost nothing more, and
nodes beyond it cost the list price. So the committed nodes are filled first, in proportion to the workload like nodes
of every other type, and types are ranked for the rest. In this way it never looks cheap to leave committed nodes
unused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, fsum

from trimtab.sizing.ranking.capacity import Candidate, CapacityRules, NodeCapacity, measure_capacity
from trimtab.sizing.ranking.workload import PoolWorkload

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedNodes:
    """The committed nodes of one type, and how much of the workload they hold."""

    candidate: Candidate
    capacity: NodeCapacity
    count: int
    """The number of committed nodes that the workload fills; the last of them only partly."""
    unused: int
    """The number of committed nodes that the workload does not need."""
    share: float
    """The share of the workload that these committed nodes hold, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentCover:
    """The committed nodes, and the rest of the workload."""

    nodes: tuple[CommittedNodes, ...] = ()
    rest: PoolWorkload | None = None
    """The part of the workload for which nodes must be bought. None if there are no commitments, or if the committed
    nodes hold the whole workload."""

    @property
    def share(self) -> float:
        """The share of the workload that committed nodes hold."""
        return fsum(one.share for one in self.nodes)


def cover_by_commitments(
    workload: PoolWorkload, candidates: Iterable[Candidate], commitments: Mapping[str, int], rules: CapacityRules
) -> CommitmentCover:
    """Returns which part of the workload the committed nodes hold.

    `commitments`: type → number of nodes; a type that is not a candidate holds nothing. The nodes of the type that
    holds most of the workload for its price are filled first, so that the most expensive nodes stay unused.
    """
    offered = {candidate.name: candidate for candidate in candidates}
    measured = [
        (offered[name], measure_capacity(workload, offered[name], rules), count)
        for name, count in commitments.items()
        if name in offered
    ]
    useful = sorted(
        ((candidate, capacity, count) for candidate, capacity, count in measured if capacity.usable_gib > 0 and count),
        key=lambda one: (-one[1].usable_gib / max(1, one[0].price), one[0].name),
    )
    left, nodes = 1.0, []
    for candidate, capacity, count in useful:
        share_of_node = capacity.usable_gib / workload.gib
        filled = min(count, max(0, ceil(left / share_of_node - _ROUNDING)))
        share = min(left, filled * share_of_node)
        left -= share
        nodes.append(
            CommittedNodes(candidate=candidate, capacity=capacity, count=filled, unused=count - filled, share=share)
        )
    if left <= _ROUNDING:
        return CommitmentCover(nodes=tuple(nodes), rest=None)
    used_cores = None if workload.used_cores is None else workload.used_cores * left
    rest = replace(
        workload,
        cores=workload.cores * left,
        gib=workload.gib * left,
        pods=workload.pods * left,
        volumes=workload.volumes * left,
        used_cores=used_cores,
    )
    return CommitmentCover(nodes=tuple(nodes), rest=rest)
