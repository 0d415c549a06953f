"""The writes that the compactor makes to a cluster, their errors, and the dry run that writes nothing.

ActuatorError                  any failed write
├── ActuatorConflict           the object changed since it was read: read it again
├── ActuatorNotFound           the object no longer exists
└── ActuatorUnavailable        anything else: no answer, overload, not the leader; the text names the write
    └── ActuatorForbidden      the API server rejected this write: a webhook, or a missing permission

A dry run records its decisions in the history in the same way as writes that are made.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from trimtab.cluster.node import NodeInfo
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict
from trimtab.compaction.drain.pool_state import HistoryEntry


class ActuatorError(Exception):
    """A write failed."""


class ActuatorConflict(ActuatorError):
    """The object has changed since it was read."""


class ActuatorNotFound(ActuatorError):
    """The object no longer exists."""


class ActuatorUnavailable(ActuatorError):
    """The write failed, or its result is unknown."""


class ActuatorForbidden(ActuatorUnavailable):
    """The API server rejects this write, perhaps always; other writes may still succeed."""


@dataclass(slots=True)
class ErrorCollector:
    """Runs several independent writes, so that the error of one does not prevent the others."""

    error: ActuatorUnavailable | None = None
    """The first error. If it is only the rejection of a single write, a later error that concerns more than one write
    replaces it."""

    @property
    def has_only_rejections(self) -> bool:
        """Whether nothing has failed except single writes that were rejected."""
        return self.error is None or isinstance(self.error, ActuatorForbidden)

    @contextmanager
    def collect_errors(self) -> Iterator[None]:
        """A context manager that collects an error of its block. Conflicts and missing objects are ignored, because the
        next round reads the objects again."""
        try:
            yield
        except (ActuatorConflict, ActuatorNotFound):
            pass
        except ActuatorUnavailable as error:
            if self.error is None or (self.has_only_rejections and not isinstance(error, ActuatorForbidden)):
                self.error = error

    def raise_error(self) -> None:
        """Raises the collected error, if there is one. Call it when all writes have been tried."""
        if self.error is not None:
            raise self.error


class EvictionResult(StrEnum):
    """The result of an eviction request."""

    EVICTED = "evicted"
    REFUSED = "refused"
    """The PodDisruptionBudget allows no disruption now, or the API server asks the client to wait."""
    NEVER = "never"
    """The eviction API cannot evict the pod at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionResponse:
    """The response of the eviction API."""

    became: EvictionResult
    message: str = ""
    retry_after: float | None = None
    """The number of seconds to wait, or None if the server does not say."""
    is_denied: bool = False
    """Whether the eviction was refused for another reason than a budget or a busy server, such as a webhook."""


class Actuator(Protocol):
    """Makes changes in the cluster. Each method makes one write or raises an ActuatorError; its effect can be observed
    in the cluster afterwards."""

    @property
    def is_dry_run(self) -> bool:
        """Whether this actuator writes nothing."""

    def cordon_node(self, node: NodeInfo, version: str, annotation: DrainAnnotation) -> None:
        """Cordons the node and writes the signed annotation, in one write. It is also used to write a changed
        annotation."""

    def release_node(self, node: str, version: str, *, uncordon: bool) -> None:
        """Removes the compactor's annotation. With `uncordon`, the node is also uncordoned if the compactor has
        cordoned it."""

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        """Evicts this pod through the eviction API."""

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        """Returns what the eviction API would respond now, admission included. Nothing is evicted."""

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        """Changes the number of replicas of a Deployment. Returns False if the present number is not `before`."""

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        """Changes `minReplicas` of a HorizontalPodAutoscaler (namespace/name). Returns False if it is not `before`, or
        if it would be more than `maxReplicas`."""

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        """Gives the node the compactor's soft taints with these keys, and removes its others."""

    def record_decision(self, record: HistoryEntry) -> None:
        """Reports a decision to users as Events. Raises nothing."""


class DryRunActuator:
    """Reports every write as successful and makes none."""

    @property
    def is_dry_run(self) -> bool:
        return True

    def cordon_node(self, node: NodeInfo, version: str, annotation: DrainAnnotation) -> None:
        pass

    def release_node(self, node: str, version: str, *, uncordon: bool) -> None:
        pass

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        return EvictionResponse(became=EvictionResult.EVICTED)

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        return EvictionResponse(became=EvictionResult.EVICTED)

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        return True

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        return True

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        pass

    def record_decision(self, record: HistoryEntry) -> None:
        pass
