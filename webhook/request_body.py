"""Reads a request's body from ASGI: completely or not at all, and no longer than the client waits for the response."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from trimtab.runtime.body_budget import BodyBudget

Receive = Callable[[], Awaitable[dict[str, Any]]]

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Bytes. etcd stores objects of up to 1.5 MiB, and a review contains at most two of them, so no real review is
larger."""

MAX_CHECKED_BYTES = 512 * 1024
"""Bytes of a review of a policy or a pool: its document may have 64 kB, and the review contains it up to four times,
with the old object and with the last-applied annotation of `kubectl apply` in both."""

MUTATE, VALIDATE = "/mutate", "/validate"

MAX_BYTES_BY_PATH = {MUTATE: MAX_BODY_BYTES, VALIDATE: MAX_CHECKED_BYTES}
"""The maximum size of a body, by path."""

DEFAULT_TIMEOUT_SECONDS = 10.0
"""Time for a body if the caller names none: the API server's default for a webhook."""

MAX_TIMEOUT_SECONDS = 30.0
"""The API server accepts no longer timeout."""

_MAX_DISCARDED_BYTES = 4 * MAX_BODY_BYTES
"""Bytes of an oversized body that are read and dropped: a client reads the response only after sending."""

_UNBUDGETED_BYTES = 64 * 1024
"""Bytes of a body that are read regardless of other bodies in progress: nearly every review is smaller."""


class ClientDisconnected(Exception):
    """Raised if the client disconnected before its body was complete, or sent so slowly that the server gave up."""


async def read_body(
    receive: Receive, seconds: float, budget: BodyBudget, address: str = "", max_bytes: int = MAX_BODY_BYTES
) -> bytes | None:
    """Returns the body, or None if it exceeds `max_bytes`.

    Raises `ClientDisconnected` if the client disconnected, `TooManyBodies` if there is no memory for it, `TimeoutError`
    if the body is not complete `seconds` after its first bytes. The wait for the first bytes is the server's
    (gunicorn's `timeout`): nearly every body arrives in one piece, and a timer costs more than all other work here.

    address: the client's address; the bytes count for it in `room` until the body is complete.
    """
    message = await _next_message(receive)
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return first if len(first) <= max_bytes else None
    share = _BudgetShare(budget, address)
    try:
        async with asyncio.timeout(seconds):
            return await _read_chunks(receive, first, share, max_bytes)
    finally:
        share.release_bytes()


class _BudgetShare:
    """The bytes that one unfinished body takes from the budget."""

    def __init__(self, budget: BodyBudget, address: str) -> None:
        self._room, self._address, self._size = budget, address, 0

    def take_bytes(self, size: int) -> None:
        """Raises `TooManyBodies`."""
        self._room.reserve_bytes(self._address, size, always=self._size + size <= _UNBUDGETED_BYTES)
        self._size += size

    def release_bytes(self) -> None:
        self._room.release_bytes(self._address, self._size)
        self._size = 0


async def _read_chunks(receive: Receive, first: bytes, share: _BudgetShare, max_bytes: int) -> bytes | None:
    body, size, has_more = bytearray(), 0, True
    chunk = first
    while True:
        size += len(chunk)
        if size <= max_bytes:
            share.take_bytes(len(chunk))
            body += chunk
        else:
            body.clear()
            share.release_bytes()
        if not has_more or size > _MAX_DISCARDED_BYTES:
            break
        message = await _next_message(receive)
        chunk, has_more = message.get("body", b""), message.get("more_body", False)
    return bytes(body) if size <= max_bytes else None


async def _next_message(receive: Receive) -> dict[str, Any]:
    message = await receive()
    if message["type"] != "http.request":
        raise ClientDisconnected
    return message


@lru_cache(maxsize=64)
def body_timeout(query: bytes) -> float:
    """Returns the seconds that the caller waits for a response, from `?timeout=2s` as the API server sends it.

    The default is `DEFAULT_TIMEOUT_SECONDS`, also for an unreadable value; the maximum is `MAX_TIMEOUT_SECONDS`. The
    value bounds the reading of the body.
    """
    values = parse_qs(query.decode("latin-1")).get("timeout", [""])
    try:
        seconds = _parse_duration(values[0])
    except ValueError:
        return DEFAULT_TIMEOUT_SECONDS
    return min(seconds, MAX_TIMEOUT_SECONDS) if seconds > 0 else DEFAULT_TIMEOUT_SECONDS


def _parse_duration(text: str) -> float:
    if text.endswith("ms"):
        return float(text[:-2]) / 1000
    minutes, _, seconds = text.rpartition("m")
    return float(minutes or 0) * 60 + float(seconds.removesuffix("s") or 0)
