"""Who gets which status: probes for everybody, the API for users that are named, verified and allowed."""

import asyncio
import io
import json
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from trimtab.kube.errors import Unreachable
from trimtab.metricsapi import asgi
from trimtab.metricsapi.api_request import DiscoveryRequest, MetricRequest
from trimtab.metricsapi.asgi import MetricsApplication, MetricsService
from trimtab.metricsapi.authorization import AccessAnswer, Authorizer
from trimtab.metricsapi.documents import ApiReply
from trimtab.metricsapi.metrics import Metrics
from trimtab.metricsapi.request_header import RequestHeaderConfig
from trimtab.runtime import log
from trimtab.runtime.connection_limits import CLIENT_NAMES_KEY

CONFIG = RequestHeaderConfig(client_ca="-----BEGIN CERTIFICATE-----", allowed_names=("front-proxy",))
API = "/apis/custom.metrics.k8s.io/v1beta2"
VALUES = f"{API}/namespaces/shop/pods/*/requests"
EVE = ((b"x-remote-user", b"eve"),)
FRONT_PROXY = ("front-proxy",)


class World:
    """An application whose answers and rights are played."""

    def __init__(self, config: RequestHeaderConfig | None = CONFIG) -> None:
        self.is_allowed: bool | Exception = True
        self.is_ready = True
        self.reply: ApiReply | Exception = ApiReply(200, b'{"kind":"MetricValueList"}')
        self.reviews: list[dict[str, Any]] = []
        self.answered: list[DiscoveryRequest | MetricRequest] = []
        self.is_closed = False
        self.out = io.StringIO()
        self.metrics = Metrics(CollectorRegistry())
        self.app = MetricsApplication(
            MetricsService(
                header_config=lambda: config,
                authorizer=Authorizer(self.review),
                answer=self.answer,
                readiness=lambda: (self.is_ready, "played"),
                metrics=self.metrics,
                log=log.build_logger(stream=self.out, style="json"),
                close=self.close,
            )
        )

    def review(self, review: dict[str, Any]) -> AccessAnswer:
        self.reviews.append(review)
        if isinstance(self.is_allowed, Exception):
            raise self.is_allowed
        return AccessAnswer(self.is_allowed, "" if self.is_allowed else "no rule")

    def answer(self, request: DiscoveryRequest | MetricRequest) -> ApiReply:
        self.answered.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    def close(self) -> None:
        self.is_closed = True

    def ask(
        self,
        path: str,
        headers: Iterable[tuple[bytes, bytes]] = EVE,
        names: tuple[str, ...] | None = FRONT_PROXY,
        method: str = "GET",
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body."""
        return asyncio.run(self.ask_beside_others(path, headers, names, method))

    async def ask_beside_others(
        self,
        path: str,
        headers: Iterable[tuple[bytes, bytes]] = EVE,
        names: tuple[str, ...] | None = FRONT_PROXY,
        method: str = "GET",
    ) -> tuple[int, dict[str, str], bytes]:
        """The same on an event loop that is there already."""
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": list(headers),
            **({CLIENT_NAMES_KEY: names} if names is not None else {}),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            raise AssertionError("no body is read")

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        head, body = sent
        return head["status"], {name.decode(): value.decode() for name, value in head["headers"]}, body["body"]

    def status(self, *args: Any, **kwargs: Any) -> int:
        return self.ask(*args, **kwargs)[0]


def test_a_user_that_is_allowed_gets_the_answer() -> None:
    world = World()
    status, headers, body = world.ask(f"{VALUES}?labelSelector=app%3Dweb")
    assert (status, body) == (200, b'{"kind":"MetricValueList"}')
    assert headers["cache-control"] == "no-cache, private"
    assert "connection" not in headers
    [request] = world.answered
    assert isinstance(request, MetricRequest)
    assert (request.namespace, request.metric) == ("shop", "requests")
    assert world.reviews[0]["spec"]["user"] == "eve"


@pytest.mark.parametrize(
    ("headers", "names"),
    [(EVE, None), (EVE, ()), (EVE, ("other",)), ((), FRONT_PROXY), (((b"x-remote-user", b""),), FRONT_PROXY)],
)
def test_nobody_is_unauthorized_whatever_the_path(
    headers: tuple[tuple[bytes, bytes], ...], names: tuple[str, ...] | None
) -> None:
    world = World()
    for path in (VALUES, API, "/apis", "/nonsense"):
        assert world.status(path, headers, names) == 401
    assert world.reviews == []


def test_without_the_aggregation_layers_configuration_nobody_is_named() -> None:
    assert World(config=None).status(VALUES) == 401


def test_a_path_that_is_not_there_is_404_before_anybody_asks_for_rights() -> None:
    world = World()
    world.is_allowed = False
    assert world.status("/apis") == 404
    assert world.status(VALUES, method="POST") == 405
    assert world.reviews == []


def test_a_user_without_rights_is_refused_in_kubernetes_words() -> None:
    world = World()
    world.is_allowed = False
    status, _, body = world.ask(VALUES)
    document = json.loads(body)
    assert (status, document["reason"]) == (403, "Forbidden")
    assert document["message"] == (
        'pods.custom.metrics.k8s.io "*" is forbidden: User "eve" cannot get resource "pods/requests" in API group '
        '"custom.metrics.k8s.io" in the namespace "shop": no rule'
    )
    assert 'User "eve" cannot get path' in json.loads(world.ask(API)[2])["message"]
    assert world.answered == []


def test_nobody_gets_a_value_while_the_api_server_does_not_say_who_may() -> None:
    world = World()
    world.is_allowed = Unreachable("create a SubjectAccessReview: timed out")
    assert world.status(VALUES) == 500
    assert world.answered == []
    assert "access cannot be reviewed" in world.out.getvalue()


def test_a_bug_is_500_without_its_text() -> None:
    world = World()
    world.reply = KeyError("secret detail")
    status, _, body = world.ask(VALUES)
    assert status == 500
    assert b"secret" not in body
    assert "secret detail" in world.out.getvalue()


def test_too_many_waiting_requests_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "MAX_WAITING", 0)
    assert World().status(VALUES) == 429


@pytest.mark.parametrize("users", [1, 2, 40])
def test_a_user_waits_for_one_request_of_each_other_user_and_not_for_all_of_them(users: int) -> None:
    """Every authorization takes a while; other users have sent 200 requests for 200 metrics before."""
    world, order = World(), list[str]()

    def review(review: dict[str, Any]) -> AccessAnswer:
        order.append(review["spec"]["user"])
        time.sleep(0.002)
        return AccessAnswer(True)

    world.app._service.authorizer.ask = review

    async def run() -> None:
        paths = [(f"tenant-{n % users}", VALUES.replace("requests", f"metric-{n}")) for n in range(200)]
        sent = [*paths, ("hpa-controller", VALUES)]
        await asyncio.gather(*(send_as(world, user, path) for user, path in sent))

    asyncio.run(run())
    assert order.index("hpa-controller") <= users + 2 * asgi.THREADS


def crowded_world(monkeypatch: pytest.MonkeyPatch) -> tuple[World, threading.Event]:
    """A world in which four requests may wait, and none is answered before the event."""
    monkeypatch.setattr(asgi, "MAX_WAITING", 4)
    world, may_end = World(), threading.Event()
    world.app._service.authorizer.ask = lambda _: AccessAnswer(may_end.wait(10))
    return world, may_end


def send_as(world: World, user: str, path: str = VALUES) -> "asyncio.Task[tuple[int, dict[str, str], bytes]]":
    """Starts a request of this user; the result is its answer."""
    return asyncio.create_task(world.ask_beside_others(path, ((b"x-remote-user", user.encode()),)))


def test_a_request_of_another_user_takes_the_place_of_one_of_the_user_with_the_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, may_end = crowded_world(monkeypatch)

    async def run() -> tuple[list[int], int]:
        eves = [asyncio.create_task(world.ask_beside_others(VALUES)) for _ in range(asgi.THREADS + 4)]
        await asyncio.sleep(0)
        ours = send_as(world, "hpa-controller")
        await asyncio.sleep(0)
        may_end.set()
        return sorted([(await eve)[0] for eve in eves]), (await ours)[0]

    assert asyncio.run(run()) == ([200] * (asgi.THREADS + 3) + [429], 200)


def test_the_service_accounts_of_a_namespace_together_take_the_place_of_no_other_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenant can create any number of accounts, and each sends one request."""
    world, may_end = crowded_world(monkeypatch)

    async def run() -> tuple[int, int]:
        tenants = [send_as(world, f"system:serviceaccount:tenant:bot-{n}") for n in range(asgi.THREADS + 4)]
        await asyncio.sleep(0)
        ours = send_as(world, "system:serviceaccount:kube-system:horizontal-pod-autoscaler")
        await asyncio.sleep(0)
        may_end.set()
        return sum([(await tenant)[0] == 429 for tenant in tenants]), (await ours)[0]

    assert asyncio.run(run()) == (1, 200)


def test_probes_and_the_metrics_page_are_for_everybody() -> None:
    world = World()
    assert world.status("/healthz", (), None) == 200
    assert world.status("/readyz", (), None) == 200
    status, headers, body = world.ask("/metrics", (), None)
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    assert b"trimtab_metrics_api_rules" in body
    world.is_ready = False
    assert world.status("/readyz", (), None) == 503
    assert world.status("/healthz", (), None) == 200


def test_while_it_stops_it_is_not_ready_and_answers_on_connections_that_it_closes() -> None:
    world = World()
    world.app.drain()
    assert world.status("/readyz", (), None) == 503
    status, headers, _ = world.ask(VALUES)
    assert (status, headers["connection"]) == (200, "close")


@pytest.mark.parametrize("header", [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")])
def test_a_body_is_never_read_and_its_connection_is_closed(header: tuple[bytes, bytes]) -> None:
    status, headers, _ = World().ask(VALUES, (*EVE, header))
    assert (status, headers["connection"]) == (200, "close")


def test_requests_are_counted_by_status() -> None:
    world = World()
    world.ask(VALUES)
    world.ask("/apis")
    page = world.ask("/metrics", (), None)[2].decode()
    assert 'trimtab_metrics_api_requests_total{status="200"} 1.0' in page
    assert 'trimtab_metrics_api_requests_total{status="404"} 1.0' in page


def test_the_end_of_the_server_closes_the_replica() -> None:
    world, messages, sent = World(), [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    asyncio.run(world.app({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert world.is_closed


def test_clients_that_ask_for_the_metrics_page_do_not_delay_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any client in the pod network may ask for the page, and as often as it likes."""
    world, may_end = World(), threading.Event()
    monkeypatch.setattr(asgi, "render_metrics", lambda registry: b"page" if may_end.wait(10) else b"late")

    async def run() -> tuple[int, list[int]]:
        request = [world.ask_beside_others("/metrics") for _ in range(asgi.MAX_WAITING_PAGES + 3)]
        pages = [asyncio.create_task(one) for one in request]
        await asyncio.sleep(0)
        status, *_ = await asyncio.wait_for(world.ask_beside_others(VALUES), 5)
        may_end.set()
        return status, sorted([(await page)[0] for page in pages])

    status, pages = asyncio.run(run())
    assert (status, pages) == (200, [200] * asgi.MAX_WAITING_PAGES + [503] * 3)
