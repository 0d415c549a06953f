"""Carries out an order with the login of a user, in rounds: reads the cluster, decides the next writes, and makes them.

Another run of the command goes on from the records on the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import NotYet
from trimtab.compaction.drain.actions import SetReplicas
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_round import DrainOrder, OrderPhase, OrderRound
from trimtab.compaction.order.record import OrderRecord, order_of_taint
from trimtab.compactor.order import order_rights, order_writes
from trimtab.compactor.order.order_reader import OrderReader, OrderView
from trimtab.compactor.order.order_steps import OrderEvent, OrderSteps
from trimtab.kube.errors import KubeFault
from trimtab.kube.evict import EvictionOutcome
from trimtab.kube.objects import Writer
from trimtab.scheduling.cluster_model import Again

POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class UserDoor:
    """Makes the writes of an order with the login of a user. Its records are not signed."""

    writer: Writer

    def cordon_node(self, node: NodeInfo, version: str, record: OrderRecord) -> None:
        order_writes.cordon_for_order(self.writer, node, version, record)

    def write_record(self, node: NodeInfo, version: str, record: OrderRecord) -> None:
        order_writes.write_record(self.writer, node.name, version, record)

    def leave_out(self, node: NodeInfo, version: str, order: str) -> bool:
        order_writes.discourage_successors(self.writer, node, version, order)
        return True

    def evict_pod(self, move: PodToEvict, node: str) -> EvictionOutcome:
        return order_writes.evict_for_order(self.writer, move)

    def change_count(self, step: SetReplicas) -> bool:
        return order_writes.change_count(self.writer, step)

    def may_evict(self, move: PodToEvict) -> bool:
        return order_rights.may_evict(self.writer.client, *move.pod.split("/", 1))


@dataclass(slots=True)
class OrderRunner:
    """Carries out one order."""

    order: DrainOrder
    reader: OrderReader
    writer: Writer
    timeouts: DrainTimeouts
    report: Callable[[OrderEvent], None]
    wait: Callable[[float], None]
    """Waits for this many seconds."""
    elapsed: Callable[[], float]
    """Returns the time of the monotonic clock in seconds."""
    is_stopping: Callable[[], bool] = lambda: False
    """Returns whether the user has asked to stop."""
    readmitted_requests: Again | None = None
    steps: OrderSteps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = OrderSteps(
            self.order,
            UserDoor(self.writer),
            self.timeouts,
            self.report,
            self.reader.now,
            self.elapsed,
            self.is_stopping,
            self.readmitted_requests,
        )

    @property
    def cordoned(self) -> tuple[str, ...]:
        """The nodes that the order has cordoned, as observed last or written since."""
        return self.steps.cordoned

    def run(self) -> OrderRound:
        """Carries out the order until it is over, and returns the last round. Raises NotAllowed if a right is
        missing."""
        steps = self.steps
        while True:
            observed = self.reader.read_view(self.order.name, frozenset(steps.evicted_at))
            if isinstance(observed, NotYet):
                steps.report_once("waiting", reason=o.UNSEEN(str(observed)))
                if self.is_stopping() or steps.is_past_deadline():
                    waiting = dict.fromkeys(self.order.nodes, OrderPhase.WAITING)
                    stop = o.UNSEEN(str(observed))
                    return OrderRound(waiting | steps.phases, stop=stop, cordoned=steps.cordoned, is_over=True)
            elif not steps.has_unobserved_writes(observed):
                stopped = o.STOPPED("the command was stopped, so no further pod is evicted")
                round_ = steps.decide(observed, stopped if self.is_stopping() else None)
                steps.carry_out(observed, round_)
                if round_.is_over:
                    self._remove_taints(observed)
                    return round_
            self.wait(POLL_SECONDS)

    def _remove_taints(self, observed: OrderView) -> None:
        for node in observed.view.inventory.nodes:
            if any(order_of_taint(taint) == self.order.name for taint in node.taints):
                try:
                    order_writes.remove_order_taints(
                        self.writer, order_writes.read_cordoned_node(self.writer.client, node.name)
                    )
                except KubeFault as error:
                    self.steps.report_once("retried", node.name, text=str(error))
