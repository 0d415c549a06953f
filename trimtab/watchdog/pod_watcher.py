"""Watches the cluster for the watchdog, and recognises pods that kubelets have evicted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from trimtab.admission.audit.drift import AuditInputs
from trimtab.admission.audit.original_pod import AuditedPod, AuditedPodReader, FailureKind
from trimtab.kube.client import Client
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.watchdog.policy_state import POD, AuditStateBuilder, list_sources, object_projections


class AuditWatcher:
    """Runs the watches from `__enter__` to `__exit__`. Apart from the watches' own threads, only one thread may use
    it."""

    def __init__(self, client: Client, base: AuditInputs, configuration: str, *, policies: bool) -> None:
        own = base.terms.own_namespace
        self.state_builder = AuditStateBuilder(base, configuration, policies=policies)
        self._reader = AuditedPodReader(self.state_builder.matched_annotations)
        self._feed = ChangeQueue(
            client, list_sources(own, policies=policies), object_projections(own, self._reader), _is_delivered
        )

    def __enter__(self) -> AuditWatcher:
        self._feed.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.stop()

    @property
    def is_synced(self) -> bool:
        """Whether every list has been read at least once."""
        return self._feed.is_synced

    def apply_events(self) -> None:
        """Applies the changes that were delivered since the last call."""
        for change in self._feed.take_changes():
            self.state_builder.apply_event(change)
        if self._feed.watch_added(self.state_builder.added_lists):
            self.state_builder.forget_added_lists()
        self._read_annotations()

    def _read_annotations(self) -> None:
        """Lists pods again if a policy now matches by an annotation that was not stored so far."""
        annotations = self.state_builder.matched_annotations
        if not annotations <= self._reader.read_annotations:
            self._reader.read_annotations |= annotations
            self._feed.informers.relist_kind(POD)

    def stored_pods(self) -> tuple[AuditedPod, ...]:
        return self._feed.informers.values_of(POD)

    def data_age(self) -> float | None:
        """Returns how many seconds ago the most outdated list was last known to be current, or None if a list was never
        read."""
        return self._feed.informers.oldest_age()

    def list_errors(self) -> dict[str, str]:
        """Returns list → its present error, for the lists that have one."""
        return self._feed.errors_by_list()


def _is_delivered(change: WatchEvent[Any]) -> bool:
    """Returns whether a change is put into the queue. Of pods, only deletions are, because existing pods are read from
    the store of the watch."""
    return change.kind != POD or change.change_type is ChangeType.DELETED


@dataclass(slots=True)
class Evictions:
    """Finds new evictions by comparing with the evicted pods of the last round. Only one thread may use it."""

    _evicted_uids: frozenset[str] | None = field(default=None)

    def find_new(self, pods: Iterable[AuditedPod]) -> Iterator[AuditedPod]:
        """Yields the pods that were evicted since the last call. The first call yields none; it only records which pods
        were evicted before."""
        evicted = {
            pod.uid: pod for pod in pods if any(failure.trouble is FailureKind.EVICTED for failure in pod.incidents)
        }
        known_uids, self._evicted_uids = self._evicted_uids, frozenset(evicted)
        return iter([pod for uid, pod in evicted.items() if uid not in known_uids] if known_uids is not None else [])
