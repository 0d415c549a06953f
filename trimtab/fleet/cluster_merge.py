"""Finds clusters to merge: compares what the nodes and the control plane of one cluster cost with what its pods would
need in another.

A cluster can be merged into another one if all of these hold: both name the same region; the other cluster has nodes of
every architecture of the first; every label that a pod requires of its node is on a node of the other cluster; and each
pod fits on an empty node there. Its pods are placed by size on what the other cluster's nodes have left, and on new
nodes of that cluster's most frequent machine type. This is a first estimate, by cpu, memory and pod slots: volumes,
ingresses, secrets and permissions do not move by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.fleet.cluster_digest import ClusterDigest, FreeNode, PodSize
from trimtab.fleet.money_report import MICRO_DOLLARS

CONTROL_PLANE_COST = 73 * MICRO_DOLLARS
"""The price of a managed control plane in micro-dollars a month: ten cents an hour, the list price of EKS, GKE and AKS
(2026)."""
HEADROOM_PERCENT = 10
"""The percentage of a node's remaining capacity that is kept free."""
MAX_RECEIVERS = 20
"""The maximum number of clusters that are tried as the target of one cluster, those with the most room first."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """The limits and prices by which merges are judged."""

    control_plane_cost: int = CONTROL_PLANE_COST
    headroom_percent: int = HEADROOM_PERCENT


@dataclass(frozen=True, slots=True)
class ClusterMerge:
    """One cluster whose pods could run in another."""

    source: str
    target: str
    saved: int
    """The saving in micro-dollars a month: the nodes and the control plane of the source, minus the new nodes of the
    target."""
    nodes_removed: int
    nodes_added: int
    pods: int
    volumes: int
    """The number of volumes that someone has to move."""
    shared_namespaces: tuple[str, ...]
    """The namespaces that exist in both clusters."""


@dataclass(slots=True)
class _Room:
    """A cluster with what its nodes have left, which shrinks as merges use it."""

    digest: ClusterDigest
    nodes: list[FreeNode]
    namespaces: set[str] = field(default_factory=set)


def find_merges(digests: Iterable[ClusterDigest], rules: MergeRules | None = None) -> list[ClusterMerge]:
    """Returns the merges that save money, the largest saving first. No cluster is both a source and a target."""
    rules = rules or MergeRules()
    rooms = {
        one.cluster: _Room(one, _keep_headroom(one.free_nodes, rules), set(one.namespaces))
        for one in sorted(digests, key=lambda one: one.cluster)
    }
    targets: set[str] = set()
    merges: list[ClusterMerge] = []
    # The cheapest clusters are merged first: theirs is the least work for a control plane.
    for source in sorted(rooms.values(), key=lambda room: (room.digest.cost, room.digest.cluster)):
        if source.digest.cluster in targets or not source.digest.cost:
            continue
        merged = {merge.source for merge in merges}
        best = _best_target(source, [room for name, room in rooms.items() if name not in merged], rules)
        if best is not None:
            merge, nodes = best
            rooms[merge.target].nodes = nodes
            rooms[merge.target].namespaces |= set(source.digest.namespaces)
            targets.add(merge.target)
            merges.append(merge)
    return sorted(merges, key=lambda one: (-one.saved, one.source))


def _keep_headroom(nodes: Iterable[FreeNode], rules: MergeRules) -> list[FreeNode]:
    share = 100 - rules.headroom_percent
    return [FreeNode(one.millicores * share // 100, one.mebibytes * share // 100, one.pods) for one in nodes]


def _best_target(
    source: _Room, rooms: Sequence[_Room], rules: MergeRules
) -> tuple[ClusterMerge, list[FreeNode]] | None:
    others = [room for room in rooms if room is not source and _is_possible(source.digest, room.digest)]
    others.sort(key=lambda room: (-sum(node.millicores for node in room.nodes), room.digest.cluster))
    merges = [one for room in others[:MAX_RECEIVERS] if (one := _try_merge(source, room, rules)) is not None]
    return max(merges, key=lambda one: (one[0].saved, -one[0].nodes_added), default=None)


def _is_possible(source: ClusterDigest, target: ClusterDigest) -> bool:
    """Returns whether labels, architectures and regions allow the merge, and whether the nodes of the target cost more
    than those of the source."""
    return (
        len(source.regions) == 1
        and source.regions == target.regions
        and set(source.architectures) <= set(target.architectures)
        and set(source.node_selectors) <= set(target.node_labels)
        and (target.cost, target.cluster) > (source.cost, source.cluster)
    )


def _try_merge(room: _Room, target: _Room, rules: MergeRules) -> tuple[ClusterMerge, list[FreeNode]] | None:
    placed = place_sizes(room.digest.pod_sizes, target.nodes, target.digest.typical_node)
    if placed is None:
        return None
    nodes, added = placed
    saved = room.digest.cost + rules.control_plane_cost - added * target.digest.typical_cost
    if saved <= 0 or (added and not target.digest.typical_cost):
        return None
    shared = tuple(sorted(target.namespaces & set(room.digest.namespaces)))
    return ClusterMerge(
        room.digest.cluster,
        target.digest.cluster,
        saved,
        room.digest.nodes,
        added,
        sum(size.count for size in room.digest.pod_sizes),
        room.digest.volumes,
        shared,
    ), nodes


def place_sizes(
    sizes: Iterable[PodSize], nodes: Sequence[FreeNode], new_node: FreeNode | None
) -> tuple[list[FreeNode], int] | None:
    """Places pods, the largest first, each on the first node that has room. Returns what the nodes have left, and the
    number of new nodes; None if a pod fits on no node."""
    left, added = list(nodes), 0
    for size in sorted(sizes, reverse=True):
        waiting = size.count
        for place, node in enumerate(left):
            if not waiting:
                break
            waiting -= (placed := min(waiting, _count_fitting(size, node)))
            if placed:
                left[place] = _take(node, size, placed)
        while waiting:
            if new_node is None or not (fitting := _count_fitting(size, new_node)):
                return None
            placed = min(waiting, fitting)
            left.append(_take(new_node, size, placed))
            added, waiting = added + 1, waiting - placed
    return left, added


def _count_fitting(size: PodSize, node: FreeNode) -> int:
    limits = [node.pods]
    if size.millicores:
        limits.append(node.millicores // size.millicores)
    if size.mebibytes:
        limits.append(node.mebibytes // size.mebibytes)
    return min(limits)


def _take(node: FreeNode, size: PodSize, count: int) -> FreeNode:
    return FreeNode(
        node.millicores - size.millicores * count, node.mebibytes - size.mebibytes * count, node.pods - count
    )
