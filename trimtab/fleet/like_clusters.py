"""Groups of similar clusters, and the machine type for each group.

Clusters are similar if they are in the same region, run on the same architectures, and request about the same memory
per core (the ratios differ by less than a factor of about 1.4). One node configuration then suits all of them, and they
can share a commitment to one machine type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import floor, log2

from trimtab.fleet.cluster_digest import ClusterDigest, add_workloads
from trimtab.sizing.ranking.capacity import Candidate
from trimtab.sizing.ranking.rank_types import Ranking, RankingRules, rank_types
from trimtab.sizing.ranking.workload import PoolWorkload

STEPS_PER_OCTAVE = 2


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """A group of similar clusters."""

    region: str
    """The region of the clusters; empty if their nodes name none or several."""
    architectures: tuple[str, ...]
    clusters: tuple[str, ...]
    workload: PoolWorkload
    nodes: int
    cost: int
    """The price of their nodes in micro-dollars a month."""


def group_clusters(digests: Iterable[ClusterDigest]) -> list[ClusterGroup]:
    """Returns the groups, the most expensive first. Clusters whose pods request nothing are in no group."""
    groups: dict[tuple[str, tuple[str, ...], int], list[ClusterDigest]] = {}
    for digest in sorted(digests, key=lambda one: one.cluster):
        if digest.workload is None:
            continue
        region = digest.regions[0] if len(digest.regions) == 1 else ""
        step = floor(log2(digest.workload.gib_per_core) * STEPS_PER_OCTAVE + 0.5)
        groups.setdefault((region, tuple(digest.architectures), step), []).append(digest)
    cluster_groups = [
        _build_group(region, architectures, members) for (region, architectures, _), members in groups.items()
    ]
    return sorted(cluster_groups, key=lambda one: (-one.cost, one.clusters))


def _build_group(region: str, architectures: tuple[str, ...], members: Sequence[ClusterDigest]) -> ClusterGroup:
    workload = add_workloads((one.workload, one.nodes) for one in members if one.workload is not None)
    return ClusterGroup(
        region,
        architectures,
        tuple(one.cluster for one in members),
        workload,
        sum(one.nodes for one in members),
        sum(one.cost for one in members),
    )


def rank_for_group(group: ClusterGroup, list_candidates: Callable[[ClusterGroup], Sequence[Candidate]]) -> Ranking:
    """Returns the machine types for a group, best first. `list_candidates` returns the types that have a price in the
    group's region."""
    return rank_types(group.workload, list_candidates(group), RankingRules())
