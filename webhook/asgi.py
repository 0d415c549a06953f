"""The ASGI entry: probes and reviews of pods on the event loop, checks of documents on a thread, the rest by Flask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from a2wsgi import WSGIMiddleware

from trimtab.runtime import connection_limits
from trimtab.runtime.body_budget import BodyBudget, TooManyBodies
from trimtab.runtime.settings import Settings
from webhook import request_body
from webhook.app import create_app
from webhook.handlers import MAX_BYTES, MUTATE, PROBES, VALIDATE, HttpReply, Service, answer, attempt, probe, problem

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_CLOSE = (b"connection", b"close")
_LATE = problem(408, "the body did not arrive in time", "a whole body within the timeout")
_STRANGER = problem(403, "only the API server may ask", "a client certificate of TRIMTAB_WEBHOOK_CLIENT_CA_FILE")
_FULL = problem(503, "too many large bodies are under way", "the same body a little later")
_BUSY = problem(503, "too many checks are under way", "the same review a little later")
_OPEN = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")})
"""For everybody: a kubelet's probe shows no certificate, nor does a scraper."""
_THREADS = 4
"""For scrapes and refusals. No client can hold one: Flask sees no body."""

MAX_CHECKS = 16
"""Checks of policies and pools under way: one runs, the others wait. Checks compute, so that several at once would only
take the interpreter from the event loop several times as often."""

OWNER_WAIT_SECONDS = 0.25
"""For the watch that tells of a pod's owner. A controller makes the first pod as soon as its own watch has told it of
the owner, and no other before that pod is answered (`slowStartBatch` in pkg/controller/replicaset, 1.36)."""
_LOOKS = 25
MAX_WAITING = 64
"""Reviews that wait for that at once: who names owners that never come holds no more than these."""


def entry(service: Service, settings: Settings) -> WebhookASGI:
    """For everybody who reaches the port, or only for those the settings' authorities vouch for."""
    return (
        WebhookASGI(service, connection_limits.known(settings.client_common_name))
        if settings.client_ca_file
        else WebhookASGI(service)
    )


class WebhookASGI:
    """An ASGI application over a `Service`.

    `POST /mutate` skips Flask, whose machinery costs more than the decision; a contract test holds
    both to the same bytes.
    """

    def __init__(self, service: Service, knows: Callable[[Scope], bool] = lambda _scope: True) -> None:
        """Who is not known sees the pages and nothing else."""
        self._service, self._knows = service, knows
        self.room = BodyBudget()
        """What is held for unfinished requests; gunicorn's parser draws on it, too."""
        self._checks = ThreadPoolExecutor(1, "check")
        self._checks_under_way = 0
        self._waiting = 0
        self._flask = WSGIMiddleware(create_app(service), workers=_THREADS)  # type: ignore[arg-type]

    def drain(self) -> None:
        """Say "not ready" from now on, and end each connection with its next answer."""
        self._service.stop.begin()

    async def __call__(self, scope: Scope, receive: request_body.Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: request_body.Receive, send: Send) -> None:
        if not self._knows(scope) and (scope["method"], scope["path"]) not in _OPEN:
            await self._turn_away(scope, send)
            return
        method, path = scope["method"], scope["path"]
        if method == "POST" and path in MAX_BYTES:
            await self._review(scope, receive, send)
        elif method == "GET" and path in PROBES:
            # Here and now: behind anything else a probe would fail when there is work, and the kubelet end the process.
            await _write(send, probe(self._service, path), close=self._parts(scope))
        else:
            # No page needs a body: none is read, and the connection ends where one was announced.
            await self._flask(_without_body(scope), _nothing, self._parting(scope, send))  # type: ignore[arg-type]

    async def _review(self, scope: Scope, receive: request_body.Receive, send: Send) -> None:
        path = scope["path"]
        seconds, address = request_body.allowed(scope["query_string"]), (scope.get("client") or ("",))[0]
        try:
            whole = await request_body.read(receive, seconds, self.room, address, MAX_BYTES[path])
        except TooManyBodies:
            await _write(send, _FULL, close=True)
            return
        except (request_body.ClientDisconnected, TimeoutError):
            # Whoever left hears nothing of it; whoever is silent must not be given gunicorn's 500.
            with suppress(OSError):
                await _write(send, _LATE, close=True)
            return
        if path == MUTATE:
            reply = await self._mutated(_content_type(scope), whole)
        else:
            reply = await self._checked(_content_type(scope), whole)
        await _write(send, reply, close=self._service.stop.begun)

    async def _mutated(self, content_type: str, whole: bytes | None) -> HttpReply:
        """The reply to a review of a pod. Of the first pod of an owner that was made this moment it may wait for the
        watch that tells of it; where too many wait, or it takes too long, it is decided without."""
        reply = attempt(self._service, content_type, whole)
        if isinstance(reply, HttpReply):
            return reply
        if self._waiting < MAX_WAITING:
            self._waiting += 1
            try:
                for _ in range(_LOOKS):
                    if reply.is_told():
                        break
                    await asyncio.sleep(OWNER_WAIT_SECONDS / _LOOKS)
            finally:
                self._waiting -= 1
        return answer(self._service, MUTATE, content_type, whole)

    async def _checked(self, content_type: str, whole: bytes | None) -> HttpReply:
        """The reply to a review of a policy or a pool, from the thread for checks; 503 where too many wait for it."""
        if self._checks_under_way >= MAX_CHECKS:
            self._service.observe(VALIDATE, _BUSY.status, 0.0)
            return _BUSY
        loop = asyncio.get_running_loop()
        self._checks_under_way += 1
        check = self._checks.submit(answer, self._service, VALIDATE, content_type, whole)
        # Counted until the thread is done with it, also where its client has left.
        check.add_done_callback(lambda _: self._over(loop))
        return await asyncio.wrap_future(check)

    def _over(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # The loop may be closed: the process ends, and nobody counts any more.
            loop.call_soon_threadsafe(self._count_down)

    def _count_down(self) -> None:
        self._checks_under_way -= 1

    def _parts(self, scope: Scope) -> bool:
        """Does the connection end with this answer? It does when the process stops, and where a body is left unread."""
        return self._service.stop.begun or _announces_body(scope)

    async def _turn_away(self, scope: Scope, send: Send) -> None:
        # Counted where it is a review's path: each other word would be one more series, and kept for ever.
        if scope["path"] in (MUTATE, VALIDATE):
            self._service.observe(scope["path"], _STRANGER.status, 0.0)
        await _write(send, _STRANGER, close=True)

    def _parting(self, scope: Scope, send: Send) -> Send:
        async def parting(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and self._parts(scope):
                message = {**message, "headers": [*message["headers"], _CLOSE]}
            await send(message)

        return parting

    async def _lifespan(self, receive: request_body.Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._checks.shutdown(wait=False, cancel_futures=True)
        self._service.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _write(send: Send, reply: HttpReply, *, close: bool) -> None:
    headers = [
        (b"content-type", reply.content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(reply.body)),
    ]
    if close:
        headers.append(_CLOSE)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _content_type(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return str(value, "latin-1")
    return ""


def _announces_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


def _without_body(scope: Scope) -> Scope:
    headers = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"transfer-encoding")]
    return {**scope, "headers": headers}


async def _nothing() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}
