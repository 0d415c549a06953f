"""`trimtab replay --prometheus` with the real Prometheus: with series as kube-state-metrics has them, and with the real
kube-state-metrics of a control plane."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.autoscaling.replay.simulated_captures import record_alone
from tests.autoscaling.replay.simulated_scrapes import record_scrapes, write_open_metrics
from tests.controlplane.cluster import Cluster
from tests.e2e.real_prometheus import missing, serving_file
from tests.e2e.state_metrics import scraping_state_metrics
from trimtab.autoscaling.churn.churn_cluster import EPOCH
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.cluster.timestamps import format_timestamp, parse_timestamp
from trimtab.inputs.capture_series import SeriesFolder
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.scraped_cluster import ALLOWLIST, read_scraped_cluster
from trimtab.usage.http_client import HttpApi
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.state_history import StateHistory

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

CHURN = draw_churn(ChurnOptions(hours=2, cores=60, seed=2), generate_shapes())
BEGIN, EVERY = 300, 60
POOL = "karpenter.sh/nodepool"


def replay(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "trimtab", "replay", *words, "--preset", "keen", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def ask_prometheus(url: str) -> tuple[str, ...]:
    return "--prometheus", url, "--now", format_timestamp(EPOCH + CHURN.seconds), "--hours", "2"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    write_open_metrics(folder / "metrics.txt", record_scrapes(CHURN, BEGIN, 30))
    with serving_file(folder, folder / "metrics.txt") as address:
        yield address


def test_prometheus_and_captures_of_the_same_hours_agree(url: str, tmp_path: Path) -> None:
    folder = SeriesFolder(tmp_path, EVERY)
    for at, content in record_alone(CHURN, BEGIN, EVERY):
        folder.append_round(at, content)
    captured, scraped = replay("--captures", str(tmp_path)), replay(*ask_prometheus(url))
    for before, after in zip(captured["variants"], scraped["variants"], strict=True):
        assert after["variant"] == before["variant"]
        assert after["coreHours"] == pytest.approx(before["coreHours"], rel=0.05)
    assert len(scraped["missing"]) > len(captured["missing"])


def test_without_the_labels_of_nodes_it_refuses_and_names_the_flag(tmp_path: Path) -> None:
    write_open_metrics(tmp_path / "metrics.txt", record_scrapes(CHURN, BEGIN, 60, with_node_labels=False))
    with serving_file(tmp_path, tmp_path / "metrics.txt") as address:
        command = [sys.executable, "-m", "trimtab", "replay", *ask_prometheus(address)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert "--metric-labels-allowlist" in done.stderr


def scraped_since(url: str, begin: int) -> StateHistory:
    server = Prometheus(HttpApi(url), QueryPlan(step_seconds=1))
    return StateHistory(server, begin, int(time.time()), 1)


@pytest.mark.parametrize("is_usual", [True, False])
def test_what_the_real_kube_state_metrics_shows_is_read(cluster: Cluster, tmp_path: Path, is_usual: bool) -> None:
    """Otherwise, Prometheus overwrites labels, and kube-state-metrics shows node selectors."""
    name = f"blue-{cluster.namespace[-5:]}"
    labels = {POOL: name, "topology.kubernetes.io/zone": "b"}
    nodes = cluster.pool(name, nodes=2, cpu="4", memory="16Gi", labels=labels, taints=["team=a:NoSchedule"])
    toleration = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    spec = {"tolerations": [toleration], "nodeSelector": {POOL: name}}
    cluster.deployment("web", replicas=2, cpu="250m", memory="64Mi", spec=spec)
    cluster.deployment("waits", cpu="64", memory="64Mi", spec=spec)
    cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        }
    )
    cluster.eventually(lambda: len(cluster.running("app=web")) == 2)
    begin = int(time.time())
    flags = (ALLOWLIST, *(() if is_usual else ("--metric-opt-in-list=kube_pod_nodeselectors",)))
    with scraping_state_metrics(str(cluster.kubeconfig), tmp_path, 1, flags=flags, honors_labels=is_usual) as url:
        time.sleep(5)
        cluster.patch("Node", nodes[1], {"spec": {"unschedulable": True}})
        gone = cluster.running("app=web")[0]
        cluster.delete("Pod", gone["metadata"]["name"])
        cluster.eventually(lambda: len(cluster.running("app=web")) == 2)
        time.sleep(8)
        found = read_scraped_cluster(scraped_since(url, begin))
    own = {node.name: node for node in found.nodes if node.name in nodes}
    assert len(own) == 2
    for node in own.values():
        assert node.allocatable.items() >= {"cpu": "4000m", "memory": str(16 << 30), "pods": "110"}.items()
        assert node.states[0].labels.items() >= labels.items()
        assert ("team", "a", "NoSchedule") in node.states[0].taints
        assert node.states[0].is_ready
    assert [state.is_cordoned for state in own[nodes[0]].states] == [False]
    assert not own[nodes[1]].states[0].is_cordoned
    assert own[nodes[1]].states[-1].is_cordoned
    pods = [pod for pod in found.pods if pod.namespace == cluster.namespace]
    by_uid = {pod.uid: pod for pod in pods}
    left = by_uid.pop(gone["metadata"]["uid"])
    stays = {pod["metadata"]["uid"]: pod for pod in cluster.list("Pod")}
    assert by_uid.keys() == stays.keys()
    assert left.last < max(pod.last for pod in pods) - 3
    for uid, pod in by_uid.items():
        stored = stays[uid]
        assert pod.created == parse_timestamp(stored["metadata"]["creationTimestamp"])
        assert pod.node == stored["spec"].get("nodeName", "")
        assert pod.requests == {"main": {"cpu": pod.requests["main"]["cpu"], "memory": str(64 << 20)}}
        assert (pod.owner_kind, pod.node_selector) == ("ReplicaSet", None if is_usual else {POOL: name})
        assert toleration in pod.tolerations
        assert found.top_owners[pod.namespace, pod.owner_name] == ("Deployment", stored["metadata"]["labels"]["app"])
    assert f"{cluster.namespace}/web" in found.budgets
    assert found.absent_metrics == (("kube_pod_nodeselectors",) if is_usual else ())
    assert found.gaps == ()


def test_without_the_flag_the_real_kube_state_metrics_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    cluster.some_nodes()
    begin = int(time.time())
    with scraping_state_metrics(str(cluster.kubeconfig), tmp_path, 1, flags=()) as url:
        time.sleep(2)
        with pytest.raises(UsageError, match="--metric-labels-allowlist"):
            read_scraped_cluster(scraped_since(url, begin))
