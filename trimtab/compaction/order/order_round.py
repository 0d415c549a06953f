"""What a user ordered, and one round of carrying it out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain import actions as a
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_plan import OrderPlan
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.record import OrderRecord


class OrderPhase(StrEnum):
    """How far an order is on one node."""

    WAITING = "waiting"
    DRAINING = "draining"
    EMPTY = "empty"
    LEFT = "left"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOrder:
    """What a user ordered."""

    name: str
    nodes: tuple[str, ...]
    since: Seconds
    by: str = ""
    why: str = ""
    rules: OrderRules = field(default_factory=OrderRules)
    until: Seconds | None = None
    """The time from which no further node is begun; None: no limit."""
    deadline: Seconds | None = None
    """The time from which no further pod is evicted; None: no limit."""
    is_signed: bool = False
    """Whether the records of the order are signed, as those of the compactor. Then the soft taint on a node, which any
    client that may patch nodes can write, says nothing; and a node on which another user lets pods run fails alone."""


LOCAL_FAILURES = (o.FOREIGN_POD, o.NOT_EMPTY, o.SKIPPED)
"""The failures of a node that pods of other users can bring about, which do not stop a signed order."""


@dataclass(frozen=True, slots=True)
class CordonForOrder:
    """Cordon the node and write the record, in one patch."""

    record: OrderRecord


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Write the record of a node that is cordoned already."""

    record: OrderRecord


@dataclass(frozen=True, slots=True)
class DiscourageSuccessors:
    """Put the soft taint of the order on a node that it cannot begin, so that successors prefer other nodes."""


OrderWrite = CordonForOrder | WriteRecord | DiscourageSuccessors | a.Evict | a.SetReplicas
PlanRemaining = Callable[[Sequence[str]], OrderPlan]
"""A function that returns the plan of these nodes of the order; all other nodes of the order are closed."""


@dataclass(slots=True)
class OrderRound:
    """What is to be written now, and how far the order is."""

    phases: dict[str, OrderPhase] = field(default_factory=dict)
    writes: list[tuple[str, OrderWrite]] = field(default_factory=list)
    """(node, write), in the order in which they are made."""
    waits: dict[str, Reason] = field(default_factory=dict)
    """Node → what its drain waits for."""
    failures: dict[str, Reason] = field(default_factory=dict)
    """Node → why it cannot be emptied now."""
    stop: Reason | None = None
    """Why nothing new is begun; None if the order goes on."""
    cordoned: tuple[str, ...] = ()
    """The nodes that are cordoned and have a record of the order."""
    is_over: bool = False
    """Whether nothing is left that this run of the order would do or wait for."""

    @property
    def is_done(self) -> bool:
        """Whether every node of the order is empty or gone."""
        return all(phase in (OrderPhase.EMPTY, OrderPhase.LEFT) for phase in self.phases.values())
