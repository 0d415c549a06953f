"""Is what stands on nodes, and what is remembered of pools, the compactor's own?

What the compactor signed, looked at with its key where whoever asks may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from trimtab.cli.doctor.finding import Check, DoctorFinding, error, ok, unknown, warn
from trimtab.cli.doctor.observed import ObservedCluster, Read, SignatureState
from trimtab.cluster.api.meta import get
from trimtab.cluster.node import read as node_of
from trimtab.cluster.pool import KEEP, RENAMED_KEEP
from trimtab.cluster.reason import Code, Unreadable
from trimtab.cluster.signature import secret_of
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, gathered
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor import node_signatures
from trimtab.compactor.node_signatures import SECRET, NodeSigner
from trimtab.compactor.pool_state_store import authentic, name_of
from trimtab.compactor.soft_taint import RENAMED_LEAVING, is_ours
from trimtab.kube import objects, signing_keys
from trimtab.kube.client import Client
from trimtab.kube.listing import listed
from trimtab.kube.objects import Writer
from trimtab.kube.resources import PLACES

States: TypeAlias = Mapping[str, PoolState | Unreadable]

NO_KEY = Code(
    "signing-key-missing",
    "The compactor has no signing key: nothing it signed before is authentic, and without the Secret it does nothing.",
    "`trimtab install --apply` renders the Secret, the compactor fills it. `trimtab compactor release` opens nodes "
    "that were closed with a lost key.",
)
NO_WEBHOOK_KEY = Code(
    "webhook-signing-key-missing",
    "The webhook has no signing key: its annotations on pods are unsigned, and the second call of a request decides "
    "anew.",
    "`trimtab install --apply` renders the Secret, the webhook fills it within a minute. Pods that were admitted "
    "meanwhile stay as they are.",
)
FORGED = Code(
    "drain-annotation-not-authentic",
    "A node carries the annotation of a drain that the compactor did not sign for it: the compactor leaves the node "
    "alone.",
    "Find out who wrote it; `trimtab compactor release NODE` takes the annotation off and opens the node.",
)
ORPHANED = Code(
    "drain-orphaned",
    "A node carries an authentic annotation of a drain that the pool's state does not know.",
    "Nothing while a compactor leads: it opens the node. Else `trimtab compactor release NODE`.",
)
DELETED = Code(
    "state-deleted",
    "The state of a pool was deleted while nodes carry annotations of its drains.",
    "Find out who deleted it. The next leader opens these nodes and closes the pool for an hour; without a compactor "
    "`trimtab compactor release NODE` opens a node.",
)
STATE = Code(
    "state-not-authentic",
    "What is remembered of a pool cannot be read, or the compactor did not sign it.",
    "The next leader puts it aside and closes the pool for an hour; `trimtab compactor resume --pool NAME` opens it.",
)
RENAMED = Code(
    "renamed-word-on-node",
    "A node carries a taint or an annotation of Trimtab under its earlier name.",
    f"`trimtab install --apply` and the compactor remove the taint {RENAMED_LEAVING}. Replace the annotation "
    f"{RENAMED_KEEP} by {KEEP}: until then the node stays, as you asked.",
)


def keys(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    signed = seen.signed
    webhook, compactor = (signed, signed) if isinstance(signed, Unreadable) else (signed.webhook_keys, signed.keys)
    yield _key(seen, "webhook", webhook, NO_WEBHOOK_KEY)
    yield _key(seen, "compactor", compactor, NO_KEY)


def _key(seen: ObservedCluster, process: str, found: Read[bool | None], code: Code) -> DoctorFinding:
    """Has the process its key? Without it a webhook works on, and a compactor does nothing."""
    where, say = f"Secret {seen.namespace}/{secret_of(process)}", warn if process == "webhook" else error
    if seen.processes[process] is None:
        return ok(f"{process}: not installed")
    if isinstance(found, Unreadable):
        return unknown(found)
    if found is None:
        return say(code, f"{where} does not exist", "trimtab install --apply")
    if not found:
        restart = f"kubectl -n {seen.namespace} rollout restart deploy/trimtab-{process}"
        return say(code, f"{where} holds no key", restart)
    return ok(f"{where} holds a key")


def drains(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """Without the key nothing can be verified: then an annotation is neither good nor bad."""
    signed = seen.signed
    if isinstance(signed, Unreadable) or isinstance(signed.notes, Unreadable):
        yield unknown(signed if isinstance(signed, Unreadable) else signed.notes)  # type: ignore[arg-type]
        return
    told = [*_states(signed.states), *_doubtful(signed.keys, signed.notes), *_orphaned(signed.notes, signed.states)]
    yield from told
    if not told:
        yield ok(f"{len(signed.notes.ours)} nodes carry an annotation of the compactor, all of them authentic")
    for node, home in sorted(signed.notes.others.items()):
        yield ok(f"node {node} carries an annotation that claims to be of the compactor in namespace {home}")
    for node, key in () if isinstance(signed.renamed, Unreadable) else signed.renamed:
        yield warn(RENAMED, f"node {node} carries {key}")


def _orphaned(notes: DrainAnnotations, states: Read[States]) -> Iterator[DoctorFinding]:
    gone: dict[str, list[str]] = {}
    for node, note in sorted(notes.ours.items()):
        if isinstance(note, Unreadable):
            yield warn(ORPHANED, str(note))
        elif isinstance(states, Unreadable):
            continue
        elif note.pool not in states:
            gone.setdefault(note.pool, []).append(node)
        elif not _is_known(states[note.pool], node, note):
            yield warn(ORPHANED, f"node {node}: the state of pool {note.pool} knows no drain {note.drain}")
    for pool, nodes in gone.items():
        told = f"ConfigMap {name_of(pool)}, the state of pool {pool}, does not exist, and drains of it stand on node "
        yield warn(DELETED, f"{told}{', '.join(nodes)}")


def _doubtful(keys: Read[bool | None], notes: DrainAnnotations) -> Iterator[DoctorFinding]:
    for node, found in sorted(notes.doubtful.items()):
        if isinstance(keys, Unreadable):
            yield unknown(Unreadable(f"annotation of node {node}", f"unverified: {keys}"))
        else:
            yield error(FORGED, str(found), f"trimtab compactor release {node}")


def _states(found: Read[States]) -> Iterator[DoctorFinding]:
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    for pool, memory in sorted(found.items()):
        if isinstance(memory, Unreadable):
            yield warn(STATE, f"pool {pool}: {memory}")


def _is_known(memory: PoolState | Unreadable, node: str, note: DrainAnnotation) -> bool:
    return isinstance(memory, PoolState) and memory.knows(node, note.drain)


CHECKS = (
    Check(
        name="signing-keys", asks="Have webhook and compactor their signing keys?", judge=keys,
        may=(NO_WEBHOOK_KEY, NO_KEY),
    ),
    Check(
        name="drains", asks="Did the compactor sign what stands on nodes and in its state?", judge=drains,
        may=(FORGED, ORPHANED, DELETED, STATE, RENAMED),
    ),
)  # fmt: skip


Reading = Callable[[Callable[[], Any]], Any]
"""Gives what the call gives, or Unreadable where the API server refuses."""


def signed(client: Client, namespace: str, read: Reading) -> SignatureState:
    """Without the key nothing is authentic, and the state is read as it stands."""
    found = read(lambda: _keys(client, namespace))
    keys = found if isinstance(found, NodeSigner) else None
    return SignatureState(
        webhook_keys=read(lambda: _holds_key(client, namespace)), keys=True if keys is not None else found,
        notes=read(lambda: notes_of(client, namespace, keys)), states=read(lambda: states_of(client, namespace, keys)),
        renamed=read(lambda: renamed_words(client, namespace)),
    )  # fmt: skip


def _holds_key(client: Client, namespace: str) -> bool | None:
    """Does the webhook's Secret hold a key? None where there is no Secret."""
    secret = objects.get(client, "Secret", secret_of("webhook"), namespace)
    return None if secret is None else signing_keys.keys_of(secret) is not None


