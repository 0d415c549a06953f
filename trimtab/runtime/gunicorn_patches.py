"""All patches that Trimtab applies to gunicorn, each with its reason.

They replace methods of gunicorn's `ASGIProtocol`. They are written for gunicorn 27.0.1 (`constraints.txt` pins it) and
its `asgi` worker; `tests/runtime/test_gunicorn_patches.py` has a test for each. Each patch names the attributes that it
needs. If a version of gunicorn lacks one of them, the patch is left out with a warning in the log, and gunicorn's own
behaviour stays.

The heads of requests are parsed by the parser in C (gunicorn_h1c 0.6.9) if it can be imported, which halves the time of
a small review, and otherwise by gunicorn's parser in Python. The parser in C is young, so it only parses heads
(`trimtab.runtime.http_framing`).

A TLS connection leaves 280 kB behind in a reference cycle of few objects (measured with gunicorn 27 on CPython 3.11 and
3.13). The garbage collector counts objects and not bytes, so thousands of such cycles would accumulate: probes alone
open that many connections in some hours. The last two functions of this module reduce and free that memory.
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
from trimtab.runtime.http_framing import MAX_LINE_BYTES, framed_parser
from trimtab.runtime.immediate_answers import AnswersAtOnce, ImmediateWriter
from trimtab.runtime.log import Logger

FAST, PLAIN = "fast", "python"
"""gunicorn's own names for the two parsers."""

# gunicorn's own defaults; `http_framing.MAX_HEAD_BYTES` bounds all headers together.
_LIMITS = {"limit_request_line": MAX_LINE_BYTES, "limit_request_fields": 100, "limit_request_field_size": 8190}


@lru_cache
def choose_parser(load: Callable[[], Any] | None = None) -> str:
    """Returns the name of the parser that gunicorn is to use. Call it before the worker is forked, or in the worker.

    `load` returns the parser in C, or raises what an import may raise.
    """
    try:
        (load or _load_parser_in_c)()()
    except (ImportError, TypeError):
        return PLAIN
    return FAST


def bounded_parser_factory(budget: BodyBudget) -> Callable[..., Any]:
    """Returns the constructor of a parser with limits for one connection. Its arguments are callbacks and the client's
    address."""
    base = _load_parser_in_c() if choose_parser() == FAST else PythonProtocol
    return partial(framed_parser(base, budget), limits=_LIMITS)


def _load_parser_in_c() -> Any:
    # gunicorn's own check also registers the parser's error classes.
    if not ASGIProtocol._check_h1c_protocol_available() or not ASGIProtocol._h1c_has_limits:
        raise ImportError("gunicorn_h1c is not installed, or is too old")
    return ASGIProtocol._h1c_protocol_class


HANDSHAKE_SECONDS = 4.0
"""The number of seconds that a TLS handshake may take. By default, an API server gives up after 10; a normal handshake
takes milliseconds."""

TLS_CLOSE_SECONDS = 2.0
"""For how many seconds, after a response was sent, the server waits until the client closes its side of the TLS
connection."""

MAX_BUFFER_BYTES = 64 * 1024
"""If the application has not yet read more than this many bytes of a connection, nothing more is read from the
connection."""


