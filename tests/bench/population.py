"""Twenty thousand pods, or two thousand in a brief run, as real ones are: probes, environments, mounts, managedFields;
about 10 KB each."""

from __future__ import annotations

from tests.bench.results import choose_size
from tests.controlplane import objects, workloads
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object

PODS = choose_size(20_000, 2_000)
NODES = choose_size(100, 10)
OWNERS = 200
VERSION = choose_size("1", "1-brief")
"""Of the prepared cluster: change it whenever the pods change."""


def populate(cluster: Cluster) -> None:
    """Nodes, something that owns the pods, and the pods, dealt out without the scheduler."""
    nodes = [f"node-{number:04d}" for number in range(NODES)]
    workloads.create_all(cluster, [_node(name, number) for number, name in enumerate(nodes)])
    workloads.create_all(cluster, [_owner(number) for number in range(OWNERS)])
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in cluster.list("ConfigMap")}
    workloads.create_all(cluster, [pod(number, nodes[number % NODES], uids) for number in range(PODS)])
    workloads.wait_for_pods(cluster, PODS, slowest=8)


def _node(name: str, number: int) -> Object:
    labels = {"pool": "crowd", "topology.kubernetes.io/zone": "abc"[number % 3]}
    return objects.node(name, cpu="128", memory="512Gi", pods=250, labels=labels, taints=())


def _owner(number: int) -> Object:
    # Any kind will do: the garbage collector only asks whether it exists.
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"app-{number:03d}"}}


def pod(number: int, node: str, uids: dict[str, str]) -> Object:
    """Pods of one owner ask for the same, as they do everywhere."""
    app = f"app-{number % OWNERS:03d}"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": app, "uid": uids.get(app, app), "controller": True}
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": f"{app}-prod",
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/version": "2.41.7",
        "team": f"team-{number % 17}",
        "pod-template-hash": f"{number % OWNERS:010x}",
    }
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9102",
        "prometheus.io/path": "/metrics",
        "checksum/config": f"{number % OWNERS:064x}",
        "sidecar.istio.io/inject": "false",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{number:05d}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": {**_placement(app), "nodeName": node, "containers": _containers(number % OWNERS), "volumes": VOLUMES},
    }


def _placement(app: str) -> Object:
    same = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": app}}}
    soft = {"weight": 100, "podAffinityTerm": {**same, "topologyKey": "kubernetes.io/hostname"}}
    spread = {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", **same}
    return {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [soft]}},
        "topologySpreadConstraints": [spread],
        "terminationGracePeriodSeconds": 45,
    }


def _containers(kind: int) -> list[Object]:
    amounts = {"cpu": f"{10 + kind}m", "memory": f"{16 + kind}Mi"}
    main = {
        "name": "main",
        "image": "registry.local/shop/main:2.41.7",
        "args": ["serve", "--port=8080"],
        "resources": {"requests": amounts, "limits": {"memory": "512Mi"}},
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9102}],
        "env": [{"name": f"SETTING_{n}", "value": f"a value of some length, number {n}"} for n in range(12)],
        "livenessProbe": _probe("/livez"),
        "readinessProbe": _probe("/readyz"),
        "volumeMounts": MOUNTS,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    proxy = {
        "name": "proxy",
        "image": "registry.local/mesh/proxy:1.29",
        "volumeMounts": MOUNTS[:1],
        "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
        "readinessProbe": _probe("/healthz"),
        "env": [
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in (("POD", "metadata.name"), ("NAMESPACE", "metadata.namespace"), ("IP", "status.podIP"))
        ],
    }
    return [main, proxy]


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": 8080}, "initialDelaySeconds": 5, "periodSeconds": 10}


MOUNTS = [{"name": "config", "mountPath": "/etc/app"}, {"name": "scratch", "mountPath": "/tmp"}]
VOLUMES = [{"name": "config", "configMap": {"name": "app"}}, {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}]
