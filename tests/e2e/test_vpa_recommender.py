"""VPAs that name us, with the VPA's own updater, admission controller and recommender: our numbers, and their hands.

Usage comes from the real Prometheus. The nodes of one pool have a kubelet that can resize.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e import real_vpa
from tests.e2e.ours import install_crd
from tests.e2e.real_prometheus import DAYS, MAIN_CORES, MainContainer, Used, missing, serving
from tests.e2e.real_vpa import KIND, conditions, entry, until_used
from tests.e2e.recommenders import GROUP as RBAC
from tests.e2e.recommenders import USER, Recommender, allow, recommender
from tests.e2e.resizing_kubelet import ResizingKubelet
from tests.e2e.resource_metrics import ResourceMetrics
from trimtab.cluster import quantity
from trimtab.installation.vpa_status_access import RULES
from trimtab.sizing.vpa.fields import VPA_FIELDS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

Object = dict[str, Any]
MI = 1 << 20
USING = ("fresh", "off", "bounded", "done", "infeasible", "deferred", "evicted", "gone", "beside")
POOL = "sizes"
DEAD_SECONDS, DEFERRED_SECONDS = 600, 300
"""For how long we are dead; after which time the updater evicts a pod whose resize is deferred."""


@dataclass
class Scene:
    """All of it, running."""

    where: Cluster
    """The namespace of the workloads, in which the VPA's programs work."""
    own: Cluster
    prometheus: str
    home: Path
    kubelet: ResizingKubelet
    usage: dict[str, int]
    """Deployment → what metrics-server says that each of its pods uses, in millicores."""
    ours: Recommender | None = None

    def pods(self, app: str) -> list[Object]:
        pods = self.where.list("Pod", selector=f"app={app}")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def workload(self, name: str, cpu: str = "50m", **more: Any) -> None:
        spec = {"nodeSelector": {"pool": POOL}}
        self.where.deployment(name, replicas=2, cpu=cpu, memory="64Mi", spec=spec, **more)
        self.where.eventually(lambda: len(self.where.running(f"app={name}")) == 2, within=60, what=f"{name} runs")

    def start_ours(self, stack: ExitStack) -> Recommender:
        more = {"WRITE_VPA_STATUS": "true", "PUBLISH_INTERVAL_SECONDS": 2}
        folder = self.home / f"ours-{time.monotonic_ns()}"
        self.ours = stack.enter_context(recommender(self.own, self.prometheus, folder, **more))
        return self.ours


@pytest.fixture(scope="module")
def scene(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    whole_cluster.needs_own("the VPA's own programs")
    home = tmp_path_factory.mktemp("vpa")
    tag = f"{home.stat().st_ino % 100_000:05}"
    where, own = whole_cluster.in_namespace(f"vpa-{tag}"), whole_cluster.in_namespace(f"ours-{tag}")
    now = int(time.time())
    start = now - now % 1800 - DAYS * 86400
    used: list[Used] = [
        MainContainer(number, namespace=where.namespace, name=name) for number, name in enumerate(USING)
    ]
    usage: dict[str, int] = {}

    def told(namespace: str) -> dict[str, int] | None:
        prefix = f"{where.namespace}/" if not namespace else ""
        if namespace not in ("", where.namespace):
            return {}
        pods = where.list("Pod")
        return {
            f"{prefix}{pod['metadata']['name']}": usage[pod["metadata"]["labels"]["app"]]
            for pod in pods
            if pod["metadata"]["labels"].get("app") in usage
        }

    with ExitStack() as stack:
        stack.callback(own.clean_up)
        stack.callback(where.clean_up)
        for definition in real_vpa.definitions():
            # What comes after sees a cluster without the VPA.
            stack.callback(where.delete, "CustomResourceDefinition", definition["metadata"]["name"])
            install_crd(where, definition)
        allow(whole_cluster, own)
        _allow_status(own)
        where.pool(POOL, nodes=3, cpu="8", memory="32Gi")
        kubelet = stack.enter_context(
            ResizingKubelet(where, POOL, {"infeasible": "Infeasible", "deferred": "Deferred"})
        )
        metrics = stack.enter_context(ResourceMetrics(where.plane, told))
        metrics.register(where)
        prometheus = stack.enter_context(serving(tmp_path_factory.mktemp("prometheus"), used, start))
        result = Scene(where, own, prometheus, home, kubelet, usage)
        # The VPA's webhook, which refuses two names, is not called yet.
        two = [{"name": "trimtab"}, {"name": "default"}]
        own.apply(real_vpa.autoscaler("both", mode="Off", recommenders=two))
        stack.enter_context(real_vpa.admission_controller(where, home))
        stack.enter_context(real_vpa.updater(where, home))
        result.start_ours(stack)
        yield result


def _allow_status(own: Cluster) -> None:
    """What `trimtab install --vpa-recommender` grants it."""
    meta = {"name": f"vpa-status-{own.namespace}"}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta}
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": meta["name"]}
    subject = {"kind": "User", "name": USER, "apiGroup": RBAC}
    binding = {**role, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]}
    own.apply([{**role, "rules": [rule.to_manifest() for rule in RULES]}, binding])