@runtime_checkable
class HasBodyBudget(Protocol):
    """An application that counts the bodies that it holds, so that the parser can use the same budget."""

    room: BodyBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSettings:
    """The objects that the patches use."""

    worker: Any
    slots: ConnectionSlots
    room: BodyBudget
    tells_clients: bool = False


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch to gunicorn."""

    name: str
    needs: tuple[str, ...]
    """The attributes of `ASGIProtocol` that the patch replaces or uses; names of the worker's attributes begin with
    `worker.`."""
    apply: Callable[[PatchSettings], None]

    def missing_attributes(self, worker: Any) -> tuple[str, ...]:
        """Returns those of the needed attributes that this version of gunicorn lacks."""
        return tuple(
            name
            for name in self.needs
            if not hasattr(*((worker, name.removeprefix("worker.")) if name[:7] == "worker." else (ASGIProtocol, name)))
        )


def apply_patches(worker: Any, *, max_connections: int, max_by_address: int, tells_clients: bool, log: Logger) -> None:
    """Applies all patches. Call it once in the worker, before it serves. With `tells_clients`, the names in client
    certificates are passed on too."""
    slots = ConnectionSlots(connection_limits.raise_descriptor_limit(max_connections), max_by_address)
    room = worker.asgi.room if isinstance(worker.asgi, HasBodyBudget) else BodyBudget()
    patch_settings = PatchSettings(worker=worker, slots=slots, room=room, tells_clients=tells_clients)
    for patch in (*PATCHES, CLIENT_NAMES_PATCH) if tells_clients else PATCHES:
        if missing := patch.missing_attributes(worker):
            log.warning(
                "a patch does not fit this version of gunicorn and is not applied",
                patch=patch.name,
                missing=", ".join(missing),
                gunicorn=gunicorn.__version__,
            )
        else:
            patch.apply(patch_settings)


def _patch_parser(server: PatchSettings) -> None:
    """Parses heads with gunicorn's parser and frames bodies with `trimtab.runtime.http_framing`."""
    make_parser = bounded_parser_factory(server.room)

    def set_up(self: Any) -> None:
        peer = self.transport.get_extra_info("peername")
        self._callback_parser = make_parser(
            on_headers_complete=self._on_headers_complete,
            on_body=self._on_body,
            on_message_complete=self._on_message_complete,
            address=address_of(peer),
        )
        self._max_buffer_size = MAX_BUFFER_BYTES

    def count_buffered(self: Any) -> int:
        receiver, reader = self._body_receiver, self._callback_parser
        # A pipelined request waits for the answer to the one before it, so its bytes count as buffered, too.
        return (receiver.buffered if receiver is not None else 0) + (len(reader.remaining()) if reader else 0)

    original_resume = ASGIProtocol._resume_reading

    def resume_reading(self: Any) -> None:
        # gunicorn resumes reading after each answer: with pipelined requests the buffer would grow by a read for each.
        if self._callback_parser is None or len(self._callback_parser.remaining()) <= MAX_BUFFER_BYTES:
            original_resume(self)

    original_handle = ASGIProtocol._handle_h1c_exception

    def handle_parser_error(self: Any, error: Exception) -> bool:
        if not isinstance(error, TooManyBodies):
            return bool(original_handle(self, error))
        self._send_error_response(503, str(error))
        self._close_transport()
        return True

    ASGIProtocol._setup_callback_parser = set_up
    ASGIProtocol._http1_buffered = count_buffered
    ASGIProtocol._resume_reading = resume_reading
    ASGIProtocol._handle_h1c_exception = handle_parser_error


def _patch_release(server: PatchSettings) -> None:
    """Releases the buffers and the parser of a connection when it ends.

    The parser in C refers to its connection, and the garbage collector does not track it: without this patch both would
    stay in memory for ever, 63 kB for each connection. And a closed TLS connection stays until its client closes its
    side.
    """
    original_close, original_lost = ASGIProtocol._close_transport, ASGIProtocol.connection_lost

    def release_buffers(self: Any) -> None:
        if self._callback_parser is not None and hasattr(self._callback_parser, "release"):
            self._callback_parser.release()
        if self._body_receiver is not None:
            self._body_receiver._chunks.clear()

    def close_transport(self: Any) -> None:
        original_close(self)
        release_buffers(self)
        server.slots.record_closing(self)

    def connection_lost(self: Any, error: Exception | None) -> None:
        server.slots.remove_connection(self)
        original_lost(self, error)
        release_buffers(self)
        self._callback_parser = None

    ASGIProtocol._close_transport = close_transport
    ASGIProtocol.connection_lost = connection_lost


def _patch_connection_count(server: PatchSettings) -> None:
    """Counts connections by address from the moment at which they are accepted, and limits the time of handshakes."""
    context = server.worker._get_ssl_context()
    # `CountingProtocol` starts TLS itself, so gunicorn must create plain connections.
    server.worker._get_ssl_context = lambda: None
    gasgi.ASGIProtocol = lambda worker: CountingProtocol(worker, server.slots, context)


def _patch_idle_timer(server: PatchSettings) -> None:
    """Uses one timer for all idle connections of an address, including those that have not sent a request yet."""
    original_made, slots = ASGIProtocol.connection_made, server.slots

    def connection_made(self: Any, transport: Any) -> None:
        original_made(self, transport)
        slots.record_handshake(self)

    ASGIProtocol.connection_made = connection_made
    ASGIProtocol._arm_keepalive_timer = lambda self: slots.idle_connections(self).add_connection(self)
    ASGIProtocol._cancel_keepalive_timer = lambda self: slots.idle_connections(self).remove_connection(self)


