"""DrainOrders on a cluster that is played: objects, what their authors may do, and the compactor's rounds."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.compaction.order.test_author_policy import stored
from tests.compactor.played import TERMS, Killed, Played, process
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.order_entry import ORDERS, OrderEntry
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.author_policy import PolicyReading
from trimtab.compaction.order.order_object import OrderObject, OrderSpec, OrderStatus, read_order_page
from trimtab.compaction.order.order_status import to_document
from trimtab.compactor.loop import Loop
from trimtab.compactor.order.order_keeper import OrderKeeper
from trimtab.compactor.order.order_source import ListedOrders
from trimtab.kube.errors import KubeFault
from trimtab.runtime import log


@dataclass
class PlayedOrders:
    """The API server's part of DrainOrders. Each process of the compactor reads the same."""

    played: Played
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Uid → object."""
    unproven: bool = False
    """Whether the policy for authors does not exist."""
    policy: tuple[dict[str, Any], dict[str, Any]] = field(default_factory=stored)
    """The policy for authors and its binding."""
    policy_readings: int = 0
    listed: int = 0
    rounds: int = 0
    foreign: set[str] = field(default_factory=set)
    """The namespaces in which no author may evict."""
    lost: dict[str, str] = field(default_factory=dict)
    """Author → what they may not do."""
    blind: set[str] = field(default_factory=set)
    """Authors who may not list nodes and pods."""
    covered: list[set[str]] = field(default_factory=list)
    """The namespaces of each review, in order."""
    silent: bool = False
    """Whether the API server says nothing of rights."""
    broken: bool = False
    """Whether orders cannot be read."""
    unserved: bool = False
    events: list[str] = field(default_factory=list)
    moved_twice: list[str] = field(default_factory=list)
    """Pods that were created on, or bound to, a node that an order empties."""

    def order(self, *nodes: str, uid: str = "u-1", by: str = "ann", **spec: Any) -> str:
        """Creates an order, and returns its uid."""
        metadata = {"name": f"order-{uid}", "uid": uid, "creationTimestamp": format_timestamp(self.played.now)}
        fields = {"by": by, **({"nodes": list(nodes)} if nodes else {}), **spec}
        self.objects[uid] = {"metadata": metadata, "spec": fields}
        return uid

    # ── what the compactor asks ──────────────────────────────────────────
    def list_orders(self, known: Container[str]) -> ListedOrders:
        self.listed += 1
        if self.broken:
            raise KubeFault("list drainorders: no answer")
        if self.unserved:
            return ListedOrders(is_served=False)
        page = read_order_page(json.dumps({"items": list(self.objects.values())}).encode(), known)
        return ListedOrders(tuple(page.orders), page.newest)

    def read_author_policy(self) -> PolicyReading:
        self.policy_readings += 1
        return PolicyReading() if self.unproven else PolicyReading(*self.policy)

    def begin_round(self) -> None:
        self.rounds += 1

    def sight_problem(self, spec: OrderSpec) -> Reason | None:
        return o.AUTHOR_MAY_NOT(f"{spec.by} may not list nodes") if spec.by in self.blind else None

    def rights_problem(
        self, spec: OrderSpec, nodes: Iterable[str], namespaces: Iterable[str], *, reads: bool
    ) -> Reason | None:
        namespaces = set(namespaces)
        self.covered.append(namespaces)
        if foreign := namespaces & self.foreign:
            return o.AUTHOR_MAY_NOT(f"{spec.by} may not create pods/eviction in namespace {min(foreign)}")
        if self.silent:
            return o.RIGHTS_UNKNOWN("no answer")
        return o.AUTHOR_MAY_NOT(f"{spec.by} may not {self.lost[spec.by]}") if spec.by in self.lost else None

    def write_status(self, order: OrderObject, status: OrderStatus) -> None:
        fault = self.played._write(f"status {order.uid}")
        if order.uid in self.objects:
            self.objects[order.uid]["status"] = to_document(status)
        self.played._after(fault, "status")

    def report_event(self, order: OrderObject, reason: Reason, *, is_warning: bool) -> None:
        self.events.append(reason.code.name)

    # ── what stands ──────────────────────────────────────────────────────
    def status(self, uid: str = "u-1") -> dict[str, Any]:
        return dict(self.objects[uid].get("status", {}))

    def phase(self, uid: str = "u-1") -> str:
        return str(self.status(uid).get("phase", ""))

    def entries(self) -> dict[str, OrderEntry]:
        [states] = [self.played.load_states()]
        state = states.get(ORDERS)
        return dict(state.orders) if state is not None and not hasattr(state, "problem") else {}

    def notes(self) -> dict[str, DrainAnnotation]:
        return dict(self.played.look().annotations.ordered)

    # ── time ─────────────────────────────────────────────────────────────
    def loop(self, *, rehearses: bool = False) -> Loop:
        """A fresh process: it knows nothing but what stands in the cluster."""
        loop = process(self.played, TERMS)
        loop.orders = OrderKeeper(
            self,
            loop.drainer,
            log.build_logger("error"),
            "",
            loop.elapsed,
            rehearses=rehearses,
        )
        return loop

    def run(self, rounds: int = 60, loop: Loop | None = None, *, until: str = "") -> Loop:
        """So many rounds, or until the first order is in this phase; a process that dies is followed by a fresh one."""
        loop = loop or self.loop()
        for _ in range(rounds):
            try:
                loop.run_round()
            except Killed:
                loop = self.loop()
            self.tick()
            if until and self.phase() == until:
                break
        return loop

    def tick(self, seconds: int = 2) -> None:
        before = set(self.played.pods)
        self.played.tick(seconds)
        ordered = self.notes()
        for uid, pod in self.played.pods.items():
            if uid not in before and pod["spec"]["nodeName"] in ordered:
                self.moved_twice.append(pod["metadata"]["name"])


def with_own_drain() -> tuple[PlayedOrders, Loop, str]:
    """A cluster in which the compactor has begun a drain of its own: the orders, its loop and the node."""
    orders = PlayedOrders(Played().with_nodes("a", "b", "c").with_app("web", "a", "b", allowed=1))
    loop = orders.loop()
    while not orders.played.noted:
        orders.run(1, loop)
    return orders, loop, orders.played.noted[0]
