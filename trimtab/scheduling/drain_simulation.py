"""If this node went, where would all its pods go, together?

`DrainSimulation` is built once per state of the cluster and answers for one node in well under a millisecond: what it
puts down it takes up again. Pods whose place depends on the order of moves are placed exactly, one after the other.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trimtab.cluster.reason import Reason
from trimtab.scheduling.best_fit_index import BestFitIndex
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import admits, why_not
from trimtab.scheduling.placement_requests import PlacementRequest, PlacementRequests
from trimtab.scheduling.pod_class import PodClass
from trimtab.scheduling.preferences import points
from trimtab.scheduling.reasons import NO_ROOM


@dataclass(frozen=True, slots=True)
class DrainPlacement:
    """Pod number → node number, in the order in which the pods would go."""

    of: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class NoPlacement:
    """The pod that finds no place, after the others of its node found theirs."""

    pod: int
    reason: Reason


Choose = Callable[[FreeCapacity, PodClass, Iterable[int]], int]
"""The place for a pod of this kind among these nodes; -1 when none takes it."""


class DrainSimulation:
    """What-if over one world: every node that takes pods is open."""

    def __init__(self, world: ClusterModel, room: FreeCapacity | None = None) -> None:
        self.world = world
        self.room = FreeCapacity(world) if room is None else room
        made = PlacementRequests(self.room)
        self.errands: list[PlacementRequest | None] = [
            None if pod.daemon or pod.static else made.of(world.next_of[number], world.node_of[number])
            for number, pod in enumerate(world.pods)
        ]
        self.shelves = BestFitIndex(made)
        for node in range(len(world.nodes)):
            if not self.room.closed[node]:
                self.shelves.open_up(node)

    def can(self, node: int, pods: Sequence[int]) -> bool:
        """Can this one node go? Without the reason, which costs a look at every node."""
        if all(self.errands[pod] is not None for pod in pods):
            found = self._quickly(node, pods)
            if isinstance(found, DrainPlacement):
                return True
            if self._hopeless(node, found):
                return False
        return any(self._ordered(pod) for pod in pods) and isinstance(exactly(self.room, node, pods), DrainPlacement)

    def _hopeless(self, node: int, pod: int) -> bool:
        """Does the pod find no place even alone, whatever the order of moves?"""
        errand = self.errands[pod]
        if errand is None or errand.tied:
            return False
        was_open = self.shelves.open[node]
        if was_open:
            self.shelves.shut(node)
        alone = self.shelves.best(errand)
        if was_open:
            self.shelves.open_up(node)
        return alone < 0

    def _ordered(self, pod: int) -> bool:
        """Could the exact way find a place where the quick one found none?"""
        errand = self.errands[pod]
        return errand is None or errand.tied

    def where(self, node: int, pods: Sequence[int]) -> DrainPlacement | NoPlacement:
        """Places for all of these pods of the node, or the first that finds none. Nothing is changed by asking."""
        if all(self.errands[pod] is not None for pod in pods):
            found = self._quickly(node, pods)
            if isinstance(found, DrainPlacement):
                return found
        return exactly(self.room, node, pods)

    def _quickly(self, node: int, pods: Sequence[int]) -> DrainPlacement | int:
        """Places, or the pod that found none after larger ones had theirs."""
        was_open, done, stuck = self.shelves.open[node], [], -1
        if was_open:
            self.shelves.shut(node)
        for pod in sorted(pods, key=self._size):
            errand = self.errands[pod]
            place = self.shelves.best(errand) if errand is not None else -1
            if errand is None or place < 0:
                stuck = pod
                break
            self.shelves.take(errand, place)
            done.append((pod, place))
        for pod, place in reversed(done):
            errand = self.errands[pod]
            assert errand is not None
            self.shelves.give(errand, place)
        if was_open:
            self.shelves.open_up(node)
        return DrainPlacement(tuple(done)) if len(done) == len(pods) else stuck

    def _size(self, pod: int) -> tuple[int, int, int]:
        kind = self.world.next_of[pod]
        return -kind.major, -kind.minor, pod


def gladly(room: FreeCapacity, node: int, pods: Sequence[int], allowed: Iterable[int]) -> DrainPlacement | NoPlacement:
    """The same as `exactly`, each pod where it likes to be, if that leaves room for all; else tightest."""
    allowed = list(allowed)
    found = exactly(room, node, pods, allowed, _liked)
    return found if isinstance(found, DrainPlacement) else exactly(room, node, pods, allowed)


def exactly(
    room: FreeCapacity,
    node: int,
    pods: Sequence[int],
    allowed: Iterable[int] | None = None,
    choose: Choose | None = None,
) -> DrainPlacement | NoPlacement:
    """The same by the scheduler's own steps: evict one, place one, tightest fit first. The room is left as it was."""
    world, choose = room.world, choose or _tightest
    places = list(range(len(world.nodes)) if allowed is None else allowed)
    was_closed, was_leaving = room.closed[node], node in room.leaving
    room.close(node)
    done: list[tuple[int, int]] = []
    found: DrainPlacement | NoPlacement | None = None
    for pod in sorted(pods, key=lambda p: (-world.next_of[p].major, -world.next_of[p].minor, p)):
        room.uncount(world.kind_of[pod].adds, node)
        kind = world.next_of[pod]
        place = choose(room, kind, places)
        if place < 0:
            room.count(world.kind_of[pod].adds, node)
            found = NoPlacement(pod, nowhere(room, kind, places, world.pods[pod].key))
            break
        room.take(kind, place)
        done.append((pod, place))
    for pod, place in reversed(done):
        room.give(world.next_of[pod], place)
        room.count(world.kind_of[pod].adds, node)
    room.closed[node] = was_closed
    if not was_leaving:
        room.leaving.discard(node)
    return found if found is not None else DrainPlacement(tuple(done))


def _tightest(room: FreeCapacity, kind: PodClass, places: Iterable[int]) -> int:
    best, free = -1, 1 << 62
    for place in places:
        if room.major[place] < free and admits(room, kind, place):
            best, free = place, room.major[place]
    return best


def _liked(room: FreeCapacity, kind: PodClass, places: Iterable[int]) -> int:
    """By the pod's wishes, then where fewest of its kind are, then the tightest."""
    best, rank = -1, (1 << 62, 0, 0)
    for place in places:
        if admits(room, kind, place):
            liked = points(kind.wish, room.counts, place) if kind.wish is not None else 0
            alike = sum(room.world.kind_of[pod].ask is kind.ask for pod in room.world.on[place])
            best, rank = min((best, rank), (place, (-liked, alike, room.major[place])), key=lambda found: found[1])
    return best


def nowhere(room: FreeCapacity, kind: PodClass, places: Sequence[int], name: str) -> Reason:
    """Why no node takes the pod, counted by constraint as the scheduler's own message does."""
    if kind.unknown is not None:
        return kind.unknown
    reasons = [reason for place in places if (reason := why_not(room, kind, place)) is not None]
    if not reasons:
        return NO_ROOM(f"pod {name} fits nowhere: there is no other node")
    tally = Counter(reason.code.name for reason in reasons)
    most = sorted(tally.items(), key=lambda item: (-item[1], item[0]))
    first = next(reason for reason in reasons if reason.code.name == most[0][0])
    told = ", ".join(f"{count} {code}" for code, count in most)
    return first.code(f"pod {name} fits on none of {len(places)} nodes: {told}; such as: {first}")
