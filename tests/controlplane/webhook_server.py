"""An admission webhook on loopback whose answers the test gives.

`E2E_WEBHOOK_HOST` has it listen where somebody's cluster can reach it, such as the address of a bridge.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tests.controlplane.certificates import Authority
from tests.controlplane.http_handlers import handler_of

Patch = Sequence[Mapping[str, Any]]
Decide = Callable[[dict[str, Any]], Patch]


class Serving(Protocol):
    """What a webhook configuration has to know of a server."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def ca_bundle(self) -> str: ...


class WebhookServer:
    """Answers every review with the patch `decide` gives for the object, and remembers what it was asked.

    `calls`: the requests of the reviews, in the order they came: `calls[0]["object"]` is what the first call
    saw.
    """

    path = "/mutate"

    def __init__(self, decide: Decide | Patch, names: Sequence[str] = ()) -> None:
        """`names`: other names than localhost it is called by, such as NAME.NAMESPACE.svc."""
        self.decide: Decide = decide if callable(decide) else lambda _: decide
        self.calls: list[dict[str, Any]] = []
        self.host = os.environ.get("E2E_WEBHOOK_HOST") or "127.0.0.1"
        with tempfile.TemporaryDirectory() as folder:
            authority = Authority(Path(folder), "webhook-ca")
            pair = authority.server("webhook", [self.host, *names])
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(pair.certificate, pair.key)
            self.ca_bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
        self._server = ThreadingHTTPServer((self.host, 0), handler_of(self._respond))
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> WebhookServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, review: dict[str, Any]) -> dict[str, Any]:
        request = review["request"]
        self.calls.append(request)
        patch = list(self.decide(request["object"]))
        response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
        if patch:
            encoded = base64.b64encode(json.dumps(patch).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": encoded}
        return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}

    def _respond(self, method: str, path: str, body: bytes) -> bytes:
        return json.dumps(self.answer(json.loads(body))).encode()
