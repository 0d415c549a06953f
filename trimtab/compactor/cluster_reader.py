"""Reads the watched objects as one view of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.cluster_autoscaler import (
    STATUS_NAME,
    STATUS_NAMESPACE,
    UPDATED_ANNOTATION,
    Autoscaler,
    parse_flags,
)
from trimtab.cluster.cluster_autoscaler import parse_status as read_autoscaler
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS, Inventory, snapshot_inventory
from trimtab.cluster.kinds import REPLICA_SET
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.pause_mark import pause_reason_in
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import schedulers_of
from trimtab.cluster.pool_config import PoolReading, read_pools
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.resources import Amounts
from trimtab.cluster.several_autoscalers import join_autoscalers
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.drain.annotation import DrainAnnotations, deployment_key, read_annotations, surging_deployments
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import STATE_LABEL as STATE
from trimtab.compaction.drain.start import limit_pool
from trimtab.compaction.order.record import OrderRecord, read_record
from trimtab.compactor.pool_state_store import config_map_name, reopened_at
from trimtab.compactor.reasons import STALE, UNSEEN
from trimtab.compactor.settings import Settings
from trimtab.kube.informers import ClusterInformers
from trimtab.kube.resources import LIST_SOURCES, ListSource
from trimtab.kube.resources import list_sources as all_of
from trimtab.kube.transform import PlannerPodTransform

WATCHED_KINDS = (
    "Pod",
    "Node",
    "Namespace",
    "PodDisruptionBudget",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "DaemonSet",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "Job",
    "ReplicationController",
    "CapacityBuffer",
    "PodTemplate",
    "ResourceQuota",
    "ResourceClaim",
    "ResourceSlice",
    "DeviceClass",
    "HorizontalPodAutoscaler",
)
"""The kinds of objects that a plan reads, apart from some ConfigMaps."""

ReadUse = Callable[[Iterable[PodInfo]], Mapping[OwnerKey, Amounts]]


@dataclass(slots=True)
class ClusterReader:
    """Reads the watched objects as a `ClusterView`."""

    watch: ClusterInformers
    settings: Settings
    now: Callable[[], Seconds]
    keys: SigningKeys
    read_use: ReadUse = lambda pods: {}
    """Returns owner → the present usage of a pod, for pods that request no cpu or no memory."""
    _reported: dict[str, Autoscaler] = field(default_factory=dict)
    """Name of a status ConfigMap → the last known status of its cluster autoscaler."""

    def read_view(self) -> ClusterView | NotYet:
        """Returns a view of the cluster as it is now; NotYet while the watched data is incomplete or too old."""
        age = self.watch.oldest_age()
        if not self.watch.is_synced or age is None:
            missing = ", ".join(name for name, state in self.watch.health_by_list().items() if not state.synced)
            return NotYet(reason=UNSEEN("the cluster has not been read yet"), have="not " + missing, need="all lists")
        if age > self.settings.max_watch_age_seconds:
            stale = self.settings.max_watch_age_seconds
            return NotYet(
                reason=STALE("the API server has not answered for too long"),
                have=f"objects of {age:.0f} s ago",
                need=f"objects that are at most {stale:g} s old",
            )
        return self._view(self.watch.take_snapshot())

    def reopened_at(self, pool: str) -> int | None:
        """Returns when a user last reopened the pool, or None if no user has."""
        return reopened_at(self._own_config_maps(), pool)

    def has_state(self, pool: str) -> bool:
        """Returns whether the ConfigMap with the pool's state exists."""
        name = config_map_name(pool)
        return any(shape.metadata.name == name for shape in self._own_config_maps())

    def config_map(self, pool: str) -> tuple[str, str] | None:
        """Returns (name, uid) of the ConfigMap with the pool's settings, or None if there is none."""
        for shape in self._own_config_maps():
            if value_or(shape.metadata.labels, {}).get(POOL_LABEL) == pool:
                return shape.metadata.name, shape.metadata.uid
        return None

    def _view(self, snapshot: Snapshot) -> ClusterView:
        inventory = snapshot_inventory(snapshot, self.watch.values_of("Pod"))
        reading = pools_of(self._own_config_maps())
        # Only the pools' settings describe schedulers: any other ConfigMap may be written by a user, who could then
        # have pods moved.
        schedulers = schedulers_of(reading.pools)
        inventory = replace(
            inventory,
            schedulers=schedulers,
            assumed_requests=ASSUMED_REQUESTS,
            measured_use=self.read_use(inventory.pods),
        )
        everywhere = self.settings.rehearse
        annotations = read_annotations(inventory.nodes, self.keys, self.settings.namespace)
        inventory = replace(
            inventory, deployments=replace(inventory.deployments, surging=frozenset(_surging(inventory, annotations)))
        )
        return ClusterView(
            now=self.now(),
            inventory=inventory,
            pools=tuple(
                limit_pool(pool, rehearses=everywhere, scale_namespaces=self.settings.scale_namespaces)
                for pool in reading.pools
            ),
            pool_errors=tuple(str(mistake) for mistake in reading.mistakes),
            autoscaler=self._autoscaler(snapshot),
            top_owners=dict(iterate_top_owners(snapshot)),
            annotations=annotations,
            versions={shape.metadata.name: shape.metadata.resource_version for shape in snapshot.objects_of(NodeShape)},
            namespace=self.settings.namespace,
            paused=self._paused(snapshot),
        )

    def _autoscaler(self, snapshot: Snapshot) -> Autoscaler | None:
        settings = self.settings
        maps, names = snapshot.objects_of(ConfigMap), settings.autoscaler_statuses
        members = []
        for name in names:
            flags = settings.autoscaler_arguments(name)
            reported = read_autoscaler_status(maps, flags, (settings.autoscaler_namespace, name))
            if reported is not None:
                self._reported[name] = reported
            elif settings.require_autoscaler_status:
                reported = silent_autoscaler(self._reported.get(name), self.now(), parse_flags(flags))
            if reported is not None:
                known_as = f"{settings.autoscaler_namespace}/{name}" if len(names) > 1 else ""
                members.append(replace(reported, name=known_as))
        return join_autoscalers(members)

    def _own_config_maps(self) -> tuple[ConfigMap, ...]:
        """Returns the ConfigMaps in the compactor's own namespace; pools can only be defined there."""
        return tuple(
            shape for shape in self.watch.values_of("ConfigMap") if shape.metadata.namespace == self.settings.namespace
        )

    def _paused(self, snapshot: Snapshot) -> str:
        if self.settings.paused:
            return "the setting TRIMTAB_COMPACTOR_PAUSED is set"
        if reason := pause_reason_in(snapshot.objects_of(Namespace), self.settings.namespace):
            return reason
        unreadable = self.watch.unreadable_objects()
        return (
            f"an object cannot be read, so the compactor does not know the state of the cluster: {unreadable[0]}"
            if unreadable
            else ""
        )


