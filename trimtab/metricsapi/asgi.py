"""The ASGI application: probes and the metrics page for any client, the API for users whom an API server names.

Requests to the API are handled in the same order as in Kubernetes' own servers: which user sends it (401), what it
requests (404), whether the user may do that (403), the response. Responses come from memory. They are computed in
threads, because authorization may have to wait for the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from trimtab.cluster.fair_share import FairQueue
from trimtab.kube.errors import KubeFault
from trimtab.metricsapi.api_request import GROUP, DiscoveryRequest, InvalidRequest, MetricRequest, read_request
from trimtab.metricsapi.authorization import Authorizer
from trimtab.metricsapi.documents import JSON, ApiReply, render_refusal, render_status
from trimtab.metricsapi.metrics import Metrics
from trimtab.metricsapi.request_header import RemoteUser, RequestHeaderConfig, authenticate_user
from trimtab.runtime.clock import elapsed_seconds
from trimtab.runtime.connection_limits import CLIENT_NAMES_KEY
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.metrics import CONTENT_TYPE, render_metrics

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

THREADS = 8
MAX_WAITING = 256
"""The maximum number of requests that wait for a thread. While an API server does not respond, they must not fill the
memory. Users take turns, and all ServiceAccounts of a namespace are one, so that the requests of a tenant do not delay
those of the HPA controller."""
MAX_WAITING_PAGES = 16
"""The maximum number of requests for the metrics page that wait for their one thread. Every client in the pod network
may request it, and that must not delay the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsService:
    """The functions behind the routes. `process.build_service` provides the real ones; tests provide their own."""

    header_config: Callable[[], RequestHeaderConfig | None]
    authorizer: Authorizer
    answer: Callable[[DiscoveryRequest | MetricRequest], ApiReply]
    readiness: Callable[[], tuple[bool, str]]
    metrics: Metrics
    log: Logger
    close: Callable[[], None] = lambda: None
    stop: GracefulShutdown = field(default_factory=GracefulShutdown)


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingRequest:
    """A request that waits for a thread."""

    action: Callable[[], ApiReply]
    reply: asyncio.Future[ApiReply]


