"""What stands in the cluster about the compactor, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from trimtab.cluster import node as nodes
from trimtab.cluster.api.meta import get
from trimtab.cluster.api.node import Node as NodeShape
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.api.rules import Namespace
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.moment import Seconds
from trimtab.cluster.node import Node
from trimtab.cluster.paused import paused_in
from trimtab.cluster.pool_file import PoolReading
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.command.main import Failed, Wrong
from trimtab.compaction.drain import memory as memories
from trimtab.compaction.drain.memory import Memory
from trimtab.compaction.drain.note import Note
from trimtab.compaction.drain.note import read as note_of
from trimtab.compactor.process import LEASE
from trimtab.compactor.sight import pools_of
from trimtab.kube.client import Client, connect
from trimtab.kube.errors import KubeFault, NotConfigured, NotFound
from trimtab.kube.kinds import PLACES, Source, one
from trimtab.kube.listing import observe
from trimtab.kube.objects import parsed
from trimtab.runtime import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    kubeconfig: str | None
    context: str | None
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    at: Seconds
    home: str
    """The compactor's namespace."""
    snapshot: Snapshot
    pools: PoolReading
    memories: Mapping[str, Memory]
    unread: tuple[str, ...]
    """State that makes no sense, and objects that cannot be read at all."""
    leader: str
    paused: str

    def noted(self) -> Iterator[tuple[Node, Note | Unreadable]]:
        """Nodes that are emptied or empty, with our note."""
        for shape in self.snapshot.all(NodeShape):
            node = nodes.read(shape)
            note = note_of(node)
            if note is not None:
                yield node, note

    def left(self, note: Note) -> int:
        """Of its pods, how many are still there."""
        there = {shape.metadata.uid for shape in self.snapshot.all(PodShape)}
        return sum(move.uid in there for move in note.moves)


@contextmanager
def opened(login: Login) -> Iterator[Client]:
    """A client; what it cannot do is told as commands tell it."""
    try:
        client = connect(login.kubeconfig, login.context)
    except NotConfigured as error:
        raise Wrong([Mistake(file=login.kubeconfig or "kubeconfig", expected="a cluster", came=str(error))]) from None
    try:
        yield client
    except KubeFault as error:
        raise Failed(str(error)) from None
    finally:
        client.close()


def found(login: Login, *, pods: bool = False) -> Found:
    """Raises Failed where it cannot be read."""
    with opened(login) as client:
        ours = Source(kind="ConfigMap", group_version="v1", plural="configmaps", namespace=login.namespace)
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
    return Found(
        at=int(clock.utc().timestamp()),
        home=login.namespace,
        snapshot=snapshot,
        pools=pools_of(shapes),
        memories={pool: memory for pool, memory in states.items() if isinstance(memory, Memory)},
        unread=(
            *(str(memory) for memory in states.values() if isinstance(memory, Unreadable)),
            *map(str, seen.unreadable),
        ),
        leader=leader,
        paused=paused_in(snapshot.all(Namespace), login.namespace),
    )


def _with(source: Source, label: str) -> Source:
    return Source(
        kind=source.kind, group_version=source.group_version, plural=source.plural, namespace=source.namespace,
        labels=label,
    )  # fmt: skip


def _leader(client: Client, namespace: str) -> str:
    doing = f"read Lease {namespace}/{LEASE}"
    try:
        found: _Lease = parsed(client.get(one(PLACES["Lease"], namespace, LEASE), doing=doing), _Lease, doing)
    except NotFound:
        return ""
    return found.spec.holder_identity or ""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
