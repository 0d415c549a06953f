"""Who is at the other end of a connection? What a client's certificate says, told with each of its requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gunicorn.asgi.protocol import ASGIProtocol

Scope = Mapping[str, Any]

KEY = "trimtab.client"
"""In a request's scope: the common names of the certificate that was shown and found good."""


def identify() -> None:
    """Call once in the worker, before it serves: gunicorn itself does not tell its application."""
    build = ASGIProtocol._build_http_scope

    def build_http_scope(self: Any, request: Any, sockname: Any, peername: Any) -> dict[str, Any]:
        scope: dict[str, Any] = build(self, request, sockname, peername)
        names = shown(self.transport.get_extra_info("ssl_object"))
        if names is not None:
            scope[KEY] = names
        return scope

    ASGIProtocol._build_http_scope = build_http_scope


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
