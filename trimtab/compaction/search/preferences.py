"""Among places that fit, which one would the pods rather have?

When it is settled which nodes go, moved pods are looked at once more, and given a place that is liked better: first by
what people wrote (preferred affinities, spreads that say ScheduleAnyway), then with fewer replicas of the same
workload on the node, then in the zone. What goes, and how many pods move, stays as it is. Places are other nodes of
the same pool that take pods already, so that all a plan was checked for still holds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, compress

from trimtab.compaction.search.drain_search import Log, Search
from trimtab.compaction.search.problem import CompactionProblem
from trimtab.scheduling.placement_requests import PlacementRequest
from trimtab.scheduling.pod_class import PlacementPreference, PodClass
from trimtab.scheduling.preferences import points
from trimtab.scheduling.topology import TopologyGroup

Rank = tuple[int, int, int]
"""(points of its wish, minus replicas on the node, minus replicas in the zone); more is better."""
LOOKS = 20_000
"""Places looked at for all pods together: a count and not a clock, so that equal input gives an equal plan."""
FEW, MANY = 6, 200
"""Places looked at for one pod, without and with wishes."""


def steer(made: CompactionProblem, search: Search) -> None:
    """Gives moved pods places they like better, where there are."""
    if search.dest:
        _PreferenceOptimizer(made, search).run()


@dataclass(slots=True, eq=False)
class _PreferenceOptimizer:
    made: CompactionProblem
    search: Search
    looks: int = LOOKS
    workload: list[int] = field(init=False)
    """Pod → its workload."""
    zone: list[int] = field(init=False)
    """Node → number of its zone."""
    near: Counter[int] = field(init=False)
    """workload x nodes + node → its pods there, when the plan is done; of workloads that have pods to move."""
    around: Counter[int] = field(init=False)
    """The same with the zone's number."""
    soft: dict[int, TopologyGroup] = field(init=False)
    """The groups that wishes speak of."""
    counts: list[dict[int, int]] = field(init=False)
    """Pods by group and domain when the plan is done; true of these groups."""
    _zones_of: dict[int, list[int]] = field(default_factory=dict)
    """Set of nodes → the zones in it."""

    def __post_init__(self) -> None:
        world, numbers, dest = self.made.world, dict[str, int](), self.search.dest
        self.zone = [numbers.setdefault(node.zone, len(numbers)) for node in world.nodes]
        self.workload = [kind.workload for kind in world.kind_of]
        places = list(world.node_of)
        for pod, place in dest.items():
            places[pod] = place
        size, zone, moved = len(world.nodes), self.zone, {self.workload[pod] for pod in dest}
        both = zip(self.workload, places, strict=True)
        near = [number * size + place for number, place in both if number in moved]
        self.near = Counter(near)
        self.around = Counter([key - key % size + zone[key % size] for key in near])
        self._recount()

    def _recount(self) -> None:
        """The search leaves pods counted where they come from; here they are gone."""
        world = self.made.world
        self.soft = {group.number: group for group in world.groups if group.soft}
        self.counts = self.made.room.counts[:]
        for number in self.soft:
            self.counts[number] = self.counts[number].copy()
        for pod in self.search.dest if self.soft else ():
            self._count(world.kind_of[pod], world.node_of[pod], -1)

    def _count(self, kind: PodClass, node: int, sign: int) -> None:
        for group in [self.soft[number] for number in kind.adds if number in self.soft]:
            domain = group.domain[node]
            if domain >= 0:
                counts = self.counts[group.number]
                counts[domain] = counts.get(domain, 0) + sign

    def run(self) -> None:
        """Wishes and crowded nodes first; crowded zones as far as looks last."""
        errands, moved = self.search.errands, sorted(self.search.dest)
        for wanting in (self._wanting, self._uneven):
            for pod in moved:
                errand = errands[pod]
                if errand is not None and wanting(pod, errand):
                    if self.looks <= 0:
                        return
                    if errand.kind.wish is None and not self.soft:
                        self._thinner(pod, errand)
                    else:
                        self._better(pod, errand)

    def _wanting(self, pod: int, errand: PlacementRequest) -> bool:
        """Has it wishes, or is another of its workload on the node?"""
        if errand.kind.wish is not None:
            return True
        return self.near[self.workload[pod] * len(self.zone) + self.search.dest[pod]] > 1

    def _uneven(self, pod: int, errand: PlacementRequest) -> bool:
        """Are there more of its workload in the zone than in another it could be in?"""
        around = self.around
        base = self.workload[pod] * len(self.zone)
        here = around[base + self.zone[self.search.dest[pod]]]
        if here < 2:
            return False
        zones = self._zones(errand)
        if len(zones) < 2:
            return False
        for zone in zones:  # noqa: SIM110  `any` takes twice as long, and every moved pod is asked
            if here > 1 + around.get(base + zone, 0):
                return True
        return False

    def _zones(self, errand: PlacementRequest) -> list[int]:
        found = self._zones_of.get(errand.where)
        if found is None:
            opened = self.search.shelves.open
            found = list({self.zone[n] for n in compress(range(len(opened)), errand.nodes) if opened[n]})
            self._zones_of[errand.where] = found
        return found

    def _better(self, pod: int, errand: PlacementRequest) -> None:
        place, wish, base = self.search.dest[pod], errand.kind.wish, self.workload[pod] * len(self.zone)
        self._tally(pod, place, -1)
        best, most = place, self._rank(base, wish, place)
        for node in self._others(errand, place):
            found = self._rank(base, wish, node)
            if found > most:
                best, most = node, found
                if wish is None and not found[1] and len(self._zones(errand)) == 1:
                    break
        if best == place or not self._move(pod, errand, best):
            best = place
        self._tally(pod, best, 1)

    def _thinner(self, pod: int, errand: PlacementRequest) -> None:
        """What `_better` does where nobody wishes anything: fewest of its workload on the node, then in the zone."""
        search, near, around, zone = self.search, self.near, self.around, self.zone
        place, base = search.dest[pod], self.workload[pod] * len(zone)
        pool, best = search.limits[place], place
        # Without the pod itself where it is now.
        least, fewest = near[base + place] - 1, around[base + zone[place]] - 1
        alone, was = len(self._zones(errand)) == 1, base + zone[place]
        for node in search.shelves.others(errand, FEW):
            self.looks -= 1
            if node == place or search.limits[node] is not pool:
                continue
            here = near.get(base + node, 0)
            if here > least:
                continue
            there = base + zone[node]
            inside = around.get(there, 0) - (there == was)
            if here < least or inside < fewest:
                best, least, fewest = node, here, inside
                if alone and not here:
                    break
        if best != place and self._move(pod, errand, best):
            self._tally(pod, place, -1)
            self._tally(pod, best, 1)

    def _rank(self, base: int, wish: PlacementPreference | None, node: int) -> Rank:
        liked = points(wish, self.counts, node) if wish is not None else 0
        return liked, -self.near.get(base + node, 0), -self.around.get(base + self.zone[node], 0)

    def _others(self, errand: PlacementRequest, place: int) -> Iterator[int]:
        """Places it could have instead; where it prefers nodes, those it likes most are looked at first."""
        search, pool, wish = self.search, self.search.limits[place], errand.kind.wish
        liked: Iterable[int] = ()
        if wish is not None and wish.nodes:
            liked = self._liked(wish.nodes, wish.nodes[place], errand)
        for node in chain(liked, search.shelves.others(errand, MANY if wish is not None else FEW)):
            self.looks -= 1
            if node != place and search.limits[node] is pool:
                yield node

    def _liked(self, nodes: tuple[int, ...], least: int, errand: PlacementRequest) -> list[int]:
        shelves = self.search.shelves
        open_ = [n for n, there in enumerate(errand.nodes) if there and shelves.open[n] and nodes[n] > least]
        open_.sort(key=lambda n: -nodes[n])
        self.looks -= min(len(open_), MANY)
        return [n for n in open_[:MANY] if shelves.fits(errand, n)]

    def _tally(self, pod: int, node: int, sign: int) -> None:
        base = self.workload[pod] * len(self.zone)
        self.near[base + node] += sign
        self.around[base + self.zone[node]] += sign
        if self.soft:
            self._count(self.made.world.next_of[pod], node, sign)

    def _move(self, pod: int, errand: PlacementRequest, node: int) -> bool:
        """There, unless the pool would then lack room that it keeps."""
        log: Log = []
        self.search.move(pod, errand, node, log)
        limits = self.search.limits[node]
        if limits is not None and limits.short() is not None:
            self.search.undo(log)
            return False
        return True
