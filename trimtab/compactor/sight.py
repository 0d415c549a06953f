"""The watch, read as one view."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from trimtab.cluster.api.meta import get
from trimtab.cluster.api.node import Node as NodeShape
from trimtab.cluster.api.rules import Namespace
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.autoscaler import NAME, UPDATED, Autoscaler
from trimtab.cluster.autoscaler import read as read_autoscaler
from trimtab.cluster.documents import Document
from trimtab.cluster.inventory import take
from trimtab.cluster.moment import Seconds
from trimtab.cluster.owner import Owner
from trimtab.cluster.paused import paused_in
from trimtab.cluster.pool import LABEL
from trimtab.cluster.pool_file import PoolReading, pools
from trimtab.cluster.reason import Code, NotYet, Unreadable
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.compaction.drain.begin import rehearsing
from trimtab.compaction.drain.view import View
from trimtab.compactor.settings import Settings
from trimtab.compactor.store import name_of, reopened
from trimtab.kube.planned import Planned
from trimtab.kube.watch import Watch

KINDS = (
    "Pod", "Node", "Namespace", "PodDisruptionBudget", "PersistentVolume", "PersistentVolumeClaim", "CSINode",
    "Deployment", "ReplicaSet", "StatefulSet", "Job", "ReplicationController", "ConfigMap",
)  # fmt: skip
"""What a plan is made of."""
UNSEEN = Code("cluster-not-seen", "Not everything was read yet.", "Wait, or see the log: may we list it all?")
STALE = Code("data-too-old", "The API server has not been heard of for too long: nothing is done on old data.", "Wait.")


@dataclass(slots=True)
class Sight:
    watch: Watch
    settings: Settings
    now: Callable[[], Seconds]

    def look(self) -> View | NotYet:
        """What is there now; NotYet while it is not all there, or too old."""
        age = self.watch.age()
        if not self.watch.synced or age is None:
            missing = ", ".join(name for name, state in self.watch.states().items() if not state.synced)
            return NotYet(reason=UNSEEN("the cluster was not read yet"), have="not " + missing, need="all lists")
        if age > self.settings.stale:
            stale = self.settings.stale
            return NotYet(
                reason=STALE("the cluster was not heard of for too long"), have=f"{age:.0f} s", need=f"{stale:g} s"
            )
        return self._view(self.watch.snapshot())

    def reopened(self, pool: str) -> int | None:
        """When a person opened the pool again; None where nobody did."""
        return reopened(self._ours(), pool)

    def kept(self, pool: str) -> bool:
        """Is the pool's state there?"""
        name = name_of(pool)
        return any(shape.metadata.name == name for shape in self._ours())

    def config_map(self, pool: str) -> tuple[str, str] | None:
        """(name, uid) of the ConfigMap that says the pool's settings."""
        for shape in self._ours():
            if get(shape.metadata.labels, {}).get(LABEL) == pool:
                return shape.metadata.name, shape.metadata.uid
        return None

    def _view(self, snapshot: Snapshot) -> View:
        pods = sorted(self.watch.held("Pod"), key=lambda pod: (pod.namespace, pod.name))
        inventory = replace(take(snapshot), pods=tuple(pods))
        reading = pools_of(self._ours())
        everywhere = self.settings.rehearse
        return View(
            at=self.now(),
            inventory=inventory,
            pools=tuple(rehearsing(pool, everywhere=everywhere) for pool in reading.pools),
            unread=tuple(str(mistake) for mistake in reading.mistakes),
            autoscaler=self._autoscaler(snapshot),
            tops=dict(_tops(snapshot)),
            versions={shape.metadata.name: shape.metadata.resource_version for shape in snapshot.all(NodeShape)},
            home=self.settings.namespace,
            paused=self._paused(snapshot),
        )

    def _autoscaler(self, snapshot: Snapshot) -> Autoscaler | None:
        found = autoscaler(snapshot.all(ConfigMap), shlex.split(self.settings.autoscaler_flags or ""))
        if found is None and self.settings.autoscaler == "seen":
            return Autoscaler(updated=None, flags=self.settings.flags)  # it has never reported: it is silent
        return found

    def _ours(self) -> tuple[ConfigMap, ...]:
        """ConfigMaps of our namespace: a pool is nobody else's to make."""
        return tuple(
            found for found in self.watch.held("ConfigMap") if found.metadata.namespace == self.settings.namespace
        )

    def _paused(self, snapshot: Snapshot) -> str:
        if self.settings.paused:
            return "TRIMTAB_PAUSED is set"
        if said := paused_in(snapshot.all(Namespace), self.settings.namespace):
            return said
        broken = self.watch.unreadable()
        return f"something cannot be read, so nobody knows what is there: {broken[0]}" if broken else ""


def pools_of(shapes: Iterable[ConfigMap]) -> PoolReading:
    """The pools that these ConfigMaps say."""
    documents = [
        Document(file="cluster", index=number, value={
            "kind": "ConfigMap",
            "metadata": {"name": shape.metadata.name, "labels": get(shape.metadata.labels, {})},
            "data": shape.data,
        })
        for number, shape in enumerate(sorted(shapes, key=lambda shape: shape.metadata.name))
        if LABEL in get(shape.metadata.labels, {})
    ]  # fmt: skip
    return pools(documents)


def autoscaler(shapes: Iterable[ConfigMap], arguments: Iterable[str]) -> Autoscaler | None:
    """As its status tells; one that cannot be understood is taken for ill. None where there is no status."""
    status = next((s for s in shapes if s.metadata.name == NAME and s.metadata.namespace == "kube-system"), None)
    if status is None:
        return None
    updated = get(status.metadata.annotations, {}).get(UPDATED, "")
    found = read_autoscaler(status.data.get("status", ""), updated, arguments)
    return Autoscaler(healthy=False) if isinstance(found, Unreadable) else found


def _tops(snapshot: Snapshot) -> Iterable[tuple[tuple[str, str, str], Owner]]:
    for shape in snapshot.all(Workload, "ReplicaSet"):
        above = shape.metadata.controller
        if above is not None:
            yield (shape.metadata.namespace, "ReplicaSet", shape.metadata.name), Owner(above.kind, above.name)


def watching(client: object, **more: object) -> Watch:
    """A watch over what a plan is made of, pods held as plans take them."""
    return Watch(client, KINDS, holds={"Pod": Planned()}, **more)  # type: ignore[arg-type]