def cpu(pod: Object) -> int:
    """Millicores that its spec asks for."""
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return quantity.scheduler_value("cpu", requests.get("cpu", 0))


def target(vpa: Object, field: str = "target") -> int:
    return quantity.scheduler_value("cpu", entry(vpa)[field]["cpu"])


def granted(pod: Object) -> int:
    """Millicores that the kubelet says the container has."""
    [status] = pod["status"].get("containerStatuses") or [{}]
    return quantity.scheduler_value("cpu", status.get("resources", {}).get("requests", {}).get("cpu", 0))


def test_the_table_has_every_field_of_the_vpas_definition() -> None:
    assert real_vpa.field_paths() == {field.path for field in VPA_FIELDS}


def test_a_new_pod_gets_our_target(scene: Scene) -> None:
    scene.workload("fresh")
    scene.where.apply(real_vpa.autoscaler("fresh", mode="Initial"))
    vpa = until_used(scene.where, "fresh")
    assert conditions(vpa) == {"RecommendationProvided": "True"}
    assert target(vpa) == pytest.approx(1000 * 3 * MAIN_CORES, rel=0.1)
    assert vpa["status"]["observedGeneration"] == vpa["metadata"]["generation"]
    before = {pod["metadata"]["uid"] for pod in scene.pods("fresh")}
    scene.where.patch("Deployment", "fresh", {"spec": {"replicas": 3}})

    def added() -> Object | None:
        pods = [pod for pod in scene.pods("fresh") if pod["metadata"]["uid"] not in before]
        return pods[0] if pods and cpu(pods[0]) == target(vpa) else None

    pod = scene.where.eventually(added, within=30, what="the new pod has the target")
    assert "vpaUpdates" in pod["metadata"]["annotations"]
    assert {cpu(pod) for pod in scene.pods("fresh") if pod["metadata"]["uid"] in before} == {50}, (
        "Initial evicts nothing"
    )


def test_with_mode_off_the_status_is_written_and_no_pod_changes(scene: Scene) -> None:
    scene.workload("off")
    scene.where.apply(real_vpa.autoscaler("off", mode="Off"))
    until_used(scene.where, "off")
    before = {pod["metadata"]["uid"] for pod in scene.pods("off")}
    scene.where.patch("Deployment", "off", {"spec": {"replicas": 3}})
    scene.where.eventually(lambda: len(scene.where.running("app=off")) == 3, within=30)
    time.sleep(5)  # rounds of the updater
    assert {cpu(pod) for pod in scene.pods("off")} == {50}
    assert before <= {pod["metadata"]["uid"] for pod in scene.pods("off")}


