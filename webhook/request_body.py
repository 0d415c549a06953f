"""Read a request's body from ASGI: whole, or not at all, and never for longer than somebody waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from trimtab.runtime.body_budget import BodyBudget
from webhook.handlers import MAX_BODY

Receive = Callable[[], Awaitable[dict[str, Any]]]

DEFAULT_WAIT = 10.0
"""Seconds for a body when the caller names no time: the API server's own default for a webhook."""

LONGEST_WAIT = 30.0
"""Seconds; the API server accepts no longer timeout."""

_DRAINED = 4 * MAX_BODY
"""Bytes of an oversized body that are read and dropped: a client reads our answer only after sending."""

_ALWAYS = 64 * 1024
"""Bytes of a body that are read however many others are under way: nearly every review is smaller."""


class ClientDisconnected(Exception):
    """The client left before its body was complete, or sent so little of it that the server gave up."""


async def read(
    receive: Receive, seconds: float, room: BodyBudget, address: str = "", max_bytes: int = MAX_BODY
) -> bytes | None:
    """The body; None when it is over `max_bytes`.

    Raises `ClientDisconnected` when the client left, `TooManyBodies` when there is no room for it, `TimeoutError`
    when the body is not complete `seconds` after its first bytes. Those alone are the server's to wait for
    (gunicorn's `timeout`): nearly every body comes in one piece, and arming a timer costs more than all else here.

    address: the client's; what is held counts for it in `room` until the body is complete.
    """
    message = await _next(receive)
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return first if len(first) <= max_bytes else None
    held = _Held(room, address)
    try:
        async with asyncio.timeout(seconds):
            return await _rest(receive, first, held, max_bytes)
    finally:
        held.release()


class _Held:
    """What one unfinished body counts for in the account."""

    def __init__(self, room: BodyBudget, address: str) -> None:
        self._room, self._address, self._size = room, address, 0

    def add(self, size: int) -> None:
        """Raises `TooManyBodies`."""
        self._room.hold(self._address, size, always=self._size + size <= _ALWAYS)
        self._size += size

    def release(self) -> None:
        self._room.release(self._address, self._size)
        self._size = 0


async def _rest(receive: Receive, first: bytes, held: _Held, max_bytes: int) -> bytes | None:
    body, size, more = bytearray(), 0, True
    chunk = first
    while True:
        size += len(chunk)
        if size <= max_bytes:
            held.add(len(chunk))
            body += chunk
        else:
            body.clear()
            held.release()
        if not more or size > _DRAINED:
            break
        message = await _next(receive)
        chunk, more = message.get("body", b""), message.get("more_body", False)
    return bytes(body) if size <= max_bytes else None


async def _next(receive: Receive) -> dict[str, Any]:
    message = await receive()
    if message["type"] != "http.request":
        raise ClientDisconnected
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