class MetricsApplication:
    """The ASGI application that uses the functions of a `MetricsService`."""

    def __init__(self, service: MetricsService) -> None:
        self._service = service
        self._threads = ThreadPoolExecutor(THREADS, "answer")
        self._page_thread = ThreadPoolExecutor(1, "page")
        self._waiting_pages = self._busy_threads = 0
        self._waiting = FairQueue[_WaitingRequest](MAX_WAITING)

    def drain(self) -> None:
        """Reports "not ready" from now on, and closes each connection after its next response."""
        self._service.stop.request_stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._handle_http(scope, send)
        elif scope["type"] == "lifespan":
            await self._handle_lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _handle_http(self, scope: Scope, send: Send) -> None:
        path, started = scope["path"], elapsed_seconds()
        content_type = JSON
        if path == "/healthz":
            reply = ApiReply(200, b'{"status":"ok"}')
        elif path == "/readyz":
            is_ready, why = (False, "stopping") if self._service.stop.is_requested else self._service.readiness()
            reply = ApiReply(200 if is_ready else 503, msgspec.json.encode({"ready": is_ready, "reason": why}))
        elif path == "/metrics":
            reply, content_type = await self._render_page()
        else:
            reply = await self._answer_api(scope)
            self._service.metrics.requests.labels(str(reply.status)).inc()
            self._service.metrics.seconds.observe(elapsed_seconds() - started)
        # No request needs a body: none is read, and a connection on which one was announced is closed.
        is_closing = self._service.stop.is_requested or _announces_body(scope)
        await _send_reply(send, reply, content_type, close=is_closing)

    async def _render_page(self) -> tuple[ApiReply, str]:
        """Returns the metrics page and its content type, or a response with 503 if too many clients wait for it."""
        if self._waiting_pages >= MAX_WAITING_PAGES:
            return render_status(503, "ServiceUnavailable", "too many requests for the metrics page are waiting"), JSON
        self._waiting_pages += 1
        try:
            registry = self._service.metrics.registry
            page = await asyncio.get_running_loop().run_in_executor(self._page_thread, lambda: render_metrics(registry))
        finally:
            self._waiting_pages -= 1
        return ApiReply(200, page), CONTENT_TYPE

    async def _answer_api(self, scope: Scope) -> ApiReply:
        service = self._service
        config = service.header_config()
        user = authenticate_user(config, scope.get(CLIENT_NAMES_KEY), scope["headers"]) if config is not None else None
        if user is None:
            return render_status(401, "Unauthorized", "Unauthorized")
        request = read_request(scope["method"], scope.get("raw_path") or scope["path"].encode(), scope["query_string"])
        if isinstance(request, InvalidRequest):
            return render_refusal(request)
        waiting = _WaitingRequest(
            lambda: self._authorize_and_answer(user, request), asyncio.get_running_loop().create_future()
        )
        refused = self._waiting.put_item(user.sharer, waiting)
        if refused is not None and not refused.reply.done():
            refused.reply.set_result(render_status(429, "TooManyRequests", "too many requests are waiting"))
        self._start_waiting()
        return await waiting.reply

    def _start_waiting(self) -> None:
        """Gives the free threads to waiting requests. The client of one that is done already has left."""
        loop = asyncio.get_running_loop()
        while self._busy_threads < THREADS and (waiting := self._waiting.take_item()) is not None:
            if not waiting.reply.done():
                self._busy_threads += 1
                running = loop.run_in_executor(self._threads, waiting.action)
                running.add_done_callback(partial(self._finish_request, waiting.reply))

    def _finish_request(self, reply: asyncio.Future[ApiReply], running: asyncio.Future[ApiReply]) -> None:
        self._busy_threads -= 1
        if not reply.done():
            if running.cancelled():
                reply.cancel()
            else:
                reply.set_result(running.result())
        self._start_waiting()

    def _authorize_and_answer(self, user: RemoteUser, request: DiscoveryRequest | MetricRequest) -> ApiReply:
        try:
            access = self._service.authorizer.authorize(user, request)
            if not access.is_allowed:
                return render_status(403, "Forbidden", _refusal_text(user, request, access.reason))
            return self._service.answer(request)
        except KubeFault as error:
            # Nobody gets a value while nobody can say who may.
            self._service.log.warning("access cannot be reviewed", why=str(error))
            return render_status(500, "InternalError", "Internal error occurred: access cannot be reviewed")
        except Exception as error:
            self._service.log.error("request failed", error=f"{type(error).__name__}: {error}", exc_info=True)
            return render_status(500, "InternalError", "Internal error occurred")

    async def _handle_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                self._service.stop.request_stop()
                self._service.close()
                while (waiting := self._waiting.take_item()) is not None:
                    waiting.reply.cancel()
                self._threads.shutdown(wait=False, cancel_futures=True)
                self._page_thread.shutdown(wait=False, cancel_futures=True)
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return


def _refusal_text(user: RemoteUser, request: DiscoveryRequest | MetricRequest, reason: str) -> str:
    """Returns the message for a request that is not allowed, in the words of Kubernetes' own servers."""
    more = f": {reason}" if reason else ""
    if isinstance(request, DiscoveryRequest):
        return f'forbidden: User "{user.name}" cannot get path "{request.path}"{more}'
    what = f'resource "pods/{request.metric}" in API group "{GROUP}" in the namespace "{request.namespace}"'
    return f'pods.{GROUP} "{request.name}" is forbidden: User "{user.name}" cannot get {what}{more}'


def _announces_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


async def _send_reply(send: Send, reply: ApiReply, content_type: str, *, close: bool) -> None:
    headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(reply.body)).encode())]
    # Answers depend on the user: nothing between us and the API server may keep one.
    headers.append((b"cache-control", b"no-cache, private"))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
