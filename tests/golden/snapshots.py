"""The five clusters whose outputs are stored, and the files that verbs read about them.

Four are small and differ in what they have; `large` has 310 nodes, with sizes from a published trace
(tests/bench/data/NOTICE.md).
"""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.golden.objects import (
    HASH,
    Item,
    budget,
    config_map,
    container,
    hpa,
    named,
    node,
    pod_name,
    policy,
    pool,
    vpa,
    workload,
)
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict, encode_annotation
from trimtab.compaction.drain.pool_state import STATE_KEY, STATE_LABEL, HistoryEntry, PoolState, encode_state

NOW = "2026-01-20T12:00:00Z"
"""The time at which every verb runs."""
NOW_SECONDS = 1_768_910_400
DAY, HOUR = 86_400, 3_600
_DATA = Path(__file__).resolve().parents[1] / "bench" / "data" / "openb-310-spread.json.gz"


@dataclass(frozen=True)
class GoldenSnapshot:
    """A cluster, and what else verbs are asked about it."""

    name: str
    objects: tuple[Item, ...]
    policies: tuple[Item, ...]
    usage: Mapping[str, Callable[[int], tuple[float, int]]]
    """`namespace,pod,container` → its cores and bytes in each hour since the usage began."""
    names: Mapping[str, str]
    """What placeholders in arguments stand for: the name of a node, of a pod, of a policy."""
    manifests: tuple[Item, ...] = field(default=())
    """What `admit` and `lint` read with `-f`; empty: the workloads of the cluster."""

    def write(self, folder: Path) -> None:
        """Write the files that the arguments of the commands name."""
        (folder / "clusters").mkdir()
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*self.objects, *self.policies]})
        (folder / "cluster.json").write_text(text)
        (folder / "clusters" / "east.json").write_text(text)
        (folder / "policies.yaml").write_text(yaml.safe_dump_all(self.policies, sort_keys=False))
        kinds = ("Deployment", "StatefulSet")
        manifests = self.manifests or [item for item in self.objects if item["kind"] in kinds][:4]
        (folder / "manifests.yaml").write_text(yaml.safe_dump_all(manifests, sort_keys=False))
        (folder / "sandbox.yaml").write_text(yaml.safe_dump(SANDBOX, sort_keys=False))
        pools = [item for item in self.objects if "trimtab.dev/pool" in (item["metadata"].get("labels") or {})]
        (folder / "pools.yaml").write_text(yaml.safe_dump_all(pools or [pool("web", "mode: rehearse\n")]))
        (folder / "usage.csv").write_text("".join(self._usage_rows()))
        (folder / "summary.json").write_text(json.dumps(self._kubelet_summary()))
        (folder / "estafette.yaml").write_text(json.dumps(_ESTAFETTE))
        (folder / "rules.yaml").write_text(_RULES)

    def _usage_rows(self) -> Iterable[str]:
        yield "timestamp,namespace,pod,container,cpu,memory\n"
        for names, used in self.usage.items():
            for hour in range(14 * 24):
                cores, memory = used(hour)
                yield f"{NOW_SECONDS - 14 * DAY + hour * HOUR},{names},{cores:.4f},{memory}\n"

    def _kubelet_summary(self) -> Item:
        """Returns what the kubelet of one node says: 100m and 80Mi beside the containers of each pod."""
        name = self.names["node"]
        pods = [item for item in self.objects if item["kind"] == "Pod" and item["spec"].get("nodeName") == name]
        refs = [
            {
                "podRef": {key: item["metadata"][key] for key in ("name", "namespace", "uid")},
                **_stats(600, 180),
                "volume": [
                    {
                        "name": "data",
                        "pvcRef": {"name": f"data-{item['metadata']['name']}", "namespace": "data"},
                        "capacityBytes": 100 << 30,
                        "usedBytes": 9 << 30,
                    }
                ],
                "containers": [{"name": part["name"], **_stats(500, 100)} for part in item["spec"]["containers"]],
            }
            for item in pods
        ]
        system = [{"name": "kubelet", **_stats(32, 320)}, {"name": "runtime", **_stats(48, 480)}]
        return {"node": {"nodeName": name, **_stats(2000, 8000), "systemContainers": system}, "pods": refs}


def _stats(millicores: int, mebibytes: int) -> Item:
    memory = {"time": NOW, "workingSetBytes": mebibytes << 20}
    return {"cpu": {"time": NOW, "usageNanoCores": millicores * 1_000_000}, "memory": memory}


