"""Run the application in its connection's own task.

gunicorn 27 gives each request a task of its own, so that an application may go on after its answer. Ours never does:
a task, a future and two turns of the loop are a twentieth of what a small review costs.
"""

from typing import Any

from gunicorn.asgi.protocol import ASGIProtocol


def apply() -> None:
    """Call once in the worker, before it serves."""

    async def serve(self: Any, request: Any, sockname: Any, peername: Any) -> Any:
        return await self._handle_http_request(request, sockname, peername)

    ASGIProtocol._serve_http_request = serve
