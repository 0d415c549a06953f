"""A response is read the same however its bytes arrive, and what is not one whole response keeps no connection."""

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.metricsapi.http_response import MAX_SENT_BYTES, BadResponse, ConnectionEnded, Response

BODY = b"requests_total 5\n"
WHOLE = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n" + BODY,
    "length twice": b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\nContent-Length:17\r\n\r\n" + BODY,
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\na\r\nrequests_t\r\n7;x=y\r\notal 5\n\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n%s\r\n0\r\nA: b\r\n\r\n" % BODY,
    "lines without CR": b"HTTP/1.1 200 OK\nContent-Length: 17\n\n" + BODY,
    "no reason phrase": b"HTTP/1.1 200\r\nContent-Length: 17\r\n\r\n" + BODY,
    "interim responses": b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n" + BODY,
    "kept alive of 1.0": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 17\r\n\r\n" + BODY,
}
WHOLE["two connection headers"] = (
    b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: Upgrade\r\nContent-Length: 17\r\n\r\n" + BODY
)
ENDED = {
    "close in one of two headers": (
        b"HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nConnection: close\r\nContent-Length: 17\r\n\r\n" + BODY
    ),
    "close": b"HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 17\r\n\r\n" + BODY,
    "until the end": b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
    "of 1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 17\r\n\r\n" + BODY,
    "more than announced": b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n" + BODY + b"HTTP/1.1 200 OK\r\n",
}
BAD = {
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\nContent-Length: 18\r\n\r\n",
    "no number": b"HTTP/1.1 200 OK\r\nContent-Length: +17\r\n\r\n",
    "another version": b"HTTP/2 200 OK\r\n\r\n",
    "another encoding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "no chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    "a chunk of another size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    "an end in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "an end between chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "an end in the head": b"HTTP/1.1 200 OK\r\nContent-Le",
}


def read(sent: bytes, piece: int = 65536) -> tuple[bytes, Response]:
    """The body, and the response after it; at most `piece` bytes arrive at a time."""
    stream = io.BytesIO(sent)
    response = Response(lambda size: stream.read(min(size, piece)))
    return b"".join(response.parts()), response


@pytest.mark.parametrize("sent", WHOLE.values(), ids=WHOLE)
@given(piece=st.integers(1, 80))
def test_a_whole_response_keeps_its_connection(sent: bytes, piece: int) -> None:
    body, response = read(sent, piece)
    assert (body, response.status, response.missing_bytes, response.can_keep_connection) == (BODY, 200, 0, True)


@pytest.mark.parametrize("sent", ENDED.values(), ids=ENDED)
def test_a_response_that_says_or_breaks_its_end_keeps_no_connection(sent: bytes) -> None:
    body, response = read(sent)
    assert (body, response.can_keep_connection) == (BODY, False)


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD)
@given(piece=st.integers(1, 80))
def test_what_is_not_a_response_is_refused(sent: bytes, piece: int) -> None:
    with pytest.raises(BadResponse):
        read(sent, piece)


def test_a_body_that_ends_too_early_says_how_much_is_missing() -> None:
    _, response = read(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + BODY)
    assert (response.missing_bytes, response.can_keep_connection) == (3, False)


def test_a_connection_that_ended_before_the_first_byte_is_told_apart() -> None:
    with pytest.raises(ConnectionEnded):
        read(b"")


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"1;" + b"e" * 8000 + b"\r\na\r\n") * 6000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + bytes(40_000_000),
    ],
    ids=["extensions", "body"],
)
def test_what_is_sent_has_a_limit_with_all_that_frames_it(sent: bytes) -> None:
    with pytest.raises(BadResponse, match=str(MAX_SENT_BYTES)):
        read(sent)


def test_many_small_parts_are_refused() -> None:
    with pytest.raises(BadResponse, match="small parts"):
        read(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + bytes(60_000), piece=1)


def test_a_response_without_a_body_ends_after_its_head() -> None:
    body, response = read(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert (body, response.can_keep_connection) == (b"", True)


@given(st.binary(max_size=300), st.integers(1, 80))
def test_no_bytes_end_in_another_error(sent: bytes, piece: int) -> None:
    with contextlib.suppress(BadResponse):
        read(b"HTTP/1.1 200 OK\r\n" + sent, piece)
