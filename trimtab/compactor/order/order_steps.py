"""The steps of one round of an order: decides the next writes, makes them, and reports what happened.

`trimtab drain` makes them with the login of the user, and the compactor for a DrainOrder. They differ in how a write is
made (`OrderDoor`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.next_round import next_round
from trimtab.compaction.order.node_history import OrderNodeHistory, extend_history
from trimtab.compaction.order.order_plan import OrderPlan, plan_order
from trimtab.compaction.order.order_round import (
    CordonForOrder,
    DrainOrder,
    OrderPhase,
    OrderRound,
    OrderWrite,
    WriteRecord,
)
from trimtab.compaction.order.order_surges import SurgeMark, records_without_surges, without_surges
from trimtab.compaction.order.record import OrderRecord
from trimtab.compactor.actuator import ActuatorConflict, ActuatorNotFound, ActuatorUnavailable
from trimtab.compactor.order.order_reader import OrderView
from trimtab.compactor.reasons import EVICTED, IS_EMPTY, REFUSED, SCALED
from trimtab.compactor.removed_nodes import describe_step
from trimtab.kube.errors import Conflict, KubeFault, NotAllowed, NotFound, RequestRefused
from trimtab.kube.evict import EvictionOutcome, EvictionStatus
from trimtab.scheduling.cluster_model import Again, build_cluster_model

RETRY_SECONDS = 5.0
"""The seconds until a rejected eviction is tried again if the server does not say when (kubectl drain does so, too)."""
MAX_RETRY_SECONDS = 60.0
"""The seconds after which a rejected eviction is tried again even if the server, or a proxy, names a longer time."""
MAX_VIEW_SECONDS = 10.0
"""The seconds after which a count that was set back, and is observed unchanged, is set back again."""
UNOBSERVED_SECONDS = 180.0
"""An eviction that the watched data has not shown after this many seconds counts as failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEvent:
    """Something that happened in an order."""

    at: Seconds
    what: str
    """One word: cordoned, begun, scaled, evicted, refused, waiting, emptied, skipped, failed, left, retried, stopped;
    and for a release: recorded, released."""
    node: str = ""
    pod: str = ""
    """The pod as namespace/name."""
    reason: Reason | None = None
    text: str = ""
    """A sentence, if there is no reason."""


class OrderDoor(Protocol):
    """Makes the writes of an order. Each method makes one write, or raises KubeFault."""

    def cordon_node(self, node: NodeInfo, version: str, record: OrderRecord) -> None:
        """Cordons the node and writes the record, in one patch."""

    def write_record(self, node: NodeInfo, version: str, record: OrderRecord) -> None:
        """Writes the record of a node that is cordoned already."""

    def leave_out(self, node: NodeInfo, version: str, order: str) -> bool:
        """Records that the order leaves the node out, because it cannot be emptied. Returns whether the node was
        written."""

    def evict_pod(self, move: PodToEvict, node: str) -> EvictionOutcome:
        """Evicts the pod with its own grace period, to drain this node."""

    def change_count(self, step: a.SetReplicas) -> bool:
        """Gives a Deployment more pods for a while, or sets it back. Returns whether it was written: not if another
        client has set the present number."""

    def may_evict(self, move: PodToEvict) -> bool:
        """Returns whether the permissions permit the eviction of this pod, after it was denied."""


