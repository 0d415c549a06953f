"""A server that says one watch event after the other, as fast as it is read: plain HTTP, one chunk an event."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class Stub:
    """Answers the first list with one page of `pods`, the watch after it with `count` changes of them in turn."""

    def __init__(self, pods: list[dict[str, Any]], count: int) -> None:
        self._pods = pods
        self._count = count
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def start(self) -> None:
        self._thread.start()

    def _serve(self) -> None:
        events = [_line(pod, number) for number, pod in enumerate(self._pods)]
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._talk, args=(connection, events), daemon=True).start()

    def _talk(self, connection: socket.socket, events: list[bytes]) -> None:
        with connection:
            text = b""
            while data := connection.recv(65536):
                text += data
                while b"\r\n\r\n" in text:
                    head, _, text = text.partition(b"\r\n\r\n")
                    self._answer(connection, head, events)

    def _answer(self, connection: socket.socket, head: bytes, events: list[bytes]) -> None:
        if b"watch=1" in head or b"watch=true" in head:  # ours, and the official client's
            connection.sendall(HEAD)
            for number in range(self._count):
                connection.sendall(events[number % len(events)])
            if b"watch=true" in head:  # the official client reads to the end before it lets go
                connection.sendall(b"0\r\n\r\n")
            return
        body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": self._pods}).encode()
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def _line(pod: dict[str, Any], number: int) -> bytes:
    pod = {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(1000 + number)}}
    line = json.dumps({"type": "MODIFIED", "object": pod}, separators=(",", ":")).encode() + b"\n"
    return f"{len(line):x}\r\n".encode() + line + b"\r\n"
