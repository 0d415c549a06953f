"""From the real Prometheus to the request of a pod: recommender and webhook, as processes, on a real API server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e import vpa
from tests.e2e.ours import Ours, following, install_crd
from tests.e2e.real_prometheus import CONTAINERS, DAYS, MAIN_CORES, MI, MainContainer, everybody, missing, serving
from tests.e2e.recommenders import Recommender, allow, once, recommender
from tests.e2e.test_live_vpa import endpoints
from trimtab.cluster import quantity
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, Workloads, decode
from trimtab.histogram.histogram import MAX_RELATIVE_ERROR
from trimtab.policy.schema import build_crd
from trimtab.recommender.sharded_configmaps import DAMAGED_LABEL, USAGE_LABEL

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

GUIDE = Path(__file__).resolve().parents[2] / "docs/how-to/install-in-a-cluster.md"
RULES = "{requests: {cpu: {from: usage, rule: p95, otherwise: 55m, when: always}}, limits: {cpu: remove}}"


@dataclass(frozen=True)
class Town:
    """All of it, running."""

    ours: Ours
    where: Cluster
    """The namespace with workloads."""
    prometheus: str
    one: Recommender
    home: Path

    @property
    def own(self) -> Cluster:
        return self.ours.cluster

    def shards(self, label: str) -> list[dict[str, Any]]:
        return list(self.own.list("ConfigMap", selector=label))

    def published(self) -> Workloads:
        workloads: Workloads = {}
        for shard in self.shards(f"{RECOMMENDATIONS_LABEL}=v1"):
            read = decode(shard["metadata"]["name"], shard["data"][PAYLOAD_KEY])
            assert isinstance(read, dict), read
            workloads |= read
        return workloads


@pytest.fixture(scope="module")
def town(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    whole_cluster.needs_own("a login of the recommender's own")
    now, home = int(time.time()), tmp_path_factory.mktemp("town")
    start = now - now % 1800 - DAYS * 86400
    where = whole_cluster.in_namespace(f"usage-{home.stat().st_ino % 100_000:05}")
    last_scrape = start + DAYS * 86400  # one scrape of `new`, at any time of day
    named = [
        MainContainer(0, namespace=where.namespace),
        MainContainer(1, last_scrape, namespace=where.namespace, name="new"),
    ]
    with ExitStack() as stack:
        prometheus = stack.enter_context(serving(tmp_path_factory.mktemp("prometheus"), [*everybody(), *named], start))
        ours = stack.enter_context(following(whole_cluster, tmp_path_factory.mktemp("ours")))
        stack.callback(where.clean_up)
        install_crd(ours.cluster, vpa.definition())
        install_crd(ours.cluster, build_crd())
        allow(whole_cluster, ours.cluster)
        one = stack.enter_context(recommender(ours.cluster, prometheus, home / "one"))
        town = Town(ours, where, prometheus, one, home)
        written = lambda: one.value('writes_total{what="recommendations"}')  # noqa: E731  told when all of them are
        ours.cluster.eventually(written, within=60, what="recommendations published")
        ours.policy(where, "usage", RULES)
        ours.serves(where)
        yield town


def owned(town: Town, name: str) -> dict[str, Any]:
    """A pod of a Deployment, by way of a ReplicaSet that no watch has seen."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-5d4f", "uid": "u", "controller": True}
    metadata = {"generateName": f"{name}-5d4f-", "labels": {"pod-template-hash": "5d4f"}, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "main", "image": town.where.image}]}
    return town.where.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, dryRun="All")


def cpu(pod: dict[str, Any]) -> int:
    """Millicores that `main` asks for; 0 where it asks for none."""
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return quantity.scheduler_value("cpu", requests.get("cpu", "0"))


def about(cores: float) -> Any:
    return pytest.approx(1000 * cores, rel=MAX_RELATIVE_ERROR, abs=1.1)


