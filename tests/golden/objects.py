"""Objects of a cluster in one line each, as the API server prints them, for the snapshots beside this file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Item = dict[str, Any]

CREATED = "2026-01-02T00:00:00Z"
HASH = "7d4b9c6f5d"
"""The pod-template-hash of every ReplicaSet."""


def named(kind: str, version: str, name: str, namespace: str = "", **metadata: Any) -> Item:
    """Returns an object without a spec."""
    place = {"namespace": namespace} if namespace else {}
    uid = f"uid-{kind.lower()}-{namespace}-{name}"
    usual = {"name": name, **place, "uid": uid, "creationTimestamp": CREATED, "resourceVersion": "1"}
    return {"apiVersion": version, "kind": kind, "metadata": {**usual, **metadata}}


def node(name: str, pool: str, machine: str = "m5.2xlarge", zone: str = "a", **more: Any) -> Item:
    """Returns a node of eight cores, or of as many as `cpu` says."""
    cpu, memory = more.get("cpu", 8), more.get("memory", 32)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "nodepool": pool,
        "node.kubernetes.io/instance-type": machine,
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": f"us-east-1{zone}",
        **more.get("labels", {}),
    }
    item = named("Node", "v1", name, labels=labels, annotations=more.get("annotations", {}))
    taints = more.get("taints", [])
    item["spec"] = {
        "providerID": f"aws:///us-east-1{zone}/i-{name}",
        "taints": taints,
        "unschedulable": "cordon" in more,
    }
    item["status"] = {
        "capacity": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "58"},
        "allocatable": {"cpu": f"{cpu * 1000 - 80}m", "memory": f"{memory - 1}Gi", "pods": "58"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": "v1.33.1", "containerRuntimeVersion": "containerd://2.1"},
    }
    return item


def container(name: str = "app", cpu: str = "", memory: str = "", **more: Any) -> Item:
    requests = {resource: amount for resource, amount in (("cpu", cpu), ("memory", memory)) if amount}
    resources = {"requests": requests, **({"limits": more.pop("limits")} if "limits" in more else {})}
    return {"name": name, "image": f"registry.example.com/{name}:1", "resources": resources, **more}


def workload(
    name: str, namespace: str, on: Iterable[str], *containers: Item, kind: str = "Deployment", **more: Any
) -> list[Item]:
    """Returns the owner, its ReplicaSet if it has one, and a pod on each of these nodes."""
    nodes, spec = list(on), more.get("spec", {})
    labels = {"app": name, **more.get("labels", {})}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers), **spec}}
    owner = named(kind, "apps/v1", name, namespace, labels=labels, generation=1)
    owner["spec"] = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if kind != "DaemonSet":
        owner["spec"]["replicas"] = len(nodes)
        owner["status"] = {"replicas": len(nodes), "readyReplicas": len(nodes), "observedGeneration": 1}
    items, direct = [owner], owner
    if kind == "Deployment":
        labels = {**labels, "pod-template-hash": HASH}
        owners = [reference(owner)]
        direct = named("ReplicaSet", "apps/v1", f"{name}-{HASH}", namespace, labels=labels, ownerReferences=owners)
        direct["spec"] = {**owner["spec"], "selector": {"matchLabels": {"app": name, "pod-template-hash": HASH}}}
        direct["status"] = {"replicas": len(nodes), "readyReplicas": len(nodes)}
        items.append(direct)
    for number, place in enumerate(nodes):
        metadata = {"ownerReferences": [reference(direct)], "annotations": more.get("annotations", {})}
        pod = named("Pod", "v1", pod_name(name, number, kind), namespace, labels=labels, **metadata)
        pod["spec"] = {"containers": list(containers), "nodeName": place, **spec}
        ready = [{"type": "Ready", "status": "True"}]
        pod["status"] = {"phase": "Running", "conditions": ready, "startTime": CREATED}
        items.append(pod)
    return items


def pod_name(owner: str, number: int, kind: str = "Deployment") -> str:
    """Returns the name that the owner's controller gives to its pod of this number."""
    if kind == "StatefulSet":
        return f"{owner}-{number}"
    suffix = "".join("bcdfghjklm"[int(digit)] for digit in f"{number:05d}")
    return f"{owner}-{HASH}-{suffix}" if kind == "Deployment" else f"{owner}-{suffix}"


def reference(owner: Item) -> Item:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def config_map(name: str, namespace: str, data: Mapping[str, str], **metadata: Any) -> Item:
    return {**named("ConfigMap", "v1", name, namespace, **metadata), "data": dict(data)}


def pool(name: str, settings: str) -> Item:
    labels = {"trimtab.dev/pool": name}
    return config_map(f"pool-{name}", "trimtab-system", {"pool.yaml": settings}, labels=labels)


def budget(app: str, namespace: str, allowed: int) -> Item:
    item = named("PodDisruptionBudget", "policy/v1", app, namespace, generation=1)
    item["spec"] = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}
    item["status"] = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 3,
        "desiredHealthy": 3 - allowed,
        "expectedPods": 3,
        "observedGeneration": 1,
    }
    return item


def hpa(name: str, namespace: str, target: int, low: int, high: int) -> Item:
    item = named("HorizontalPodAutoscaler", "autoscaling/v2", name, namespace)
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    item["spec"] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": low,
        "maxReplicas": high,
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    current = {"name": "cpu", "current": {"averageUtilization": target - 20, "averageValue": "150m"}}
    item["status"] = {
        "currentReplicas": low,
        "desiredReplicas": low,
        "currentMetrics": [{"type": "Resource", "resource": current}],
    }
    return item


def vpa(name: str, namespace: str, cpu: str, memory: str, mode: str = "Off") -> Item:
    item = named("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", name, namespace)
    item["spec"] = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "updatePolicy": {"updateMode": mode},
    }
    target = {"cpu": cpu, "memory": memory}
    recommendation = {"containerName": "app", "target": target, "lowerBound": target, "upperBound": target}
    item["status"] = {
        "recommendation": {"containerRecommendations": [recommendation]},
        "conditions": [{"type": "RecommendationProvided", "status": "True"}],
    }
    return item


def policy(name: str, actions: Mapping[str, Any], match: Mapping[str, Any] | None = None, **spec: Any) -> Item:
    item = named("PodPolicy", "trimtab.dev/v1alpha1", name)
    item["spec"] = {**({"match": match} if match else {}), "actions": actions, **spec}
    return item
