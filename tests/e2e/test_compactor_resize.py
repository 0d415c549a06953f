"""Running pods are resized on a real API server, by a kubelet that can, refuses, fails or has no room."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.troubled import relay
from tests.e2e import vpa
from tests.e2e.compactors import USER, Compactor, Object, ask, budget, compactor, planned, pool, state
from tests.e2e.ours import install_crd
from tests.e2e.resizing_kubelet import ResizingKubelet
from trimtab.cluster.recommendation import ContainerUsage, Percentiles, encode

DYING = "tests.e2e.dying_compactor"
AT_ONCE = 4
SOON = {
    "RESIZE_MIN_POD_AGE_SECONDS": "0",
    "RESIZE_ANSWER_TIMEOUT_SECONDS": "4",
    "RESIZE_DEFERRED_TIMEOUT_SECONDS": "4",
    "RESIZE_UNREADY_TIMEOUT_SECONDS": "5",
}
POLICY = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: follow}
spec:
  match: {namespaces: {include: ["%s"]}}
  actions: {requests: {cpu: {running: resize, when: always, min: 50m}}}
"""


@pytest.fixture
def team(cluster: Cluster) -> Iterator[Cluster]:
    """A namespace that is not the compactor's own: policies leave that alone."""
    actual_cluster = cluster.in_namespace(f"team-{uuid.uuid4().hex[:5]}")
    yield actual_cluster
    actual_cluster.clean_up()
    actual_cluster.delete("Namespace", actual_cluster.namespace)


class Stage:
    """One pool with a kubelet that can resize, workloads on it, and a policy that lets them follow 200m."""

    def __init__(self, cluster: Cluster, team: Cluster, folder: Path, nodes: int = 2, cpu: str = "4") -> None:
        self.cluster, self.team, self.folder = cluster, team, folder
        self.name = cluster.namespace
        cluster.needs_own("nodes made by the test (kwok)")
        cluster.pool(self.name, nodes=nodes, cpu=cpu, memory="16Gi")
        self.policy = folder / "policy.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        self.policy.write_text(POLICY % team.namespace)

    def workload(self, app: str, replicas: int = 2, cpu: str = "500m", **spec: Any) -> None:
        """A Deployment whose pods are older than the policy."""
        spec = {"nodeSelector": {"pool": self.name}, "terminationGracePeriodSeconds": 1, **spec}
        self.team.deployment(app, replicas=replicas, cpu=cpu, memory="64Mi", spec=spec)
        self.team.eventually(lambda: len(self.team.running(f"app={app}")) == replicas, within=60)

    def recommend(self, **p95: str) -> None:
        workloads = {
            f"{self.team.namespace}/Deployment/{app}": {
                "main": ContainerUsage(
                    cpu=Percentiles(p5="10m", p50="50m", p95=amount, max=amount, confidence=1.0),
                    days=14,
                    confidence=1.0,
                )
            }
            for app, amount in p95.items()
        }
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": "trimtab-recommendations-00",
                    "namespace": self.cluster.namespace,
                    "labels": {"trimtab.dev/recommendations": "v1"},
                },
                "data": {"recommendations.json": encode(workloads)},
            }
        )

    def acts(self, **settings: Any) -> None:
        resize = {"canary": 50, "verify": "4s", "perHour": 100, **settings.pop("resize", {})}
        # Nothing is drained: the pool may not have fewer nodes.
        keep = {"nodes": 99, "headroom": {"percent": 0, "largestPod": False}}
        self.cluster.apply(pool(self.cluster, self.name, resize=resize, keep=keep, **settings))

    def sizes(self, app: str) -> list[str]:
        pods = self.team.running(f"app={app}")
        return sorted(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods)

    def records(self) -> Object:
        resizes: Object = state(self.cluster, self.name).get("resizes", {})
        return resizes

    def compactor(self, **more: str) -> Any:
        return compactor(self.cluster, self.folder, POLICIES=str(self.policy), **{**SOON, **more})


@pytest.fixture
def stage(cluster: Cluster, team: Cluster, tmp_path: Path) -> Stage:
    return Stage(cluster, team, tmp_path)


def told(one: Compactor, what: str) -> list[str]:
    return [line["code"] for line in one.told(what)]


