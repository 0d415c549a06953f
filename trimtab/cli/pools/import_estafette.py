"""An estafette node-compactor stopped, and its marks taken off the nodes.

It annotates nodes with `estafette.io/node-compactor-state` and never opens one that it cordoned; after a drain that
failed the node stays cordoned (estafette-k8s-node-compactor, main.go). Deployments are told by `is_deployment`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.estafette import is_deployment
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node import read as node_of
from trimtab.kube import listing, nodes, objects
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict
from trimtab.kube.nodes import stop
from trimtab.kube.objects import Writer
from trimtab.kube.resources import PLACES

STATE = "estafette.io/node-compactor-state"
MAX_TRIES = 5
POLL_SECONDS = 1.0


class StillRunning(Exception):
    """Pods of a stopped compactor are still there; str names the Deployments."""


class _State(msgspec.Struct, rename="camel"):
    scale_down_in_progress: bool = False


@dataclass(frozen=True, slots=True, order=True)
class OldCompactor:
    """A Deployment of it."""

    namespace: str
    name: str
    replicas: int
    labels: tuple[tuple[str, str], ...]
    """That its pods carry, by `spec.selector.matchLabels`."""

    def __str__(self) -> str:
        return f"Deployment {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class MarkedNode:
    """A node with its annotation."""

    name: str
    version: str
    is_stranded: bool
    """It was cordoned by the old compactor, and nobody deletes it."""

    def __str__(self) -> str:
        return f"Node {self.name}"

    @property
    def remedy(self) -> str:
        """What is done with it, as after "would be" or "was"."""
        return "uncordoned, and its mark taken off" if self.is_stranded else "left as it is but for its mark"


def old_compactors(deployments: Iterable[dict[str, Any]]) -> list[OldCompactor]:
    """Those among Deployments (as decoded JSON) that run it, by namespace and name."""
    return sorted(_old_compactor(deployment) for deployment in deployments if is_deployment(deployment))


def _old_compactor(deployment: dict[str, Any]) -> OldCompactor:
    metadata, spec = deployment["metadata"], deployment["spec"]
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return OldCompactor(
        metadata["namespace"], metadata["name"], spec.get("replicas", 1), tuple(sorted(labels.items()))
    )  # fmt: skip


def marked(node: NodeInfo, version: str) -> MarkedNode | None:
    """What its annotation means for the node; None where it has none.

    Stranded is a node that is cordoned, that the annotation says is being scaled down, and that nobody deletes. An
    annotation that cannot be read says nothing of a cordon: the cordon stays.
    """
    if STATE not in node.annotations:
        return None
    try:
        state = msgspec.json.decode(node.annotations[STATE], type=_State)
    except (msgspec.DecodeError, UnicodeError):
        state = _State()
    return MarkedNode(node.name, version, state.scale_down_in_progress and node.cordoned and node.going is None)


def find(client: Client) -> tuple[list[OldCompactor], list[MarkedNode]]:
    """Its Deployments and its marks, as they stand in the cluster. Raises any KubeFault.

    The items of a list do not say their kind; and what a snapshot keeps of a node is not every annotation.
    """
    pages = listing.pages(client, PLACES["Deployment"])
    deployments = [{"kind": "Deployment", **msgspec.json.decode(raw)} for page in pages for raw in page.items]
    shapes = (shape for _, shape in listing.listed(client, PLACES["Node"]))
    found = (marked(node_of(shape), shape.metadata.resource_version) for shape in shapes)
    return old_compactors(deployments), [node for node in found if node is not None]


def take_over(
    writer: Writer, old: Iterable[OldCompactor], *, patience_seconds: float, sleep: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """Scales them to 0, waits until their pods are gone, and cleans the nodes; what was done, in words.

    A compactor that still runs would mark the nodes again: raises StillRunning after `patience_seconds`. Raises any
    KubeFault. Called again it goes on from what it finds.
    """
    stopped = list(old)
    for one in stopped:
        if one.replicas:
            stop(writer, "Deployment", one.namespace, one.name)
            yield f"{one}: scaled from {one.replicas} to 0"
    until = time.monotonic() + patience_seconds
    while running := [one for one in stopped if _has_pods(writer.client, one)]:
        if time.monotonic() >= until:
            raise StillRunning(", ".join(map(str, running)))
        sleep(POLL_SECONDS)
    for node in find(writer.client)[1]:
        yield f"{node}: {_clean(writer, node)}"


def _has_pods(client: Client, old: OldCompactor) -> bool:
    """Whether pods with all labels of its selector are there. Of a selector without labels nothing is known: no."""
    if not old.labels:
        return False
    selector = ",".join(f"{name}={value}" for name, value in old.labels)
    source = replace(PLACES["Pod"], namespace=old.namespace, labels=selector, slim=True)
    return any(page.items for page in listing.pages(client, source))


def _clean(writer: Writer, found: MarkedNode) -> str:
    """In one patch, bound to the version it was read in; on a conflict the node is read again."""
    node: MarkedNode | None = found
    for _ in range(MAX_TRIES):
        if node is None:
            return "its mark is gone"
        try:
            nodes.reopen(
                writer, node.name, node.version, uncordon=node.is_stranded, annotations=(STATE,), taints=None
            )  # fmt: skip
            return node.remedy
        except Conflict:
            shape = objects.read(writer.client, "Node", node.name)
            assert isinstance(shape, NodeShape)
            node = marked(node_of(shape), shape.metadata.resource_version)
    return "it changes all the time, and was left alone; run the command again"
