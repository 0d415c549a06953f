"""Removes what Trimtab's processes wrote to a cluster, and renders the Job that does so for a package manager.

The order: the APIService and the webhook configurations are deleted, so that API servers stop calling; the processes
that write stop, and undo the drains that they started; drains that they could not undo (after a crash, or of a node
that is already empty) are undone here; Leases and stored state are deleted. Changed pods stay as they are: new pods are
created without Trimtab.

A package manager runs the Job, with its own account, before it deletes the processes. `trimtab install --remove` does
the same with the user's login and needs no Job.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from trimtab.cli.install.cleanup_step import CleanupStep
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import ApiObject, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node import node_from_api as noun
from trimtab.cluster.processes import account_name
from trimtab.cluster.published_reservations import RESERVATIONS_LABEL
from trimtab.cluster.recommendation import RECOMMENDATIONS_LABEL as RECOMMENDATIONS
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain import pool_state
from trimtab.compaction.drain.actions import SetReplicas
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, read_annotations
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.pool_status import KIND as POOL_STATUS
from trimtab.compactor import node_signatures, pool_state_store
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.compactor.removed_nodes import AgreedSurge
from trimtab.compactor.soft_taint import RENAMED_LEAVING, has_soft_taint, is_ours
from trimtab.installation.deployments import render_job
from trimtab.installation.names import (
    CONFIGURATION_NAME,
    WORKERS,
    InstallValues,
    Manifest,
    build_manifest,
    component_labels,
)
from trimtab.installation.processes import uninstall
from trimtab.installation.processes.metrics_api import read_own_api_service
from trimtab.installation.processes.uninstall import UNINSTALL
from trimtab.installation.rbac import render_roles
from trimtab.kube import autoscalers, listing, nodes, objects
from trimtab.kube.errors import Conflict, NotAllowed, NotFound
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, ListSource
from trimtab.metricsapi.api_request import API_SERVICE_NAME
from trimtab.recommender.reservations import HISTORY_LABEL
from trimtab.recommender.sharded_configmaps import DAMAGED_LABEL, USAGE_LABEL
from trimtab.runtime import clock
from webhook import cert_manager

S = TypeVar("S", bound=ApiObject)

STOP_TIMEOUT_SECONDS = 90.0
"""The seconds that the processes may take to stop; their longest grace period is 60 seconds."""
MAX_ATTEMPTS = 5
_USAGE_LABELS = frozenset({USAGE_LABEL, HISTORY_LABEL})
"""The labels of the ConfigMaps with stored usage, which are kept with `--keep-usage`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninstaller:
    """Removes what the processes of an installation wrote to the cluster."""

    writer: Writer
    namespace: str
    keep_usage: bool = False
    """Whether to keep the recommender's checkpoints, which contain two weeks of usage."""
    stop_timeout_seconds: float = STOP_TIMEOUT_SECONDS
    sleep: Callable[[float], None] = field(default=time.sleep)

    def remove_all(self) -> Iterator[CleanupStep]:
        """Remove everything, and yield each step. Raises any KubeFault; another call continues from there."""
        yield from self.remove_api_service()
        yield from self.remove_webhook_configurations()
        yield from self.stop_processes()
        yield from self.restore_nodes()
        yield from self.remove_stored_state()

    def remove_api_service(self) -> Iterator[CleanupStep]:
        """Delete the APIService of the metrics API if it names a Service of this installation.

        This is the first step: while the APIService exists and no process serves it, no namespace of the cluster can be
        deleted.
        """
        try:
            if read_own_api_service(self.writer.client, self.namespace) is not None:
                yield self._delete("APIService", API_SERVICE_NAME, "")
        except NotAllowed as error:
            # Who may not read it may not delete it; an installation without a metrics API has none.
            yield CleanupStep(f"APIService {API_SERVICE_NAME}", f"the APIService cannot be read: {error}")

    def remove_webhook_configurations(self) -> Iterator[CleanupStep]:
        """Delete both webhook configurations."""
        for kind in cert_manager.CONFIGURATIONS:
            yield self._delete(kind, CONFIGURATION_NAME, "")

    def stop_processes(self) -> Iterator[CleanupStep]:
        """Scale to zero the processes that write, and wait until their pods have stopped and undone their drains."""
        for process in WORKERS:
            is_stopped = nodes.scale_to_zero(self.writer, "Deployment", self.namespace, account_name(process))
            yield CleanupStep(
                self._object_ref("Deployment", account_name(process)), "stopped" if is_stopped else "did not exist"
            )
        # A leader undoes its drains after SIGTERM. Only when its pod has stopped do nodes stay as they are restored
        # here.
        deadline = clock.elapsed_seconds() + self.stop_timeout_seconds
        while (running := self._find_running_pods()) and not self.writer.dry_run:
            if clock.elapsed_seconds() > deadline:
                yield from (CleanupStep(self._object_ref("Pod", name), "the pod is still running") for name in running)
                return
            self.sleep(0.5)

    def restore_nodes(self) -> Iterator[CleanupStep]:
        """Uncordon the nodes of drains, remove Trimtab's annotations and taints from them, and scale second replicas
        back.

        A node whose annotation is not authentic is named and stays cordoned: another client may have written the
        annotation and cordoned the node.
        """
        keys = self._read_keys()
        nodes_ = [noun(shape) for shape in self._list_objects(LIST_SOURCES["Node"], NodeShape)]
        annotations = read_annotations(nodes_, keys.keys if keys is not None else None, self.namespace)
        surged = find_surged_deployments(annotations, self._read_states(keys))
        for _, undo in sorted(surged.items()):
            # First: after a failure the next call needs the annotation.
            yield from self._undo_surge(undo)
        for node in nodes_:
            if has_marks(node, annotations, self.namespace):
                yield CleanupStep(f"Node {node.name}", self._restore_node(node.name, keys))
            if (doubt := annotations.doubtful.get(node.name)) is not None:
                yield CleanupStep(
                    f"Node {node.name}",
                    f"the node stays cordoned: {doubt.problem}; `trimtab compactor release` uncordons it",
                )

    def _read_keys(self) -> NodeSigner | None:
        """Returns the compactor's signing keys, or None if they cannot be read. Without keys, no annotation counts as
        authentic."""
        try:
            return node_signatures.read_signer(self.writer, self.namespace)
        except NotAllowed:
            return None

    def _read_states(self, signer: NodeSigner | None) -> Iterator[PoolState]:
        """Yields the state of each pool that has one with the compactor's valid signature."""
        if signer is None:
            return
        for shape in self._list_config_maps(pool_state.STATE_LABEL):
            pool_state_or_reason = pool_state_store.read_verified(shape, signer)
            if isinstance(pool_state_or_reason, PoolState):
                yield pool_state_or_reason

    def remove_stored_state(self) -> Iterator[CleanupStep]:
        """Delete the Leases, and the ConfigMaps that the processes wrote; ConfigMaps of pools stay."""
        for process in WORKERS:
            if objects.delete(self.writer, "Lease", account_name(process), self.namespace):
                yield CleanupStep(self._object_ref("Lease", account_name(process)), "removed")
        for label in (
            pool_state.STATE_LABEL,
            pool_state_store.UNREADABLE_STATE_LABEL,
            pool_state_store.RENAMED_UNREADABLE_STATE_LABEL,
            f"{RECOMMENDATIONS}=v1",
            f"{DAMAGED_LABEL}=v1",
            f"{USAGE_LABEL}=v1",
            f"{RESERVATIONS_LABEL}=v1",
            f"{HISTORY_LABEL}=v1",
        ):
            for shape in self._list_config_maps(label):
                is_kept = self.keep_usage and not _USAGE_LABELS.isdisjoint(value_or(shape.metadata.labels, {}))
                name = shape.metadata.name
                step = CleanupStep(self._object_ref("ConfigMap", name), "kept")
                yield step if is_kept else self._delete("ConfigMap", name, self.namespace)
        for name in self._list_pool_statuses():
            yield self._delete(POOL_STATUS, name, self.namespace)

    def _list_pool_statuses(self) -> list[str]:
        """Returns the names of the PoolStatuses; an empty list if their definition is not installed."""
        try:
            source = replace(LIST_SOURCES[POOL_STATUS], namespace=self.namespace, metadata_only=True)
            return [name for (_, name), _ in listing.iter_objects(self.writer.client, source)]
        except NotFound:
            return []

    def _restore_node(self, name: str, signer: NodeSigner | None) -> str:
        """Uncordon one node and remove Trimtab's annotation and taint; return the outcome as text.

        Controllers also write the node's taints, so the change is tried again after a conflict.
        """
        for is_last in (False,) * (MAX_ATTEMPTS - 1) + (True,):
            shape = objects.read_object(self.writer.client, "Node", name)
            assert isinstance(shape, NodeShape)
            node = noun(shape)
            annotations = read_annotations((node,), signer.keys if signer is not None else None, self.namespace)
            if not has_marks(node, annotations, self.namespace):
                return "did not exist"
            # An autoscaler has chosen the node to delete it: pods would be scheduled on it if it were uncordoned.
            if node.removal_taint is not None:
                return "the node is being deleted"
            ordered = annotations.ordered.get(node.name)
            is_own = node.name in annotations.ours or ordered is not None
            # An order leaves the cordon that another client had made before.
            was_cordoned = ordered is not None and ordered.order is not None and ordered.order.was_cordoned
            try:
                nodes.reopen_node(
                    self.writer,
                    name,
                    shape.metadata.resource_version,
                    uncordon=node.is_cordoned and is_own and not was_cordoned,
                    annotations=(CORDONED_BY_US,) if is_own else (),
                    taints=taints_without_own(node, self.namespace),
                )
                return "restored"
            except Conflict:
                if is_last:
                    raise
        raise AssertionError("unreachable")

    def _undo_surge(self, undo: SetReplicas) -> Iterator[CleanupStep]:
        """Sets the count of a Deployment back, or `minReplicas` of its HorizontalPodAutoscaler: only from the value
        that the drain set, because another client may have written one meanwhile."""
        key, replicas = undo.autoscaler or undo.deployment, format_count(undo.replicas, "replica")
        count = "one replica" if undo.replicas == 1 else replicas
        namespace, _, name = key.partition("/")
        kind = "HorizontalPodAutoscaler" if undo.autoscaler else "Deployment"
        before, after = undo.before, undo.replicas
        try:
            if undo.autoscaler:
                if autoscalers.set_min_replicas(self.writer, namespace, name, before=before, minimum=after):
                    yield CleanupStep(f"{kind} {key}", f"minReplicas was set back to {after}")
            elif nodes.scale_workload(self.writer, kind, namespace, name, before=before, replicas=after):
                yield CleanupStep(f"{kind} {key}", f"the Deployment was scaled back to {count}")
        except NotAllowed as error:  # nodes are restored all the same
            yield CleanupStep(f"{kind} {key}", f"it is not set back to {count}: {error}")

    def _find_running_pods(self) -> list[str]:
        """Returns the names of Trimtab's pods that may still write.

        Pods that have ended are left out, because they may remain in the cluster for long."""
        selector = f"app.kubernetes.io/name={component_labels()['app.kubernetes.io/name']}"
        source = replace(LIST_SOURCES["Pod"], namespace=self.namespace, label_selector=selector)
        return [
            pod.metadata.name
            for pod in self._list_objects(source, Pod)
            if value_or(pod.metadata.labels, {}).get("app.kubernetes.io/component") in WORKERS
            and pod.status.phase not in ("Succeeded", "Failed")
        ]

    def _list_config_maps(self, label: str) -> tuple[ConfigMap, ...]:
        return self._list_objects(
            replace(LIST_SOURCES["ConfigMap"], namespace=self.namespace, label_selector=label), ConfigMap
        )

    def _list_objects(self, source: ListSource, shape: type[S]) -> tuple[S, ...]:
        return listing.list_kinds(self.writer.client, (source,)).snapshot.objects_of(shape)

    def _delete(self, kind: str, name: str, namespace: str) -> CleanupStep:
        is_deleted = objects.delete(self.writer, kind, name, namespace)
        return CleanupStep(objects.object_ref(kind, name, namespace), "removed" if is_deleted else "did not exist")

    def _object_ref(self, kind: str, name: str) -> str:
        return objects.object_ref(kind, name, self.namespace)


