"""Searches in two orders, chooses the better result, and improves it by local search.

- Ordered by evictions alone, the search moves the fewest pods for what it saves. If capacity is the limit, it is better
  to drain nodes that remove little usable capacity: more nodes can then be drained, with more evictions. The larger
  result is chosen only if each further eviction still saves a fair part of what the others save.
- Local search drains one more node, or swaps one node for another. Every step is undone exactly if it saves nothing.
  The work is bounded by `Search.effort`, a number and not a time, so that equal input gives an equal plan on any
  machine.

When the set of drained nodes is final, the targets of the moved pods are improved by preference
(`improve_preferences`). Each moved pod gets the target with the best preference score (preferred affinities, spreads
with ScheduleAnyway); among equals, the node with the fewest replicas of its workload; then the zone with the fewest.
The drained nodes and the number of moves stay the same. Only nodes of the same pool that already receive pods are
considered, so every check of the plan still holds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop
from itertools import chain, compress

from trimtab.compaction.search.dear_nodes import exchange_dear_nodes, exchange_nodes
from trimtab.compaction.search.drain_order import by_evictions, by_evictions_and_capacity
from trimtab.compaction.search.drain_search import DRAINED, OPEN, MoveLog, Search
from trimtab.compaction.search.problem import CompactionProblem
from trimtab.scheduling.placement import BestFitIndex, PlacementRequest
from trimtab.scheduling.pod_class import PlacementPreference, PodClass
from trimtab.scheduling.preferences import preference_score
from trimtab.scheduling.topology import TopologyGroup

MAX_COST_RATIO = 4
"""How costly an exchange may be: at most this many times the evictions per saved price that the plan has on average."""

MAX_SWAP_OUT, MAX_SWAP_IN = 100, 200
"""The maximum number of nodes that are examined for swaps: the last ones of the nodes that are drained, and the first
ones of those that stay."""


def improve_search(search: Search, prices: Sequence[int]) -> None:
    """Adds and swaps nodes until no further step saves anything or the effort is used up."""
    can_repack = True
    while search.effort > 0:
        has_added, free_capacity = False, _free_capacity(search)
        for node in _receivers(search):
            if search.effort <= 0:
                break
            removed = search.capacity_removed(node)
            if removed > free_capacity:
                continue
            log: MoveLog = []
            if search.drain_receiver(node, log):
                free_capacity -= removed
                has_added = True
        if has_added or _swap_nodes(search, prices):
            can_repack = True
        elif can_repack and search.repack_pods():
            can_repack = False
        else:
            break


def _free_capacity(search: Search) -> int:
    """Returns the free capacity of the open nodes, in the scarcer of cpu and memory."""
    return sum(max(0, search.capacity.major[n]) for n in range(len(search.state)) if search.index.open_nodes[n])


def _receivers(search: Search) -> list[int]:
    return [node for node in search.order if search.state[node] == OPEN and not search.closed_nodes[node]]


def _swap_nodes(search: Search, prices: Sequence[int]) -> bool:
    """Makes the first exchange of two nodes that saves something; those that save most per pod are tried first. Returns
    whether there was one."""
    if search.effort <= 0:
        return False
    for out, into in _exchanges(search, prices):
        if search.effort <= 0:
            return False
        if exchange_nodes(search, out, into):
            return True
    return False


def _exchanges(search: Search, prices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields (drained node that would stay, node that would be drained instead), the most promising pairs first."""
    free_capacity = _free_capacity(search)
    moved, saved = len(search.targets), sum(prices[n] for n in search.drained_nodes)
    exchanges, loads = [], search.pods_to_move
    receivers = [(n, search.capacity_removed(n), prices[n], len(loads[n])) for n in _receivers(search)[:MAX_SWAP_IN]]
    for out in [n for n in search.order if search.state[n] == DRAINED][-MAX_SWAP_OUT:]:
        available, price, load = free_capacity + search.capacity_removed(out), prices[out], len(loads[out])
        for into, removed, other_price, other_load in receivers:
            if removed > available:
                continue
            gain, more_moves = other_price - price, other_load - load
            if (gain > 0 and more_moves * saved <= MAX_COST_RATIO * gain * moved) or (gain == 0 and more_moves < 0):
                exchanges.append(
                    (
                        -gain if more_moves <= 0 else more_moves * saved // gain - MAX_COST_RATIO * moved,
                        -gain,
                        out,
                        into,
                    )
                )
    # A heap and not a sort: the first exchange that works ends the loop, and most of the pairs are never read.
    heapify(exchanges)
    while exchanges:
        _, _, out, into = heappop(exchanges)
        yield out, into