def test_a_thousand_containers_are_published_within_the_error_of_a_sketch(town: Town) -> None:
    workloads = town.published()
    assert len(workloads) == CONTAINERS + 1  # of `new` too little is known
    for one in everybody():
        app = workloads[f"team-{one.number % 20}/Deployment/{one.workload}"]["app"]
        assert app.cpu is not None
        assert app.memory is not None
        assert quantity.scheduler_value("cpu", app.cpu.p5) == about(one.base)
        assert quantity.scheduler_value("cpu", app.cpu.p95) == about(3 * one.base)
        assert quantity.scheduler_value("memory", app.memory.max or 0) == pytest.approx(2 * one.held, abs=MI)
        assert (app.days or 0) >= DAYS - 1


def test_a_deployments_pods_get_p95(town: Town) -> None:
    town.where.eventually(lambda: cpu(owned(town, "web")) == about(3 * MAIN_CORES), what="P95")
    town.where.deployment("web", replicas=2)
    pods = town.where.eventually(lambda: two(town.where.list("Pod", selector="app=web")))
    assert [cpu(pod) for pod in pods] == [about(3 * MAIN_CORES)] * 2
    text = json.dumps(pods[0]["metadata"].get("annotations", {}))
    assert "trimtab.dev/changed" in text


def two(pods: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    return pods if len(pods) == 2 else None


def test_under_a_vpa_they_get_p5_and_p95_again_when_its_webhook_is_dead(town: Town) -> None:
    vpa.autoscaler(town.where, "Deployment/web")
    with vpa.webhook(names=[f"a-vpa.{town.where.namespace}.svc"]) as hook:
        vpa.registered(town.where, "a-vpa", hook, by="service")
        endpoints(town.where, "a-vpa", ready=True)
        town.where.eventually(lambda: cpu(owned(town, "web")) == about(MAIN_CORES), what="P5")
        endpoints(town.where, "a-vpa", ready=False)
        town.where.eventually(lambda: cpu(owned(town, "web")) == about(3 * MAIN_CORES), what="P95 again")
        town.where.delete("MutatingWebhookConfiguration", f"{town.where.namespace}-a-vpa")
    town.where.delete("VerticalPodAutoscaler", "web")


def test_a_single_scrape_gives_the_default_and_the_reason(town: Town) -> None:
    assert cpu(owned(town, "new")) == 55
    lacking = {
        one["resource"]: one
        for one in town.one.missing
        if one["container"] == f"{town.where.namespace}/Deployment/new/main"
    }
    assert lacking["cpu"]["reason"] == "insufficient-history"
    assert lacking["cpu"]["need"] == "an hour, 10 samples"
    assert town.one.value('containers_without_recommendation{reason="insufficient-history",resource="cpu"}') == 1


def test_a_leader_that_is_killed_is_followed_by_one_that_knows_what_it_knew(town: Town) -> None:
    with recommender(town.own, town.prometheus, town.home / "two") as second:
        assert (town.one.value("leading"), second.value("leading")) == (1, 0)
        town.own.eventually(lambda: town.shards(f"{USAGE_LABEL}=v1"), within=20)
        shards = town.shards(f"{RECOMMENDATIONS_LABEL}=v1")
        town.one.process.send_signal(signal.SIGKILL)
        town.own.eventually(lambda: second.value("leading") == 1, within=30, what="the second leads")
        town.own.eventually(lambda: second.value("recommended_containers") == CONTAINERS + 1, within=30)
        assert [one["metadata"]["resourceVersion"] for one in town.shards(f"{RECOMMENDATIONS_LABEL}=v1")] == [
            one["metadata"]["resourceVersion"] for one in shards
        ], "nothing changed, so nothing is written"
        assert second.value("series_total") < 10 * CONTAINERS  # it began where the first had come to
        assert owned(town, "web")


def test_checkpoints_go_into_a_file_and_come_back_by_the_documented_commands(town: Town, tmp_path: Path) -> None:
    saved, restored = (line.strip() for line in GUIDE.read_text().splitlines() if line.endswith("usage.yaml"))

    def run(command: str) -> None:
        here = command.replace("trimtab-system", town.own.namespace)
        env = {**os.environ, "KUBECONFIG": str(town.own.kubeconfig)}
        env["PATH"] = f"{Path(town.own.plane.binaries['kubectl']).parent}:{env['PATH']}"
        subprocess.run(["sh", "-ec", here], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60)

    before = {shard["metadata"]["name"]: shard["data"] for shard in town.shards(f"{USAGE_LABEL}=v1")}
    run(saved)
    for name in before:
        town.own.delete("ConfigMap", name)
    run(restored)
    assert {shard["metadata"]["name"]: shard["data"] for shard in town.shards(f"{USAGE_LABEL}=v1")} == before
    run(restored)  # over what stands there, too


def test_a_leader_that_slept_writes_nothing_when_it_wakes(town: Town) -> None:
    def versions() -> dict[str, str]:
        results = [*town.shards(f"{USAGE_LABEL}=v1"), *town.shards(f"{RECOMMENDATIONS_LABEL}=v1")]
        return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in results}

    with recommender(town.own, town.prometheus, town.home / "sleeper", CHECKPOINT_INTERVAL_SECONDS=1) as sleeper:
        writing = lambda: sleeper.value('writes_total{what="usage"}')  # noqa: E731
        town.own.eventually(lambda: writing() > 0, within=60, what="it writes every second")
        with recommender(town.own, town.prometheus, town.home / "heir", CHECKPOINT_INTERVAL_SECONDS=3600) as heir:
            sleeper.process.send_signal(signal.SIGSTOP)
            try:
                town.own.eventually(lambda: heir.value("recommended_containers") == CONTAINERS + 1, within=60)
                before = versions()
            finally:
                sleeper.process.send_signal(signal.SIGCONT)
            town.own.eventually(lambda: sleeper.value("leading") == 0, within=20, what="the sleeper leads no more")
            time.sleep(2)  # two of its rounds
            assert versions() == before
            assert heir.value("leading") == 1
            assert len(town.published()) == CONTAINERS + 1


