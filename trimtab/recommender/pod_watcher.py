"""Whose pod is it, and what was killed for want of memory? Told by watches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.cluster.api.pod import Pod
from trimtab.cluster.owner import Owner, chain
from trimtab.histogram.oom_kills import OomKill
from trimtab.kube.client import Client
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.resources import PLACES, ListSource
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.retained_facts import OWNERS, owner
from trimtab.usage.oom_kills import of_pod
from trimtab.usage.owners import OwnerIndex

_MOST = 6
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PodOwnership:
    """What is held of a pod."""

    owners: tuple[Owner, ...]
    """As far as the pod itself tells."""
    kills: tuple[tuple[str, OomKill], ...] = ()
    """(container, kill) for want of memory."""


def living(pod: Pod) -> PodOwnership:
    owners = chain(pod.metadata, pod.metadata.namespace, lambda _namespace, _owner: None)
    return PodOwnership(owners, tuple(of_pod(pod)))


class TopOwners(dict[Key, Owner]):
    """(namespace, pod) → its topmost owner: looked up when it is asked for, since most pods' never is twice."""

    def __init__(self, seen: PodWatchState) -> None:
        super().__init__()
        self._seen = seen

    def get(self, key: Key, default: Any = None) -> Any:
        return self._seen.top(*key) or default


@dataclass(slots=True)
class PodWatchState:
    """Told of changes. Not for two threads."""

    pods: dict[Key, PodOwnership] = field(default_factory=dict)
    above: dict[tuple[str, str, str], Owner | None] = field(default_factory=dict)
    workloads: dict[Key, Owner] = field(default_factory=dict)
    """(namespace, name) → the workload of that name that nobody owns."""
    fresh: dict[Key, tuple[tuple[str, OomKill], ...]] = field(default_factory=dict)
    """Kills that were not asked for yet."""

    def hear(self, change: WatchEvent[Any]) -> None:
        namespace, name = change.key
        gone = change.what is ChangeType.DELETED
        if change.kind == "Pod":
            self._pod((namespace, name), None if gone else change.after)
        elif gone:
            self.above.pop((namespace, change.kind, name), None)
            if self.workloads.get((namespace, name)) == Owner(change.kind, name):
                del self.workloads[namespace, name]
        else:
            self.above[namespace, change.kind, name] = change.after
            if change.after is None and change.kind != "ReplicaSet":
                self.workloads[namespace, name] = Owner(change.kind, name)

    def _pod(self, key: Key, found: PodOwnership | None) -> None:
        if found is None:
            self.pods.pop(key, None)
            return
        self.pods[key] = found
        if found.kills:
            self.fresh[key] = found.kills

    def top(self, namespace: str, pod: str) -> Owner | None:
        """None where the pod is not known; the pod itself where nobody made it."""
        found = self.pods.get((namespace, pod))
        if found is None:
            return None
        if not found.owners:
            return Owner("Pod", pod)
        at = found.owners[0]
        for _ in range(_MOST):
            key = (namespace, at.kind, at.name)
            further = self.above.get(key) or (_next(found.owners, at) if key not in self.above else None)
            if further is None:
                break
            at = further
        return at

    def owners(self) -> OwnerIndex:
        return OwnerIndex(TopOwners(self), self.workloads)

    def kills(self) -> dict[Key, tuple[tuple[str, OomKill], ...]]:
        """What was killed since this was asked last."""
        found, self.fresh = self.fresh, {}
        return found


def _next(owners: tuple[Owner, ...], at: Owner) -> Owner | None:
    place = owners.index(at) + 1 if at in owners else len(owners)
    return owners[place] if place < len(owners) else None


def sources() -> tuple[ListSource, ...]:
    """Every list that is watched. Of owners only the metadata is asked for."""
    return (PLACES["Pod"], *(replace(PLACES[kind], slim=True) for kind in OWNERS))


class PodWatcher:
    """The watches, from `__enter__` to `__exit__`."""

    def __init__(self, client: Client) -> None:
        self.seen = PodWatchState()
        holds: dict[str, Any] = {"Pod": living, **dict.fromkeys(OWNERS, owner)}
        self._feed = ChangeQueue(client, sources(), holds)

    def __enter__(self) -> PodWatcher:
        self._feed.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._feed.stop()

    @property
    def synced(self) -> bool:
        return self._feed.synced

    def hear(self) -> None:
        """Take what was told since the last time."""
        for change in self._feed.taken():
            self.seen.hear(change)
