"""To whom usage belongs, and what is counted once: dumps as `kubectl get` prints them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.recommending import START
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item
from tests.reasons import has_facts

APPS = "apps/v1"


def spec(cpu: str = "500m") -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return {"containers": [{"name": "app", "image": "example.com/app:1", "resources": resources}]}


def item(kind: str, name: str, owner: str = "", *, version: str = APPS, above: str = APPS, **more: Any) -> Item:
    """An object of namespace shop; `owner` is the Kind/name of its controller."""
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if owner:
        owner_kind, _, owner_name = owner.partition("/")
        reference = {"apiVersion": above, "kind": owner_kind, "name": owner_name, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def templated(kind: str, name: str, owner: str = "", *, replicas: int = 2, **more: Any) -> Item:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec()}
    return item(kind, name, owner, spec={"replicas": replicas, "template": template}, **more)


def pod(name: str, owner: str, *, above: str = APPS, phase: str = "Running", cpu: str = "500m") -> Item:
    return item(
        "Pod", name, owner, version="v1", above=above, spec={"nodeName": "a", **spec(cpu)}, status={"phase": phase}
    )


def usage(folder: Path, *pods: str, days: int = 14, container: str = "app") -> Path:
    path = folder / "usage.csv"
    rows = [f"{START + n * 3600},shop,{name},{container},0.1,200Mi" for name in pods for n in range(days * 24)]
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


DEPLOYMENT = templated("Deployment", "web")
REPLICA_SETS = [
    templated("ReplicaSet", "web-7d4b9c6f5d", "Deployment/web"),
    templated("ReplicaSet", "web-6c8f7d9b5c", "Deployment/web", replicas=0),
]
WEB_PODS = [pod(f"web-7d4b9c6f5d-{tail}", "ReplicaSet/web-7d4b9c6f5d") for tail in ("x2x4k", "bbbbb")]
CRON_JOB = item(
    "CronJob",
    "night",
    version="batch/v1",
    spec={"schedule": "0 2 * * *", "jobTemplate": {"spec": {"template": {"spec": spec()}}}},
)
JOBS = [templated("Job", f"night-2946{n}000", "CronJob/night", version="batch/v1", above="batch/v1") for n in range(2)]
JOB_PODS = [
    pod(f"night-2946{n}000-x2x4k", f"Job/night-2946{n}000", above="batch/v1", phase="Succeeded") for n in range(2)
]


def rows_of(report: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted((row["kind"], row["workload"]) for row in report["containers"])


@given(st.sets(st.sampled_from(range(len(REPLICA_SETS) + len(JOBS)))))
def test_revisions_and_runs_in_a_dump_change_no_total(
    tmp_path_factory: pytest.TempPathFactory, chosen: set[int]
) -> None:
    folder, more = tmp_path_factory.mktemp("dump"), [[*REPLICA_SETS, *JOBS][n] for n in sorted(chosen)]
    # The owners of live pods are known by the hash in their labels.
    pods = [{**one, "metadata": {**one["metadata"], "labels": {"pod-template-hash": "7d4b9c6f5d"}}} for one in WEB_PODS]
    report = told(
        "recommend",
        "--usage",
        usage(folder, "web-7d4b9c6f5d-x2x4k", days=2),
        "--cluster",
        snapshot(folder, DEPLOYMENT, CRON_JOB, *pods, *more),
    )
    assert rows_of(report) == [("CronJob", "night"), ("Deployment", "web")]
    assert (report["total"]["cpuNow"], report["total"]["memoryNow"]) == (1.0, 2.0)


def test_a_template_whose_controller_has_none_counts_for_the_controller(tmp_path: Path) -> None:
    operator = templated("StatefulSet", "db", "Database/db", above="acme.example/v1")
    report = told("recommend", "--usage", usage(tmp_path, "db-0"), "--cluster", snapshot(tmp_path, operator))
    assert rows_of(report) == [("Database.acme.example", "db")]


def test_of_two_workloads_of_one_name_each_has_its_own_past_and_its_kind_in_the_table(tmp_path: Path) -> None:
    both = [
        pod("web-7d4b9c6f5d-x2x4k", "Deployment/web"),
        pod("web-0", "StatefulSet/web"),
        DEPLOYMENT,
        templated("StatefulSet", "web"),
    ]
    path, cluster = usage(tmp_path, "web-6c8f7d9b5c-bbbbb", "web-0"), snapshot(tmp_path, *both)
    report = told("recommend", "--usage", path, "--cluster", cluster)
    assert {row["kind"]: row["cpu"]["samples"] for row in report["containers"]} == {
        "Deployment": 336,
        "StatefulSet": 336,
    }
    table = trimtab("recommend", "--usage", path, "--cluster", cluster).output
    for kind in ("Deployment", "StatefulSet"):
        assert f"shop/web/app ({kind})" in table


@pytest.mark.parametrize(
    ("owner", "above", "live", "gone"),
    [
        ("Rollout/web", "argoproj.io/v1alpha1", "web-7d4b9c6f5d-x2x4k", "web-6c8f7d9b5c-bbbbb"),
        ("CloneSet/web", "apps.kruise.io/v1alpha1", "web-x2x4k", "web-bbbbb"),
        ("DeploymentConfig/web", "apps.openshift.io/v1", "web-3-x2x4k", "web-2-bbbbb"),
    ],
)
def test_a_workload_of_any_kind_keeps_its_history_at_a_rollout(
    tmp_path: Path, owner: str, above: str, live: str, gone: str
) -> None:
    # The Deployment is the template of a Rollout (workloadRef), so it has no pods.
    idle = templated("Deployment", "web", replicas=0)
    cluster = snapshot(tmp_path, pod(live, owner, above=above), idle)
    report = told("recommend", "--usage", usage(tmp_path, gone), "--cluster", cluster)
    days = {row["kind"].partition(".")[0]: row["cpu"]["samples"] for row in report["containers"]}
    assert days == {owner.partition("/")[0]: 336, "Deployment": 0}


def test_vpas_are_proposed_for_workloads_of_the_snapshot_alone(tmp_path: Path) -> None:
    rows = ["timestamp,namespace,pod,container,cpu,memory"]
    for name, container in (("web-x2x4k", "app"), ("gone-x2x4k", "app"), ("web-x2x4k", "POD"), ("web-x2x4k", "")):
        rows += [f"{START + n * 300},shop,{name},{container},{1.0 if n % 9 else 0.05},300Mi" for n in range(3 * 288)]
    path = tmp_path / "usage.csv"
    path.write_text("\n".join(rows) + "\n")
    cluster = snapshot(tmp_path, pod("web-x2x4k", "DaemonSet/web"))
    report = told("vpa", "propose", "--usage", path, "--cluster", cluster)
    assert [one["workload"] for one in report["proposals"]] == ["DaemonSet/web"]
    assert any(has_facts(note, "1 container", "left out", "shop/DaemonSet/gone/app") for note in report["notes"])
    printed = yaml.safe_load(trimtab("vpa", "propose", "--usage", path, "--cluster", cluster, "--manifests").stdout)
    assert [one["containerName"] for one in printed["spec"]["resourcePolicy"]["containerPolicies"]] == ["app"]


def test_the_past_of_a_name_that_two_workloads_share_is_left_out_by_name(tmp_path: Path) -> None:
    pods = [
        pod("web-7d4b9c6f5d-x2x4k", "Rollout/web", above="argoproj.io/v1alpha1"),
        pod("web-8d4b9c6f5d-x2x4k", "Deployment/web"),
        DEPLOYMENT,
    ]
    report = told(
        "recommend", "--usage", usage(tmp_path, "web-6c8f7d9b5c-bbbbb"), "--cluster", snapshot(tmp_path, *pods)
    )
    assert any("shop/Pod/web-6c8f7d9b5c-bbbbb/app" in note for note in report["notes"])


@pytest.mark.parametrize("has_live_pods", [True, False])
def test_a_rollout_keeps_the_past_of_the_template_that_it_refers_to(tmp_path: Path, has_live_pods: bool) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    rollout = item("Rollout", "web", version="argoproj.io/v1alpha1", spec={"replicas": 3, "workloadRef": reference})
    live = [pod("web-7d4b9c6f5d-x2x4k", "Rollout/web", above="argoproj.io/v1alpha1")] if has_live_pods else []
    cluster = snapshot(tmp_path, rollout, templated("Deployment", "web", replicas=0), *live)
    report = told("recommend", "--usage", usage(tmp_path, "web-6c8f7d9b5c-bbbbb"), "--cluster", cluster)
    assert [(row["kind"], row["cpu"]["samples"]) for row in report["containers"]] == [("Rollout", 336)]


@pytest.mark.parametrize("command", [("recommend", "--patch", "patches"), ("vpa", "propose", "--manifests")])
def test_no_manifest_is_written_for_a_workload_of_which_only_the_usage_is_known(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    result = trimtab(*command, "--usage", usage(tmp_path, "web-6c8f7d9b5c-bbbbb"))
    assert (result.exit_code, "add --cluster" in result.output) == (2, True)


def test_the_pods_of_a_group_whose_leader_is_a_pod_belong_to_the_workload_of_the_leader(tmp_path: Path) -> None:
    """As LeaderWorkerSet has it: the StatefulSet of the workers belongs to the leader's pod."""
    leaders = templated("StatefulSet", "llm", "LeaderWorkerSet/llm", above="leaderworkerset.x-k8s.io/v1")
    workers = templated("StatefulSet", "llm-0", "Pod/llm-0", above="v1", replicas=1)
    pods = [pod("llm-0", "StatefulSet/llm"), pod("llm-0-1", "StatefulSet/llm-0")]
    report = told(
        "recommend",
        "--usage",
        usage(tmp_path, "llm-0", "llm-0-1", days=2),
        "--cluster",
        snapshot(tmp_path, leaders, workers, *pods),
    )
    assert rows_of(report) == [("LeaderWorkerSet", "llm")]


@pytest.mark.parametrize(
    ("stated", "objects", "row"),
    [
        (
            "StatefulSet/db",
            [templated("StatefulSet", "db", "Database/db", above="acme.example/v1")],
            ("Database.acme.example", "db"),
        ),
        ("ReplicaSet/web-7d4b9c6f5d", [DEPLOYMENT, *REPLICA_SETS], ("Deployment", "web")),
        ("Deployment/web", [DEPLOYMENT], ("Deployment", "web")),
    ],
)
def test_usage_of_a_stated_workload_belongs_to_its_controller(
    tmp_path: Path, stated: str, objects: list[Item], row: tuple[str, str]
) -> None:
    rows = [f"{START + n * 3600},shop,{stated},app,0.1,200Mi" for n in range(48)]
    path = tmp_path / "stated.csv"
    path.write_text("timestamp,namespace,workload,container,cpu,memory\n" + "\n".join(rows) + "\n")
    report = told("recommend", "--usage", path, "--cluster", snapshot(tmp_path, *objects))
    assert [(one, report["unknown"]) for one in rows_of(report)] == [(row, 0)]
