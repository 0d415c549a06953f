"""Which set of nodes can go, and where do all their pods go? The search behind a plan.

Candidates are tried in order of pods moved per price saved, best first; receivers are opened from the other end of
the same order (after those that cannot go anyway), and each pod takes the tightest open place. So the nodes that
would be emptied last are filled first, and no pod is ever moved twice. `improve` then adds and swaps nodes.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.cluster.reason import Reason
from trimtab.compaction.reasons import NO_HEADROOM
from trimtab.compaction.search.pool_limits import PoolLimits
from trimtab.scheduling.best_fit_index import BestFitIndex
from trimtab.scheduling.cluster_model import FreeCapacity, SavedCapacity
from trimtab.scheduling.placement_requests import PlacementRequest
from trimtab.scheduling.pod_class import PodClass

FIXED, CANDIDATE, OPEN, DRAINED, TRIED = range(5)
Log = list[tuple[int, int, int]]
"""(+1 placed | -1 lifted, pod, node), to be undone backwards."""
CHAIN = 8
"""Exchanges in a row for one pod."""


@dataclass(slots=True, eq=False)
class Search:
    room: FreeCapacity
    order: Sequence[int]
    """Candidates, best first."""
    loads: Sequence[Sequence[int]]
    """Node → its pods that must move, largest first."""
    errands: Sequence[PlacementRequest | None]
    """Pod → errand; None where it can't be planned free of order (then its node is no candidate here)."""
    shelves: BestFitIndex
    limits: Sequence[PoolLimits | None]
    """Node → limits of its pool; None where it is in none."""
    effort: int
    """How often a place may be looked for after the first pass."""
    state: bytearray = field(init=False)
    shut: bytes = field(init=False)
    """Nodes that take no pods, whatever the search does."""
    dest: dict[int, int] = field(default_factory=dict)
    guests: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    drained: list[int] = field(default_factory=list)
    refused: dict[int, object] = field(default_factory=dict)
    """Candidate → the limit that kept it, or the pod that found no place."""
    _later: dict[int, list[int]] = field(default_factory=dict)
    _looked: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Errands alike → from where to the end no candidate would take one: they only get fewer."""
    _dead: set[int] = field(default_factory=set)
    _has_allowances: bool = field(init=False)
    """Whether any pool keeps room free."""
    _counting: list[PoolLimits | None] = field(init=False)
    """Node → limits of its pool, where the pool keeps room free and arrivals count."""
    _sizes: dict[int, int] = field(default_factory=dict)
    _weights: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = bytearray(len(self.room.world.nodes))
        self._counting = [None if limits is None or limits.loose else limits for limits in self.limits]
        self.shut = bytes(self.room.closed)
        self._has_allowances = any(allowance is not None for allowance in self.shelves.allowances)
        for node in self.order:
            self.state[node] = CANDIDATE

    # ── the first pass ───────────────────────────────────────────────────
    def fill(self, most: int | None = None) -> None:
        """Every candidate once, best first; with `most` only so many, and the others just take pods."""
        for node in self.order[:most]:
            if self.state[node] == CANDIDATE:
                self.state[node] = TRIED
                if not self.drain(node, self.loads[node]):
                    self._open(node)

    def drain(self, node: int, pods: Sequence[int], log: Log | None = None) -> bool:
        """All of these pods away from the node, or nothing."""
        log = [] if log is None else log
        mark = len(log)
        limits = self.limits[node]
        refusal = limits.refuses(node) if limits is not None else None
        if refusal is not None:
            self.refused[node] = refusal
            return False
        if self._counting[node] is not None:
            # Before the node's own pool is asked for its room, guests of the node no longer count in it.
            for pod in [pod for pod in pods if pod in self.dest]:
                self._lift(pod, log)
        if limits is not None:
            limits.go(node)
            refusal = limits.short()
        if refusal is not None or not self._place_all(node, pods, log):
            if refusal is not None:
                self.refused[node] = refusal
            if limits is not None:
                limits.back(node)
            self.undo(log, mark)
            return False
        self.state[node] = DRAINED
        self.room.close(node)
        self.refused.pop(node, None)
        self.drained.append(node)
        return True

    def _place_all(self, node: int, pods: Sequence[int], log: Log) -> bool:
        mark = len(log)
        for pod in pods:
            self.effort -= 1
            errand = self.errands[pod]
            if errand is None or (self.effort <= 0 and id(errand) in self._dead):
                self.refused[node] = pod
                return False
            place = self.shelves.best(errand)
            if place < 0:
                place = self._open_for(errand)
            if place >= 0:
                self.move(pod, errand, place, log)
            elif not self._exchange(pod, errand, log):
                self.refused[node] = self._headroom(pod, errand) or pod
                # What a pool keeps free changes with the node that goes: nothing is settled for other nodes then.
                if len(log) == mark and not self._has_allowances:
                    self._dead.add(id(errand))
                return False
        return True

    def _headroom(self, pod: int, errand: PlacementRequest) -> Reason | None:
        """The pool whose headroom keeps the pod from a node that has room for it; None where no pool does."""
        node = self.shelves.kept_from(errand) if self._has_allowances else -1
        limits = self.limits[node] if node >= 0 else None
        if limits is None:
            return None
        pod_key = self.room.world.pods[pod].key
        return NO_HEADROOM(
            f"pod {pod_key} fits only on nodes of pool {limits.pool.name}, which would then have less free room than"
            " it keeps"
        )

    def _open_for(self, errand: PlacementRequest) -> int:
        """Opens the last candidate that would take the pod; -1 when none would."""
        later = self._later.get(errand.where)
        if later is None:
            mask = errand.nodes
            later = self._later[errand.where] = [node for node in self.order if mask[node]]
        while later and self.state[later[-1]] != CANDIDATE:
            later.pop()
        alike = (errand.where, errand.major, errand.minor) if errand.simple else (id(errand), 0, 0)
        place = min(self._looked.get(alike, len(later)), len(later))
        looked = 0
        while place > 0:
            place -= 1
            node = later[place]
            if self.state[node] == CANDIDATE and self.shelves.fits(errand, node):
                if not self.shelves.is_allowed(errand, node):
                    # Its pool may take the pod when another node goes.
                    looked = looked or place + 1
                    continue
                self._looked[alike] = looked or place
                self._open(node)
                return node
        self._looked[alike] = looked
        return -1

    def _open(self, node: int) -> None:
        self.state[node] = OPEN
        if not self.shut[node]:
            self.shelves.open_up(node)

    # ── single steps, all undoable ───────────────────────────────────────
    def _put(self, pod: int, errand: PlacementRequest, node: int, log: Log) -> None:
        self.shelves.take(errand, node)
        self.dest[pod] = node
        self.guests[node].append(pod)
        log.append((1, pod, node))
        limits = self._counting[node]
        if limits is not None:
            limits.arrive(errand.kind, node)

    def _lift(self, pod: int, log: Log) -> int:
        node = self.dest.pop(pod)
        errand = self.errands[pod]
        assert errand is not None
        self.shelves.give(errand, node)
        self.guests[node].remove(pod)
        log.append((-1, pod, node))
        limits = self._counting[node]
        if limits is not None:
            limits.arrive(errand.kind, node, -1)
        return node

    def move(self, pod: int, errand: PlacementRequest, node: int, log: Log) -> None:
        """To another place than it had, on its own node or as a guest."""
        if pod in self.dest:
            self._lift(pod, log)
        self._put(pod, errand, node, log)

    def undo(self, log: Log, mark: int = 0) -> None:
        """Backwards, all of it or down to a mark."""
        scrap: Log = []
        while len(log) > mark:
            sign, pod, node = log.pop()
            if sign > 0:
                self._lift(pod, scrap)
            else:
                errand = self.errands[pod]
                assert errand is not None
                self._put(pod, errand, node, scrap)

    # ── exchanges ────────────────────────────────────────────────────────
    def _exchange(self, pod: int, errand: PlacementRequest, log: Log) -> bool:
        """Puts the pod where a smaller moved pod was going, that one elsewhere, and so on."""
        for _ in range(CHAIN):
            if self.effort <= 0:
                return False
            self.effort -= 1
            found = self._smaller(errand)
            if found is None:
                return False
            guest, node = found
            self._lift(guest, log)
            self.move(pod, errand, node, log)
            moved = self.errands[guest]
            assert moved is not None
            pod, errand = guest, moved
            place = self.shelves.best(errand)
            if place >= 0:
                self._put(pod, errand, place, log)
                return True
        return False

    def _smaller(self, errand: PlacementRequest) -> tuple[int, int] | None:
        """The smallest moved pod whose place would do for this one, and that place."""
        best: tuple[int, int, int, int] | None = None
        room = self.room
        for node in self.shelves.nearly(errand):
            lacks = errand.major - room.major[node]
            for guest in self.guests.get(node, ()):
                other = self.errands[guest]
                assert other is not None
                rank = (other.major, other.major - lacks, node, guest)
                if not lacks <= other.major < errand.major or (best is not None and rank > best):
                    continue
                if not self.shelves.is_allowed(errand, node, leaving=other):
                    continue
                if room.minor[node] + other.minor >= errand.minor and self.shelves.suits(errand, node):
                    best = rank
        return (best[3], best[2]) if best is not None else None

    # ── taking back ──────────────────────────────────────────────────────
    def refill(self, node: int, log: Log) -> None:
        """The node stays after all: its pods stay on it, and it takes others."""
        for pod in self.loads[node]:
            self._lift(pod, log)
        self.drained.remove(node)
        limits = self.limits[node]
        if limits is not None:
            limits.back(node)
        self.room.reopen(node)
        self._open(node)

    def again(self, node: int, log: Log) -> None:
        """Undoes `refill`, and what came after it."""
        self.shelves.shut(node)
        self.undo(log)
        self.state[node] = DRAINED
        self.room.close(node)
        limits = self.limits[node]
        if limits is not None:
            limits.go(node)
        self.drained.append(node)

    def empty(self, node: int, log: Log) -> bool:
        """A node that was a receiver goes after all, its guests with its own pods."""
        self.shelves.shut(node)
        self.state[node] = TRIED
        if self.drain(node, sorted((*self.loads[node], *self.guests.get(node, ())), key=self._size), log):
            return True
        self._open(node)
        return False

    def repack(self) -> bool:
        """All moved pods lifted and placed again, largest first over all nodes: what is free comes together."""
        if len(self.dest) > self.effort:
            return False
        log: Log = []
        pods = sorted(self.dest, key=self._size)
        for pod in pods:
            self._lift(pod, log)
        for pod in pods:
            errand = self.errands[pod]
            place = self.shelves.best(errand) if errand is not None else -1
            self.effort -= 1
            if errand is None or place < 0:
                self.undo(log)
                return False
            self._put(pod, errand, place, log)
        return True

    def set_aside(self, before: SavedCapacity) -> SavedCapacity:
        """The room and all limits as they were before the search. With what this returns, `take_up` goes on with it."""
        after = self.room.saved()
        self.room.restore(before)
        self._arrive_all(-1)
        for node in reversed(self.drained):
            limits = self.limits[node]
            if limits is not None:
                limits.back(node)
        return after

    def take_up(self, after: SavedCapacity) -> None:
        """Undoes `set_aside`."""
        for node in self.drained:
            limits = self.limits[node]
            if limits is not None:
                limits.go(node)
        self._arrive_all(1)
        self.room.restore(after)

    def _arrive_all(self, sign: int) -> None:
        is_counting = any(limits is not None for limits in self._counting)
        for pod, node in self.dest.items() if is_counting else ():
            errand, limits = self.errands[pod], self._counting[node]
            if errand is not None and limits is not None:
                limits.arrive(errand.kind, node, sign)

    def world_major(self, node: int) -> int:
        """What goes with the node of the scarcer resource: its free room and what its pods need elsewhere."""
        if node not in self._weights:
            moving = sum([e.major for pod in self.loads[node] if (e := self.errands[pod]) is not None])
            self._weights[node] = max(0, self.room.world.major[node]) + moving
        return self._weights[node]

    def _size(self, pod: int) -> int:
        """Sorts the largest first, then by number."""
        found = self._sizes.get(pod)
        if found is None:
            errand = self.errands[pod]
            found = self._sizes[pod] = ((errand.kind.rank if errand is not None else 0) << 32) + pod
        return found


__all__ = ["CANDIDATE", "DRAINED", "FIXED", "OPEN", "PodClass", "Search"]