def _patch_write_pause(server: PatchSettings) -> None:
    """Stops reading from a client that does not read its responses. Otherwise gunicorn would parse further requests
    until the memory is exhausted."""
    original_pause, original_resume, slots = ASGIProtocol.pause_writing, ASGIProtocol.resume_writing, server.slots

    def pause_writing(self: Any) -> None:
        slots.stalled_connections(self).add_connection(self)
        original_pause(self)
        self._write_paused = True
        self._pause_reading()

    def resume_writing(self: Any) -> None:
        slots.stalled_connections(self).remove_connection(self)
        original_resume(self)
        self._write_paused = False
        self._maybe_resume_reading()

    ASGIProtocol.pause_writing, ASGIProtocol.resume_writing = pause_writing, resume_writing


def _patch_inline_serving(_: PatchSettings) -> None:
    """Runs the application in its connection's own task; other tasks run between two pipelined requests.

    gunicorn 27 starts a task for each request, so that an application may go on after its response. Trimtab's
    applications do not go on. Without a task of its own, a small review takes a twentieth less time, because a task, a
    future and two iterations of the event loop are saved.
    """

    async def serve_request(self: Any, request: Any, sockname: Any, peername: Any) -> Any:
        reader = self._callback_parser
        if reader is not None and reader.remaining():
            await asyncio.sleep(0)
        return await self._handle_http_request(request, sockname, peername)

    ASGIProtocol._serve_http_request = serve_request


def _patch_answers_at_once(server: PatchSettings) -> None:
    """Writes the responses that the application has at once, without the calls between an ASGI server and its
    application. If the head of a request is the same as an earlier one's, it is not parsed again, and the task of the
    connection is not woken. A cached review takes a quarter less time.

    A request that is not complete yet, or that waits behind another one, is served as any other.
    """
    application = server.worker.asgi
    if not isinstance(application, AnswersAtOnce):
        return
    writer = ImmediateWriter(application.answer_at_once, tells_clients=server.tells_clients)
    original_feed, original_serve = ASGIProtocol._feed_callback_parser, ASGIProtocol._serve_http_request

    def feed_parser(self: Any, data: bytes) -> bool:
        return writer.answer_known_request(self, data) or bool(original_feed(self, data))

    async def serve_request(self: Any, request: Any, sockname: Any, peername: Any) -> Any:
        closes = self._will_close(request, False)
        if not writer.answer_request(self, request, closes=closes):
            return await original_serve(self, request, sockname, peername)
        if self._flow_control is not None and self._flow_control.write_paused:
            await self._flow_control.drain()
        return not closes

    ASGIProtocol._feed_callback_parser = feed_parser
    ASGIProtocol._serve_http_request = serve_request


def _patch_client_names(_: PatchSettings) -> None:
    """Adds the names in the client's certificate to the ASGI scope of a request, because gunicorn does not provide
    them."""
    original_build = ASGIProtocol._build_http_scope

    def build_http_scope(self: Any, request: Any, sockname: Any, peername: Any) -> dict[str, Any]:
        scope: dict[str, Any] = original_build(self, request, sockname, peername)
        names = connection_limits.certificate_names(self.transport.get_extra_info("ssl_object"))
        if names is not None:
            scope[connection_limits.CLIENT_NAMES_KEY] = names
        return scope

    ASGIProtocol._build_http_scope = build_http_scope


CLIENT_NAMES_PATCH = Patch("client certificates", ("_build_http_scope",), _patch_client_names)
"""The patch for servers that verify client certificates. If it is left out, no client counts as verified, and no review
is answered."""

