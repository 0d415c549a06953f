"""A request whose head is known is answered as one that is parsed: on the real server, however its bytes arrive.

`trimtab.runtime.immediate_answers` answers it without gunicorn's parser.
"""

import random
import re
import socket
from collections.abc import Iterator

import pytest

from tests.webhook.server import Server, serving
from tests.webhook.worlds import review

HEAD = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n"
JSON = b"application/json"
SEEDS = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("known-heads")) as running:
        yield running


def request(body: bytes, path: bytes = b"/mutate", kind: bytes = JSON, more: bytes = b"") -> bytes:
    return HEAD % (path, kind, more, len(body)) + body


def read_responses(sock: socket.socket, count: int) -> list[bytes]:
    """Reads so many responses, without their dates; fewer if the server closes the connection."""
    data, responses = b"", []
    while len(responses) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head) if end else None
        if length is not None and len(rest) >= int(length[1]):
            responses.append(re.sub(rb"Date: [^\r]+\r\n", b"", head + end + rest[: int(length[1])]))
            data = rest[int(length[1]) :]
            continue
        more = sock.recv(65536)
        if not more:
            break
        data += more
    return responses


def open_socket(server: Server) -> socket.socket:
    connection = server.connect()
    connection.connect()
    return connection.sock


REQUESTS = [
    request(review("u-1")),
    request(review("u-22")),
    request(review("u-1"), path=b"/mutate?timeout=10s"),
    request(review("u-1"), kind=b"text/plain"),
    request(review("u-1"), more=b"X_Underscore: 1\r\n"),
    request(review("u-1"), more=b"Expect: 100-continue\r\n"),
    request(b"{}"),
    request(b"not json"),
    request(b" " * 70_000 + review("u-3")),
    request(review("u-1"), path=b"/elsewhere"),
]


@pytest.fixture(scope="module")
def expected(server: Server) -> dict[bytes, bytes]:
    """The response to each request as the first one of a server that knows no heads, or of one that does."""
    responses = {}
    for one in REQUESTS:
        # A header that differs makes the head one that was never seen.
        fresh = one.replace(b"Host: x", b"Host: y", 1)
        sock = open_socket(server)
        sock.sendall(fresh)
        (responses[one],) = read_responses(sock, 1)
        sock.close()
    return responses


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_responses_however_the_bytes_arrive(server: Server, expected: dict[bytes, bytes], seed: int) -> None:
    draw = random.Random(seed)
    # Rejections of a route close the connection, so they come last.
    drawn = [draw.choice(REQUESTS[:-1]) for _ in range(draw.randint(1, 6))]
    drawn = [one for one in drawn if b"connection: close" not in expected[one].lower()]
    stream = b"".join(drawn)
    cuts = (
        sorted(draw.sample(range(1, len(stream)), min(draw.randint(0, 5), max(0, len(stream) - 1)))) if stream else []
    )
    sock = open_socket(server)
    if draw.random() < 0.5:
        # Whole requests, each after the response to the one before: nearly all of them are known.
        responses = []
        for one in drawn:
            sock.sendall(one)
            responses += read_responses(sock, 1)
    else:
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            sock.sendall(stream[start:end])
        responses = read_responses(sock, len(drawn))
    assert responses == [expected[one] for one in drawn]
    sock.close()


def test_a_known_head_with_a_part_of_its_body_waits_for_the_rest(server: Server, expected: dict[bytes, bytes]) -> None:
    one = REQUESTS[0]
    sock = open_socket(server)
    for _ in range(3):
        sock.sendall(one[:-5])
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.settimeout(10)
        sock.sendall(one[-5:])
        assert read_responses(sock, 1) == [expected[one]]
        sock.sendall(one)
        assert read_responses(sock, 1) == [expected[one]]
    sock.close()


def test_a_head_that_ends_its_connection_ends_it_each_time(server: Server) -> None:
    last = request(review("u-1"), more=b"Connection: close\r\n")
    for _ in range(3):
        sock = open_socket(server)
        sock.sendall(last)
        (response,) = read_responses(sock, 1)
        assert b"connection: close" in response.lower()
        assert sock.recv(1) == b""


def test_a_known_request_waits_for_the_response_to_the_one_before(server: Server, expected: dict[bytes, bytes]) -> None:
    slow, repeated_request = request(review("u-slow"), path=b"/validate"), REQUESTS[0]
    sock = open_socket(server)
    sock.sendall(repeated_request)
    assert read_responses(sock, 1) == [expected[repeated_request]]
    sock.sendall(slow)
    sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        sock.recv(1)
    sock.settimeout(10)
    sock.sendall(repeated_request)
    first, second = read_responses(sock, 2)
    assert b"u-slow" in first
    assert second == expected[repeated_request]


def test_a_known_request_behind_a_part_of_a_head_belongs_to_that_head(
    server: Server, expected: dict[bytes, bytes]
) -> None:
    repeated_request = REQUESTS[0]
    sock = open_socket(server)
    sock.sendall(repeated_request)
    assert read_responses(sock, 1) == [expected[repeated_request]]
    sock.sendall(b"GET /elsewhere HTTP/1.1\r\nX: ")
    sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        sock.recv(1)
    sock.settimeout(10)
    sock.sendall(repeated_request)
    assert read_responses(sock, 1)[0].startswith(b"HTTP/1.1 404")
