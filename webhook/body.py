"""Read a request's body from ASGI: whole, or not at all, and never for longer than somebody waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from webhook.edge import MAX_BODY

Receive = Callable[[], Awaitable[dict[str, Any]]]

DEFAULT_WAIT = 10.0
"""Seconds for a body when the caller names no time: the API server's own default for a webhook."""

LONGEST_WAIT = 30.0
"""Seconds; the API server accepts no longer timeout."""

_DRAINED = 4 * MAX_BODY
"""Bytes of an oversized body that are read and dropped: a client reads our answer only after sending."""


_ALWAYS = 64 * 1024
"""Bytes of a body that are read however many others are under way: nearly every review is smaller."""

MOST_UNDER_WAY = 64 * 1024 * 1024
"""Bytes of unfinished bodies held at once: a pod's memory must not be for whoever sends half of something."""


class Full(Exception):
    """Too much of other bodies is under way to hold this one, too."""


class Room:
    """What may still be held of bodies that come in pieces. For one event loop."""

    def __init__(self, most: int = MOST_UNDER_WAY) -> None:
        self.left = most

    def hold(self, held: int, chunk: int) -> int:
        """Take so much more for a body of which `held` bytes are here; what was taken. Raises `Full`."""
        if held + chunk > _ALWAYS and chunk > self.left:
            raise Full
        self.left -= chunk
        return chunk


class Gone(Exception):
    """The client left before its body was complete, or sent so little of it that the server gave up."""


async def read(receive: Receive, seconds: float, room: Room) -> bytes | None:
    """The body; None when it is over `MAX_BODY`.

    Raises `Gone` when the client left, `Full` when there is no room for it, `TimeoutError` when the body is
    not complete `seconds` after its first bytes. Those alone are the server's to wait for (gunicorn's `timeout`):
    nearly every body comes in one piece, and arming a timer costs more than all else here.
    """
    message = await _next(receive)
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return first if len(first) <= MAX_BODY else None
    async with asyncio.timeout(seconds):
        return await _rest(receive, bytearray(first), room)


async def _rest(receive: Receive, held: bytearray, room: Room) -> bytes | None:
    size, more, taken = len(held), True, 0
    try:
        while more and size <= _DRAINED:
            message = await _next(receive)
            chunk = message.get("body", b"")
            size, more = size + len(chunk), message.get("more_body", False)
            if size <= MAX_BODY:
                taken += room.hold(len(held), len(chunk))
                held += chunk
    finally:
        room.left += taken
    return bytes(held) if size <= MAX_BODY else None


async def _next(receive: Receive) -> dict[str, Any]:
    message = await receive()
    if message["type"] != "http.request":
        raise Gone
    return message


@lru_cache(maxsize=64)
def allowed(query: bytes) -> float:
    """Seconds the caller waits for an answer, from `?timeout=2s` as the API server writes it.

    What is absent or unreadable means `DEFAULT_WAIT`; nothing is longer than `LONGEST_WAIT`. This
    bounds the reading of the body, and is the place to hand a deadline on to the deciding function.
    """
    values = parse_qs(query.decode("latin-1")).get("timeout", [""])
    try:
        seconds = _duration(values[0])
    except ValueError:
        return DEFAULT_WAIT
    return min(seconds, LONGEST_WAIT) if seconds > 0 else DEFAULT_WAIT


def _duration(text: str) -> float:
    if text.endswith("ms"):
        return float(text[:-2]) / 1000
    minutes, _, seconds = text.rpartition("m")
    return float(minutes or 0) * 60 + float(seconds.removesuffix("s") or 0)
