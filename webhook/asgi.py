"""The ASGI application: probes and pod reviews on the event loop, checks of policies and pools on a thread, the rest
by Flask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from a2wsgi import WSGIMiddleware

from trimtab.cluster.fair_share import FairSlots
from trimtab.runtime import connection_limits
from trimtab.runtime.body_budget import BodyBudget, TooManyBodies
from trimtab.runtime.settings import Settings
from webhook import request_body
from webhook.app import create_app
from webhook.handlers import PROBES, HttpReply, Service, answer_probe, answer_review, attempt_review, problem_reply
from webhook.request_body import MAX_BYTES_BY_PATH, MUTATE, VALIDATE

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_CLOSE = (b"connection", b"close")
_TIMEOUT_REPLY = problem_reply(408, "the body did not arrive in time", "a complete body within the timeout")
_FORBIDDEN_REPLY = problem_reply(
    403, "only the API server may send reviews", "a client certificate of TRIMTAB_WEBHOOK_CLIENT_CA_FILE"
)
_TOO_MANY_BODIES_REPLY = problem_reply(503, "too many large bodies are in progress", "the same request a little later")
_TOO_MANY_CHECKS_REPLY = problem_reply(503, "too many checks are in progress", "the same request a little later")
_TOO_MANY_PAGES_REPLY = problem_reply(
    503, "too many requests for pages are in progress", "the same request a little later"
)
_PUBLIC_ROUTES = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")})
"""Routes without a client certificate: neither a kubelet's probe nor a scraper presents one."""
_THREADS = 4
"""Threads for scrapes and rejections. No client can block one, because Flask reads no body."""

MAX_CHECKS = 16
"""The maximum number of checks of policies and pools in progress: one runs, the others wait. Checks are CPU-bound, so
running several at once would only take the interpreter from the event loop more often."""
MAX_PAGES = 16
"""The maximum number of requests for pages, such as the metrics, in progress. Every client in the pod network may send
them, and they must not fill the memory."""

OWNER_WAIT_SECONDS = 0.25
"""Time to wait for the watch event of a pod's owner. A controller creates the first pod as soon as its own watch has
delivered the owner, and no other pod before that one is admitted (`slowStartBatch` in pkg/controller/replicaset,
1.36)."""
_OWNER_CHECKS = 25
MAX_WAITING = 64
"""The maximum number of reviews that wait for that at once. One more review takes the place of one of the namespace
with the most, so that a tenant who names owners that do not exist takes the wait from no other namespace."""


def build_application(service: Service, settings: Settings) -> WebhookASGI:
    """Returns the application: open to every client, or only to clients that the settings' authorities signed."""
    return (
        WebhookASGI(service, connection_limits.client_test(settings.client_common_name))
        if settings.client_ca_file
        else WebhookASGI(service)
    )


