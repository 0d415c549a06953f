"""A thousand pods with a metrics page each, in a process of their own: TLS, kept-alive connections, gzip.

    python -m tests.bench.metrics_pods PODS CERTIFICATE KEY BODY_BYTES

Each pod has an address of loopback's and the same port, which is printed. A line `N` on standard input restarts the
container of pod N: its counters begin at zero, and its start time is another.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import random
import resource
import socket
import ssl
import sys
import time
from collections.abc import Iterator

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Encoding: gzip\r\n"
    b"Content-Length: %d\r\n\r\n"
)
CODES = ("200", "204", "301", "400", "404", "409", "500", "503")
"""Each is a series of the counter."""


def address_of(pod: int) -> str:
    """Return the address of a pod, which no other program uses."""
    return f"127.88.{pod // 250}.{pod % 250 + 1}"


def hanging_address(pod: int) -> str:
    """Return the address of a pod that accepts connections and never responds."""
    return f"127.89.{pod // 250}.{pod % 250 + 1}"


@contextlib.contextmanager
def hanging_pods(count: int, port: int) -> Iterator[None]:
    """Listen at the addresses of so many hanging pods: connections are accepted by the kernel, and nothing is read."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.ExitStack() as stack:
        for pod in range(count):
            stack.enter_context(socket.create_server((hanging_address(pod), port), backlog=128))
        yield


def rate_of(pod: int) -> float:
    """Return the requests per second of a pod: 1 to 50."""
    return 1.0 + pod * 7 % 50


class Pod:
    """The container of one pod, since its last start."""

    def __init__(self, number: int) -> None:
        self.rate = rate_of(number)
        # Containers are of all ages: their counters begin somewhere.
        self.counted_from = time.monotonic() - random.Random(number).uniform(0, 86_400)
        self.started = time.time() - 86_400

    def restart(self) -> None:
        self.counted_from, self.started = time.monotonic(), time.time()

    def render_page(self, filler: bytes) -> bytes:
        counted = self.rate * (time.monotonic() - self.counted_from)
        lines = [f'http_requests_total{{code="{code}",method="GET"}} {counted / len(CODES)!r}' for code in CODES]
        return b"%s%s\nprocess_start_time_seconds %r\n" % (filler, "\n".join(lines).encode(), self.started)


def render_filler(size: int) -> bytes:
    """Return other series of a usual page: a histogram's buckets for many paths."""
    lines = [b"# HELP http_request_duration_seconds Duration.\n# TYPE http_request_duration_seconds histogram\n"]
    random_ = random.Random(1)
    while sum(map(len, lines)) < size - 700:
        number = len(lines)
        lines.append(
            b'http_request_duration_seconds_bucket{path="/api/v1/items/%d",le="%.3f"} %d\n'
            % (number // 10, 0.005 * 2 ** (number % 10), random_.randrange(10**7))
        )
    return b"".join(lines)


async def serve_connection(pod: Pod, filler: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of a connection until the client closes it."""
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            page = gzip.compress(pod.render_page(filler), 6)
            writer.write(HEAD % len(page) + page)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve(count: int, certificate: str, key: str, size: int) -> None:
    """Listen at every pod's address, and restart containers as standard input says."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    filler, pods, port, servers = render_filler(size), [Pod(number) for number in range(count)], 0, []
    for number, pod in enumerate(pods):
        answer = functools.partial(serve_connection, pod, filler)
        server = await asyncio.start_server(answer, address_of(number), port, ssl=context)
        port = int(server.sockets[0].getsockname()[1])
        servers.append(server)  # one that nobody holds is closed
    print(port, flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        pods[int(line)].restart()


def main() -> None:
    count, certificate, key, size = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(int(count), certificate, key, int(size)))


if __name__ == "__main__":
    main()
