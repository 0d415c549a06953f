"""The direct route: slow bodies, clients that leave, and the last seconds."""

import asyncio

import pytest

from tests.webhook.asgi_client import ask
from tests.webhook.worlds import review, service
from webhook.asgi import Entry
from webhook.body import allowed


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
    assert allowed(query) == seconds


@pytest.mark.parametrize("path", ["/mutate", "/validate", "/nowhere"])
def test_a_body_that_never_ends_is_refused_in_time(path: str) -> None:
    heard = ask(Entry(service()), "POST", path, chunks=(b"{",), query=b"timeout=50ms", silent=True)
    assert heard is not None
    assert (heard.status, heard.headers["connection"]) == (408, "close")


def test_a_client_that_left_is_no_error_and_no_review() -> None:
    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(_: object) -> None:
        raise OSError("nobody is there")

    scope = {"type": "http", "method": "POST", "path": "/mutate", "query_string": b"", "headers": []}
    asyncio.run(Entry(service())(scope, gone, send))


@pytest.mark.parametrize(("method", "path"), [("POST", "/mutate"), ("POST", "/validate"), ("GET", "/healthz")])
def test_a_draining_process_answers_and_ends_the_connection(method: str, path: str) -> None:
    entry = Entry(service())
    entry.drain()
    heard = ask(entry, method, path, chunks=(review(),))
    assert heard is not None
    assert (heard.status, heard.headers["connection"]) == (200, "close")


def test_an_endless_body_is_not_read_to_its_end() -> None:
    chunk = b" " * (1 << 20)
    heard = ask(Entry(service()), "POST", "/mutate", chunks=(chunk,) * 1000)
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

    entry = Entry(service(close=lambda: closed.append(True)))
    asyncio.run(entry({"type": "lifespan"}, receive, send))
    assert (closed, sent) == ([True], ["lifespan.startup.complete", "lifespan.shutdown.complete"])
