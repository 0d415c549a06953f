"""The next writes of one accepted DrainOrder: what its pools permit, what its author may do, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec.structs import replace as change

from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import NotYet, Reason, Unreadable
from trimtab.cluster.timestamps import parse_duration, parse_timestamp
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.order_entry import ORDERS, OrderEntry
from trimtab.compaction.drain.start import ActiveDrains
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.next_round import drains_of
from trimtab.compaction.order.node_history import OrderNodeHistory
from trimtab.compaction.order.order_limits import (
    PoolPace,
    closed_window_reasons,
    keep_reasons,
    mode_reason,
    permit_writes,
)
from trimtab.compaction.order.order_object import OrderObject, OrderSpec, OrderStatus, Override
from trimtab.compaction.order.order_round import CordonForOrder, DrainOrder, OrderRound, WriteRecord
from trimtab.compaction.order.order_status import progress_status
from trimtab.compaction.order.record import OrderRecord, read_record
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.order.order_acceptance import (
    MAX_AGE_TEXT,
    OrderAcceptance,
    evictable_pods,
    is_too_old,
    namespaces_on,
)
from trimtab.compactor.order.order_ledger import OrderLedger
from trimtab.compactor.order.order_reader import OrderView
from trimtab.compactor.order.order_source import OrderSource
from trimtab.compactor.order.order_steps import OrderEvent, OrderSteps
from trimtab.compactor.order.signed_door import SignedDoor, record_of
from trimtab.runtime.log import Logger
from trimtab.scheduling.cluster_model import Again

MAX_STOP_TEXT = 2000
STOPPING_CODES = {code.name: code for code in (o.AUTHOR_MAY_NOT, o.CHANGED_ORDER, o.TOO_OLD)}
"""The codes for which an order stops and is not continued."""
RELEASING_CODES = (o.AUTHOR_MAY_NOT, o.TOO_OLD)
"""The codes with which an order ends and its nodes are released: its author has no right, or none that is certain, to
keep them cordoned."""
REVIEW_SECONDS = 30.0
"""How often it is asked what the author may do while an order writes nothing."""


@dataclass(slots=True)
class OrderProgress:
    """Carries out one accepted order, round by round. It keeps nothing that the order could not lose."""

    uid: str
    source: OrderSource
    ledger: OrderLedger
    acceptance: OrderAcceptance
    drainer: Drainer
    log: Logger
    namespace: str
    elapsed: Callable[[], float]
    readmit: Callable[[], Again | NotYet | None]
    steps: OrderSteps | None = None
    overrides: list[str] = field(default_factory=list)
    """What the order has disregarded of the settings of pools."""
    is_waiting: bool = True
    """Whether the order has nothing cordoned yet, and its pools do not let it begin now."""
    reviewed_at: float | None = None
    """When it was last asked what the author may do, by the monotonic clock."""

    def continue_order(
        self, order: OrderObject, entry: OrderEntry, view: ClusterView, active: ActiveDrains, now: float
    ) -> OrderStatus | None:
        """Makes the next writes of the order, and returns its status; None while its last writes are not observed.
        `now` is the monotonic time of the view. Raises ActuatorUnavailable."""
        if isinstance(order.spec, Unreadable) or order.spec.digest != entry.digest:
            entry = self._stop_order(entry, o.CHANGED_ORDER(f"the spec of DrainOrder {order.name} has changed"))
        spec = order.spec if isinstance(order.spec, OrderSpec) else OrderSpec(by="unknown")
        notes = _notes_of(view, order.uid, entry)
        steps = self._prepare_steps(order, spec, entry, view, notes)
        steps.is_stopping = lambda: not self.drainer.steps.may_begin(now)
        records = {
            name: record_of(note, entry.since, tuple(entry.nodes), spec.by, spec.why) for name, note in notes.items()
        }
        observed = OrderView(_view_of_order(view, records), records)
        if steps.has_unobserved_writes(observed):
            return None
        if (lost := self._lost_belief(order, spec, entry, view, records)) is not None:
            entry = self._stop_order(entry, lost)
            self.source.report_event(order, lost, is_warning=True)
        stop, hold = _stop_reason(entry), None
        if stop is None and not steps.is_past_deadline():
            hold = self._hold_reason(order, spec, entry, view, records)
        self.is_waiting = hold is not None and hold.code is not o.WAITS_FOR_COMPACTOR and not records
        steps.foreign_pods = self._foreign_pods(spec, entry, view) if stop is None and hold is None else {}
        # What unsigned marks on its nodes say keeps a signed order from none of them.
        round_ = steps.decide(observed, stop or hold, entry.nodes)
        if stop is None and hold is None:
            self._limit_round(order, spec, view, active, observed, round_)
            problem = self._rights_problem(spec, round_, view)
            if problem is not None:
                hold = problem if problem.code is o.RIGHTS_UNKNOWN else None
                if hold is None:
                    entry = self._stop_order(entry, problem)
                    self.source.report_event(order, problem, is_warning=True)
                round_ = steps.decide(observed, problem, entry.nodes)
        self.ledger.store_entry(self.uid, _with_history(entry, steps.history))
        steps.carry_out(observed, round_)
        entry = self.ledger.entries[self.uid]
        if round_.is_over and hold is None:
            entry = self._end_order(order, entry, round_)
        return progress_status(order, entry, round_, steps.last_plan, hold, self.overrides, view.now)

    def _stop_order(self, entry: OrderEntry, reason: Reason) -> OrderEntry:
        """Stores that nothing new is begun from now on, and returns the entry."""
        entry = change(entry, stop=reason.code.name, stop_why=reason.sentence[:MAX_STOP_TEXT])
        self.ledger.store_entry(self.uid, entry)
        return entry

    def _lost_belief(
        self,
        order: OrderObject,
        spec: OrderSpec,
        entry: OrderEntry,
        view: ClusterView,
        records: Mapping[str, OrderRecord],
    ) -> Reason | None:
        """Returns why the order is not continued in the name of its author any more: it is too old, or the author has
        lost a permission. That is asked from time to time also while the order writes nothing, because nodes are
        cordoned for it."""
        if entry.stop:
            return None
        if is_too_old(order, view.now):
            return o.TOO_OLD(f"the order is older than {MAX_AGE_TEXT}")
        now = self.elapsed()
        if not records or (self.reviewed_at is not None and now - self.reviewed_at < REVIEW_SECONDS):
            return None
        self.reviewed_at = now
        namespaces = namespaces_on(view, records) & frozenset(entry.namespaces)
        problem = self.source.rights_problem(spec, records, namespaces, reads=False)
        return problem if problem is not None and problem.code is o.AUTHOR_MAY_NOT else None

    def _foreign_pods(self, spec: OrderSpec, entry: OrderEntry, view: ClusterView) -> dict[str, Reason]:
        """Returns uid → reason, for the pods on nodes of the order that its author may not evict, in namespaces that
        the order did not have when it was accepted. Any user can bring such a pod to a node (`spec.nodeName`, a
        toleration of cordoned nodes): it must not end the order."""
        left = {name for name in entry.nodes if name not in entry.skipped}
        pods = [pod for pod in evictable_pods(view, left) if pod.namespace not in entry.namespaces]
        may_not = {
            namespace
            for namespace in {pod.namespace for pod in pods}
            if (problem := self.source.rights_problem(spec, (), (namespace,), reads=False)) is not None
            and problem.code is o.AUTHOR_MAY_NOT
        }
        return {
            pod.uid: o.FOREIGN_POD(
                f"{spec.by} may not evict pods in namespace {pod.namespace}, so pod {pod.key} keeps node {pod.node} "
                "from being emptied"
            )
            for pod in pods
            if pod.namespace in may_not
        }

    def _hold_reason(
        self,
        order: OrderObject,
        spec: OrderSpec,
        entry: OrderEntry,
        view: ClusterView,
        records: Mapping[str, OrderRecord],
    ) -> Reason | None:
        """Returns why the order waits now, or None."""
        if (reason := self.acceptance.pause_reason(view)) is not None:
            return reason
        if isinstance(lookup := self.readmit(), NotYet):
            return o.UNSEEN(f"{lookup}")
        for name in entry.nodes:
            if name not in entry.recorded and (problem := _annotation_problem(name, view)):
                return o.COMPACTOR_DRAINS(f"{problem}; the order waits until the annotation is removed")
            if name not in records and order_record_on(name, view):
                self._note_overrides(
                    order, [f"node {name} has the record of a drain with `trimtab drain`, which is not signed"]
                )
        nodes = [node for node in view.inventory.nodes if node.name in entry.nodes and node.name not in entry.emptied]
        pools = _pools_of(nodes, view)
        if (reason := mode_reason(pools)) is not None:
            return reason
        for override, reasons in (
            (Override.WINDOWS, closed_window_reasons(pools, view.now)),
            (Override.LIMITS, [] if records else keep_reasons(pools, view.inventory.nodes, entry.nodes)),
        ):
            if reasons and override not in spec.override:
                return reasons[0]
            self._note_overrides(order, [reason.sentence for reason in reasons])
        # Last: as long as the order could not begin anyway, the compactor goes on with its own drain.
        for name in entry.nodes:
            if name in view.annotations.ours:
                return o.WAITS_FOR_COMPACTOR(f"the compactor drains node {name} to save it, and ends that first")
        return None

    def _limit_round(
        self,
        order: OrderObject,
        spec: OrderSpec,
        view: ClusterView,
        active: ActiveDrains,
        observed: OrderView,
        round_: OrderRound,
    ) -> None:
        """Removes the writes for which a pool has no room now from the round."""
        begun = [name for name, record in observed.records.items() if record.drain is not None]
        pool_of = _ledgers(view, observed.records.keys() | {name for name, _ in round_.writes})
        notes = view.annotations.ordered
        pool_of |= {name: notes[name].pool for name in observed.records}
        permitted = permit_writes(round_.writes, pool_of, self._pool_uses(view, active), begun, spec.override)
        round_.writes = permitted.writes
        round_.waits.update(permitted.waits)
        self._note_overrides(order, permitted.overrides)

    def _rights_problem(self, spec: OrderSpec, round_: OrderRound, view: ClusterView) -> Reason | None:
        """Asks what the author may do, before each write that changes something for others: each pod that is evicted
        is in a namespace that this review covers."""
        nodes, namespaces = set[str](), set[str]()
        for name, write in round_.writes:
            if isinstance(write, a.Evict):
                namespaces.add(write.move.namespace)
            elif isinstance(write, CordonForOrder):
                namespaces |= namespaces_on(view, [name])
            elif isinstance(write, WriteRecord) and write.record.drain is not None:
                namespaces |= {move.namespace for move in write.record.drain.moves}
            nodes.add(name)
        return self.source.rights_problem(spec, nodes, namespaces, reads=False) if nodes else None

    def _end_order(self, order: OrderObject, entry: OrderEntry, round_: OrderRound) -> OrderEntry:
        """Stores why the order has ended, and returns the entry."""
        if round_.is_done:
            reason = o.COMPLETE(f"{format_count(len(entry.nodes), 'node')}: all are empty or gone")
        else:
            first = round_.stop or next(iter(round_.failures.values()), None)
            reason = first or o.STAYS("not all nodes could be emptied")
        plan = self.steps.last_plan if self.steps is not None else None
        text = reason.sentence
        if plan is not None and plan.missing and not round_.cordoned and not round_.is_done:
            text = f"{text}; room is missing for {format_count(plan.missing.get('pods', 0), 'pod')}"
        entry = entry.end(reason.code.name, text, succeeded=round_.is_done, gives_back=reason.code in RELEASING_CODES)
        self.ledger.store_entry(self.uid, entry)
        self.source.report_event(order, reason, is_warning=not round_.is_done)
        return entry

    def _prepare_steps(
        self,
        order: OrderObject,
        spec: OrderSpec,
        entry: OrderEntry,
        view: ClusterView,
        notes: Mapping[str, DrainAnnotation],
    ) -> OrderSteps:
        """Returns the steps of the order, with what the entry and the view say."""
        pool_of = _ledgers(view, entry.nodes) | {name: note.pool for name, note in notes.items()}
        door = SignedDoor(
            drainer=self.drainer,
            leave_node_out=partial(self._leave_out, self.uid),
            home=self.namespace,
            view=view,
            pool_of=pool_of,
            elapsed=self.elapsed,
        )
        if self.steps is None:
            self.steps = OrderSteps(
                order=_drain_order(order.uid, spec, entry),
                door=door,
                timeouts=spec.timeouts,
                report=partial(self._log_event, order.name),
                now=lambda: view.now,
                elapsed=self.elapsed,
            )
        steps, lookup = self.steps, self.readmit()
        # The time of acceptance is corrected when a clock was ahead.
        steps.order = _drain_order(order.uid, spec, entry)
        steps.door, steps.now = door, lambda: view.now
        steps.readmitted_requests = None if isinstance(lookup, NotYet) else lookup
        steps.history = {
            name: OrderNodeHistory(
                uid=uid,
                had_record=name in entry.recorded,
                was_emptied=name in entry.emptied,
                was_skipped=name in entry.skipped,
            )
            for name, uid in entry.nodes.items()
        }
        return steps

    def _leave_out(self, uid: str, node: str) -> None:
        entry = self.ledger.entries[uid]
        self.ledger.store_entry(uid, change(entry, skipped=(*entry.skipped, node)))

    def _log_event(self, name: str, event: OrderEvent) -> None:
        why = event.reason.sentence if event.reason is not None else event.text
        self.log.info(f"order.{event.what}", order=name, node=event.node, pod=event.pod, why=why)

    def _note_overrides(self, order: OrderObject, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self.overrides:
                self.overrides.append(text)
                self.source.report_event(order, o.OVERRIDES(f"the order disregards that {text}"), is_warning=True)

    def _pool_uses(self, view: ClusterView, active: ActiveDrains) -> dict[str, PoolPace]:
        begun = [
            note.pool
            for note in view.annotations.ordered.values()
            if note.order is not None and not note.order.waits and note.emptied is None
        ]
        own = [pool for node, pool in active.emptying.items() if node not in view.annotations.ordered]
        uses = {}
        for pool in view.pools:
            observations = self.ledger.pool_states.state_of(pool.name).to_observations({})
            draining = sum(name == pool.name for name in (*begun, *own))
            uses[pool.name] = PoolPace(pool, draining, observations.recent_evictions(view.now))
        return uses


def _drain_order(uid: str, spec: OrderSpec, entry: OrderEntry) -> DrainOrder:
    timeout = parse_duration(spec.timeout) if spec.timeout else None
    return DrainOrder(
        name=uid,
        nodes=tuple(entry.nodes),
        since=entry.since,
        by=spec.by,
        why=spec.why,
        rules=spec.rules,
        until=parse_timestamp(spec.until),
        deadline=None if timeout is None else entry.since + timeout,
        is_signed=True,
    )


def _stop_reason(entry: OrderEntry) -> Reason | None:
    """Returns why nothing new is begun any more; None if the order goes on."""
    code = STOPPING_CODES.get(entry.stop)
    return code(entry.stop_why) if code is not None else None


def _ledgers(view: ClusterView, names: Collection[str]) -> dict[str, str]:
    """Returns node → the pool whose limits its drain counts towards; `ORDERS` for a node that belongs to no pool."""
    index = PoolIndex(view.pools)
    return {
        node.name: pool.name if (pool := index.first_pool_of(node)) is not None else ORDERS
        for node in view.inventory.nodes
        if node.name in names
    }


def _pools_of(nodes: Iterable[NodeInfo], view: ClusterView) -> list[Pool]:
    index = PoolIndex(view.pools)
    pools = {pool.name: pool for node in nodes if (pool := index.first_pool_of(node)) is not None}
    return list(pools.values())


def _annotation_problem(name: str, view: ClusterView) -> str:
    """Returns why the compactor must not overwrite its annotation on the node: it is of another compactor, or not
    authentic; empty if it may."""
    if (other := view.annotations.others.get(name)) is not None:
        return f"node {name} has the annotation of the compactor of namespace {other}"
    doubt = view.annotations.doubtful.get(name)
    return str(doubt) if doubt is not None else ""


def order_record_on(name: str, view: ClusterView) -> bool:
    """Returns whether the node is cordoned and has the record of an order of `trimtab drain` that has not emptied
    it."""
    node = view.find_node(name)
    if node is None or not node.is_cordoned:
        return False
    record = read_record(node.annotations, name)
    return isinstance(record, OrderRecord) and not record.is_emptied


def _notes_of(view: ClusterView, uid: str, entry: OrderEntry) -> dict[str, DrainAnnotation]:
    """Returns node → its annotation of this order, for the nodes that the entry names too."""
    return {
        name: note
        for name, note in view.annotations.ordered.items()
        if note.order is not None and note.order.order == uid and name in entry.nodes
    }


def _view_of_order(view: ClusterView, records: Mapping[str, OrderRecord]) -> ClusterView:
    """Returns the view in which the drains of the order are the compactor's own, beside those of its own wish."""
    # Without the autoscaler: its rules are for drains that save something.
    drains = DrainAnnotations(ours={**view.annotations.ours, **drains_of(records)})
    return replace(view, annotations=drains, autoscaler=None)


def _with_history(entry: OrderEntry, history: Mapping[str, OrderNodeHistory]) -> OrderEntry:
    recorded = tuple(name for name in entry.nodes if name in history and history[name].had_record)
    emptied = tuple(name for name in entry.nodes if name in history and history[name].was_emptied)
    return change(entry, recorded=recorded, emptied=emptied)
