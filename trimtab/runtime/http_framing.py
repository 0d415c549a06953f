"""Reads HTTP/1.1 requests for gunicorn: its own parser reads the head, the body is framed and bounded here.

gunicorn 27 and gunicorn_h1c 0.6.9 call Python for each chunk, keep trailers, chunk extensions and whatever follows a
request without a bound that fits a pod's memory, and gunicorn_h1c reads sizes modulo 2^64 and takes lines that end
without CR. So a head reaches the parser only when it is whole, sound and small, and a body never does.
"""

from collections.abc import Callable
from typing import Any

from gunicorn.asgi.parser import InvalidChunkExtension, LimitRequestHeaders, LimitRequestLine, ParseError

from trimtab.runtime.body_budget import BodyBudget

MAX_HEAD = 16 * 1024
"""Bytes of a request line with its headers. An API server's are about 400, with a bearer token some 2 000."""

MAX_LINE = 4094
"""Bytes of a request line, as gunicorn's own default has it."""

MAX_CHUNKS = 10_000
"""Chunks of one body: the largest body that is read has this many where each holds 840 bytes. Go writes 4 096."""

MAX_ASIDE = 8 * 1024
"""Bytes of one body's chunk extensions and trailers together. Nobody reads them."""

_SIZE_DIGITS = 8
"""Hexadecimal digits of a chunk's size: 4 GB. Parsers in C read longer ones modulo 2^64."""

_LENGTH_DIGITS = 15
"""Decimal digits of a Content-Length, for the same reason."""

_HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")

_HEAD, _LENGTH, _CHUNKS, _TRAILERS, _DONE = range(5)
"""What comes next. After `_DONE` it is the next request, which waits until this one has its answer."""


def framed(base: type, room: BodyBudget | None = None) -> type:
    """The class of parsers that use `base` (gunicorn's in Python or in C) for heads and draw on one account."""
    account = room or BodyBudget()

    class Framed(_Framing, base):  # type: ignore[misc]
        """A parser that gunicorn's `asgi` protocol feeds."""

        __slots__ = _SLOTS

        def __init__(self, *, limits: dict[str, Any], **calls: Any) -> None:
            # What is called back for a head must not know this object: the parser in C is unknown to the collector.
            base.__init__(self, on_headers_complete=_only_the_head, **limits)  # type: ignore[misc]
            self._begin(base, account, **calls)

    return Framed


def _only_the_head() -> bool:
    return True


_SLOTS = (
    "_base", "_room", "_address", "_head_is_here", "_part_is_here", "_end_is_here",
    "_next", "_left", "_needs_line_end", "_chunks", "_aside", "_partial", "_ahead", "_held",
)  # fmt: skip


