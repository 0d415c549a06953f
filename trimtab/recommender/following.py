"""Whose pod is it, and what was killed for want of memory? Told by watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.cluster.api.pod import ContainerStatus, Pod
from trimtab.cluster.moment import Seconds, seconds
from trimtab.cluster.owner import Owner, chain
from trimtab.cluster.quantity import NotAQuantity, whole
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.kube.client import Client
from trimtab.kube.feed import Feed
from trimtab.kube.kinds import PLACES, Source
from trimtab.kube.state import Change, What
from trimtab.policy.held import OWNERS, owner
from trimtab.usage.owners import Owners

_MOST = 6
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kill:
    """A container was killed for want of memory."""

    container: str
    at: Seconds
    limit: float
    """Bytes it was allowed, or else asked for; 0 where it said neither."""


@dataclass(frozen=True, slots=True)
class Living:
    """What is held of a pod."""

    owners: tuple[Owner, ...]
    """As far as the pod itself tells."""
    kills: tuple[Kill, ...] = ()


def living(pod: Pod) -> Living:
    owners = chain(pod.metadata, pod.metadata.namespace, lambda _namespace, _owner: None)
    return Living(owners, tuple(_kills(pod)))


def _kills(pod: Pod) -> Iterator[Kill]:
    """Sidecars are among the init containers."""
    for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
        at = _killed(status)
        if at is not None:
            yield Kill(status.name, at, _allowed(pod, status.name))


def _killed(status: ContainerStatus) -> Seconds | None:
    """The state it is in counts, and the one before: a restarted container has the latter."""
    for state in (status.state, status.last_state):
        ended: Any = state.get("terminated") if isinstance(state, Mapping) else None
        if isinstance(ended, Mapping) and ended.get("reason") == "OOMKilled":
            return seconds(ended.get("finishedAt"))
    return None


def _allowed(pod: Pod, name: str) -> float:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            resources = container.resources
            written = limits_of(resources).get("memory") or requests_of(resources).get("memory")
            try:
                return float(whole(written)) if written else 0.0
            except NotAQuantity:
                return 0.0
    return 0.0


class Tops(dict[Key, Owner]):
    """(namespace, pod) → its topmost owner: looked up when it is asked for, since most pods' never is twice."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen = seen

    def get(self, key: Key, default: Any = None) -> Any:
        return self._seen.top(*key) or default


@dataclass(slots=True)
class Seen:
    """Told of changes. Not for two threads."""

    pods: dict[Key, Living] = field(default_factory=dict)
    above: dict[tuple[str, str, str], Owner | None] = field(default_factory=dict)
    workloads: dict[Key, Owner] = field(default_factory=dict)
    """(namespace, name) → the workload of that name that nobody owns."""
    fresh: dict[Key, tuple[Kill, ...]] = field(default_factory=dict)
    """Kills that were not asked for yet."""

    def hear(self, change: Change[Any]) -> None:
        namespace, name = change.key
        gone = change.what is What.DELETED
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

    def _pod(self, key: Key, found: Living | None) -> None:
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

    def owners(self) -> Owners:
        return Owners(Tops(self), self.workloads)

    def kills(self) -> dict[Key, tuple[Kill, ...]]:
        """What was killed since this was asked last."""
        found, self.fresh = self.fresh, {}
        return found


def _next(owners: tuple[Owner, ...], at: Owner) -> Owner | None:
    place = owners.index(at) + 1 if at in owners else len(owners)
    return owners[place] if place < len(owners) else None


def sources() -> tuple[Source, ...]:
    """Every list that is watched. Of owners only the metadata is asked for."""
    return (PLACES["Pod"], *(replace(PLACES[kind], slim=True) for kind in OWNERS))


class Following:
    """The watches, from `__enter__` to `__exit__`."""

    def __init__(self, client: Client) -> None:
        self.seen = Seen()
        holds: dict[str, Any] = {"Pod": living, **dict.fromkeys(OWNERS, owner)}
        self._feed = Feed(client, sources(), holds)

    def __enter__(self) -> Following:
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