@dataclass(slots=True)
class OrderSteps:
    """The rounds of one order, and what is remembered between them. Nothing is remembered that the order could not
    lose."""

    order: DrainOrder
    door: OrderDoor
    timeouts: DrainTimeouts
    report: Callable[[OrderEvent], None]
    now: Callable[[], Seconds]
    elapsed: Callable[[], float]
    """Returns the time of the monotonic clock in seconds."""
    is_stopping: Callable[[], bool] = lambda: False
    """Returns whether nothing new may be written from now on."""
    readmitted_requests: Again | None = None
    evicted_at: dict[str, float] = field(default_factory=dict)
    """Uid of a pod → when it was evicted. The entry is kept until the pod's deletion is observed."""
    retry_at: dict[str, float] = field(default_factory=dict)
    """Uid of a pod → the time before which its eviction is not tried again."""
    written_versions: dict[str, str] = field(default_factory=dict)
    """Node → the version in which it was last written. While it is observed in this version, the write is not observed
    yet."""
    cordoned: tuple[str, ...] = ()
    """The nodes that the order has cordoned, as observed last or written since."""
    history: dict[str, OrderNodeHistory] = field(default_factory=dict)
    denied_since: dict[str, float] = field(default_factory=dict)
    """Uid of a pod → when its eviction was denied first, for a reason other than its budget."""
    denials: dict[str, Reason] = field(default_factory=dict)
    """Uid of a pod → why its eviction is not tried again."""
    foreign_pods: dict[str, Reason] = field(default_factory=dict)
    """Uid of a pod → why it cannot be evicted: it is in a namespace in which the author of the order may not evict."""
    phases: dict[str, OrderPhase] = field(default_factory=dict)
    """How far the order is, as decided last."""
    last_plan: OrderPlan | None = None
    """The plan that was made last; None before the first."""
    counts_of_others: set[SurgeMark] = field(default_factory=set)
    """The surges that are not undone, because another client has set the present count."""
    undone_at: dict[a.SetReplicas, float] = field(default_factory=dict)
    """A step that was made → when. The view may not show it yet."""
    _reported: set[tuple[str, ...]] = field(default_factory=set)
    """What was reported and is not reported again."""

    def plan(self, observed: OrderView, names: Sequence[str], own_nodes: Collection[str] = ()) -> OrderPlan:
        """Returns the plan of these nodes of the order in this view. The other nodes of the order are closed.

        own_nodes: the nodes that the compactor may cordon for the order, whatever their annotations say."""
        view = observed.view
        model, order = build_cluster_model(view.inventory, self.readmitted_requests), self.order
        denials = {**self.denials, **self.foreign_pods}
        return plan_order(model, names, order.rules, view.now, order.nodes, order.name, own_nodes, denials, view.pools)

    def decide(self, observed: OrderView, stop: Reason | None = None, own_nodes: Collection[str] = ()) -> OrderRound:
        """Returns the next writes. `stop`: why nothing new may be begun."""
        view = observed.view
        records = records_without_surges(observed.records, self.counts_of_others)
        self._forget_observed(observed, self.elapsed())
        self.history = {
            node: known
            if known.surging is None
            else replace(known, surging=without_surges(known.surging, self.counts_of_others))
            for node, known in extend_history(self.history, self.order.nodes, view.inventory.nodes, records).items()
        }

        def plan_rest(names: Sequence[str]) -> OrderPlan:
            self.last_plan = self.plan(observed, names, own_nodes)
            return self.last_plan

        denials = {**self.denials, **self.foreign_pods}
        round_ = next_round(self.order, view, records, plan_rest, self.timeouts, stop, self.history, denials)
        self.cordoned, self.phases = round_.cordoned, round_.phases
        return round_

    def carry_out(self, observed: OrderView, round_: OrderRound) -> None:
        """Reports the round, and makes its writes. Raises NotAllowed if a right is missing."""
        now = self.elapsed()
        self._report_round(round_)
        for name, write in round_.writes:
            # A stop takes effect before the next write, not before the next round.
            if self.is_stopping() and isinstance(write, (a.Evict, CordonForOrder)):
                break
            self._make_write(observed, name, write, now)

    def _make_write(self, observed: OrderView, name: str, write: OrderWrite, now: float) -> None:
        view = observed.view
        node, version = view.find_node(name), view.versions.get(name, "")
        try:
            if isinstance(write, a.SetReplicas):
                self._change_count(name, write, now)
                return
            assert node is not None
            if isinstance(write, a.Evict):
                self._evict(name, write, now)
                return
            self.written_versions[name] = version
            if isinstance(write, CordonForOrder):
                # Before the write: if it is interrupted, the node may be cordoned.
                self.cordoned = (*self.cordoned, name)
                self.door.cordon_node(node, version, write.record)
                text = "was cordoned by another client already" if node.is_cordoned else "is cordoned"
                self._report("cordoned", name, text=f"node {name} {text}")
            elif isinstance(write, WriteRecord):
                self.door.write_record(node, version, write.record)
                if write.record.is_emptied:
                    self._report("emptied", name, reason=IS_EMPTY(f"node {name} has no more pods to evict"))
                elif name not in observed.records or observed.records[name].drain is None:
                    self._report("begun", name, text=f"the drain of node {name} has begun")
            else:
                if not self.door.leave_out(node, version, self.order.name):
                    del self.written_versions[name]
                self._report("skipped", name, text=f"node {name} cannot be emptied, so the order leaves it out")
        except (Conflict, NotFound, ActuatorConflict, ActuatorNotFound):
            self.written_versions.pop(name, None)
            if isinstance(write, CordonForOrder):
                self.cordoned = tuple(each for each in self.cordoned if each != name)
        except NotAllowed:
            raise
        except (KubeFault, ActuatorUnavailable) as error:
            # Whether the write was made is not known: the next round reads it.
            self.written_versions.pop(name, None)
            self.report_once("retried", name, text=str(error))

    def _change_count(self, node: str, step: a.SetReplicas, now: float) -> None:
        is_back = step.replicas < step.before
        if is_back and now - self.undone_at.get(step, -UNOBSERVED_SECONDS) < MAX_VIEW_SECONDS:
            return
        try:
            is_written = self.door.change_count(step)
        except NotAllowed as error:
            if not is_back:
                raise
            is_written = False
            self.report_once("retried", node, text=str(error))
        if is_written:
            self.undone_at[step] = now
            self._report("scaled", node, reason=SCALED(describe_step(step)))
        elif is_back:
            known = self.history.get(node)
            surged = known.surging.surged if known is not None and known.surging is not None else {}
            self.counts_of_others.add((step.deployment, surged.get(step.deployment, 0)))
            text = f"{step.autoscaler or step.deployment} is not set back: its number is no longer that of the order"
            self.report_once("retried", node, text=text)

    def _evict(self, node: str, action: a.Evict, now: float) -> None:
        move = action.move
        if self.retry_at.get(move.uid, 0.0) > now:
            return
        self.retry_at[move.uid] = now + RETRY_SECONDS
        try:
            outcome = self.door.evict_pod(move, node)
        except NotAllowed:
            raise
        except RequestRefused as error:
            self._count_denial(move, now, error.message, is_final=False)
            raise
        if outcome.is_done:
            self.evicted_at[move.uid] = now
            self._report("evicted", node, move.pod, EVICTED(f"pod {move.pod} was evicted to drain node {node}"))
            return
        self.retry_at[move.uid] = now + min(outcome.retry_after or RETRY_SECONDS, MAX_RETRY_SECONDS)
        self.report_once(
            "refused", node, move.pod, REFUSED(f"pod {move.pod} was not evicted for now: {outcome.message}")
        )
        if outcome.eviction_status is EvictionStatus.TWO_BUDGETS:
            self._count_denial(move, now, outcome.message, is_final=True)
        elif outcome.eviction_status is not EvictionStatus.DENIED:
            self.denied_since.pop(move.uid, None)
        elif not self.door.may_evict(move):
            self.denials[move.uid] = o.NOT_PERMITTED(f"the login may not evict pod {move.pod}: {outcome.message}")
        else:
            self._count_denial(move, now, outcome.message, is_final=False)

    def _count_denial(self, move: PodToEvict, now: float, message: str, *, is_final: bool) -> None:
        """Records that the eviction was denied. It is not tried again if the denial is final, or lasts too long."""
        seconds = now - self.denied_since.setdefault(move.uid, now)
        if is_final or seconds > self.timeouts.end:
            self.denials[move.uid] = o.EVICTION_DENIED(f"the eviction of pod {move.pod} is denied: {message}")

    def is_past_deadline(self) -> bool:
        """Returns whether no further pod may be evicted, because the order has taken too long."""
        return self.order.deadline is not None and self.now() >= self.order.deadline

    def has_unobserved_writes(self, observed: OrderView) -> bool:
        """Returns whether the view is older than a write of this order to a node."""
        versions = observed.view.versions
        self.written_versions = {
            node: version for node, version in self.written_versions.items() if versions.get(node) == version
        }
        return bool(self.written_versions)

    def _forget_observed(self, observed: OrderView, now: float) -> None:
        existing = {pod.uid for pod in observed.view.inventory.pods if pod.deletion_requested_at is None}
        self.evicted_at = {
            uid: at for uid, at in self.evicted_at.items() if uid in existing and now - at < UNOBSERVED_SECONDS
        }

    # ── what is told ─────────────────────────────────────────────────────
    def _report_round(self, round_: OrderRound) -> None:
        for node, reason in round_.failures.items():
            # The sentence may have a number that grows.
            if (key := ("failed", node, reason.code.name)) not in self._reported:
                self._reported.add(key)
                self._report("failed", node, reason=reason)
        for node, phase in round_.phases.items():
            if phase is OrderPhase.LEFT:
                self.report_once(
                    "left",
                    node,
                    reason=o.LEFT_ALONE(f"node {node} is gone, is being deleted, or was released by another client"),
                )
        for node, reason in round_.waits.items():
            self.report_once("waiting", node, reason=reason)
        if round_.stop is not None:
            self.report_once("stopped", reason=round_.stop)

    def _report(
        self, what: str, node: str = "", pod: str = "", reason: Reason | None = None, *, text: str = ""
    ) -> None:
        self.report(OrderEvent(at=self.now(), what=what, node=node, pod=pod, reason=reason, text=text))

    def report_once(
        self, what: str, node: str = "", pod: str = "", reason: Reason | None = None, *, text: str = ""
    ) -> None:
        """Reports the event, unless the same was reported before."""
        key = (what, node, pod, reason.code.name if reason is not None else "", reason.sentence if reason else text)
        if key not in self._reported:
            self._reported.add(key)
            self._report(what, node, pod, reason, text=text)
