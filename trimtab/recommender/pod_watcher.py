"""Watches the owners of pods, and their OOM kills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any

from trimtab.cluster.api.pod import Pod
from trimtab.cluster.kinds import POD, built_in
from trimtab.cluster.owner import OwnerKey, owner_chain
from trimtab.cluster.whole_pods import list_lasting_names, name_whole_pod
from trimtab.histogram.oom_kills import OomKill
from trimtab.histogram.pod_sums import WholePodSamples
from trimtab.kube.client import Client
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.resources import LIST_SOURCES, ListSource
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.cluster_facts import OWNERS, controller_of
from trimtab.sizing.vpa.target_usage import TargetPods
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
    containers: tuple[str, ...] = ()
    """The names of the main containers, if they are needed (see `ownership_with_containers`)."""
    init_containers: tuple[str, ...] = ()
    whole_pod: str = ""
    """The name of all its lasting containers together (`whole_pods.name_whole_pod`), if it is needed; empty for a pod
    with one."""


def ownership_of(pod: Pod) -> PodOwnership:
    """Returns the owners and the OOM kills of a pod."""
    owners = owner_chain(pod.metadata, pod.metadata.namespace, lambda _owner: None)
    return PodOwnership(owners, tuple(kills_of_pod(pod)))


def ownership_with_containers(pod: Pod) -> PodOwnership:
    """Returns the owners and the OOM kills of a pod, and the names of its containers."""
    # Interned: the pods of a workload have the same names.
    names, init_names = (
        tuple(intern(container.name) for container in containers)
        for containers in (pod.spec.containers, pod.spec.init_containers)
    )
    whole_pod = intern(name_whole_pod(list_lasting_names(pod.spec)))
    return replace(ownership_of(pod), containers=names, init_containers=init_names, whole_pod=whole_pod)


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
        return self._climb(ownership.owners[0], ownership.owners)

    def topmost_of(self, workload: OwnerKey) -> OwnerKey:
        """Returns the topmost owner of a workload, which is the workload itself if no owner of it is known."""
        return self._climb(workload, ())

    def summarize_targets(self, targets: Mapping[OwnerKey, OwnerKey]) -> dict[OwnerKey, TargetPods]:
        """Returns target → its pods. `targets` is target → its topmost owner, by which pods are counted."""
        by_owner: dict[OwnerKey, list[PodOwnership]] = {topmost: [] for topmost in targets.values()}
        for key, owner in self._iter_pods() if targets else ():
            if owner in by_owner:
                by_owner[owner].append(self.pods[key])
        return {target: _summarize_pods(topmost, by_owner[topmost]) for target, topmost in targets.items()}

    def collect_whole_pods(self, *, with_gone: bool) -> WholePodSamples:
        """Returns an empty collection of the samples of pods with several containers. `with_gone`: also of pods that no
        longer exist, whose containers are taken to be those of the pods of the same workload."""
        names = {key: ownership.whole_pod for key, ownership in self.pods.items() if ownership.whole_pod}
        by_owner: dict[OwnerKey, str] = {}
        for key, owner in self._iter_pods() if with_gone else ():
            name = self.pods[key].whole_pod
            # Pods with other containers, as during a rollout: nothing is known about those that are gone.
            by_owner[owner] = name if by_owner.get(owner, name) == name else ""
        return WholePodSamples(names, by_owner)

    def _climb(self, current: OwnerKey, owners: tuple[OwnerKey, ...]) -> OwnerKey:
        """Returns the topmost owner above one of the owners that a pod names."""
        for _ in range(_MAX_OWNERS):
            # A known workload without an owner is the topmost one; only for an unknown one the pod's own chain decides.
            next_owner = self.owners_by_workload.get(current) or (
                _next_in_chain(owners, current) if current not in self.owners_by_workload else None
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


def _summarize_pods(topmost: OwnerKey, pods: list[PodOwnership]) -> TargetPods:
    names, init_names = (
        frozenset(name for pod in pods for name in getattr(pod, part)) for part in ("containers", "init_containers")
    )
    return TargetPods(topmost=topmost, count=len(pods), containers=names, init_containers=init_names)


def watched_lists() -> tuple[ListSource, ...]:
    """Returns all lists that are watched. For owners, only the metadata is requested."""
    return (LIST_SOURCES["Pod"], *(replace(LIST_SOURCES[kind], metadata_only=True) for kind in OWNERS))


class PodWatcher:
    """Runs the watches from `__enter__` to `__exit__`."""

    def __init__(self, client: Client, *, with_containers: bool = False) -> None:
        """`with_containers`: whether the names of the containers are needed."""
        self.state = PodWatchState()
        of_pod = ownership_with_containers if with_containers else ownership_of
        transforms: dict[str, Any] = {"Pod": of_pod, **dict.fromkeys(OWNERS, controller_of)}
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
