"""Which parser reads HTTP: the one in C where it can be had, the one in Python anywhere else.

The one in C (gunicorn_h1c 0.6.9) halves what a small review costs, and is young. Two things are mended here, and one
that cannot be imported is done without: a webhook that is slower is better than none.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from gunicorn.asgi.protocol import ASGIProtocol

FAST, PLAIN = "fast", "python"
"""gunicorn's own words for the two."""

AHEAD = 9 * 1024 * 1024
"""Bytes of a next request that may come before the answer to the last one is done with; more ends the connection.

The parser's own 64 kB are less than one read of a socket: every second larger review lost its connection.
"""


@lru_cache
def chosen(load: Callable[[], Any] | None = None) -> str:
    """The parser that gunicorn is to use, made ready. Before the worker is forked, or in it.

    load: gives the parser in C, or raises what an import may raise.
    """
    try:
        parser = partial((load or _in_c)(), limit_remaining=AHEAD)
        parser()
    except (ImportError, TypeError):  # TypeError: a version that does not know the limit
        return PLAIN
    ASGIProtocol._h1c_protocol_class = parser
    _part_from_connections()
    return FAST


def _in_c() -> Any:
    # gunicorn looks for it in its own way, and remembers what errors it has.
    if not ASGIProtocol._check_h1c_protocol_available() or not ASGIProtocol._h1c_has_limits:
        raise ImportError("gunicorn_h1c is not there, or too old")
    return ASGIProtocol._h1c_protocol_class


def _part_from_connections() -> None:
    """Make each connection let go of its parser when it is lost.

    The parser holds its connection and is unknown to the collector: the two would stay for ever, 63 kB for each
    connection.
    """
    lost = ASGIProtocol.connection_lost

    def connection_lost(self: Any, error: Exception | None) -> None:
        lost(self, error)
        self._callback_parser = None

    ASGIProtocol.connection_lost = connection_lost
