"""Requests as gunicorn's connections read them: both of its parsers, with bounds around them."""

import shutil
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from gunicorn.asgi.parser import PythonProtocol
from hypothesis import given
from hypothesis import strategies as st

from trimtab.runtime.body_budget import BodyBudget, TooManyBodies
from trimtab.runtime.http_framing import MAX_ASIDE_BYTES, MAX_CHUNKS, MAX_HEAD_BYTES, framed_parser

try:
    from gunicorn_h1c import H1CProtocol
except ImportError:
    PARSERS: list[type] = [PythonProtocol]
else:
    PARSERS = [H1CProtocol, PythonProtocol]
BASES = pytest.mark.parametrize("base", PARSERS)
CHUNKED = b"POST /mutate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Reader:
    """A parser, and what it called back."""

    base: type
    room: BodyBudget = field(default_factory=BodyBudget)
    parts: list[bytes] = field(default_factory=list)
    heads: int = 0
    ends: int = 0

    def __post_init__(self) -> None:
        def head() -> None:
            self.heads += 1

        def end() -> None:
            self.ends += 1

        self.parser: Any = framed_parser(self.base, self.room)(
            limits={}, on_headers_complete=head, on_body=self.parts.append, on_message_complete=end, address="10.0.0.1"
        )

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    def feed(self, *pieces: bytes) -> "Reader":
        for piece in pieces:
            self.parser.feed(piece)
        return self


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_both_parsers_are_tested_where_a_compiler_is() -> None:
    assert len(PARSERS) == 2, "install the extra `fast`"


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x" % len(data) + extension + b"\r\n" + data + b"\r\n"


def counted(length: str) -> bytes:
    return f"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


@BASES
@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    extension=st.sampled_from([b"", b";a=b"]),
    trailers=st.sampled_from([b"", b"X-Sum: 1\r\n"]),
    cuts=st.lists(st.integers(0, 400), max_size=9),
    ahead=st.sampled_from([b"", b"GET /healthz HTTP/1.1\r\n"]),
)
def test_however_a_body_is_cut_it_is_the_same_body_and_what_follows_is_left(
    base: type, chunks: list[bytes], extension: bytes, trailers: bytes, cuts: list[int], ahead: bytes
) -> None:
    frames = b"".join(chunk(data, extension) for data in chunks) + b"0\r\n" + trailers + b"\r\n"
    whole = CHUNKED + frames + ahead
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    reader = Reader(base).feed(*(whole[a:b] for a, b in pairwise(edges)))
    assert (reader.body, reader.heads, reader.ends) == (b"".join(chunks), 1, 1)
    assert reader.parser.remaining() == ahead


@BASES
@given(body=st.binary(max_size=60), cuts=st.lists(st.integers(0, 200), max_size=6))
def test_a_counted_body_is_the_same_however_it_is_cut(base: type, body: bytes, cuts: list[int]) -> None:
    whole = counted(str(len(body))) + body + b"GET"
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    reader = Reader(base).feed(*(whole[a:b] for a, b in pairwise(edges)))
    assert (reader.body, reader.ends, reader.parser.remaining()) == (body, 1, b"GET")


