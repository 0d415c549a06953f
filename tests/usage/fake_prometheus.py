"""A Prometheus that answers what it was told to, on loopback."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

Asked = tuple[str, dict[str, str], dict[str, str]]
"""path, parameters, headers."""
Answer = tuple[int, Any]


class Server:
    """What it was asked, and how it answers."""

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        self.answer = answer
        self.url = ""


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[Server]:
    it = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self.reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def reply(self, form: str) -> None:
            query = {name: values[-1] for name, values in parse_qs(form).items()}
            requests = (urlsplit(self.path).path, query, dict(self.headers))
            it.asked.append(requests)
            status, text = it.answer(requests)
            body = text if isinstance(text, bytes) else json.dumps(text).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        it.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield it
        finally:
            server.shutdown()
            thread.join()


def matrix(*actual_result: tuple[dict[str, str], list[tuple[float, float]]]) -> Any:
    """A range's answer."""
    result = [{"metric": metric, "values": [[at, str(value)] for at, value in rows]} for metric, rows in actual_result]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def vector(*actual_result: dict[str, str]) -> Any:
    result = [{"metric": metric, "value": [0, "1"]} for metric in actual_result]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def labels(*values: str) -> Any:
    return {"status": "success", "data": list(values)}
