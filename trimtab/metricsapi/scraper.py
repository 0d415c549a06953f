"""Fetches one metrics page of a pod, over a connection that is kept for the next scrape, and over verified TLS. The
page is decompressed and read while it arrives.

Redirects are not followed and no proxy is used, because a token must reach only the pod for which it is meant. Every
scrape ends at its deadline, even if a pod sends its response byte by byte.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trimtab.cluster.bounded_decode import unpack_parts
from trimtab.cluster.reason import Reason
from trimtab.metricsapi.exposition import BodyReader, ScrapedBody, SeriesFilter
from trimtab.metricsapi.http_response import PART_BYTES, BadResponse, ConnectionEnded, Response
from trimtab.metricsapi.reasons import BODY_MALFORMED, SCRAPE_FAILED, SCRAPE_FILE_MISSING
from trimtab.metricsapi.rules import ScrapeEndpoint
from trimtab.metricsapi.targets import ScrapeTarget
from trimtab.runtime.clock import elapsed_seconds

_HEADERS = "Accept: text/plain;version=0.0.4\r\nAccept-Encoding: gzip\r\nUser-Agent: trimtab-metrics-api\r\n"


@dataclass(frozen=True, slots=True)
class Scrape:
    """The result of one scrape."""

    at: float
    """When the response began, as a value of `elapsed_seconds`."""
    body: ScrapedBody | Reason


class _PodConnection:
    """A connection to a pod's IP address, which is opened by the first request. The certificate is verified against the
    name in the rule."""

    def __init__(self, target: ScrapeTarget, context: ssl.SSLContext | None) -> None:
        self.address = (target.ip, target.endpoint.port)
        self.deadline = 0.0
        self.was_used = False
        self.socket: socket.socket | None = None
        self._context, self._server_name = context, target.endpoint.server_name or target.ip

    def open(self, timeout: float, connect_timeout: float) -> socket.socket:
        opened = self.socket = socket.create_connection(self.address, connect_timeout)
        opened.settimeout(timeout)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            # Without the end that TLS has of its own, a connection was cut.
            opened = self.socket = self._context.wrap_socket(
                opened, suppress_ragged_eofs=False, server_hostname=self._server_name
            )
        return opened

    def close(self) -> None:
        self.was_used = False
        if self.socket is not None:
            self.socket.close()
            self.socket = None


@dataclass(slots=True)
class PodScraper:
    """Scrapes targets in any number of threads, but each target only in one thread at a time."""

    folder: Path
    """The folder with the files that rules name."""
    timeout_seconds: float = 10.0
    connect_timeout_seconds: float = 2.0
    _connections: dict[ScrapeTarget, _PodConnection] = field(default_factory=dict)
    _under_way: dict[ScrapeTarget, _PodConnection] = field(default_factory=dict)
    _contexts: dict[str, tuple[int, ssl.SSLContext]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def scrape(self, target: ScrapeTarget, filters: tuple[SeriesFilter, ...]) -> Scrape:
        """Fetches the page of a target and reads the series. Raises nothing."""
        started = elapsed_seconds()
        try:
            token = self._read_token(target.token_file) if target.token_file else ""
            return self._fetch(target, filters, _render_request(target, token), started + self.timeout_seconds)
        except _MissingFile as error:
            return Scrape(started, SCRAPE_FILE_MISSING(str(error)))
        except (OSError, BadResponse, ValueError) as error:
            with self._lock:
                connection = self._connections.pop(target, None)
            if connection is not None:
                connection.close()
            return Scrape(started, SCRAPE_FAILED(f"{target.ip}:{target.endpoint.port}: {_describe(error)}"))

    def end_overdue_scrapes(self) -> None:
        """Ends the scrapes whose deadline has passed, whatever their pods still send."""
        now = elapsed_seconds()
        with self._lock:
            overdue = [connection for connection in self._under_way.values() if connection.deadline < now]
        for connection in overdue:
            with contextlib.suppress(OSError):
                if (opened := connection.socket) is not None:
                    # Below TLS: its own shutdown would wait for the pod.
                    socket.socket.shutdown(opened, socket.SHUT_RDWR)

    def keep_connections(self, targets: frozenset[ScrapeTarget]) -> None:
        """Closes the connections to all targets except these."""
        with self._lock:
            gone = [self._connections.pop(target) for target in list(self._connections) if target not in targets]
        for connection in gone:
            connection.close()

    def _fetch(
        self, target: ScrapeTarget, filters: tuple[SeriesFilter, ...], request: bytes, deadline: float
    ) -> Scrape:
        connection = self._take_connection(target)
        connection.deadline = deadline
        with self._tracked(target, connection):
            try:
                response = self._send(connection, request)
            except (ConnectionEnded, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
                if not connection.was_used:
                    raise
                # The pod closed the idle connection: that says nothing about the pod.
                connection.close()
                response = self._send(connection, request)
            at = elapsed_seconds()
            body = _read_body(response, filters, target, deadline)
        if isinstance(body, Reason) or not response.can_keep_connection:
            connection.close()
        else:
            connection.was_used = True
            with self._lock:
                self._connections[target] = connection
        return Scrape(at, body)

    def _send(self, connection: _PodConnection, request: bytes) -> Response:
        opened = connection.socket
        if opened is None:
            opened = connection.open(self.timeout_seconds, min(self.connect_timeout_seconds, self.timeout_seconds))
        opened.sendall(request)
        return Response(opened.recv)

    def _take_connection(self, target: ScrapeTarget) -> _PodConnection:
        with self._lock:
            connection = self._connections.pop(target, None)
        if connection is not None:
            return connection
        context = self._context_for(target.endpoint) if target.endpoint.is_secure else None
        return _PodConnection(target, context)

    @contextlib.contextmanager
    def _tracked(self, target: ScrapeTarget, connection: _PodConnection) -> Iterator[None]:
        """A context manager that makes a scrape end at its deadline while the block runs."""
        with self._lock:
            self._under_way[target] = connection
        try:
            yield
        except BaseException:
            connection.close()
            raise
        finally:
            with self._lock:
                del self._under_way[target]

    def _read_token(self, name: str) -> str:
        try:
            token = (self.folder / name).read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            raise _MissingFile(f"token {name}: {_describe(error)}") from None
        if not token or not token.isprintable():
            raise _MissingFile(f"token {name}: the file has no token")
        return token

    def _context_for(self, endpoint: ScrapeEndpoint) -> ssl.SSLContext:
        """Returns the TLS context with the authorities of this endpoint. They are loaded again when their file
        changes."""
        name = endpoint.ca_file
        try:
            stamp = (self.folder / name).stat().st_mtime_ns if name else 0
            with self._lock:
                loaded, context = self._contexts.get(name, (-1, None))
                if context is None or loaded != stamp:
                    context = _create_context(self.folder / name if name else None)
                    self._contexts[name] = (stamp, context)
                return context
        except OSError as error:
            raise _MissingFile(f"authorities {name}: {_describe(error)}") from None


class _MissingFile(Exception):
    """Raised if a file that a rule names cannot be read."""


def _create_context(authorities: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authorities) if authorities else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Go accepts an authority without keyUsage, so many clusters have one; Python 3.13 would refuse it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _render_request(target: ScrapeTarget, token: str) -> bytes:
    """Returns a request for the target's page. Raises ValueError if its path is not one."""
    path = target.endpoint.path
    if not path.isascii() or not path.isprintable() or " " in path:
        raise ValueError(f"the path {path!r} has characters that no path has")
    host = f"[{target.ip}]" if ":" in target.ip else target.ip
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"GET {path} HTTP/1.1\r\nHost: {host}:{target.endpoint.port}\r\n{_HEADERS}{authorization}\r\n"
    return head.encode("ascii")


def _read_body(
    response: Response, filters: tuple[SeriesFilter, ...], target: ScrapeTarget, deadline: float
) -> ScrapedBody | Reason:
    """Returns the series of a page, decompressed. An encoding that was not requested is treated as no encoding."""
    address = f"{target.ip}:{target.endpoint.port}"
    if response.status != 200:
        return SCRAPE_FAILED(f"{address}: status {response.status}")
    reader = BodyReader(filters)
    for part in unpack_parts(response.parts(), PART_BYTES) if response.is_gzip else response.parts():
        if (problem := reader.read_part(part)) is not None:
            return problem
        if elapsed_seconds() > deadline:
            break
    # At the deadline another thread ends the connection, and that looks like the end of a body without a length.
    if elapsed_seconds() > deadline:
        return SCRAPE_FAILED(f"{address}: the body was not complete before the timeout")
    if response.missing_bytes:
        return BODY_MALFORMED(f"the connection ended {response.missing_bytes} bytes before the end of the body")
    return reader.finish_body(may_be_cut=response.ends_with_connection)


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the connection timed out"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