def pools_of(shapes: Iterable[ConfigMap]) -> PoolReading:
    """Returns the pools that these ConfigMaps define."""
    documents = [
        Document(
            file="cluster",
            index=number,
            value={
                "kind": "ConfigMap",
                "metadata": {"name": shape.metadata.name, "labels": value_or(shape.metadata.labels, {})},
                "data": shape.data,
            },
        )
        for number, shape in enumerate(sorted(shapes, key=lambda shape: shape.metadata.name))
        if POOL_LABEL in value_or(shape.metadata.labels, {})
    ]
    return read_pools(documents)


def read_autoscaler_status(
    shapes: Iterable[ConfigMap], arguments: Iterable[str], status_key: tuple[str, str] = (STATUS_NAMESPACE, STATUS_NAME)
) -> Autoscaler | None:
    """Returns the state of the cluster autoscaler from its status ConfigMap, whose (namespace, name) is `status_key`.

    If the status cannot be parsed, the autoscaler counts as not healthy. None if there is no such ConfigMap.
    """
    status = next((shape for shape in shapes if (shape.metadata.namespace, shape.metadata.name) == status_key), None)
    if status is None:
        return None
    updated = value_or(status.metadata.annotations, {}).get(UPDATED_ANNOTATION, "")
    reported = read_autoscaler(status.data.get("status", ""), updated, arguments)
    return Autoscaler(healthy=False) if isinstance(reported, Unreadable) else reported


def silent_autoscaler(last: Autoscaler | None, now: Seconds, flags: Mapping[str, str]) -> Autoscaler:
    """Returns the state of a cluster autoscaler that has no status ConfigMap. `last` is its previous state.

    The autoscaler deletes its status when it stops, as in a rolling update. Until its last status would count as
    outdated, the autoscaler counts as restarting. After that, or if it never had a status, it counts as silent.
    """
    if last is not None and not last.is_silent(now):
        return replace(last, restarting=True)
    return Autoscaler(updated=None, flags=flags)


def iterate_top_owners(snapshot: Snapshot) -> Iterable[tuple[OwnerKey, OwnerKey]]:
    """Yields (ReplicaSet, its own owner)."""
    for shape in snapshot.objects_of(Workload, "ReplicaSet"):
        metadata = shape.metadata
        controller = controller_key(metadata, metadata.namespace)
        if controller is not None:
            yield OwnerKey(metadata.namespace, REPLICA_SET, metadata.name), controller


def list_sources(settings: Settings) -> tuple[ListSource, ...]:
    """Returns every list of objects that a plan reads. ConfigMaps are read only in the compactor's own namespace,
    except for the autoscalers' statuses, which are read by their names."""
    maps = LIST_SOURCES["ConfigMap"]
    ours = (replace(maps, namespace=settings.namespace, label_selector=label) for label in (POOL_LABEL, STATE))
    return (
        *all_of(WATCHED_KINDS),
        *ours,
        *(
            replace(maps, namespace=settings.autoscaler_namespace, field_selector=f"metadata.name={name}")
            for name in settings.autoscaler_statuses
        ),
    )


def create_informers(client: object, settings: Settings) -> ClusterInformers:
    """Returns the informers that a plan needs. They store pods in the form that a plan reads."""
    return ClusterInformers(client, list_sources(settings), holds={"Pod": PlannerPodTransform()})  # type: ignore[arg-type]


def _surging(inventory: Inventory, annotations: DrainAnnotations) -> Iterator[OwnerKey]:
    """Yields the Deployments to which drains of this compactor, or of users, are giving more pods now. The records of
    users are not signed: a false one only keeps pods where they are."""
    yield from surging_deployments(annotations)
    for node in inventory.nodes:
        record = read_record(node.annotations, node.name) if node.is_cordoned else None
        if isinstance(record, OrderRecord) and record.drain is not None and not record.is_emptied:
            yield from map(deployment_key, record.drain.surges)
