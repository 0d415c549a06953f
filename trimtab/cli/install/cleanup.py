"""What do our processes leave in a cluster, and how is it taken back?

In this order: API servers call us no more; the processes that write stop, and undo what they have begun; what they
could not undo (a process that died, a node that is already empty) is undone here; what they remembered goes. What was
changed in a pod stays in it: the next one is created without us.

Who takes back what the processes wrote, before a package manager takes them away: a Job, with an account for it.

`trimtab install --remove` does the same with the login of the person who calls it, and needs none of this.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from trimtab.cli.install.deployments import job
from trimtab.cli.install.names import CONFIGURATION, PROCESSES, InstallValues, Manifest, account, labels, manifest
from trimtab.cli.install.rbac import granted
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import ApiObject, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node import read as noun
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain import pool_state
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, gathered
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor import node_signatures, pool_state_store
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.compactor.soft_taint import RENAMED_LEAVING, is_ours, tainted
from trimtab.kube import listing, nodes, objects
from trimtab.kube.errors import Conflict, NotAllowed
from trimtab.kube.objects import Writer
from trimtab.kube.resources import PLACES, ListSource
from trimtab.recommender.sharded_configmaps import DAMAGED, USAGE
from trimtab.runtime import clock
from webhook import cert_manager

S = TypeVar("S", bound=ApiObject)

WRITERS = tuple(process for process in PROCESSES if process != "webhook")
"""Processes behind a Lease: they write to the cluster."""
PATIENCE = 90.0
"""Seconds the processes may take to end: their longest grace period is 60."""
TRIES = 5


@dataclass(frozen=True, slots=True)
class CleanupStep:
    """What became of one object."""

    what: str
    """ "Service trimtab-system/trimtab-webhook" """
    how: str
    """applied, issued, trusted; removed, was not there, kept; stopped, given back, scaled back, still running; left
    closed, or with its second replica, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninstaller:
    """Of the installation in one namespace."""

    writer: Writer
    namespace: str
    keep_usage: bool = False
    """Leave the recommender's checkpoints: two weeks of what pods used."""
    patience: float = PATIENCE
    sleep: Callable[[float], None] = field(default=time.sleep)

    def take_back(self) -> Iterator[CleanupStep]:
        """Raises any KubeFault; what came before is done, and the same again goes on from there."""
        yield from self.uncalled()
        yield from self.stopped()
        yield from self.given_back()
        yield from self.forgotten()

    def uncalled(self) -> Iterator[CleanupStep]:
        """Both webhook configurations, first of all."""
        for kind in cert_manager.CONFIGURATIONS:
            yield self._removed(kind, CONFIGURATION, "")

    def stopped(self) -> Iterator[CleanupStep]:
        """Who writes ends, and undoes what it has begun; it is waited for."""
        for process in WRITERS:
            there = nodes.stop(self.writer, "Deployment", self.namespace, account(process))
            yield CleanupStep(self._told("Deployment", account(process)), "stopped" if there else "was not there")
        until = clock.elapsed() + self.patience
        while (left := self._running()) and not self.writer.dry_run:
            if clock.elapsed() > until:
                yield from (CleanupStep(self._told("Pod", name), "still running") for name in left)
                return
            self.sleep(0.5)

    def given_back(self) -> Iterator[CleanupStep]:
        """Nodes open again, without note and taint of ours; second replicas of ours taken back.

        What is not authentic is named and stays: anybody who may write a node may have closed it.
        """
        keys = self._keys()
        found = [noun(shape) for shape in self._list(PLACES["Node"], NodeShape)]
        notes = gathered(found, keys.keys if keys is not None else None, self.namespace)
        for name in sorted(surged(notes, self._memories(keys))):  # first: who goes on after a failure needs the note
            yield from self._scaled_back(name)
        for node in found:
            if marked(node, notes, self.namespace):
                yield CleanupStep(f"Node {node.name}", self._given_back(node.name, keys))
            if (doubt := notes.doubtful.get(node.name)) is not None:
                yield CleanupStep(
                    f"Node {node.name}", f"left closed: {doubt.problem}; `trimtab compactor release` opens it"
                )

    def _keys(self) -> NodeSigner | None:
        """The compactor's keys; None where they are gone, or not ours to read: then no note is authentic."""
        try:
            return node_signatures.read(self.writer, self.namespace)
        except NotAllowed:
            return None

    def _memories(self, keys: NodeSigner | None) -> Iterator[PoolState]:
        """The states that are authentic."""
        if keys is None:
            return
        for state in self._ours(pool_state.LABEL):
            found = pool_state_store.authentic(state, keys)
            if isinstance(found, PoolState):
                yield found

    def forgotten(self) -> Iterator[CleanupStep]:
        """Leases, and ConfigMaps that the processes wrote. Pools are their owners', and stay."""
        for process in WRITERS:
            if objects.delete(self.writer, "Lease", account(process), self.namespace):
                yield CleanupStep(self._told("Lease", account(process)), "removed")
        for label in (
            pool_state.LABEL,
            pool_state_store.UNREADABLE_STATE_LABEL,
            pool_state_store.RENAMED_UNREADABLE_STATE_LABEL,
            f"{RECOMMENDATIONS}=v1",
            f"{DAMAGED}=v1",
            f"{USAGE}=v1",
        ):
            for found in self._ours(label):
                kept = self.keep_usage and USAGE in get(found.metadata.labels, {})
                name = found.metadata.name
                told = CleanupStep(self._told("ConfigMap", name), "kept")
                yield told if kept else self._removed("ConfigMap", name, self.namespace)

    def _given_back(self, name: str, keys: NodeSigner | None) -> str:
        """It changes under our hands: controllers write its taints, too."""
        for last in (False,) * (TRIES - 1) + (True,):
            shape = objects.read(self.writer.client, "Node", name)
            assert isinstance(shape, NodeShape)
            node = noun(shape)
            notes = gathered((node,), keys.keys if keys is not None else None, self.namespace)
            if not marked(node, notes, self.namespace):
                return "was not there"
            if node.going is not None:
                return "left to who deletes it"
            ours = node.name in notes.ours
            try:
                nodes.reopen(
                    self.writer, name, shape.metadata.resource_version, uncordon=node.cordoned and ours,
                    annotations=(CORDONED_BY_US,) if ours else (), taints=others(node, self.namespace),
                )  # fmt: skip
                return "given back"
            except Conflict:
                if last:
                    raise
        raise AssertionError("unreachable")

    def _scaled_back(self, name: str) -> Iterator[CleanupStep]:
        namespace, _, deployment = name.partition("/")
        try:
            if nodes.scale(self.writer, "Deployment", namespace, deployment, before=2, replicas=1):
                yield CleanupStep(f"Deployment {name}", "scaled back")
        except NotAllowed as error:  # no reason to leave nodes closed
            yield CleanupStep(f"Deployment {name}", f"left with its second replica: {error}")

    def _running(self) -> list[str]:
        """Pods of ours that may still write; one that is over (a CronJob's) may lie about."""
        chosen = f"app.kubernetes.io/name={labels()['app.kubernetes.io/name']}"
        source = replace(PLACES["Pod"], namespace=self.namespace, labels=chosen)
        return [
            pod.metadata.name for pod in self._list(source, Pod)
            if get(pod.metadata.labels, {}).get("app.kubernetes.io/component") in WRITERS
            and pod.status.phase not in ("Succeeded", "Failed")
        ]  # fmt: skip

    def _ours(self, label: str) -> tuple[ConfigMap, ...]:
        return self._list(replace(PLACES["ConfigMap"], namespace=self.namespace, labels=label), ConfigMap)

    def _list(self, source: ListSource, shape: type[S]) -> tuple[S, ...]:
        return listing.observe(self.writer.client, (source,)).snapshot.all(shape)

    def _removed(self, kind: str, name: str, namespace: str) -> CleanupStep:
        gone = objects.delete(self.writer, kind, name, namespace)
        return CleanupStep(objects.object_ref(kind, name, namespace), "removed" if gone else "was not there")

    def _told(self, kind: str, name: str) -> str:
        return objects.object_ref(kind, name, self.namespace)


