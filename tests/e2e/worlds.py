"""Namespaces full of rules, and pods that meet them: drawn from a seed, the same ones every time."""

from __future__ import annotations

from random import Random
from typing import Any

Object = dict[str, Any]

CPU = ["0", "1m", "10m", "50m", "0.1", "250m", "500m", "1", "1.5", "2", "4", "250u", "2e0"]
MEMORY = ["16Mi", "64Mi", "100M", "0.5Gi", "512Mi", "1e9", "1Gi", "2Gi", "4G", "128974848", "1500m"]
AMOUNTS = {"cpu": CPU, "memory": MEMORY, "ephemeral-storage": ["1Gi", "10G"]}

POLICIES = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: requests}
spec:
  priority: 10
  match: {podLabels: {requests: "true"}}
  actions:
    requests:
      cpu: {from: usage, otherwise: 50m, min: 10m}
      memory: {from: usage, otherwise: 128Mi, min: 32Mi}
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: no-limits}
spec:
  priority: 20
  match: {podLabels: {limits: remove}}
  actions:
    limits: {cpu: remove, memory: remove}
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: sandbox}
spec:
  priority: 30
  match: {podLabels: {sandbox: "true"}}
  actions:
    runtimeClass: {name: CLASS}
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: placed}
spec:
  priority: 40
  match: {podLabels: {placed: "true"}}
  actions:
    placement:
      require: [{label: pool, in: [batch, other]}]
      prefer: [{label: kubernetes.io/arch, in: [arm64], weight: 60}]
      tolerate: [{key: pool, value: batch, effect: NoSchedule}]
    labels: {add: {cost-center: platform}}
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: urgent}
spec:
  priority: 50
  match: {podLabels: {urgent: "true"}}
  actions:
    priorityClass: {name: PRIORITY}
    annotations: {add: {example.com/by: policy}}
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: spread}
spec:
  priority: 60
  match: {podLabels: {spread: "true"}}
  actions:
    topologySpread:
      constraints: [{topologyKey: topology.kubernetes.io/zone, maxSkew: 1}]
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: stray}
spec:
  priority: 70
  match: {podLabels: {stray: strip}}
  actions:
    overhead: {stray: strip, contradicting: deny}
