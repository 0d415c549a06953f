"""Everything that Trimtab changes in gunicorn, in one place, and why.

Written for gunicorn 27.0.1 (`constraints.txt` pins it) and its `asgi` worker; a test for each stands in
`tests/runtime/test_gunicorn_patches.py`. Each patch names what it needs; where a version of gunicorn lacks that, the
patch is left out with a warning in the log, and gunicorn's own behaviour stays.

Which parser reads the heads of requests: the one in C where it can be had, the one in Python anywhere else.

The one in C (gunicorn_h1c 0.6.9) halves what a small review costs, and is young. It is used for heads alone
(`trimtab.runtime.http_framing`), and done without where it cannot be imported: a slower webhook is better than none.

What a TLS connection costs in memory, and how it comes back.

Measured with gunicorn 27 on CPython 3.11 and 3.13: a connection leaves 280 kB behind in a cycle of
few objects, so the collector, which counts objects and not bytes, lets thousands of them pile up.
Probes alone open that many in some hours.
"""

import asyncio
import gc
import ssl
from asyncio import sslproto
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol, runtime_checkable

import gunicorn
from gunicorn.asgi.parser import PythonProtocol
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi

from trimtab.runtime import connection_limits
from trimtab.runtime.body_budget import BodyBudget, TooManyBodies
from trimtab.runtime.connection_limits import ConnectionSlots
from trimtab.runtime.http_framing import MAX_LINE, framed
from trimtab.runtime.log import Logger

FAST, PLAIN = "fast", "python"
"""gunicorn's own words for the two."""

_LIMITS = {"limit_request_line": MAX_LINE, "limit_request_fields": 100, "limit_request_field_size": 8190}
"""gunicorn's own defaults; `framing.MAX_HEAD` bounds all headers together."""


@lru_cache
def chosen(load: Callable[[], Any] | None = None) -> str:
    """The parser that gunicorn is to use. Before the worker is forked, or in it.

    load: gives the parser in C, or raises what an import may raise.
    """
    try:
        (load or _in_c)()()
    except (ImportError, TypeError):
        return PLAIN
    return FAST


def bounded(room: BodyBudget) -> Callable[..., Any]:
    """What makes a bounded parser for a connection, given its callbacks and its client's address."""
    base = _in_c() if chosen() == FAST else PythonProtocol
    return partial(framed(base, room), limits=_LIMITS)


def _in_c() -> Any:
    # gunicorn looks for it in its own way, and remembers what errors it has.
    if not ASGIProtocol._check_h1c_protocol_available() or not ASGIProtocol._h1c_has_limits:
        raise ImportError("gunicorn_h1c is not there, or too old")
    return ASGIProtocol._h1c_protocol_class


HANDSHAKE = 4.0
"""Seconds for a TLS handshake. An API server gives up on one after 10 by default; a healthy one takes milliseconds."""

FAREWELL = 2.0
"""Seconds for a client's part of ending TLS, once the answer is out."""

MAX_BUFFER = 64 * 1024
"""Bytes of one connection that the application has not taken, over which nothing more is read from it."""


@runtime_checkable
class HasBodyBudget(Protocol):
    """An application that counts the bodies it holds: the parser draws on the same account."""

    room: BodyBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSettings:
    """What the patches need to know."""

    worker: Any
    places: ConnectionSlots
    room: BodyBudget


@dataclass(frozen=True, slots=True)
class Patch:
    """One change to gunicorn."""

    name: str
    needs: tuple[str, ...]
    """Attributes of `ASGIProtocol` that it replaces or uses; those of the worker begin with `worker.`."""
    apply: Callable[[PatchSettings], None]

    def missing(self, worker: Any) -> tuple[str, ...]:
        """What this version of gunicorn lacks for it."""
        return tuple(
            name
            for name in self.needs
            if not hasattr(*((worker, name.removeprefix("worker.")) if name[:7] == "worker." else (ASGIProtocol, name)))
        )


def apply(worker: Any, *, max_connections: int, max_by_address: int, tells_clients: bool, log: Logger) -> None:
    """Apply all patches. Call once in the worker, before it serves."""
    places = ConnectionSlots(connection_limits.descriptors(max_connections), max_by_address)
    room = worker.asgi.room if isinstance(worker.asgi, HasBodyBudget) else BodyBudget()
    server = PatchSettings(worker=worker, places=places, room=room)
    for patch in (*PATCHES, CLIENTS) if tells_clients else PATCHES:
        if missing := patch.missing(worker):
            log.warning(
                "this version of gunicorn is served without a bound of ours",
                patch=patch.name, missing=", ".join(missing), gunicorn=gunicorn.__version__,
            )  # fmt: skip
        else:
            patch.apply(server)


