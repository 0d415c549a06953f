"""Checks of references: policies and their classes, pools and their nodes, the images of the processes, the objects
that protect the processes, and policies that resize running pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trimtab.cluster.format_count import join_first
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Pool, pool_name
from trimtab.cluster.processes import account_name
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.resize.reasons import NOT_SUPPORTED
from trimtab.diagnosis.finding import Check, DoctorFinding, report_ok, report_unknown, report_warning
from trimtab.diagnosis.observed import ObservedCluster
from trimtab.diagnosis.permissions import resizing_process
from trimtab.diagnosis.reasons import (
    MIXED_VERSIONS,
    POLICY_REFERENCE,
    POOL_WITHOUT_NODES,
    PROTECTION_MISSING,
    RESIZE_PERMISSION_MISSING,
)
from trimtab.diagnosis.references import PROTECTING_KINDS

MAX_NAMES = 3
FIRST_VERSION_THAT_RESIZES = (1, 33)
"""The first version of Kubernetes in which running pods can be resized by default."""


def check_policy_references(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields a finding per object that a policy in force names and that does not exist in the cluster."""
    state = cluster.references
    if isinstance(state, Unreadable):
        yield report_unknown(state)
        return
    for policy, reason in state.dangling:
        yield report_warning(POLICY_REFERENCE, f"{policy}: {reason.sentence}")
    if not state.dangling:
        yield report_ok("every object that a policy names exists in the cluster")


def check_pool_nodes(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the pools to which no node belongs."""
    state, reading = cluster.references, cluster.pools
    if isinstance(state, Unreadable) or isinstance(reading, Unreadable):
        yield report_unknown(state if isinstance(state, Unreadable) else reading)  # type: ignore[arg-type]
        return
    empty = find_empty_pools(reading.pools, state.nodes or ())
    names = sorted({pool_name(node) for node in state.nodes or ()} - {""})
    there_are = f"the labels of nodes name the pools {', '.join(names[:5])}" if names else "no node has a pool label"
    for pool in empty if state.nodes is not None else ():
        yield report_warning(POOL_WITHOUT_NODES, f"no node belongs to pool {pool}; {there_are}")
    if not empty:
        yield report_ok("every pool has nodes" if reading.pools else "there is no pool yet")


def find_empty_pools(pools: Iterable[Pool], nodes: Iterable[NodeInfo]) -> list[str]:
    """Returns the names of the enabled pools to which no node belongs."""
    all_nodes = tuple(nodes)
    return sorted(pool.name for pool in pools if pool.enabled and not any(map(pool.has_node, all_nodes)))


def check_versions(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether all processes run the same image."""
    state = cluster.references
    if isinstance(state, Unreadable):
        yield report_unknown(state)
        return
    processes: dict[str, list[str]] = {}
    for process, image in sorted(state.images.items()):
        processes.setdefault(image, []).append(process)
    if len(processes) > 1:
        sentence = "; ".join(f"{', '.join(names)}: {image}" for image, names in sorted(processes.items()))
        yield report_warning(MIXED_VERSIONS, sentence)
    else:
        yield report_ok(
            f"all processes run the image {next(iter(processes))}" if processes else "no process is installed"
        )


def check_protection(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the PodDisruptionBudgets and NetworkPolicies that the processes lack.

    If Trimtab's namespace has no NetworkPolicy at all, it was installed without them, which the chart permits.
    """
    state = cluster.references
    if isinstance(state, Unreadable):
        yield report_unknown(state)
        return
    names = {process: account_name(process) for process in state.images}
    missing = [
        f"{kind} {cluster.namespace}/{name}"
        for kind in PROTECTING_KINDS
        for name in names.values()
        if name not in state.protecting.get(kind, frozenset())
        and (kind == "PodDisruptionBudget" or state.protecting.get(kind, frozenset()) & {*names.values()})
    ]
    for name in missing:
        yield report_warning(PROTECTION_MISSING, f"there is no {name}")
    if not missing:
        yield report_ok("every process has a PodDisruptionBudget and a NetworkPolicy")


def check_resizes(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the reasons why running pods are not resized although a policy requires it and a pool acts."""
    state, reading, version = cluster.references, cluster.pools, cluster.version
    if isinstance(state, Unreadable):
        yield report_unknown(state)
        return
    if not state.resizing:
        yield report_ok("no policy has `running: resize`")
        return
    # Pools that cannot be read count as pools that act: a needless warning is better than none.
    acting = isinstance(reading, Unreadable) or any(map(is_resizing_pool, reading.pools))
    names = join_first(state.resizing, MAX_NAMES)
    if not acting:
        yield report_ok(f"{names}: running pods are resized as soon as a pool is in mode act")
    elif not isinstance(version, Unreadable) and version < FIRST_VERSION_THAT_RESIZES:
        yield report_warning(
            NOT_SUPPORTED,
            f"{names}: the cluster runs Kubernetes {version[0]}.{version[1]}, but resizes of running pods need "
            "version 1.33",
        )
    elif isinstance(state.missing_resize_permissions, Unreadable):
        yield report_unknown(state.missing_resize_permissions)
    elif state.missing_resize_permissions:
        permissions = ", ".join(state.missing_resize_permissions)
        yield report_warning(
            RESIZE_PERMISSION_MISSING, f"{names}: {account_name(resizing_process())} may not {permissions}"
        )
    else:
        yield report_ok(f"{names}: the compactor may resize running pods")


def is_resizing_pool(pool: Pool) -> bool:
    """Returns whether the pool is in mode act and its settings permit resizes."""
    return pool.enabled and not pool.dry_run and pool.resizes_per_hour > 0


CHECKS = (
    Check(
        name="policy-references",
        asks="Does the cluster have the objects that policies name?",
        judge=check_policy_references,
        may=(POLICY_REFERENCE,),
    ),
    Check(name="pool-nodes", asks="Does every pool have nodes?", judge=check_pool_nodes, may=(POOL_WITHOUT_NODES,)),
    Check(
        name="versions",
        asks="Do all processes of Trimtab run one version?",
        judge=check_versions,
        may=(MIXED_VERSIONS,),
    ),
    Check(
        name="protection",
        asks="Does every process have a PodDisruptionBudget and a NetworkPolicy?",
        judge=check_protection,
        may=(PROTECTION_MISSING,),
    ),
    Check(
        name="resizes",
        asks="Are running pods resized where a policy has `running: resize`?",
        judge=check_resizes,
        may=(RESIZE_PERMISSION_MISSING, NOT_SUPPORTED),
    ),
)
