"""The ASGI entry: reviews of pods straight to the deciding function, everything else to Flask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from a2wsgi import WSGIMiddleware

from trimtab.runtime import clients
from trimtab.runtime.settings import Settings
from webhook import body
from webhook.app import create_app
from webhook.edge import MAX_BODY, MUTATE, VALIDATE, answer
from webhook.reply import Reply, problem
from webhook.service import Service

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_CLOSE = (b"connection", b"close")
_LATE = problem(408, "the body did not arrive in time", "a whole body within the timeout")
_STRANGER = problem(403, "only the API server may ask", "a client certificate of TRIMTAB_CLIENT_CA")
_FULL = problem(503, "too many large bodies are under way", "the same body a little later")
_OPEN = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")})
"""For everybody: a kubelet's probe shows no certificate, nor does a scraper."""
_THREADS = 8
"""For probes, scrapes and policy checks. No client can hold one: Flask sees only complete bodies."""


def entry(service: Service, settings: Settings) -> Entry:
    """For everybody who reaches the port, or only for those the settings' authorities vouch for."""
    return Entry(service, clients.known(settings.client_name)) if settings.client_ca else Entry(service)


class Entry:
    """An ASGI application over a `Service`.

    `POST /mutate` skips Flask, whose machinery costs more than the decision; a contract test holds
    both to the same bytes.
    """

    def __init__(self, service: Service, knows: Callable[[Scope], bool] = lambda _scope: True) -> None:
        """Who is not known sees the pages and nothing else."""
        self._service, self._knows = service, knows
        self._room = body.Room()
        self._flask = WSGIMiddleware(create_app(service), workers=_THREADS)  # type: ignore[arg-type]

    def drain(self) -> None:
        """Say "not ready" from now on, and end each connection with its next answer."""
        self._service.stop.begin()

    async def __call__(self, scope: Scope, receive: body.Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: body.Receive, send: Send) -> None:
        if not self._knows(scope) and (scope["method"], scope["path"]) not in _OPEN:
            await self._turn_away(scope, send)
            return
        direct = scope["path"] == MUTATE and scope["method"] == "POST"
        try:
            held = await body.read(receive, body.allowed(scope["query_string"]), self._room)
        except body.Full:
            await _write(send, _FULL, close=True)
            return
        except (body.Gone, TimeoutError):
            # Whoever left hears nothing of it; whoever is silent must not be given gunicorn's 500.
            with suppress(OSError):
                await _write(send, _LATE, close=True)
            return
        if direct:
            reply = answer(self._service, MUTATE, _content_type(scope), held)
            await _write(send, reply, close=self._service.stop.begun)
        else:
            await self._flask(_measured(scope, held), _replay(held or b""), self._parting(send))  # type: ignore[arg-type]

    async def _turn_away(self, scope: Scope, send: Send) -> None:
        # Counted where it is a review's path: each other word would be one more series, and kept for ever.
        if scope["path"] in (MUTATE, VALIDATE):
            self._service.observe(scope["path"], _STRANGER.status, 0.0)
        await _write(send, _STRANGER, close=True)

    def _parting(self, send: Send) -> Send:
        async def parting(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and self._service.stop.begun:
                message = {**message, "headers": [*message["headers"], _CLOSE]}
            await send(message)

        return parting

    async def _lifespan(self, receive: body.Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._service.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _write(send: Send, reply: Reply, *, close: bool) -> None:
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


def _measured(scope: Scope, held: bytes | None) -> Scope:
    # WSGI knows a body by its length, which a chunked one does not carry; over the cap any length
    # over the cap tells Flask the same.
    length = b"%d" % (len(held) if held is not None else MAX_BODY + 1)
    kept = [pair for pair in scope["headers"] if pair[0] not in (b"content-length", b"transfer-encoding")]
    return {**scope, "headers": [*kept, (b"content-length", length)]}


def _replay(held: bytes) -> body.Receive:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": held, "more_body": False}

    return receive