def test_a_workload_follows_its_recommendation_in_waves_without_a_restart(stage: Stage) -> None:
    stage.workload("web", replicas=4)
    before = {pod["metadata"]["uid"] for pod in stage.team.running("app=web")}
    stage.recommend(web="200m")
    stage.acts(resize={"canary": 25})
    auditor = stage.cluster.auditor
    with ResizingKubelet(stage.team, stage.name) as kubelet, stage.compactor() as one:
        stage.team.eventually(lambda: "200m" in stage.sizes("web"), within=40, what="a canary")
        assert stage.sizes("web").count("200m") == 1, "a quarter of four pods"
        stage.team.eventually(lambda: stage.sizes("web") == ["200m"] * 4, within=90, what="all of them")
        stage.team.eventually(
            lambda: stage.records().get("verified") == 4 and not stage.records().get("open"), within=40
        )
        [shown] = ask(stage.cluster, "status", "-o", "json")["resizes"]
    assert (shown["verified"], shown["freedMillicores"], shown["reverted"]) == (4, 1200, 0)
    assert {pod["metadata"]["uid"] for pod in stage.team.running("app=web")} == before, "no pod was replaced"
    assert set().union(*kubelet.qos.values()) == {"Burstable"}
    assert not kubelet.overfull
    mine = auditor.writes(user=USER, namespace=stage.team.namespace)
    assert {write.resource for write in mine if write.resource != "events"} == {"pods/resize"}
    assert all(set(_changed(write.asked)) == {"requests"} for write in mine if write.resource == "pods/resize")
    assert told(one, "resized") == ["resize-shrinks"] * 4


def _changed(request: Object) -> list[str]:
    return [key for container in request["spec"]["containers"] for key in container["resources"]]


def test_a_pod_that_runs_out_of_memory_is_reverted_within_two_minutes(stage: Stage) -> None:
    stage.workload("web", replicas=4)
    stage.recommend(web="200m")
    stage.acts(resize={"verify": "60s"})
    with ResizingKubelet(stage.team, stage.name) as kubelet, stage.compactor() as one:
        stage.team.eventually(lambda: stage.sizes("web").count("200m") == 2, within=40)
        victim = next(pod for pod in stage.team.running("app=web") if _cpu(pod) == "200m")
        planted = time.monotonic()
        kubelet.kill(victim)
        stage.team.eventually(lambda: stage.sizes("web") == ["500m"] * 4, within=120, what="reverted")
        print(f"reverted after {time.monotonic() - planted:.1f} s")
        stage.team.eventually(lambda: stage.records().get("reverted") == 2, within=30)
        time.sleep(6)
        assert stage.sizes("web") == ["500m"] * 4, "the workload backs off"
        assert set(told(one, "resize-reverted")) == {"resize-oom-kill", "resize-reverted-with-others"}
        [shown] = ask(stage.cluster, "status", "-o", "json")["resizes"]
        assert shown["backsOff"] == [f"{stage.team.namespace}/Deployment/web"]


def _cpu(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def test_kubelets_that_refuse_defer_or_do_not_answer_are_reverted(stage: Stage) -> None:
    for app in ("never", "later", "mute"):
        stage.workload(app, replicas=1)
    stage.recommend(never="200m", later="200m", mute="200m")
    stage.acts()
    answers = {"never": "Infeasible", "later": "Deferred", "mute": "silent"}
    with ResizingKubelet(stage.team, stage.name, answers) as kubelet, stage.compactor() as one:
        stage.team.eventually(lambda: len(told(one, "resize-reverted")) == 3, within=60)
        assert sorted(told(one, "resize-reverted")) == ["resize-deferred", "resize-infeasible", "resize-not-answered"]
        stage.team.eventually(lambda: not stage.records().get("open"), within=40, what="all reverts are over")
        assert [stage.sizes(app) for app in answers] == [["500m"]] * 3
    assert all(sizes == ["500m", "200m", "500m"] for sizes in kubelet.sizes.values())


def test_a_revert_without_room_replaces_the_pod_within_its_budget(
    cluster: Cluster, team: Cluster, tmp_path: Path
) -> None:
    stage = Stage(cluster, team, tmp_path, nodes=1, cpu="1")
    stage.workload("web", replicas=2, cpu="400m")
    stage.recommend(web="100m")
    stage.acts(resize={"verify": "120s"})
    team.apply(budget("web", unavailable=0))
    with ResizingKubelet(team, stage.name) as kubelet, stage.compactor() as one:
        team.eventually(lambda: stage.sizes("web") == ["100m", "400m"], within=40)
        stage.workload("other", replicas=1, cpu="450m")
        kubelet.kill(next(pod for pod in team.running("app=web") if _cpu(pod) == "100m"))
        team.eventually(lambda: told(one, "resize-stopped"), within=60)
        assert told(one, "resize-stopped") == ["resize-revert-without-room"]
        time.sleep(4)
        assert stage.sizes("web") == ["100m", "400m"], "its budget allows no eviction"
        team.apply(budget("web", unavailable=1))
        team.eventually(lambda: told(one, "resize-replaced"), within=60)
        team.eventually(lambda: stage.records().get("replaced") == 1, within=30)
    assert not kubelet.overfull
    assert stage.records()["stopped_at"]


def test_what_autoscalers_count_on_and_what_is_guaranteed_is_left_alone(stage: Stage) -> None:
    install_crd(stage.cluster, vpa.definition())
    for app in ("scaled", "managed", "valued"):
        stage.workload(app, replicas=1)
    stage.workload("sure", replicas=1, containers=[_guaranteed(stage.cluster)])
    stage.recommend(scaled="200m", managed="200m", valued="200m", sure="200m")
    for app, target in (
        ("scaled", {"type": "Utilization", "averageUtilization": 80}),
        ("valued", {"type": "AverageValue", "averageValue": "400m"}),
    ):
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        stage.team.apply(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": app},
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": app},
                    "minReplicas": 1,
                    "maxReplicas": 1,
                    "metrics": [metric],
                },
            }
        )
    stage.team.apply(
        {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "managed"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "managed"},
                "updatePolicy": {"updateMode": "Initial"},
            },
        }
    )
    stage.acts()
    with ResizingKubelet(stage.team, stage.name) as kubelet, stage.compactor():
        stage.team.eventually(lambda: stage.sizes("valued") == ["200m"], within=40)
        stage.team.eventually(lambda: stage.records().get("verified") == 1, within=30)
        time.sleep(5)
        assert [stage.sizes(app) for app in ("scaled", "managed", "sure")] == [["500m"]] * 3
        refusals = stage.records()["refusals"]
    assert refusals["resize-hpa-divides"] == refusals["resize-vpa-manages"] == 1
    assert all(len(classes) == 1 for classes in kubelet.qos.values())


