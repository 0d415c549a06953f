"""The resource metrics API (metrics.k8s.io) of a cluster whose pods have no real usage: the test says what they use.

Registered with an APIService whose Service is an ExternalName `localhost`, which leads the API server to this machine.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
_ROOT = f"/apis/{GROUP}/{VERSION}"
Usage = Callable[[str], dict[str, int] | None]
"""Namespace → pod → millicores; None while nothing is known. Of all namespaces at once (""), pods are NAMESPACE/POD."""


class ResourceMetrics:
    """A server of the usage that `usage` tells. Use it as a context."""

    def __init__(self, plane: ControlPlane, usage: Usage) -> None:
        self.usage = usage
        self.answers: Counter[str] = Counter()
        """Namespace → how many times its usage was told."""
        pair = plane.authority.server("resource-metrics", ["localhost"])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> ResourceMetrics:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def register(self, cluster: Cluster) -> None:
        """Make the API server ask this server; it is available on return."""
        port = int(self._server.server_address[1])
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "resource-metrics"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        cluster.create(service)
        cluster.create(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{VERSION}.{GROUP}"},
                "spec": {
                    "group": GROUP,
                    "version": VERSION,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "insecureSkipTLSVerify": True,
                    "service": {"name": "resource-metrics", "namespace": cluster.namespace, "port": port},
                },
            }
        )
        cluster.eventually(lambda: cluster.api.request("GET", _ROOT)["resources"], within=60, what="resource metrics")

    def _document(self, path: str) -> dict[str, Any] | None:
        """The document at a path; None if there is none now."""
        if path == _ROOT:
            pods = {
                "name": "pods",
                "singularName": "",
                "namespaced": True,
                "kind": "PodMetrics",
                "verbs": ["get", "list"],
            }
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/{VERSION}",
                "resources": [pods],
            }
        parts = path.removeprefix(_ROOT).strip("/").split("/")
        if parts == ["pods"]:
            parts = ["namespaces", "", "pods"]
        if len(parts) != 3 or parts[0] != "namespaces" or parts[2] != "pods":
            return None
        usage = self.usage(parts[1])
        if usage is None:
            return None
        named = [(pod.rpartition("/")[2], parts[1] or pod.partition("/")[0], cpu) for pod, cpu in usage.items()]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {
                "metadata": {"name": pod, "namespace": namespace},
                "timestamp": now,
                "window": "15s",
                "containers": [{"name": "main", "usage": {"cpu": f"{cpu}m", "memory": "1Mi"}}],
            }
            for pod, namespace, cpu in named
        ]
        self.answers[parts[1]] += 1
        return {"kind": "PodMetricsList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                document = metrics._document(urlsplit(self.path).path)
                body = json.dumps(document or {"kind": "Status", "apiVersion": "v1", "code": 404}).encode()
                self.send_response(404 if document is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler
