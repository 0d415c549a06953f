"""A small API server in memory, for the faults that the real one cannot be made to show on demand.

It keeps Nodes: paged lists, watches from any version, bookmarks. A fault is said in a sentence before it happens:
`fail(429, retry_after=1)`, `cut_mid_line()`, `expire()`.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import ApiClient, Configuration

from trimtab.kube.client import Client, Deadlines

Object = dict[str, Any]


class FakeApi:
    """Everything is done under one lock; `asked` has the query of every request, `at` when it came."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.version = 100
        self.objects: dict[str, Object] = {}
        self.events: list[tuple[int, str]] = []
        self.oldest = 0
        self.asked: list[dict[str, str]] = []
        self.at: list[float] = []
        self.faults: list[tuple[int, dict[str, str], bytes]] = []
        self.cut = False
        self.raw: list[bytes] = []
        self.ends = 0
        self.streaming = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> FakeApi:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_streams()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def client(self, deadlines: Deadlines | None = None) -> Client:
        configuration = Configuration(host=self.url, retries=False)  # type: ignore[arg-type]
        return Client(ApiClient(configuration), deadlines)

    # ── what stands in it ────────────────────────────────────────────────────────────────────────────

    def put(self, name: str, **metadata: Any) -> None:
        with self.lock:
            kind = "MODIFIED" if name in self.objects else "ADDED"
            self.version += 1
            manifest = {"metadata": {"name": name, "resourceVersion": str(self.version), **metadata}}
            self.objects[name] = manifest
            self._tell(kind, manifest)

    def drop(self, name: str) -> None:
        with self.lock:
            self.version += 1
            result = self.objects.pop(name)
            self._tell("DELETED", {"metadata": {**result["metadata"], "resourceVersion": str(self.version)}})

    def versions(self) -> dict[tuple[str, str], str]:
        with self.lock:
            return {("", name): result["metadata"]["resourceVersion"] for name, result in self.objects.items()}

    # ── faults ───────────────────────────────────────────────────────────────────────────────────────

    def fail(self, status: int, times: int = 1, retry_after: int | None = None, body: bytes = b"") -> None:
        """The next requests are answered like this."""
        headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
        with self.lock:
            self.faults += [(status, headers, body)] * times

    def expire(self) -> None:
        """All versions so far are no longer kept."""
        with self.lock:
            self.oldest = self.version
            self.events.clear()

    def cut_mid_line(self) -> None:
        """Open streams end within the next event."""
        with self.lock:
            self.cut = True

    def say(self, line: bytes) -> None:
        """Open streams bring these very bytes."""
        with self.lock:
            self.raw.append(line)
            self.lock.notify_all()

    def end_streams(self) -> None:
        with self.lock:
            self.ends += 1
            self.lock.notify_all()

    def bookmark(self) -> None:
        with self.lock:
            self.version += 1
            self._tell("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def _tell(self, kind: str, result: Object) -> None:
        self.events.append((self.version, json.dumps({"type": kind, "object": result})))
        self.lock.notify_all()

    # ── answering ────────────────────────────────────────────────────────────────────────────────────

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are two writes: the second one waits for no acknowledgement of the first.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
                with api.lock:
                    api.asked.append(query)
                    api.at.append(time.monotonic())
                    fault = api.faults.pop(0) if api.faults else None
                if fault:
                    self._answer(fault[0], fault[2] or _status(fault[0]), fault[1])
                elif "watch" in query:
                    self._stream(query)
                else:
                    self._list(query)

            def _list(self, query: dict[str, str]) -> None:
                start, limit = int(query.get("continue", 0)), int(query.get("limit", 500))
                with api.lock:
                    names = sorted(api.objects)
                    items = [api.objects[name] for name in names[start : start + limit]]
                    more = str(start + limit) if start + limit < len(names) else ""
                    meta = {"resourceVersion": str(api.version), **({"continue": more} if more else {})}
                self._answer(200, json.dumps({"metadata": meta, "items": items}).encode())

            def _stream(self, query: dict[str, str]) -> None:
                initial = "sendInitialEvents" in query
                since = api.version if initial else int(query["resourceVersion"])
                if initial and not api.streaming:
                    self._answer(422, _status(422))
                    return
                ends = api.ends  # before the head goes out: who has seen it may end the stream
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                if initial:
                    self._initial()
                elif since < api.oldest:
                    self._chunk(json.dumps({"type": "ERROR", "object": json.loads(_status(410))}).encode() + b"\n")
                    self._chunk(b"")
                    return
                self._follow(since, ends)

            def _initial(self) -> None:
                for result in list(api.objects.values()):
                    self._chunk(json.dumps({"type": "ADDED", "object": result}).encode() + b"\n")
                note = {"k8s.io/initial-events-end": "true"}
                meta = {"resourceVersion": str(api.version), "annotations": note}
                self._chunk(json.dumps({"type": "BOOKMARK", "object": {"metadata": meta}}).encode() + b"\n")

            def _follow(self, since: int, ends: int) -> None:
                while True:
                    with api.lock:
                        rows = [(version, line) for version, line in api.events if version > since]
                        if not rows and not api.raw and ends == api.ends:
                            api.lock.wait(0.5)
                            continue
                        raw, api.raw = api.raw, []
                        cut, ended = api.cut and bool(rows), ends != api.ends
                        api.cut = api.cut and not cut
                    for version, line in rows:
                        self._chunk(line.encode()[:25] if cut else line.encode() + b"\n")
                        since = version
                        if cut:
                            break
                    for line in raw:
                        self._chunk(line)
                    if cut or ended:
                        self._chunk(b"")
                        return

            def _chunk(self, data: bytes) -> None:
                try:
                    self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                except OSError:
                    self.close_connection = True

            def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler


def _status(code: int) -> bytes:
    reason = {410: "Expired", 429: "TooManyRequests"}.get(code, "")
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": f"played: {code}"}).encode()
