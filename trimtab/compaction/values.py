"""What is a plan? Values only: moves in turns, nodes in waves, reasons for all that stays."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster.reason import Reason


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
class Step:
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

    steps: tuple[Step, ...]

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
    notes: tuple[str, ...] = field(default=())
    """What was assumed, and what is odd about the snapshot."""

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for wave in self.waves for step in wave.steps)

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(move for step in self.steps for move in step.moves)

    @property
    def saves(self) -> int:
        return sum(step.saves for step in self.steps)
