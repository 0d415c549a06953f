"""The watches, and what they told since the last look.

Which pods did kubelets evict, each counted once?
"""

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
from trimtab.watchdog.policy_state import POD, AuditStateBuilder, held, slices, sources


class AuditWatcher:
    """From `__enter__` to `__exit__`. Everything but the watches' own threads is for one thread."""

    def __init__(self, client: Client, base: AuditInputs, configuration: str, *, policies: bool) -> None:
        own = base.terms.own_namespace
        self.seen = AuditStateBuilder(base, configuration, policies=policies)
        self._reader = AuditedPodReader(self.seen.asked_annotations)
        self._feed = ChangeQueue(client, sources(own, policies=policies), held(own, self._reader), _is_heard)

    def __enter__(self) -> AuditWatcher:
        self._feed.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.stop()

    @property
    def synced(self) -> bool:
        """Was every list read at least once?"""
        return self._feed.synced

    def hear(self) -> None:
        """Take what was told since the last time."""
        for change in self._feed.taken():
            self.seen.hear(change)
        if self._feed.follow(slices(service) for service in sorted(self.seen.services)):
            self.seen.forget_slices()
        self._read_annotations()

    def _read_annotations(self) -> None:
        """Of an annotation that a policy matches by only now, no pod's value is held: they are listed again."""
        asked = self.seen.asked_annotations
        if not asked <= self._reader.read_annotations:
            self._reader.read_annotations |= asked
            self._feed.watch.read_again(POD)

    def pods(self) -> tuple[AuditedPod, ...]:
        return self._feed.watch.held(POD)

    def age(self) -> float | None:
        """Seconds since the oldest list was known to be true; None while one was never read."""
        return self._feed.watch.age()

    def troubles(self) -> dict[str, str]:
        """What goes wrong now, by list."""
        return self._feed.troubles()


def _is_heard(change: WatchEvent[Any]) -> bool:
    """Of pods only that one is gone: what stands is read off the watch."""
    return change.kind != POD or change.what is ChangeType.DELETED


@dataclass(slots=True)
class Evictions:
    """Remembers the evicted pods that are still there; those of the first look are from before. Not for two threads."""

    _known: frozenset[str] | None = field(default=None)

    def new(self, pods: Iterable[AuditedPod]) -> Iterator[AuditedPod]:
        """The pods that were evicted since the last look; none at the first."""
        evicted = {pod.uid: pod for pod in pods if _is_evicted(pod)}
        known, self._known = self._known, frozenset(evicted)
        return iter([pod for uid, pod in evicted.items() if uid not in known] if known is not None else [])


def _is_evicted(pod: AuditedPod) -> bool:
    return any(found.trouble is FailureKind.EVICTED for found in pod.incidents)
