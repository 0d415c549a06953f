"""The writes of an order, and how an order is released.

All evictions of orders go through `evict_for_order`: when the eviction request API of Kubernetes (EvictionRequest) is
served, this is the function that changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.core import Taint
from trimtab.cluster.node import NodeInfo, node_from_api
from trimtab.compaction.drain.actions import SetReplicas
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compaction.order.record import (
    ORDER_ANNOTATION,
    ORDER_MANAGER,
    OrderRecord,
    encode_record,
    is_own_cordon,
    order_of_taint,
    order_taint,
    owns_count,
)
from trimtab.kube import autoscalers, decode, evict, nodes
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse, NotFound
from trimtab.kube.evict import EvictionOutcome
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, object_path


def order_writer(client: Client) -> Writer:
    """Returns the writer of orders. Its field manager is how a node proves who cordoned it."""
    return Writer(client=client, manager=ORDER_MANAGER)


def evict_for_order(writer: Writer, move: PodToEvict) -> EvictionOutcome:
    """Evicts the pod with its own grace period, and returns the outcome. Raises KubeFault."""
    namespace, _, name = move.pod.partition("/")
    return evict.evict(writer, namespace, name, move.uid)


def cordon_for_order(writer: Writer, node: NodeInfo, version: str, record: OrderRecord) -> None:
    """Cordons the node and writes the record in one patch. A node that is cordoned already keeps that cordon, so that
    its author remains the owner of the field. Raises KubeFault."""
    annotations = {ORDER_ANNOTATION: encode_record(record)}
    if node.is_cordoned:
        nodes.annotate(writer, node.name, version, annotations)
    else:
        nodes.cordon(writer, node.name, version, annotations)


def write_record(writer: Writer, node: str, version: str, record: OrderRecord) -> None:
    """Writes the record of a node. Raises KubeFault."""
    nodes.annotate(writer, node, version, {ORDER_ANNOTATION: encode_record(record)})


def discourage_successors(writer: Writer, node: NodeInfo, version: str, order: str) -> None:
    """Puts the soft taint of the order on the node. Raises KubeFault."""
    nodes.set_taints(writer, node.name, version, (*without_order_taints(node.taints), order_taint(order)))


def without_order_taints(taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """Returns the taints without those of orders."""
    return tuple(taint for taint in taints if not order_of_taint(taint))


def change_count(writer: Writer, step: SetReplicas) -> bool:
    """Gives a Deployment more pods for a while, itself or by its HorizontalPodAutoscaler, or sets it back. Returns
    False if the present number is not the expected one, or if the object does not prove that an order set the number
    that is to be set back. Raises KubeFault."""
    kind = "HorizontalPodAutoscaler" if step.autoscaler else "Deployment"
    namespace, _, name = (step.autoscaler or step.deployment).partition("/")
    if step.replicas < step.before:
        # A record alone proves nothing: any client that may patch the node can write one.
        doing = f"read {kind} {namespace}/{name}"
        try:
            body = writer.client.get(object_path(LIST_SOURCES[kind], namespace, name), doing=doing)
        except NotFound:
            return False
        managed = decode_as(body, _ManagedObject, doing).metadata.managed_fields
        if not owns_count(managed, "minReplicas" if step.autoscaler else "replicas"):
            return False
    if step.autoscaler:
        return autoscalers.set_min_replicas(writer, namespace, name, before=step.before, minimum=step.replicas)
    return nodes.scale_workload(writer, kind, namespace, name, before=step.before, replicas=step.replicas)


@dataclass(frozen=True, slots=True)
class CordonedNode:
    """A node as it was read once: what it is, and what it says about the author of its cordon."""

    node: NodeInfo
    version: str
    managed_fields: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_own_cordon(self) -> bool:
        """Whether the node is cordoned, and proves that an order cordoned it."""
        return is_own_cordon(self.node, self.managed_fields)


class _ManagedMetadata(msgspec.Struct, rename="camel"):
    managed_fields: list[dict[str, Any]] = []


class _ManagedObject(msgspec.Struct):
    metadata: _ManagedMetadata = msgspec.field(default_factory=_ManagedMetadata)


def read_cordoned_node(client: Client, name: str) -> CordonedNode:
    """Returns the node with the managed fields of the same version. Raises KubeFault."""
    doing = f"read Node {name}"
    body = client.get(object_path(LIST_SOURCES["Node"], "", name), doing=doing)
    item = decode.decode_item("Node", msgspec.Raw(body))
    if not isinstance(item, NodeShape):
        raise InvalidResponse(f"{doing}: the object cannot be decoded")
    managed = decode_as(body, _ManagedObject, doing).metadata.managed_fields
    return CordonedNode(node_from_api(item), item.metadata.resource_version, tuple(managed))


def remove_order_taints(writer: Writer, cordoned: CordonedNode) -> None:
    """Removes the soft taints of orders from the node. Raises KubeFault; Conflict if the node has changed since it was
    read."""
    node = cordoned.node
    nodes.set_taints(writer, node.name, cordoned.version, without_order_taints(node.taints))


def release_from_order(writer: Writer, cordoned: CordonedNode) -> bool:
    """Removes the record and the soft taint of orders, and uncordons the node if the node itself proves that an order
    cordoned it. Returns whether it was uncordoned. Raises KubeFault; Conflict if the node has changed since it was
    read."""
    node = cordoned.node
    rest = without_order_taints(node.taints)
    nodes.reopen_node(
        writer,
        node.name,
        cordoned.version,
        uncordon=cordoned.is_own_cordon,
        annotations=(ORDER_ANNOTATION,) if ORDER_ANNOTATION in node.annotations else (),
        taints=rest if len(rest) < len(node.taints) else None,
    )
    return cordoned.is_own_cordon
