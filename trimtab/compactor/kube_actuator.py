"""The actuator that writes to the cluster, through the API server client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from trimtab.cluster.api.core import Taint
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.resizable_pod import ResizablePod
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.annotation import encode_annotation as written
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compaction.resize.types import ResizeChange
from trimtab.compactor.actuator import (
    ActuatorConflict,
    ActuatorForbidden,
    ActuatorNotFound,
    ActuatorUnavailable,
    EvictionResponse,
    EvictionResult,
)
from trimtab.compactor.decision_events import EventRecorder
from trimtab.compactor.soft_taint import is_ours
from trimtab.kube import autoscalers, evict, nodes, resize
from trimtab.kube.errors import Conflict, KubeFault, NotFound, RequestRefused
from trimtab.kube.evict import EvictionStatus as Made
from trimtab.kube.objects import Writer
from trimtab.kube.resize import ResizeOutcome

UNSPECIFIC_STATUSES = (401, 429, 503, 504)
"""Status codes that say nothing about the write itself: the client is not authenticated, or the server is
overloaded."""


@dataclass(slots=True)
class KubeActuator:
    """Writes to the cluster while this replica leads."""

    writer: Writer
    event_recorder: EventRecorder
    keys: SigningKeys

    @property
    def is_dry_run(self) -> bool:
        return False

    def cordon_node(self, node: NodeInfo, version: str, annotation: DrainAnnotation) -> None:
        with _translate_errors():
            # One patch with the resourceVersion: a cordon never exists without its annotation, and a changed node is a
            # conflict.
            nodes.cordon(self.writer, node.name, version, {CORDONED_BY_US: written(annotation, node, self.keys)})

    def release_node(self, node: str, version: str, *, uncordon: bool) -> None:
        with _translate_errors():
            if uncordon:
                nodes.uncordon(self.writer, node, version, (CORDONED_BY_US,))
            else:
                nodes.annotate(self.writer, node, version, {CORDONED_BY_US: None})

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        return self._evict_pod(self.writer, move)

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        return self._evict_pod(replace(self.writer, dry_run=True), move)

    def _evict_pod(self, writer: Writer, move: PodToEvict) -> EvictionResponse:
        namespace, _, name = move.pod.partition("/")
        with _translate_errors():
            response = evict.evict(writer, namespace, name, move.uid)
        if response.is_done:
            return EvictionResponse(became=EvictionResult.EVICTED)
        if response.eviction_status is Made.TWO_BUDGETS:
            return EvictionResponse(became=EvictionResult.NEVER, message=response.message)
        return EvictionResponse(
            became=EvictionResult.REFUSED,
            message=response.message,
            retry_after=response.retry_after,
            is_denied=response.eviction_status is Made.DENIED,
        )

    def resize_pod(self, pod: ResizablePod, version: str, changes: Sequence[ResizeChange]) -> ResizeOutcome:
        """Writes these requests into the running pod, and returns the outcome. Raises ActuatorUnavailable."""
        requests: dict[str, dict[str, str]] = {}
        for each in changes:
            requests.setdefault(each.container, {})[each.resource] = each.after
        sidecars = frozenset(container.name for container in pod.containers if container.is_sidecar)
        with _translate_errors():
            return resize.resize_pod(self.writer, pod.namespace, pod.name, pod.uid, version, requests, sidecars)

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        namespace, _, name = deployment.partition("/")
        with _translate_errors():
            return nodes.scale_workload(self.writer, "Deployment", namespace, name, before=before, replicas=replicas)

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        namespace, _, name = autoscaler.partition("/")
        with _translate_errors():
            return autoscalers.set_min_replicas(self.writer, namespace, name, before=before, minimum=minimum)

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        home = self.event_recorder.namespace
        others = [taint for taint in node.taints if taint.key not in keys and not is_ours(taint, home)]
        ours = [Taint(key=key, value=home, effect="PreferNoSchedule") for key in keys]
        with _translate_errors():
            nodes.set_taints(self.writer, node.name, version, (*others, *ours))

    def record_decision(self, record: HistoryEntry) -> None:
        self.event_recorder.record_events(record)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """A context manager that translates errors of the API server client into actuator errors."""
    try:
        yield
    except Conflict as error:
        raise ActuatorConflict(str(error)) from error
    except NotFound as error:
        raise ActuatorNotFound(str(error)) from error
    except RequestRefused as error:
        raise (ActuatorUnavailable if error.status in UNSPECIFIC_STATUSES else ActuatorForbidden)(str(error)) from error
    except KubeFault as error:
        raise ActuatorUnavailable(str(error)) from error
