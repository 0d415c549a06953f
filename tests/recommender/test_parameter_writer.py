"""The rules of a namespace, and the containers whose requests become its parameters."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes.client import ApiClient, Configuration

from tests.build import limit_range, owner_key, quota
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.recommendation import ContainerUsage, Percentiles
from trimtab.cluster.request_parameters import NamespaceRules, name_own_parameters
from trimtab.cluster.snapshot import Snapshot
from trimtab.kube.client import Client
from trimtab.kube.objects import Writer
from trimtab.recommender.parameter_writer import ParameterWriter, list_containers, summarize_rules
from trimtab.runtime import log

USAGE = ContainerUsage(cpu=Percentiles(p5="5m", p95="200m"))


def test_a_namespace_without_anything_has_no_rules():
    assert summarize_rules(Snapshot({})) == NamespaceRules()


def test_only_the_containers_of_the_namespace_are_written():
    workloads = {"shop/Deployment/api": {"main": USAGE}, "bank/Deployment/api": {"main": USAGE}}
    assert list_containers(workloads, "shop") == {(owner_key("Deployment/api", "shop"), "main"): USAGE}


def test_what_bounds_or_resizes_pods_is_counted():
    rules = summarize_rules(
        Snapshot(
            {
                "LimitRange": (limit_range(default={"cpu": "1"}),),
                "ResourceQuota": (quota({"pods": "1"}),),
                "VerticalPodAutoscaler": (VerticalPodAutoscaler(),),
            }
        )
    )
    assert (rules.limit_ranges, rules.quotas, rules.vpas) == (1, 1, ())


@contextmanager
def api_that_refuses(namespaces: set[str], written: list[str]) -> Iterator[Client]:
    """An API server that refuses ConfigMaps in some namespaces, as a full quota does, and has nothing to list."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})

        def do_PATCH(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            namespace = self.path.split("/")[4]
            if namespace in namespaces:
                self._answer(403, {"kind": "Status", "reason": "Forbidden", "message": "exceeded quota: configmaps"})
                return
            written.append(namespace)
            self._answer(200, {"metadata": {"name": "trimtab-requests", "namespace": namespace}})

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        host = f"http://127.0.0.1:{server.server_address[1]}"
        yield Client(ApiClient(Configuration(host=host, retries=False)))  # type: ignore[arg-type]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_namespace_that_refuses_the_config_map_ends_no_other_namespaces_parameters():
    written: list[str] = []
    lines = io.StringIO()
    with api_that_refuses({"theirs"}, written) as client:
        writer = ParameterWriter(
            Writer(client=client), ("bank", "theirs", "shop"), log.build_logger("info", "json", lines)
        )
        workloads = {f"{namespace}/Deployment/api": {"main": USAGE} for namespace in writer.namespaces}
        assert [writer.write_changes(workloads, 1_700_000_000) for _ in range(2)] == [2, 0]
    assert written == ["bank", "shop"]
    assert list(writer.refused) == ["theirs"]
    assert "exceeded quota" in writer.refused["theirs"]
    assert lines.getvalue().count("parameters.refused") == 1  # once, while it lasts


def test_parameters_may_all_be_in_our_own_namespace():
    written: list[str] = []
    with api_that_refuses(set(), written) as client:
        writer = ParameterWriter(
            Writer(client=client), ("bank", "shop"), log.build_logger("info", "json", io.StringIO()), "trimtab-system"
        )
        assert writer.write_changes({}, 1_700_000_000) == 2
    assert written == ["trimtab-system", "trimtab-system"]
    assert name_own_parameters("shop") == "trimtab-requests.shop"
