"""Watches the owners of pods, and their OOM kills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.cluster.api.pod import Pod
from trimtab.cluster.kinds import POD, built_in
from trimtab.cluster.owner import OwnerKey, owner_chain
from trimtab.histogram.oom_kills import OomKill
from trimtab.kube.client import Client
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.resources import LIST_SOURCES, ListSource
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.cluster_facts import OWNERS, controller_of
from trimtab.usage.oom_kills import kills_of_pod
from trimtab.usage.owners import OwnerIndex

_MAX_OWNERS = 6
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PodOwnership:
    """What is kept of a pod: its owners and its OOM kills."""

    owners: tuple[OwnerKey, ...]
    """The owners of the pod, as far as the pod itself names them."""
    kills: tuple[tuple[str, OomKill], ...] = ()
    """The OOM kills of the pod, as (container, kill)."""


def ownership_of(pod: Pod) -> PodOwnership:
    """Returns the owners and the OOM kills of a pod."""
    owners = owner_chain(pod.metadata, pod.metadata.namespace, lambda _owner: None)
    return PodOwnership(owners, tuple(kills_of_pod(pod)))


class TopOwners(dict[Key, OwnerKey]):
    """(namespace, pod) → its topmost owner, computed when it is read, because most pods are looked up at most once."""

    def __init__(self, state: PodWatchState) -> None:
        super().__init__()
        self._state = state

    def get(self, key: Key, default: Any = None) -> Any:
        return self._state.topmost_owner(*key) or default


@dataclass(slots=True)
class PodWatchState:
    """What the watches have delivered so far. Not thread-safe."""

    pods: dict[Key, PodOwnership] = field(default_factory=dict)
    owners_by_workload: dict[OwnerKey, OwnerKey | None] = field(default_factory=dict)
    """Workload → its owner, or None if it has none."""
    new_kills: dict[Key, tuple[tuple[str, OomKill], ...]] = field(default_factory=dict)
    """The OOM kills that `take_new_kills` has not returned yet."""

    def apply_change(self, change: WatchEvent[Any]) -> None:
        """Applies one change that a watch has delivered."""
        namespace, name = change.key
        gone = change.change_type is ChangeType.DELETED
        if change.kind == "Pod":
            self._set_pod((namespace, name), None if gone else change.after)
            return
        workload = OwnerKey(namespace, built_in(change.kind), name)
        if gone:
            self.owners_by_workload.pop(workload, None)
        else:
            self.owners_by_workload[workload] = change.after

    def _set_pod(self, key: Key, ownership: PodOwnership | None) -> None:
        if ownership is None:
            self.pods.pop(key, None)
            return
        self.pods[key] = ownership
        if ownership.kills:
            self.new_kills[key] = ownership.kills

    def topmost_owner(self, namespace: str, pod: str) -> OwnerKey | None:
        """Returns the topmost owner of a pod; the pod itself if it has no owner; None if the pod is unknown."""
        ownership = self.pods.get((namespace, pod))
        if ownership is None:
            return None
        if not ownership.owners:
            return OwnerKey(namespace, POD, pod)
        current = ownership.owners[0]
        for _ in range(_MAX_OWNERS):
            # A known workload without an owner is the topmost one; only for an unknown one the pod's own chain decides.
            next_owner = self.owners_by_workload.get(current) or (
                _next_in_chain(ownership.owners, current) if current not in self.owners_by_workload else None
            )
            if next_owner is None:
                break
            current = next_owner
        return current

    def owner_index(self) -> OwnerIndex:
        """Returns an index of the owners of all pods."""
        return OwnerIndex(TopOwners(self), self.owners_by_workload, self._iter_pods)

    def _iter_pods(self) -> Iterator[tuple[Key, OwnerKey]]:
        for key in self.pods:
            owner = self.topmost_owner(*key)
            if owner is not None:
                yield key, owner

    def take_new_kills(self) -> dict[Key, tuple[tuple[str, OomKill], ...]]:
        """Returns the OOM kills that were observed since the last call."""
        kills, self.new_kills = self.new_kills, {}
        return kills


def _next_in_chain(owners: tuple[OwnerKey, ...], current: OwnerKey) -> OwnerKey | None:
    position = owners.index(current) + 1 if current in owners else len(owners)
    return owners[position] if position < len(owners) else None


def watched_lists() -> tuple[ListSource, ...]:
    """Returns all lists that are watched. For owners, only the metadata is requested."""
    return (LIST_SOURCES["Pod"], *(replace(LIST_SOURCES[kind], metadata_only=True) for kind in OWNERS))


class PodWatcher:
    """Runs the watches from `__enter__` to `__exit__`."""

    def __init__(self, client: Client) -> None:
        self.state = PodWatchState()
        transforms: dict[str, Any] = {"Pod": ownership_of, **dict.fromkeys(OWNERS, controller_of)}
        self._queue = ChangeQueue(client, watched_lists(), transforms)

    def __enter__(self) -> PodWatcher:
        self._queue.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.stop()

    @property
    def is_synced(self) -> bool:
        """Whether every list has been read at least once."""
        return self._queue.is_synced

    def apply_changes(self) -> None:
        """Applies the changes that were delivered since the last call."""
        for change in self._queue.take_changes():
            self.state.apply_change(change)
