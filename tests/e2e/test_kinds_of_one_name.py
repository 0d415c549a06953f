"""Three CustomResourceDefinitions of another group, called Node, Job and StatefulSet like built-in kinds, change
nothing on a real API server: not what a plan, a capture or an admission says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.test_capture import DEPLOYMENT, trimtab, unfinished_pods

GROUP = "example.dev"
OURS = (
    "nodes,namespaces,pods,deployments.apps,replicasets.apps,statefulsets.apps,jobs.batch,poddisruptionbudgets.policy"
)
THEIRS = f"nodes.{GROUP},jobs.{GROUP},statefulsets.{GROUP}"
Object = dict[str, Any]


def definition(kind: str, plural: str, scope: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": names, "versions": [version]},
    }


DEFINITIONS = [
    definition("Node", "nodes", "Cluster"),
    definition("Job", "jobs", "Namespaced"),
    definition("StatefulSet", "statefulsets", "Namespaced"),
]


def written(*objects: Object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def foreign(kind: str, name: str, **content: Any) -> Object:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, **content}


def foreign_objects(cluster: Cluster) -> list[Object]:
    """Objects with the names of real ones, and with fields that would change every answer if they were read."""
    node = cluster.list("Node")[0]["metadata"]["name"]
    status = {
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return [
        foreign("Node", node, spec={"unschedulable": True}, status=status),
        foreign("Node", "another", status=status),
        foreign("StatefulSet", "cache", spec={"replicas": 5}, status={"readyReplicas": 1}),
        foreign("Job", "web", spec={"parallelism": 3}),
    ]


@pytest.fixture(scope="module")
def whole_cluster(sole_cluster: Cluster) -> Cluster:
    return sole_cluster


@pytest.fixture
def furnished(cluster: Cluster) -> Iterator[Cluster]:
    """Running pods of a Deployment, and the definitions with their objects."""
    cluster.some_nodes()
    cluster.deployment("web", replicas=2, spec={"containers": [{"name": "main", "image": cluster.image}]})
    cluster.eventually(lambda: len(cluster.running("app=web")) == 2)
    cluster.eventually(lambda: not unfinished_pods(cluster), what="no pod of an earlier test waits or ends")
    yield cluster
    cluster.kubectl(
        "delete", "--ignore-not-found", "customresourcedefinitions", *(each["metadata"]["name"] for each in DEFINITIONS)
    )


def define(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=written(*DEFINITIONS))
    names = [f"crd/{each['metadata']['name']}" for each in DEFINITIONS]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    objects = written(*foreign_objects(cluster))
    cluster.kubectl("-n", cluster.namespace, "apply", "-f", "-", stdin=objects)


PLAN_FIELDS = (
    "nodesBefore",
    "nodesAfter",
    "evictions",
    "saves",
    "bound",
    "frontier",
    "waves",
    "stays",
    "blockers",
    "nodes",
)


def answers(cluster: Cluster, folder: Path) -> list[Any]:
    """What plan, capture and admit say of the live cluster: without the notes and the objects that other namespaces
    bring, because those of earlier tests end in the background."""
    manifest = folder / "shop.yaml"
    manifest.write_text(DEPLOYMENT.replace("NAMESPACE", cluster.namespace))
    plan = json.loads(trimtab(cluster, "plan", "--cluster", "live", "-o", "json", "--preset", "all=keen"))
    admitted = trimtab(cluster, "admit", "-f", str(manifest), "--cluster", "live", "-o", "json")
    items = json.loads(trimtab(cluster, "capture"))["items"]
    ours = {
        (item["kind"], item["metadata"]["name"])
        for item in items
        if item["kind"] == "Node" or item["metadata"].get("namespace") == cluster.namespace
    }
    return [{field: plan[field] for field in PLAN_FIELDS}, json.loads(admitted), ours]


def test_kinds_of_another_group_change_no_answer_of_the_live_cluster(furnished: Cluster, tmp_path: Path) -> None:
    before = answers(furnished, tmp_path)
    define(furnished)
    assert answers(furnished, tmp_path) == before


def test_objects_of_another_group_in_a_snapshot_change_no_plan(furnished: Cluster, tmp_path: Path) -> None:
    define(furnished)
    plans = []
    for name, resources in (("ours", OURS), ("all", f"{OURS},{THEIRS}")):
        file = tmp_path / f"{name}.json"
        file.write_text(furnished.kubectl("get", resources, "-A", "-o", "json"))
        plans.append(
            json.loads(trimtab(furnished, "plan", "--cluster", str(file), "-o", "json", "--preset", "all=keen"))
        )
    assert plans[1]["pools"] == plans[0]["pools"]
    assert plans[1]["waves"] == plans[0]["waves"]


def test_a_pod_of_another_groups_stateful_set_belongs_to_an_unknown_owner(furnished: Cluster) -> None:
    define(furnished)
    read = furnished.kubectl("-n", furnished.namespace, "get", f"statefulsets.{GROUP}", "cache", "-o", "json")
    owner = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "StatefulSet",
        "name": "cache",
        "controller": True,
        "uid": json.loads(read)["metadata"]["uid"],
    }
    pod = {
        "metadata": {"name": "cache-0", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "main", "image": furnished.image}]},
    }
    furnished.apply({"apiVersion": "v1", "kind": "Pod", **pod})
    furnished.eventually(lambda: furnished.get("Pod", "cache-0")["status"].get("phase") == "Running")
    arguments = ("--preset", "all=keen", "--explain", "pod", f"{furnished.namespace}/cache-0")
    explained = trimtab(furnished, "plan", "--cluster", "live", "-o", "json", *arguments)
    assert "pod-of-unknown-owner" in explained
    assert f"StatefulSet.{GROUP} {furnished.namespace}/cache" in explained
