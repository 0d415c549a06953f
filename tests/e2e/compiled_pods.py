"""Namespaces, classes and pods for compiled policies: drawn from a seed, the same ones every time."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.build import owner_key
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode
from trimtab.cluster.request_parameters import PARAMETERS_NAME, NamespaceRules, build_parameters

Object = dict[str, Any]
MARK = "trimtab-e2e/policy"
"""The label that names the one compiled policy that is bound to a pod."""

LABELS = {
    "stage": "development",
    "disk": "counted",
    "batch": "packed",
    "own-pool": "yes",
    "team": "blue",
    "machines": "by-choice",
    "scratch": "bounded",
    "trimtab.dev/memory-limits": "none",
    "billing/cost-center": "c7",
}
PREFIXES: dict[str, Object] = {
    "shared": LABELS,
    "tenant": {**LABELS, "team": ""},
    "build": LABELS,
    "db": {"machines": "by-choice"},
    "team": {key: LABELS[key] for key in ("stage", "trimtab.dev/memory-limits", "scratch")},
    "out": {**LABELS, "trimtab.dev/opt-out": "true"},
    "in": {**LABELS, "trimtab.dev/opt-out": "No"},
    "ruled": LABELS,
}
"""Beginning of a namespace's name → its labels; `ruled` has a LimitRange and a quota."""
CONTAINERS = ("main", "istio-proxy", "side")
OWNERS = ("Deployment.api", "Deployment.hpa", "StatefulSet.db", "Job.batch")


def world(tag: str, now: int) -> list[Object]:
    """Everything that the pods stand in, the parameters included. Names end in the tag, but for classes."""
    results: list[Object] = [
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "gvisor"},
            "handler": "runsc",
            "overhead": {"podFixed": {"cpu": "100m", "memory": "64Mi"}},
            "scheduling": {
                "nodeSelector": {"sandbox": "yes"},
                "tolerations": [{"key": "sandbox", "operator": "Exists"}],
            },
        },
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "plain"}, "handler": "runc"},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "batch-low"}, "value": 5},
    ]
    usage = {
        (o.split(".")[0], o.split(".")[1]): {c: _usage(number, c) for c in CONTAINERS}
        for number, o in enumerate(OWNERS)
    }
    workloads: dict[str, dict[str, ContainerUsage]] = {}
    for prefix, labels in PREFIXES.items():
        name = f"{prefix}-{tag}"
        results.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        for (kind, owner), containers in usage.items():
            workloads[f"{name}/{kind}/{owner}"] = containers
        results.append(_hpa(name))
        ruled = prefix == "ruled"
        rules = NamespaceRules(limit_ranges=int(ruled), quotas=int(ruled), hpas=("Deployment.hpa",))
        flat = {
            (owner_key(f"{kind}/{owner}", name), c): used
            for (kind, owner), containers in usage.items()
            for c, used in containers.items()
        }
        data = dict(build_parameters(flat, rules, now).data)
        results.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "data": data,
                "metadata": {"name": PARAMETERS_NAME, "namespace": name},
            }
        )
        if ruled:
            results += _rules(name)
    results.append(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": {PAYLOAD_KEY: encode(workloads)},
            "metadata": {
                "name": "trimtab-recommendations-000",
                "namespace": "trimtab-system",
                "labels": {RECOMMENDATIONS_LABEL: "v1"},
            },
        }
    )
    return results


def _usage(number: int, container: str) -> ContainerUsage:
    cpu, memory = 20 + 35 * number + len(container), (40 + 90 * number + len(container)) * 1_000_000
    floor = memory * 3 if number == 1 else None
    return ContainerUsage(
        cpu=Percentiles(p5="5m", p95=f"{cpu}m", p99=f"{cpu * 2}m", request=f"{cpu + 3}m", confidence=1.0),
        memory=Percentiles(
            p5="8Mi",
            p95=str(memory),
            p99=str(memory + 12_345_678),
            request=str(memory + 77),
            confidence=1.0,
            floor=None if floor is None else str(floor),
        ),
        days=14,
        samples=20000,
        confidence=1.0,
    )


