"""What stands in the cluster about the compactor, read once.

Nodes opened by a person's word: what the compactor left alone because no key of its own signed the annotation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from trimtab.cli.main import RuntimeFailure, UsageError
from trimtab.cluster import node as nodes
from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.meta import get
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node import read as node_of
from trimtab.cluster.pool import paused_in
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.timestamps import Seconds, written
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import DrainAnnotation, NotAuthentic, read
from trimtab.compaction.drain.annotation import read as note_of
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor import node_signatures
from trimtab.compactor.cluster_reader import pools_of
from trimtab.compactor.process import LEASE
from trimtab.kube import listing, objects
from trimtab.kube import nodes as nodes_module
from trimtab.kube.client import Client, connect
from trimtab.kube.errors import Conflict, KubeFault, NotAllowed, NotConfigured, NotFound
from trimtab.kube.listing import observe
from trimtab.kube.objects import Writer, parsed
from trimtab.kube.resources import PLACES, ListSource
from trimtab.kube.resources import one as object_path
from trimtab.runtime import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    kubeconfig: str | None
    context: str | None
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactorState:
    at: Seconds
    home: str
    """The compactor's namespace."""
    snapshot: Snapshot
    pools: PoolReading
    memories: Mapping[str, PoolState]
    unread: tuple[str, ...]
    """State that makes no sense, and objects that cannot be read at all."""
    leader: str
    paused: str

    def noted(self) -> Iterator[tuple[NodeInfo, DrainAnnotation | Unreadable]]:
        """Nodes with a note, and what it claims: no key is at hand to verify it."""
        for shape in self.snapshot.all(NodeShape):
            node = nodes.read(shape)
            note = note_of(node, None)
            if note is not None:
                yield node, note.claim if isinstance(note, NotAuthentic) else note

    def left(self, note: DrainAnnotation) -> int:
        """Of its pods, how many are still there."""
        there = {shape.metadata.uid for shape in self.snapshot.all(PodShape)}
        return sum(move.uid in there for move in note.moves)


@contextmanager
def opened(login: ClusterLogin) -> Iterator[Client]:
    """A client; what it cannot do is told as commands tell it."""
    try:
        client = connect(login.kubeconfig, login.context)
    except NotConfigured as error:
        raise UsageError(
            [ConfigError(file=login.kubeconfig or "kubeconfig", expected="a cluster", got=str(error))]
        ) from None
    try:
        yield client
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    finally:
        client.close()


def found(login: ClusterLogin, *, pods: bool = False) -> CompactorState:
    """Raises Failed where it cannot be read."""
    with opened(login) as client:
        ours = ListSource(kind="ConfigMap", group_version="v1", plural="configmaps", namespace=login.namespace)
        labelled = [_with(ours, label) for label in (memories.LABEL, "trimtab.dev/pool")]
        kinds = [*labelled, PLACES["Node"], PLACES["Namespace"], *([PLACES["Pod"]] if pods else [])]
        seen = observe(client, kinds)
        snapshot = seen.snapshot
        leader = _leader(client, login.namespace)
    shapes = snapshot.all(ConfigMap)
    states = {
        get(shape.metadata.labels, {})[memories.LABEL]: memories.read(shape.metadata.name, shape.data)
        for shape in shapes
        if memories.LABEL in get(shape.metadata.labels, {})
    }
    return CompactorState(
        at=int(clock.utc().timestamp()),
        home=login.namespace,
        snapshot=snapshot,
        pools=pools_of(shapes),
        memories={pool: memory for pool, memory in states.items() if isinstance(memory, PoolState)},
        unread=(
            *(str(memory) for memory in states.values() if isinstance(memory, Unreadable)),
            *map(str, seen.unreadable),
        ),
        leader=leader,
        paused=paused_in(snapshot.all(Namespace), login.namespace),
    )


def _with(source: ListSource, label: str) -> ListSource:
    return ListSource(
        kind=source.kind, group_version=source.group_version, plural=source.plural, namespace=source.namespace,
        labels=label,
    )  # fmt: skip