class WebhookASGI:
    """The ASGI application for a `Service`.

    `POST /mutate` bypasses Flask, whose overhead exceeds the cost of the decision; a contract test compares the bytes
    of both.
    """

    def __init__(self, service: Service, knows: Callable[[Scope], bool] = lambda _scope: True) -> None:
        """knows: returns whether the client may send reviews; other clients only get the public routes."""
        self._service, self._is_known = service, knows
        self.room = BodyBudget()
        """The memory for bodies of unfinished requests; shared with gunicorn's parser."""
        self._checks = ThreadPoolExecutor(1, "check")
        self._checks_under_way = self._pages_under_way = 0
        self._owner_waits = FairSlots(MAX_WAITING)
        self._flask = WSGIMiddleware(create_app(service), workers=_THREADS)  # type: ignore[arg-type]

    def drain(self) -> None:
        """Reports "not ready" from now on, and closes each connection with its next response."""
        self._service.stop.request_stop()

    async def __call__(self, scope: Scope, receive: request_body.Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._handle_http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._handle_lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    def answer_at_once(self, scope: Scope, body: bytes) -> HttpReply | None:
        """Returns the reply to the review of a pod whose whole body has arrived, as nearly every one does; None if it
        is served as any other request: also if it waits for an owner, or is the last one of its connection."""
        if scope["path"] != MUTATE or scope["method"] != "POST" or len(body) > MAX_BYTES_BY_PATH[MUTATE]:
            return None
        if self._service.stop.is_requested or not self._is_known(scope):
            return None
        reply = attempt_review(self._service, _content_type(scope), body)
        return reply if isinstance(reply, HttpReply) else None

    async def _handle_http(self, scope: Scope, receive: request_body.Receive, send: Send) -> None:
        if not self._is_known(scope) and (scope["method"], scope["path"]) not in _PUBLIC_ROUTES:
            await self._reject_client(scope, send)
            return
        method, path = scope["method"], scope["path"]
        if method == "POST" and path in MAX_BYTES_BY_PATH:
            await self._handle_review(scope, receive, send)
        elif method == "GET" and path in PROBES:
            # Answered on the event loop: behind other work a probe would time out, and the kubelet would kill the pod.
            await _send_reply(send, answer_probe(self._service, path), close=self._closes_connection(scope))
        else:
            await self._handle_page(scope, send)

    async def _handle_page(self, scope: Scope, send: Send) -> None:
        if self._pages_under_way >= MAX_PAGES:
            await _send_reply(send, _TOO_MANY_PAGES_REPLY, close=self._closes_connection(scope))
            return
        self._pages_under_way += 1
        try:
            # No page needs a body: none is read, and the connection is closed if one was announced.
            headers = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"transfer-encoding")]
            await self._flask({**scope, "headers": headers}, _empty_body, self._closing_send(scope, send))  # type: ignore[arg-type]
        finally:
            self._pages_under_way -= 1

    async def _handle_review(self, scope: Scope, receive: request_body.Receive, send: Send) -> None:
        path = scope["path"]
        seconds, address = request_body.body_timeout(scope["query_string"]), (scope.get("client") or ("",))[0]
        try:
            body = await request_body.read_body(receive, seconds, self.room, address, MAX_BYTES_BY_PATH[path])
        except TooManyBodies:
            await _send_reply(send, _TOO_MANY_BODIES_REPLY, close=True)
            return
        except (request_body.ClientDisconnected, TimeoutError):
            # Ignore write errors for disconnected clients; answer slow ones with 408 instead of gunicorn's 500.
            with suppress(OSError):
                await _send_reply(send, _TIMEOUT_REPLY, close=True)
            return
        if path == MUTATE:
            reply = await self._answer_pod_review(_content_type(scope), body)
        else:
            reply = await self._answer_check(_content_type(scope), body)
        await _send_reply(send, reply, close=self._service.stop.is_requested)

    async def _answer_pod_review(self, content_type: str, body: bytes | None) -> HttpReply:
        """Returns the reply to a review of a pod. For the first pod of a new owner it may wait until a watch has
        delivered the owner; if too many reviews wait, or that takes too long, the pod is decided without the owner."""
        reply = attempt_review(self._service, content_type, body)
        if isinstance(reply, HttpReply):
            return reply
        slot = self._owner_waits.take_slot(reply.namespace)
        if slot is not None:
            try:
                for _ in range(_OWNER_CHECKS):
                    if slot.is_lost or reply.is_told():
                        break
                    await asyncio.sleep(OWNER_WAIT_SECONDS / _OWNER_CHECKS)
            finally:
                self._owner_waits.release_slot(slot)
        return answer_review(self._service, MUTATE, content_type, body)

    async def _answer_check(self, content_type: str, body: bytes | None) -> HttpReply:
        """Returns the reply to a review of a policy or a pool, from the thread for checks; 503 if too many checks
        wait."""
        if self._checks_under_way >= MAX_CHECKS:
            self._service.observe(VALIDATE, _TOO_MANY_CHECKS_REPLY.status, 0.0)
            return _TOO_MANY_CHECKS_REPLY
        loop = asyncio.get_running_loop()
        self._checks_under_way += 1
        check = self._checks.submit(answer_review, self._service, VALIDATE, content_type, body)
        # Counted until the thread has finished, even if the client has disconnected: it occupies the thread until then.
        check.add_done_callback(lambda _: self._finish_check(loop))
        return await asyncio.wrap_future(check)

    def _finish_check(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed when the process ends
            loop.call_soon_threadsafe(self._decrement_checks)

    def _decrement_checks(self) -> None:
        self._checks_under_way -= 1

    def _closes_connection(self, scope: Scope) -> bool:
        """Returns whether the connection ends with this response: when the process stops, or if a body is left
        unread."""
        return self._service.stop.is_requested or _announces_body(scope)

    async def _reject_client(self, scope: Scope, send: Send) -> None:
        # Only review paths are counted: any other path would add a time series, chosen by the client.
        if scope["path"] in (MUTATE, VALIDATE):
            self._service.observe(scope["path"], _FORBIDDEN_REPLY.status, 0.0)
        await _send_reply(send, _FORBIDDEN_REPLY, close=True)

    def _closing_send(self, scope: Scope, send: Send) -> Send:
        async def send_and_close(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and self._closes_connection(scope):
                message = {**message, "headers": [*message["headers"], _CLOSE]}
            await send(message)

        return send_and_close

    async def _handle_lifespan(self, receive: request_body.Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._checks.shutdown(wait=False, cancel_futures=True)
        self._service.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _send_reply(send: Send, reply: HttpReply, *, close: bool) -> None:
    headers = [(b"content-type", reply.content_type.encode("latin-1")), (b"content-length", b"%d" % len(reply.body))]
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


async def _empty_body() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}