def has_marks(node: NodeInfo, annotations: DrainAnnotations, namespace: str) -> bool:
    """Returns whether the node has an annotation or a taint of the compactor in this namespace."""
    is_own = node.name in annotations.ours or node.name in annotations.ordered
    return is_own or has_soft_taint(node, namespace)


def taints_without_own(node: NodeInfo, namespace: str) -> tuple[Taint, ...] | None:
    """Returns the node's taints without Trimtab's taints, or None if the node has no taint of Trimtab."""
    if not has_soft_taint(node, namespace):
        return None
    return tuple(taint for taint in node.taints if not is_ours(taint, namespace))


def clear_renamed_taints(writer: Writer, namespace: str) -> Iterator[CleanupStep]:
    """Remove the soft taint with its former key from every node, so that the taint no longer keeps pods away from the
    node.

    If the user may not list or patch nodes, this is left to the compactor, which does the same when it starts. Raises
    any other KubeFault.
    """
    try:
        shapes = [shape for _, shape in listing.iter_objects(writer.client, LIST_SOURCES["Node"])]
        for shape in shapes:
            node = noun(shape)
            rest = tuple(
                taint for taint in node.taints if taint.key != RENAMED_LEAVING or not is_ours(taint, namespace)
            )
            if len(rest) < len(node.taints):
                nodes.set_taints(writer, node.name, shape.metadata.resource_version, rest)
                yield CleanupStep(f"Node {node.name}", f"taint {RENAMED_LEAVING} removed")
    except NotAllowed as error:
        yield CleanupStep(f"Taint {RENAMED_LEAVING}", f"the taint stays until the compactor removes it: {error}")
    except Conflict:
        yield CleanupStep(
            f"Taint {RENAMED_LEAVING}",
            "the taint stays until the compactor removes it, because a node changed meanwhile",
        )


