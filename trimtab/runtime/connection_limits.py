"""How many clients at once, in total and from one address, and who goes when one more comes.

gunicorn's `asgi` worker counts its connections and limits nothing; one that never asks for anything it keeps for ever,
and one that never finishes its TLS handshake it does not even know. Measured with gunicorn 27 under uvloop: 53 kB for a
connection over TLS, so that whoever reaches the port could fill a pod's memory, or its file descriptors, with silence.

Who is at the other end of a connection? What a client's certificate says, told with each of its requests.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Mapping
from typing import Any

SPARE = 256
"""File descriptors for everything that is no client: watches, files, the heartbeat."""

UNREAD = 1.0
"""Seconds after which answers that a client does not take count as left lying. API servers take them as they come."""


class ConnectionSlots:
    """The connections that are held, handshakes included, by address; who must leave when there are too many."""

    def __init__(self, max_total: int, max_by_address: int) -> None:
        self._max_total, self._max_by_address = max_total, max_by_address
        self._crowds: dict[str, AddressCrowd] = {}
        self._crowd_of: dict[Any, AddressCrowd] = {}

    def enter(self, connection: Any, address: str, transport: Any) -> bool:
        """Give a new connection a place; False where it must go, because everybody else is being answered.

        One over the number of its address costs the place of the connection from there that would be missed least; one
        over the number of all, that of the address which has most.
        """
        crowd = self._crowds.setdefault(address, AddressCrowd(address))
        crowd.handshakes[connection] = transport
        self._crowd_of[connection] = crowd
        crowd.size += 1
        if crowd.size > self._max_by_address:
            self._dismiss(crowd.least(connection) or connection)
        elif len(self._crowd_of) > self._max_total:
            largest = max(self._crowds.values(), key=lambda one: one.size)
            self._dismiss(largest.least(connection) or connection)
        return connection in self._crowd_of

    def greet(self, connection: Any) -> None:
        """Its handshake is over: it speaks HTTP from now on, and waits for its first request."""
        crowd = self._crowd_of.get(connection)
        if crowd is not None:
            crowd.handshakes.pop(connection, None)
            crowd.silent.began(connection)

    def part(self, connection: Any) -> None:
        """It is ended, and only waits for its client's farewell: over TLS that may take a while."""
        crowd = self._crowd_of.get(connection)
        if crowd is not None:
            crowd.parting[connection] = None

    def leave(self, connection: Any) -> None:
        """It is gone."""
        crowd = self._crowd_of.pop(connection, None)
        if crowd is None:
            return
        crowd.forget(connection)
        if not crowd.size:
            del self._crowds[crowd.address]

    def silent(self, connection: Any) -> IdleConnections:
        """Those of its address that wait for a request."""
        crowd = self._crowd_of.get(connection)
        return crowd.silent if crowd is not None else IdleConnections()

    def unread(self, connection: Any) -> StalledConnections:
        """Those of its address whose answers lie."""
        crowd = self._crowd_of.get(connection)
        return crowd.unread if crowd is not None else StalledConnections()

    def _dismiss(self, connection: Any) -> None:
        crowd = self._crowd_of[connection]
        transport = crowd.handshakes.get(connection)
        self.leave(connection)
        if transport is not None:
            transport.abort()
        else:
            # Ended as gunicorn ends a kept one; and at once, without waiting for a silent client to agree.
            connection._keepalive_timeout()
            connection.transport.abort()


class AddressCrowd:
    """The connections of one address."""

    def __init__(self, address: str) -> None:
        self.address, self.size = address, 0
        self.handshakes: dict[Any, Any] = {}
        """Connections in their handshake, with the transport below, oldest first."""
        self.parting: dict[Any, None] = {}
        self.silent, self.unread = IdleConnections(), StalledConnections()

    def least(self, newcomer: Any) -> Any | None:
        """The connection that would be missed least; None where everybody is being answered.

        One that is ended and waits for its client's farewell, or else the one that has left answers lying longest, the
        one that has been in its handshake longest, one that has never asked for anything, the one silent longest.
        """
        parting = next(iter(self.parting), None)
        shaking = next((connection for connection in self.handshakes if connection is not newcomer), None)
        return parting or self.unread.longest() or shaking or self.silent.least()

    def forget(self, connection: Any) -> None:
        """It is gone."""
        self.size -= 1
        self.handshakes.pop(connection, None)
        self.parting.pop(connection, None)
        self.silent.ended(connection)
        self.unread.ended(connection)


class StalledConnections:
    """Connections whose clients leave answers lying, longest first."""

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}

    def began(self, connection: Any) -> None:
        """There is no room for more of its answers."""
        self._since.setdefault(connection, connection.worker.loop.time())

    def ended(self, connection: Any) -> None:
        """It took some, or is gone."""
        self._since.pop(connection, None)

    def longest(self) -> Any | None:
        """Whose answers have lain longest; None where none have for `UNREAD`."""
        first = next(iter(self._since.items()), None)
        if first is None or first[0].worker.loop.time() - first[1] < UNREAD:
            return None
        return first[0]


class IdleConnections:
    """Connections that wait for a request, longest first, and their end after gunicorn's `keepalive`.

    One timer for all of an address: gunicorn's own, one per connection and request, is a twentieth of a small review.
    """

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}
        self._never_asked: dict[Any, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def began(self, connection: Any) -> None:
        """It waits from now on."""
        loop, seconds = connection.worker.loop, connection._keepalive
        if seconds <= 0:
            return
        self._since.pop(connection, None)
        self._since[connection] = loop.time()
        if connection.req_count <= 1:
            self._never_asked[connection] = None
        if self._timer is None:
            self._timer = loop.call_later(seconds, self._sweep, loop, seconds)

    def ended(self, connection: Any) -> None:
        """It asked for something, or is gone."""
        self._since.pop(connection, None)
        self._never_asked.pop(connection, None)

    def least(self) -> Any | None:
        """Who would be missed least: never asked, or silent longest; None where everybody is being answered."""
        # From the front, where those stand that have waited longest: the first few decide.
        never_asked = next((one for one in self._never_asked if one._awaiting_request), None)
        return never_asked or next((one for one in self._since if one._awaiting_request), None)

    def _sweep(self, loop: Any, seconds: float) -> None:
        now = loop.time()
        for connection, since in list(self._since.items()):
            if since + seconds > now:
                self._timer = loop.call_later(since + seconds - now, self._sweep, loop, seconds)
                return
            self.ended(connection)
            connection._keepalive_timeout()
        self._timer = None


def descriptors(max_connections: int) -> int:
    """How many connections this process may hold, after asking for the file descriptors of twice as many.

    No more than that: what the kernel has accepted and nobody has looked at yet must find an end somewhere.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * max_connections + SPARE
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(max_connections, max(1, soft - SPARE))


Scope = Mapping[str, Any]

KEY = "trimtab.client"
"""In a request's scope: the common names of the certificate that was shown and found good.

`trimtab.runtime.gunicorn_patches` puts it there.
"""


def shown(connection: Any) -> tuple[str, ...] | None:
    """The common names of the client's certificate, which the handshake has verified; None where it showed none."""
    certificate = connection.getpeercert() if connection is not None else None
    if not certificate:
        return None
    return tuple(value for part in certificate["subject"] for name, value in part if name == "commonName")


def known(name: str | None) -> Callable[[Scope], bool]:
    """Did this request come with a good certificate, one with this common name where one is given?

    False wherever nothing is told: also where another server than ours runs the application.
    """

    def knows(scope: Scope) -> bool:
        names = scope.get(KEY)
        return names is not None and (name is None or name in names)

    return knows