def _leader(client: Client, namespace: str) -> str:
    doing = f"read Lease {namespace}/{LEASE}"
    try:
        found: _Lease = parsed(client.get(object_path(PLACES["Lease"], namespace, LEASE), doing=doing), _Lease, doing)
    except NotFound:
        return ""
    return found.spec.holder_identity or ""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


MAX_TRIES = 5


@dataclass(frozen=True, slots=True)
class Annotated:
    """A node with the annotation of a drain."""

    node: NodeInfo
    told: str
    """What it says, and whether that is authentic."""
    can_be_opened: bool = True

    def __str__(self) -> str:
        return f"{self.node.name}: {self.told}"


def annotated(writer: Writer, namespace: str, names: Sequence[str]) -> list[Annotated]:
    """The nodes of these names; all with the annotation where none is named. Raises Wrong for any other name."""
    keys = _keys(writer, namespace)
    if not names:
        shapes = listing.observe(writer.client, (PLACES["Node"],)).snapshot.all(NodeShape)
        return [found for shape in shapes if (found := judged(node_of(shape), keys)) is not None]
    chosen = [(name, judged(_node(writer, name), keys)) for name in dict.fromkeys(names)]
    mistakes = [_without(name) for name, found in chosen if found is None]
    if mistakes:
        raise UsageError(mistakes)
    return [found for _, found in chosen if found is not None]


def judged(node: NodeInfo, keys: SigningKeys | None) -> Annotated | None:
    """What stands on it; None where no annotation of a drain does."""
    found = read(node, keys)
    if found is None:
        return None
    claim, verdict = (found.claim, found.problem) if isinstance(found, NotAuthentic) else (found, "authentic")
    says = "what it says cannot be understood" if isinstance(claim, Unreadable) else _said(claim)
    if node.going is not None:
        return Annotated(node, f"{says}; somebody deletes the node (taint {node.going.key})", can_be_opened=False)
    return Annotated(node, f"{says}; {verdict}; {'cordoned' if node.cordoned else 'open'}")


def release_nodes(writer: Writer, found: Sequence[Annotated]) -> Iterator[str]:
    """Opens them and takes their annotations off, one after the other; what was done, in words."""
    for one in found:
        yield f"{one.node.name}: {_opened(writer, one.node.name) if one.can_be_opened else 'left alone'}"


def _opened(writer: Writer, name: str) -> str:
    for last in (False,) * (MAX_TRIES - 1) + (True,):
        shape = objects.read(writer.client, "Node", name)
        assert isinstance(shape, NodeShape)
        node = node_of(shape)
        if CORDONED_BY_US not in node.annotations or node.going is not None:
            return "it changed meanwhile, and is left alone"
        try:
            nodes_module.reopen(
                writer, name, shape.metadata.resource_version, uncordon=node.cordoned, annotations=(CORDONED_BY_US,),
                taints=None,
            )  # fmt: skip
            return "opened"
        except Conflict:
            if last:
                raise
    raise AssertionError("unreachable")


def _node(writer: Writer, name: str) -> NodeInfo:
    try:
        shape = objects.read(writer.client, "Node", name)
    except NotFound:
        raise UsageError([ConfigError(file="NODE", expected="a node of the cluster", got=name)]) from None
    assert isinstance(shape, NodeShape)
    return node_of(shape)


def _without(name: str) -> ConfigError:
    return ConfigError(file="NODE", expected=f"a node with the annotation {CORDONED_BY_US}", got=name)


def _keys(writer: Writer, namespace: str) -> SigningKeys | None:
    """None where there are none, or where this login may not read them."""
    try:
        found = node_signatures.read(writer, namespace)
    except NotAllowed:
        return None
    return found.keys if found is not None else None


def _said(note: DrainAnnotation) -> str:
    return f"drain {note.drain} of pool {note.pool} since {written(note.since)}"
