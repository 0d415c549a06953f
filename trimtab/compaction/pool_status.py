"""A pool as `kubectl get` shows it: what it does, which node it would drain next, what it waits for, and what it has
saved.

A PoolStatus is for people and dashboards. No decision reads it, so a forged one has no effect, and the compactor
overwrites it. The settings of a pool are in its ConfigMap.
"""

from typing import Any

import msgspec

from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.savings import format_savings
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.drain.waiting import pool_mode, waiting_reason

GROUP, VERSION, KIND, PLURAL = "trimtab.dev", "v1alpha1", "PoolStatus", "poolstatuses"
SHORT_NAME = "pools"
MAX_PLAN_NODES = 50
MAX_NAMED_NODES = 3
MAX_TEXT = 1000
Schema = dict[str, Any]


class PoolStatusFields(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The field `status` of a PoolStatus object."""

    mode: str
    """The pool's mode: act, rehearse or off."""
    nodes: int
    """The number of nodes in the pool."""
    draining: int
    """The number of nodes that are being drained, or are empty and wait for their removal."""
    next: str
    """The nodes that the last plan would drain first, as text; `nothing` if there are none."""
    plan: tuple[str, ...]
    """The nodes that the last plan would drain, in order; at most 50."""
    wave: int
    """The number of nodes in the first wave of the last plan."""
    waits: str
    """What must happen before the next drain begins; empty if nothing prevents it."""
    saved_nodes: int
    """The number of nodes that were removed after a drain, since the pool's state exists."""
    saved: str
    """What the removal of the nodes in `saved_nodes` saves, as text."""
    updated: str = ""
    """When the compactor wrote this status, as an RFC 3339 time."""


def pool_statuses(
    view: ClusterView, states: dict[str, PoolState], timeouts: DrainTimeouts
) -> dict[str, PoolStatusFields]:
    """Returns pool → its status, for each pool with valid settings. The field `updated` is left empty."""
    counts = {pool.name: sum(pool.has_node(node) for node in view.inventory.nodes) for pool in view.pools}
    statuses = {}
    for pool in view.pools:
        memory = states.get(pool.name, PoolState())
        statuses[pool.name] = PoolStatusFields(
            mode=pool_mode(pool),
            nodes=counts[pool.name],
            draining=len(memory.drains),
            next=name_first(memory.plan),
            plan=memory.plan[:MAX_PLAN_NODES],
            wave=memory.plan_wave,
            waits=waiting_reason(pool, memory, view.now, timeouts, paused=view.paused)[:MAX_TEXT],
            saved_nodes=memory.saved,
            saved=format_savings(memory.saved, memory.worth),
        )
    return statuses


def name_first(nodes: tuple[str, ...]) -> str:
    """Returns the first names as text, as in "n1, n2, n3 and 4 more"."""
    more = len(nodes) - MAX_NAMED_NODES
    return ", ".join(nodes[:MAX_NAMED_NODES]) + (f" and {more} more" if more > 0 else "") or "nothing"


def build_document(name: str, namespace: str, pool: str, status: PoolStatusFields, now: Seconds) -> Schema:
    """Returns the PoolStatus object of the pool; `name` is the name of the object."""
    fields = msgspec.to_builtins(msgspec.structs.replace(status, updated=format_timestamp(now)))
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": "trimtab"}},
        "pool": pool,
        "status": fields,
    }


def build_pool_status_crd() -> Schema:
    """Returns the CustomResourceDefinition of PoolStatus."""
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": _printer_columns(),
        "schema": {"openAPIV3Schema": _schema()},
    }
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "shortNames": [SHORT_NAME],
        "categories": ["trimtab"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}", "labels": {"app.kubernetes.io/name": "trimtab"}},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _printer_columns() -> list[Schema]:
    columns = (
        ("Mode", "string", ".status.mode", 0),
        ("Nodes", "integer", ".status.nodes", 0),
        ("Draining", "integer", ".status.draining", 0),
        ("Next", "string", ".status.next", 0),
        ("Saved", "string", ".status.saved", 0),
        ("Updated", "date", ".status.updated", 0),
        ("Waits", "string", ".status.waits", 0),
        ("Wave", "integer", ".status.wave", 1),
    )
    return [{"name": n, "type": t, "jsonPath": p, "priority": r} for n, t, p, r in columns]


_DESCRIPTIONS = {
    "mode": "The mode of the pool: act, rehearse or off.",
    "nodes": "The number of nodes in the pool.",
    "draining": "The number of nodes that are being drained, or that have no more pods to evict and wait for their "
    "removal.",
    "next": "The nodes that the last plan would drain first, as text.",
    "plan": "The nodes that the last plan would drain, in order; at most 50.",
    "wave": "The number of nodes in the first wave of the plan.",
    "waits": "What the next drain waits for. Empty if nothing delays it.",
    "savedNodes": "The number of nodes that were removed after a drain.",
    "saved": "What the removed nodes save, as text.",
    "updated": "When the compactor wrote this status, which it does at least every five minutes.",
}


def _schema() -> Schema:
    kinds: dict[str, Schema] = {
        "nodes": {"type": "integer"},
        "draining": {"type": "integer"},
        "wave": {"type": "integer"},
        "savedNodes": {"type": "integer"},
        "plan": {"type": "array", "items": {"type": "string"}},
        "updated": {"type": "string", "format": "date-time"},
    }
    fields = {
        name: {**kinds.get(name, {"type": "string"}), "description": says} for name, says in _DESCRIPTIONS.items()
    }
    return {
        "type": "object",
        "description": "The state of a pool. Only the compactor writes it, and no process reads it: the settings of "
        "a pool "
        "are in its ConfigMap, so changes by other clients have no effect.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "pool": {"type": "string", "description": "The name of the pool."},
            "status": {
                "type": "object",
                "description": "What the compactor did last, and what it would do next.",
                "properties": fields,
            },
        },
    }
