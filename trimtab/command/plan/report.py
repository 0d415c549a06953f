"""The report of `trimtab plan`."""

from trimtab.command.output import API_VERSION
from trimtab.command.plan.saving import Saving
from trimtab.command.why import Part, Why


class PoolReport(Part, frozen=True, kw_only=True):
    name: str
    goal: str
    dry_run: bool
    nodes_before: int
    nodes_after: int
    evictions: int
    saves: Saving
    refused: Why | None
    """Why nothing is planned in the whole pool now; null when something may be."""


class MoveReport(Part, frozen=True, kw_only=True):
    pod: str
    """namespace/name."""
    workload: str
    """Kind/name of what made it; empty where nobody did."""
    target: str
    """The node that has room for it by this plan; the scheduler may choose another."""
    budget: str | None
    """The PodDisruptionBudget it spends from."""
    turn: int
    """Within its node: a turn begins when the successors of the one before are ready."""


class StepReport(Part, frozen=True, kw_only=True):
    """One node that goes."""

    node: str
    pool: str
    saves: Saving
    reason: Why
    moves: list[MoveReport]


class WaveReport(Part, frozen=True, kw_only=True):
    """Nodes that may go before budgets are full again."""

    number: int
    evictions: int
    saves: Saving
    nodes: list[StepReport]


class StayReport(Part, frozen=True, kw_only=True):
    """One node that stays."""

    node: str
    pool: str
    """Empty where it is in no pool, or in more than one."""
    reason: Why
    blocked_by: str | None
    """Where a pod that may not move keeps it: the code of that pod's reason."""


class BlockerReport(Part, frozen=True, kw_only=True):
    """A pod that must stay, and keeps its node."""

    pod: str
    node: str
    reason: Why


class BoundReport(Part, frozen=True, kw_only=True):
    """What no plan can exceed, by volume alone: as if pods were sand."""

    nodes: int
    """Most nodes that can go."""
    saves: Saving
    pinned: int
    """Nodes that hold a pod that may not move."""
    nodes_unpinned: int
    """Most nodes that could go if those pods could move."""
    saves_unpinned: Saving
    text: str


class Fill(Part, frozen=True, kw_only=True):
    """Requested on a node, finished pods not counted."""

    cpu: int
    """Millicores."""
    memory: int
    """Bytes."""
    pods: int


class NodeReport(Part, frozen=True, kw_only=True):
    """How full a node is, before and after."""

    name: str
    cpu: int
    """Allocatable millicores; 0 where that cannot be read."""
    memory: int
    """Allocatable bytes."""
    before: Fill
    after: Fill | None
    """Null when it goes."""


class ExplainReport(Part, frozen=True, kw_only=True):
    kind: str
    name: str
    chain: list[str]
    """From what is asked first to the answer."""


class PlanReport(Part, frozen=True, kw_only=True):
    """Published as deploy/schemas/plan-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "PlanReport"
    nodes_before: int
    nodes_after: int
    evictions: int
    saves: Saving
    bound: BoundReport
    pools: list[PoolReport]
    waves: list[WaveReport]
    stays: list[StayReport]
    blockers: list[BlockerReport]
    nodes: list[NodeReport]
    explained: list[ExplainReport]
    """What --explain asked for."""
    notes: list[str]
    """What was assumed, and what is odd about the snapshot."""
