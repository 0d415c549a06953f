"""The predicted replica counts of an HPA and a VPA on the same metric, beside those of the real HPA controller.

The load is constant. In each round the test does what a VPA does (the request becomes P90 + 15 %), and the real
controller then changes the count until it is at rest. All scenarios run at once, each in its namespace.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.resource_metrics import ResourceMetrics
from trimtab.autoscaling.replica_prediction import ReplicaPrediction, predict_replicas

pytestmark = pytest.mark.slow

ROUNDS = 4
MAX_REPLICAS = 60


@dataclass
class Scenario:
    """One workload. `mean_to_p90` is k, `total` the millicores of all its pods together, `target` in percent."""

    name: str
    mean_to_p90: float
    replicas: int
    total: int
    target: int
    counts: list[int] = field(default_factory=list)
    """The replicas that the real controller wanted, after each round."""

    @property
    def prediction(self) -> ReplicaPrediction:
        return predict_replicas(
            mean_to_p90=self.mean_to_p90,
            replicas=self.replicas,
            total=self.total,
            target_percent=self.target,
            max_replicas=MAX_REPLICAS,
            max_rounds=ROUNDS,
        )

    def request_for(self, replicas: int) -> int:
        """The millicores that the VPA recommends while so many pods share the load."""
        return int(self.total / replicas / self.mean_to_p90 * 1.15)


SCENARIOS = (
    Scenario("s1", 1, 3, 3000, 50),
    Scenario("s3", 1, 3, 3000, 70),
    Scenario("s4-80", 1, 3, 3000, 80),
    Scenario("s4-90", 1, 3, 3000, 90),
    Scenario("s6-50", 0.85, 6, 6000, 50),
    Scenario("s6-60", 0.85, 6, 6000, 60),
    Scenario("s6-70", 0.85, 6, 6000, 70),
    Scenario("s8-50", 0.5, 6, 6000, 50),
    Scenario("s8-60", 0.5, 6, 6000, 60),
    Scenario("s8-70", 0.5, 6, 6000, 70),
    Scenario("own-up", 0.7, 8, 16_000, 45),
    Scenario("own-rest", 0.7, 10, 20_000, 60),
    Scenario("own-down", 0.4, 20, 20_000, 60),
    Scenario("own-down-fast", 0.6, 12, 9000, 90),
    Scenario("own-rest-low", 0.45, 12, 9000, 40),
)
"""S1 to S8 of the published vectors, and five of our own: one up, two at rest, two falling."""


class Load:
    """What the pods of every scenario use: its total, shared by those that run. Nothing is known while it is paused."""

    def __init__(self, cluster: Cluster) -> None:
        self._clusters = {one.name: cluster.in_namespace(one.name) for one in SCENARIOS}
        self._paused = threading.Event()
        self._paused.set()

    def inside(self, scenario: Scenario) -> Cluster:
        return self._clusters[scenario.name]

    def usage(self, namespace: str) -> dict[str, int] | None:
        if self._paused.is_set() or namespace not in self._clusters:
            return None
        total = next(one.total for one in SCENARIOS if one.name == namespace)
        pods = [pod["metadata"]["name"] for pod in self._clusters[namespace].running("app=web")]
        share, rest = divmod(total, len(pods))
        return {pod: share + (number < rest) for number, pod in enumerate(pods)}

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()


def create_workload(cluster: Cluster, scenario: Scenario) -> None:
    """A ReplicaSet, whose template can change without new pods, and its HPA without delays and limits of speed."""
    resources = {"requests": {"cpu": f"{scenario.request_for(scenario.replicas)}m"}}
    container = {"name": "main", "image": cluster.image, "resources": resources}
    cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": scenario.replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
            },
        }
    )
    at_once = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 900, "periodSeconds": 1}]}
    target = {"type": "Utilization", "averageUtilization": scenario.target}
    cluster.create(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
                "minReplicas": 1,
                "maxReplicas": MAX_REPLICAS,
                "behavior": {"scaleUp": at_once, "scaleDown": at_once},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            },
        }
    )


def replicas_of(cluster: Cluster) -> int:
    return int(cluster.get("ReplicaSet", "web")["spec"]["replicas"])


def is_running(cluster: Cluster) -> bool:
    pods = cluster.list("Pod", selector="app=web")
    return len(pods) == len(cluster.running("app=web")) == replicas_of(cluster)


def renew_pods(cluster: Cluster, millicores: int) -> None:
    """What a VPA does in mode Recreate: all pods come anew, with the new request. (A fake node cannot resize them.)"""
    containers = [{"name": "main", "image": cluster.image, "resources": {"requests": {"cpu": f"{millicores}m"}}}]
    cluster.patch("ReplicaSet", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
    for pod in cluster.list("Pod", selector="app=web"):
        cluster.delete("Pod", pod["metadata"]["name"], grace=0)


def has_request(cluster: Cluster, millicores: int) -> bool:
    """Whether all pods run, with this request."""
    pods = cluster.list("Pod", selector="app=web")
    requests = {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods}
    return is_running(cluster) and {parse_quantity(request) for request in requests} == {millicores}


def parse_quantity(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def settle(cluster: Cluster, metrics: ResourceMetrics, scenario: Scenario) -> int:
    """The count after the controller has left it alone for three looks at the usage of pods that all run."""
    state = {"count": 0, "since": 0}

    def rests() -> bool:
        count, looks = replicas_of(cluster), metrics.answers[scenario.name]
        if count != state["count"] or not is_running(cluster):
            state.update(count=count, since=looks)
        return looks >= state["since"] + 3

    cluster.eventually(rests, within=60, what=f"{scenario.name} at rest", every=0.3)
    return state["count"]


@pytest.fixture(scope="module")
def counted(built: Binaries) -> Iterator[tuple[Scenario, ...]]:
    """The scenarios with the counts of the real controller."""
    flags = [
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--horizontal-pod-autoscaler-cpu-initialization-period=1ms",
        "--horizontal-pod-autoscaler-initial-readiness-delay=1ms",
        "--concurrent-horizontal-pod-autoscaler-syncs=15",
    ]
    with ControlPlane.start(built, extra_flags={"kube-controller-manager": flags}) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane)
        cluster.pool("load", nodes=12, cpu="256", memory="512Gi", pods=250)
        load = Load(cluster)
        with ResourceMetrics(plane, load.usage) as metrics:
            metrics.register(cluster)
            for scenario in SCENARIOS:
                create_workload(load.inside(scenario), scenario)
            for scenario in SCENARIOS:
                load.inside(scenario).eventually(
                    partial(is_running, load.inside(scenario)), what=f"the pods of {scenario.name}"
                )
                scenario.counts.append(scenario.replicas)
            for _ in range(ROUNDS):
                load.pause()
                requests = {one.name: one.request_for(one.counts[-1]) for one in SCENARIOS}
                for scenario in SCENARIOS:
                    renew_pods(load.inside(scenario), requests[scenario.name])
                for scenario in SCENARIOS:
                    load.inside(scenario).eventually(
                        partial(has_request, load.inside(scenario), requests[scenario.name]), within=60
                    )
                load.resume()
                for scenario in SCENARIOS:
                    scenario.counts.append(settle(load.inside(scenario), metrics, scenario))
            yield SCENARIOS


@pytest.mark.parametrize("name", [scenario.name for scenario in SCENARIOS])
def test_the_real_controller_goes_where_the_prediction_says(counted: tuple[Scenario, ...], name: str) -> None:
    [scenario] = [one for one in counted if one.name == name]
    first, last = scenario.counts[0], scenario.counts[-1]
    direction = "up" if last > first else "down" if last < first else "at rest"
    assert direction == scenario.prediction.direction, (scenario.counts, scenario.prediction.counts)


def test_the_counts_are_those_of_the_prediction(counted: tuple[Scenario, ...]) -> None:
    """At most one pod, or a tenth, apart in each round: usage comes in whole millicores."""
    for scenario in counted:
        predicted = scenario.prediction.counts
        for ours, real in zip(predicted, scenario.counts, strict=False):
            assert abs(ours - real) <= max(1, 0.1 * ours), (scenario.name, predicted, scenario.counts)
