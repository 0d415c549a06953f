"""The metrics API as it is installed, in a cluster with played applications: what a test of it stands on.

Played are the applications (one server on loopback, which all pods share: they are on the host's network) and
Prometheus. The Service is an ExternalName `localhost`, which leads the API server to this machine.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import environ, ports
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.http_handlers import handler_of
from trimtab.cli.install import apply as apply_module
from trimtab.installation.manifests import render_namespace
from trimtab.installation.names import InstallValues
from trimtab.installation.processes.metrics_api import NAME, metrics_api_environment, render_metrics_api
from trimtab.kube import objects
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.objects import Writer
from trimtab.metricsapi.api_request import API_SERVICE_NAME

ROOT = Path(__file__).resolve().parents[2]
QUICK = {
    "SCRAPE_INTERVAL_SECONDS": "2",
    "MIN_SAMPLE_GAP_SECONDS": "1",
    "QUERY_INTERVAL_SECONDS": "1",
    "CERTS_CHECK_INTERVAL_SECONDS": "0.3",
    "SHUTDOWN_DELAY_SECONDS": "0",
    "GRACEFUL_TIMEOUT_SECONDS": "6",
}


class PlayedApplication:
    """Every pod's metrics page, and Prometheus: a counter that grows by the load of one pod, and values by query."""

    def __init__(self) -> None:
        self.load, self.replicas, self.counted = 0.0, 1, 0.0
        self.vectors: dict[str, list[dict[str, Any]]] = {}
        """Query → the result of Prometheus."""
        self._at = time.monotonic()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self._respond))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def change(self, load: float | None = None, replicas: int | None = None) -> None:
        """From now on so many requests per second arrive, shared by so many pods."""
        with self._lock:
            self._advance()
            self.load = self.load if load is None else load
            self.replicas = self.replicas if replicas is None else max(1, replicas)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _advance(self) -> None:
        now = time.monotonic()
        self.counted, self._at = self.counted + self.load / self.replicas * (now - self._at), now

    def _page(self) -> bytes:
        with self._lock:
            self._advance()
            return b'http_requests_total{code="200"} %f\n' % self.counted

    def _respond(self, method: str, path: str, body: bytes) -> bytes:
        """A pod's page for GET; Prometheus for POST."""
        if method == "GET":
            return self._page()
        [query] = urllib.parse.parse_qs(body.decode())["query"]
        data = {"resultType": "vector", "result": self.vectors.get(query, [])}
        return json.dumps({"status": "success", "data": data}).encode()


class MetricsStage:
    """The installed metrics API, and one replica of it."""

    def __init__(self, plane: ControlPlane, cluster: Cluster, home: Path, rules: dict[str, Any]) -> None:
        self.plane, self.cluster, self.home = plane, cluster, home
        [self.port] = ports.free(1)
        self.values = InstallValues(service_port=self.port, metrics_api=True)
        self.client = connect_to_cluster(str(cluster.kubeconfig))
        self.process: subprocess.Popen[bytes] | None = None
        self.install(rules)

    def install(self, rules: dict[str, Any]) -> None:
        external = {"type": "ExternalName", "externalName": "localhost"}
        data = {"rules.yaml": yaml.safe_dump(rules)}
        meta = {"name": "trimtab-metrics", "namespace": self.values.namespace}
        manifests = [
            render_namespace(self.values),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data},
            *render_metrics_api(self.values),
        ]
        objects = [{**one, "spec": external} if one["kind"] == "Service" else one for one in manifests]
        list(apply_module.apply_manifests(Writer(client=self.client), objects, self.values))

    def start(self, **settings: str) -> None:
        """Starts a replica with the rights of its account; it serves on return."""
        self.home.mkdir(exist_ok=True)
        own = {
            "LISTEN": f"127.0.0.1:{self.port}",
            "CERTS_FOLDER": str(self.home / "certs"),
            "CLIENT_CA_FILE": str(self.home / "aggregation.crt"),
            "SCRAPE_FILES_FOLDER": str(self.home),
            "POD_NETWORKS": "0.0.0.0/0",
            **QUICK,
            **settings,
        }
        surroundings = {
            **environ.plain(),
            **metrics_api_environment(self.values),
            **{f"TRIMTAB_METRICS_API_{name}": value for name, value in own.items()},
            "KUBECONFIG": str(self._login()),
        }
        with (self.home / "log").open("ab") as log:
            command = [sys.executable, "-m", "trimtab", "metrics-api"]
            self.process = subprocess.Popen(command, cwd=ROOT, env=surroundings, stderr=log)
        self.cluster.eventually(self.ready, within=60, what=f"ready: {self.home / 'log'}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def ready(self) -> bool:
        assert self.process is None or self.process.poll() is None, (self.home / "log").read_text()
        with contextlib.suppress(OSError):
            return self.ask("/readyz", user=None)[0] == 200
        return False

    def available(self) -> bool:
        """What the API server says of the APIService."""
        result = self.cluster.get("APIService", API_SERVICE_NAME)
        conditions = result.get("status", {}).get("conditions", ())
        return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)

    def ask(self, path: str, user: str | None, *groups: str, port: int = 0, verified: bool = True) -> tuple[int, Any]:
        """Status and document, as the aggregation layer asks for this user; `verified` False: without its certificate.

        As nobody the page is not decoded.
        """
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if verified:
            pair = self.plane.layout.aggregator
            context.load_cert_chain(pair.certificate, pair.key)
        request = urllib.request.Request(f"https://127.0.0.1:{port or self.port}{path}")
        if user is not None:
            request.add_header("X-Remote-User", user)
        for group in groups:
            request.add_header("X-Remote-Group", group)
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def raw(self, path: str, api: Any = None) -> Any:
        """What the API server answers a client at this path."""
        return (api or self.cluster.api).request("GET", path)

    def status_of(self, path: str, api: Any) -> int:
        try:
            self.raw(path, api)
        except ApiError as error:
            return error.status
        return 200

    def _login(self) -> Path:
        """A kubeconfig with the token that the account gets in a pod, and nothing else."""
        path = f"/api/v1/namespaces/{self.values.namespace}/serviceaccounts/{NAME}/token"
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = self.cluster.api.request("POST", path, token_request)["status"]["token"]
        document = yaml.safe_load(self.cluster.kubeconfig.read_text())
        document["users"] = [{"name": document["contexts"][0]["context"]["user"], "user": {"token": token}}]
        file = self.home.parent / "metrics-api.kubeconfig"
        file.write_text(yaml.safe_dump(document))
        return file

    def remove(self) -> None:
        """In the order of `install --remove`."""
        self.stop()
        objects.delete(Writer(client=self.client), "APIService", API_SERVICE_NAME)
        for result in reversed(list(render_metrics_api(self.values))):
            meta = result["metadata"]
            objects.delete(Writer(client=self.client), result["kind"], meta["name"], meta.get("namespace", ""))
        self.client.close()
        # Another test's installation begins with this namespace.
        self.cluster.kubectl("delete", "namespace", self.values.namespace, "--wait")


@contextlib.contextmanager
def custom_metrics_adapter(program: Path, plane: ControlPlane, home: Path) -> Iterator[int]:
    """The reference implementation; its port. It is not registered: a cluster has one provider."""
    [port] = ports.free(1)
    home.mkdir(exist_ok=True)
    kubeconfig = str(plane.kubeconfig)
    argv = [
        str(program),
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={home}",
        f"--lister-kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)
