"""On which nodes would the scheduler put this pod? Overheard, without anything being put anywhere.

An HTTP extender is asked after all of the scheduler's own filters, with the names of the nodes that passed them. Ours
writes them down and turns all of them away: so a pod stays where it is, no verdict disturbs the next, and one pod
tells about every node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import yaml

from tests.controlplane.control_plane import ControlPlane

Verdicts = dict[str, list[frozenset[str]]]
"""Pod's name → the nodes that passed, once per attempt; a pod for which none passed is not named."""


@contextmanager
def overhearing(plane: ControlPlane) -> Iterator[Verdicts]:
    """The plane's scheduler binds nothing any more; what it would have done is in the verdicts as it comes."""
    heard: Verdicts = {}
    lock = Lock()

    class Extender(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            names = document["NodeNames"] or []  # without tags: named as in Go
            with lock:
                heard.setdefault(document["Pod"]["metadata"]["name"], []).append(frozenset(names))
            refused = {"nodenames": [], "failedAndUnresolvableNodes": dict.fromkeys(names, "overheard")}
            body = json.dumps(refused).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Extender)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        _configure(plane, server.server_port)
        yield heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _configure(plane: ControlPlane, port: int) -> None:
    """The default profile with all its plugins; every node is looked at."""
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.layout.kubeconfigs["kube-scheduler"]), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "extenders": [
            {
                "urlPrefix": f"http://127.0.0.1:{port}",
                "filterVerb": "filter",
                "nodeCacheCapable": True,
                "httpTimeout": "30s",
            }
        ],
    }
    path = plane.folder / "scheduler.yaml"
    path.write_text(yaml.safe_dump(configuration))
    plane.extra_flags = {**plane.extra_flags, "kube-scheduler": [f"--config={path}"]}
    plane.restart("kube-scheduler")
