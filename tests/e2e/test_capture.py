"""Is a captured cluster the same as the live one, and is nothing in it that should not be?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.controlplane.cluster import Cluster
from tests.reasons import has_facts
from trimtab.kube.capture import encode_capture
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.listing import list_kinds

SECRET = "hunter2"
SCHEMAS = Path(__file__).parents[2] / "deploy" / "schemas"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NAMESPACE}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: app, image: shop, resources: {limits: {cpu: "2", memory: 1Gi}}}
      - {name: helper, image: helper}
"""


def trimtab(cluster: Cluster, *arguments: str, code: int = 0) -> str:
    """What the command prints, as a user with this kubeconfig runs it."""
    argv = [sys.executable, "-m", "trimtab", *arguments]
    env = {"PATH": "/usr/bin:/bin", "KUBECONFIG": str(cluster.kubeconfig), "HOME": "/nonexistent"}
    root = Path(__file__).parents[2]
    done = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def whole_cluster(sole_cluster: Cluster) -> Cluster:
    return sole_cluster


@pytest.fixture
def furnished(cluster: Cluster) -> Cluster:
    """A namespace with everything an answer depends on, and with what nobody may carry away."""
    cluster.some_nodes()
    hidden = [{"name": "PASSWORD", "value": SECRET}]
    cluster.apply(
        [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": SECRET}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"a": SECRET}},
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": "bounds"},
                "spec": {"limits": [{"type": "Container", "default": {"memory": "256Mi"}, "max": {"cpu": "3"}}]},
            },
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "quota"},
                "spec": {"hard": {"limits.memory": "64Gi", "pods": "50"}},
            },
        ]
    )
    container = {"name": "main", "image": cluster.image, "env": hidden, "command": ["sh", "-c", f"echo {SECRET}"]}
    cluster.deployment("web", replicas=2, labels={"team": "blue"}, spec={"containers": [container]})
    cluster.patch(
        "Deployment",
        "web",
        {
            "metadata": {
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": SECRET})}
            }
        },
    )
    cluster.eventually(lambda: len(cluster.running("app=web")) == 2)
    cluster.eventually(lambda: not unfinished_pods(cluster), what="no pod of an earlier test waits or ends")
    cluster.eventually(lambda: cluster.get("ResourceQuota", "quota")["status"].get("used"))
    return cluster


def unfinished_pods(cluster: Cluster) -> list[str]:
    """The pods of all namespaces that have no node yet or are being deleted: between two looks they change a plan."""
    return [
        pod["metadata"]["name"]
        for pod in cluster.list("Pod", everywhere=True)
        if not pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]
    ]


def test_admit_answers_alike_from_the_cluster_and_from_its_capture(furnished: Cluster, tmp_path: Path) -> None:
    manifest, capture = tmp_path / "shop.yaml", tmp_path / "capture.json.gz"
    manifest.write_text(DEPLOYMENT.replace("NAMESPACE", furnished.namespace))
    live = trimtab(furnished, "admit", "-f", str(manifest), "--cluster", "live", "-o", "json")
    trimtab(furnished, "capture", "-O", str(capture))
    holding = trimtab(furnished, "admit", "-f", str(manifest), "--cluster", str(capture), "-o", "json")
    alone = trimtab(furnished, "admit", "-f", str(manifest), "-o", "json")
    assert live == holding
    stored = json.loads(live)["pods"][0]["stored"]
    assert stored["spec"]["containers"][1]["resources"]["limits"] == {"cpu": "3", "memory": "256Mi"}
    assert json.loads(alone)["pods"] != json.loads(live)["pods"]
    assert capture.stat().st_mode & 0o077 == 0


def test_a_plan_from_the_cluster_is_the_plan_from_its_capture(furnished: Cluster, tmp_path: Path) -> None:
    capture = tmp_path / "capture.json.gz"
    arguments = ("-o", "json", "--preset", "all=keen", "--explain", "pod", pod_of(furnished))
    live = json.loads(trimtab(furnished, "plan", "--cluster", "live", *arguments))
    trimtab(furnished, "capture", "-O", str(capture))
    document = json.loads(trimtab(furnished, "plan", "--cluster", str(capture), *arguments))
    assert live == document
    jsonschema.validate(live, json.loads((SCHEMAS / "plan-report.schema.json").read_text()))
    assert live["explained"]


def pod_of(cluster: Cluster) -> str:
    return f"{cluster.namespace}/{cluster.running('app=web')[0]['metadata']['name']}"


def test_nothing_secret_is_captured(furnished: Cluster) -> None:
    captured = trimtab(furnished, "capture")
    assert f'"namespace":"{furnished.namespace}"' in captured
    assert SECRET not in captured
    kinds = {item["kind"] for item in json.loads(captured)["items"]}
    assert {"Pod", "Node", "Deployment", "LimitRange", "ResourceQuota"} <= kinds
    assert "Secret" not in kinds


def test_hashed_names_are_consistent_and_nothing_of_the_names_is_left(furnished: Cluster) -> None:
    client = connect_to_cluster(str(furnished.kubeconfig))
    snapshot = list_kinds(client).snapshot
    client.close()
    plain, hashed = (json.loads(encode_capture(snapshot, salt=salt))["items"] for salt in (None, b"salt"))
    for name in (furnished.namespace, "web", "blue", f"any-{furnished.namespace[-5:]}", "quota"):
        assert f'"{name}' not in json.dumps(hashed)
    assert edges(hashed) == edges(plain)
    assert [item["kind"] for item in hashed] == [item["kind"] for item in plain]


def edges(items: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    """How the objects hang together, by their places instead of their names: owners, nodes, selected pods."""
    place = {(i["kind"], i["metadata"].get("namespace"), i["metadata"]["name"]): n for n, i in enumerate(items)}
    results = []
    for number, item in enumerate(items):
        meta, spec = item["metadata"], item.get("spec", {})
        owners = [place.get((o["kind"], meta.get("namespace"), o["name"]), -1) for o in meta.get("ownerReferences", ())]
        node = place.get(("Node", None, spec.get("nodeName")), -1)
        selector = (spec.get("selector") or {}).get("matchLabels")
        pods = [
            other
            for other, pod in enumerate(items)
            if selector
            and pod["kind"] == "Pod"
            and pod["metadata"].get("namespace") == meta.get("namespace")
            and selector.items() <= pod["metadata"].get("labels", {}).items()
        ]
        results.append((number, *owners, node, *pods))
    return results


def test_a_cluster_that_is_not_there_is_told(furnished: Cluster, tmp_path: Path) -> None:
    dead = tmp_path / "dead.kubeconfig"
    text = furnished.kubeconfig.read_text()
    dead.write_text(text.replace(furnished.api.server, "https://127.0.0.1:1"))
    printed_text = trimtab(furnished, "capture", "--kubeconfig", str(dead), code=3)
    assert has_facts(printed_text, "list configmaps", "127.0.0.1")
    assert "refused" in printed_text
    assert "nowhere" in trimtab(furnished, "capture", "--kubeconfig", str(tmp_path / "nowhere"), code=2)
    missing = str(tmp_path / "nowhere" / "capture.json")
    assert has_facts(trimtab(furnished, "capture", "-O", missing, code=2), "a file", "written")
    manifest = tmp_path / "shop.yaml"
    manifest.write_text(DEPLOYMENT)
    assert "--cluster live" in trimtab(furnished, "admit", "-f", str(manifest), "--context", "testbed", code=2)
