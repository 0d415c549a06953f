"""Reads the records of orders from the nodes, to resume an order or to release its nodes.

The records are not signed: whoever may patch a node can write one. So an order is resumed on the nodes that have its
record, and a node that only the record of another one names must be named on the command line. Nothing is taken from a
record that would permit more than the command line does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import join_first
from trimtab.cluster.node import NodeInfo, node_from_api
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.order.order_plan import wrong_target_reason
from trimtab.compaction.order.record import OrderRecord, order_of_taint, read_record
from trimtab.compactor.order.order_writes import change_count, order_writer, read_cordoned_node, release_from_order
from trimtab.compactor.removed_nodes import AgreedSurge, describe_step
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.live_cluster import ClusterOptions, connect_live
from trimtab.inputs.order_targets import list_wrong_targets
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict, NotFound
from trimtab.kube.listing import list_kinds
from trimtab.kube.resources import LIST_SOURCES

MAX_ATTEMPTS = 5
MAX_NAMED_NODES = 10


@dataclass(frozen=True, slots=True)
class OrderToResume:
    """An order that was stopped."""

    name: str
    since: Seconds
    nodes: tuple[str, ...]
    """The nodes with a record of the order, and those that the command line names."""
    emptied: frozenset[str]
    """The nodes that the order has emptied already."""
    why: str
    """The reason that the user who began it gave."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderedNode:
    """A node with the record of an order, or with its soft taint."""

    node: NodeInfo
    record: OrderRecord | Unreadable | None
    """None if the node has only the taint of an order."""
    uncordons: bool
    """Whether the node itself proves that an order cordoned it, so that it would be uncordoned."""

    def __str__(self) -> str:
        drain = self.record.drain if isinstance(self.record, OrderRecord) and not self.record.is_emptied else None
        surged = sorted(drain.surged) if drain is not None else []
        counts = f"; Deployments with additional pods are set back: {', '.join(surged)}" if surged else ""
        return f"{self.node.name}: {describe_record(self.record)}; {self._outcome()}{counts}"

    def _outcome(self) -> str:
        if self.node.removal_taint is not None:
            return "it is being deleted, so only the record is removed"
        if self.uncordons:
            return "the order cordoned it, so it is uncordoned"
        if self.node.is_cordoned:
            return "another client cordoned it, so it stays cordoned"
        return "it is not cordoned, so only the record is removed"


def read_order_to_resume(cluster: ClusterOptions, names: Sequence[str]) -> OrderToResume:
    """Returns the order to resume: that of the named nodes, or the only one in the cluster. Raises UsageError if there
    is none, or more than one."""
    with connect_live(cluster) as client:
        nodes = _read_nodes(client)
    return choose_order(nodes, names)


def choose_order(nodes: Sequence[NodeInfo], names: Sequence[str]) -> OrderToResume:
    """Returns the order to resume, by the records of these nodes. Raises UsageError as `read_order_to_resume`."""
    nodes_by_name = {node.name: node for node in nodes}
    if unknown := [name for name in names if name not in nodes_by_name]:
        raise UsageError([ConfigError(file="NODE", expected="a node of the cluster", got=name) for name in unknown])
    if mistakes := list(list_wrong_targets(nodes_by_name[name] for name in names)):
        raise UsageError(mistakes)
    readable = {
        node.name: record
        for node in nodes
        if isinstance(record := read_record(node.annotations, node.name), OrderRecord)
    }
    # An order never writes a record on such a node, so another client has written it.
    foreign = sorted(name for name in readable if wrong_target_reason(nodes_by_name[name]))
    records = {name: record for name, record in readable.items() if name not in foreign}
    considered = [records[name] for name in names or records if name in records]
    orders = sorted({record.order for record in considered if names or not _is_finished(record.order, records)})
    if len(orders) != 1:
        got = f"the orders {', '.join(orders)}" if orders else "no node with a record of an order that is not finished"
        raise UsageError([ConfigError(file="--resume", expected="the nodes of one order", got=got)])
    members = {name: record for name, record in records.items() if record.order == orders[0]}
    first = min(members.values(), key=lambda record: record.since)
    chosen = tuple(dict.fromkeys([*members, *names]))
    node_names = [name for record in members.values() for name in record.nodes]
    left_out = sorted({name for name in node_names if name not in chosen and name in nodes_by_name})
    by = f" by {first.by}" if first.by else ""
    why = f" ({first.why})" if first.why else ""
    notes = [f"order {first.order} was begun at {format_timestamp(first.since)}{by}{why}; its record is not signed"]
    if left_out:
        notes.append(
            f"the record also names {join_first(left_out, MAX_NAMED_NODES)}, which have no record themselves: name "
            "them on the command line if they are part of the order"
        )
    notes += [
        f"node {name} has a record of an order and {wrong_target_reason(nodes_by_name[name])}, so it is left out"
        for name in foreign[:MAX_NAMED_NODES]
    ]
    emptied = frozenset(name for name, record in members.items() if record.is_emptied)
    return OrderToResume(first.order, first.since, chosen, emptied, first.why, tuple(notes))


