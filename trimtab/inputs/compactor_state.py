"""Reads the compactor's state from the cluster, and releases nodes by a user's command.

`trimtab compactor release` is for nodes that the compactor ignores because their annotation is not authentic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from trimtab.cluster import node as nodes
from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node import node_from_api as node_of
from trimtab.cluster.pause_mark import pause_reason_in
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import DrainAnnotation, NotAuthentic, read_annotation
from trimtab.compaction.drain.annotation import read_annotation as note_of
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor import node_signatures
from trimtab.compactor.cluster_reader import pools_of
from trimtab.compactor.settings import Settings
from trimtab.inputs import flags
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.leadership import Leadership, read_leadership
from trimtab.kube import listing, objects
from trimtab.kube import nodes as nodes_module
from trimtab.kube.client import Client, connect_to_cluster
from trimtab.kube.errors import Conflict, KubeFault, NotAllowed, NotConfigured, NotFound
from trimtab.kube.listing import ClusterListing, list_kinds
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, ListSource
from trimtab.runtime import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    """The login and the compactor's namespace, as the command line gives them."""

    kubeconfig: Annotated[str | None, flags.KUBECONFIG] = None
    context: Annotated[str | None, flags.CONTEXT] = None
    namespace: Annotated[str, flags.SYSTEM_NAMESPACE] = Settings().namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactorState:
    """The state of a compactor, as the cluster stores it."""

    read_at: Seconds
    namespace: str
    """The compactor's namespace."""
    snapshot: Snapshot
    pools: PoolReading
    pool_states: Mapping[str, PoolState]
    problems: tuple[str, ...]
    """Problems as text, one sentence each: states of pools that are invalid, and objects that cannot be decoded."""
    leader: str
    """The replica that holds the compactor's Lease; empty if none does."""
    paused: str
    no_leader: Reason | None = None
    """Why no replica leads, and since when; None if one leads, or if the Lease was not read."""

    def list_annotations(self) -> Iterator[tuple[NodeInfo, DrainAnnotation | Unreadable]]:
        """Yields each node that has a drain annotation, with the annotation, whose signature is not verified."""
        for shape in self.snapshot.objects_of(NodeShape):
            node = nodes.node_from_api(shape)
            annotation = note_of(node, None)
            if annotation is not None:
                yield node, annotation.claim if isinstance(annotation, NotAuthentic) else annotation

    def count_remaining_pods(self, annotation: DrainAnnotation) -> int:
        """Returns how many of the pods that the drain moves still exist."""
        existing_uids = {shape.metadata.uid for shape in self.snapshot.objects_of(PodShape)}
        return sum(move.uid in existing_uids for move in annotation.moves)


@contextmanager
def open_client(login: ClusterLogin) -> Iterator[Client]:
    """Yields a client of the API server. Raises UsageError without a login, and RuntimeFailure for any KubeFault."""
    try:
        client = connect_to_cluster(login.kubeconfig, login.context)
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    try:
        yield client
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    finally:
        client.close()


def read_compactor_state(login: ClusterLogin, *, pods: bool = False) -> CompactorState:
    """Read the compactor's state from the cluster; if `pods` is set, read the pods as well. Raises RuntimeFailure."""
    with open_client(login) as client:
        observation = list_state(client, login.namespace, pods=pods)
        leadership = read_leadership(client, login.namespace, int(clock.utc_now().timestamp()))
    return build_compactor_state(observation.snapshot, observation.unreadable, leadership, login.namespace)


def list_state(client: Client, namespace: str, *, pods: bool) -> ClusterListing:
    """Returns the objects of the compactor's state. With `pods`, and if a node is being drained, also the
    PodDisruptionBudgets; a login that may not list these reads the rest."""
    state = list_kinds(client, state_sources(namespace, pods=pods))
    nodes_read = state.snapshot.objects_of(NodeShape)
    if not pods or not any(CORDONED_BY_US in value_or(shape.metadata.annotations, {}) for shape in nodes_read):
        return state
    try:
        budgets = list_kinds(client, (LIST_SOURCES["PodDisruptionBudget"],))
    except NotAllowed as error:
        return replace(state, unreadable=(*state.unreadable, Unreadable("PodDisruptionBudgets", str(error))))
    objects = {**state.snapshot.objects, **budgets.snapshot.objects}
    return replace(
        state, snapshot=replace(state.snapshot, objects=objects), unreadable=(*state.unreadable, *budgets.unreadable)
    )


def state_sources(namespace: str, *, pods: bool) -> tuple[ListSource, ...]:
    """Returns what must be listed to read the compactor's state; with `pods`, the pods as well."""
    config_maps = ListSource(kind="ConfigMap", group_version="v1", plural="configmaps", namespace=namespace)
    labelled = [
        ListSource(
            kind=config_maps.kind,
            group_version=config_maps.group_version,
            plural=config_maps.plural,
            namespace=config_maps.namespace,
            label_selector=label,
        )
        for label in (memories.STATE_LABEL, "trimtab.dev/pool")
    ]
    kinds = ("Node", "Namespace", *(("Pod",) if pods else ()))
    return (*labelled, *(LIST_SOURCES[kind] for kind in kinds))


