"""What becomes of a resize, and how is it known whether a cluster can resize at all?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trimtab.kube.client import STRATEGIC_PATCH
from trimtab.kube.errors import ApiStatus, Conflict, NotFound, RequestRefused, refusal_of_response
from trimtab.kube.objects import Writer
from trimtab.kube.resize import ResizeOutcome, ResizeStatus, find_resize_obstacle, resize_pod


class Server:
    """A client to whom the API server says what is played."""

    def __init__(self, refusal: Exception | None = None, minor: str = "36", resources: tuple[str, ...] = ()) -> None:
        self.refusal, self.minor, self.resources = refusal, minor, resources
        self.written: list[tuple[str, str, Any, str]] = []

    def get(self, path: str, *, doing: str) -> bytes:
        if path == "/version":
            return json.dumps({"major": "1", "minor": self.minor}).encode()
        return json.dumps({"resources": [{"name": name} for name in self.resources]}).encode()

    def write(self, method: str, path: str, body: Any, *, content_type: str, **_: Any) -> bytes:
        self.written.append((method, path, body, content_type))
        if self.refusal is not None:
            raise self.refusal
        return b"{}"


def resized(server: Server) -> ResizeOutcome:
    writer = Writer(client=server)  # type: ignore[arg-type]
    return resize_pod(
        writer, "shop", "web-1", "u1", "7", {"app": {"cpu": "200m"}, "log": {"cpu": "10m"}}, frozenset({"log"})
    )


def test_requests_are_patched_by_the_names_of_containers_in_this_version_of_the_pod() -> None:
    server = Server()
    assert resized(server).status is ResizeStatus.RESIZED
    assert server.written == [
        (
            "PATCH",
            "/api/v1/namespaces/shop/pods/web-1/resize",
            {
                "metadata": {"uid": "u1", "resourceVersion": "7"},
                "spec": {
                    "containers": [{"name": "app", "resources": {"requests": {"cpu": "200m"}}}],
                    "initContainers": [{"name": "log", "resources": {"requests": {"cpu": "10m"}}}],
                },
            },
            STRATEGIC_PATCH,
        )
    ]


RBAC = b'{"message": "pods \\"web-1\\" is forbidden: User \\"x\\" cannot patch resource \\"pods/resize\\""}'


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (Conflict("resize", 409, ApiStatus()), ResizeStatus.CHANGED),
        (NotFound("resize", 404, ApiStatus()), ResizeStatus.GONE),
        (
            refusal_of_response("resize", 422, b'{"message": "the class of service may not change"}'),
            ResizeStatus.REJECTED,
        ),
        (refusal_of_response("resize", 403, b'{"message": "exceeded quota"}'), ResizeStatus.REJECTED),
        (refusal_of_response("resize", 403, RBAC), ResizeStatus.NOT_PERMITTED),
    ],
)
def test_the_outcomes_of_a_resize(refusal: Exception, status: ResizeStatus) -> None:
    assert resized(Server(refusal)).status is status


def test_trouble_of_the_server_is_no_outcome() -> None:
    with pytest.raises(RequestRefused):
        resized(Server(refusal_of_response("resize", 503, b"{}")))


@pytest.mark.parametrize(
    ("minor", "resources", "why"),
    [
        ("36", ("pods", "pods/resize"), ""),
        ("33+", ("pods", "pods/resize"), ""),
        ("32", ("pods", "pods/resize"), "Kubernetes 1.32"),
        ("36", ("pods",), "does not serve pods/resize"),
    ],
)
def test_a_cluster_that_cannot_resize_says_so(minor: str, resources: tuple[str, ...], why: str) -> None:
    obstacle = find_resize_obstacle(Server(minor=minor, resources=resources))  # type: ignore[arg-type]
    assert (why in obstacle) if why else obstacle == ""
