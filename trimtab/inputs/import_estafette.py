"""Stops an estafette node-compactor, removes its annotations from nodes, and uncordons the nodes that it left cordoned.

estafette annotates nodes with `estafette.io/node-compactor-state` and never uncordons a node that it cordoned; after a
failed drain the node stays cordoned (estafette-k8s-node-compactor, main.go). `is_deployment` recognizes its
Deployments.
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
from trimtab.cluster.node import node_from_api as node_of
from trimtab.kube import listing, nodes, objects
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict
from trimtab.kube.nodes import scale_to_zero
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES

STATE_ANNOTATION = "estafette.io/node-compactor-state"
MAX_ATTEMPTS = 5
POLL_SECONDS = 1.0


class StillRunning(Exception):
    """Pods of an estafette node-compactor still run after it was stopped; the text names the Deployments."""


class _State(msgspec.Struct, rename="camel"):
    scale_down_in_progress: bool = False


@dataclass(frozen=True, slots=True, order=True)
class OldCompactor:
    """A Deployment of an estafette node-compactor."""

    namespace: str
    name: str
    replicas: int
    labels: tuple[tuple[str, str], ...]
    """The labels by which its pods are selected, from `spec.selector.matchLabels`."""

    def __str__(self) -> str:
        return f"Deployment {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class MarkedNode:
    """A node with the annotation of an estafette node-compactor."""

    name: str
    version: str
    is_stranded: bool
    """Whether estafette cordoned the node, and the node is not being deleted."""

    def __str__(self) -> str:
        return f"Node {self.name}"

    @property
    def restoration_text(self) -> str:
        """What is done to the node, as text that follows "would be" or "was"."""
        return (
            "uncordoned, and its annotation removed" if self.is_stranded else "left unchanged except for its annotation"
        )


def old_compactors(deployments: Iterable[dict[str, Any]]) -> list[OldCompactor]:
    """Returns the Deployments (decoded JSON) that run an estafette node-compactor, sorted by namespace and name."""
    return sorted(_decode_compactor(deployment) for deployment in deployments if is_deployment(deployment))


def _decode_compactor(deployment: dict[str, Any]) -> OldCompactor:
    metadata, spec = deployment["metadata"], deployment["spec"]
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    return OldCompactor(metadata["namespace"], metadata["name"], spec.get("replicas", 1), tuple(sorted(labels.items())))


def decode_marked_node(node: NodeInfo, version: str) -> MarkedNode | None:
    """Returns the node with the content of its estafette annotation, or None if it has no such annotation.

    A node counts as left cordoned if it is cordoned, its annotation says that it is being scaled down, and it is not
    being deleted. If the annotation is invalid, the node stays cordoned.
    """
    if STATE_ANNOTATION not in node.annotations:
        return None
    try:
        state = msgspec.json.decode(node.annotations[STATE_ANNOTATION], type=_State)
    except (msgspec.DecodeError, UnicodeError):
        state = _State()
    return MarkedNode(
        node.name, version, state.scale_down_in_progress and node.is_cordoned and node.removal_taint is None
    )


def find_compactors_and_nodes(client: Client) -> tuple[list[OldCompactor], list[MarkedNode]]:
    """Returns the Deployments and the annotated nodes of the cluster. Raises any KubeFault.

    They are read from the API server, because a snapshot does not contain every annotation of a node.
    """
    pages = listing.iter_pages(client, LIST_SOURCES["Deployment"])
    deployments = [{"kind": "Deployment", **msgspec.json.decode(raw)} for page in pages for raw in page.items]
    node_shapes = (shape for _, shape in listing.iter_objects(client, LIST_SOURCES["Node"]))
    marked_nodes = (decode_marked_node(node_of(shape), shape.metadata.resource_version) for shape in node_shapes)
    return old_compactors(deployments), [node for node in marked_nodes if node is not None]


def take_over(
    writer: Writer,
    deployments: Iterable[OldCompactor],
    *,
    timeout_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """Scale the Deployments to 0, wait until their pods have stopped, and restore the nodes; yield each step as text.

    Raises StillRunning if pods still run after `timeout_seconds`, because they would annotate the nodes again. Raises
    any KubeFault; another call continues from there.
    """
    compactors = list(deployments)
    for compactor in compactors:
        if compactor.replicas:
            scale_to_zero(writer, "Deployment", compactor.namespace, compactor.name)
            yield f"{compactor}: scaled from {compactor.replicas} to 0"
    deadline = time.monotonic() + timeout_seconds
    while running := [compactor for compactor in compactors if _has_pods(writer.client, compactor)]:
        if time.monotonic() >= deadline:
            raise StillRunning(", ".join(map(str, running)))
        sleep(POLL_SECONDS)
    for node in find_compactors_and_nodes(writer.client)[1]:
        yield f"{node}: {_restore_node(writer, node)}"


def _has_pods(client: Client, compactor: OldCompactor) -> bool:
    """Returns whether there are pods with all labels of the Deployment's selector; False if the selector has no
    labels."""
    if not compactor.labels:
        return False
    selector = ",".join(f"{name}={value}" for name, value in compactor.labels)
    source = replace(LIST_SOURCES["Pod"], namespace=compactor.namespace, label_selector=selector, metadata_only=True)
    return any(page.items for page in listing.iter_pages(client, source))


def _restore_node(writer: Writer, marked_node: MarkedNode) -> str:
    """Restore the node by one patch, and return the outcome as text.

    The API server accepts the patch only for the version of the node that was read. After a conflict the node is read
    again."""
    node: MarkedNode | None = marked_node
    for _ in range(MAX_ATTEMPTS):
        if node is None:
            return "another client removed the annotation of the node meanwhile"
        try:
            nodes.reopen_node(
                writer, node.name, node.version, uncordon=node.is_stranded, annotations=(STATE_ANNOTATION,), taints=None
            )
            return node.restoration_text
        except Conflict:
            shape = objects.read_object(writer.client, "Node", node.name)
            assert isinstance(shape, NodeShape)
            node = decode_marked_node(node_of(shape), shape.metadata.resource_version)
    return "the node changed repeatedly and was skipped; run the command again"
