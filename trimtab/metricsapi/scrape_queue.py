"""Decides which target is scraped next, so that the pods of one namespace do not take the time of others' scrapes.

Slots for scrapes are shared max-min between the namespaces that have targets which are due:

- A namespace whose load is at most a quarter of an equal share is served in the order of due times.
- Any other namespace waits until no such namespace has a due target; the least loaded one is first.
- The load of a namespace is the number of slots that its scrapes hold, or have held on average in the last interval,
  whichever is more. So slow pods count for as long as they take, whether they end in a value or not.

Slow targets are those whose last scrape held a slot for long and gave no value, such as a pod that accepts connections
and never responds, or one behind a NetworkPolicy. All of them together get `slow_slots` slots, which are shared between
their namespaces in the same way. One success makes a target an ordinary one again.

Max-min fairness is a term of network scheduling: https://en.wikipedia.org/wiki/Max-min_fairness
"""

import heapq
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from trimtab.metricsapi.pacing import ScrapePace

T = TypeVar("T", bound=Hashable)
Waiting = list[tuple[float, int, T]]
"""A heap of (time at which it is due, number of the entry, target)."""

SLOW_SECONDS = 1.5
"""A scrape that holds a slot for so long without a value makes its target a slow one. It is shorter than the time-out
of connections."""
EARLY_SHARE = 0.9
"""The share of the interval after which a target may be scraped again: less than 1, so that the pace decides when."""
UNLOADED_SHARE = 0.25
"""The share of an equal share of the slots up to which namespaces are not told apart by their load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """What the targets share."""

    slots: int
    """The number of scrapes at the same time."""
    interval_seconds: float
    second_after_seconds: float | None = None
    """The seconds from the first scrape of a new target to the second, because a rate needs two samples; None if one
    scrape is enough."""

    @property
    def slow_slots(self) -> int:
        """Returns the number of slots that all slow targets share: an eighth, and at least one."""
        return max(1, self.slots // 8)


@dataclass(slots=True)
class _TargetState:
    namespace: str
    due: float
    starts: int = 0
    is_slow: bool = False
    started: float | None = None
    """The time at which the scrape that is under way began."""
    entry: int = 0
    """The number of the target's only valid entry in a heap."""


@dataclass(slots=True)
class _NamespaceShare(Generic[T]):
    """The waiting targets of a namespace, and the slots that it uses."""

    new: Waiting[T] = field(default_factory=list)
    regular: Waiting[T] = field(default_factory=list)
    slow: Waiting[T] = field(default_factory=list)
    running: int = 0
    mean: float = 0.0
    """The number of slots that were in use, averaged with exponentially decreasing weights."""
    mean_at: float = 0.0
    targets: int = 0

    def load(self, now: float, interval: float) -> float:
        """Returns the number of slots that the namespace uses now or has used on average, whichever is more."""
        self._update(now, interval)
        return max(float(self.running), self.mean)

    def change_running(self, difference: int, now: float, interval: float) -> None:
        """Adds to the number of slots in use."""
        self._update(now, interval)
        self.running += difference

    def _update(self, now: float, interval: float) -> None:
        weight = math.exp(-max(0.0, now - self.mean_at) / interval)
        self.mean = self.mean * weight + self.running * (1 - weight)
        self.mean_at = max(now, self.mean_at)