_ESTAFETTE = {"nodePools": {"web": {"enabled": True, "scaleDownCPURequestRatioLimit": 0.6}}}
_RULES = """\
rules:
- name: http_requests_per_second
  from: scrape
  kind: rate
  maxAge: 90s
  namespaces: [shop]
  pods: {app: web}
  series: http_requests_total
  endpoint: {port: 8080}
"""
NAMESPACES = tuple(
    named("Namespace", "v1", name, labels={"kubernetes.io/metadata.name": name, "team": team})
    for name, team in (
        ("shop", "front"),
        ("data", "back"),
        ("batch", "back"),
        ("kube-system", "platform"),
        ("trimtab-system", "platform"),
    )
)
NO_LIMIT = policy("no-cpu-limit", {"limits": {"cpu": "remove"}}, {"namespaces": {"include": ["shop"]}}, priority=200)
SIZES = policy(
    "sizes",
    {
        "requests": {
            "cpu": {"from": "usage", "otherwise": "50m", "min": "10m"},
            "memory": {"from": "usage", "otherwise": "128Mi"},
        }
    },
    {"namespaces": {"include": ["shop", "data"]}, "owners": ["Deployment", "StatefulSet"]},
    description="Requests follow usage.",
    priority=100,
    rollout="50%",
)
BATCH = policy(
    "batch-nodes",
    {
        "placement": {
            "require": [{"label": "nodepool", "in": ["batch"]}],
            "tolerate": [{"key": "batch", "value": "true", "effect": "NoSchedule"}],
        },
        "priorityClass": {"name": "batch-low"},
    },
    {"namespaces": {"include": ["batch"]}},
    priority=300,
)
SANDBOX = policy(
    "tenants-in-a-sandbox",
    {"runtimeClass": {"name": "gvisor", "override": True, "required": True}},
    {"namespaces": {"include": ["tenant-*"]}},
)


def _steady(cores: float, mebibytes: int) -> Callable[[int], tuple[float, int]]:
    """Returns usage that hardly changes."""
    return lambda hour: (cores * (1 + 0.1 * math.sin(hour)), mebibytes + hour % 5 << 20)


def _by_day(cores: float, mebibytes: int) -> Callable[[int], tuple[float, int]]:
    """Returns usage in working hours, and nearly none at night."""
    return lambda hour: (cores if 8 <= hour % 24 < 18 else 0.001, (mebibytes if 8 <= hour % 24 < 18 else 40) << 20)


def _names(**names: str) -> dict[str, str]:
    return {"node": "web-1", "pod": f"shop/{pod_name('web', 0)}", "policy": "sizes", "pool": "web", **names}


def policies_and_pods() -> GoldenSnapshot:
    """Three nodes, pods of all kinds, and what admission compares: limits, a quota, policies of which one conflicts."""
    nodes = [node(f"web-{number}", "web") for number in (1, 2)] + [node("batch-1", "batch", zone="b")]
    limits = named("LimitRange", "v1", "defaults", "shop")
    limits["spec"] = {"limits": [{"type": "Container", "default": {"cpu": "2"}, "max": {"memory": "4Gi"}}]}
    quota = named("ResourceQuota", "v1", "team", "data")
    quota["spec"] = {"hard": {"requests.cpu": "4", "requests.memory": "8Gi"}}
    quota["status"] = {**quota["spec"], "used": {"requests.cpu": "3900m", "requests.memory": "7Gi"}}
    low = named("PriorityClass", "scheduling.k8s.io/v1", "batch-low")
    low["value"] = -10
    sidecar = container("istio-proxy", "100m", "128Mi")
    both = policy("grace", {"terminationGracePeriod": {"maxSeconds": 600}}, mode="warn", priority=50)
    objects = [
        *nodes,
        *NAMESPACES,
        limits,
        quota,
        low,
        *workload("web", "shop", ["web-1", "web-2"], container(limits={"cpu": "2"}), sidecar),
        *workload(
            "api", "shop", ["web-1"], container(cpu="1", memory="1Gi"), spec={"terminationGracePeriodSeconds": 900}
        ),
        *workload(
            "db", "data", ["web-2"], container(cpu="2", memory="4Gi", limits={"memory": "4Gi"}), kind="StatefulSet"
        ),
        *workload("report", "batch", ["batch-1"], container(cpu="500m"), annotations={"example.com/by": "night"}),
        *workload("agent", "kube-system", ["web-1", "web-2", "batch-1"], container(cpu="100m"), kind="DaemonSet"),
    ]
    usage = {f"shop,{pod_name('web', 0)},app": _steady(0.3, 200)}
    return GoldenSnapshot("policies", tuple(objects), (NO_LIMIT, SIZES, BATCH, both), usage, _names())


