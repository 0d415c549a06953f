"""Reads HTTP/1.1 requests for gunicorn: gunicorn's parser parses the head, and this module delimits the body and limits
its size.

gunicorn 27 and gunicorn_h1c 0.6.9 call Python for each chunk. They keep trailers, chunk extensions and pipelined bytes
without a limit that would protect a pod's memory. And gunicorn_h1c reads sizes modulo 2^64, and accepts lines that end
without CR. So a head is passed to the parser only if it is complete, well formed and small. A body is never passed to
it.
"""

from collections.abc import Callable
from typing import Any

from gunicorn.asgi.parser import InvalidChunkExtension, LimitRequestHeaders, LimitRequestLine, ParseError

from trimtab.runtime.body_budget import BodyBudget

MAX_HEAD_BYTES = 16 * 1024
"""The maximum size in bytes of a request line with its headers. The requests of an API server have about 400 bytes;
with a bearer token, some 2 000."""

MAX_LINE_BYTES = 4094
"""The maximum size in bytes of a request line, which is gunicorn's own default."""

MAX_CHUNKS = 10_000
"""The maximum number of chunks in one body: enough for the largest accepted body in chunks of 840 bytes. Go writes
chunks of 4 096 bytes."""

MAX_ASIDE_BYTES = 8 * 1024
"""The maximum size in bytes of all chunk extensions and trailers of a body. They are parsed and dropped."""

# Hexadecimal digits of a chunk's size: 4 GB. Parsers in C read longer ones modulo 2^64.
_SIZE_DIGITS = 8

# Decimal digits of a Content-Length, for the same reason.
_LENGTH_DIGITS = 15

_HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")

_HEAD, _LENGTH, _CHUNKS, _TRAILERS, _DONE = range(5)
"""The part of a request that is read next, in this order. After `_DONE`, the next request waits until this one is
answered."""


def framed_parser(base: type, room: BodyBudget | None = None) -> type:
    """Returns a class of parsers that use `base` (gunicorn's parser, in Python or in C) for heads and share one
    budget."""
    budget = room or BodyBudget()

    class Framed(_FramedParser, base):  # type: ignore[misc]
        """A parser that gunicorn's `asgi` protocol feeds with bytes."""

        __slots__ = _SLOTS

        def __init__(self, *, limits: dict[str, Any], **callbacks: Any) -> None:
            # The callback must not refer to this object: the garbage collector cannot see a cycle through the parser in
            # C.
            base.__init__(self, on_headers_complete=_accept_head, **limits)  # type: ignore[misc]
            self._set_up(base, budget, **callbacks)

    return Framed


def _accept_head() -> bool:
    return True


_SLOTS = (
    "_base",
    "_room",
    "_address",
    "_head_is_here",
    "_part_is_here",
    "_end_is_here",
    "_next",
    "_left",
    "_needs_line_end",
    "_chunks",
    "_aside",
    "_partial",
    "_ahead",
    "_held",
    "head",
)


