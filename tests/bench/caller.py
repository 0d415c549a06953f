"""Calls the webhook with reviews that are not all the same: what a load client with one body cannot.

    python -m tests.bench.caller URL PLAN COUNT

PLAN is a file that `tests.bench.arrivals` writes: bodies, how many pods of 100 are of each, and which texts are others
in each review. Eight connections, kept; prints one line of JSON: how many were answered, how many were not.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONNECTIONS = 8
_LETTERS, _DIGITS = b"bcdfghjklmnpqrstvwxz2456789", b"0123456789"


def main() -> None:
    url, plan, count = sys.argv[1:]
    address, parts = urlsplit(url).netloc, [_Part(**part) for part in json.loads(Path(plan).read_text())]
    callers = [_Caller(address, parts, int(count) // CONNECTIONS) for _ in range(CONNECTIONS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    print(json.dumps({"answered": sum(c.answered for c in callers), "errors": sum(c.errors for c in callers)}))


class _Part:
    """Reviews of one kind: the fields of `tests.bench.arrivals.Arrivals`, with the body as a file."""

    def __init__(
        self,
        *,
        pods: int,
        body: str,
        fresh: list[str],
        fresh_in_group: list[str],
        group: int,
        choices: dict[str, list[str]],
    ) -> None:
        # Of a group all come at once, so it is drawn less often.
        self.weight, self._group, self._body = pods / group, group, Path(body).read_bytes()
        self._fresh, self._in_group = _encoded(fresh), _encoded(fresh_in_group)
        self._choices = [(text.encode(), _encoded(others)) for text, others in choices.items()]

    def draw_group(self, dice: random.Random) -> Iterator[bytes]:
        """Yields the bodies of one group."""
        common = _with_others(self._body, self._in_group, dice)
        for _ in range(self._group):
            body = _with_others(common, self._fresh, dice)
            for text, others in self._choices:
                body = body.replace(text, dice.choice(others))
            yield body


def _encoded(texts: list[str]) -> list[bytes]:
    return [text.encode() for text in texts]


def _with_others(body: bytes, texts: list[bytes], dice: random.Random) -> bytes:
    for text in texts:
        body = body.replace(text, bytes(dice.choices(_DIGITS if text.isdigit() else _LETTERS, k=len(text))))
    return body


class _Caller(threading.Thread):
    def __init__(self, netloc: str, parts: list[_Part], count: int) -> None:
        super().__init__()
        self._netloc, self._parts, self._count = netloc, parts, count
        # Another draw in every run: what a run before sent is remembered by the server.
        self._random = random.Random()
        self.answered = self.errors = 0

    def run(self) -> None:
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(self._netloc, timeout=20, context=trust)
        bodies: Iterator[bytes] = self._bodies()
        for _ in range(self._count):
            try:
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/mutate?timeout=10s", next(bodies), headers)
                reply = connection.getresponse()
                reply.read()
                self.answered += reply.status == 200
                self.errors += reply.status != 200
            except (OSError, http.client.HTTPException):
                self.errors += 1
                connection.close()
        connection.close()

    def _bodies(self) -> Iterator[bytes]:
        weights: list[Any] = [part.weight for part in self._parts]
        while True:
            [part] = self._random.choices(self._parts, weights)
            yield from part.draw_group(self._random)


if __name__ == "__main__":
    main()