def _read_bounded(server: PatchSettings) -> None:
    """Read heads with gunicorn's parser and frame bodies with `trimtab.runtime.http_framing`."""
    make = bounded(server.room)

    def set_up(self: Any) -> None:
        peer = self.transport.get_extra_info("peername")
        self._callback_parser = make(
            on_headers_complete=self._on_headers_complete,
            on_body=self._on_body,
            on_message_complete=self._on_message_complete,
            address=address_of(peer),
        )
        self._max_buffer_size = MAX_BUFFER

    def buffered(self: Any) -> int:
        receiver, reader = self._body_receiver, self._callback_parser
        # What follows a request waits until that one has its answer, so reading must pause for it, too.
        return (receiver.buffered if receiver is not None else 0) + (len(reader.remaining()) if reader else 0)

    resume = ASGIProtocol._resume_reading

    def resume_reading(self: Any) -> None:
        # gunicorn resumes after each answer; of requests that came together there would be one more read for each.
        if self._callback_parser is None or len(self._callback_parser.remaining()) <= MAX_BUFFER:
            resume(self)

    refuse = ASGIProtocol._handle_h1c_exception

    def handle(self: Any, error: Exception) -> bool:
        if not isinstance(error, TooManyBodies):
            return bool(refuse(self, error))
        self._send_error_response(503, str(error))
        self._close_transport()
        return True

    ASGIProtocol._setup_callback_parser = set_up
    ASGIProtocol._http1_buffered = buffered
    ASGIProtocol._resume_reading = resume_reading
    ASGIProtocol._handle_h1c_exception = handle


def _let_go(server: PatchSettings) -> None:
    """A connection that ends lets go of what it holds, and of its parser.

    The parser in C holds its connection and is unknown to the collector: the two would stay for ever, 63 kB for each
    connection. And over TLS an ended connection waits for its client's farewell.
    """
    close, lost = ASGIProtocol._close_transport, ASGIProtocol.connection_lost

    def release(self: Any) -> None:
        if self._callback_parser is not None and hasattr(self._callback_parser, "release"):
            self._callback_parser.release()
        if self._body_receiver is not None:
            self._body_receiver._chunks.clear()

    def close_transport(self: Any) -> None:
        close(self)
        release(self)
        server.places.part(self)

    def connection_lost(self: Any, error: Exception | None) -> None:
        server.places.leave(self)
        lost(self, error)
        release(self)
        self._callback_parser = None

    ASGIProtocol._close_transport = close_transport
    ASGIProtocol.connection_lost = connection_lost


def _count_connections(server: PatchSettings) -> None:
    """Count connections from the moment they are accepted, by address, and give handshakes a short time."""
    context = server.worker._get_ssl_context()
    server.worker._get_ssl_context = lambda: None
    gasgi.ASGIProtocol = lambda worker: CountingProtocol(worker, server.places, context)


def _time_silence(server: PatchSettings) -> None:
    """One timer for all silent connections of an address, from a connection's first second."""
    made, places = ASGIProtocol.connection_made, server.places

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        places.greet(self)

    ASGIProtocol.connection_made = connection_made
    ASGIProtocol._arm_keepalive_timer = lambda self: places.silent(self).began(self)
    ASGIProtocol._cancel_keepalive_timer = lambda self: places.silent(self).ended(self)


def _read_no_further(server: PatchSettings) -> None:
    """Nothing is read from a client while its answers lie: gunicorn would parse requests until memory ends."""
    pause, resume, places = ASGIProtocol.pause_writing, ASGIProtocol.resume_writing, server.places

    def pause_writing(self: Any) -> None:
        places.unread(self).began(self)
        pause(self)
        self._write_paused = True
        self._pause_reading()

    def resume_writing(self: Any) -> None:
        places.unread(self).ended(self)
        resume(self)
        self._write_paused = False
        self._maybe_resume_reading()

    ASGIProtocol.pause_writing, ASGIProtocol.resume_writing = pause_writing, resume_writing


def _serve_inline(_: PatchSettings) -> None:
    """Run the application in its connection's own task; others come between two requests that came together.

    gunicorn 27 gives each request a task of its own, so that an application may go on after its answer. Ours never
    does: a task, a future and two turns of the loop are a twentieth of what a small review costs.
    """

    async def serve(self: Any, request: Any, sockname: Any, peername: Any) -> Any:
        reader = self._callback_parser
        if reader is not None and reader.remaining():
            await asyncio.sleep(0)
        return await self._handle_http_request(request, sockname, peername)

    ASGIProtocol._serve_http_request = serve


