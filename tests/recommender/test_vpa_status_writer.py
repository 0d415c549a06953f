"""The statuses of VPAs, written to an API server that is played: which, when, and what happens when it refuses."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest
from kubernetes.client import ApiClient, Configuration
from prometheus_client import CollectorRegistry

from tests.build import owner_key
from tests.recommender.played import World as UsageWorld
from tests.recommender.played import moments
from tests.sizing.vpa_worlds import NOW, entry, use, vpa
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.kube.client import Client
from trimtab.kube.errors import TooManyRequests
from trimtab.kube.objects import Writer
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.recommender.pod_watcher import PodWatchState, ownership_with_containers
from trimtab.recommender.vpa_status_writer import VpaStatusMetrics, VpaStatusWriter
from trimtab.recommender.vpa_watcher import VpaWatchState, retain_own
from trimtab.runtime import log


@dataclass
class Server:
    """An API server that takes patches of a status, and refuses those of some VPAs."""

    patches: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """(path, body) of each."""
    conflicts: set[str] = field(default_factory=set)
    """The VPAs that have changed meanwhile."""
    is_overloaded: bool = False


@contextmanager
def serving(server: Server) -> Iterator[Client]:
    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.partition("?")[0]
            server.patches.append((path, body))
            if server.is_overloaded:
                self._answer(429, {"kind": "Status", "reason": "TooManyRequests", "message": "later"})
            elif path.split("/")[-2] in server.conflicts:
                self._answer(409, {"kind": "Status", "reason": "Conflict", "message": "it has changed"})
            else:
                self._answer(200, {"metadata": {"resourceVersion": "2"}})

        def _answer(self, code: int, document: dict[str, Any]) -> None:
            text = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{http.server_address[1]}"
        yield Client(ApiClient(configuration))
    finally:
        http.shutdown()
        http.server_close()


def named(name: str, **more: Any) -> Any:
    autoscaler = vpa(**more)
    return change(autoscaler, metadata=change(autoscaler.metadata, name=name, resource_version="1"))


@dataclass
class World:
    writer: VpaStatusWriter
    vpas: VpaWatchState
    server: Server
    said: io.StringIO
    seconds: float = 0.0

    def see(self, *autoscalers: Any, what: ChangeType = ChangeType.MODIFIED) -> None:
        for one in autoscalers:
            key = (one.metadata.namespace, one.metadata.name)
            self.vpas.apply_change(WatchEvent(what, "VerticalPodAutoscaler", key, None, retain_own(one)))

    def metric(self, name: str, **labels: str) -> float | None:
        registry = self.registry
        return registry.get_sample_value(f"trimtab_recommender_{name}", labels)

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)


@pytest.fixture
def world() -> Iterator[World]:
    server, said, registry, vpas = Server(), io.StringIO(), CollectorRegistry(), VpaWatchState()
    pods = PodWatchState()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "controller": True}
    metadata = {"name": "web-5d4f-x", "namespace": "shop", "labels": {"pod-template-hash": "5d4f"}}
    spec = {"containers": [{"name": "app"}], "initContainers": [{"name": "migrate"}]}
    pod = msgspec.convert({"metadata": {**metadata, "ownerReferences": [owner]}, "spec": spec}, Pod)
    pods.apply_change(WatchEvent(ChangeType.ADDED, "Pod", ("shop", "web-5d4f-x"), None, ownership_with_containers(pod)))
    with serving(server) as client:
        worlds: list[World] = []
        writer = VpaStatusWriter(
            writer=Writer(client=client),
            history=use(),
            read_vpas=lambda: vpas,
            pods=pods,
            metrics=VpaStatusMetrics(registry),
            log=log.build_logger("info", "json", said),
            tolerance=0.05,
            interval_seconds=600,
            elapsed=lambda: worlds[0].seconds,
        )
        worlds.append(World(writer, vpas, server, said, registry=registry))
        yield worlds[0]


def test_nothing_is_written_while_trimtab_is_paused(world: World) -> None:
    world.see(named("web"))
    world.writer.read_pause = lambda: "namespace trimtab-system has the annotation trimtab.dev/paused: true"
    assert [world.writer.write_changes(NOW) for _ in range(2)] == [0, 0]
    assert world.server.patches == []
    world.writer.read_pause = str
    assert world.writer.write_changes(NOW) == 1


def test_only_vpas_that_name_us_alone_are_written_and_only_their_status(world: World) -> None:
    world.see(
        named("web"),
        named("theirs", recommenders=[]),
        named("both", recommenders=[{"name": "trimtab"}, {"name": "default"}]),
    )
    assert world.writer.write_changes(NOW) == 1
    [(path, body)] = world.server.patches
    assert path == "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/web/status"
    assert body.keys() == {"metadata", "status"}
    assert body["metadata"] == {"resourceVersion": "1"}
    assert entry(body["status"])["target"].keys() == {"cpu", "memory"}
    assert world.metric("vpas", reason="vpa-several-recommenders") == 1
    assert world.metric("vpas", reason="vpa-from-usage") == 1
    assert "vpa-several-recommenders" in world.said.getvalue()


def test_it_is_computed_again_when_the_spec_is_another_or_the_interval_is_over(world: World) -> None:
    world.see(named("web"))
    assert world.writer.write_changes(NOW) == 1
    stored = _with(named("web"), world.server.patches[-1][1]["status"])
    world.see(stored)
    assert world.writer.write_changes(NOW + 60) == 0
    assert len(world.server.patches) == 1
    changed = change(stored, metadata=change(stored.metadata, generation=4))
    world.see(changed)
    assert world.writer.write_changes(NOW + 120) == 1, "observedGeneration is another"
    world.see(_with(changed, world.server.patches[-1][1]["status"]))
    world.seconds = 601
    assert world.writer.write_changes(NOW + 600) == 0, "it is computed, and is the same"


def test_it_is_computed_again_when_an_annotation_is_another(world: World) -> None:
    world.see(named("web"))
    world.writer.write_changes(NOW)
    stored = _with(named("web"), world.server.patches[-1][1]["status"])
    chosen = named("web", annotations={"trimtab.dev/vpa-cpu": "max +100%"}).metadata
    world.see(change(stored, metadata=chosen))
    assert world.writer.write_changes(NOW + 60) == 1, "the generation is the same, and the interval is not over"


def _with(autoscaler: Any, status: dict[str, Any]) -> Any:
    shape = msgspec.convert({"status": status}, type(autoscaler))
    return change(autoscaler, status=shape.status)


def test_one_that_has_changed_meanwhile_holds_up_no_other_and_is_tried_again(world: World) -> None:
    world.server.conflicts = {"api"}
    world.see(named("api"), named("web"))
    assert world.writer.write_changes(NOW) == 1
    assert world.writer.refused.keys() == {("shop", "api")}
    world.server.conflicts = set()
    assert world.writer.write_changes(NOW) >= 1
    assert not world.writer.refused


def test_an_api_server_that_is_overloaded_gets_no_further_writes_in_this_round(world: World) -> None:
    world.server.is_overloaded = True
    world.see(*(named(f"web-{number}") for number in range(50)))
    with pytest.raises(TooManyRequests):
        world.writer.write_changes(NOW)
    assert {path.split("/")[-2] for path, _ in world.server.patches} == {"web-0"}
    world.server.is_overloaded = False
    assert world.writer.write_changes(NOW + 60) == 50


def test_a_vpa_that_is_gone_or_names_another_is_forgotten(world: World) -> None:
    world.see(named("web"), named("api"))
    world.writer.write_changes(NOW)
    world.see(named("web"), what=ChangeType.DELETED)
    world.see(named("api", recommenders=[{"name": "default"}]))
    world.writer.write_changes(NOW)
    assert world.metric("vpas", reason="vpa-from-usage") is None


def test_the_age_is_that_of_the_oldest_status_with_pods(world: World) -> None:
    world.see(named("web"))
    world.writer.write_changes(NOW)
    status = world.server.patches[-1][1]["status"]
    world.see(_with(named("web"), status))
    world.writer.report_age(NOW + 60)
    assert world.metric("vpa_status_age_seconds") == 660
    nobody = {"type": "NoPodsMatched", "status": "True"}
    world.see(_with(named("web"), {**status, "conditions": [*status["conditions"], nobody]}))
    world.writer.report_age(NOW + 120)
    assert world.metric("vpa_status_age_seconds") == 0


def test_the_age_is_reported_even_if_no_usage_was_read_since_the_start(world: World) -> None:
    """A recommender that starts again while Prometheus is gone writes nothing; the VPAs apply what it wrote before."""
    world.see(named("web"))
    world.writer.write_changes(NOW)
    world.see(_with(named("web"), world.server.patches[-1][1]["status"]))
    process = moments(UsageWorld(now=NOW + 3 * 3600, silent=True))
    process.loop.vpa_status = world.writer
    process.lives(600)
    assert len(world.server.patches) == 1
    assert world.metric("vpa_status_age_seconds") == 3 * 3600 + 600


def test_until_vpas_are_read_nothing_is_written(world: World) -> None:
    world.writer.read_vpas = lambda: None
    assert world.writer.write_changes(NOW) == 0


def test_pods_are_counted_by_their_topmost_owner_and_init_containers_apart(world: World) -> None:
    web, api = owner_key("Deployment/web", "shop"), owner_key("Deployment/api", "shop")
    pods = world.writer.pods.summarize_targets({web: web, api: api})
    assert (pods[web].count, pods[api].count) == (1, 0)
    assert (pods[web].containers, pods[web].init_containers) == ({"app"}, {"migrate"})


def test_a_target_is_climbed_from_to_its_topmost_owner(world: World) -> None:
    pods, web = world.writer.pods, owner_key("Deployment/web", "shop")
    assert pods.topmost_of(web) == web
    app = owner_key("App.example.com/front", "shop")
    pods.apply_change(WatchEvent(ChangeType.ADDED, "Deployment", ("shop", "web"), None, app))
    assert pods.topmost_of(web) == app
