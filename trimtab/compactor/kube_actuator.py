"""The door that does it, through the only door to the API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trimtab.cluster.api.core import Taint
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.annotation import write as written
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compactor.actuator import (
    ActuatorConflict,
    ActuatorForbidden,
    ActuatorNotFound,
    ActuatorUnavailable,
    EvictionResponse,
    EvictionResult,
)
from trimtab.compactor.events import EventRecorder
from trimtab.compactor.soft_taint import LEAVING, is_ours
from trimtab.kube import evict, nodes
from trimtab.kube.errors import Conflict, KubeFault, NotFound, RequestRefused
from trimtab.kube.evict import EvictionStatus as Made
from trimtab.kube.objects import Writer

ANY_WRITE = (401, 429, 503, 504)
"""Answers that say nothing of the write itself: who we are is not known, or the server has too much to do."""


@dataclass(slots=True)
class KubeActuator:
    writer: Writer
    teller: EventRecorder
    keys: SigningKeys

    @property
    def rehearsal(self) -> bool:
        return False

    def cordon(self, node: NodeInfo, version: str, note: DrainAnnotation) -> None:
        with _told():
            nodes.cordon(self.writer, node.name, version, {CORDONED_BY_US: written(note, node, self.keys)})

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        with _told():
            if uncordon:
                nodes.uncordon(self.writer, node, version, (CORDONED_BY_US,))
            else:
                nodes.annotate(self.writer, node, version, {CORDONED_BY_US: None})

    def evict(self, move: PodToEvict) -> EvictionResponse:
        namespace, _, name = move.pod.partition("/")
        with _told():
            found = evict.evict(self.writer, namespace, name, move.uid)
        if found.done:
            return EvictionResponse(became=EvictionResult.EVICTED)
        if found.became is Made.TWO_BUDGETS:
            return EvictionResponse(became=EvictionResult.NEVER, message=found.message)
        return EvictionResponse(became=EvictionResult.REFUSED, message=found.message, retry_after=found.retry_after)

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        namespace, _, name = deployment.partition("/")
        with _told():
            return nodes.scale(self.writer, "Deployment", namespace, name, before=before, replicas=replicas)

    def steer(self, node: NodeInfo, version: str, *, leaving: bool) -> None:
        others = [taint for taint in node.taints if taint.key != LEAVING and not is_ours(taint, self.teller.namespace)]
        ours = [Taint(key=LEAVING, value=self.teller.namespace, effect="PreferNoSchedule")] if leaving else []
        with _told():
            nodes.taint(self.writer, node.name, version, (*others, *ours))

    def tell(self, record: HistoryEntry) -> None:
        self.teller.tell(record)


@contextmanager
def _told() -> Iterator[None]:
    """The API door's errors as ours."""
    try:
        yield
    except Conflict as error:
        raise ActuatorConflict(str(error)) from error
    except NotFound as error:
        raise ActuatorNotFound(str(error)) from error
    except RequestRefused as error:
        raise (ActuatorUnavailable if error.status in ANY_WRITE else ActuatorForbidden)(str(error)) from error
    except KubeFault as error:
        raise ActuatorUnavailable(str(error)) from error