def _tell_clients(_: PatchSettings) -> None:
    """A request's scope says what its client's certificate says: gunicorn itself does not tell its application."""
    build = ASGIProtocol._build_http_scope

    def build_http_scope(self: Any, request: Any, sockname: Any, peername: Any) -> dict[str, Any]:
        scope: dict[str, Any] = build(self, request, sockname, peername)
        names = connection_limits.shown(self.transport.get_extra_info("ssl_object"))
        if names is not None:
            scope[connection_limits.KEY] = names
        return scope

    ASGIProtocol._build_http_scope = build_http_scope


CLIENTS = Patch("client certificates", ("_build_http_scope",), _tell_clients)
"""For a server with client authorities only. Left out, nobody is known, and nobody's reviews are answered."""

PATCHES = (
    Patch(
        "bounded parser",
        ("_setup_callback_parser", "_http1_buffered", "_handle_h1c_exception", "_send_error_response",
         "_close_transport", "_resume_reading", "_on_headers_complete", "_on_body", "_on_message_complete"),
        _read_bounded,
    ),
    Patch("let go", ("_close_transport", "connection_lost"), _let_go),
    Patch("door", ("connection_made", "connection_lost", "_keepalive_timeout", "worker._get_ssl_context"),
          _count_connections),
    Patch("one timer", ("connection_made", "_arm_keepalive_timer", "_cancel_keepalive_timer"), _time_silence),
    Patch("unread answers", ("pause_writing", "resume_writing", "_pause_reading", "_maybe_resume_reading"),
          _read_no_further),
    Patch("inline application", ("_serve_http_request", "_handle_http_request"), _serve_inline),
)  # fmt: skip
"""For every server, in the order in which they are applied."""


class CountingProtocol(asyncio.Protocol):
    """The first protocol of each accepted connection: it counts it, then hands it on to TLS and HTTP."""

    def __init__(self, worker: Any, places: ConnectionSlots, context: ssl.SSLContext | None) -> None:
        self._worker, self._places, self._context = worker, places, context

    def connection_made(self, transport: Any) -> None:
        """Give the connection its place, or end it; begin the handshake."""
        http = ASGIProtocol(self._worker)
        if not self._places.enter(http, address_of(transport.get_extra_info("peername")), transport):
            return
        if self._context is None:
            transport.set_protocol(http)
            http.connection_made(transport)
            return
        loop = self._worker.loop
        over = loop.create_future()
        over.add_done_callback(partial(self._leave_unless_greeted, http))
        secure = _tls_of(loop)(
            loop, http, self._context, over, True, ssl_handshake_timeout=HANDSHAKE, ssl_shutdown_timeout=FAREWELL
        )
        transport.set_protocol(secure)
        secure.connection_made(transport)

    def _leave_unless_greeted(self, http: Any, over: "asyncio.Future[None]") -> None:
        # A handshake that failed tells HTTP nothing.
        if not over.cancelled():
            over.exception()
        if http.transport is None:
            self._places.leave(http)


def _tls_of(loop: Any) -> Any:
    """The class that speaks TLS on this event loop: uvloop has one of its own."""
    if type(loop).__module__.startswith("uvloop"):
        from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

        return SSLProtocol
    from asyncio import sslproto

    return sslproto.SSLProtocol


def address_of(peer: Any) -> str:
    """The client's address without its port; empty where there is none."""
    return str(peer[0]) if peer else ""


BUFFER = 32 * 1024
"""Bytes of read buffer per TLS connection: two records. asyncio's own 256 kB are for bulk transfer."""

SWEEP_EVERY = 64
"""New connections between two collections: about 4 MB of garbage at most, some milliseconds each."""


def settle() -> None:
    """Call once when everything is loaded: what is there now is kept out of every later collection."""
    # No documented way leads to this size; the attribute has been there from 3.11 to 3.14.
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = BUFFER
    gc.collect()
    gc.freeze()


def sweep(context: ssl.SSLContext, every: int = SWEEP_EVERY) -> None:
    """Collect garbage after each `every` handshakes of this server context, on its event loop."""
    choose: Callable[..., None] | None = context.sni_callback  # type: ignore[assignment]
    handshakes = 0

    def counted(connection: ssl.SSLObject, name: str | None, front: ssl.SSLContext) -> None:
        nonlocal handshakes
        handshakes += 1
        if handshakes % every == 0:
            asyncio.get_running_loop().call_soon(gc.collect)
        if choose:
            choose(connection, name, front)

    context.sni_callback = counted
