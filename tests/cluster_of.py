"""Small worlds for tests: nodes, pods, budgets in one line each, read as the API server would print them."""

from typing import Any

from trimtab.cluster.cluster_state import Inventory, snapshot_inventory
from trimtab.cluster.pool import Pool
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
AT = "2026-01-02T00:00:00Z"
NOW = 1767312000 + 86400
"""A day after everything was made."""

Item = dict[str, Any]

ALL = Pool(name="all", everything=True, min_nodes=0, single_replicas=True)
"""Every node, no threshold, no minimum: the plan alone decides."""


def node(name: str, cpu: str = "4", memory: str = "64Gi", pods: int = 110, **more: Any) -> Item:
    """`labels`, `annotations`, `taints`, `ready`, `cordoned`, `created`, `extra` resources, `status` and `provider`."""
    labels = {HOST: name, **more.get("labels", {})}
    extra = more.get("extra", {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": labels,
            "annotations": more.get("annotations", {}),
            "creationTimestamp": more.get("created", AT),
        },
        "spec": {
            "taints": more.get("taints", []),
            "unschedulable": more.get("cordoned", False),
            "providerID": more.get("provider", ""),
        },
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods), **extra},
            "conditions": [{"type": "Ready", "status": "True" if more.get("ready", True) else "Unknown"}],
            **more.get("status", {}),
        },
    }


def pod(name: str, on: str = "", cpu: str = "500m", memory: str = "", app: str = "", **more: Any) -> Item:
    """Of a ReplicaSet called like its app (its name up to the first "-"), unless `owner` says otherwise."""
    app = app or name.partition("-")[0]
    owner = more.get("owner", "ReplicaSet")
    requests = {k: v for k, v in {"cpu": cpu, "memory": memory, **more.get("extra", {})}.items() if v}
    container = {"name": "c", "resources": {"requests": requests}, "ports": more.get("ports", [])}
    metadata: Item = {
        "name": name,
        "namespace": more.get("namespace", "default"),
        "uid": f"uid-{name}",
        "labels": {"app": app, **more.get("labels", {})},
        "annotations": more.get("annotations", {}),
        "creationTimestamp": more.get("created", AT),
    }
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": app, "uid": f"{owner}-{app}", "controller": True}]
    if "deleted" in more:
        metadata["deletionTimestamp"] = more["deleted"]
    ready = "True" if more.get("ready", True) else "False"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "nodeName": on, **more.get("spec", {})},
        "status": {"phase": more.get("phase", "Running"), "conditions": [{"type": "Ready", "status": ready}]},
    }


def budget(app: str, allowed: int, **more: Any) -> Item:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": more.get("name", app), "namespace": more.get("namespace", "default"), "generation": 2},
        "spec": {"selector": more.get("selector", {"matchLabels": {"app": app}}), **more.get("spec", {})},
        "status": {
            "observedGeneration": more.get("observed", 2),
            "disruptionsAllowed": allowed,
            "currentHealthy": 3,
            "desiredHealthy": 3 - max(allowed, more.get("most", allowed)),
            "expectedPods": 3,
        },
    }


def apart(app: str, key: str = HOST) -> Item:
    """Required anti-affinity towards an app, as a pod's spec."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(app: str, key: str = HOST, **more: Any) -> Item:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def cluster(*items: Item) -> Inventory:
    documents = [Document(file="test", index=number, value=item) for number, item in enumerate(items)]
    reading = build_snapshot(documents)
    assert not reading.mistakes, reading.mistakes
    return snapshot_inventory(reading.snapshot)
