"""`trimtab scheduler` as its users call it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import node, pod
from trimtab.cluster.schedulers import SchedulerPlacement, find_schedulers


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    described_node = node("a", "8", "64Gi", labels={"node.kubernetes.io/instance-type": "r7i.2xlarge"})
    described_node["status"]["capacity"] = {"cpu": "8", "memory": "64Gi"}
    return snapshot(tmp_path, described_node, pod("web-0", on="a"))


def printed(*arguments: str | Path) -> list[dict[str, Any]]:
    answer = trimtab("scheduler", *arguments)
    assert answer.exit_code == 0, answer.output
    return list(yaml.safe_load_all(answer.stdout))


def test_the_weights_are_shares_of_the_price(cluster: Path) -> None:
    [document] = printed("config", "--cluster", cluster)
    [profile] = document["profiles"]
    strategy = profile["pluginConfig"][0]["args"]["scoringStrategy"]
    # 8 cores at 8.8 GiB each beside 64 GiB: 70.4 of 134.4.
    assert strategy == {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 52}, {"name": "memory", "weight": 48}],
    }


def test_a_plan_reads_the_configuration_as_a_scheduler_that_packs(cluster: Path) -> None:
    documents = printed("manifests", "--cluster", cluster)
    data = next(one["data"] for one in documents if one["kind"] == "ConfigMap")
    assert find_schedulers([data]) == {"trimtab-pack": SchedulerPlacement.PACK}
    assert yaml.safe_load(data["config.yaml"])["leaderElection"]["resourceName"] == "trimtab-pack"


def test_the_manifests_are_a_whole_scheduler(cluster: Path) -> None:
    documents = printed("manifests", "--cluster", cluster, "--scheduler-name", "mine", "--scheduler-namespace", "infra")
    kinds = [one["kind"] for one in documents]
    assert kinds.count("ClusterRoleBinding") == 2
    assert {"ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Deployment"} <= set(kinds)
    lease = next(one for one in documents if one["kind"] == "Role")
    assert lease["rules"][1]["resourceNames"] == ["mine"]


def test_clouds_that_run_the_scheduler_get_their_own_form(cluster: Path) -> None:
    eks = trimtab("scheduler", "config", "--cluster", cluster, "--platform", "eks")
    assert json.loads(eks.stdout)["nodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"
    assert "optimize-utilization" in trimtab("scheduler", "config", "--cluster", cluster, "--platform", "gke").stdout
    [aks] = printed("config", "--cluster", cluster, "--platform", "aks")
    assert aks["kind"] == "SchedulerConfiguration"
    assert yaml.safe_load(aks["spec"]["rawConfig"])["kind"] == "KubeSchedulerConfiguration"
