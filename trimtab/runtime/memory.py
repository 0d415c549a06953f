"""What a TLS connection costs in memory, and how it comes back.

Measured with gunicorn 27 on CPython 3.11 and 3.13: a connection leaves 280 kB behind in a cycle of
few objects, so the collector, which counts objects and not bytes, lets thousands of them pile up.
Probes alone open that many in some hours.
"""

import asyncio
import gc
import ssl
from asyncio import sslproto
from collections.abc import Callable

BUFFER = 32 * 1024
"""Bytes of read buffer per TLS connection: two records. asyncio's own 256 kB are for bulk transfer."""

SWEEP_EVERY = 64
"""New connections between two collections: about 4 MB of garbage at most, some milliseconds each."""


def settle() -> None:
    """Call once when everything is loaded: what is there now is kept out of every later collection."""
    # No documented way leads to this size; the attribute has been there from 3.11 to 3.14.
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = BUFFER
    gc.collect()
    gc.freeze()


def sweep(context: ssl.SSLContext, every: int = SWEEP_EVERY) -> None:
    """Collect garbage after each `every` handshakes of this server context, on its event loop."""
    choose: Callable[..., None] | None = context.sni_callback  # type: ignore[assignment]
    handshakes = 0

    def counted(connection: ssl.SSLObject, name: str | None, front: ssl.SSLContext) -> None:
        nonlocal handshakes
        handshakes += 1
        if handshakes % every == 0:
            asyncio.get_running_loop().call_soon(gc.collect)
        if choose:
            choose(connection, name, front)

    context.sni_callback = counted
