"""The direct route: slow bodies, clients that leave, and the last seconds."""

import asyncio
import threading

import pytest

from tests.webhook.asgi_client import ask, exchange
from tests.webhook.worlds import review, service
from webhook.asgi import MAX_CHECKS, MAX_PAGES, MAX_WAITING, OWNER_WAIT_SECONDS, WebhookASGI
from webhook.handlers import DeferredReply, HttpReply
from webhook.request_body import body_timeout


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        (b"", 10),
        (b"timeout=2s", 2),
        (b"timeout=500ms", 0.5),
        (b"timeout=1m30s", 30),
        (b"timeout=30s&x=1", 30),
        (b"timeout=0s", 10),
        (b"timeout=-1s", 10),
        (b"timeout=soon", 10),
        (b"timeout=nan", 10),
        (b"timeout=\xff", 10),
    ],
)
def test_a_caller_waits_as_long_as_it_says(query: bytes, seconds: float) -> None:
    assert body_timeout(query) == seconds


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_a_body_that_never_ends_is_refused_in_time(path: str) -> None:
    heard = ask(WebhookASGI(service()), "POST", path, chunks=(b"{",), query=b"timeout=50ms", silent=True)
    assert heard is not None
    assert (heard.status, heard.headers["connection"]) == (408, "close")


PAGES = [("GET", "/healthz", 200), ("GET", "/readyz", 200), ("GET", "/metrics", 200), ("POST", "/nowhere", 404)]


@pytest.mark.parametrize(("method", "path", "status"), [*PAGES, ("PUT", "/mutate", 405)])
def test_no_body_is_read_for_a_page_and_the_connection_ends_where_one_was_announced(
    method: str, path: str, status: int
) -> None:
    heard = ask(WebhookASGI(service()), method, path, chunks=(b"{",), silent=True)
    assert heard is not None
    assert (heard.status, heard.headers["connection"]) == (status, "close")


@pytest.mark.parametrize(("method", "path", "status"), PAGES)
def test_a_page_without_a_body_keeps_its_connection(method: str, path: str, status: int) -> None:
    heard = ask(WebhookASGI(service()), method, path)
    assert heard is not None
    assert (heard.status, "connection" in heard.headers) == (status, False)


def test_the_first_pod_of_an_owner_waits_for_the_watch_that_tells_of_it() -> None:
    looks = iter([False, False, True])
    entry = WebhookASGI(service(attempt=lambda _: DeferredReply(lambda: next(looks), "shop")))
    heard = ask(entry, "POST", "/mutate", chunks=(review(),))
    assert heard is not None
    assert (heard.status, next(looks, None)) == (200, None)


def test_no_pod_waits_longer_than_a_moment_nor_with_too_many_others() -> None:
    looks: list[int] = []
    entry = WebhookASGI(service(attempt=lambda _: DeferredReply(lambda: bool(looks.append(1)), "shop")))

    async def world() -> tuple[float, list[int]]:
        began = asyncio.get_running_loop().time()
        exchanges = [exchange(entry, "POST", "/mutate") for _ in range(2 * MAX_WAITING)]
        statuses = await asyncio.gather(*exchanges)
        return asyncio.get_running_loop().time() - began, statuses

    seconds, statuses = asyncio.run(world())
    assert seconds >= OWNER_WAIT_SECONDS
    assert statuses == [400] * 2 * MAX_WAITING  # decided at last: no body is no review
    assert len(looks) == MAX_WAITING * 25