def test_pods_get_what_the_policy_allows(scene: Scene) -> None:
    scene.workload("bounded")
    policy = {"containerName": "main", "maxAllowed": {"cpu": "333m"}, "controlledResources": ["cpu"]}
    scene.where.apply(real_vpa.autoscaler("bounded", policy, mode="Recreate"))
    vpa = until_used(scene.where, "bounded")
    assert target(vpa) == 333
    assert target(vpa, "upperBound") == 333
    assert target(vpa, "uncappedTarget") > 500
    assert entry(vpa)["target"].keys() == {"cpu"}
    scene.where.eventually(
        lambda: [cpu(pod) for pod in scene.where.running("app=bounded")] == [333, 333], within=90, what="evicted"
    )


def test_an_old_pod_is_evicted_and_made_with_the_target(scene: Scene) -> None:
    scene.workload("evicted")
    before = {pod["metadata"]["uid"] for pod in scene.pods("evicted")}
    scene.where.apply(real_vpa.autoscaler("evicted", mode="Recreate"))
    vpa = until_used(scene.where, "evicted")
    _until_replaced(scene, "evicted", before, target(vpa), within=90)


def _until_replaced(scene: Scene, app: str, before: set[str], millicores: int, within: float) -> None:
    """None of the pods from before is there any more, and two run that ask for as much. A pod whose resize is pending
    asks for it, too."""

    def replaced() -> bool:
        pods = scene.where.running(f"app={app}")
        return not before & {pod["metadata"]["uid"] for pod in pods} and [cpu(pod) for pod in pods] == [millicores] * 2

    scene.where.eventually(replaced, within=within, what=f"the pods of {app} are others")


def test_a_pod_is_resized_in_place(scene: Scene) -> None:
    scene.workload("done")
    before = {pod["metadata"]["uid"] for pod in scene.pods("done")}
    scene.where.apply(real_vpa.autoscaler("done", mode="InPlaceOrRecreate"))
    vpa = until_used(scene.where, "done")
    scene.where.eventually(lambda: [granted(pod) for pod in scene.pods("done")] == [target(vpa)] * 2, within=90)
    assert {pod["metadata"]["uid"] for pod in scene.pods("done")} == before


def test_a_pod_that_its_node_cannot_resize_is_evicted_by_the_updater(scene: Scene) -> None:
    scene.workload("infeasible")
    before = {pod["metadata"]["uid"] for pod in scene.pods("infeasible")}
    scene.where.apply(real_vpa.autoscaler("infeasible", mode="InPlaceOrRecreate"))
    vpa = until_used(scene.where, "infeasible")
    _until_replaced(scene, "infeasible", before, target(vpa), within=120)


def test_vpas_of_another_recommender_are_its_own_while_both_run(scene: Scene) -> None:
    scene.usage["theirs"] = 700
    scene.workload("theirs")
    scene.workload("beside")
    scene.where.apply(real_vpa.autoscaler("theirs", mode="Off", recommenders=[]))
    scene.where.apply(real_vpa.autoscaler("beside", mode="Off"))
    elsewhere = scene.own
    with real_vpa.default_recommender(scene.where, scene.home):
        vpa = until_used(scene.where, "theirs")
        assert 700 < target(vpa) < 1000
        time.sleep(5)
        ours = until_used(scene.where, "beside")
    assert (_managers(vpa), _managers(ours)) == ({"vpa-recommender"}, {"trimtab-recommender"})
    assert "status" not in elsewhere.get(KIND, "both")
    written = {
        (w.namespace, w.name)
        for w in scene.where.auditor.writes(user=USER, verb="patch")
        if w.resource == "verticalpodautoscalers"
    }
    assert not written & {(scene.where.namespace, "theirs"), (elsewhere.namespace, "both")}
    assert scene.ours is not None
    assert scene.ours.value('vpas{reason="vpa-several-recommenders"}') == 1


