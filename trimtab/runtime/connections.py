"""How many clients at once, and who goes when one more comes.

gunicorn's `asgi` worker counts its connections and limits nothing; one that never asks for anything it keeps for ever.
Measured with gunicorn 27 under uvloop: 53 kB for a connection over TLS, so that whoever reaches the port could fill a
pod's memory, or its file descriptors, with silence.
"""

import resource
from typing import Any

from gunicorn.asgi.protocol import ASGIProtocol

SPARE = 256
"""File descriptors for everything that is no client: watches, files, the heartbeat."""


def limit(most: int) -> int:
    """Call once in the worker, before it serves; how many connections are held at the most, from then on.

    One over that number costs the connection its place that has never asked for anything, or else the one that has
    been silent longest; where everybody is being answered, the newcomer's. That is `most`, or fewer where the process
    may not have the file descriptors. A connection that asks for nothing is ended after gunicorn's `keepalive`, from
    its first second.
    """
    most = min(most, max(1, _descriptors(most) - SPARE))
    made, lost = ASGIProtocol.connection_made, ASGIProtocol.connection_lost
    held: dict[Any, None] = {}

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        self._arm_keepalive_timer()
        held[self] = None
        if len(held) > most:
            _dismiss(_least(held) or self)

    def connection_lost(self: Any, error: Exception | None) -> None:
        held.pop(self, None)
        lost(self, error)

    ASGIProtocol.connection_made, ASGIProtocol.connection_lost = connection_made, connection_lost
    return most


def _least(held: dict[Any, None]) -> Any | None:
    """Who would be missed least; None where everybody is being answered."""
    idle = [one for one in held if one._awaiting_request and one._keepalive_handle]
    return min(idle, key=lambda one: (one.req_count > 1, one._keepalive_handle.when()), default=None)


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
