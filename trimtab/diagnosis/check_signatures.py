"""Checks of signatures: whether the compactor itself wrote the annotations of nodes and the states of pools.

`read_signatures` verifies them with the compactor's key, if the user may read its Secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import node_from_api as node_of
from trimtab.cluster.pool import RENAMED_KEEP
from trimtab.cluster.processes import PROCESSES, ProcessDeclaration
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations
from trimtab.compaction.drain.order_entry import ORDERS
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor import node_signatures
from trimtab.compactor.node_signatures import SECRET, NodeSigner
from trimtab.compactor.pool_state_store import config_map_name
from trimtab.compactor.soft_taint import RENAMED_LEAVING, is_ours
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.diagnosis.lease_state import has_leader
from trimtab.diagnosis.observed import ObservedCluster, Read, SignatureState
from trimtab.diagnosis.process_states import find_compactor
from trimtab.diagnosis.reasons import (
    DRAIN_ABANDONED,
    DRAIN_FORGED,
    DRAIN_ORPHANED,
    RENAMED,
    SIGNING_KEY_MISSING,
    STATE_DELETED,
    STATE_NOT_AUTHENTIC,
    WEBHOOK_KEY_MISSING,
)
from trimtab.inputs.signatures import read_drain_annotations, read_states
from trimtab.kube import objects, signing_keys
from trimtab.kube.client import Client
from trimtab.kube.listing import iter_objects
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES

MAX_NAMES = 3
"""The largest number of nodes that one finding names."""
States: TypeAlias = Mapping[str, PoolState | Unreadable]


def check_signing_keys(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the Secrets of the webhook and the compactor hold a signing key."""
    signatures = cluster.signatures
    for process in PROCESSES:
        if process.signs_annotations:
            has_key: Read[bool | None]
            if isinstance(signatures, Unreadable):
                has_key = signatures
            else:
                has_key = signatures.keys if process.needs_signing_key else signatures.webhook_keys
            yield _check_key(cluster, process, has_key)


def _check_key(cluster: ObservedCluster, process: ProcessDeclaration, has_key: Read[bool | None]) -> DoctorFinding:
    """Returns a finding about a process's signing key.

    A missing key is a warning for a process that works without it, and an error for one that does nothing without
    it."""
    secret = f"Secret {cluster.namespace}/{process.signing_secret}"
    report, code = (
        (report_error, SIGNING_KEY_MISSING) if process.needs_signing_key else (report_warning, WEBHOOK_KEY_MISSING)
    )
    if cluster.processes[process.name] is None:
        return report_ok(f"the {process.name} is not installed")
    if isinstance(has_key, Unreadable):
        return report_unknown(has_key)
    if has_key is None:
        return report(code, f"{secret} does not exist", "trimtab install --apply")
    if not has_key:
        restart = f"kubectl -n {cluster.namespace} rollout restart deploy/{process.account}"
        when = (
            "when it leads, up to a minute after its start" if process.has_lease else "up to a minute after its start"
        )
        fix = f"The {process.name} writes the key {when}; wait and run doctor again. If the finding stays: {restart}"
        return report(code, f"{secret} contains no key", fix)
    return report_ok(f"{secret} contains a key")