def _managers(vpa: Object) -> set[str]:
    fields = vpa["metadata"].get("managedFields", [])
    return {one["manager"] for one in fields if one.get("subresource") == "status"}


def test_a_switch_there_and_back_never_lowers_a_request_for_lack_of_history(scene: Scene) -> None:
    """We know nothing of this workload. It used much while the VPA's own recommender looked, and little since."""
    scene.usage["switched"] = 900
    scene.workload("switched")
    autoscaler = real_vpa.autoscaler("switched", mode="Initial", recommenders=[])
    scene.where.apply(autoscaler)
    with real_vpa.default_recommender(scene.where, scene.home):
        vpa = until_used(scene.where, "switched", lambda vpa: target(vpa) > 900)
        first = target(vpa)
        time.sleep(20)  # samples, and a checkpoint
    scene.where.patch(KIND, "switched", {"spec": {"recommenders": [{"name": "trimtab"}]}})
    scene.usage["switched"] = 5
    vpa = until_used(scene.where, "switched", lambda vpa: "LowConfidence" in conditions(vpa))
    assert target(vpa) == first
    assert _managers(vpa) >= {"trimtab-recommender"}
    # As the page says: their recommender is not running while the VPA goes back to it.
    scene.where.patch(KIND, "switched", {"spec": {"recommenders": None}})
    with real_vpa.default_recommender(scene.where, scene.home):
        vpa = until_used(scene.where, "switched", _is_theirs)
        assert "LowConfidence" in conditions(vpa), "theirs keeps what it does not know, as the page says"
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            assert target(scene.where.get(KIND, "switched")) >= first * 0.95, "one of their buckets"
            time.sleep(1)


def _is_theirs(vpa: Object) -> bool:
    """Did the VPA's own recommender write the status last? It gives no reason."""
    return any(one["type"] == "RecommendationProvided" and not one.get("reason") for one in vpa["status"]["conditions"])


def test_ten_minutes_without_us(scene: Scene) -> None:
    """New pods get our last target; a resize that stays deferred ends in the updater's eviction. Then we are back."""
    scene.workload("deferred")
    scene.where.apply(real_vpa.autoscaler("deferred", mode="InPlaceOrRecreate"))
    vpa = until_used(scene.where, "deferred")
    before = {pod["metadata"]["uid"] for pod in scene.pods("deferred")}
    _until_deferred(scene)
    scene.workload("gone")
    scene.where.apply(real_vpa.autoscaler("gone", mode="Initial"))
    last = until_used(scene.where, "gone")
    assert scene.ours is not None
    scene.ours.process.send_signal(signal.SIGKILL)
    begun = time.monotonic()
    time.sleep(DEFERRED_SECONDS / 2)
    assert before <= {pod["metadata"]["uid"] for pod in scene.pods("deferred")}, "it waits"
    _until_replaced(scene, "deferred", before, target(vpa), within=1.5 * DEFERRED_SECONDS)
    time.sleep(max(0.0, DEAD_SECONDS - (time.monotonic() - begun)))
    scene.where.patch("Deployment", "gone", {"spec": {"replicas": 3}})
    scene.where.eventually(lambda: target(last) in {cpu(pod) for pod in scene.pods("gone")}, within=30)
    assert entry(scene.where.get(KIND, "gone")) == entry(last), "the status has no end"
    with ExitStack() as stack:
        again = scene.start_ours(stack)
        scene.where.eventually(lambda: again.value('vpas{reason="vpa-from-usage"}') >= 5, within=90, what="back")
        assert target(scene.where.get(KIND, "gone")) == pytest.approx(target(last), rel=0.05)
        assert again.value("vpa_status_age_seconds") < 7200


def _until_deferred(scene: Scene) -> None:
    def pending() -> bool:
        types = [
            condition.get("reason")
            for pod in scene.pods("deferred")
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodResizePending"
        ]
        return "Deferred" in types

    scene.where.eventually(pending, within=60, what="a deferred resize")