def find_surged_deployments(annotations: DrainAnnotations, states: Iterable[PoolState]) -> dict[str, SetReplicas]:
    """Returns Deployment (namespace/name) → the step that undoes what a drain did to give it more pods.

    Both the drain's annotation and the pool's state must name the Deployment, because the annotation alone can be out
    of date.
    """
    drain_by_deployment = {name: drain for pool_state_ in states for name, drain in pool_state_.surged.items()}
    return {
        name: AgreedSurge.of_drain(annotation, name).undo_step(name)
        for annotation in annotations.ours.values()
        if isinstance(annotation, DrainAnnotation)
        for name in annotation.surged
        if drain_by_deployment.get(name) == annotation.drain
    }


JOB_DEADLINE_SECONDS = 240
"""The seconds that all attempts of the Job may take together: the processes may take 60 seconds to stop, and Helm waits
five minutes by default."""


def render_uninstall_job(values: InstallValues) -> Iterator[Manifest]:
    """Yields the account of the uninstall Job, its permissions, and the Job."""
    yield build_manifest("v1", "ServiceAccount", account_name(UNINSTALL), values, component=UNINSTALL)
    yield from render_roles(uninstall.PROCESS, values)
    yield render_job(
        UNINSTALL,
        values,
        container={
            "name": UNINSTALL,
            "image": values.image,
            "args": ["install", "--remove", "--traces", "--system-namespace", values.namespace],
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        },
        backoffLimit=3,
        activeDeadlineSeconds=JOB_DEADLINE_SECONDS,
    )