@dataclass(slots=True)
class ScrapeQueue(Generic[T]):
    """The targets, with what each namespace uses. Not thread-safe."""

    limits: QueueLimits
    _states: dict[T, _TargetState] = field(default_factory=dict)
    _shares: dict[str, _NamespaceShare[T]] = field(default_factory=dict)
    _running: dict[T, _TargetState] = field(default_factory=dict)
    """The targets that are being scraped, also those that are no longer targets."""
    _slow_running: set[T] = field(default_factory=set)
    _entries: int = 0

    def __len__(self) -> int:
        return len(self._states)

    @property
    def in_use(self) -> int:
        """Returns the number of scrapes that are under way."""
        return len(self._running)

    def replace_targets(self, targets: Mapping[T, str], now: float) -> None:
        """Sets the targets, each with its namespace. New ones are due at once."""
        for target in [target for target in self._states if target not in targets]:
            state = self._states.pop(target)
            self._shares[state.namespace].targets -= 1
        for target, namespace in targets.items():
            if target in self._states:
                continue
            share = self._shares.setdefault(namespace, _NamespaceShare(mean_at=now))
            share.targets += 1
            state = self._states[target] = _TargetState(namespace, now)
            if target not in self._running:
                self._push(target, state)
        # A namespace is not forgotten while it has load: otherwise its pods could come back as unloaded ones.
        for namespace, share in [*self._shares.items()]:
            if not share.targets and not share.running and share.load(now, self.limits.interval_seconds) < 0.01:
                del self._shares[namespace]

    def take_next(self, pace: ScrapePace) -> T | None:
        """Returns the target to scrape now, or None if none is due or the pace does not allow a scrape. Every target
        that is returned holds a slot until `finish`."""
        if not pace.allows_start(eager=True):
            return None
        allows_regular = pace.allows_start(eager=False)
        if allows_regular and len(self._slow_running) < self.limits.slow_slots:
            heap = self._choose(pace.now, ("slow",))
            if heap is not None:
                target = self._start(heap, pace, eager=False)
                self._slow_running.add(target)
                return target
        heap = self._choose(pace.now, ("new", "regular") if allows_regular else ("new",))
        if heap is None:
            return None
        return self._start(heap, pace, eager=self._is_new(self._states[heap[0][2]]))

    def finish(self, target: T, now: float, *, has_value: bool) -> None:
        """Ends the scrape of a target, whose next one is due after an interval."""
        taken = self._running.pop(target)
        self._slow_running.discard(target)
        self._shares[taken.namespace].change_running(-1, now, self.limits.interval_seconds)
        assert taken.started is not None
        state = self._states.get(target)
        if state is None:
            return
        if state is not taken:
            # The target was removed and added again meanwhile: it is a new one.
            self._push(target, state)
            return
        state.is_slow = not has_value and now - taken.started >= SLOW_SECONDS
        is_second = state.starts == 1 and self.limits.second_after_seconds is not None
        wait = self.limits.second_after_seconds if is_second else EARLY_SHARE * self.limits.interval_seconds
        assert wait is not None
        state.due, state.started = taken.started + wait, None
        self._push(target, state)

    def overdue_seconds(self, now: float) -> tuple[float, float]:
        """Returns for how long the most overdue ordinary target, and the most overdue slow one, have waited beyond
        their interval; 0 if there are none."""
        regular = slow = 0.0
        for state in self._states.values():
            if state.started is None:
                late = now - state.due - (1 - EARLY_SHARE) * self.limits.interval_seconds
                regular, slow = (regular, max(slow, late)) if state.is_slow else (max(regular, late), slow)
        return regular, slow

    def _choose(self, now: float, kinds: Sequence[Literal["new", "regular", "slow"]]) -> Waiting[T] | None:
        """Returns the heap whose first target is next, or None if none is due. In a namespace, the first of the kinds
        that has a due target counts."""
        active = sum(share.targets > 0 for share in self._shares.values())
        unloaded = UNLOADED_SHARE * self.limits.slots / max(1, active)
        best_key, best = (math.inf, math.inf), None
        for share in self._shares.values():
            for kind in kinds:
                heap: Waiting[T] = getattr(share, kind)
                self._drop_invalid(heap)
                if heap and heap[0][0] <= now:
                    load = share.load(now, self.limits.interval_seconds)
                    key = (0.0 if load <= unloaded else load, heap[0][0])
                    if key < best_key:
                        best_key, best = key, heap
                    break
        return best

    def _start(self, heap: Waiting[T], pace: ScrapePace, *, eager: bool) -> T:
        _, _, target = heapq.heappop(heap)
        pace.take_start(eager=eager)
        state = self._states[target]
        state.started, state.starts, state.entry = pace.now, state.starts + 1, 0
        self._running[target] = state
        self._shares[state.namespace].change_running(1, pace.now, self.limits.interval_seconds)
        return target

    def _push(self, target: T, state: _TargetState) -> None:
        self._entries += 1
        state.entry = self._entries
        share = self._shares[state.namespace]
        heap = share.slow if state.is_slow else share.new if self._is_new(state) else share.regular
        heapq.heappush(heap, (state.due, self._entries, target))

    def _is_new(self, state: _TargetState) -> bool:
        return state.starts < (1 if self.limits.second_after_seconds is None else 2)

    def _drop_invalid(self, heap: Waiting[T]) -> None:
        """Removes the entries of targets that are gone from the head of the heap."""
        while heap:
            state = self._states.get(heap[0][2])
            if state is not None and state.entry == heap[0][1]:
                return
            heapq.heappop(heap)