def _is_finished(order: str, records: dict[str, OrderRecord]) -> bool:
    members = [record for record in records.values() if record.order == order]
    return all(record.is_emptied for record in members)


def find_ordered_nodes(client: Client, names: Sequence[str]) -> list[OrderedNode]:
    """Returns the named nodes with the record or the taint of an order; without names, all of them. Raises KubeFault,
    and UsageError if a named node has neither."""
    ordered = []
    for node in _read_nodes(client):
        record = read_record(node.annotations, node.name)
        if names and node.name not in names:
            continue
        if record is not None or any(order_of_taint(taint) for taint in node.taints):
            cordoned = read_cordoned_node(client, node.name)
            record = read_record(cordoned.node.annotations, node.name)
            ordered.append(OrderedNode(cordoned.node, record, cordoned.is_own_cordon))
    present = {each.node.name for each in ordered}
    if missing := [name for name in dict.fromkeys(names) if name not in present]:
        expected = "a node with a record of an order"
        raise UsageError([ConfigError(file="NODE", expected=expected, got=name) for name in missing])
    return ordered


def release_ordered_nodes(client: Client, ordered: Sequence[OrderedNode]) -> Iterator[tuple[OrderedNode, str]]:
    """Undoes the orders on these nodes one by one, and yields each node with the outcome as text. Raises KubeFault."""
    for each in ordered:
        # First: after a failure the next call needs the record.
        counts = list(_undo_surges(client, each.record))
        yield each, "; ".join([f"{each.node.name}: {_release_node(client, each.node.name)}", *counts])


def _undo_surges(client: Client, record: OrderRecord | Unreadable | None) -> Iterator[str]:
    """Sets the counts back that an order has raised, and yields what became of each as text: only where the object
    itself proves that an order set its present count."""
    drain = record.drain if isinstance(record, OrderRecord) and not record.is_emptied else None
    for name in sorted(drain.surged) if drain is not None else ():
        assert drain is not None
        step = AgreedSurge.of_drain(drain, name).undo_step(name)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                is_undone = change_count(order_writer(client), step)
                break
            except Conflict:
                if attempt == MAX_ATTEMPTS:
                    raise
        yield describe_step(step) if is_undone else f"Deployment {name} has a count of its own, which stays"


def _release_node(client: Client, name: str) -> str:
    # The kubelet and controllers write nodes, too: after a conflict the node is read again.
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            uncordoned = release_from_order(order_writer(client), read_cordoned_node(client, name))
        except Conflict:
            if attempt == MAX_ATTEMPTS:
                raise
            continue
        except NotFound:
            return "the node no longer exists"
        return "uncordoned" if uncordoned else "the record was removed, and the cordon was not changed"
    raise AssertionError("unreachable")


def _read_nodes(client: Client) -> list[NodeInfo]:
    shapes = list_kinds(client, (LIST_SOURCES["Node"],)).snapshot.objects_of(NodeShape)
    return [node_from_api(shape) for shape in shapes]


def describe_record(record: OrderRecord | Unreadable | None) -> str:
    """Returns what the record of an order says; None: the node has only the soft taint of an order."""
    if record is None:
        return "soft taint of an order"
    if isinstance(record, Unreadable):
        return "the record of the order cannot be read"
    by = f" by {record.by}" if record.by else ""
    why = f" ({record.why})" if record.why else ""
    state = "empty" if record.is_emptied else "begun" if record.drain is not None else "waits"
    return f"order {record.order} since {format_timestamp(record.since)}{by}{why}, {state}"