class _FramedParser:
    """The code that is shared by the parser class in Python and the one in C. Its attribute names are different from
    those of gunicorn's parsers."""

    __slots__ = ()

    def _set_up(
        self: Any,
        base: type,
        budget: BodyBudget,
        *,
        on_headers_complete: Callable[[], object],
        on_body: Callable[[bytes], None],
        on_message_complete: Callable[[], None],
        address: str,
    ) -> None:
        self._base, self._room, self._address = base, budget, address
        self._head_is_here, self._part_is_here, self._end_is_here = on_headers_complete, on_body, on_message_complete
        self._held = 0
        self._partial = self._ahead = self.head = b""
        self._reset_state()

    def _reset_state(self: Any) -> None:
        self._next, self._left, self._needs_line_end, self._chunks, self._aside = _HEAD, 0, False, 0, 0

    def feed(self: Any, data: bytes) -> None:
        """Reads bytes from the client. Raises gunicorn's errors for malformed input, and `TooManyBodies` if the budget
        does not allow more bytes."""
        if self._next == _DONE:
            # A pipelined request waits until gunicorn calls `reset` after the answer.
            self._ahead += data
        else:
            self._ahead = self._read_data(data)
        held_bytes = len(self._partial) + len(self._ahead)
        if held_bytes != self._held:
            self._count_held(held_bytes)

    @property
    def is_idle(self: Any) -> bool:
        """Returns whether no byte of the next request has arrived."""
        return self._next == _HEAD and not self._partial

    def remaining(self: Any) -> bytes:
        """Returns the bytes that follow the finished message."""
        ahead: bytes = self._ahead
        return ahead

    @property
    def remaining_truncated(self) -> bool:
        """Always False, because the connection stops reading before bytes would have to be dropped."""
        return False

    def reset(self: Any) -> None:
        """Prepares for the next request. If some bytes of that request have already arrived, the caller must feed them
        again."""
        self._base.reset(self)
        self._reset_state()
        self.release()

    def release(self: Any) -> None:
        """Releases all bytes held for the client."""
        self._partial = self._ahead = self.head = b""
        if self._held:
            self._count_held(0)

    def _count_held(self: Any, held_bytes: int) -> None:
        room: BodyBudget = self._room
        more = held_bytes - self._held
        if more > 0:
            room.reserve_bytes(self._address, more)
        else:
            room.release_bytes(self._address, -more)
        self._held = held_bytes

    def _read_data(self: Any, data: bytes) -> bytes:
        """Continues reading where the last bytes ended. Returns the bytes that follow the request."""
        if self._partial:
            data, self._partial = self._partial + data, b""
        if self._next == _HEAD:
            end = self._head_end(data)
            if not end:
                self._partial = data
                return b""
            self._read_head(data[:end])
            data = data[end:]
        ahead = data
        if self._next == _LENGTH:
            ahead = self._read_counted(data) if data else b""
        elif self._next != _DONE:
            ahead = self._read_chunks(data)
        return ahead

    def _head_end(self: Any, data: bytes) -> int:
        """Returns the offset at which the body begins; 0 if the head is not complete. Raises an error if the head is
        not valid."""
        end = data.find(b"\r\n\r\n") + 4
        head = data[:end] if end > 3 else data
        if len(head) > MAX_HEAD_BYTES:
            if b"\r\n" not in head[: MAX_LINE_BYTES + 2]:
                raise LimitRequestLine("Request line is too large")
            raise LimitRequestHeaders(f"Request line and headers are over {MAX_HEAD_BYTES} bytes")
        # Parsers disagree about a bare LF, which request smuggling exploits (RFC 9112, section 2.2).
        if head.count(b"\n") != head.count(b"\r\n"):
            raise ParseError("A line ends with LF alone")
        # Folded headers are obsolete (RFC 9112, section 5.2).
        if b"\r\n " in head or b"\r\n\t" in head:
            raise ParseError("A header is folded")
        return end if end > 3 else 0

    def _read_head(self: Any, head: bytes) -> None:
        self._base.feed(self, head)
        self.head = head
        if not self.is_complete:
            raise ParseError("The request line is missing")
        chunked, length = self.is_chunked, self.content_length or 0
        if length or b"ontent-" in head:
            for name, value in self.headers:
                if len(value) > _LENGTH_DIGITS and name.lower() == b"content-length":
                    raise ParseError("Content-Length is too large")
        if chunked:
            self._next = _CHUNKS
        elif length:
            self._next, self._left = _LENGTH, length
        else:
            self._next = _DONE
        self._head_is_here()
        if self._next == _DONE:
            self._end_is_here()

    def _read_counted(self: Any, data: bytes) -> bytes:
        missing = self._left
        if len(data) < missing:
            self._left = missing - len(data)
            self._part_is_here(data)
            return b""
        self._next, self._left = _DONE, 0
        self._part_is_here(data if len(data) == missing else data[:missing])
        self._end_is_here()
        return data[missing:]

    def _read_chunks(self: Any, data: bytes) -> bytes:
        parts: list[bytes] = []
        offset = 0
        while self._next == _CHUNKS:
            if self._left:
                part = data[offset : offset + self._left]
                parts.append(part)
                offset += len(part)
                self._left -= len(part)
                self._needs_line_end = True
            if self._left or len(data) - offset < 2:
                break
            if self._needs_line_end:
                if data[offset : offset + 2] != b"\r\n":
                    raise ParseError("Missing CRLF after a chunk")
                offset += 2
                self._needs_line_end = False
            end = self._line_end(data, offset)
            if end < 0:
                break
            self._read_size(data[offset:end])
            offset = end + 2
        if parts:
            # One piece for all chunks that arrived together: the application is called for each piece.
            self._part_is_here(b"".join(parts))
        if self._next == _TRAILERS:
            return bytes(self._read_trailers(data, offset))
        self._partial = data[offset:]
        return b""

    def _read_size(self: Any, line: bytes) -> None:
        size, _, extension = line.partition(b";")
        # `int(size, 16)` would also accept a sign, spaces and underscores (RFC 9112, section 7.1 has only hexadecimal
        # digits).
        if not 0 < len(size) <= _SIZE_DIGITS or not _HEXADECIMAL.issuperset(size):
            raise ParseError("Invalid chunk size")
        if b"\r" in extension or b"\n" in extension:
            raise InvalidChunkExtension("Invalid chunk extension: bare CR or LF")
        self._set_aside(len(line) - len(size))
        self._left = int(size, 16)
        self._chunks += 1
        if self._chunks > MAX_CHUNKS:
            raise ParseError(f"The body has more than {MAX_CHUNKS} chunks")
        if not self._left:
            self._next = _TRAILERS

    def _read_trailers(self: Any, data: bytes, offset: int) -> bytes:
        while (end := self._line_end(data, offset)) >= 0:
            line, offset = data[offset:end], end + 2
            if not line:
                self._next = _DONE
                self._end_is_here()
                return data[offset:]
            # Trailers are checked and dropped: Trimtab needs none, and a malformed one shows that the framing is
            # broken.
            if b":" not in line or b"\r" in line or b"\n" in line or line[:1] in b" \t":
                raise ParseError("Invalid trailer")
            self._set_aside(len(line) + 2)
        self._partial = data[offset:]
        return b""

    def _line_end(self: Any, data: bytes, start: int) -> int:
        """Returns the offset of the end of the line that begins at `start`; -1 if its end has not arrived yet."""
        longest = start + _SIZE_DIGITS + MAX_ASIDE_BYTES - self._aside
        # The search is bounded: a client that sends an endless line must not cost more with every piece.
        end = data.find(b"\r\n", start, longest + 2)
        if end < 0 and len(data) >= longest + 2:
            self._set_aside(MAX_ASIDE_BYTES + 1)
        return end

    def _set_aside(self: Any, size: int) -> None:
        self._aside += size
        if self._aside > MAX_ASIDE_BYTES:
            if self._next == _TRAILERS:
                raise LimitRequestHeaders(f"Trailers and chunk extensions are over {MAX_ASIDE_BYTES} bytes")
            raise InvalidChunkExtension(f"Chunk extensions are over {MAX_ASIDE_BYTES} bytes")
