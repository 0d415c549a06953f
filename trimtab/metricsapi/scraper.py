"""Fetches one metrics page of a pod, over a connection that is kept for the next scrape, and over verified TLS. The
page is decompressed and read while it arrives.

Redirects are not followed and no proxy is used, because a token must reach only the pod for which it is meant. Every
scrape ends at its deadline, even if a pod sends its response byte by byte.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from trimtab.cluster.bounded_decode import unpack_parts
from trimtab.cluster.reason import Reason
from trimtab.metricsapi.exposition import BodyReader, ScrapedBody, SeriesFilter
from trimtab.metricsapi.reasons import BODY_MALFORMED, SCRAPE_FAILED, SCRAPE_FILE_MISSING
from trimtab.metricsapi.rules import ScrapeEndpoint
from trimtab.metricsapi.targets import ScrapeTarget
from trimtab.runtime.clock import elapsed_seconds

PART_BYTES = 64 * 1024
MAX_CHUNKS = 50_000
"""The maximum number of chunks in one response. Servers send some thousand bytes in each chunk, but a chunk of one byte
would take as long to read."""
MAX_RESPONSE_STARTS = 10
"""The maximum number of status lines in one response: the final one, and those of interim responses (100 Continue)
before it."""
MAX_TRAILER_LINES = 100
MAX_TRAILER_BYTES = 8192
"""The size in bytes up to which a trailer line counts as one line; a longer one counts as several."""
_HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip", "User-Agent": "trimtab-metrics-api"}


@dataclass(frozen=True, slots=True)
class Scrape:
    """The result of one scrape."""

    at: float
    """When the response began, as a value of `elapsed_seconds`."""
    body: ScrapedBody | Reason


class _BoundedResponse(http.client.HTTPResponse):
    """A response that limits how much processor time a pod can cost. `http.client` itself reads any number of chunks,
    trailers and interim responses.

    If a later Python version no longer calls these methods, only the deadline of the scrape limits the time."""

    _chunks = _starts = 0

    def _read_status(self) -> tuple[str, int, str]:
        self._starts += 1
        if self._starts > MAX_RESPONSE_STARTS:
            raise http.client.HTTPException(f"more than {MAX_RESPONSE_STARTS} interim responses")
        status: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
        return status

    def _read_next_chunk_size(self) -> int:
        self._chunks += 1
        if self._chunks > MAX_CHUNKS:
            raise http.client.HTTPException(f"more than {MAX_CHUNKS} chunks")
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        return size

    def _read_and_discard_trailer(self) -> None:
        for _ in range(MAX_TRAILER_LINES):
            line = self.fp.readline(MAX_TRAILER_BYTES)
            if line in (b"\r\n", b"\n", b""):
                return
        raise http.client.HTTPException(f"more than {MAX_TRAILER_LINES} lines of trailers")


class _PodConnection(http.client.HTTPConnection):
    """A connection to a pod's IP address. The certificate is verified against the name in the rule."""

    response_class = _BoundedResponse

    def __init__(
        self, target: ScrapeTarget, context: ssl.SSLContext | None, timeout: float, connect_timeout: float
    ) -> None:
        super().__init__(target.ip, target.endpoint.port, timeout=timeout)
        self._connect_timeout = connect_timeout
        self._context, self._server_name = context, target.endpoint.server_name or target.ip
        self.deadline = 0.0
        self.was_used = False

    def connect(self) -> None:
        self.sock = socket.create_connection((self.host, self.port), self._connect_timeout)
        self.sock.settimeout(self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._server_name)


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
            headers = dict(_HEADERS)
            if target.token_file:
                headers["Authorization"] = f"Bearer {self._read_token(target.token_file)}"
            return self._fetch(target, filters, headers, started + self.timeout_seconds)
        except _MissingFile as error:
            return Scrape(started, SCRAPE_FILE_MISSING(str(error)))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._forget(target)
            return Scrape(started, SCRAPE_FAILED(f"{target.ip}:{target.endpoint.port}: {_describe(error)}"))

    def end_overdue_scrapes(self) -> None:
        """Ends the scrapes whose deadline has passed, whatever their pods still send."""
        now = elapsed_seconds()
        with self._lock:
            overdue = [connection for connection in self._under_way.values() if connection.deadline < now]
        for connection in overdue:
            with contextlib.suppress(OSError):
                if connection.sock is not None:
                    # Below TLS: its own shutdown would wait for the pod.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    def keep_connections(self, targets: frozenset[ScrapeTarget]) -> None:
        """Closes the connections to all targets except these."""
        with self._lock:
            gone = [self._connections.pop(target) for target in list(self._connections) if target not in targets]
        for connection in gone:
            connection.close()

    def _fetch(
        self, target: ScrapeTarget, filters: tuple[SeriesFilter, ...], headers: dict[str, str], deadline: float
    ) -> Scrape:
        connection = self._take_connection(target)
        connection.deadline = deadline
        with self._tracked(target, connection):
            try:
                response = _send(connection, target.endpoint.path, headers)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                if not connection.was_used:
                    raise
                # The pod closed the idle connection: that says nothing about the pod.
                connection.close()
                connection.was_used = False
                response = _send(connection, target.endpoint.path, headers)
            at = elapsed_seconds()
            body = self._read(connection, response, filters, deadline)
        if isinstance(body, Reason) or response.will_close or not response.isclosed():
            connection.close()
        else:
            connection.was_used = True
            with self._lock:
                self._connections[target] = connection
        return Scrape(at, body)

    def _read(
        self,
        connection: _PodConnection,
        response: http.client.HTTPResponse,
        filters: tuple[SeriesFilter, ...],
        deadline: float,
    ) -> ScrapedBody | Reason:
        if response.status != 200:
            return SCRAPE_FAILED(f"{connection.host}:{connection.port}: status {response.status}")
        reader = BodyReader(filters)
        for part in _unpacked_parts(response):
            if (problem := reader.read_part(part)) is not None:
                return problem
            if elapsed_seconds() > deadline:
                return SCRAPE_FAILED(
                    f"{connection.host}:{connection.port}: the body was not complete before the timeout"
                )
        if response.length:
            return BODY_MALFORMED(f"the connection ended {response.length} bytes before the end of the body")
        return reader.finish_body()

    def _take_connection(self, target: ScrapeTarget) -> _PodConnection:
        with self._lock:
            connection = self._connections.pop(target, None)
        if connection is not None:
            return connection
        context = self._context_for(target.endpoint) if target.endpoint.is_secure else None
        connect_timeout = min(self.connect_timeout_seconds, self.timeout_seconds)
        return _PodConnection(target, context, self.timeout_seconds, connect_timeout)

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

    def _forget(self, target: ScrapeTarget) -> None:
        with self._lock:
            connection = self._connections.pop(target, None)
        if connection is not None:
            connection.close()

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


def _send(connection: _PodConnection, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def _unpacked_parts(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yields the body, decompressed, in parts of limited size. An encoding that was not requested is treated as no
    encoding."""
    if response.getheader("Content-Encoding", "").strip().lower() != "gzip":
        while part := response.read(PART_BYTES):
            yield part
        return
    yield from unpack_parts(iter(partial(response.read, PART_BYTES), b""), PART_BYTES)


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the connection timed out"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
