"""Speak ASGI to an application without a server."""

import asyncio
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What an application sent."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def ask(
    app: Any,
    method: str,
    path: str,
    *,
    content_type: str | None = "application/json",
    chunks: tuple[bytes, ...] = (b"",),
    query: bytes = b"",
    silent: bool = False,
) -> Heard | None:
    """One request; None when the application sent nothing. `silent` never sends the last chunk."""
    headers = [(b"content-type", content_type.encode())] if content_type is not None else []
    headers.append((b"content-length", b"%d" % sum(map(len, chunks))))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": headers,
        "server": ("localhost", 443),
    }
    return asyncio.run(_exchange(app, scope, chunks, silent))


async def exchange(app: Any, method: str, path: str, body: bytes = b"") -> int:
    """The status of one request, on the running loop."""
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "query_string": b""}
    headers = [(b"content-type", b"application/json")]
    heard = await _exchange(app, {**scope, "server": ("localhost", 443), "headers": headers}, (body,), False)
    return heard.status if heard else 0


async def _exchange(app: Any, scope: Any, chunks: tuple[bytes, ...], silent: bool) -> Heard | None:
    waiting = list(chunks)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if waiting:
            chunk = waiting.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(waiting) or silent}
        if silent:
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        return None
    headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Heard(status=sent[0]["status"], headers=headers, body=body)