def autoscalers() -> GoldenSnapshot:
    """HPAs, VPAs and budgets that work with and against each other, and a sandbox."""
    nodes = [node(f"web-{number}", "web", zone="abc"[number % 3]) for number in range(1, 5)]
    kata = named("RuntimeClass", "node.k8s.io/v1", "kata")
    kata |= {"handler": "kata-fc", "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}}}
    sandbox = {"runtimeClassName": "kata", "overhead": {"cpu": "250m", "memory": "64Mi"}}
    objects = [
        *nodes,
        *NAMESPACES,
        kata,
        *workload(
            "web", "shop", ["web-1", "web-2", "web-3"], container(cpu="200m", memory="256Mi", limits={"cpu": "1"})
        ),
        hpa("web", "shop", 60, 3, 12),
        vpa("web", "shop", "350m", "300Mi", "Recreate"),
        budget("web", "shop", 0),
        *workload("api", "shop", ["web-2", "web-4"], container(cpu="1", memory="2Gi")),
        hpa("api", "shop", 90, 2, 2),
        budget("api", "shop", 1),
        *workload("cache", "data", ["web-3"], container(cpu="500m", memory="4Gi")),
        vpa("cache", "data", "120m", "3Gi"),
        *workload("untrusted", "batch", ["web-1"] * 6, container(cpu="100m", memory="64Mi"), spec=sandbox),
    ]
    usage = {
        f"shop,{pod_name('web', 0)},app": _by_day(0.4, 250),
        f"shop,{pod_name('api', 0)},app": _steady(0.2, 900),
        f"data,{pod_name('cache', 0)},app": _steady(0.1, 2900),
    }
    return GoldenSnapshot("autoscalers", tuple(objects), (SIZES,), usage, _names())


_AUTOSCALER_STATUS = """\
time: 2026-01-20 11:59:50 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health: {status: Healthy}
  scaleUp: {status: NoActivity}
  scaleDown: {status: NoCandidates}
nodeGroups:
- name: web
  health: {status: Healthy, minSize: 2, maxSize: 10, cloudProviderTarget: 5,
           nodeCounts: {registered: {total: 5, ready: 5}}}
  scaleUp: {status: NoActivity}
  scaleDown: {status: NoCandidates}
- name: batch
  health: {status: Healthy, minSize: 0, maxSize: 4, cloudProviderTarget: 2,
           nodeCounts: {registered: {total: 2, ready: 2}}}
  scaleUp: {status: Backoff, backoffInfo: {errorCode: outOfStock, errorMessage: no capacity}}
  scaleDown: {status: NoCandidates}
"""


def pools_with_a_plan() -> GoldenSnapshot:
    """Three pools: one acts and drains a node, one rehearses, one has settings with a mistake."""
    web = [node(f"web-{number}", "web", zone="abc"[number % 3]) for number in range(1, 6)]
    batch = [node(f"batch-{number}", "batch", "c5.4xlarge", cpu=16) for number in (1, 2)]
    drained = pod_name("web", 3)
    annotation = DrainAnnotation(
        drain="d7",
        pool="web",
        since=NOW_SECONDS - 300,
        home="trimtab-system",
        moves=(PodToEvict(f"shop/{drained}", f"uid-pod-shop-{drained}"),),
    )
    [info] = snapshot_inventory(build_snapshot([Document(file="x", index=0, value=web[4])]).snapshot).nodes
    note = encode_annotation(annotation, info, SigningKeys(b"k" * 32))
    web[4] = node("web-5", "web", zone="c", cordon=True, annotations={CORDONED_BY_US: note})
    entries = (
        HistoryEntry(at=NOW_SECONDS - 4 * HOUR, pool="web", what="planned", code="plan", why="2 nodes can go"),
        HistoryEntry(
            at=NOW_SECONDS - 300,
            pool="web",
            what="started",
            code="drain-started",
            why="its pods fit",
            node="web-5",
            drain="d7",
        ),
        HistoryEntry(
            at=NOW_SECONDS - 200,
            pool="web",
            what="evicted",
            code="evicted",
            why="its node is drained",
            node="web-5",
            pod=f"shop/{pod_name('web', 9)}",
            owner=f"ReplicaSet/web-{HASH}",
            drain="d7",
        ),
    )
    state = PoolState(
        ring=entries,
        plan=("web-4", "web-3"),
        plan_wave=1,
        plan_at=NOW_SECONDS - 60,
        drains={"web-5": "d7"},
        under={f"web-{number}": NOW_SECONDS - 2 * HOUR for number in range(1, 5)},
    )
    state = state.with_drain("web-9", "d1", ("micro-dollars an hour", 384_000), {"shop": 3, "data": 1})
    state = state.with_success("web-9", NOW_SECONDS - 5 * DAY)
    data, labels = {STATE_KEY: encode_state(state)}, {STATE_LABEL: "web"}
    state_object = config_map("trimtab-state-web", "trimtab-system", data, labels=labels)
    lease = named("Lease", "coordination.k8s.io/v1", "trimtab-compactor", "trimtab-system")
    lease["spec"] = {
        "holderIdentity": "compactor-0",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 1,
        "renewTime": "2026-01-20T11:59:58.000000Z",
        "acquireTime": "2026-01-20T00:00:00.000000Z",
    }
    flags = container("cluster-autoscaler") | {
        "command": ["./cluster-autoscaler", "--scale-down-utilization-threshold=0.3", "--scale-down-unneeded-time=10m"]
    }
    updated = {"cluster-autoscaler.kubernetes.io/last-updated": "2026-01-20 11:59:50 +0000 UTC"}
    objects = [
        *web,
        *batch,
        node("db-1", "db", zone="a"),
        *NAMESPACES,
        state_object,
        lease,
        pool("web", "mode: act\nkeep: {nodes: 2}\nage: {node: 20m}\ngoal: cost\n"),
        pool("batch", "preset: keen\nnodes: {labels: {nodepool: batch}}\n"),
        pool("db", "underUsed: {cpu: lots}\n"),
        config_map("cluster-autoscaler-status", "kube-system", {"status": _AUTOSCALER_STATUS}, annotations=updated),
        *workload("cluster-autoscaler", "kube-system", ["db-1"], flags),
        *workload("web", "shop", ["web-1", "web-1", "web-2", "web-5"], container(cpu="1500m", memory="2Gi")),
        budget("web", "shop", 1),
        *workload("api", "shop", ["web-2", "web-3"], container(cpu="1", memory="4Gi")),
        budget("api", "shop", 0),
        *workload("queue", "data", ["web-4"], container(cpu="500m", memory="1Gi")),
        *workload("report", "batch", ["batch-1", "batch-2"], container(cpu="3", memory="2Gi")),
        *workload("db", "data", ["db-1"], container(cpu="4", memory="16Gi"), kind="StatefulSet"),
    ]
    usage = {f"shop,{pod_name('web', number)},app": _by_day(0.9, 1500) for number in range(3)}
    return GoldenSnapshot("pools", tuple(objects), (NO_LIMIT, SIZES), usage, _names())


def usage_history() -> GoldenSnapshot:
    """Two weeks of usage: a daily pattern, steady work, an idle workload; volumes and Services beside it."""
    nodes = [node(f"web-{number}", "web") for number in (1, 2, 3)]
    claim = named("PersistentVolumeClaim", "v1", "data-db-0", "data")
    claim["spec"] = {
        "resources": {"requests": {"storage": "100Gi"}},
        "volumeName": "pv-1",
        "accessModes": ["ReadWriteOnce"],
    }
    claim["status"] = {"phase": "Bound", "capacity": {"storage": "100Gi"}}
    unused = named("PersistentVolumeClaim", "v1", "old", "data")
    unused["spec"] = {"resources": {"requests": {"storage": "500Gi"}}, "accessModes": ["ReadWriteOnce"]}
    service = named("Service", "v1", "legacy", "shop")
    service["spec"] = {"type": "LoadBalancer", "selector": {"app": "gone"}, "ports": [{"port": 80}]}
    volume = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]}
    objects = [
        *nodes,
        *NAMESPACES,
        claim,
        unused,
        service,
        config_map("forgotten", "shop", {"a": "b"}),
        *workload(
            "web", "shop", ["web-1", "web-2", "web-3"], container(cpu="2", memory="2Gi", limits={"memory": "2Gi"})
        ),
        hpa("web", "shop", 70, 2, 9),
        *workload("shell", "shop", ["web-2"], container(cpu="500m", memory="512Mi")),
        *workload(
            "api", "shop", ["web-1", "web-3"], container(cpu="250m", memory="256Mi"), labels={"team": "payments"}
        ),
        *workload("db", "data", ["web-1"], container(cpu="2", memory="8Gi"), kind="StatefulSet", spec=volume),
    ]
    usage = {
        **{f"shop,{pod_name('web', number)},app": _by_day(1.2 - number / 10, 900) for number in range(3)},
        f"shop,{pod_name('shell', 0)},app": _steady(0.0005, 20),
        **{f"shop,{pod_name('api', number)},app": _steady(0.6, 400) for number in range(2)},
        "data,db-0,app": _steady(0.4, 6000),
    }
    return GoldenSnapshot("usage", tuple(objects), (SIZES,), usage, _names())


