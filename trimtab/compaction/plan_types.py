"""The values of a plan: moves in turns, nodes in waves, and reasons for every node that stays.

`Observations` are what earlier rounds recorded, which keeps a planner from reacting to short changes. The compactor
stores them. An offline plan has none: it assumes that pools are settled, and notes that.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds


class Move(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One pod to evict, and the node that has capacity for its successor. A Struct: a plan creates tens of
    thousands."""

    pod: str
    """namespace/name."""
    uid: str
    source: str
    target: str
    """The node with capacity for the successor by this plan; kube-scheduler may choose another."""
    budget: str | None
    """namespace/name of the PodDisruptionBudget that allows the eviction, or None when no budget selects the pod."""
    turn: int
    """The turn within its node: a turn begins when the successors of the previous one are ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStep:
    """One node to drain, with all its pods."""

    node: str
    pool: str
    saves: int
    """In the plan's unit."""
    moves: tuple[Move, ...]
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Nodes that may be drained before PodDisruptionBudgets recover. Together they use no disruption twice."""

    steps: tuple[DrainStep, ...]

    @property
    def eviction_count(self) -> int:
        """The number of pods to evict."""
        return sum(len(step.moves) for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What no plan can exceed: the savings if pods were divisible."""

    saves: int
    """The maximum savings with the nodes that may be drained."""
    nodes: int
    """The maximum number of nodes that can be drained."""
    pinned: int
    """The number of nodes with a pod that may not move."""
    unpinned_nodes: int
    """The maximum number of nodes that could be drained if those pods could move."""
    unpinned_saves: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftNode:
    """A node that could be drained, and that the cluster autoscaler will drain and remove itself."""

    saves: int
    evictions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Waves of nodes to drain, and the reasons for everything that stays."""

    waves: tuple[Wave, ...]
    refusals: Mapping[str, Reason]
    """Node → why it stays; every node that is in no wave."""
    pods: Mapping[str, Reason]
    """Pod → why it must stay, where that keeps its node."""
    pools: Mapping[str, Reason]
    """Pool → why nothing is planned in it now."""
    unit: str
    """The unit of `total_savings`: micro-dollars per hour, millicores, nodes, or shares where pools differ."""
    bound: Bound
    left: Mapping[str, LeftNode] = field(default_factory=dict)
    """Node → what its removal would save and cost, for nodes that are left to the cluster autoscaler."""
    overdue: tuple[str, ...] = ()
    """Nodes that were left to the autoscaler for longer than it takes to remove one: they are planned like any
    other."""
    notes: tuple[str, ...] = field(default=())
    """The plan's assumptions, and oddities of the snapshot."""

    def of_pools(self, pools: Collection[str]) -> "Plan":
        """Returns the plan with only the steps of these pools; a wave without any is left out."""
        waves = (Wave(steps=tuple(step for step in wave.steps if step.pool in pools)) for wave in self.waves)
        return replace(self, waves=tuple(wave for wave in waves if wave.steps))

    @property
    def all_steps(self) -> tuple[DrainStep, ...]:
        """The steps of all waves."""
        return tuple(step for wave in self.waves for step in wave.steps)

    @property
    def all_moves(self) -> tuple[Move, ...]:
        """The moves of all waves."""
        return tuple(move for step in self.all_steps for move in step.moves)

    @property
    def total_savings(self) -> int:
        """The savings of all steps, in the plan's unit."""
        return sum(step.saves for step in self.all_steps)


FIRST_WAIT_SECONDS = 300
MAX_WAIT_SECONDS = 7200
HOUR_SECONDS = 3600


def backoff_seconds(times: int, first: int, longest: int) -> int:
    """Returns the wait after `times` failures in a row (at least one): `first`, doubling each time, at most
    `longest`."""
    return min(longest, first << min(times - 1, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Failed drains of one node, in a row."""

    times: int
    last: Seconds

    @property
    def retry_after(self) -> Seconds:
        """The time before which the node is not drained again: 5 minutes after the first failure, doubling, at most 2
        hours."""
        return self.last + backoff_seconds(self.times, FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What the compactor recorded in earlier rounds."""

    under_since: Mapping[str, Seconds] = field(default_factory=dict)
    """Node → the time since when it has been under the threshold without a break."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """Node → its failed drains in a row."""
    evictions: tuple[Seconds, ...] = ()
    """The times of the compactor's evictions in the last hour."""
    draining: Mapping[str, str] = field(default_factory=dict)
    """Node → pool, of the nodes that are being drained now."""

    def with_under_threshold(self, under: Iterable[str], now: Seconds) -> "Observations":
        """Returns the observations after one more round: nodes under the threshold keep their time or get `now`, others
        lose it."""
        return replace(self, under_since={node: self.under_since.get(node, now) for node in sorted(under)})

    def with_failure(self, node: str, now: Seconds) -> "Observations":
        """Returns the observations after a failed drain of the node."""
        before = self.failures.get(node)
        failure = Failure(times=before.times + 1 if before else 1, last=now)
        return replace(self, failures={**self.failures, node: failure})

    def with_evictions(self, count: int, now: Seconds) -> "Observations":
        """Returns the observations after `count` evictions now; evictions older than an hour are removed."""
        recent = tuple(when for when in self.evictions if when > now - HOUR_SECONDS)
        return replace(self, evictions=recent + (now,) * count)

    def recent_evictions(self, now: Seconds) -> int:
        """Returns the number of evictions in the last hour."""
        return sum(when > now - HOUR_SECONDS for when in self.evictions)