def marked(node: NodeInfo, notes: DrainAnnotations, namespace: str) -> bool:
    """Does anything stand on it that the compactor of this namespace wrote?"""
    return node.name in notes.ours or tainted(node, namespace)


def others(node: NodeInfo, namespace: str) -> tuple[Taint, ...] | None:
    """Its taints but ours; None where ours is not among them."""
    if not tainted(node, namespace):
        return None
    return tuple(taint for taint in node.taints if not is_ours(taint, namespace))


def clear_renamed_taints(writer: Writer, namespace: str) -> Iterator[CleanupStep]:
    """Removes the taint with the earlier key from every node, so that no renamed word keeps pods away from a node.

    The compactor does the same when it starts: without the right to list or patch nodes it is left to the compactor.
    Raises any other KubeFault.
    """
    try:
        found = [shape for _, shape in listing.listed(writer.client, PLACES["Node"])]
        for shape in found:
            node = noun(shape)
            rest = tuple(
                taint for taint in node.taints if taint.key != RENAMED_LEAVING or not is_ours(taint, namespace)
            )
            if len(rest) < len(node.taints):
                nodes.taint(writer, node.name, shape.metadata.resource_version, rest)
                yield CleanupStep(f"Node {node.name}", f"taint {RENAMED_LEAVING} removed")
    except NotAllowed as error:
        yield CleanupStep(f"Taint {RENAMED_LEAVING}", f"left to the compactor: {error}")
    except Conflict:
        yield CleanupStep(f"Taint {RENAMED_LEAVING}", "left to the compactor: a node changed meanwhile")


def surged(notes: DrainAnnotations, memories: Iterable[PoolState]) -> set[str]:
    """Deployments to which a drain gave a second replica, where its note and the state both say so."""
    state = {name: drain for found in memories for name, drain in found.surged.items()}
    return {
        name for found in notes.ours.values() if isinstance(found, DrainAnnotation)
        for name in found.surged if state.get(name) == found.drain
    }  # fmt: skip


NAME = "uninstall"
DEADLINE = 240
"""Seconds for all tries: the processes may take 60 to end, and Helm waits five minutes by default."""


def removal(values: InstallValues) -> Iterator[Manifest]:
    """The account and its rights first."""
    yield manifest("v1", "ServiceAccount", account(NAME), values, component=NAME)
    yield from granted(NAME, values)
    yield job(NAME, values, container=_container(values), backoffLimit=3, activeDeadlineSeconds=DEADLINE)


def _container(values: InstallValues) -> Manifest:
    return {
        "name": NAME,
        "image": values.image,
        "args": ["install", "--remove", "--traces", "--namespace", values.namespace],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
    }
