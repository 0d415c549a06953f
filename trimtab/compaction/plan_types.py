"""The values of a plan: moves in turns, nodes in waves, and a reason for every node that stays.

`Observations` are what earlier rounds recorded, so that a planner does not react to short changes. The compactor stores
them. An offline plan has none: it assumes that no pod of the pools is moving, and notes that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.terms.term_ledger import EMPTY_LEDGER, TermLedger


class Move(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One pod to evict, and the node that has capacity for its successor. It is a Struct for speed, because a plan
    creates tens of thousands."""

    pod: str
    """The pod as namespace/name."""
    uid: str
    source: str
    target: str
    """The node that has capacity for the successor according to the plan; kube-scheduler may choose another node."""
    budget: str | None
    """The PodDisruptionBudget (namespace/name) that allows the eviction, or None if no budget selects the pod."""
    turn: int
    """The number of the turn in which the pod is evicted: a turn begins when the successors of the previous turn are
    ready."""
    surge: int = 0
    """The number of pods that the pod's Deployment is given for a while before the eviction, so that its budget allows
    the eviction; 0 if the budget allows it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """A pod on another node that is evicted together with pods of its group."""

    pod: str
    """The pod as namespace/name."""
    uid: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStep:
    """One node to drain, with all its pods."""

    node: str
    pool: str
    saves: int
    """What the removal of the node saves, in the plan's unit."""
    moves: tuple[Move, ...]
    reason: Reason
    companions: tuple[Companion, ...] = ()
    """The pods on other nodes that are evicted too, because they live and die with pods of the node."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Uid of a pod that moves or accompanies others → its group, as namespace/name."""
    longest_grace_seconds: int = 0
    """The longest termination grace period of the pods that move, in seconds: the drain may last that long."""
    stated_cost: int = 0
    """As how many further evictions the drain counts where nodes are put in order, because the pods' own annotations
    say so; at most the ceiling of the pool."""

    @property
    def eviction_count(self) -> int:
        """The number of pods to evict, those on other nodes included."""
        return len(self.moves) + len(self.companions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Nodes that may be drained before the PodDisruptionBudgets recover. No disruption that a budget allows is used
    twice in a wave."""

    steps: tuple[DrainStep, ...]

    @property
    def eviction_count(self) -> int:
        """The number of pods to evict."""
        return sum(step.eviction_count for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An upper limit for any plan: what could be saved if pods were divisible."""

    saves: int
    """The maximum savings if only the nodes that may be drained are considered."""
    nodes: int
    """The maximum number of nodes that can be drained."""
    pinned: int
    """The number of nodes with a pod that may not move."""
    unpinned_nodes: int
    """The maximum number of nodes that could be drained if the pods that may not move could move."""
    unpinned_saves: int
    candidates: int
    """The number of nodes that may be drained, including those that were not examined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftNode:
    """A node that could be drained but is not, because the cluster autoscaler will drain and remove it itself."""

    saves: int
    evictions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Waves of nodes to drain, and a reason for each node that stays."""

    waves: tuple[Wave, ...]
    refusals: Mapping[str, Reason]
    """Node → why it stays, for every node that is in no wave."""
    pods: Mapping[str, Reason]
    """Pod → why it may not move, if that prevents the drain of its node."""
    pools: Mapping[str, Reason]
    """Pool → why nothing is planned in it now."""
    unit: str
    """The unit of `total_savings`: micro-dollars per hour, millicores, nodes, or, if pools differ, shares of an average
    node."""
    bound: Bound
    left: Mapping[str, LeftNode] = field(default_factory=dict)
    """Node → what its removal would save and cost, for nodes that are left to the cluster autoscaler."""
    surge_peak: int = 0
    """The largest amount of the scarcer of cpu and memory that the additional pods of one wave need for a while."""
    overdue: tuple[str, ...] = ()
    """Nodes that were left to the autoscaler for longer than it takes to remove one. They are planned like any other
    node."""
    notes: tuple[str, ...] = field(default=())
    """Sentences about what the plan assumes, and about what is unusual in the snapshot."""

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
    """Returns how long to wait after `times` failures in a row (at least one): `first`, doubled with each further
    failure, but at most `longest`."""
    return min(longest, first << min(times - 1, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How often in a row the drain of one node has failed, and when it failed last."""

    times: int
    last: Seconds

    @property
    def retry_after(self) -> Seconds:
        """The time before which the node is not drained again: 5 minutes after the first failure, doubled with each
        further one, at most 2 hours."""
        return self.last + backoff_seconds(self.times, FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What the compactor recorded in earlier rounds."""

    under_since: Mapping[str, Seconds] = field(default_factory=dict)
    """Node → since when it has been under the threshold without interruption."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """Node → its failed drains in a row."""
    failing: Mapping[tuple[str, str], Failure] = field(default_factory=dict)
    """(pool, namespace) → the drains in a row that pods of the namespace made fail. While one of these waits, no node
    of the pool with pods of the namespace is drained."""
    evictions: tuple[Seconds, ...] = ()
    """The times of the compactor's evictions in the last hour."""
    terms: TermLedger = EMPTY_LEDGER
    """What was recorded about the terms that pods state."""
    draining: Mapping[str, str] = field(default_factory=dict)
    """Node → pool, for the nodes that are being drained now."""

    def with_failure(self, node: str, now: Seconds) -> "Observations":
        """Returns the observations after a failed drain of the node."""
        before = self.failures.get(node)
        failure = Failure(times=before.times + 1 if before else 1, last=now)
        return replace(self, failures={**self.failures, node: failure})

    def recent_evictions(self, now: Seconds) -> int:
        """Returns the number of evictions in the last hour."""
        return sum(when > now - HOUR_SECONDS for when in self.evictions)
