"""How many clients at once, and who goes when one more comes.

gunicorn's `asgi` worker counts its connections and limits nothing; one that never asks for anything it keeps for ever.
Measured with gunicorn 27 under uvloop: 53 kB for a connection over TLS, so that whoever reaches the port could fill a
pod's memory, or its file descriptors, with silence.
"""

import asyncio
import resource
from collections.abc import Iterable
from typing import Any

from gunicorn.asgi.protocol import ASGIProtocol

SPARE = 256
"""File descriptors for everything that is no client: watches, files, the heartbeat."""

UNREAD = 1.0
"""Seconds after which answers that a client does not take count as left lying. API servers take them as they come."""


def limit(most: int) -> int:
    """Call once in the worker, before it serves; how many connections are held at the most, from then on.

    One over that number costs its place one that is ended and waits for its client's farewell, or else the one that has
    left answers lying longest, or one that has never asked for anything, or the one that has been silent longest; where
    everybody is being answered, the newcomer.

    That is `most`, or fewer where the process may not have the file descriptors. A connection that asks for nothing is
    ended after gunicorn's `keepalive`, from its first second.
    """
    most = min(most, max(1, _descriptors(most) - SPARE))
    made, lost = ASGIProtocol.connection_made, ASGIProtocol.connection_lost
    held: dict[Any, None] = {}
    silent, unread = Silent(), Unread()

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        self._arm_keepalive_timer()
        held[self] = None
        if len(held) > most:
            least = _parting(held) or unread.longest() or silent.least() or self
            del held[least]
            silent.ended(least)
            unread.ended(least)
            _dismiss(least)

    def connection_lost(self: Any, error: Exception | None) -> None:
        held.pop(self, None)
        unread.ended(self)
        lost(self, error)

    ASGIProtocol.connection_made, ASGIProtocol.connection_lost = connection_made, connection_lost
    ASGIProtocol._arm_keepalive_timer = lambda self: silent.began(self)
    ASGIProtocol._cancel_keepalive_timer = lambda self: silent.ended(self)
    _read_no_further(unread)
    return most


def _read_no_further(unread: "Unread") -> None:
    """Nothing is read from a client while its answers lie: gunicorn would parse requests until memory ends."""
    pause, resume = ASGIProtocol.pause_writing, ASGIProtocol.resume_writing

    def pause_writing(self: Any) -> None:
        unread.began(self)
        pause(self)
        self._write_paused = True
        self._pause_reading()

    def resume_writing(self: Any) -> None:
        unread.ended(self)
        resume(self)
        self._write_paused = False
        self._maybe_resume_reading()

    ASGIProtocol.pause_writing, ASGIProtocol.resume_writing = pause_writing, resume_writing


class Unread:
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


class Silent:
    """Connections that wait for a request, longest first, and their end after gunicorn's `keepalive`.

    One timer for all of them: gunicorn's own, one per connection and request, is a twentieth of a small review.
    """

    def __init__(self) -> None:
        self._since: dict[Any, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def began(self, connection: Any) -> None:
        """It waits from now on."""
        loop, seconds = connection.worker.loop, connection._keepalive
        if seconds <= 0:
            return
        self._since.pop(connection, None)
        self._since[connection] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(seconds, self._sweep, loop, seconds)

    def ended(self, connection: Any) -> None:
        """It asked for something, or is gone."""
        self._since.pop(connection, None)

    def least(self) -> Any | None:
        """Who would be missed least; None where everybody is being answered."""
        idle = [one for one in self._since if one._awaiting_request]
        return min(idle, key=lambda one: (one.req_count > 1, self._since[one]), default=None)

    def _sweep(self, loop: Any, seconds: float) -> None:
        now = loop.time()
        for connection, since in list(self._since.items()):
            if since + seconds > now:
                self._timer = loop.call_later(since + seconds - now, self._sweep, loop, seconds)
                return
            self.ended(connection)
            connection._keepalive_timeout()
        self._timer = None


def _parting(held: Iterable[Any]) -> Any | None:
    # Over TLS a client may take half a minute to say farewell.
    return next((connection for connection in held if connection._closed), None)


def _dismiss(connection: Any) -> None:
    # Ended as gunicorn ends a kept one; and at once, without waiting for a silent client to agree.
    connection._keepalive_timeout()
    connection.transport.abort()


def _descriptors(most: int) -> int:
    """How many this process may have, after asking for twice as many as it may hold connections.

    No more than that: handshakes that hang are no connections yet, and must find an end somewhere.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * most + SPARE
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
