"""Limits the number of client connections, in total and from one address; and reads the names in client certificates.

gunicorn's `asgi` worker counts its connections but does not limit them. It keeps a connection that never sends a
request for ever, and does not notice one that never finishes its TLS handshake. A TLS connection needs 53 kB (measured
with gunicorn 27 under uvloop), so any client that reaches the port could exhaust a pod's memory, or its file
descriptors, without sending a byte.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Mapping
from typing import Any

SPARE_DESCRIPTORS = 256
"""The number of file descriptors for everything but clients: watches, files, the heartbeat."""

STALLED_AFTER_SECONDS = 1.0
"""If a client does not read its responses for this many seconds, its connection counts as stalled. API servers read
theirs at once."""


class ConnectionSlots:
    """The open connections by address, including those in their handshake. If there are too many, it chooses which one
    is closed."""

    def __init__(self, max_total: int, max_by_address: int) -> None:
        self._max_total, self._max_by_address = max_total, max_by_address
        self._by_address: dict[str, AddressCrowd] = {}
        self._crowd_by_connection: dict[Any, AddressCrowd] = {}

    def add_connection(self, connection: Any, address: str, transport: Any) -> bool:
        """Adds a new connection. Returns False if the new connection was closed instead, because every other connection
        is waiting for a response.

        If its address has too many connections, the least useful one of that address is closed. If there are too many
        in total, the least useful one of the address with the most connections is closed.
        """
        crowd = self._by_address.setdefault(address, AddressCrowd(address))
        crowd.handshakes[connection] = transport
        self._crowd_by_connection[connection] = crowd
        # A connection counts from its TCP handshake on: half-open TLS connections cost memory, too.
        crowd.size += 1
        if crowd.size > self._max_by_address:
            self._dismiss(crowd.least_useful(connection) or connection)
        elif len(self._crowd_by_connection) > self._max_total:
            # The address with the most connections loses one: a client that opens many cannot push out one that opens
            # few.
            largest = max(self._by_address.values(), key=lambda one: one.size)
            self._dismiss(largest.least_useful(connection) or connection)
        return connection in self._crowd_by_connection

    def record_handshake(self, connection: Any) -> None:
        """Records that the connection has finished its handshake and waits for its first request."""
        crowd = self._crowd_by_connection.get(connection)
        if crowd is not None:
            crowd.handshakes.pop(connection, None)
            crowd.idle.add_connection(connection)

    def record_closing(self, connection: Any) -> None:
        """Records that the connection is being closed and only waits for the client to close its side of the TLS
        connection, which may take a while."""
        crowd = self._crowd_by_connection.get(connection)
        if crowd is not None:
            crowd.closing[connection] = None

    def remove_connection(self, connection: Any) -> None:
        """Removes a connection that is closed."""
        crowd = self._crowd_by_connection.pop(connection, None)
        if crowd is None:
            return
        crowd.remove_connection(connection)
        if not crowd.size:
            del self._by_address[crowd.address]

    def idle_connections(self, connection: Any) -> IdleConnections:
        """Returns the idle connections of the same client address as this connection."""
        crowd = self._crowd_by_connection.get(connection)
        return crowd.idle if crowd is not None else IdleConnections()

    def stalled_connections(self, connection: Any) -> StalledConnections:
        """Returns those connections of the same client address whose clients do not read their responses."""
        crowd = self._crowd_by_connection.get(connection)
        return crowd.stalled if crowd is not None else StalledConnections()

    def _dismiss(self, connection: Any) -> None:
        crowd = self._crowd_by_connection[connection]
        transport = crowd.handshakes.get(connection)
        self.remove_connection(connection)
        if transport is not None:
            transport.abort()
        else:
            # Closed as gunicorn closes an idle one, and then aborted: a silent client may never finish the TLS closure.
            connection._keepalive_timeout()
            connection.transport.abort()


class AddressCrowd:
    """The connections of one address."""

    def __init__(self, address: str) -> None:
        self.address, self.size = address, 0
        self.handshakes: dict[Any, Any] = {}
        """Connections in their handshake → the transport below, oldest first."""
        self.closing: dict[Any, None] = {}
        self.idle, self.stalled = IdleConnections(), StalledConnections()

    def least_useful(self, newcomer: Any) -> Any | None:
        """Returns the least useful connection, or None if all are waiting for a response.

        The first of these that exists is returned:

        - a connection that is being closed and waits for its client;
        - the connection whose client has not read its responses for the longest time;
        - the connection that has been in its handshake for the longest time;
        - a connection that never sent a request;
        - the connection that has been idle for the longest time.
        """
        closing = next(iter(self.closing), None)
        handshaking = next((connection for connection in self.handshakes if connection is not newcomer), None)
        return closing or self.stalled.longest_stalled() or handshaking or self.idle.least_useful()

    def remove_connection(self, connection: Any) -> None:
        """Removes a connection that is closed."""
        self.size -= 1
        self.handshakes.pop(connection, None)
        self.closing.pop(connection, None)
        self.idle.remove_connection(connection)
        self.stalled.remove_connection(connection)


class StalledConnections:
    """The connections whose clients do not read their responses, sorted by how long the client has not read, the
    longest first."""

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}

    def add_connection(self, connection: Any) -> None:
        """Records that the write buffer of the connection is full."""
        self._since.setdefault(connection, connection.worker.loop.time())

    def remove_connection(self, connection: Any) -> None:
        """Records that the client has read some of its responses, or that the connection is closed."""
        self._since.pop(connection, None)

    def longest_stalled(self) -> Any | None:
        """Returns the connection that has been stalled for the longest time, or None if no connection has been stalled
        for `STALLED_AFTER_SECONDS`."""
        first = next(iter(self._since.items()), None)
        if first is None or first[0].worker.loop.time() - first[1] < STALLED_AFTER_SECONDS:
            return None
        return first[0]


class IdleConnections:
    """The connections that wait for a request; those that have waited longest come first. Each is closed after
    gunicorn's `keepalive` seconds.

    All connections of an address share one timer. gunicorn's own timers, one per connection and request, would take a
    twentieth of the time of a small review.
    """

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}
        self._without_request: dict[Any, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add_connection(self, connection: Any) -> None:
        """Records that the connection now waits for a request."""
        loop, seconds = connection.worker.loop, connection._keepalive
        if seconds <= 0:
            return
        self._since.pop(connection, None)
        self._since[connection] = loop.time()
        if connection.req_count <= 1:
            self._without_request[connection] = None
        if self._timer is None:
            self._timer = loop.call_later(seconds, self._close_idle, loop, seconds)

    def remove_connection(self, connection: Any) -> None:
        """Records that the connection has received a request, or that it is closed."""
        self._since.pop(connection, None)
        self._without_request.pop(connection, None)

    def least_useful(self) -> Any | None:
        """Returns the least useful connection: one that never sent a request, or else the one that has been idle for
        the longest time; None if none is idle."""
        # Dicts keep insertion order, so the longest-waiting connections come first and few are looked at.
        never_asked = next((one for one in self._without_request if one._awaiting_request), None)
        return never_asked or next((one for one in self._since if one._awaiting_request), None)

    def _close_idle(self, loop: Any, seconds: float) -> None:
        now = loop.time()
        for connection, since in list(self._since.items()):
            # Oldest first: the first one that is not due ends the round, and its time is that of the next one.
            if since + seconds > now:
                self._timer = loop.call_later(since + seconds - now, self._close_idle, loop, seconds)
                return
            self.remove_connection(connection)
            connection._keepalive_timeout()
        self._timer = None


def raise_descriptor_limit(max_connections: int) -> int:
    """Returns how many connections this process may hold, and raises its limit of file descriptors to twice that
    number.

    The limit is not higher, because connections that the kernel has accepted and the process has not seen yet must be
    limited too.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * max_connections + SPARE_DESCRIPTORS
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    # The soft limit is often 1024; a process may raise it up to the hard limit.
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(max_connections, max(1, soft - SPARE_DESCRIPTORS))


Scope = Mapping[str, Any]

CLIENT_NAMES_KEY = "trimtab.client"
"""The key in a request's ASGI scope for the common names of the verified client certificate.
`trimtab.runtime.gunicorn_patches` sets it."""


def certificate_names(connection: Any) -> tuple[str, ...] | None:
    """Returns the common names of the client's certificate, which the handshake has verified, or None if there is no
    certificate."""
    certificate = connection.getpeercert() if connection is not None else None
    if not certificate:
        return None
    return tuple(value for part in certificate["subject"] for name, value in part if name == "commonName")


def client_test(name: str | None) -> Callable[[Scope], bool]:
    """Returns a function that tests whether a request was sent with a verified certificate and, if `name` is given,
    with this common name.

    The test is False if the scope has no names, for example if another server than gunicorn runs the application.
    """

    def is_verified(scope: Scope) -> bool:
        names = scope.get(CLIENT_NAMES_KEY)
        return names is not None and (name is None or name in names)

    return is_verified
