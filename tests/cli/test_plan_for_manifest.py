"""`trimtab plan --for FILE`: the pods of a manifest are judged as the cluster would store them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import HOST, ZONE, Item, apart, node, pod, spread

V1 = {"apiVersion": "v1"}


def template(cpu: str = "3", **spec: Any) -> Item:
    container = {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu} if cpu else {}}}
    return {"metadata": {"labels": {"app": "big"}}, "spec": {"containers": [container], **spec}}


def workload(
    kind: str = "Deployment", replicas: int = 1, cpu: str = "3", more: Item | None = None, **spec: Any
) -> Item:
    version = {"Job": "batch/v1", "CronJob": "batch/v1", "Pod": "v1"}.get(kind, "apps/v1")
    metadata = {"name": "big", "namespace": "default"}
    selector = {"matchLabels": {"app": "big"}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": {"replicas": replicas, "selector": selector, "template": template(cpu, **spec), **(more or {})},
    }


def priority_class(name: str, value: int, **more: Any) -> Item:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | more


def storage_class(name: str = "fast", **more: Any) -> Item:
    mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disk.csi"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **mode, **more}


def two_nodes(*pods: Item) -> list[Item]:
    """Node a has room for 1 CPU, node b for 1.5."""
    return [node("a"), node("b"), pod("x-0", "a", "3"), pod("y-0", "b", "2500m"), *pods]


def room(tmp_path: Path, cluster: list[Item], *manifests: Item, options: tuple[str, ...] = ()) -> dict[str, Any]:
    path = tmp_path / "wanted.yaml"
    path.write_text("\n---\n".join(map(json.dumps, manifests)))
    report: dict[str, Any] = told("plan", "--cluster", snapshot(tmp_path, *cluster), "--for", path, *options)
    return report


def code(report: dict[str, Any]) -> str | None:
    refused = report["refused"]
    return None if refused is None else str(refused["code"])


def moved(report: dict[str, Any]) -> list[str]:
    return [move["pod"].partition("/")[2] for move in report["moves"]]


def nodes_of(report: dict[str, Any]) -> list[str]:
    return sorted(place["node"] for place in report["places"])


FREE = [node("a"), node("b"), pod("x-0", "a", "3", spec={"priority": 10}), pod("y-0", "b", "1")]
"""A pod of 3 CPU has room on b."""
FULL = [node("a"), node("b"), pod("x-0", "a", "3", spec={"priority": 10}), pod("y-0", "b", "1", spec={"priority": 10})]
BLOCKED = [*FULL, pod("z-0", "b", "1", spec={"priority": 10})]
"""A pod of 3 CPU needs z to leave b, whose priority is 10."""


def test_the_priority_of_a_class_decides_who_moves(tmp_path: Path) -> None:
    classes = [priority_class("high", 100), priority_class("low", 1)]
    items = [*BLOCKED, *classes]
    assert moved(room(tmp_path, items, workload(priorityClassName="high"))) != []
    assert code(room(tmp_path, items, workload(priorityClassName="low"))) == "room-too-little"
    assert code(room(tmp_path, items, workload())) == "room-too-little"


def test_the_global_default_class_counts(tmp_path: Path) -> None:
    items = [*BLOCKED, priority_class("usual", 100, globalDefault=True)]
    assert moved(room(tmp_path, items, workload())) != []


@pytest.mark.parametrize("classes", [[], [priority_class("other", 1)]])
def test_a_class_that_is_not_known_is_named(tmp_path: Path, classes: list[Item]) -> None:
    report = room(tmp_path, [*FREE, *classes], workload(priorityClassName="gold"))
    assert code(report) == ("room-pod-refused" if classes else "room-class-not-known")
    assert "gold" in report["text"]


def test_classes_of_the_system_and_of_the_manifest_are_known(tmp_path: Path) -> None:
    assert code(room(tmp_path, BLOCKED, workload(priorityClassName="system-node-critical"))) is None
    gold = priority_class("gold", 100)
    assert code(room(tmp_path, BLOCKED, workload(priorityClassName="gold"), gold)) is None


def test_defaults_of_a_limit_range_count(tmp_path: Path) -> None:
    item = {"type": "Container", "defaultRequest": {"cpu": "3500m"}, "default": {"cpu": "4"}}
    limits = {**V1, "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}, "spec": {"limits": [item]}}
    assert code(room(tmp_path, FREE, workload(cpu=""))) is None
    assert moved(room(tmp_path, FREE, workload(cpu=""))) == []
    assert moved(room(tmp_path, [*FREE, limits], workload(cpu=""))) != [] or code(
        room(tmp_path, [*FREE, limits], workload(cpu=""))
    )


def test_overhead_of_a_runtime_class_counts(tmp_path: Path) -> None:
    sandbox = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "box"}, "handler": "box"}
    heavy = {**sandbox, "overhead": {"podFixed": {"cpu": "500m"}}}
    one = [node("b"), pod("y-0", "b", "1", annotations={"trimtab.dev/do-not-disrupt": "true"})]
    assert code(room(tmp_path, [*one, sandbox], workload(runtimeClassName="box"))) is None
    assert code(room(tmp_path, [*one, heavy], workload(runtimeClassName="box"))) == "room-too-little"
    assert code(room(tmp_path, one, workload(runtimeClassName="box"))) == "room-class-not-known"


def test_init_containers_and_sidecars_count(tmp_path: Path) -> None:
    small = {"name": "i", "image": "i:1", "resources": {"requests": {"cpu": "3500m"}}}
    one = [node("b"), pod("y-0", "b", "1", annotations={"trimtab.dev/do-not-disrupt": "true"})]
    assert code(room(tmp_path, one, workload(cpu="1", initContainers=[small]))) == "room-too-little"
    sidecar = {**small, "restartPolicy": "Always", "resources": {"requests": {"cpu": "2500m"}}}
    assert code(room(tmp_path, one, workload(cpu="1", initContainers=[sidecar]))) == "room-too-little"


def test_policies_change_the_pods(tmp_path: Path) -> None:
    policy = {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": "floor"},
        "spec": {
            "match": {},
            "actions": {"requests": {"cpu": {"from": "request", "min": "3500m", "otherwise": "3500m"}}},
        },
    }
    one = [node("b"), pod("y-0", "b", "1", annotations={"trimtab.dev/do-not-disrupt": "true"})]
    assert code(room(tmp_path, one, workload(cpu="1"))) is None
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps(policy))
    assert code(room(tmp_path, one, workload(cpu="1"), options=("--policies", str(path)))) == "room-too-little"
    assert code(room(tmp_path, [*one, policy], workload(cpu="1"))) == "room-too-little"


def quota(**hard: str) -> Item:
    metadata = {"name": "q", "namespace": "default"}
    return {
        **V1,
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": dict.fromkeys(hard, "0")},
    }


def test_a_quota_of_the_namespace_may_refuse_the_pods(tmp_path: Path) -> None:
    assert code(room(tmp_path, [*FREE, quota(pods="1")], workload(replicas=2, cpu="500m"))) == "room-quota-too-small"
    assert code(room(tmp_path, [*FREE, quota(pods="2")], workload(replicas=2, cpu="500m"))) is None
    assert code(room(tmp_path, [*FREE, quota(**{"limits.cpu": "9"})], workload())) == "room-pod-refused"


def test_a_daemon_set_has_a_pod_on_each_node_that_it_selects(tmp_path: Path) -> None:
    taint = [{"key": "gpu", "effect": "NoSchedule"}]
    items = [*FREE, node("c", labels={"disk": "ssd"}), node("d", taints=taint), node("e", cordoned=True)]
    report = room(tmp_path, items, workload("DaemonSet", cpu="1"))
    assert nodes_of(report) == ["a", "b", "c"]
    assert nodes_of(room(tmp_path, items, workload("DaemonSet", cpu="1", nodeSelector={"disk": "ssd"}))) == ["c"]
    urgent = workload("DaemonSet", cpu="2", priorityClassName="p")
    assert moved(room(tmp_path, [*items, node("f", "9")], urgent, priority_class("p", 10))) == ["x-0"]


def test_a_daemon_set_leaves_out_nodes_that_have_its_pod(tmp_path: Path) -> None:
    own = workload("DaemonSet", cpu="1")
    items = [*FREE, own, pod("big-1", "b", "1", owner="DaemonSet")]
    assert nodes_of(room(tmp_path, items, own)) == ["a"]


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Deployment", {"replicas": 3}, 3),
        ("ReplicaSet", {"replicas": 3}, 3),
        ("StatefulSet", {"replicas": 3}, 3),
        ("Job", {"parallelism": 4, "completions": 3}, 3),
        ("JobSet", {}, 4),
        ("LeaderWorkerSet", {}, 6),
        ("RayCluster", {}, 5),
        ("PodCliqueSet", {}, 6),
        ("TrainSet", {}, 4),
        ("Elastic", {}, 3),
    ],
)
def test_every_template_with_a_count_is_counted(tmp_path: Path, kind: str, spec: Item, count: int) -> None:
    one = template("100m", restartPolicy="Never") if kind in ("Job", "JobSet") else template("100m")
    specs: dict[str, Item] = {
        "JobSet": {
            "replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": one}}}]
        },
        "LeaderWorkerSet": {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": one}},
        "RayCluster": {
            "headGroupSpec": {"template": one},
            "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 2, "minReplicas": 1, "template": one}],
        },
        "PodCliqueSet": {
            "replicas": 2,
            "template": {"cliques": [{"name": "c", "spec": {"replicas": 3, "template": one}}]},
        },
        "TrainSet": {"trainer": {"numNodes": 4, "template": one}},
        "Elastic": {"nodeSets": [{"count": 3, "podTemplate": one}]},
    }
    value = {
        **workload(kind),
        "spec": specs.get(kind) or {**spec, "selector": {"matchLabels": {"app": "big"}}, "template": one},
    }
    if kind in specs:
        value["apiVersion"] = "example.com/v1"
    assert len(room(tmp_path, FREE, value)["places"]) == count


def test_lists_documents_and_generated_names(tmp_path: Path) -> None:
    both = {
        **V1,
        "kind": "List",
        "items": [workload(cpu="100m"), {**workload(cpu="100m"), "metadata": {"name": "small"}}],
    }
    alone = {**V1, "kind": "Pod", "metadata": {"generateName": "run-"}, "spec": template("100m")["spec"]}
    report = room(tmp_path, FREE, both, alone, alone)
    assert len({place["pod"] for place in report["places"]}) == 4


def test_an_object_and_what_it_creates_are_counted_once(tmp_path: Path) -> None:
    owner = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "big", "uid": "u", "controller": True}]
    replica_set = workload("ReplicaSet", 2, "100m")
    replica_set["metadata"] = {"name": "big-5", "namespace": "default", "ownerReferences": owner}
    assert len(room(tmp_path, FREE, workload(replicas=2, cpu="100m"), replica_set)["places"]) == 2


def test_new_pods_keep_their_own_rules(tmp_path: Path) -> None:
    nodes = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"}), pod("y-0", "b", "100m")]
    apart_from_each_other = workload(replicas=2, cpu="100m", **apart("big"))
    assert nodes_of(room(tmp_path, nodes, apart_from_each_other)) == ["a", "b"]
    assert code(
        room(tmp_path, nodes, {**apart_from_each_other, "spec": {**apart_from_each_other["spec"], "replicas": 3}})
    )
    assert nodes_of(room(tmp_path, nodes, workload(replicas=4, cpu="100m", **spread("big", ZONE)))) == [
        "a",
        "a",
        "b",
        "b",
    ]
    term = {"labelSelector": {"matchLabels": {"app": "big"}}, "topologyKey": HOST}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert len({*nodes_of(room(tmp_path, nodes, workload(replicas=3, cpu="100m", affinity=together)))}) == 1


def claim(name: str, **more: Any) -> Item:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **more}
    return {**V1, "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def volume(name: str, zone: str) -> Item:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    return {
        **V1,
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"csi": {"driver": "disk.csi", "volumeHandle": name}, "nodeAffinity": affinity},
    }


ZONES = [node("a", labels={ZONE: "1"}), node("b", labels={ZONE: "2"}), pod("y-0", "b", "100m")]


def test_claims_of_templates_follow_their_pods(tmp_path: Path) -> None:
    own = workload("StatefulSet", 2, "100m", more={"volumeClaimTemplates": [claim("data", storageClassName="fast")]})
    report = room(tmp_path, [*ZONES, storage_class()], own)
    assert [place["pod"] for place in report["places"]] == ["default/big-0", "default/big-1"]
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["2"]}]}]
    assert nodes_of(room(tmp_path, [*ZONES, storage_class(allowedTopologies=allowed)], own)) == ["b", "b"]
    objects = [claim("data-big-0", volumeName="v"), volume("v", "1")]
    places = room(tmp_path, [*ZONES, storage_class(allowedTopologies=allowed), *objects], own)["places"]
    assert [place["node"] for place in places] == ["a", "b"]


@pytest.mark.parametrize(
    "classes",
    [
        [],
        [storage_class(volumeBindingMode="Immediate")],
        [storage_class(provisioner="kubernetes.io/no-provisioner")],
        [
            storage_class(),
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIDriver",
                "metadata": {"name": "disk.csi"},
                "spec": {"storageCapacity": True},
            },
        ],
    ],
)
def test_a_claim_whose_place_is_not_known_is_named(tmp_path: Path, classes: list[Item]) -> None:
    own = workload("StatefulSet", 1, "100m", more={"volumeClaimTemplates": [claim("data", storageClassName="fast")]})
    assert code(room(tmp_path, [*ZONES, *classes], own)) == "room-pod-not-judged"


def test_claims_of_the_manifest_and_of_the_pod_are_new(tmp_path: Path) -> None:
    default = {"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    items = [*ZONES, {**storage_class(), **default}]
    with_claim = workload(cpu="100m", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    assert code(room(tmp_path, items, with_claim, claim("data"))) is None
    assert code(room(tmp_path, items, with_claim)) == "room-pod-not-judged"
    scratch = workload(
        cpu="100m", volumes=[{"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}}]
    )
    assert code(room(tmp_path, items, scratch)) is None


def test_pods_that_wait_for_their_first_node_have_a_claim_without_a_volume(tmp_path: Path) -> None:
    volumes = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    waiting = pod("big-0", "", "1", phase="Pending", spec=volumes)
    items = [*ZONES, waiting, claim("data", storageClassName="fast"), storage_class()]
    report = told("plan", "--cluster", snapshot(tmp_path, *items), "--for-pending")
    assert report["isPossible"]


def test_volumes_that_a_node_can_attach_are_counted(tmp_path: Path) -> None:
    drivers = {"drivers": [{"name": "disk.csi", "nodeID": "n", "allocatable": {"count": 1}}]}
    csi_nodes = [
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": drivers}
        for name in "ab"
    ]
    own = workload("StatefulSet", 3, "100m", more={"volumeClaimTemplates": [claim("data", storageClassName="fast")]})
    report = room(tmp_path, [*ZONES, storage_class(), *csi_nodes], own)
    assert (code(report), report["refused"]["text"].count("volumes:")) == ("room-too-little", 1)


def test_device_claims_and_gates_are_named(tmp_path: Path) -> None:
    device = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}]}
    assert code(room(tmp_path, FREE, workload(cpu="100m", **device))) == "room-pod-not-judged"
    report = room(tmp_path, FREE, workload(cpu="100m", schedulingGates=[{"name": "example.com/queue"}]))
    assert report["isPossible"]
    assert any("scheduling gates" in note for note in report["notes"])


def test_an_object_without_a_template_is_a_mistake_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "kafka.json"
    path.write_text(
        json.dumps({"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": "k"}, "spec": {}})
    )
    result = trimtab("plan", "--cluster", snapshot(tmp_path, *FREE), "--for", path)
    assert (result.exit_code, "operator" in result.stderr) == (2, True)


def test_pods_that_name_no_operating_system_are_taken_for_linux(tmp_path: Path) -> None:
    system, architecture = "kubernetes.io/os", "kubernetes.io/arch"
    items = [
        node("a", labels={system: "windows", architecture: "amd64"}),
        node("b", labels={system: "linux", architecture: "arm64"}),
        pod("y-0", "b", "100m"),
    ]
    report = room(tmp_path, items, workload(cpu="3"))
    assert (nodes_of(report), sum("Deployment big name no" in note for note in report["notes"])) == (["b"], 2)
    assert nodes_of(room(tmp_path, items, workload(cpu="3", nodeSelector={system: "windows"}))) == ["a"]