def _hpa(namespace: str) -> Object:
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hpa"},
            "minReplicas": 1,
            "maxReplicas": 9,
            "metrics": [metric],
        },
    }


def _rules(namespace: str) -> list[Object]:
    meta = {"name": "rules", "namespace": namespace}
    item = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}
    return [
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [item]}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "900"}}},
    ]


def pod(chance: Random, name: str, tag: str) -> Object:
    """One pod that the API server would let in, most of the time."""
    meta: Object = {"name": name, "namespace": f"{chance.choice(list(PREFIXES))}-{tag}", "labels": _labels(chance)}
    owner = chance.choice(["", "", "api", "hpa", "db", "batch", "agent", "ghost"])
    if owner:
        kind = {"db": "StatefulSet", "batch": "Job", "agent": "DaemonSet"}.get(owner, "ReplicaSet")
        own = f"{owner}-7d9f" if kind == "ReplicaSet" else owner
        version = "batch/v1" if kind == "Job" else "apps/v1"
        meta["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": own, "uid": f"uid-{owner}", "controller": True}
        ]
        if kind == "ReplicaSet" and owner != "ghost":
            meta["labels"]["pod-template-hash"] = "7d9f"
    if chance.random() < 0.25:
        meta["annotations"] = _annotations(chance)
    spec: Object = {
        "automountServiceAccountToken": False,
        "containers": [_container(chance, n) for n in CONTAINERS[: chance.choice([1, 1, 2, 3])]],
    }
    if chance.random() < 0.25:
        init = _container(chance, "prepare")
        spec["initContainers"] = [{**init, **({"restartPolicy": "Always"} if chance.random() < 0.5 else {})}]
    for likely, draw in _MORE:
        if chance.random() < likely:
            spec.update(draw(chance))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _labels(chance: Random) -> dict[str, str]:
    facts = {
        "app": "web",
        "multi-arch": "true",
        "interruptible": "true",
        "machine": chance.choice(["small", "large", "huge"]),
        "sizing": "measured",
        "tier": "untrusted",
        "k8s-app": "x",
        "trimtab.dev/cpu-limit": "keep",
        "cost-center": chance.choice(["own", "platform"]),
        "app.kubernetes.io/name": "n",
        "trimtab.dev/opt-out": chance.choice(["true", "off", ""]),
        "billed-machine": "small",
        "billing/cost-center": chance.choice(["c7", "c8"]),
    }
    rare = ("trimtab.dev/opt-out", "trimtab.dev/cpu-limit", "billed-machine", "billing/cost-center")
    return {key: value for key, value in facts.items() if chance.random() < (0.07 if key in rare else 0.45)}