CAPACITY_WEIGHT = 4
"""The weight of the capacity that a drain removes, relative to its evictions; see
docs/explanation/the-drain.md#which-node-goes-first."""


def search_drains(problem: CompactionProblem, effort: int) -> Search:
    """Returns the better of two searches in different orders, improved by local search."""
    surcharge = problem.extra_moves
    by_evictions_order = by_evictions(problem.candidates, problem.pods_to_move, problem.savings, surcharge)
    by_capacity_order = by_evictions_and_capacity(
        problem.candidates,
        problem.pods_to_move,
        problem.savings,
        _capacity_removed(problem),
        CAPACITY_WEIGHT,
        surcharge,
    )

    before = problem.capacity.save_state() if by_capacity_order != by_evictions_order else None
    search = _run_first_pass(problem, by_evictions_order)
    if before is not None:
        # Both searches write into the same capacity and limits, so the first is suspended while the second runs.
        after = search.suspend_search(before)
        larger = _run_first_pass(problem, by_capacity_order)
        (saved, moved), (more_saved, more_moved) = (
            _savings_and_moves(problem, search),
            _savings_and_moves(problem, larger),
        )
        if more_saved <= saved or (more_moved - moved) * saved > MAX_COST_RATIO * (more_saved - saved) * max(1, moved):
            larger.suspend_search(before)
            search.resume_search(after)
        else:
            search = larger
    search.effort = effort
    improve_search(search, [problem.savings.get(n, 0) for n in range(len(problem.model.nodes))])
    if problem.term_costs:
        exchange_dear_nodes(problem, search)
    improve_preferences(problem, search)
    return search


def search_once(problem: CompactionProblem) -> Search:
    """Returns the result of one pass over the closely examined candidates, in order of evictions; other nodes only
    receive pods."""
    search = _run_first_pass(
        problem, by_evictions(problem.candidates, problem.pods_to_move, problem.savings, problem.extra_moves)
    )
    if problem.term_costs:
        exchange_dear_nodes(problem, search)
    improve_preferences(problem, search)
    return search


def _run_first_pass(problem: CompactionProblem, order: Sequence[int]) -> Search:
    allowances = [None if limits is None or limits.keeps_no_headroom else limits.allowance for limits in problem.limits]
    index = BestFitIndex(problem.placement_requests, allowances)
    search = Search(
        problem.capacity,
        [*order, *problem.unexamined],
        problem.pods_to_move,
        problem.requests,
        index,
        problem.limits,
        0,
    )
    for node in set(range(len(problem.model.nodes))) - set(search.order):
        if not problem.capacity.closed_nodes[node]:
            index.open_node(node)
    search.run_first_pass(len(order))
    return search


def _savings_and_moves(problem: CompactionProblem, search: Search) -> tuple[int, int]:
    return sum(problem.savings[n] for n in search.drained_nodes), len(search.targets)


