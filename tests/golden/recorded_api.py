"""An API server on loopback that answers from a snapshot: lists, single objects, discovery, and access reviews.

It stores nothing: a write is answered with the object that was sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.golden.objects import Item
from tests.golden.snapshots import NOW_SECONDS

_PATH = re.compile(r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?P<rest>/.*)?$")
_PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "StorageClass": "storageclasses",
    "Ingress": "ingresses",
    "PodPolicy": "podpolicies",
}
_CLUSTER_WIDE = ("Node", "Namespace", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass", "PodPolicy")


@contextmanager
def serve_objects(objects: Iterable[Item]) -> Iterator[str]:
    """Yields the URL of a server that has these objects."""
    all_objects, is_closed = tuple(objects), Event()

    @cache
    def find_answer(path: str) -> tuple[int, bytes]:
        """Each form of a command asks the same, and the objects never change."""
        url = urlsplit(path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        status, document = answer_get(all_objects, url.path, query)
        return status, json.dumps(document).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two writes: the second one waits for no acknowledgement of the first.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if "sendInitialEvents" in query:
                self._respond(422, {"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422})
            elif "watch" in query:
                self.send_response(200)
                self.end_headers()
                is_closed.wait()
                self.close_connection = True
            else:
                self._respond_body(*find_answer(self.path))

        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if "reviews" in self.path:
                document["status"] = {"allowed": True}
            self._respond(201, document)

        do_PUT = do_PATCH = do_POST

        def _respond(self, status: int, document: Item) -> None:
            self._respond_body(status, json.dumps(document).encode())

        def _respond_body(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(NOW_SECONDS)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            is_closed.set()
            server.shutdown()
            thread.join()


def answer_get(objects: tuple[Item, ...], path: str, query: dict[str, str]) -> tuple[int, Item]:
    """Returns the status and the body of the answer to a GET."""
    if path == "/version":
        return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
    if path == "/apis":
        versions = sorted({item["apiVersion"] for item in objects if "/" in item["apiVersion"]})
        groups = [
            {
                "name": version.partition("/")[0],
                "preferredVersion": {"groupVersion": version},
                "versions": [{"groupVersion": version}],
            }
            for version in versions
        ]
        return 200, {"kind": "APIGroupList", "groups": groups}
    match = _PATH.match(path)
    if not match:
        return _missing(path)
    group_version = f"{match['group']}/{match['version']}" if match["group"] else match["version"]
    of_version = [item for item in objects if item["apiVersion"] == group_version]
    if not match["rest"]:
        return _list_kinds(group_version, of_version)
    return _answer_objects(of_version, match["rest"].strip("/").split("/"), query, path)


def _list_kinds(group_version: str, objects: list[Item]) -> tuple[int, Item]:
    kinds = sorted({item["kind"] for item in objects})
    if not kinds:
        return _missing(group_version)
    verbs = ["list", "get"]
    resources = [
        {"name": _plural(kind), "kind": kind, "namespaced": kind not in _CLUSTER_WIDE, "verbs": verbs} for kind in kinds
    ]
    return 200, {"kind": "APIResourceList", "groupVersion": group_version, "resources": resources}


def _answer_objects(objects: list[Item], parts: list[str], query: dict[str, str], path: str) -> tuple[int, Item]:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    of_kind = [item for item in objects if _plural(item["kind"]) == parts[0] and _is_chosen(item, namespace, query)]
    if len(parts) > 2:
        return _missing(path)
    if len(parts) == 1:
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": of_kind}
    matching = [item for item in of_kind if item["metadata"]["name"] == parts[1]]
    return (200, matching[0]) if matching else _missing(path)


def _is_chosen(item: Item, namespace: str, query: dict[str, str]) -> bool:
    metadata: dict[str, Any] = item["metadata"]
    if namespace and metadata.get("namespace") != namespace:
        return False
    labels = metadata.get("labels") or {}
    for term in filter(None, query.get("labelSelector", "").split(",")):
        name, _, value = term.partition("=")
        if name not in labels or (value and labels[name] != value.lstrip("=")):
            return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        name, _, value = term.partition("=")
        if name.startswith("metadata.") and metadata.get(name.removeprefix("metadata.")) != value:
            return False
    return True


def _plural(kind: str) -> str:
    return _PLURALS.get(kind, kind.lower() + "s")


def _missing(path: str) -> tuple[int, Item]:
    return 404, {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "NotFound",
        "code": 404,
        "message": f"{path} is not there",
    }
