"""`trimtab drain --through-compactor`: creates a DrainOrder, and shows what the compactor does until the order ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.order.order_object import (
    FINAL_PHASES,
    GROUP,
    KIND,
    MAX_GROUP_LENGTH,
    MAX_GROUPS,
    VERSION,
    NodeRemark,
    OrderSpec,
    OrderStatus,
    Phase,
)
from trimtab.compactor.order.order_rights import read_own_identity
from trimtab.compactor.order.order_steps import OrderEvent
from trimtab.inputs.command_faults import RuntimeFailure
from trimtab.inputs.leadership import read_leadership
from trimtab.kube import objects
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault, NotFound
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, collection_path

POLL_SECONDS = 1.0
MAX_ERRORS = 30
"""After this many readings in a row that failed, the command ends. The order goes on."""


def create_order(client: Client, namespace: str, name: str, spec: OrderSpec, now: Seconds) -> str:
    """Creates the order in the name of the login, and returns a note on the groups that it does not name; empty if it
    names all. It names at most `MAX_GROUPS`, of at most `MAX_GROUP_LENGTH` characters. Raises RuntimeFailure if no
    compactor would carry it out, and KubeFault."""
    leadership = read_leadership(client, namespace, now)
    if leadership.problem is not None:
        raise RuntimeFailure(f"{leadership.problem}\nWithout --through-compactor, the command drains the nodes itself.")
    identity = read_own_identity(client)
    if not identity.name:
        raise RuntimeFailure("the API server does not say who the login is, so an order cannot name its author")
    groups = tuple(group for group in identity.groups if len(group) <= MAX_GROUP_LENGTH)[:MAX_GROUPS]
    document = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": msgspec.to_builtins(msgspec.structs.replace(spec, by=identity.name, groups=groups)),
    }
    path = collection_path(LIST_SOURCES[KIND], namespace)
    try:
        Writer(client=client).write("POST", path, document, doing=f"create DrainOrder {namespace}/{name}")
    except NotFound as error:
        raise RuntimeFailure(
            f"{error}: the cluster has no DrainOrders, or no namespace {namespace}; `trimtab install --apply` adds them"
        ) from None
    if not (left_out := len(identity.groups) - len(groups)):
        return ""
    return (
        f"The order names {len(groups)} of the login's {format_count(len(identity.groups), 'group')}. Permissions that "
        f"come from the other {left_out} do not count."
    )


@dataclass(slots=True)
class OrderFollower:
    """Shows the status of one order as events, until the order has ended."""

    client: Client
    namespace: str
    name: str
    report: Callable[[OrderEvent], None]
    now: Callable[[], Seconds]
    wait: Callable[[float], None] = time.sleep
    _reported: set[tuple[str, str, str]] = field(default_factory=set)

    def follow(self) -> OrderStatus:
        """Returns the last status. Raises RuntimeFailure if the order was deleted, and KubeFault if it cannot be
        read."""
        errors = 0
        while True:
            try:
                document = objects.get_plain(self.client, KIND, self.name, self.namespace)
                errors = 0
            except KubeFault:
                errors += 1
                if errors >= MAX_ERRORS:
                    raise
                document = {}
            if document is None:
                raise RuntimeFailure(f"DrainOrder {self.namespace}/{self.name} was deleted, so its nodes are released")
            status = msgspec.convert(document.get("status") or {}, OrderStatus)
            self._report_status(status)
            if status.phase in FINAL_PHASES:
                return status
            self.wait(POLL_SECONDS)

    def _report_status(self, status: OrderStatus) -> None:
        if status.since:
            evictions = format_count(sum(step.evictions for step in status.plan), "eviction")
            nodes, waves = format_count(status.nodes, "node"), format_count(status.waves, "wave")
            if status.plan:
                self._report("planned", text=f"order {self.name}: {nodes}, {evictions} in {waves}")
        if status.cordoned:
            self._report("cordoned", text=f"{format_count(status.cordoned, 'node is', 'nodes are')} cordoned")
        for node in status.done:
            self._report("emptied", node, f"node {node} is empty or gone")
        self._report_remarks("waiting", status.waiting)
        self._report_remarks("failed", status.failed)
        for text in status.overrides:
            self._report("waiting", text=f"the order disregards that {text}")
        if status.phase == Phase.WAITING and status.message:
            self._report("waiting", text=status.message)

    def _report_remarks(self, what: str, remarks: Sequence[NodeRemark]) -> None:
        for remark in remarks:
            self._report(what, remark.node, remark.message)

    def _report(self, what: str, node: str = "", text: str = "") -> None:
        if (key := (what, node, text)) not in self._reported:
            self._reported.add(key)
            self.report(OrderEvent(at=self.now(), what=what, node=node, text=text))


def describe_release(namespace: str, name: str) -> str:
    """Returns how the order is ended."""
    return f"`kubectl delete drainorder {name} -n {namespace}` ends it and uncordons its nodes"