def _annotations(chance: Random) -> dict[str, str]:
    safe = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    return chance.choice(
        [
            {"example.com/price-class": "low"},
            {safe: "false"},
            {f"{safe}-local-volumes": "tmp,other"},
            {"trimtab.dev/opt-out": "yes"},
            {"example.com/price-class": "high", safe: "true"},
            {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": {"tolerations": [{}]}})},
        ]
    )


def _container(chance: Random, name: str) -> Object:
    image = chance.choice(
        [
            "nginx:1",
            "registry.example.com/solver/x:1",
            "istio/proxyv2:1.2",
            "docker.io/istio/proxyv2:9",
            "registry.k8s.io/p:1",
            "localhost/x",
            "ghcr.io/o/y:2",
        ]
    )
    item: Object = {"name": name, "image": image}
    cpu, memory, disk = ["0", "10m", "250m", "0.5", "2", "9"], ["64Mi", "100M", "1Gi", "3Gi"], ["1Gi", "1500M"]
    requests, limits = {}, {}
    for resource, facts in (("cpu", cpu), ("memory", memory), ("ephemeral-storage", disk)):
        shape = chance.choice(["none", "none", "request", "limit", "both", "equal"])
        low, high = sorted(chance.choices(range(len(facts)), k=2))
        if shape in ("request", "both", "equal"):
            requests[resource] = facts[low]
        if shape in ("limit", "both", "equal"):
            limits[resource] = facts[low if shape == "equal" else high]
        # A limit of zero is not what people write.
        if limits.get(resource) == "0":
            del limits[resource]
    if chance.random() < 0.15:
        gpu = chance.choice(["nvidia.com/gpu", "example.com/licence"])
        requests[gpu] = limits[gpu] = "1"
    if requests or limits:
        item["resources"] = {k: v for k, v in (("requests", requests), ("limits", limits)) if v}
    if chance.random() < 0.1:
        item["env"] = [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
    return item


def _tolerations(chance: Random) -> Object:
    entries = [
        {"key": "pool", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
        {"operator": "Exists"},
        {"key": "capacity", "operator": "Exists"},
        {"key": "kubernetes.io/arch", "value": "arm64"},
        {"key": "pool", "value": "small", "effect": "NoExecute", "tolerationSeconds": 5},
    ]
    return {"tolerations": chance.sample(entries, 2)}


def _affinity(chance: Random) -> Object:
    expressions = [
        {"key": "pool", "operator": "In", "values": ["batch", "small"]},
        {"key": "pool", "operator": "NotIn", "values": ["x"]},
        {"key": "pool", "operator": "DoesNotExist"},
        {"key": "accelerator", "operator": "Exists"},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "machine-generation", "operator": "Gt", "values": ["5"]},
        {"key": "sandbox", "operator": "In", "values": ["no"]},
    ]
    terms: list[Object] = [
        {"matchExpressions": chance.sample(expressions, chance.choice([1, 2]))} for _ in range(chance.choice([1, 2]))
    ]
    if chance.random() < 0.2:
        terms.append({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]})
    node: Object = {}
    if chance.random() < 0.8:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if chance.random() < 0.4:
        prefer = {"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"}
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 7, "preference": {"matchExpressions": [chance.choice([prefer, expressions[0]])]}}
        ]
    return {"affinity": {"nodeAffinity": node}} if chance.random() < 0.9 else {"affinity": {"podAntiAffinity": {}}}


def _volumes(chance: Random) -> Object:
    entries: list[Object] = [
        {"name": "tmp", "emptyDir": {}},
        {"name": "x-tmp", "emptyDir": {"medium": "Memory"}},
        {"name": "scratch-a", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "other", "emptyDir": {}},
        {"name": "cfg", "configMap": {"name": "c", "optional": True}},
        {"name": "scratch", "hostPath": {"path": "/x"}},
    ]
    return {"volumes": chance.sample(entries, chance.choice([1, 3]))}


def _rest(chance: Random) -> Object:
    return chance.choice(
        [
            {"terminationGracePeriodSeconds": 900},
            {"terminationGracePeriodSeconds": 5},
            {"schedulerName": "mine"},
            {"nodeSelector": {"pool": chance.choice(["batch", "small", "blue"])}},
            {"overhead": {"cpu": "100m"}},
            {"runtimeClassName": chance.choice(["gvisor", "plain"])},
            {"priorityClassName": "batch-low"},
            {"nodeName": "n1"},
            {"serviceAccountName": "ci-build"},
            {"os": {"name": "windows"}},
            {"nodeSelector": {"sandbox": chance.choice(["yes", "no"])}},
            {"priorityClassName": "system-node-critical"},
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 2,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {},
                    }
                ]
            },
            {"resources": {"requests": {"cpu": "9"}}},
        ]
    )


_MORE = ((0.2, _tolerations), (0.25, _affinity), (0.35, _volumes), (0.5, _rest))