@pytest.mark.parametrize("namespaces", [1, 2, 40])
def test_reviews_of_other_namespaces_that_wait_take_no_wait_from_this_one(namespaces: int) -> None:
    """The watch delivers the owner after a tenth of a second; tenants name 300 owners that do not exist."""
    began, decided_early = [0.0], []

    async def world() -> None:
        loop = asyncio.get_running_loop()

        def attempt(body: bytes) -> DeferredReply:
            is_ours = body == b"shop"
            return DeferredReply(lambda: is_ours and loop.time() - began[0] > 0.1, body.decode())

        def mutate(body: bytes) -> HttpReply:
            decided_early.extend([body] * (body == b"shop" and loop.time() - began[0] < 0.1))
            return HttpReply(200, b"{}")

        entry, began[0] = WebhookASGI(service(attempt=attempt, mutate=mutate)), loop.time()
        await asyncio.gather(
            *(
                exchange(entry, "POST", "/mutate", body)
                for body in (*(f"tenant-{n % namespaces}".encode() for n in range(300)), b"shop")
            )
        )

    asyncio.run(world())
    assert decided_early == []


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_is_answered_while_every_check_that_may_wait_does(path: str) -> None:
    hold = threading.Event()
    entry = WebhookASGI(service(validate=lambda _: HttpReply(200, b"{}") if hold.wait(30) else HttpReply(500, b"{}")))

    async def world() -> tuple[int, int, list[int]]:
        checks = [asyncio.create_task(exchange(entry, "POST", "/validate")) for _ in range(MAX_CHECKS)]
        await asyncio.sleep(0)
        one_more = await exchange(entry, "POST", "/validate")
        state = await asyncio.wait_for(exchange(entry, "GET", path), 10)
        hold.set()
        return state, one_more, [await check for check in checks]

    assert asyncio.run(world()) == (200, 503, [200] * MAX_CHECKS)


def test_too_many_requests_for_pages_are_refused_and_delay_no_review() -> None:
    hold = threading.Event()
    entry = WebhookASGI(service(metrics=lambda: b"page" if hold.wait(30) else b""))

    async def world() -> tuple[int, int, list[int]]:
        pages = [asyncio.create_task(exchange(entry, "GET", "/metrics")) for _ in range(MAX_PAGES)]
        await asyncio.sleep(0)
        one_more = await exchange(entry, "GET", "/metrics")
        admitted = await asyncio.wait_for(exchange(entry, "POST", "/mutate", review()), 10)
        hold.set()
        return one_more, admitted, [await page for page in pages]

    assert asyncio.run(world()) == (503, 200, [200] * MAX_PAGES)


def test_a_check_whose_client_has_left_counts_until_it_is_over() -> None:
    hold = threading.Event()
    entry = WebhookASGI(service(validate=lambda _: HttpReply(200, b"{}") if hold.wait(30) else HttpReply(500, b"{}")))

    async def world() -> tuple[int, int]:
        checks = [asyncio.create_task(exchange(entry, "POST", "/validate")) for _ in range(MAX_CHECKS)]
        await asyncio.sleep(0.05)
        for check in checks:
            check.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
        await asyncio.sleep(0)
        running = entry._checks_under_way
        hold.set()
        return running, await exchange(entry, "POST", "/validate")

    assert asyncio.run(world()) == (1, 200)


def test_readiness_that_fails_inside_is_a_500_that_is_told() -> None:
    def broken() -> tuple[bool, str]:
        raise RuntimeError("secret detail")

    failures: list[str] = []
    heard = ask(WebhookASGI(service(ready=broken, failed=lambda path, _: failures.append(path))), "GET", "/readyz")
    assert heard is not None
    assert (heard.status, failures, b"secret" in heard.body) == (500, ["/readyz"], False)


def test_a_client_that_left_is_no_error_and_no_review() -> None:
    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_: object) -> None:
        raise OSError("nobody is there")

    scope = {"type": "http", "method": "POST", "path": "/mutate", "query_string": b"", "headers": []}
    asyncio.run(WebhookASGI(service())(scope, gone, send))


@pytest.mark.parametrize(("method", "path"), [("POST", "/mutate"), ("POST", "/validate"), ("GET", "/healthz")])
def test_a_draining_process_answers_and_ends_the_connection(method: str, path: str) -> None:
    entry = WebhookASGI(service())
    entry.drain()
    heard = ask(entry, method, path, chunks=(review(),))
    assert heard is not None
    assert (heard.status, heard.headers["connection"]) == (200, "close")


def test_an_endless_body_is_not_read_to_its_end() -> None:
    chunk = b" " * (1 << 20)
    heard = ask(WebhookASGI(service()), "POST", "/mutate", chunks=(chunk,) * 1000)
    assert heard is not None
    assert heard.status == 413


def test_the_service_is_closed_when_the_process_ends() -> None:
    closed: list[bool] = []
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return next(messages)

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    entry = WebhookASGI(service(close=lambda: closed.append(True)))
    asyncio.run(entry({"type": "lifespan"}, receive, send))
    assert (closed, sent) == ([True], ["lifespan.startup.complete", "lifespan.shutdown.complete"])