def build_compactor_state(
    snapshot: Snapshot, unreadable: Sequence[Unreadable], leadership: Leadership, namespace: str
) -> CompactorState:
    """Returns the compactor's state as these objects store it. `unreadable` lists the objects that could not be
    decoded."""
    shapes = snapshot.objects_of(ConfigMap)
    states = {
        value_or(shape.metadata.labels, {})[memories.STATE_LABEL]: memories.decode_state(
            shape.metadata.name, shape.data
        )
        for shape in shapes
        if memories.STATE_LABEL in value_or(shape.metadata.labels, {})
    }
    return CompactorState(
        read_at=int(clock.utc_now().timestamp()),
        namespace=namespace,
        snapshot=snapshot,
        pools=pools_of(shapes),
        pool_states={pool: pool_state for pool, pool_state in states.items() if isinstance(pool_state, PoolState)},
        problems=(
            *(str(pool_state) for pool_state in states.values() if isinstance(pool_state, Unreadable)),
            *map(str, unreadable),
        ),
        leader=leadership.leader,
        no_leader=leadership.problem,
        paused=pause_reason_in(snapshot.objects_of(Namespace), namespace),
    )


MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class AnnotatedNode:
    """A node with the annotation of a drain."""

    node: NodeInfo
    description: str
    """The annotation's content and authenticity, as text."""
    can_be_opened: bool = True
    keeps_cordon: bool = False
    """Whether another client had cordoned the node before the order that drains it, so that it stays cordoned."""

    def __str__(self) -> str:
        return f"{self.node.name}: {self.description}"


def find_annotated_nodes(writer: Writer, namespace: str, names: Sequence[str]) -> list[AnnotatedNode]:
    """Returns the named nodes, with their drain annotations; if `names` is empty, all nodes that have a drain
    annotation.

    Raises UsageError if a named node has no drain annotation.
    """
    keys = _read_keys(writer, namespace)
    if not names:
        shapes = listing.list_kinds(writer.client, (LIST_SOURCES["Node"],)).snapshot.objects_of(NodeShape)
        return [annotated_node for shape in shapes if (annotated_node := judge_node(node_of(shape), keys)) is not None]
    named_nodes = [(name, judge_node(_read_node(writer, name), keys)) for name in dict.fromkeys(names)]
    mistakes = [
        ConfigError(file="NODE", expected=f"a node with the drain annotation {CORDONED_BY_US}", got=name)
        for name, annotated_node in named_nodes
        if annotated_node is None
    ]
    if mistakes:
        raise UsageError(mistakes)
    return [annotated_node for _, annotated_node in named_nodes if annotated_node is not None]


def judge_node(node: NodeInfo, keys: SigningKeys | None) -> AnnotatedNode | None:
    """Returns the node with a description of its drain annotation, or None if it has no drain annotation."""
    annotation = read_annotation(node, keys)
    if annotation is None:
        return None
    claim, verdict = (
        (annotation.claim, annotation.problem) if isinstance(annotation, NotAuthentic) else (annotation, "authentic")
    )
    description = "the annotation of the node is invalid" if isinstance(claim, Unreadable) else _describe_drain(claim)
    if node.removal_taint is not None:
        return AnnotatedNode(
            node, f"{description}; the node is being deleted (taint {node.removal_taint.key})", can_be_opened=False
        )
    keeps_cordon = isinstance(claim, DrainAnnotation) and claim.order is not None and claim.order.was_cordoned
    return AnnotatedNode(
        node,
        f"{description}; {verdict}; {'cordoned' if node.is_cordoned else 'open'}",
        keeps_cordon=keeps_cordon,
    )


def release_nodes(writer: Writer, annotated_nodes: Sequence[AnnotatedNode]) -> Iterator[str]:
    """Uncordon the nodes and remove their annotations one by one; yield each outcome as text."""
    for annotated_node in annotated_nodes:
        yield (
            f"{annotated_node.node.name}:"
            f" {_release_node(writer, annotated_node) if annotated_node.can_be_opened else 'skipped'}"
        )


def _release_node(writer: Writer, annotated_node: AnnotatedNode) -> str:
    name = annotated_node.node.name
    # The kubelet and controllers write nodes, too: after a conflict the node is read again.
    for is_last in (False,) * (MAX_ATTEMPTS - 1) + (True,):
        shape = objects.read_object(writer.client, "Node", name)
        assert isinstance(shape, NodeShape)
        node = node_of(shape)
        if CORDONED_BY_US not in node.annotations or node.removal_taint is not None:
            return "the node was skipped, because another client changed it meanwhile"
        try:
            nodes_module.reopen_node(
                writer,
                name,
                shape.metadata.resource_version,
                uncordon=node.is_cordoned and not annotated_node.keeps_cordon,
                annotations=(CORDONED_BY_US,),
                taints=None,
            )
            return "another client had cordoned it, so it stays cordoned" if annotated_node.keeps_cordon else "opened"
        except Conflict:
            if is_last:
                raise
    raise AssertionError("unreachable")


def _read_node(writer: Writer, name: str) -> NodeInfo:
    try:
        shape = objects.read_object(writer.client, "Node", name)
    except NotFound:
        raise UsageError([ConfigError(file="NODE", expected="a node of the cluster", got=name)]) from None
    assert isinstance(shape, NodeShape)
    return node_of(shape)


def _read_keys(writer: Writer, namespace: str) -> SigningKeys | None:
    """Returns the compactor's signing keys, or None if there are none, or if the login may not read them."""
    try:
        signer = node_signatures.read_signer(writer, namespace)
    except NotAllowed:
        return None
    return signer.keys if signer is not None else None


def _describe_drain(annotation: DrainAnnotation) -> str:
    whose = f"of pool {annotation.pool}" if annotation.order is None else "for a DrainOrder"
    return f"drain {annotation.drain} {whose} since {format_timestamp(annotation.since)}"
