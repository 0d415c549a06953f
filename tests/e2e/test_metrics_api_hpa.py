"""A real HPA controller scales by request rate while the pods' requests change, and is still while nobody answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.metrics_stage import MetricsStage, PlayedApplication
from trimtab.metricsapi.hpa_proposal import HpaProposal, ProposalTerms, render_hpa

pytestmark = pytest.mark.slow

METRIC = "http_requests"
OUTAGE_SECONDS = 120


@pytest.fixture(scope="module")
def plane(built: Binaries) -> Iterator[ControlPlane]:
    """With an HPA controller that does not sleep for 15 seconds between two looks."""
    flags = {"kube-controller-manager": ["--horizontal-pod-autoscaler-sync-period=2s"]}
    with ControlPlane.start(built, extra_flags=flags) as start:
        yield start


class World:
    """A Deployment under an HPA and a VPA that is played, with its load."""

    def __init__(self, plane: ControlPlane, home: Path) -> None:
        self.cluster = Cluster(plane.kubeconfig, plane=plane).in_namespace("shop")
        self.cluster.pool("metrics", nodes=2, cpu="64")
        self.played = PlayedApplication()
        self.seen: list[int] = []
        """The replicas that the HPA asked for, each change once."""
        rule = {
            "name": METRIC,
            "from": "scrape",
            "kind": "rate",
            "maxAge": "15s",
            "namespaces": ["shop"],
            "pods": {"app": "web"},
            "series": "http_requests_total",
            "endpoint": {"port": self.played.port},
        }
        self.stage = MetricsStage(plane, self.cluster, home, {"rules": [rule]})
        self.cluster.deployment("web", replicas=3, cpu="100m", memory="64Mi", spec={"hostNetwork": True})
        self._cpu = 100
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def start(self) -> None:
        self.played.change(load=30, replicas=3)
        self.stage.start()
        self._thread.start()
        self.cluster.eventually(self.stage.available, within=60, what="the APIService is available")
        self.cluster.create(self._hpa())

    def _hpa(self) -> dict[str, object]:
        """As proposed, with shorter windows: a test has no five minutes."""
        terms = ProposalTerms(
            namespace="shop", deployment="web", metric=METRIC, cpu_request=0.1, scale_down_window_seconds=15
        )
        proposal = HpaProposal(
            threshold=10, requests_per_core=100, base_cores=0, correlation=1, min_replicas=3, max_replicas=12, points=0
        )
        hpa = render_hpa(proposal, terms)
        hpa["spec"]["behavior"]["scaleDown"]["policies"] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
        return hpa

    def _live(self) -> None:
        """Shares the load between the pods that run, and notes what the HPA asks for."""
        resized = 0.0
        while not self._stop.wait(0.25):
            try:
                expected = int(self.cluster.get("Deployment", "web")["spec"]["replicas"])
                if not self.seen or self.seen[-1] != expected:
                    self.seen.append(expected)
                running = self.cluster.running("app=web")
                self.played.change(replicas=len(running))
                if time.monotonic() - resized > 5:
                    resized = time.monotonic()
                    self._resize(running)
            except ApiError:
                continue

    def _resize(self, pods: list[dict[str, object]]) -> None:
        """What a VPA does in place: other requests, every five seconds."""
        self._cpu = 100 if self._cpu == 200 else 200
        resources = {"requests": {"cpu": f"{self._cpu}m", "memory": "64Mi"}}
        for pod in pods:
            container = {"name": pod["spec"]["containers"][0]["name"], "resources": resources}  # type: ignore[index]
            name = pod["metadata"]["name"]  # type: ignore[index]
            self.cluster.patch("Pod", name, {"spec": {"containers": [container]}}, sub="resize")

    def settles_at(self, replicas: int, within: float = 90) -> None:
        try:
            self.cluster.eventually(
                lambda: self.seen[-1:] == [replicas] and len(self.cluster.running("app=web")) == replicas, within=within
            )
        except AssertionError:
            status = self.cluster.get("HorizontalPodAutoscaler", "web")["status"]
            raise AssertionError(f"not {replicas} replicas, seen {self.seen}: {status}") from None

    def close(self) -> None:
        self._stop.set()
        self._thread.join(5)
        self.stage.remove()
        self.played.close()


@pytest.fixture(scope="module")
def world(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(plane, tmp_path_factory.mktemp("hpa") / "home")
    try:
        world.start()
        yield world
    finally:
        world.close()


def reversals(seen: list[int]) -> int:
    """How often the direction changed."""
    steps = [after - before for before, after in pairwise(seen)]
    return sum(before * after < 0 for before, after in pairwise(steps))


def test_replicas_follow_the_rate_and_nothing_else(world: World) -> None:
    world.settles_at(3)
    time.sleep(15)
    assert world.seen == [3]
    world.played.change(load=65)
    world.settles_at(7)
    time.sleep(20)
    assert world.seen[-1] == 7
    world.played.change(load=28)
    world.settles_at(3)
    time.sleep(15)
    assert world.seen[-1] == 3
    assert reversals(world.seen) <= 1, world.seen


def test_an_outage_of_two_minutes_scales_nothing(world: World) -> None:
    world.settles_at(3)
    before = list(world.seen)
    world.stage.stop()
    world.played.change(load=90)
    time.sleep(OUTAGE_SECONDS)
    assert world.seen == before
    world.played.change(load=28)
    time.sleep(3)
    world.stage.start()
    world.cluster.eventually(world.stage.available, within=60, what="the APIService is available again")
    time.sleep(20)
    assert world.seen == before
