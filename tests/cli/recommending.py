"""Usage in files, and what stands: three lines of world for `trimtab recommend`."""

import random
from pathlib import Path
from typing import Any

import yaml

from tests.cli.snapshots import snapshot, told
from tests.cluster_of import Item
from tests.usage.fake_prometheus import Answer, Asked, labels, matrix, vector

START = 1767571200
"""2026-01-05."""
DAY = 86400
WEB = "web-7d4b9c6f5d-x2x4k"


def usage(folder: Path, *, hours: int = 14 * 24, pod_name: str = WEB, cpu: float = 0.2, memory: int = 300) -> Path:
    """Every ten minutes; P95 a little above `cpu`."""
    drawn = random.Random(7)
    rows = [
        f"{START + n * 600},shop,{pod_name},app,{cpu * (0.5 + drawn.random() / 2):.4f},{memory + n % 3}Mi"
        for n in range(hours * 6)
    ]
    path = folder / f"usage-{pod_name}.csv"
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


def web(name: str = WEB, **more: Any) -> Item:
    """A pod of Deployment web that asks for a core and a gibibyte."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, **more}
    owner = {"kind": "ReplicaSet", "name": "web-7d4b9c6f5d", "controller": True, "apiVersion": "apps/v1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {"pod-template-hash": "7d4b9c6f5d"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": "a", "containers": [{"name": "app", "resources": resources}]},
        "status": {"phase": "Running"},
    }


def deployment(replicas: int = 3) -> Item:
    """Of pod `web`: as many replicas as a VPA's updater wants to see."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas},
    }


def vpa(**status: Any) -> Item:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    policy = {"containerPolicies": [{"containerName": "*", "controlledValues": "RequestsOnly"}]}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": target, "resourcePolicy": policy},
        "status": status,
    }


def hpa(target: int) -> Item:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    }


def only(folder: Path, *items: Item, options: tuple[str, ...] = (), **given: Any) -> dict[str, Any]:
    """The one container's report."""
    state = items or (web(),)
    report = told("recommend", "--usage", usage(folder, **given), "--cluster", snapshot(folder, *state), *options)
    (container,) = report["containers"]
    assert isinstance(container, dict)
    return container


def codes(part: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in part["reasons"]]


def prometheus(asked: Asked) -> Answer:
    path, query, _ = asked
    if path.endswith("/labels"):
        return 200, labels("namespace", "pod", "container")
    if path.endswith("/label/namespace/values"):
        return 200, labels("shop")
    if path.endswith("/label/pod/values"):
        return 200, labels(WEB)
    if path.endswith("/query"):
        return 200, vector()
    if "kube_pod_container" in query["query"]:
        return 200, matrix()
    value = 0.25 if "cpu" in query["query"] else 3e8
    times = range(int(query["start"]), int(query["end"]) + 1, int(query["step"]))
    metric = {"namespace": "shop", "pod": WEB, "container": "app"}
    return 200, matrix((metric, [(float(at), value) for at in times]))


def api(asked: Asked, *, metrics: bool = True) -> Answer:
    """A cluster with one pod, its metrics and no history."""
    path = asked[0]
    if path.startswith("/apis/metrics.k8s.io") and metrics:
        usage = [{"name": "app", "usage": {"cpu": "250000000n", "memory": "131072Ki"}}]
        meta = {"name": WEB, "namespace": "shop"}
        return 200, {"items": [{"metadata": meta, "timestamp": "2026-01-05T00:00:00Z", "containers": usage}]}
    if path == "/api/v1/pods":
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [web()]}
    if path.startswith(("/apis/metrics", "/apis/autoscaling.k8s.io")):
        return 404, {"kind": "Status", "reason": "NotFound", "message": "not served"}
    return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}


def kubeconfig(folder: Path, url: str) -> Path:
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    named = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [context],
        "current-context": "x",
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **named}))
    return folder / "kubeconfig"


def with_vpa(asked: Asked, *, ready: bool = True, allowed: bool = True) -> Answer:
    """The same, with a VPA that has nothing to say yet, and its webhook."""
    path = asked[0]
    service = {"namespace": "kube-system", "name": "vpa-webhook"}
    hook = {
        "name": "vpa.k8s.io",
        "clientConfig": {"service": service, "caBundle": "Q0E="},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    slice_ = {
        "metadata": {"name": "s", "namespace": "kube-system", "labels": {"kubernetes.io/service-name": "vpa-webhook"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
    }
    text = {
        "verticalpodautoscalers": vpa(),
        "endpointslices": slice_,
        "deployments": deployment(),
        "mutatingwebhookconfigurations": {"metadata": {"name": "vpa"}, "webhooks": [hook]},
    }
    plural = path.rsplit("/", 1)[-1]
    if plural in text:
        if plural.startswith("mutating") and not allowed:
            return 403, {"kind": "Status", "reason": "Forbidden", "message": "no"}
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [text[plural]]}
    return api(asked)