def _guaranteed(cluster: Cluster) -> Object:
    amounts = {"cpu": "500m", "memory": "64Mi"}
    return {"name": "main", "image": cluster.image, "resources": {"requests": amounts, "limits": amounts}}


def test_a_pool_that_rehearses_a_pause_and_a_policy_that_audits_resize_nothing(stage: Stage) -> None:
    stage.workload("web")
    stage.recommend(web="200m")
    stage.acts(mode="rehearse")
    auditor = stage.cluster.auditor
    paused = "trimtab.dev/paused"
    with ResizingKubelet(stage.team, stage.name), stage.compactor() as one:
        stage.team.eventually(lambda: stage.records().get("refusals"), within=40)
        assert stage.records()["refusals"] == {"resize-not-acting": 2}
        stage.cluster.kubectl("annotate", "namespace", stage.cluster.namespace, f"{paused}=for a look")
        stage.acts()
        time.sleep(6)
        one.stop()
        stage.policy.write_text(stage.policy.read_text().replace("spec:", "spec:\n  mode: audit"))
    stage.cluster.kubectl("annotate", "namespace", stage.cluster.namespace, f"{paused}-")
    with ResizingKubelet(stage.team, stage.name), stage.compactor():
        time.sleep(8)
    assert stage.sizes("web") == ["500m"] * 2
    assert not auditor.writes(user=USER, resource="pods/resize")


def test_pods_that_no_pool_covers_are_named_and_old_kubelets_are_told_of(stage: Stage) -> None:
    stage.workload("web", replicas=1)
    stage.recommend(web="200m")
    old = ResizingKubelet(stage.team, stage.name)
    old.old = True
    with old, stage.compactor():
        stage.acts()
        stage.team.eventually(
            lambda: "resize-node-cannot" in stage.records().get("refusals", {}), within=40, what="an old kubelet"
        )
        other = {
            **pool(stage.cluster, stage.name),
            "data": {"pool.yaml": json.dumps({"nodes": {"labels": {"x": "y"}}})},
        }
        stage.cluster.apply(other)
        stage.team.eventually(lambda: stage.records().get("uncovered_count") == 1, within=40)
        assert stage.records()["uncovered"][0].startswith(f"{stage.team.namespace}/web-")
    assert stage.sizes("web") == ["500m"]


def test_an_api_server_with_troubles_loses_no_resize(stage: Stage, tmp_path: Path) -> None:
    stage.workload("web", replicas=4)
    stage.recommend(web="200m")
    stage.acts()
    login = stage.cluster.plane.kubeconfig_for(USER, "system:masters")
    with (
        relay(login, tmp_path) as (troubled, path),
        ResizingKubelet(stage.team, stage.name) as kubelet,
        stage.compactor(KUBECONFIG=str(path)) as one,
    ):
        stage.team.eventually(lambda: "200m" in stage.sizes("web"), within=40)
        troubled.trouble, until = 0.4, time.monotonic() + 20
        while time.monotonic() < until:
            assert one.process.poll() is None
            time.sleep(0.5)
        troubled.trouble = 0.0
        stage.team.eventually(
            lambda: not stage.records().get("open") and stage.records().get("verified", 0) >= 2, within=90
        )
        stage.team.eventually(lambda: set(stage.sizes("web")) <= {"200m", "500m"}, within=10)
    assert troubled.failed
    assert not kubelet.overfull


