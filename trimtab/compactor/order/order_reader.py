"""Reads the watched objects as one view of the cluster for an order, with the login of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS, snapshot_inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import NotYet
from trimtab.cluster.schedulers import SchedulerPlacement
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.annotation import (
    DrainAnnotation,
    DrainAnnotations,
    NotAuthentic,
    deployment_key,
    read_annotation,
)
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.order.next_round import drains_of
from trimtab.compaction.order.record import OrderRecord, read_record
from trimtab.compactor.cluster_reader import WATCHED_KINDS, iterate_top_owners
from trimtab.compactor.reasons import STALE, UNSEEN
from trimtab.kube.client import Client
from trimtab.kube.informers import ClusterInformers
from trimtab.kube.resources import list_sources
from trimtab.kube.transform import PlannerPodTransform

MAX_AGE_SECONDS = 120.0
"""Data that is older than this many seconds is not acted on. In a quiet cluster it is up to a minute old."""


@dataclass(frozen=True, slots=True)
class OrderView:
    """The cluster at one time, with the records of one order."""

    view: ClusterView
    records: Mapping[str, OrderRecord]
    """Node → its record, for nodes of this order."""


@dataclass(slots=True)
class OrderReader:
    """Reads the watched objects as an `OrderView`."""

    watch: ClusterInformers
    now: Callable[[], Seconds]
    schedulers: Mapping[str, SchedulerPlacement]
    """Scheduler → how it places pods, as the settings of the cluster's pools say."""
    first_read: Seconds | None = None
    """When this process first read the cluster."""

    def read_view(self, order: str, evicted_uids: frozenset[str] = frozenset()) -> OrderView | NotYet:
        """Returns the view of an order; NotYet while the watched data is incomplete or too old.

        evicted_uids: pods that were evicted, and that the watched data may still show unchanged."""
        age = self.watch.oldest_age()
        if not self.watch.is_synced or age is None:
            return NotYet(reason=UNSEEN("the cluster has not been read yet"), have="not all lists", need="all lists")
        problem = next((f"{name}: {error}" for name, error in self.watch.errors_by_list().items()), "")
        if age > MAX_AGE_SECONDS:
            return NotYet(
                reason=STALE("the API server has not answered for too long"),
                have=problem or f"objects of {age:.0f} s ago",
                need=f"objects that are at most {MAX_AGE_SECONDS:g} s old",
            )
        if unreadable := self.watch.unreadable_objects():
            return NotYet(reason=UNSEEN("an object cannot be read"), have=str(unreadable[0]), need="all objects")
        snapshot = self.watch.take_snapshot()
        inventory = replace(
            snapshot_inventory(snapshot, self.watch.values_of("Pod")),
            schedulers=self.schedulers,
            assumed_requests=ASSUMED_REQUESTS,
        )
        records = {
            node.name: record
            for node in inventory.nodes
            if isinstance(record := read_record(node.annotations, node.name), OrderRecord) and record.order == order
        }
        now = self.now()
        self.first_read = now if self.first_read is None else self.first_read
        executed = float(now - self.first_read)
        surging = frozenset(_surging_by_others(inventory.nodes, order))
        inventory = replace(inventory, deployments=replace(inventory.deployments, surging=surging))
        view = ClusterView(
            now=now,
            inventory=inventory,
            top_owners=dict(iterate_top_owners(snapshot)),
            annotations=DrainAnnotations(ours=drains_of(records)),
            versions={shape.metadata.name: shape.metadata.resource_version for shape in snapshot.objects_of(NodeShape)},
            evicted_uids=evicted_uids,
            executed_seconds={record.drain.drain: executed for record in records.values() if record.drain is not None},
        )
        return OrderView(view, records)


def _surging_by_others(nodes: Iterable[NodeInfo], order: str) -> Iterator[OwnerKey]:
    """Yields the Deployments to which other orders, or the compactor, are giving more pods now, as annotations say that
    this login cannot verify: a false one only keeps pods where they are."""
    for node in nodes:
        record = read_record(node.annotations, node.name) if node.is_cordoned else None
        if isinstance(record, OrderRecord) and record.order != order and record.drain and not record.is_emptied:
            yield from map(deployment_key, record.drain.surges)
        annotation = read_annotation(node, None) if node.is_cordoned else None
        claim = annotation.claim if isinstance(annotation, NotAuthentic) else annotation
        if isinstance(claim, DrainAnnotation) and claim.emptied is None:
            yield from map(deployment_key, claim.surges)


def create_order_informers(client: Client) -> ClusterInformers:
    """Returns the informers that an order needs. They store pods in the form that a plan reads."""
    return ClusterInformers(client, list_sources(WATCHED_KINDS), holds={"Pod": PlannerPodTransform()})