def test_a_corrupt_shard_is_told_and_kept_aside(town: Town) -> None:
    shard = town.shards(f"{USAGE_LABEL}=v1")[0]["metadata"]["name"]
    town.own.patch("ConfigMap", shard, {"data": {"usage.json": '{"schema": 1, "workloads": {'}})
    with recommender(town.own, town.prometheus, town.home / "three") as third:
        town.own.eventually(lambda: third.told("shard.unreadable"), within=30)
        town.own.eventually(lambda: town.shards(f"{DAMAGED_LABEL}=v1"), within=60)
        town.own.eventually(lambda: third.value("recommended_containers") == CONTAINERS + 1, within=60)
        [aside] = town.shards(f"{DAMAGED_LABEL}=v1")
        assert aside["data"] == {"usage.json": '{"schema": 1, "workloads": {'}
        assert len(town.published()) == CONTAINERS + 1


def test_prometheus_gone_changes_nothing(town: Town) -> None:
    before = town.published()
    with recommender(town.own, "http://127.0.0.1:1", town.home / "four", QUERY_STEP_SECONDS=60) as fourth:
        town.own.eventually(lambda: fourth.told("collect.failed"), within=60)
        assert town.published() == before


def test_once_reads_publishes_and_ends(town: Town) -> None:
    town.one.process.kill()  # while it leads, it is not another's turn
    for shard in town.shards(f"{RECOMMENDATIONS_LABEL}=v1"):
        town.own.delete("ConfigMap", shard["metadata"]["name"])
    done = once(town.own, town.prometheus)
    assert done.returncode == 0, done.stderr
    assert len(town.published()) == CONTAINERS + 1
    assert once(town.own, "http://127.0.0.1:1", QUERY_STEP_SECONDS=60).returncode == 3
