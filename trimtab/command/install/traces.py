"""What do our processes leave in a cluster, and how is it taken back?

In this order: API servers call us no more; the processes that write stop, and undo what they have begun; what they
could not undo (a process that died, a node that is already empty) is undone here; what they remembered goes. What was
changed in a pod stays in it: the next one is created without us.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from trimtab.cluster.api.meta import Shape, get
from trimtab.cluster.api.node import Node as NodeShape
from trimtab.cluster.api.node import Taint
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.node import Node
from trimtab.cluster.node import read as noun
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.cluster.snapshot import ConfigMap
from trimtab.command.install.names import CONFIGURATION, PROCESSES, account, labels
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain import memory, note
from trimtab.compactor.steering import LEAVING, tainted
from trimtab.kube import listing, nodes, objects, scale
from trimtab.kube.errors import Conflict
from trimtab.kube.kinds import PLACES, Source
from trimtab.kube.writer import Writer
from trimtab.recommender.shelf import DAMAGED, USAGE
from trimtab.runtime import clock
from webhook import shared

S = TypeVar("S", bound=Shape)

WRITERS = tuple(process for process in PROCESSES if process != "webhook")
"""Processes behind a Lease: they write to the cluster."""
PATIENCE = 90.0
"""Seconds the processes may take to end: their longest grace period is 60."""
TRIES = 5


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one object."""

    what: str
    """ "Service trimtab-system/trimtab-webhook" """
    how: str
    """applied, issued, trusted; removed, was not there, kept; stopped, given back, scaled back, still running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """Of the installation in one namespace."""

    writer: Writer
    namespace: str
    keep_usage: bool = False
    """Leave the recommender's checkpoints: two weeks of what pods used."""
    patience: float = PATIENCE
    sleep: Callable[[float], None] = field(default=time.sleep)

    def take_back(self) -> Iterator[Done]:
        """Raises any KubeFault; what came before is done, and the same again goes on from there."""
        yield from self.uncalled()
        yield from self.stopped()
        yield from self.given_back()
        yield from self.forgotten()

    def uncalled(self) -> Iterator[Done]:
        """Both webhook configurations, first of all."""
        for kind in shared.CONFIGURATIONS:
            yield self._removed(kind, CONFIGURATION, "")

    def stopped(self) -> Iterator[Done]:
        """Who writes ends, and undoes what it has begun; it is waited for."""
        for process in WRITERS:
            there = scale.stop(self.writer, "Deployment", self.namespace, account(process))
            yield Done(self._told("Deployment", account(process)), "stopped" if there else "was not there")
        until = clock.elapsed() + self.patience
        while (left := self._running()) and not self.writer.dry_run:
            if clock.elapsed() > until:
                yield from (Done(self._told("Pod", name), "still running") for name in left)
                return
            self.sleep(0.5)

    def given_back(self) -> Iterator[Done]:
        """Nodes open again, without note and taint of ours; second replicas of ours taken back."""
        found = [noun(shape) for shape in self._list(PLACES["Node"], NodeShape)]
        twice = {name: before for node in found for name, before in surged(node, self.namespace).items()}
        for node in found:
            if marked(node, self.namespace):
                yield Done(f"Node {node.name}", self._given_back(node.name))
        for state in self._ours(memory.LABEL):
            kept = memory.read(state.metadata.name, state.data)
            twice |= {} if isinstance(kept, Unreadable) else kept.surged
        for name, before in sorted(twice.items()):
            yield from self._scaled_back(name, before)

    def forgotten(self) -> Iterator[Done]:
        """Leases, and ConfigMaps that the processes wrote. Pools are their owners', and stay."""
        for process in WRITERS:
            if objects.delete(self.writer, "Lease", account(process), self.namespace):
                yield Done(self._told("Lease", account(process)), "removed")
        for label in (memory.LABEL, f"{RECOMMENDATIONS}=v1", f"{DAMAGED}=v1", f"{USAGE}=v1"):
            for found in self._ours(label):
                kept = self.keep_usage and USAGE in get(found.metadata.labels, {})
                name = found.metadata.name
                told = Done(self._told("ConfigMap", name), "kept")
                yield told if kept else self._removed("ConfigMap", name, self.namespace)

    def _given_back(self, name: str) -> str:
        """It changes under our hands: controllers write its taints, too."""
        for last in (False,) * (TRIES - 1) + (True,):
            shape = objects.read(self.writer.client, "Node", name)
            assert isinstance(shape, NodeShape)
            node = noun(shape)
            if not marked(node, self.namespace):
                return "was not there"
            if node.going is not None:
                return "left to who deletes it"
            ours = noted(node, self.namespace)
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

    def _scaled_back(self, name: str, before: int) -> Iterator[Done]:
        namespace, _, deployment = name.partition("/")
        if scale.scale(self.writer, "Deployment", namespace, deployment, before=before + 1, replicas=before):
            yield Done(f"Deployment {name}", "scaled back")

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

    def _list(self, source: Source, shape: type[S]) -> tuple[S, ...]:
        return listing.observe(self.writer.client, (source,)).snapshot.all(shape)

    def _removed(self, kind: str, name: str, namespace: str) -> Done:
        gone = objects.delete(self.writer, kind, name, namespace)
        return Done(objects.told(kind, name, namespace), "removed" if gone else "was not there")

    def _told(self, kind: str, name: str) -> str:
        return objects.told(kind, name, self.namespace)


def noted(node: Node, namespace: str) -> bool:
    """Does a note of the compactor of this namespace stand on it, or one that nobody can read?"""
    found = note.read(node)
    return found is not None and (isinstance(found, Unreadable) or found.home in ("", namespace))


def marked(node: Node, namespace: str) -> bool:
    """Does anything of ours stand on it?"""
    return noted(node, namespace) or tainted(node, namespace)


def others(node: Node, namespace: str) -> tuple[Taint, ...] | None:
    """Its taints but ours; None where ours is not among them."""
    if not tainted(node, namespace):
        return None
    return tuple(taint for taint in node.taints if taint.key != LEAVING or taint.value not in ("", namespace))


def surged(node: Node, namespace: str) -> dict[str, int]:
    """Deployments that a drain of this node gave one replica more → what they had before."""
    found = note.read(node)
    if found is None or isinstance(found, Unreadable) or found.home not in ("", namespace):
        return {}
    return {name: before for name, before in found.surges.items() if name in found.surged}
