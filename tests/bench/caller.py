"""Calls the webhook with reviews that are not all the same: what a load client with one body cannot.

    python -m tests.bench.caller URL BODY COUNT [TEXT…]

Each TEXT in the body is replaced in every review by another one of its length. Eight connections, kept; prints one
line of JSON: how many were answered, how many were not.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

CONNECTIONS = 8
_ALPHABET = b"bcdfghjklmnpqrstvwxz2456789"


def main() -> None:
    url, body, count, *texts = sys.argv[1:]
    parts, plain = urlsplit(url), Path(body).read_bytes()
    share = int(count) // CONNECTIONS
    callers = [_Caller(parts.netloc, plain, share, [text.encode() for text in texts]) for _ in range(CONNECTIONS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    print(json.dumps({"answered": sum(c.answered for c in callers), "errors": sum(c.errors for c in callers)}))


class _Caller(threading.Thread):
    def __init__(self, netloc: str, plain: bytes, count: int, texts: list[bytes]) -> None:
        super().__init__()
        self._netloc, self._plain, self._count, self._texts = netloc, plain, count, texts
        # Another draw in every run: what a run before sent is remembered by the server.
        self._random = random.Random()
        self.answered = self.errors = 0

    def run(self) -> None:
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(self._netloc, timeout=20, context=trust)
        for _ in range(self._count):
            try:
                connection.request("POST", "/mutate?timeout=10s", self._body(), {"Content-Type": "application/json"})
                reply = connection.getresponse()
                reply.read()
                self.answered += reply.status == 200
                self.errors += reply.status != 200
            except (OSError, http.client.HTTPException):
                self.errors += 1
                connection.close()
        connection.close()

    def _body(self) -> bytes:
        body = self._plain
        for text in self._texts:
            body = body.replace(text, bytes(self._random.choices(_ALPHABET, k=len(text))))
        return body


if __name__ == "__main__":
    main()
