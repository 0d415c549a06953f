"""Simulates the drain of one node: finds nodes for all its pods together.

Its pods are placed one after the other, the largest first, as kube-scheduler would place them. Every placement is
undone, so the capacity is the same before and afterwards.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Reason
from trimtab.scheduling.cluster_model import FreeCapacity
from trimtab.scheduling.filters import fits_on_node, rejection_reason
from trimtab.scheduling.pod_class import PodClass
from trimtab.scheduling.preferences import preference_score
from trimtab.scheduling.reasons import NO_ROOM


@dataclass(frozen=True, slots=True)
class DrainPlacement:
    """Where each pod of a drained node goes: (pod number, node number), in the order in which the pods would move."""

    moves: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class NoPlacement:
    """The pod that fits on no node after the larger pods of its node were placed, so that the node cannot be
    drained."""

    pod: int
    reason: Reason


ChooseNode = Callable[[FreeCapacity, PodClass, Iterable[int]], int]
"""A function that returns, among these nodes, the one for a pod of this class; -1 if the pod fits on none."""


def drain_with_preferences(
    capacity: FreeCapacity, node: int, pods: Sequence[int], allowed: Iterable[int]
) -> DrainPlacement | NoPlacement:
    """Returns the same as `drain_exactly`, but with each pod on the node that it prefers. If the pods do not all fit
    that way, they are placed by best fit."""
    allowed = list(allowed)
    placement = drain_exactly(capacity, node, pods, allowed, _choose_preferred)
    return placement if isinstance(placement, DrainPlacement) else drain_exactly(capacity, node, pods, allowed)


def drain_exactly(
    capacity: FreeCapacity,
    node: int,
    pods: Sequence[int],
    allowed: Iterable[int] | None = None,
    choose: ChooseNode | None = None,
) -> DrainPlacement | NoPlacement:
    """Returns nodes for the pods, placed as kube-scheduler would place them: one pod is evicted and placed, then the
    next. The largest pods come first. The capacity is restored afterwards.

    `allowed`: the nodes that may receive pods; None means all. `choose`: chooses among the nodes that fit; by default
    the one with the least free capacity."""
    model, choose = capacity.world, choose or _choose_tightest
    places = list(range(len(model.nodes)) if allowed is None else allowed)
    was_cordoned, was_draining = capacity.closed_nodes[node], node in capacity.draining_nodes
    capacity.cordon_node(node)
    placements: list[tuple[int, int]] = []
    failure: DrainPlacement | NoPlacement | None = None
    for pod in sorted(pods, key=lambda p: (-model.successor_class_of[p].major, -model.successor_class_of[p].minor, p)):
        # Only the counts: the node receives no pods any more, so what becomes free on it does not matter.
        capacity.uncount_pod(model.class_of[pod].member_groups, node)
        pod_class = model.successor_class_of[pod]
        place = choose(capacity, pod_class, places)
        if place < 0:
            # The drained node is no answer to the question why the other nodes do not take the pod.
            others = [other for other in places if other != node]
            failure = NoPlacement(pod, no_node_reason(capacity, pod_class, others, model.pods[pod].key))
            capacity.count_pod(model.class_of[pod].member_groups, node)
            break
        capacity.add_pod(pod_class, place)
        placements.append((pod, place))
    for pod, place in reversed(placements):
        capacity.remove_pod(model.successor_class_of[pod], place)
        capacity.count_pod(model.class_of[pod].member_groups, node)
    capacity.closed_nodes[node] = was_cordoned
    if not was_draining:
        capacity.draining_nodes.discard(node)
    return failure if failure is not None else DrainPlacement(tuple(placements))


def _choose_tightest(capacity: FreeCapacity, pod_class: PodClass, nodes: Iterable[int]) -> int:
    best, free = -1, 1 << 62
    for node in nodes:
        if capacity.major[node] < free and fits_on_node(capacity, pod_class, node):
            best, free = node, capacity.major[node]
    return best


def _choose_preferred(capacity: FreeCapacity, pod_class: PodClass, nodes: Iterable[int]) -> int:
    """Returns the node with the best preference score; among equals, the one with the fewest pods of the same class;
    then the one with the least free capacity."""
    best, rank = -1, (1 << 62, 0, 0)
    for node in nodes:
        if fits_on_node(capacity, pod_class, node):
            score = (
                preference_score(pod_class.preference, capacity.group_counts, node)
                if pod_class.preference is not None
                else 0
            )
            replicas = sum(
                capacity.world.class_of[pod].ask is pod_class.ask for pod in capacity.world.pods_on_node[node]
            )
            best, rank = min(
                (best, rank), (node, (-score, replicas, capacity.major[node])), key=lambda ranked: ranked[1]
            )
    return best


def no_node_reason(capacity: FreeCapacity, pod_class: PodClass, places: Sequence[int], name: str) -> Reason:
    """Returns the reason why the pod fits on none of these nodes: the number of nodes per rejecting constraint, as in
    kube-scheduler's FailedScheduling message."""
    if pod_class.unjudged_reason is not None:
        return pod_class.unjudged_reason
    reasons = [reason for place in places if (reason := rejection_reason(capacity, pod_class, place)) is not None]
    if not reasons:
        return NO_ROOM(f"pod {name} fits on no node, because there is no other node")
    counts = Counter(reason.code.name for reason in reasons)
    by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    first = next(reason for reason in reasons if reason.code.name == by_count[0][0])
    summary = ", ".join(f"{count} {code}" for code, count in by_count)
    return first.code(
        f"pod {name} fits on none of {format_count(len(places), 'node')}: {summary}; for example, {first}"
    )