class _Framing:
    """What both parsers share. The names do not meet those of gunicorn's parsers."""

    __slots__ = ()

    def _begin(
        self: Any,
        base: type,
        room: BodyBudget,
        *,
        on_headers_complete: Callable[[], object],
        on_body: Callable[[bytes], None],
        on_message_complete: Callable[[], None],
        address: str,
    ) -> None:
        self._base, self._room, self._address = base, room, address
        self._head_is_here, self._part_is_here, self._end_is_here = on_headers_complete, on_body, on_message_complete
        self._held = 0
        self._partial = self._ahead = b""
        self._at_the_beginning()

    def _at_the_beginning(self: Any) -> None:
        self._next, self._left, self._needs_line_end, self._chunks, self._aside = _HEAD, 0, False, 0, 0

    def feed(self: Any, data: bytes) -> None:
        """Take what the client sent. Raises gunicorn's errors for what is malformed, `TooManyBodies` for what has no
        room."""
        if self._next == _DONE:
            self._ahead += data
        else:
            self._ahead = self._read(data)
        held = len(self._partial) + len(self._ahead)
        if held != self._held:
            self._count(held)

    def remaining(self: Any) -> bytes:
        """The bytes that follow the finished message."""
        ahead: bytes = self._ahead
        return ahead

    @property
    def remaining_truncated(self) -> bool:
        """Never: the connection stops reading before anything would have to be dropped."""
        return False

    def reset(self: Any) -> None:
        """Be ready for the next request. What has come of it already is the caller's to feed again."""
        self._base.reset(self)
        self._at_the_beginning()
        self.release()

    def release(self: Any) -> None:
        """Let go of all that is held for the client."""
        self._partial = self._ahead = b""
        if self._held:
            self._count(0)

    def _count(self: Any, held: int) -> None:
        more = held - self._held
        if more > 0:
            self._room.hold(self._address, more)
        else:
            self._room.release(self._address, -more)
        self._held = held

    def _read(self: Any, data: bytes) -> bytes:
        """Read on from where the last bytes ended; what follows the request."""
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
        """Where the body begins; 0 where the head is not whole. Raises what makes it unsound."""
        end = data.find(b"\r\n\r\n") + 4
        head = data[:end] if end > 3 else data
        if len(head) > MAX_HEAD:
            if b"\r\n" not in head[: MAX_LINE + 2]:
                raise LimitRequestLine("Request line is too large")
            raise LimitRequestHeaders(f"Request line and headers are over {MAX_HEAD} bytes")
        if head.count(b"\n") != head.count(b"\r\n"):
            raise ParseError("A line ends with LF alone")
        if b"\r\n " in head or b"\r\n\t" in head:
            raise ParseError("A header is folded")
        return end if end > 3 else 0

    def _read_head(self: Any, head: bytes) -> None:
        self._base.feed(self, head)
        if not self.is_complete:
            raise ParseError("The request line is missing")
        chunked, length = self.is_chunked, self.content_length or 0
        if length or b"ontent-" in head:
            self._check_length()
        if chunked:
            self._next = _CHUNKS
        elif length:
            self._next, self._left = _LENGTH, length
        else:
            self._next = _DONE
        self._head_is_here()
        if self._next == _DONE:
            self._end_is_here()

    def _check_length(self: Any) -> None:
        # The parser's own number may be what is left of a longer one.
        for name, value in self.headers:
            if len(value) > _LENGTH_DIGITS and name.lower() == b"content-length":
                raise ParseError("Content-Length is too large")

    def _read_counted(self: Any, data: bytes) -> bytes:
        left = self._left
        if len(data) < left:
            self._left = left - len(data)
            self._part_is_here(data)
            return b""
        self._next, self._left = _DONE, 0
        self._part_is_here(data if len(data) == left else data[:left])
        self._end_is_here()
        return data[left:]

    def _read_chunks(self: Any, data: bytes) -> bytes:
        parts: list[bytes] = []
        at = 0
        while self._next == _CHUNKS:
            if self._left:
                part = data[at : at + self._left]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                self._needs_line_end = True
            if self._left or len(data) - at < 2:
                break
            if self._needs_line_end:
                if data[at : at + 2] != b"\r\n":
                    raise ParseError("Missing CRLF after a chunk")
                at += 2
                self._needs_line_end = False
            end = self._line_end(data, at)
            if end < 0:
                break
            self._read_size(data[at:end])
            at = end + 2
        if parts:
            # One piece for all that came together: the application is called for each piece.
            self._part_is_here(b"".join(parts))
        if self._next == _TRAILERS:
            return bytes(self._read_trailers(data, at))
        self._partial = data[at:]
        return b""

    def _read_size(self: Any, line: bytes) -> None:
        size, _, extension = line.partition(b";")
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

    def _read_trailers(self: Any, data: bytes, at: int) -> bytes:
        while (end := self._line_end(data, at)) >= 0:
            line, at = data[at:end], end + 2
            if not line:
                self._next = _DONE
                self._end_is_here()
                return data[at:]
            if b":" not in line or b"\r" in line or b"\n" in line or line[:1] in b" \t":
                raise ParseError("Invalid trailer")
            self._set_aside(len(line) + 2)
        self._partial = data[at:]
        return b""

    def _line_end(self: Any, data: bytes, at: int) -> int:
        """Where the line that begins `at` ends; -1 where its end is not here yet."""
        longest = at + _SIZE_DIGITS + MAX_ASIDE - self._aside
        end = data.find(b"\r\n", at, longest + 2)
        if end < 0 and len(data) >= longest + 2:
            self._set_aside(MAX_ASIDE + 1)
        return end

    def _set_aside(self: Any, size: int) -> None:
        self._aside += size
        if self._aside > MAX_ASIDE:
            if self._next == _TRAILERS:
                raise LimitRequestHeaders(f"Trailers and chunk extensions are over {MAX_ASIDE} bytes")
            raise InvalidChunkExtension(f"Chunk extensions are over {MAX_ASIDE} bytes")