"""
LABELS = {
    "requests": "true",
    "limits": "remove",
    "sandbox": "true",
    "placed": "true",
    "urgent": "true",
    "spread": "true",
    "stray": "strip",
}


def classes(tag: str) -> list[Object]:
    """RuntimeClasses and PriorityClasses of the whole cluster, `tag` in their names."""
    scheduling = {
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}],
    }
    runtime: list[Object] = [
        {"handler": "plain"},
        {"handler": "kata", "overhead": {"podFixed": {"cpu": "250m", "memory": "160Mi"}}, "scheduling": scheduling},
        {"handler": "gvisor", "overhead": {"podFixed": {"memory": "64Mi"}}},
    ]
    priority: list[Object] = [
        {"value": 1000},
        {"value": 100000, "preemptionPolicy": "Never"},
        {"value": 5, "globalDefault": True},
    ]
    return [
        *(_class("node.k8s.io/v1", "RuntimeClass", f"{c['handler']}-{tag}", c) for c in runtime),
        *(_class("scheduling.k8s.io/v1", "PriorityClass", f"p{c['value']}-{tag}", c) for c in priority),
    ]


def _class(group: str, kind: str, name: str, more: Object) -> Object:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, **more}


def rules(chance: Random) -> list[Object]:
    """LimitRanges and quotas of one namespace, or none."""
    result: list[Object] = []
    if chance.random() < 0.8:
        kinds = chance.choice([["Container"], ["Container"], ["Pod"], ["Container", "Pod"]])
        result.append(_v1("LimitRange", "bounds", {"limits": [_item(chance, kind) for kind in kinds]}))
    if chance.random() < 0.2:
        result.append(_v1("LimitRange", "more", {"limits": [MORE]}))
    if chance.random() < 0.7:
        result.append(_v1("ResourceQuota", "quota", {"hard": _hard(chance)}))
    if chance.random() < 0.25:
        scope = chance.choice(["BestEffort", "NotBestEffort", "NotTerminating"])
        result.append(_v1("ResourceQuota", "scoped", {"hard": {"pods": chance.choice(["0", "4"])}, "scopes": [scope]}))
    return result


# The server visits several LimitRanges in an order that differs from call to call: two that give defaults for the same
# resource have no answer that could be foretold.
MORE = {"type": "Container", "default": {"ephemeral-storage": "2Gi"}, "max": {"ephemeral-storage": "4Gi"}}


def _v1(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _item(chance: Random, kind: str) -> Object:
    """Coherent, as the API demands: min ≤ defaultRequest ≤ default ≤ max."""
    steps: dict[str, list[str]] = {"cpu": ["10m", "100m", "500m", "2"], "memory": ["16Mi", "64Mi", "512Mi", "2Gi"]}
    result: Object = {"type": kind}
    for name, step in steps.items():
        for field, value in zip(("min", "defaultRequest", "default", "max"), step, strict=True):
            if chance.random() < 0.4 and not (kind == "Pod" and field.startswith("default")):
                result.setdefault(field, {})[name] = value
        if chance.random() < 0.15:
            result.setdefault("maxLimitRequestRatio", {})[name] = chance.choice(["1", "4"])
    return result


def _hard(chance: Random) -> Object:
    most = {
        "pods": "20",
        "requests.cpu": "4",
        "cpu": "5",
        "requests.memory": "4Gi",
        "memory": "5Gi",
        "limits.cpu": "6",
        "limits.memory": "8Gi",
        "requests.ephemeral-storage": "20Gi",
        "count/pods": "30",
        "requests.nvidia.com/gpu": "1",
    }
    return {name: most[name] for name in chance.sample(sorted(most), chance.randint(1, 4))}


def pod(chance: Random, name: str, tag: str) -> Object:
    """One pod, as somebody might send it."""
    spec: Object = {"containers": [_container(chance, f"c{n}") for n in range(chance.choice([1, 1, 1, 2, 3]))]}
    if chance.random() < 0.25:
        spec["initContainers"] = [_container(chance, f"i{n}", init=True) for n in range(chance.choice([1, 2]))]
    for likely, put in CHOICES:
        if chance.random() < likely:
            spec.update(put(chance, tag))
    labels = {key: value for key, value in LABELS.items() if chance.random() < 0.3}
    meta: Object = {"name": name, **({"labels": labels} if labels else {})}
    if chance.random() < 0.05:
        meta["labels"] = {**labels, chance.choice(["bad key", "good"]): chance.choice(["x y", "fine"])}
    if chance.random() < 0.1:
        meta["annotations"] = {"kubernetes.io/limit-ranger": "old", "example.com/a": "b"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _container(chance: Random, name: str, *, init: bool = False) -> Object:
    result: Object = {"name": name, "image": "pause"}
    if init and chance.random() < 0.4:
        result["restartPolicy"] = "Always"
    if chance.random() < 0.75:
        result["resources"] = _resources(chance)
    if chance.random() < 0.15:
        result["ports"] = [{"containerPort": 8080}]
    return result


def _resources(chance: Random) -> Object:
    requests: Object = {}
    limited: Object = {}
    for name, facts in AMOUNTS.items():
        if name == "ephemeral-storage" and chance.random() < 0.85:
            continue
        low, high = sorted(chance.sample(range(len(facts)), 2))
        shape = chance.choice(["none", "request", "limit", "both", "equal"])
        if shape in ("request", "both"):
            requests[name] = facts[low]
        if shape in ("limit", "both", "equal"):
            limited[name] = facts[high]
        if shape == "equal":
            requests[name] = facts[high]
    if chance.random() < 0.08:
        limited["nvidia.com/gpu"] = requests["nvidia.com/gpu"] = chance.choice(["1", "2"])
    if chance.random() < 0.015:
        requests["cpu"] = chance.choice(["-1", "abc", "1.5Gi"])
    return {
        key: value for key, value in (("requests", requests), ("limits", limited)) if value or chance.random() < 0.2
    }


def _class_of(chance: Random, tag: str) -> Object:
    result: Object = {"runtimeClassName": chance.choice([f"kata-{tag}", f"gvisor-{tag}", f"plain-{tag}", "nope"])}
    if chance.random() < 0.25:
        result["overhead"] = chance.choice([{"cpu": "250m", "memory": "160Mi"}, {"memory": "65536Ki"}, {"cpu": "1"}])
    if chance.random() < 0.2:
        result["nodeSelector"] = {"sandbox": chance.choice(["yes", "no"])}
    return result


def _priority_of(chance: Random, tag: str) -> Object:
    name = chance.choice([f"p1000-{tag}", f"p100000-{tag}", "system-cluster-critical", "nope", ""])
    result: Object = {"priorityClassName": name} if name else {}
    if chance.random() < 0.3:
        result["priority"] = chance.choice([1000, 5, 0])
    if chance.random() < 0.2:
        result["preemptionPolicy"] = chance.choice(["Never", "PreemptLowerPriority"])
    return result


def _tolerations(chance: Random, tag: str) -> Object:
    entries = [
        {"key": "sandbox", "operator": "Exists"},
        {"key": "pool", "value": "batch", "effect": "NoSchedule"},
        {"key": "pool", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
        {"operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        {"key": "x", "operator": "Equal", "value": "y", "effect": "NoExecute", "tolerationSeconds": 10},
        {"key": "bad", "operator": "Exists", "value": "z"},
        {"key": "x", "operator": "Lt", "value": "3"},
        {"key": "s", "effect": "NoSchedule", "tolerationSeconds": 5},
    ]
    return {"tolerations": chance.sample(entries[:6] if chance.random() < 0.9 else entries, chance.choice([1, 2, 3]))}


def _affinity(chance: Random, tag: str) -> Object:
    terms = [
        {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]},
        {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
        {"matchExpressions": [{"key": "pool", "operator": "In"}]},
        {},
    ]
    chosen = chance.sample(terms[:3] if chance.random() < 0.9 else terms, chance.choice([1, 2]))
    required = {"nodeSelectorTerms": chosen}
    weight = chance.choice([1, 50, 100, 0])
    preferred = [{"weight": weight, "preference": terms[0]}]
    node: Object = {}
    if chance.random() < 0.8:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if chance.random() < 0.4:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {"affinity": {"nodeAffinity": node}}


def _level(chance: Random, tag: str) -> Object:
    return {
        "resources": chance.choice(
            [
                {"limits": {"cpu": "4", "memory": "4Gi"}},
                {"requests": {"cpu": "2"}},
                {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                {"limits": {"cpu": "1m"}},
            ]
        )
    }


def _spread(chance: Random, tag: str) -> Object:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": chance.choice([1, 2, 0]),
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]
    }


def _rest(chance: Random, tag: str) -> Object:
    return chance.choice(
        [
            {"hostNetwork": True},
            {"overhead": {"cpu": "100m"}},
            {"terminationGracePeriodSeconds": 5},
            {"restartPolicy": "Never", "activeDeadlineSeconds": 100},
            {"nodeSelector": {"pool": "batch"}},
            {"schedulerName": "mine"},
            {"schedulingGates": [{"name": "example.com/wait"}]},
        ]
    )


CHOICES = (
    (0.25, _class_of),
    (0.2, _priority_of),
    (0.3, _tolerations),
    (0.15, _affinity),
    (0.1, _level),
    (0.06, _spread),
    (0.12, _rest),
)
"""What a pod may say beside its containers, and how likely it does."""
