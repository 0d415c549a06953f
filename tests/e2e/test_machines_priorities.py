"""The cluster autoscaler's priority map on a real API server: written, taken over, undone, and demoted in."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import yaml
from prometheus_client import CollectorRegistry

from tests.controlplane import environ
from tests.controlplane.autoscaler import status
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object
from tests.e2e.recommenders import USER
from tests.reasons import has_facts
from trimtab.installation.demotion_access import render_demotion_access
from trimtab.installation.names import InstallValues
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.errors import NotAllowed
from trimtab.kube.objects import Writer, get_plain
from trimtab.machines.expander_map import MAP_NAME
from trimtab.recommender.expander_demotion import DemotionMetrics, GroupDemoter
from trimtab.runtime.log import build_logger

TYPES = {"old": "m5.xlarge", "new": "m7i.xlarge"}
THEIRS = {"priorities": "10:\n- .*\n", "note": "by hand"}


@pytest.fixture
def fleet(cluster: Cluster) -> Iterator[dict[str, str]]:
    """Which pool → its name; an autoscaler reports one group for each."""
    names = {which: f"{which}-{cluster.namespace[-5:]}" for which in TYPES}
    for which, name in names.items():
        labels = {
            "nodepool": name,
            "node.kubernetes.io/instance-type": TYPES[which],
            "topology.kubernetes.io/region": "us-east-1",
            "kubernetes.io/arch": "amd64",
        }
        cluster.pool(name, nodes=1, cpu="4", memory="16Gi", labels=labels)
    cluster.deployment("web", replicas=2, cpu="500m", memory="2Gi", spec={"nodeSelector": {"nodepool": names["old"]}})
    cluster.eventually(lambda: len(cluster.running()) == 2, within=60)
    cluster.apply(status(dict.fromkeys(names.values(), 1)))
    yield names
    for name in (MAP_NAME, "cluster-autoscaler-status"):
        cluster.delete("ConfigMap", name, "kube-system")


def run_priorities(cluster: Cluster, fleet: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "trimtab",
        "machines",
        "priorities",
        "--pool",
        fleet["old"],
        "--legacy",
        f"gke-{fleet['old']}-grp",
        "--group",
        f"gke-{fleet['new']}-grp={TYPES['new']}",
        "--cluster",
        "live",
        "--kubeconfig",
        str(cluster.kubeconfig),
        *options,
    ]
    return subprocess.run(command, env=environ.plain(), capture_output=True, text=True, timeout=60, check=False)


def read_map(cluster: Cluster) -> Object | None:
    maps = cluster.list("ConfigMap", "kube-system")
    return next((one for one in maps if one["metadata"]["name"] == MAP_NAME), None)


def read_priorities(cluster: Cluster) -> dict[int, list[str]]:
    result = read_map(cluster)
    assert result is not None
    return dict(yaml.safe_load(result["data"]["priorities"]))


def test_a_map_of_another_client_is_taken_over_only_when_told_and_comes_back(
    cluster: Cluster, fleet: dict[str, str]
) -> None:
    meta = {"name": MAP_NAME, "namespace": "kube-system", "annotations": {"team": "a"}}
    cluster.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": THEIRS})
    refused = run_priorities(cluster, fleet, "--apply")
    assert refused.returncode == 2, refused.stderr
    assert "--take-over" in refused.stderr
    process = run_priorities(cluster, fleet, "--apply", "--take-over")
    assert process.returncode == 0, process.stderr
    ours = {100: [f"^gke-{fleet['new']}-grp$"], 1: [f"^gke-{fleet['old']}-grp$"], 0: [".*"]}
    assert read_priorities(cluster) == ours
    # A second time it is Trimtab's own map that is replaced; what was there first stays what --undo puts back.
    assert run_priorities(cluster, fleet, "--apply").returncode == 0
    assert run_priorities(cluster, fleet, "--undo").returncode == 0
    back = read_map(cluster)
    assert back is not None
    assert (back["data"], back["metadata"]["annotations"]) == (THEIRS, {"team": "a"})


def test_groups_out_of_stock_are_demoted_with_the_rights_that_install_grants(
    cluster: Cluster, fleet: dict[str, str]
) -> None:
    created = run_priorities(cluster, fleet, "--apply")
    assert created.returncode == 0, created.stderr
    cluster.apply(list(render_demotion_access("recommender", InstallValues(demote_groups=True))))
    groups = ["system:serviceaccounts", "system:serviceaccounts:trimtab-system", "system:authenticated"]
    client = connect_to_cluster(str(cluster.plane.kubeconfig_for(USER, *groups)))
    lines = io.StringIO()
    demoter = GroupDemoter(
        writer=Writer(client=client, manager="trimtab-recommender"),
        namespace="kube-system",
        status_name="cluster-autoscaler-status",
        metrics=DemotionMetrics(CollectorRegistry()),
        log=build_logger(stream=lines),
    )
    best = f"^gke-{fleet['new']}-grp$"
    try:
        now = int(time.time())
        cluster.apply(status(dict.fromkeys(fleet.values(), 1), states={fleet["new"]: "Backoff"}))
        demoter.update_map(now)
        assert read_priorities(cluster) == {2: [best], 1: [f"^gke-{fleet['old']}-grp$"], 0: [".*"]}
        demoter.update_map(now + 3601)
        assert read_priorities(cluster)[100] == [best]
        cluster.patch("ConfigMap", MAP_NAME, {"data": {"priorities": "100: ["}}, "kube-system")
        demoter.update_map(now)
        left = read_map(cluster)
        assert left is not None
        assert left["data"] == {"priorities": "100: ["}
        assert has_facts(lines.getvalue(), "another client", "priority map")
        with pytest.raises(NotAllowed):
            get_plain(client, "ConfigMap", "extension-apiserver-authentication", "kube-system")
    finally:
        client.close()
    assert run_priorities(cluster, fleet, "--undo").returncode == 0
    assert read_map(cluster) is None