def large() -> GoldenSnapshot:
    """All nodes of the published snapshot; of the pods an eighth, each of which requests eight times as much.
    Everything was created in the first days of the year."""
    text = gzip.decompress(_DATA.read_bytes()).replace(b'"2026-11-2', b'"2026-01-0')
    items = json.loads(text)["items"]
    nodes = [_lean(item, ("spec", "status")) for item in items if item["kind"] == "Node"]
    owned = [item for item in items if item["kind"] == "Pod" and item["metadata"].get("ownerReferences")]
    pods = [_larger(_lean(item, ("spec", "status"))) for item in owned[::8]]
    counts = Counter(item["metadata"]["ownerReferences"][0]["name"] for item in pods)
    replica_sets = [
        _of_replicas(item, counts[item["metadata"]["name"]])
        for item in items
        if item["kind"] == "ReplicaSet" and item["metadata"]["name"] in counts
    ]
    replicas = {each["metadata"]["ownerReferences"][0]["name"]: each["spec"]["replicas"] for each in replica_sets}
    deployments = [
        _of_replicas(item, replicas[item["metadata"]["name"]])
        for item in items
        if item["kind"] == "Deployment" and item["metadata"]["name"] in replicas
    ]
    daemons = [_lean(item, ("spec",)) for item in items if item["kind"] == "DaemonSet"]
    budgets = [item for item in items if item["kind"] == "PodDisruptionBudget"]
    first = pods[3]["metadata"]
    usage = {f"{item['metadata']['namespace']},{item['metadata']['name']},c": _steady(0.2, 300) for item in pods[3:8]}
    names = _names(node=nodes[0]["metadata"]["name"], pod=f"{first['namespace']}/{first['name']}", pool="c32-m256")
    sizes = policy("sizes", SIZES["spec"]["actions"], rollout="50%")
    return GoldenSnapshot(
        "large", (*nodes, *pods, *daemons, *replica_sets, *deployments, *budgets, *NAMESPACES), (sizes,), usage, names
    )


