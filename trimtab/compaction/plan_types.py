"""What is a plan? Values only: moves in turns, nodes in waves, reasons for all that stays.

What did earlier rounds see? The memory that makes a planner calm.

A value: the process keeps it, the plan reads it. Offline there is none; then pools are taken for settled and the
plan says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds


class Move(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One pod to be evicted, and the place its successor has. A Struct: a plan makes tens of thousands."""

    pod: str
    """namespace/name."""
    uid: str
    source: str
    target: str
    """Where there is room for it by this plan; the scheduler may choose another."""
    budget: str | None
    """namespace/name of the PodDisruptionBudget it spends from; None when none has a say."""
    turn: int
    """Within its node: a turn begins when the successors of the one before are ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStep:
    """One node that goes, with all its pods."""

    node: str
    pool: str
    saves: int
    """In the plan's unit."""
    moves: tuple[Move, ...]
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Nodes that may go before budgets are full again. Together they spend no budget twice."""

    steps: tuple[DrainStep, ...]

    @property
    def evictions(self) -> int:
        return sum(len(step.moves) for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What no plan can exceed, by volume alone: how much could be freed if pods were sand."""

    saves: int
    """Most that can be saved with the nodes that may go."""
    nodes: int
    """Most nodes that can go."""
    pinned: int
    """Nodes that hold a pod which may not move."""
    unpinned_nodes: int
    """Most nodes that could go if those pods could move."""
    unpinned_saves: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftNode:
    """A node that could go, and that the cluster autoscaler will empty and remove by itself."""

    saves: int
    evictions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    waves: tuple[Wave, ...]
    refusals: Mapping[str, Reason]
    """Node → why it stays; every node that is in no wave."""
    pods: Mapping[str, Reason]
    """Pod → why it must stay, where that is what keeps its node."""
    pools: Mapping[str, Reason]
    """Pool → why nothing is planned in it now."""
    unit: str
    """What `saves` counts: micro-dollars per hour, millicores, nodes, or shares where pools differ."""
    bound: Bound
    left: Mapping[str, LeftNode] = field(default_factory=dict)
    """Node → what going would save and cost, of the nodes that are left to the cluster autoscaler."""
    overdue: tuple[str, ...] = ()
    """Nodes that were left to it for longer than it takes to remove one: they are planned like any other."""
    notes: tuple[str, ...] = field(default=())
    """What was assumed, and what is odd about the snapshot."""

    @property
    def steps(self) -> tuple[DrainStep, ...]:
        return tuple(step for wave in self.waves for step in wave.steps)

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(move for step in self.steps for move in step.moves)

    @property
    def saves(self) -> int:
        return sum(step.saves for step in self.steps)


FIRST_WAIT = 300
LONGEST_WAIT = 7200
HOUR = 3600


def backoff_seconds(times: int, first: int, longest: int) -> int:
    """The wait after so many failures in a row (at least one): `first`, doubling each time, at most `longest`."""
    return min(longest, first << min(times - 1, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A drain that did not end well."""

    times: int
    last: Seconds

    @property
    def until(self) -> Seconds:
        """5 minutes after the first, doubling, at most 2 hours."""
        return self.last + backoff_seconds(self.times, FIRST_WAIT, LONGEST_WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    under_since: Mapping[str, Seconds] = field(default_factory=dict)
    """Node → since when it has been under the line without a break."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """Node → failed drains in a row."""
    evictions: tuple[Seconds, ...] = ()
    """When we evicted, the last hour."""
    draining: Mapping[str, str] = field(default_factory=dict)
    """Node → pool, of those being emptied now."""

    def seen(self, under: Iterable[str], now: Seconds) -> "Observations":
        """After one more look: nodes under the line keep their time or get `now`, others lose it."""
        return replace(self, under_since={node: self.under_since.get(node, now) for node in sorted(under)})

    def failed(self, node: str, now: Seconds) -> "Observations":
        before = self.failures.get(node)
        failure = Failure(times=before.times + 1 if before else 1, last=now)
        return replace(self, failures={**self.failures, node: failure})

    def evicted(self, count: int, now: Seconds) -> "Observations":
        """Evictions made now; those older than an hour are forgotten."""
        recent = tuple(when for when in self.evictions if when > now - HOUR)
        return replace(self, evictions=recent + (now,) * count)

    def lately(self, now: Seconds) -> int:
        """Evictions of the last hour."""
        return sum(when > now - HOUR for when in self.evictions)