def check_drains(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields states and annotations that the compactor did not sign, and drain annotations that no pool's state
    contains.

    Without the key no annotation can be verified, so each is reported as unknown.
    """
    signatures = cluster.signatures
    if isinstance(signatures, Unreadable) or isinstance(signatures.annotations, Unreadable):
        yield report_unknown(signatures if isinstance(signatures, Unreadable) else signatures.annotations)  # type: ignore[arg-type]
        return
    findings = [
        *_check_states(signatures.states),
        *_check_authenticity(signatures.keys, signatures.annotations),
        *_check_orphans(signatures.annotations, signatures.states),
    ]
    yield from findings
    if not findings:
        yield report_ok(_describe_drains(signatures.annotations))
    yield from _check_abandonment(cluster, signatures.annotations)
    for node, namespace in sorted(signatures.annotations.others.items()):
        yield report_ok(f"node {node} has an annotation that names the compactor of namespace {namespace}")
    for node, key in () if isinstance(signatures.renamed, Unreadable) else signatures.renamed:
        yield report_warning(RENAMED, f"node {node} still has {key} under its earlier name")


def _describe_drains(annotations: DrainAnnotations) -> str:
    """Returns a text with the nodes that the compactor drains, and the time since which each is cordoned."""
    if not annotations.signed:
        return "no node is cordoned by the compactor"
    names = join_first(
        [
            f"{node} since {format_timestamp(claim.since)}" if isinstance(claim, DrainAnnotation) else node
            for node, claim in sorted(annotations.signed.items())
        ],
        MAX_NAMES,
    )
    nodes = format_count(len(annotations.signed), "node")
    return (
        f"the compactor has cordoned {nodes}: {names}; to uncordon a node, run `trimtab compactor release --yes NODE`"
    )


def _check_abandonment(cluster: ObservedCluster, annotations: DrainAnnotations) -> Iterator[DoctorFinding]:
    """Yields a warning about nodes that the compactor cordoned, if no replica of the compactor holds the Lease."""
    lease = find_compactor(cluster.leases)
    if isinstance(lease, Unreadable) or not annotations.signed or has_leader(lease, cluster.present):
        return
    nodes = sorted(annotations.signed)
    verb = "is" if len(nodes) == 1 else "are"
    yield report_warning(
        DRAIN_ABANDONED,
        f"{join_first(nodes, MAX_NAMES)} {verb} cordoned by the compactor, and no compactor runs",
        f"trimtab compactor release --yes {nodes[0]}",
    )


def _check_orphans(annotations: DrainAnnotations, states: Read[States]) -> Iterator[DoctorFinding]:
    nodes_by_pool: dict[str, list[str]] = {}
    yield from _check_ordered(annotations, states)
    for node, annotation in sorted(annotations.ours.items()):
        if isinstance(annotation, Unreadable):
            yield report_warning(DRAIN_ORPHANED, str(annotation))
        elif isinstance(states, Unreadable):
            continue
        elif annotation.pool not in states:
            nodes_by_pool.setdefault(annotation.pool, []).append(node)
        elif not _is_known(states[annotation.pool], node, annotation):
            yield report_warning(
                DRAIN_ORPHANED,
                f"node {node} has the annotation of drain {annotation.drain}, but the state of pool "
                f"{annotation.pool} does not contain this drain",
            )
    for pool, nodes in nodes_by_pool.items():
        sentence = (
            f"ConfigMap {config_map_name(pool)}, the state of pool {pool}, does not exist, and its drains are on node "
        )
        yield report_warning(STATE_DELETED, f"{sentence}{', '.join(nodes)}")


def _check_authenticity(keys: Read[bool | None], annotations: DrainAnnotations) -> Iterator[DoctorFinding]:
    for node, annotation in sorted(annotations.doubtful.items()):
        if isinstance(keys, Unreadable):
            yield report_unknown(
                Unreadable(
                    f"annotation of node {node}", f"the signature of the annotation could not be verified: {keys}"
                )
            )
        else:
            yield report_error(DRAIN_FORGED, str(annotation), f"trimtab compactor release {node}")


def _check_ordered(annotations: DrainAnnotations, states: Read[States]) -> Iterator[DoctorFinding]:
    """Yields a warning about each node that is cordoned for a DrainOrder which the state does not contain."""
    state = PoolState() if isinstance(states, Unreadable) else states.get(ORDERS, PoolState())
    if isinstance(states, Unreadable) or not isinstance(state, PoolState):
        return
    for node, annotation in sorted(annotations.ordered.items()):
        entry = state.orders.get(annotation.order.order) if annotation.order is not None else None
        if entry is None or node not in entry.nodes:
            yield report_warning(
                DRAIN_ORPHANED,
                f"node {node} has the annotation of a DrainOrder, but the state of orders does not contain this order",
            )


def _check_states(states: Read[States]) -> Iterator[DoctorFinding]:
    if isinstance(states, Unreadable):
        yield report_unknown(states)
        return
    for pool, state in sorted(states.items()):
        if isinstance(state, Unreadable):
            yield report_warning(STATE_NOT_AUTHENTIC, f"the state of pool {pool} is not authentic: {state}")


def _is_known(state: PoolState | Unreadable, node: str, annotation: DrainAnnotation) -> bool:
    return isinstance(state, PoolState) and state.knows_drain(node, annotation.drain)


CHECKS = (
    Check(
        name="signing-keys",
        asks="Do the webhook and the compactor have signing keys?",
        judge=check_signing_keys,
        may=(WEBHOOK_KEY_MISSING, SIGNING_KEY_MISSING),
    ),
    Check(
        name="drains",
        asks="Did the compactor sign the nodes' annotations and its state?",
        judge=check_drains,
        may=(DRAIN_FORGED, DRAIN_ORPHANED, DRAIN_ABANDONED, STATE_DELETED, STATE_NOT_AUTHENTIC, RENAMED),
    ),
)


SafeRead = Callable[[Callable[[], Any]], Any]
"""Calls a function and returns its result, or Unreadable if the API server refuses the request."""


def read_signatures(client: Client, namespace: str, read: SafeRead) -> SignatureState:
    """Read the signing keys, the annotations of nodes and the states of pools.

    Without a key no annotation counts as authentic, and states are read without verification.
    """
    signer = read(lambda: _read_keys(client, namespace))
    node_signer = signer if isinstance(signer, NodeSigner) else None
    return SignatureState(
        webhook_keys=read(lambda: _holds_key(client, namespace)),
        keys=True if node_signer is not None else signer,
        annotations=read(lambda: read_drain_annotations(client, namespace, node_signer)),
        states=read(lambda: read_states(client, namespace, node_signer)),
        renamed=read(lambda: find_renamed_keys(client, namespace)),
    )


def _holds_key(client: Client, namespace: str) -> bool | None:
    """Returns whether the webhook's Secret contains a key, or None if there is no Secret."""
    [name] = (each.signing_secret for each in PROCESSES if each.signs_annotations and not each.needs_signing_key)
    secret = objects.get_plain(client, "Secret", name, namespace)
    return None if secret is None else signing_keys.keys_of(secret) is not None


def _read_keys(client: Client, namespace: str) -> NodeSigner | bool | None:
    """Returns the compactor's signing keys; False if the Secret contains none, None if there is no Secret."""
    if objects.get_plain(client, "Secret", SECRET, namespace) is None:
        return None
    return node_signatures.read_signer(Writer(client=client), namespace) or False


def find_renamed_keys(client: Client, namespace: str) -> tuple[tuple[str, str], ...]:
    """Returns (node, key) for every taint and annotation on a node whose key is one that Trimtab used in earlier
    versions. Raises KubeFault."""
    nodes = [node_of(shape) for _, shape in iter_objects(client, LIST_SOURCES["Node"])]
    tainted = [n for n in nodes if any(t.key == RENAMED_LEAVING and is_ours(t, namespace) for t in n.taints)]
    annotated = [node for node in nodes if RENAMED_KEEP in node.annotations]
    return (
        *((node.name, f"the taint {RENAMED_LEAVING}") for node in tainted),
        *((node.name, f"the annotation {RENAMED_KEEP}") for node in annotated),
    )
