"""Carries out DrainOrders, as a part of the compactor's rounds.

What an order needs to be continued by another leader stands in the cluster: its entry in the state of the pool
`ORDERS`, and the signed annotations on its nodes. Both are needed before the compactor acts on a node. The order of
writes, and what dying in between leaves:

    accept      the entry, then the first cordon               an accepted order, which the next leader continues
    cordon      the annotation in the same patch               some nodes cordoned, and nothing evicted
    begin       the annotation with the pods that move         nothing more than before
    end         the entry with the reason, then the status     an ended order, whose status the next leader writes
    release     each node, then the entry                      some nodes released; the next leader releases the others
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import DrainAnnotation, clamp_to_now, is_ahead
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.order_entry import OrderEntry
from trimtab.compaction.drain.start import ActiveDrains
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_object import FINAL_PHASES, OrderObject, OrderStatus
from trimtab.compaction.order.order_status import differs, ended_status, refused_status, waiting_status
from trimtab.compactor.actuator import ErrorCollector
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.error_guard import Failed
from trimtab.compactor.order.author_witness import AuthorWitness
from trimtab.compactor.order.order_acceptance import LATER, OrderAcceptance
from trimtab.compactor.order.order_ledger import OrderLedger
from trimtab.compactor.order.order_progress import OrderProgress
from trimtab.compactor.order.order_source import OrderSource
from trimtab.kube.errors import KubeFault
from trimtab.runtime.log import Logger
from trimtab.scheduling.cluster_model import Again

POLL_SECONDS = 5.0
"""The number of seconds between two readings of the orders while none is carried out."""
MAX_NEW_ORDERS = 20
"""How many orders that are not accepted are considered in one round, the oldest first."""
UNSERVED_SECONDS = 60.0
"""For how many seconds the API server must not serve DrainOrders before they count as deleted."""


@dataclass(slots=True)
class OrderKeeper:
    """Carries out the DrainOrders of one namespace. Only the leader uses it."""

    source: OrderSource
    drainer: Drainer
    log: Logger
    namespace: str
    elapsed: Callable[[], float]
    readmit: Callable[[], Again | NotYet | None] = lambda: None
    rehearses: bool = False
    """Whether the process only makes dry runs."""
    has_orders: bool = False
    """Whether an order has to be carried out or released."""
    orders_in_progress: dict[str, tuple[str, Seconds]] = field(default_factory=dict)
    """Uid → (phase, when the order was created), for the orders that wait and those that were accepted."""
    problem: str = ""
    """Why orders are not carried out, as text; empty if they are."""
    ledger: OrderLedger = field(init=False)
    witness: AuthorWitness = field(init=False)
    acceptance: OrderAcceptance = field(init=False)
    _progress: dict[str, OrderProgress] = field(default_factory=dict)
    _listed_at: float | None = None
    _unserved_since: float | None = None
    _considered_last: tuple[Seconds, str] = (0, "")
    """When the order that was considered last was created, and its name."""

    def __post_init__(self) -> None:
        self.ledger = OrderLedger(self.drainer.pool_states)
        self.witness = AuthorWitness()
        self.acceptance = OrderAcceptance(self.source, self.ledger, self.witness, self.rehearses)

    # ── the orders ───────────────────────────────────────────────────────
    def needs_round(self, now: float) -> bool:
        """Returns whether an order has to be carried out or released. The orders are read if the last reading is too
        old."""
        if self._listed_at is not None and now - self._listed_at < POLL_SECONDS:
            return self.has_orders
        try:
            orders = self._read_orders(now)
        except KubeFault:
            return True  # the round reports the error
        return orders is not None and self._has_work(orders)

    def _has_work(self, orders: Iterable[OrderObject]) -> bool:
        entries, present = self.ledger.entries, {order.uid: order for order in orders}
        is_new = any(uid not in entries and order.phase not in FINAL_PHASES for uid, order in present.items())
        is_stored = self.witness.sighting == self.ledger.policy_sighting
        return (
            is_new
            or not is_stored
            or any(uid not in present or not entry.ended or entry.gives_back for uid, entry in entries.items())
        )

    def _read_orders(self, now: float) -> tuple[OrderObject, ...] | None:
        """Returns the orders; None while it is not certain that there are none. Raises KubeFault."""
        if self._listed_at is None:
            self.witness.sighting = self.ledger.policy_sighting
        listed = self.source.list_orders(self.ledger.entries.keys())
        self._listed_at = now
        if listed.is_served:
            self._unserved_since = None
            # After the list: what is listed was created before this reading.
            try:
                reading = self.source.read_author_policy()
            except KubeFault as error:
                self.witness.reading_failed(str(error))
            else:
                self.witness.observe_reading(reading, listed.newest, now)
            return listed.orders
        # An API server that starts may not serve a kind yet whose objects exist.
        self._unserved_since = now if self._unserved_since is None else self._unserved_since
        return () if now - self._unserved_since > UNSERVED_SECONDS or not self.ledger.entries else None

    def begun_nodes(self) -> frozenset[str]:
        """Returns the nodes of orders that this leader has observed and that their pools let begin: a drain of the
        compactor's own wish on them ends. An order that waits for a window ends none."""
        return frozenset(
            name
            for uid, entry in self.ledger.entries.items()
            if not entry.ended and (progress := self._progress.get(uid)) is not None and not progress.is_waiting
            for name in entry.nodes
        )

    # ── a round ──────────────────────────────────────────────────────────
    def run_round(self, view: ClusterView, active: ActiveDrains, now: float) -> None:
        """Makes the next writes of all orders. Raises ActuatorUnavailable after all orders were tried."""
        self.problem = ""
        try:
            orders = self._read_orders(now)
        except KubeFault as error:
            self.problem = f"DrainOrders cannot be read: {error}"
            return
        if orders is None:
            return
        self.ledger.save_changes()
        self.ledger.store_sighting(self.witness.sighting)
        self.source.begin_round()
        collector, present = ErrorCollector(), {order.uid for order in orders}
        self._progress = {uid: progress for uid, progress in self._progress.items() if uid in present}
        released = _unknown_orders(view, self.ledger.entries)
        with collector.collect_errors():
            self._run_guarded(partial(self._tidy_annotations, view), "annotations")
        for uid, entry in list(self.ledger.entries.items()):
            if uid not in present:
                with collector.collect_errors():
                    self._run_guarded(partial(self._forget_order, uid, entry, view), entry.name)
        entries = self.ledger.entries
        # The view still shows the annotations that were removed in this round.
        new = [
            order
            for order in orders
            if order.uid not in entries and order.phase not in FINAL_PHASES and order.uid not in released
        ]
        considered = self._choose_new(new) | entries.keys()
        for order in orders:
            if order.uid not in entries and order.phase in FINAL_PHASES and order.status.cordoned:
                # Its state was lost, and with it the cordons.
                self._write_status(order, change(order.status, cordoned=_count_cordons(view, order.uid)))
        self.orders_in_progress = {
            order.uid: (order.phase, order.created)
            for order in orders
            if order.uid in entries or order.phase not in FINAL_PHASES
        }
        for order in (order for order in orders if order.uid in considered):
            # What the orders before have evicted in this round counts.
            evicted_uids = view.evicted_uids | self.drainer.evicted_at.keys()
            current = replace(view, evicted_uids=evicted_uids)
            with collector.collect_errors():
                self._run_guarded(partial(self._try_order, order, current, active, now), order.name)
        self.has_orders = self._has_work(orders)
        collector.raise_error()

    def _run_guarded(self, do: Callable[[], None], about: str) -> None:
        """Does this part of the round. An unexpected error is counted, and does not prevent the others."""
        outcome = self.drainer.error_guard.run_guarded("orders", do, about=about)
        self.problem = outcome.error if isinstance(outcome, Failed) else self.problem

    def _forget_order(self, uid: str, entry: OrderEntry, view: ClusterView) -> None:
        if self._release_order(uid, f"DrainOrder {entry.name} was deleted", view):
            self.ledger.store_entry(uid, None)

    def _choose_new(self, new: Sequence[OrderObject]) -> set[str]:
        """Returns the uids of the orders that are considered in this round, in turns: an order that waits for another
        one keeps none waiting."""
        start = next((number for number, order in enumerate(new) if _rank(order) > self._considered_last), 0)
        chosen = [*new[start:], *new[:start]][:MAX_NEW_ORDERS]
        if chosen:
            self._considered_last = _rank(chosen[-1])
        return {order.uid for order in chosen}

    def _try_order(self, order: OrderObject, view: ClusterView, active: ActiveDrains, now: float) -> None:
        try:
            self._run_order(order, view, active, now)
        except KubeFault as error:
            self.problem = f"DrainOrder {order.name}: {error}"

    def _run_order(self, order: OrderObject, view: ClusterView, active: ActiveDrains, now: float) -> None:
        entry = self.ledger.entries.get(order.uid)
        if entry is None:
            outcome = self.acceptance.accept_order(order, view)
            if isinstance(outcome, Reason):
                self._tell_refusal(order, outcome, view)
                return
            entry = outcome
        if entry.ended:
            if entry.gives_back and self._release_order(order.uid, f"DrainOrder {order.name} has ended", view):
                self.ledger.store_entry(order.uid, change(entry, gives_back=False))
            self._write_status(order, ended_status(order, entry, _count_cordons(view, order.uid), view.now))
            return
        status = self._progress_of(order).continue_order(order, entry, view, active, now)
        if status is not None:
            self._write_status(order, status)

    def _tell_refusal(self, order: OrderObject, reason: Reason, view: ClusterView) -> None:
        if reason.code in LATER:
            self._write_status(order, waiting_status(order, reason, view.now))
            return
        self._write_status(order, refused_status(order, reason, view.now))
        self.source.report_event(order, reason, is_warning=True)

    def _progress_of(self, order: OrderObject) -> OrderProgress:
        if order.uid not in self._progress:
            self._progress[order.uid] = OrderProgress(
                uid=order.uid,
                source=self.source,
                ledger=self.ledger,
                acceptance=self.acceptance,
                drainer=self.drainer,
                log=self.log,
                namespace=self.namespace,
                elapsed=self.elapsed,
                readmit=self.readmit,
                overrides=list(order.status.overrides),
            )
        return self._progress[order.uid]

    # ── nodes ────────────────────────────────────────────────────────────
    def _tidy_annotations(self, view: ClusterView) -> None:
        """Removes the annotations of orders that the state does not know, and those of nodes that another client has
        uncordoned: a later cordon of that client is not the order's. Signs with the new key what the previous one has
        signed, and corrects times of a clock that was ahead."""
        collector, entries = ErrorCollector(), self.ledger.entries
        for name, note in view.annotations.ordered.items():
            node, entry = view.find_node(name), entries.get(note.order.order) if note.order is not None else None
            assert node is not None
            with collector.collect_errors():
                if entry is None or entry.nodes.get(name) != node.uid:
                    self._release_node(node, note, "the compactor's state does not know its order", view)
                elif not node.is_cordoned:
                    self.drainer.actuator.release_node(name, view.versions[name], uncordon=False)
                elif name in view.annotations.outdated or is_ahead(note, view.now):
                    corrected = clamp_to_now(note, view.now)
                    self.drainer.actuator.cordon_node(node, view.versions[name], corrected)
        collector.raise_error()

    def _release_order(self, uid: str, why: str, view: ClusterView) -> bool:
        """Releases the nodes of an order. Returns whether none of them has its annotation any more."""
        collector, is_released = ErrorCollector(), True
        for name, note in view.annotations.ordered.items():
            node = view.find_node(name)
            assert node is not None
            # A node that is being deleted keeps its annotation.
            if note.order is not None and note.order.order == uid and node.removal_taint is None:
                is_released = False
                with collector.collect_errors():
                    self._release_node(node, note, why, view)
        collector.raise_error()
        return is_released

    def _release_node(self, node: NodeInfo, note: DrainAnnotation, why: str, view: ClusterView) -> None:
        # Pods would be scheduled on a node that is being deleted if it were uncordoned.
        if node.removal_taint is not None:
            return
        was_cordoned = note.order is not None and note.order.was_cordoned
        uncordon = node.is_cordoned and not was_cordoned
        effect = f"node {node.name} is uncordoned"
        if was_cordoned and node.is_cordoned:
            effect = f"node {node.name} stays cordoned, because another client had cordoned it before the order"
        elif not node.is_cordoned:
            effect = f"the annotation of the order is removed from node {node.name}, which is not cordoned any more"
        self.drainer.actuator.release_node(node.name, view.versions[node.name], uncordon=uncordon)
        self.drainer.pool_states.record_decision(
            "released", o.RELEASED(f"{why}: {effect}"), pool=note.pool, at=view.now, node=node.name
        )

    def _write_status(self, order: OrderObject, status: OrderStatus) -> None:
        if order.uid in self.orders_in_progress:
            self.orders_in_progress[order.uid] = status.phase, order.created
        if not differs(order, status):
            return
        try:
            self.source.write_status(order, status)
        except KubeFault as error:
            self.log.warning("order.status-not-written", order=order.name, error=str(error))


def _count_cordons(view: ClusterView, uid: str) -> int:
    """Returns how many nodes are cordoned for the order."""
    return sum(
        note.order is not None
        and note.order.order == uid
        and (node := view.find_node(name)) is not None
        and node.is_cordoned
        for name, note in view.annotations.ordered.items()
    )


def _rank(order: OrderObject) -> tuple[Seconds, str]:
    return order.created, order.name


def _unknown_orders(view: ClusterView, entries: Mapping[str, OrderEntry]) -> frozenset[str]:
    """Returns the uids of orders that have annotations, which are removed in this round, and no entry."""
    return frozenset(
        note.order.order
        for name, note in view.annotations.ordered.items()
        if note.order is not None
        and note.order.order not in entries
        and (node := view.find_node(name)) is not None
        and node.removal_taint is None
    )
