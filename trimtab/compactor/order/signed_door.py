"""The writes of a DrainOrder: with the account of the compactor, in signed annotations, and counted in its ledger.

An order's records are the compactor's own annotations (`trimtab.dev/cordoned-for`). The state of the pool `ORDERS` is
their second witness, and knows the order before its first node is cordoned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.actions import SetReplicas
from trimtab.compaction.drain.annotation import DrainAnnotation, OrderMark, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.record import OrderRecord
from trimtab.compaction.terms.term_obstacles import counted_workload
from trimtab.compactor.actuator import EvictionResult
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.reasons import EVICTED
from trimtab.kube.evict import EvictionOutcome, EvictionStatus


def record_of(
    note: DrainAnnotation, since: Seconds, nodes: tuple[str, ...], by: str = "", why: str = ""
) -> OrderRecord:
    """Returns the record of an order that an annotation stands for."""
    assert note.order is not None
    return OrderRecord(
        order=note.order.order,
        since=since,
        by=by,
        why=why,
        nodes=nodes,
        was_cordoned=note.order.was_cordoned,
        # Without the pool: what its settings protect, an order may be permitted to evict.
        drain=None if note.order.waits else change(note, pool=""),
    )


def note_of(record: OrderRecord, node: NodeInfo, pool: str, home: str, now: Seconds) -> DrainAnnotation:
    """Returns the annotation of a node of an order.

    pool: the pool whose limits the drain counts towards. home: the compactor's namespace."""
    mark = OrderMark(order=record.order, waits=record.drain is None, was_cordoned=record.was_cordoned)
    name = hashlib.sha256(f"{record.order}\0{node.uid}".encode()).hexdigest()[:10]
    drain = record.drain or DrainAnnotation(drain=name, pool=pool, since=now)
    return change(drain, drain=name, pool=pool, home=home, surges={}, extras={}, floors={}, surged={}, order=mark)


@dataclass(frozen=True, slots=True)
class SignedDoor:
    """Makes the writes of one DrainOrder in one round."""

    drainer: Drainer
    """The drains of the compactor's own wish, which share budgets and limits with the order."""
    leave_node_out: Callable[[str], None]
    """Stores that the order leaves the node out."""
    home: str
    view: ClusterView
    pool_of: Mapping[str, str]
    """Node → the pool whose limits its drain counts towards."""
    elapsed: Callable[[], float]

    def cordon_node(self, node: NodeInfo, version: str, record: OrderRecord) -> None:
        self.write_record(node, version, record)
        why = f" ({record.why})" if record.why else ""
        self._record("ordered", o.ORDERED(f"node {node.name} is cordoned for an order of {record.by}{why}"), node.name)

    def write_record(self, node: NodeInfo, version: str, record: OrderRecord) -> None:
        note = note_of(record, node, self.pool_of[node.name], self.home, self.view.now)
        self.drainer.actuator.cordon_node(node, version, note)

    def leave_out(self, node: NodeInfo, version: str, order: str) -> bool:
        self.leave_node_out(node.name)
        return False

    def evict_pod(self, move: PodToEvict, node: str) -> EvictionOutcome:
        states, pool = self.drainer.pool_states, self.pool_of[node]
        before = states.state_of(pool)
        pod = next((one for one in self.view.inventory.pods if one.uid == move.uid), None)
        if pod is not None and (workload := counted_workload(pod)):
            # Before the eviction: if the process is killed in between, one eviction is counted too many, not too few.
            states.set_state(pool, before.with_disruption(workload, self.view.now))
            states.save_states((pool,))
        answer = self.drainer.actuator.evict_pod(move)
        if answer.became is EvictionResult.EVICTED:
            self.drainer.evicted_at[move.uid] = self.elapsed()
            states.set_state(pool, states.state_of(pool).with_eviction(self.view.now))
            self._record("evicted", EVICTED(f"pod {move.pod} was evicted to drain node {node}"), node, move)
            return EvictionOutcome(eviction_status=EvictionStatus.EVICTED)
        states.set_state(pool, before)
        status = EvictionStatus.NO_ROOM
        if answer.became is EvictionResult.NEVER:
            status = EvictionStatus.TWO_BUDGETS
        elif answer.is_denied:
            status = EvictionStatus.DENIED
        elif answer.retry_after is not None:
            status = EvictionStatus.WAIT
        return EvictionOutcome(eviction_status=status, message=answer.message, retry_after=answer.retry_after)

    def change_count(self, step: SetReplicas) -> bool:
        # The rules of a DrainOrder permit no additional pods.
        return False

    def may_evict(self, move: PodToEvict) -> bool:
        # The compactor's own role permits evictions everywhere. The author's permissions were asked before.
        return True

    def _record(self, what: str, reason: Reason, node: str, move: PodToEvict | None = None) -> None:
        pod, owner = (move.pod, f"{move.kind}/{move.owner}" if move.owner else "") if move is not None else ("", "")
        self.drainer.pool_states.record_decision(
            what, reason, pool=self.pool_of[node], at=self.view.now, node=node, pod=pod, owner=owner
        )
