"""Writes responses that an application has at once on connections of gunicorn's `ASGIProtocol`.

`trimtab.runtime.gunicorn_patches` says when. The heads of responses are written by gunicorn's own methods.

An API server writes the same head before each review, except for the length of the body. What a head says depends on
its bytes alone. So a request with the same head as an earlier one, which was answered at once, needs no parser.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from trimtab.runtime import connection_limits

MAX_HEADS = 1024
"""The maximum number of known heads: a length of a body is in each."""
MAX_KNOWN_HEAD_BYTES = 1024
"""The maximum size in bytes of a known head."""
_HEAD_END = b"\r\n\r\n"


class Reply(Protocol):
    """A complete response."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes: ...

    @property
    def content_type(self) -> str: ...


@runtime_checkable
class AnswersAtOnce(Protocol):
    """An application that answers some requests without waiting for anything."""

    def answer_at_once(self, scope: dict[str, Any], body: bytes) -> Reply | None:
        """Returns the response to a request whose whole body has arrived; None if the request is to be served as any
        other. Raises nothing.

        scope: of the ASGI scope of the request, the method, the path, the headers and the names of the client.
        """


class ImmediateWriter:
    """Answers requests whose whole body has arrived, if the application has a response at once."""

    def __init__(self, answer: Callable[[dict[str, Any], bytes], Reply | None], *, tells_clients: bool) -> None:
        """answer: `AnswersAtOnce.answer_at_once`. tells_clients: the names in client certificates are passed on."""
        self._answer, self._tells_clients = answer, tells_clients
        self._requests: dict[bytes, Any] = {}
        """Head → gunicorn's request; a new one replaces the oldest."""

    def answer_known_request(self, connection: Any, data: bytes) -> bool:
        """Answers a request that arrives in one piece, with a known head, while the connection waits for a request.

        Afterwards the connection is as it is when gunicorn's `_handle_connection` waits for the next request. Returns
        False, and changes nothing, if gunicorn must read the data.
        """
        end = data.find(_HEAD_END, 0, MAX_KNOWN_HEAD_BYTES) + len(_HEAD_END)
        request = self._requests.get(data[:end])
        if request is None or len(data) - end != request.content_length or not _is_idle(connection):
            return False
        if connection._will_close(request, False):
            return False
        if not self._write_reply(connection, request, data[end:], closes=False):
            return False
        connection.worker.nr += 1
        connection._cancel_keepalive_timer()
        connection.req_count += 1
        connection._arm_keepalive_timer()
        return True

    def answer_request(self, connection: Any, request: Any, *, closes: bool) -> bool:
        """Answers a request that gunicorn has read. Returns False, and writes nothing, if the application has no
        response at once.

        closes: the connection ends with the response, and the response says so.
        """
        receiver, parser = connection._body_receiver, connection._callback_parser
        is_complete = receiver is not None and receiver._complete and len(receiver._chunks) == 1
        if not is_complete or connection._closed or parser.remaining():
            return False
        if not self._write_reply(connection, request, receiver._chunks[0], closes=closes):
            return False
        receiver._pop_chunk()
        if not closes and _says_the_same_everywhere(connection, request):
            self._remember_head(parser.head, request)
        return True

    def _write_reply(self, connection: Any, request: Any, body: bytes, *, closes: bool) -> bool:
        scope = {"method": request.method, "path": request.path, "headers": request.headers_bytes}
        if self._tells_clients:
            names = connection_limits.certificate_names(connection.transport.get_extra_info("ssl_object"))
            scope |= {} if names is None else {connection_limits.CLIENT_NAMES_KEY: names}
        reply = self._answer(scope, body)
        if reply is None:
            return False
        size = b"%d" % len(reply.body)
        headers = ((b"content-type", reply.content_type.encode("latin-1")), (b"content-length", size))
        connection._send_response_start(reply.status, headers, request, closes)
        connection._send_body(reply.body)
        return True

    def _remember_head(self, head: bytes, request: Any) -> None:
        # A request that arrived in pieces may have a head that is known already.
        if len(head) > MAX_KNOWN_HEAD_BYTES or head in self._requests:
            return
        if len(self._requests) >= MAX_HEADS:
            del self._requests[next(iter(self._requests))]
        self._requests[head] = request


def _is_idle(connection: Any) -> bool:
    """Returns whether the connection waits for a request, of which no byte has arrived, and its client reads its
    responses."""
    flow = connection._flow_control
    return (
        connection._awaiting_request
        and not connection._request_ready.is_set()
        and not connection._closed
        and not connection._finishing_calls
        and connection._callback_parser.is_idle
        and (flow is None or not flow.write_paused)
    )


def _says_the_same_everywhere(connection: Any, request: Any) -> bool:
    """Returns whether the request depends on the bytes of its head alone: gunicorn reads some headers of trusted
    clients only, and switches to another protocol with others."""
    return (
        request.content_length > 0
        and not request.chunked
        and not request.may_upgrade()
        and not any(b"_" in name or name in connection._secure_names for name, _ in request.headers_bytes)
    )