def _capacity_removed(problem: CompactionProblem) -> dict[int, int]:
    """Returns node → the capacity that its drain removes: what its pods need on other nodes, and its own free capacity
    as far as it is usable.

    Free cores without free memory are not usable, so the free capacity counts only as much as the scarcer of the two
    allows.
    """
    world, moving = problem.model, problem.moving_amounts
    major = sum([moving[n][0] for n in problem.candidates])
    minor = max(1, sum([moving[n][1] for n in problem.candidates]))
    return {n: moving[n][0] + max(0, min(world.major[n], world.minor[n] * major // minor)) for n in problem.candidates}


Rank = tuple[int, int, int]
"""(preference score, minus replicas on the node, minus replicas in the zone). A larger rank is better."""
MAX_CHECKS = 20_000
"""The maximum number of nodes that are examined for all pods together. It is a number and not a time, so that equal
input gives an equal plan."""
MAX_TARGETS_PLAIN, MAX_TARGETS_PREFERRING = 6, 200
"""The maximum number of nodes that are examined for one pod: without preferences, and with preferences."""


def improve_preferences(problem: CompactionProblem, search: Search) -> None:
    """Moves pods of the plan to targets that they prefer, where there are any."""
    if search.targets:
        _PreferenceOptimizer(problem, search).improve_targets()


@dataclass(slots=True, eq=False)
class _PreferenceOptimizer:
    problem: CompactionProblem
    search: Search
    checks_left: int = MAX_CHECKS
    workload: list[int] = field(init=False)
    """Pod → the number of its workload."""
    zone: list[int] = field(init=False)
    """Node → the number of its zone."""
    pods_on_node: Counter[int] = field(init=False)
    """(workload * number of nodes + node) → pods of the workload on the node after the plan. Only for workloads with
    pods that move."""
    pods_in_zone: Counter[int] = field(init=False)
    """(workload * number of zones + zone) → pods of the workload in the zone after the plan."""
    soft_groups: dict[int, TopologyGroup] = field(init=False)
    """The groups to which preferences refer."""
    counts: list[dict[int, int]] = field(init=False)
    """Group → domain → pods after the plan. It is correct only for `soft_groups`."""
    _zones_of: dict[int, list[int]] = field(default_factory=dict)
    """The number of a set of nodes (`PlacementRequest.node_set`) → the zones of the open nodes in the set."""

    def __post_init__(self) -> None:
        model, numbers, dest = self.problem.model, dict[str, int](), self.search.targets
        self.zone = [numbers.setdefault(node.zone, len(numbers)) for node in model.nodes]
        self.workload = [pod_class.workload for pod_class in model.class_of]
        places = list(model.node_of)
        for pod, place in dest.items():
            places[pod] = place
        # Workload and node are packed into one integer key: a Counter of integers is several times faster than one of
        # pairs.
        size, zone, moved_workloads = len(model.nodes), self.zone, {self.workload[pod] for pod in dest}
        workloads_and_places = zip(self.workload, places, strict=True)
        keys = [number * size + place for number, place in workloads_and_places if number in moved_workloads]
        self.pods_on_node = Counter(keys)
        self.pods_in_zone = Counter([key - key % size + zone[key % size] for key in keys])
        self._recount()

    def _recount(self) -> None:
        """Computes the group counts anew, because the search still counts moved pods on the nodes that they leave."""
        model = self.problem.model
        self.soft_groups = {group.number: group for group in model.groups if group.is_preference_only}
        self.counts = self.problem.capacity.group_counts[:]
        for number in self.soft_groups:
            self.counts[number] = self.counts[number].copy()
        for pod in self.search.targets if self.soft_groups else ():
            self._count_groups(model.class_of[pod], model.node_of[pod], -1)

    def _count_groups(self, pod_class: PodClass, node: int, sign: int) -> None:
        for group in [self.soft_groups[number] for number in pod_class.member_groups if number in self.soft_groups]:
            domain = group.domain_of[node]
            if domain >= 0:
                counts = self.counts[group.number]
                counts[domain] = counts.get(domain, 0) + sign

    def improve_targets(self) -> None:
        """Improves the targets of moved pods until `MAX_CHECKS` is reached.

        First come pods with preferences, and pods that share a node with other pods of their workload. Then come pods
        in zones with too many pods of their workload."""
        errands, moved_pods = self.search.requests, sorted(self.search.targets)
        for is_improvable in (self._is_improvable, self._is_zone_crowded):
            for pod in moved_pods:
                request = errands[pod]
                if request is not None and is_improvable(pod, request):
                    if self.checks_left <= 0:
                        return
                    if request.pod_class.preference is None and not self.soft_groups:
                        self._improve_by_replicas(pod, request)
                    else:
                        self._improve_by_rank(pod, request)

    def _is_improvable(self, pod: int, request: PlacementRequest) -> bool:
        """Returns whether the pod has preferences, or another pod of its workload is on its target."""
        if request.pod_class.preference is not None:
            return True
        return self.pods_on_node[self.workload[pod] * len(self.zone) + self.search.targets[pod]] > 1

    def _is_zone_crowded(self, pod: int, request: PlacementRequest) -> bool:
        """Returns whether the pod's zone has more pods of its workload than another zone in which the pod could be."""
        pods_in_zone, zone_of = self.pods_in_zone, self.zone
        base = self.workload[pod] * len(zone_of)
        own_count = pods_in_zone[base + zone_of[self.search.targets[pod]]]
        if own_count < 2:
            return False
        zones = self._zones_of.get(request.node_set) or self._zones_of_request(request)
        if len(zones) < 2:
            return False
        for zone in zones:  # noqa: SIM110  `any` takes twice as long, and every moved pod is asked
            if own_count > 1 + pods_in_zone.get(base + zone, 0):
                return True
        return False

    def _zones_of_request(self, request: PlacementRequest) -> list[int]:
        zones = self._zones_of.get(request.node_set)
        if zones is None:
            is_open = self.search.index.open_nodes
            zones = list({self.zone[n] for n in compress(range(len(is_open)), request.nodes) if is_open[n]})
            self._zones_of[request.node_set] = zones
        return zones

    def _improve_by_rank(self, pod: int, request: PlacementRequest) -> None:
        place, preference, base = (
            self.search.targets[pod],
            request.pod_class.preference,
            self.workload[pod] * len(self.zone),
        )
        self._count_workload(pod, place, -1)
        best, best_rank = place, self._rank(base, preference, place)
        for node in self._other_targets(request, place):
            rank = self._rank(base, preference, node)
            if rank > best_rank:
                best, best_rank = node, rank
                if preference is None and not rank[1] and len(self._zones_of_request(request)) == 1:
                    break
        if best == place or not self._try_move(pod, request, best):
            best = place
        self._count_workload(pod, best, 1)

    def _improve_by_replicas(self, pod: int, request: PlacementRequest) -> None:
        """Improves the target of a pod without preferences: the node with the fewest pods of its workload, then the
        zone with the fewest."""
        search, pods_on_node, pods_in_zone, zone = self.search, self.pods_on_node, self.pods_in_zone, self.zone
        place, base = search.targets[pod], self.workload[pod] * len(zone)
        pool, best = search.limits[place], place
        # The pod itself does not count on its present node.
        least_on_node, least_in_zone = pods_on_node[base + place] - 1, pods_in_zone[base + zone[place]] - 1
        has_one_zone, own_zone_key = len(self._zones_of_request(request)) == 1, base + zone[place]
        for node in search.index.find_alternatives(request, MAX_TARGETS_PLAIN):
            self.checks_left -= 1
            if node == place or search.limits[node] is not pool:
                continue
            on_node = pods_on_node.get(base + node, 0)
            if on_node > least_on_node:
                continue
            zone_key = base + zone[node]
            in_zone = pods_in_zone.get(zone_key, 0) - (zone_key == own_zone_key)
            if on_node < least_on_node or in_zone < least_in_zone:
                best, least_on_node, least_in_zone = node, on_node, in_zone
                if has_one_zone and not on_node:
                    break
        if best != place and self._try_move(pod, request, best):
            self._count_workload(pod, place, -1)
            self._count_workload(pod, best, 1)

    def _rank(self, base: int, preference: PlacementPreference | None, node: int) -> Rank:
        score = preference_score(preference, self.counts, node) if preference is not None else 0
        return score, -self.pods_on_node.get(base + node, 0), -self.pods_in_zone.get(base + self.zone[node], 0)

    def _other_targets(self, request: PlacementRequest, place: int) -> Iterator[int]:
        """Yields other targets on which the pod could be placed. If it has preferences, those with the best scores come
        first."""
        search, pool, preference = self.search, self.search.limits[place], request.pod_class.preference
        preferred: Iterable[int] = ()
        if preference is not None and preference.node_scores:
            preferred = self._preferred_targets(preference.node_scores, preference.node_scores[place], request)
        for node in chain(
            preferred,
            search.index.find_alternatives(
                request, MAX_TARGETS_PREFERRING if preference is not None else MAX_TARGETS_PLAIN
            ),
        ):
            self.checks_left -= 1
            if node != place and search.limits[node] is pool:
                yield node

    def _preferred_targets(self, scores: tuple[int, ...], least_score: int, request: PlacementRequest) -> list[int]:
        index = self.search.index
        nodes_by_score = [
            n
            for n, is_allowed in enumerate(request.nodes)
            if is_allowed and index.open_nodes[n] and scores[n] > least_score
        ]
        nodes_by_score.sort(key=lambda n: -scores[n])
        self.checks_left -= min(len(nodes_by_score), MAX_TARGETS_PREFERRING)
        return [n for n in nodes_by_score[:MAX_TARGETS_PREFERRING] if index.fits_on_node(request, n)]

    def _count_workload(self, pod: int, node: int, sign: int) -> None:
        base = self.workload[pod] * len(self.zone)
        self.pods_on_node[base + node] += sign
        self.pods_in_zone[base + self.zone[node]] += sign
        if self.soft_groups:
            self._count_groups(self.problem.model.successor_class_of[pod], node, sign)

    def _try_move(self, pod: int, request: PlacementRequest, node: int) -> bool:
        """Moves the pod to the node, unless less than the pool's headroom would then be free. Returns whether the pod
        was moved."""
        log: MoveLog = []
        self.search.move_pod(pod, request, node, log)
        limits = self.search.limits[node]
        if limits is not None and limits.shortage_reason() is not None:
            self.search.undo_moves(log)
            return False
        return True
