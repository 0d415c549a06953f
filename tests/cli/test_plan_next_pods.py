"""A plan offline moves no pod whose owner could not create the next one, or would create it for other nodes."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.snapshots import snapshot, told
from tests.cli.test_plan_policies import KEEN, evictions
from tests.cli.test_plan_templates import REVISION, owner, small_pods
from tests.cluster_of import Item, pod
from tests.reasons import has_facts

HALF_A_CORE = {"requests": {"cpu": "500m"}}


def limit_range(**item: Any) -> Item:
    limits = [{"type": "Container", **item}]
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"limits": limits},
    }


def priority_class(name: str) -> Item:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 5}


def runtime_class(name: str, **more: Any) -> Item:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name, **more}


def quota(hard: str, used: str, name: str = "requests.cpu") -> Item:
    amounts = {"hard": {name: hard}, "used": {name: used}}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": amounts["hard"]},
        "status": amounts,
    }


def owner_of(pod_spec: Item | None = None, kind: str = "ReplicaSet", **more: Any) -> Item:
    return owner(kind, HALF_A_CORE, pod_spec=pod_spec or {}, **more)


REFUSING_WORLDS: dict[str, list[Item]] = {
    "minimum of a LimitRange": [owner_of(), limit_range(min={"cpu": "1"})],
    "maximum of a LimitRange": [owner_of(), limit_range(max={"cpu": "100m"})],
    "ratio of a LimitRange": [owner_of(), limit_range(maxLimitRequestRatio={"cpu": "2"}, default={"cpu": "2"})],
    "lost PriorityClass": [owner_of({"priorityClassName": "gone"}), priority_class("other")],
    "lost RuntimeClass": [owner_of({"runtimeClassName": "gone"}), runtime_class("other")],
    "lowered quota": [owner_of(), quota(hard="1", used="1500m")],
    "lowered quota of pods": [owner_of(), quota(hard="2", used="3", name="pods")],
    "quota that requires limits": [owner_of(), quota(hard="8", used="0", name="limits.memory"), limit_range()],
}


@pytest.mark.parametrize("world", REFUSING_WORLDS)
def test_a_pod_stays_if_the_api_server_would_refuse_the_next_one(world: str, tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *small_pods(), *REFUSING_WORLDS[world])) == 0


ADMITTING_WORLDS: dict[str, list[Item]] = {
    "bounds that the pods keep": [owner_of(), limit_range(min={"cpu": "100m"}, max={"cpu": "1"})],
    "PriorityClass of a snapshot without any": [owner_of({"priorityClassName": "unseen"})],
    "PriorityClass of Kubernetes": [owner_of({"priorityClassName": "system-cluster-critical"}), priority_class("p")],
    "quota that is full": [owner_of(), quota(hard="1500m", used="1500m")],
    "quota of other pods": [
        owner_of(),
        {**quota(hard="1", used="2"), "spec": {"hard": {"requests.cpu": "1"}, "scopes": ["BestEffort"]}},
    ],
}


@pytest.mark.parametrize("world", ADMITTING_WORLDS)
def test_a_pod_may_move_if_the_api_server_would_take_the_next_one(world: str, tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *small_pods(), *ADMITTING_WORLDS[world])) == 2


def test_the_reason_names_what_would_refuse_the_next_pod(tmp_path: Path) -> None:
    world = snapshot(tmp_path, *small_pods(), owner_of(), quota(hard="1", used="1500m"))
    report = told("plan", "--cluster", world, *KEEN)
    assert has_facts(str(report["stays"]), "ResourceQuota team", "no-successor")


PLACEMENTS: dict[str, Item] = {
    "nodeSelector": {"nodeSelector": {"disk": "ssd"}},
    "node affinity": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
                }
            }
        }
    },
    "anti-affinity": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            }
        }
    },
    "spread": {
        "topologySpreadConstraints": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    },
    "host port": {
        "hostNetwork": True,
        "containers": [
            {"name": "c", "image": "i", "resources": HALF_A_CORE, "ports": [{"containerPort": 80, "hostPort": 80}]}
        ],
    },
    "scheduler": {"schedulerName": "another"},
    "operating system": {"os": {"name": "windows"}},
}
STATUS = {"currentRevision": "web-1", "updateRevision": "web-2"}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}


@pytest.mark.parametrize("field", PLACEMENTS)
@pytest.mark.parametrize("strategy", [ON_DELETE, {}])
def test_a_pod_of_an_older_revision_stays_if_its_template_says_now_where_pods_run(
    field: str, strategy: Item, tmp_path: Path
) -> None:
    pods = small_pods("StatefulSet", labels={REVISION: "web-1"})
    same = owner_of(kind="StatefulSet", spec=strategy, status=STATUS)
    other = owner_of(PLACEMENTS[field], kind="StatefulSet", spec=strategy, status=STATUS)
    assert evictions(snapshot(tmp_path, *pods, same)) == 2
    assert evictions(snapshot(tmp_path, *pods, other)) == 0


@pytest.mark.parametrize("field", PLACEMENTS)
@pytest.mark.parametrize(("kind", "version"), [("ReplicaSet", "apps/v1"), ("ReplicationController", "v1")])
def test_a_template_without_revisions_is_compared_with_each_pod(
    kind: str, version: str, field: str, tmp_path: Path
) -> None:
    """These kinds keep their pods when their template is edited."""
    pods = small_pods(kind)
    assert evictions(snapshot(tmp_path, *pods, owner_of(kind=kind, version=version))) == 2
    assert evictions(snapshot(tmp_path, *pods, owner_of(PLACEMENTS[field], kind=kind, version=version))) == 0


def test_the_reason_names_the_template(tmp_path: Path) -> None:
    world = snapshot(tmp_path, *small_pods(), owner_of(PLACEMENTS["nodeSelector"]))
    assert has_facts(str(told("plan", "--cluster", world, *KEEN)["stays"]), "the pod template", "nodeSelector")


def test_a_toleration_that_the_template_has_lost_counts(tmp_path: Path) -> None:
    tolerations = [{"key": "team", "operator": "Exists"}]
    pods = [
        pod(f"web-{n}", on=f"n{n}", owner="StatefulSet", labels={REVISION: "web-1"}, spec={"tolerations": tolerations})
        for n in range(3)
    ]
    nodes = [item for item in small_pods() if item["kind"] == "Node"]
    lost = owner_of(kind="StatefulSet", spec=ON_DELETE, status=STATUS)
    retained = owner_of({"tolerations": tolerations}, kind="StatefulSet", spec=ON_DELETE, status=STATUS)
    assert evictions(snapshot(tmp_path, *nodes, *pods, retained)) == 2
    assert evictions(snapshot(tmp_path, *nodes, *pods, lost)) == 0


def test_a_runtime_class_that_demands_a_label_of_nodes_now_counts(tmp_path: Path) -> None:
    template = owner_of({"runtimeClassName": "safe"})
    pods = [
        {**item, "spec": {**item["spec"], "runtimeClassName": "safe"}} if item["kind"] == "Pod" else item
        for item in small_pods()
    ]
    demanding = runtime_class("safe", scheduling={"nodeSelector": {"sandbox": "yes"}})
    assert evictions(snapshot(tmp_path, *pods, template, runtime_class("safe"))) == 2
    assert evictions(snapshot(tmp_path, *pods, template, demanding)) == 0