def _keys(client: Client, namespace: str) -> NodeSigner | bool | None:
    """The keys; False where the Secret holds none, None where there is no Secret."""
    if objects.get(client, "Secret", SECRET, namespace) is None:
        return None
    return node_signatures.read(Writer(client=client), namespace) or False


def notes_of(client: Client, namespace: str, keys: NodeSigner | None) -> DrainAnnotations:
    """What stands on nodes. Raises KubeFault."""
    nodes = (node_of(shape) for _, shape in listed(client, PLACES["Node"]))
    return gathered(nodes, keys.keys if keys is not None else None, namespace)


def renamed_words(client: Client, namespace: str) -> tuple[tuple[str, str], ...]:
    """Node and key of every taint and annotation of Trimtab that has an earlier name. Raises KubeFault."""
    nodes = [node_of(shape) for _, shape in listed(client, PLACES["Node"])]
    taints = ((node.name, f"the taint {RENAMED_LEAVING}") for node in nodes if any(
        taint.key == RENAMED_LEAVING and is_ours(taint, namespace) for taint in node.taints))  # fmt: skip
    kept = ((node.name, f"the annotation {RENAMED_KEEP}") for node in nodes if RENAMED_KEEP in node.annotations)
    return (*taints, *kept)


def states_of(client: Client, namespace: str, keys: NodeSigner | None) -> Mapping[str, PoolState | Unreadable]:
    """What is remembered of each pool. Raises KubeFault."""
    place = replace(PLACES["ConfigMap"], namespace=namespace, labels=memories.LABEL)
    pools: dict[str, ConfigMap] = {}
    for _, shape in listed(client, place):
        labels: Mapping[str, str] = get(shape.metadata.labels, {})
        pools[labels.get(memories.LABEL, "")] = shape
    return {
        pool: authentic(shape, keys) if keys is not None else memories.read(shape.metadata.name, shape.data)
        for pool, shape in pools.items()
        if shape.metadata.name == name_of(pool)
    }