def _lean(item: Item, parts: Iterable[str]) -> Item:
    """Returns the object without what no verb reads: images and conditions of containers, projected volumes."""
    lean = {key: item[key] for key in ("apiVersion", "kind", "metadata", *parts)}
    if item["kind"] == "Pod":
        containers = [{key: part[key] for key in ("name", "image", "resources")} for part in item["spec"]["containers"]]
        kept = ("nodeName", "affinity", "topologySpreadConstraints", "nodeSelector", "tolerations")
        lean["spec"] = {"containers": containers, **{key: item["spec"][key] for key in kept if key in item["spec"]}}
        lean["status"] = {key: item["status"][key] for key in ("phase", "conditions") if key in item["status"]}
    return lean


def _of_replicas(owner: Item, count: int) -> Item:
    """Returns the owner of so many pods, all of which are ready."""
    lean = _lean(owner, ())
    lean["spec"] = {**owner["spec"], "replicas": count}
    lean["status"] = {"replicas": count, "readyReplicas": count, "observedGeneration": 1}
    return lean


def _larger(pod: Item) -> Item:
    """Returns the pod with eight times its requests, unless a DaemonSet owns it."""
    if pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet":
        return pod
    for part in pod["spec"]["containers"]:
        requests: dict[str, Any] = part["resources"].get("requests", {})
        for resource, unit in (("cpu", "m"), ("memory", "Mi")):
            amount = str(requests.get(resource, ""))
            if amount.endswith(unit):
                requests[resource] = f"{int(amount.removesuffix(unit)) * 8}{unit}"
            elif amount.isdigit() and resource == "cpu":
                requests[resource] = str(int(amount) * 8)
    return pod


SNAPSHOTS: Mapping[str, Callable[[], GoldenSnapshot]] = {
    "policies": policies_and_pods,
    "autoscalers": autoscalers,
    "pools": pools_with_a_plan,
    "usage": usage_history,
    "large": large,
}


@cache
def load_snapshot(name: str) -> GoldenSnapshot:
    """Returns the snapshot of this name."""
    return SNAPSHOTS[name]()