PATCHES = (
    Patch(
        "bounded parser",
        (
            "_setup_callback_parser",
            "_http1_buffered",
            "_handle_h1c_exception",
            "_send_error_response",
            "_close_transport",
            "_resume_reading",
            "_on_headers_complete",
            "_on_body",
            "_on_message_complete",
        ),
        _patch_parser,
    ),
    Patch("let go", ("_close_transport", "connection_lost"), _patch_release),
    Patch(
        "door",
        ("connection_made", "connection_lost", "_keepalive_timeout", "worker._get_ssl_context"),
        _patch_connection_count,
    ),
    Patch("one timer", ("connection_made", "_arm_keepalive_timer", "_cancel_keepalive_timer"), _patch_idle_timer),
    Patch(
        "unread answers",
        ("pause_writing", "resume_writing", "_pause_reading", "_maybe_resume_reading"),
        _patch_write_pause,
    ),
    Patch("inline application", ("_serve_http_request", "_handle_http_request"), _patch_inline_serving),
    Patch(
        "answers at once",
        (
            "_serve_http_request",
            "_send_response_start",
            "_send_body",
            "_will_close",
            "_feed_callback_parser",
            "_arm_keepalive_timer",
            "_cancel_keepalive_timer",
        ),
        _patch_answers_at_once,
    ),
)
"""The patches for every server, in the order in which they are applied."""


class CountingProtocol(asyncio.Protocol):
    """The first protocol of each accepted connection: it counts the connection, and then hands it to TLS and HTTP."""

    def __init__(self, worker: Any, slots: ConnectionSlots, context: ssl.SSLContext | None) -> None:
        self._worker, self._slots, self._context = worker, slots, context

    def connection_made(self, transport: Any) -> None:
        """Counts the connection and begins its handshake, or closes it if there are too many."""
        http = ASGIProtocol(self._worker)
        if not self._slots.add_connection(http, address_of(transport.get_extra_info("peername")), transport):
            return
        if self._context is None:
            transport.set_protocol(http)
            http.connection_made(transport)
            return
        loop = self._worker.loop
        handshake_over = loop.create_future()
        handshake_over.add_done_callback(partial(self._leave_unless_greeted, http))
        tls_protocol = _tls_protocol_class(loop)(
            loop,
            http,
            self._context,
            handshake_over,
            True,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=TLS_CLOSE_SECONDS,
        )
        transport.set_protocol(tls_protocol)
        tls_protocol.connection_made(transport)

    def _leave_unless_greeted(self, http: Any, handshake_over: "asyncio.Future[None]") -> None:
        # A failed handshake never reaches the HTTP protocol, so its slot is freed here. Reading the exception keeps
        # asyncio
        # from logging it.
        if not handshake_over.cancelled():
            handshake_over.exception()
        if http.transport is None:
            self._slots.remove_connection(http)


def _tls_protocol_class(loop: Any) -> Any:
    """Returns the class that implements TLS in this event loop; uvloop has its own."""
    if type(loop).__module__.startswith("uvloop"):
        from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

        return SSLProtocol
    from asyncio import sslproto

    return sslproto.SSLProtocol


def address_of(peer: Any) -> str:
    """Returns the client's address without its port, or an empty string if there is none."""
    return str(peer[0]) if peer else ""


TLS_BUFFER_BYTES = 32 * 1024
"""The size in bytes of the read buffer per TLS connection: two records. asyncio's own 256 kB are for bulk transfers."""

HANDSHAKES_PER_SWEEP = 64
"""The number of new connections between two garbage collections. In between, at most about 4 MB of garbage accumulate,
and a collection takes some milliseconds."""


OBJECTS_PER_COLLECTION = 5_000
"""The number of new objects between two garbage collections of the youngest generation; Python's default is 700."""


def reduce_memory() -> None:
    """Makes TLS read buffers smaller, excludes all existing objects from later garbage collections, and makes
    collections less frequent. Call it once, when everything is loaded."""
    # There is no documented setting for this size; CPython 3.11 to 3.14 have the attribute.
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
    gc.collect()
    gc.freeze()
    # A review leaves few objects that only a collection frees, and each collection walks the decisions in the cache.
    gc.set_threshold(OBJECTS_PER_COLLECTION, *gc.get_threshold()[1:])


def collect_after_handshakes(context: ssl.SSLContext, every: int = HANDSHAKES_PER_SWEEP) -> None:
    """Makes this server context run a garbage collection, in its event loop, after each `every` handshakes."""
    original_callback: Callable[..., None] | None = context.sni_callback  # type: ignore[assignment]
    handshakes = 0

    def count_handshake(connection: ssl.SSLObject, name: str | None, outer_context: ssl.SSLContext) -> None:
        nonlocal handshakes
        handshakes += 1
        if handshakes % every == 0:
            # Not inside the handshake: a collection takes some milliseconds.
            asyncio.get_running_loop().call_soon(gc.collect)
        if original_callback:
            original_callback(connection, name, outer_context)

    context.sni_callback = count_handshake