@BASES
def test_the_next_request_is_read_after_a_reset(base: type) -> None:
    reader = Reader(base).feed(counted("2") + b"{}" + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    ahead = reader.parser.remaining()
    reader.parser.reset()
    reader.feed(ahead)
    assert (reader.parser.method, reader.parser.path, reader.ends) == (b"GET", b"/healthz", 2)


MALFORMED = {
    "a length that wraps": counted(str(2**64 + 2)) + b"{}",
    "a length that nobody can send": counted("9" * 400),
    "a length with many zeros": counted("0" * 30 + "2") + b"{}",
    "a chunk size that wraps": CHUNKED + b"10000000000000002\r\n{}\r\n0\r\n\r\n",
    "a chunk size with a sign": CHUNKED + b"+2\r\n{}\r\n0\r\n\r\n",
    "a chunk size with a space": CHUNKED + b" 2\r\n{}\r\n0\r\n\r\n",
    "a chunk size with a prefix": CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n",
    "no chunk size": CHUNKED + b"\r\n{}\r\n0\r\n\r\n",
    "a chunk that is too long": CHUNKED + b"2\r\n{}}\r\n0\r\n\r\n",
    "a chunk size that ends with LF": CHUNKED + b"2\n{}\r\n0\r\n\r\n",
    "CR in an extension": CHUNKED + b"2;a\rb\r\n{}\r\n0\r\n\r\n",
    "LF in an extension": CHUNKED + b"2;a\nb\r\n{}\r\n0\r\n\r\n",
    "a folded trailer": CHUNKED + b"0\r\nA: b\r\n c\r\n\r\n",
    "a trailer that is none": CHUNKED + b"0\r\nnonsense\r\n\r\n",
    "a header that ends with LF": b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "a request line that ends with LF": b"GET / HTTP/1.1\nHost: x\r\n\r\n",
    "a whole head of bare LF": b"GET / HTTP/1.1\nHost: x\n\n",
    "a folded header": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "a header folded by a tab": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n",
    "both framings": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    "empty lines alone": b"\r\n\r\n\r\n\r\n",
    "too many chunks": CHUNKED + chunk(b"x") * (MAX_CHUNKS + 1),
    "too many extensions": CHUNKED + chunk(b"x", b";" + b"e" * 1000) * 9,
    "an extension without an end": CHUNKED + b"1;" + b"e" * (MAX_ASIDE_BYTES + 100),
}


@BASES
@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_malformed_requests_raise_what_gunicorn_answers_with_400(base: type, request_bytes: bytes, size: int) -> None:
    reader = Reader(base)
    pieces = [request_bytes[at : at + size] for at in range(0, len(request_bytes), size)]
    with pytest.raises(Exception) as error:
        reader.feed(*pieces)
    assert not isinstance(error.value, TooManyBodies)
    assert type(error.value).__name__ in {
        "ParseError",
        "InvalidHeader",
        "InvalidHeaderName",
        "InvalidChunkExtension",
        "InvalidRequestLine",
        "InvalidRequestMethod",
    }
    assert reader.ends == 0


LARGE = {
    "headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 4000,
    "a header without an end": b"GET / HTTP/1.1\r\nHost: " + b"x" * MAX_HEAD_BYTES,
    "trailers": CHUNKED + b"0\r\n" + b"A: b\r\n" * 4000,
    "a trailer without an end": CHUNKED + b"0\r\nA: " + b"b" * 20_000,
    "trailers beside extensions": CHUNKED + chunk(b"x", b";" + b"e" * 5000) + b"0\r\nA: " + b"b" * 5000,
}


@BASES
@pytest.mark.parametrize("request_bytes", LARGE.values(), ids=LARGE)
def test_headers_and_trailers_over_their_bounds_raise_what_gunicorn_answers_with_431(
    base: type, request_bytes: bytes
) -> None:
    reader = Reader(base)
    with pytest.raises(Exception, match=r"over|large|[Ll]imit") as error:
        reader.feed(request_bytes)
    assert type(error.value).__name__ == "LimitRequestHeaders"
    assert reader.ends == 0


@BASES
def test_a_request_line_without_an_end_is_too_long(base: type) -> None:
    with pytest.raises(Exception, match="line") as error:
        Reader(base).feed(b"GET /" + b"a" * MAX_HEAD_BYTES)
    assert type(error.value).__name__ == "LimitRequestLine"


@BASES
def test_many_small_chunks_that_came_together_are_one_piece(base: type) -> None:
    reader = Reader(base).feed(CHUNKED + chunk(b"x") * MAX_CHUNKS)
    assert reader.parts == [b"x" * MAX_CHUNKS]


@BASES
def test_six_megabytes_of_chunks_of_one_byte_end_after_ten_thousand(base: type) -> None:
    began, reader, piece = time.process_time(), Reader(base).feed(CHUNKED), chunk(b"x") * 40_000
    with pytest.raises(Exception, match="chunks"):
        reader.feed(*[piece] * 25)
    assert time.process_time() - began < 5  # a fiftieth of it is usual; it was several seconds, and more on one loop


@BASES
def test_what_a_parser_holds_is_in_the_account_until_it_is_read_or_released(base: type) -> None:
    reader = Reader(base, BodyBudget(100_000))
    reader.feed(b"POST / HTTP/1.1\r\n")
    assert reader.room.available_bytes == 100_000 - 17
    reader.feed(b"Host: x\r\nContent-Length: 2\r\n\r\n")
    assert reader.room.available_bytes == 100_000
    reader.feed(b"{}" + b"x" * 40_000)
    assert reader.room.available_bytes == 60_000
    with pytest.raises(TooManyBodies):
        reader.feed(b"x" * 40_000)
    reader.parser.release()
    assert reader.room.available_bytes == 100_000


@BASES
def test_trailers_that_do_not_end_are_in_the_account(base: type) -> None:
    reader = Reader(base, BodyBudget(100_000)).feed(CHUNKED + b"0\r\nA: " + b"b" * 6_000)
    assert reader.room.available_bytes == 100_000 - 6_003
    reader.parser.reset()
    assert reader.room.available_bytes == 100_000


def test_one_address_cannot_take_the_room_of_all() -> None:
    room = BodyBudget(100)
    room.reserve_bytes("10.0.0.1", 50)
    with pytest.raises(TooManyBodies):
        room.reserve_bytes("10.0.0.1", 1)
    room.reserve_bytes("10.0.0.2", 50)
    with pytest.raises(TooManyBodies):
        room.reserve_bytes("10.0.0.3", 1)
    room.reserve_bytes("10.0.0.3", 9, always=True)
    room.release_bytes("10.0.0.3", 9)
    room.release_bytes("10.0.0.1", 50)
    room.reserve_bytes("10.0.0.3", 50)