def test_killed_after_every_single_write_of_a_resize(cluster: Cluster, tmp_path: Path) -> None:
    """State, resize, Events, the end: whatever was written last, the next leader brings each resize to its end."""
    cluster.needs_own("nodes made by the test (kwok)")
    number, more, deaths = 1, True, 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while more:
            tries = range(number, number + AT_ONCE)
            objects = list(threads.map(lambda write: _killed_at(cluster, tmp_path / str(write), write), tries))
            number, more, deaths = number + AT_ONCE, all(objects), deaths + sum(objects)
    print(f"died after each of {deaths} writes")
    assert deaths >= 8, "three writes come before the first resize"


def _killed_at(cluster: Cluster, folder: Path, write: int) -> bool:
    home = cluster.in_namespace(f"die-{uuid.uuid4().hex[:6]}")
    team = cluster.in_namespace(f"team-{uuid.uuid4().hex[:6]}")
    try:
        return _dies_at(Stage(home, team, folder, nodes=1), write)
    finally:
        for space in (team, home):
            space.clean_up()
            space.delete("Namespace", space.namespace)


def _dies_at(stage: Stage, write: int) -> bool:
    """Whether the first process was killed after this write; then another one ends all resizes."""
    stage.workload("web", replicas=2)
    stage.recommend(web="200m")
    stage.acts(resize={"canary": 100, "verify": "2s"})
    with ResizingKubelet(stage.team, stage.name) as kubelet:
        first = Compactor(stage.cluster, stage.folder, program=(DYING, str(write)), POLICIES=str(stage.policy), **SOON)
        deadline = time.monotonic() + 60
        while first.process.poll() is None and time.monotonic() < deadline:
            if first.told("resize-verified"):  # and then its Events and its state
                deadline = min(deadline, time.monotonic() + 5)
            time.sleep(0.2)
        died = first.process.poll() is not None
        first.stop(9)
        for pod in stage.team.running("app=web"):
            assert _cpu(pod) == "500m" or _is_known(stage, pod), "what it had before is known"
        with stage.compactor():
            stage.team.eventually(lambda: _is_over(stage), within=100, what="both pods resized and verified")
    assert not kubelet.overfull
    return died


def _is_over(stage: Stage) -> bool:
    return stage.sizes("web") == ["200m"] * 2 and not stage.records().get("open")


def _is_known(stage: Stage, pod: Object) -> bool:
    records = stage.records()
    return pod["metadata"]["uid"] in records.get("open", {}) or records.get("verified", 0) > 0


def test_a_pod_that_was_resized_below_its_template_needs_room_for_the_template(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Three nodes of four cores; the pod of three cores requests a tenth after its resize, so that it would fit beside
    the one that stays."""
    name = f"less-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=3, cpu="4", memory="16Gi")
    stays = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    for app, cpu, marks in (("large", "3", {}), ("stays", "2", stays), ("small", "1500m", {})):
        cluster.deployment(app, replicas=1, cpu=cpu, annotations=marks, spec={"nodeSelector": {"pool": name}})
        cluster.eventually(lambda app=app: len(cluster.running(f"app={app}")) == 1, within=30)
    [large], [small] = cluster.running("app=large"), cluster.running("app=small")
    with ResizingKubelet(cluster, name):
        cluster.eventually(lambda: _allocated(cluster, large) == "3", within=20, what="a node that can resize")
        container = {"name": large["spec"]["containers"][0]["name"], "resources": {"requests": {"cpu": "100m"}}}
        cluster.patch("Pod", large["metadata"]["name"], {"spec": {"containers": [container]}}, sub="resize")
        cluster.eventually(lambda: _allocated(cluster, large) == "100m", within=20, what="the resize")
    cluster.apply(pool(cluster, name, mode="rehearse", protect={"singleReplicas": False}))
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("started"), within=30)
        assert state(cluster, name)["plan"] == [small["spec"]["nodeName"]]
        assert planned(cluster, name) == [small["spec"]["nodeName"]]


def _allocated(cluster: Cluster, pod: Object) -> str:
    status = cluster.get("Pod", pod["metadata"]["name"])["status"]["containerStatuses"][0]
    requests: dict[str, str] = status.get("resources", {}).get("requests", {})
    return requests.get("cpu", "")
