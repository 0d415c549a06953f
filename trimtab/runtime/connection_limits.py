"""Limits on the number of client connections, in total and from one address, and the names in client certificates.

gunicorn's `asgi` worker counts its connections and limits nothing. It keeps a connection that never sends a request
forever, and does not know one that never finishes its TLS handshake. Measured with gunicorn 27 under uvloop: 53 kB for
a TLS connection, so that any client that reaches the port could exhaust a pod's memory, or its file descriptors,
without sending a byte.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Mapping
from typing import Any

SPARE_DESCRIPTORS = 256
"""File descriptors for everything but clients: watches, files, the heartbeat."""

STALLED_AFTER_SECONDS = 1.0
"""Seconds after which answers that a client does not read count as stalled. API servers read theirs at once."""


class ConnectionSlots:
    """The open connections, handshakes included, by address; chooses the connection that is closed if there are too
    many."""

    def __init__(self, max_total: int, max_by_address: int) -> None:
        self._max_total, self._max_by_address = max_total, max_by_address
        self._by_address: dict[str, AddressCrowd] = {}
        self._crowd_by_connection: dict[Any, AddressCrowd] = {}

    def add_connection(self, connection: Any, address: str, transport: Any) -> bool:
        """Adds a new connection. Returns False if it was closed, because every other connection is being answered.

        If its address has too many, the least useful connection of that address is closed; if there are too many in
        total, that of the address with the most connections.
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
        """Records that the connection's handshake is over and that it waits for its first request."""
        crowd = self._crowd_by_connection.get(connection)
        if crowd is not None:
            crowd.handshakes.pop(connection, None)
            crowd.idle.add_connection(connection)

    def record_closing(self, connection: Any) -> None:
        """Records that the connection is closed and only waits for its client's part of the TLS closure, which may take
        a while."""
        crowd = self._crowd_by_connection.get(connection)
        if crowd is not None:
            crowd.closing[connection] = None

    def remove_connection(self, connection: Any) -> None:
        """Removes a connection that is gone."""
        crowd = self._crowd_by_connection.pop(connection, None)
        if crowd is None:
            return
        crowd.remove_connection(connection)
        if not crowd.size:
            del self._by_address[crowd.address]

    def idle_connections(self, connection: Any) -> IdleConnections:
        """Returns the idle connections of its address."""
        crowd = self._crowd_by_connection.get(connection)
        return crowd.idle if crowd is not None else IdleConnections()

    def stalled_connections(self, connection: Any) -> StalledConnections:
        """Returns the connections of its address that do not read their answers."""
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
        """Returns the least useful connection, or None if all are being answered.

        In this order: one that is closed and waits for its client's part of the TLS closure, the one that has not read
        its answers for the longest time, the one longest in its handshake, one that never sent a request, the one idle
        for the longest time.
        """
        closing = next(iter(self.closing), None)
        handshaking = next((connection for connection in self.handshakes if connection is not newcomer), None)
        return closing or self.stalled.longest_stalled() or handshaking or self.idle.least_useful()

    def remove_connection(self, connection: Any) -> None:
        """Removes a connection that is gone."""
        self.size -= 1
        self.handshakes.pop(connection, None)
        self.closing.pop(connection, None)
        self.idle.remove_connection(connection)
        self.stalled.remove_connection(connection)


class StalledConnections:
    """Connections whose clients do not read their answers, longest first."""

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}

    def add_connection(self, connection: Any) -> None:
        """Records that the connection has no room for more of its answers."""
        self._since.setdefault(connection, connection.worker.loop.time())

    def remove_connection(self, connection: Any) -> None:
        """Records that the client read some of its answers, or is gone."""
        self._since.pop(connection, None)

    def longest_stalled(self) -> Any | None:
        """Returns the connection that has been stalled the longest, or None if none has been for
        `STALLED_AFTER_SECONDS`."""
        first = next(iter(self._since.items()), None)
        if first is None or first[0].worker.loop.time() - first[1] < STALLED_AFTER_SECONDS:
            return None
        return first[0]


class IdleConnections:
    """Connections that wait for a request, longest first. Closes each after gunicorn's `keepalive`.

    All connections of an address share one timer: gunicorn's own, one per connection and request, takes a twentieth of
    the time of a small review.
    """

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}
        self._without_request: dict[Any, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add_connection(self, connection: Any) -> None:
        """Records that the connection waits for a request from now on."""
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
        """Records that the connection got a request, or is gone."""
        self._since.pop(connection, None)
        self._without_request.pop(connection, None)

    def least_useful(self) -> Any | None:
        """Returns the least useful connection: one that never sent a request, or the one idle for the longest time, or
        None if all are being answered."""
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
    """Returns how many connections this process may hold, and raises its limit of file descriptors to twice as many.

    No more than that: connections that the kernel has accepted and the process has not looked at yet must be bounded,
    too.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * max_connections + SPARE_DESCRIPTORS
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    # The soft limit is often 1024; a process may raise it up to the hard limit.
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(max_connections, max(1, soft - SPARE_DESCRIPTORS))


Scope = Mapping[str, Any]

CLIENT_NAMES_KEY = "trimtab.client"
"""The key of a request's scope under which the common names of the verified client certificate are.
`trimtab.runtime.gunicorn_patches` sets it."""


def certificate_names(connection: Any) -> tuple[str, ...] | None:
    """Returns the common names of the client's certificate, which the handshake has verified, or None if there is no
    certificate."""
    certificate = connection.getpeercert() if connection is not None else None
    if not certificate:
        return None
    return tuple(value for part in certificate["subject"] for name, value in part if name == "commonName")


def client_test(name: str | None) -> Callable[[Scope], bool]:
    """Returns a test whether a request came with a verified certificate, one with this common name if `name` is given.

    It is False wherever the scope has no names: also if another server than gunicorn runs the application.
    """

    def is_verified(scope: Scope) -> bool:
        names = scope.get(CLIENT_NAMES_KEY)
        return names is not None and (name is None or name in names)

    return is_verified
