"""The CustomResourceDefinition of DrainOrder, made from the types in `order_object`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.compaction.order import order_object as o
from trimtab.compaction.order.record import MAX_ORDER_NODES, MAX_TEXT

Schema = dict[str, Any]
Docs = Mapping[str, str]
MAX_STATUS_TEXT = 1000
_ONE_WAY = (
    "(has(self.nodes) && size(self.nodes) > 0 ? 1 : 0) + (has(self.selector) && self.selector != '' ? 1 : 0) + "
    "(has(self.pool) && self.pool != '' ? 1 : 0) == 1"
)


def _text(says: str, max_length: int = MAX_STATUS_TEXT, **more: Any) -> Schema:
    return {"type": "string", "maxLength": max_length, **more, "description": says}


def _flag(says: str) -> Schema:
    return {"type": "boolean", "default": False, "description": says}


def _list(says: str, items: Schema, max_items: int, kind: str = "atomic") -> Schema:
    return {"type": "array", "items": items, "maxItems": max_items, "x-kubernetes-list-type": kind, "description": says}


def _name_list(says: str, max_items: int, kind: str = "atomic") -> Schema:
    return _list(says, {"type": "string", "minLength": 1, "maxLength": 253}, max_items, kind)


def _object(says: str, properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "description": says, "properties": properties, **more}


_SPEC: Schema = {
    "nodes": _name_list(
        "The names of the nodes to empty. Exactly one of `nodes`, `selector` and `pool` is set.", MAX_ORDER_NODES, "set"
    ),
    "selector": _text(
        "A label selector in the form of `kubectl get -l`. The nodes that have the labels when the order is accepted "
        "are emptied.",
        o.MAX_SELECTOR,
    ),
    "pool": _text("The name of a pool. Its nodes when the order is accepted are emptied.", 63),
    "by": _text(
        "Your user name, as `kubectl auth whoami` shows it. The API server rejects any other name.",
        MAX_TEXT,
        minLength=1,
    ),
    "groups": _list(
        "Those of your groups from which you have the permissions that the drain needs. The API server rejects a group "
        "that you are not in.",
        {"type": "string", "minLength": 1, "maxLength": o.MAX_GROUP_LENGTH},
        o.MAX_GROUPS,
        "set",
    ),
    "why": _text("The reason, which other users see.", MAX_TEXT),
    "atOnce": {
        "type": "integer",
        "minimum": 1,
        "maximum": o.MAX_AT_ONCE,
        "default": 1,
        "description": "How many nodes are emptied at the same time, all of one zone.",
    },
    "keepGoing": _flag("Empty the nodes that can be emptied, although others cannot."),
    "force": _flag("Also evict pods that no controller recreates."),
    "deleteEmptyDirData": _flag("Also evict pods with an emptyDir on the disk of the node, whose data is then lost."),
    "overrideProtection": _flag(
        "Also evict pods that an annotation protects, and stop groups of pods that run only together."
    ),
    "until": _text(
        "The time after which no further node is begun, in RFC 3339.", 64, pattern=o.TIME_PATTERN, format="date-time"
    ),
    "timeout": _text(
        "The time after which no further pod is evicted, from the acceptance of the order, such as `2h`.",
        32,
        pattern=o.DURATION_PATTERN,
    ),
    "podTimeout": _text(
        "How long a pod may still exist after its grace period, and a successor may take until it is ready.",
        32,
        pattern=o.DURATION_PATTERN,
        default=o.DEFAULT_POD_TIMEOUT,
    ),
    "override": _list(
        "What the order may disregard of the settings of pools. `Windows`: the windows of a pool. `Limits`: how many "
        "nodes of a pool are drained at a time, how many evictions it permits in an hour, and how many nodes it keeps. "
        "What the order does disregard, the status says.",
        {"type": "string", "enum": [each.value for each in o.Override]},
        len(o.Override),
        "set",
    ),
}
_REMARK: Schema = {
    "node": _text("The name of the node.", 253),
    "reason": _text("The code of the reason, which `trimtab explain` explains.", 100),
    "message": _text("A sentence."),
}
_STATUS: Schema = {
    "phase": _text("`Waiting`, `Draining`, `Done`, `Failed` or `Refused`.", 20),
    "observedGeneration": {"type": "integer", "description": "The generation of the spec that the status is about."},
    "reason": _text(
        "The code of the reason for the phase or for the wait, which `trimtab explain` explains; empty if there is "
        "none.",
        100,
    ),
    "message": _text("What the order waits for, or why it has ended, in a sentence.", 2000),
    "nodes": {"type": "integer", "description": "The number of nodes of the order."},
    "empty": {"type": "integer", "description": "The number of nodes that are empty, or gone."},
    "cordoned": {"type": "integer", "description": "The number of nodes that are cordoned for the order."},
    "since": _text("When the order was accepted; empty before.", 64),
    "waves": {"type": "integer", "description": "The number of waves of the last plan."},
    "plan": _list(
        "The nodes of the last plan in the order in which they are emptied; at most 50.",
        _object(
            "When a node is emptied.",
            {
                "node": _text("The name of the node.", 253),
                "wave": {"type": "integer", "description": "The number of its wave, from 1."},
                "evictions": {"type": "integer", "description": "The number of pods to evict."},
            },
        ),
        50,
    ),
    "done": _name_list("The nodes that are empty, or gone; at most 50.", 50),
    "waiting": _list("The nodes that wait, and for what; at most 20.", _object("One node.", _REMARK), 20),
    "failed": _list("The nodes that cannot be emptied, and why; at most 20.", _object("One node.", _REMARK), 20),
    "overrides": _list(
        "What the order disregards of the settings of pools, as sentences; at most 20.",
        {"type": "string", "maxLength": MAX_STATUS_TEXT},
        20,
    ),
    "conditions": _list(
        "The conditions `Accepted` and `Complete`.",
        _object(
            "One condition.",
            {
                "type": _text("The type of the condition.", 100),
                "status": _text("`True`, `False` or `Unknown`.", 10),
                "reason": _text("One word in CamelCase.", 100),
                "message": _text("A sentence.", 2000),
                "lastTransitionTime": _text("When the status of the condition changed.", 64, format="date-time"),
                "observedGeneration": {"type": "integer", "description": "The generation of the spec."},
            },
        ),
        8,
    ),
}


def build_drain_order_crd() -> Schema:
    """Returns the CustomResourceDefinition of DrainOrder."""
    spec = _object(
        "Which nodes are emptied, for whom and how. It cannot be changed.",
        _SPEC,
        required=["by"],
        **{
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "the spec of a DrainOrder cannot be changed: create another"},
                {"rule": _ONE_WAY, "message": "exactly one of nodes, selector and pool must be set"},
            ]
        },
    )
    schema = _object(
        "The drain of nodes that a user orders from the compactor. Deleting it releases the nodes.",
        {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": _object(
                "What the compactor has done, and what it waits for. Only the compactor writes it.", _STATUS
            ),
        },
        required=["spec"],
    )
    version = {
        "name": o.VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": _printer_columns(),
        "schema": {"openAPIV3Schema": schema},
    }
    names = {
        "kind": o.KIND,
        "listKind": f"{o.KIND}List",
        "plural": o.PLURAL,
        "singular": o.KIND.lower(),
        "categories": ["trimtab"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{o.PLURAL}.{o.GROUP}", "labels": {"app.kubernetes.io/name": "trimtab"}},
        "spec": {"group": o.GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _printer_columns() -> list[Schema]:
    columns = (
        ("Phase", "string", ".status.phase", 0),
        ("Nodes", "integer", ".status.nodes", 0),
        ("Empty", "integer", ".status.empty", 0),
        ("By", "string", ".spec.by", 0),
        ("Age", "date", ".metadata.creationTimestamp", 0),
        ("Message", "string", ".status.message", 0),
        ("Why", "string", ".spec.why", 1),
        ("Overrides", "string", ".status.overrides", 1),
    )
    return [{"name": n, "type": t, "jsonPath": p, "priority": r} for n, t, p, r in columns]
