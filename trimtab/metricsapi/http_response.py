"""Reads one response of HTTP/1.1 from a connection, part by part, within limits of what it may cost.

A scrape is a small request on a kept-alive connection, a thousand of them a minute. `http.client` spends more processor
time on one than TLS, decompression and the search for series together, and limits neither chunks nor trailers. So this
module reads only what a scrape needs: the status, and how the body is framed and encoded.

Source: https://www.rfc-editor.org/rfc/rfc9112
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

MAX_HEAD_BYTES = 32 * 1024
"""The maximum size of the status line with all headers."""
MAX_HEADER_LINES = 100
MAX_RESPONSE_STARTS = 10
"""The maximum number of status lines in one response: the final one, and those of interim responses (100 Continue)
before it."""
MAX_CHUNKS = 50_000
"""The maximum number of chunks in one response. Servers send some thousand bytes in each chunk, but a chunk of one byte
would take as long to read."""
MAX_TRAILER_LINES = 100
MAX_LINE_BYTES = 8192
"""The maximum size of the line with the size of a chunk, or of a trailer."""
PART_BYTES = 64 * 1024
"""The maximum size of a part of a body."""
MAX_SENT_BYTES = 32 * 1024 * 1024
"""The maximum size of a response as it is sent, with all that frames its body. Compressed bytes that unpack to nothing
cost time as well."""
MAX_RECEIVES = 50_000
"""The maximum number of times that bytes are received of one response. Each time costs some microseconds, also if it is
for a TLS record of one byte."""

_HEAD_END = re.compile(rb"\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\r\n]*)?")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_HEAD_NAMES = frozenset((b"content-length", b"transfer-encoding", b"content-encoding", b"connection"))


class BadResponse(Exception):
    """Raised if what was received is not a response of HTTP/1.1, or exceeds a limit."""


class ConnectionEnded(BadResponse):
    """Raised if the connection ended before the first byte of the response, as an idle connection does that the server
    has closed."""


class Response:
    """A response whose head has been read. The body is read with `parts`."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        """Reads the head. `receive` returns at most so many bytes of the connection, and none at its end. Raises
        BadResponse, and the errors of `receive`."""
        self._receive = receive
        self._buffer, self._at = b"", 0
        self._sent_bytes = self._receives = 0
        self.status = 0
        self.is_gzip = False
        self.missing_bytes = 0
        """The number of bytes of the body that the head announces and that have not been read."""
        self.ends_with_connection = False
        """Whether the head announces no length, so that a body that was cut looks like a whole one."""
        self._is_chunked = self._is_read = False
        self._closes = True
        for _ in range(MAX_RESPONSE_STARTS):
            self._read_head()
            if self.status >= 200:
                return
        raise BadResponse(f"more than {MAX_RESPONSE_STARTS} interim responses")

    @property
    def can_keep_connection(self) -> bool:
        """Returns whether the connection can be used for the next request: the response ended where it must."""
        return self._is_read and not self._closes and self._at == len(self._buffer)

    def parts(self) -> Iterator[bytes]:
        """Yields the body as it was sent, in parts of at most `PART_BYTES`. A connection that ends too early ends a
        body of known length, with `missing_bytes` left. Raises BadResponse, and the errors of `receive`."""
        if self._is_chunked:
            yield from self._chunks()
        elif self.ends_with_connection:
            while self._fill_empty_buffer():
                yield self._take(PART_BYTES)
        else:
            while self.missing_bytes and self._fill_empty_buffer():
                part = self._take(self.missing_bytes)
                self.missing_bytes -= len(part)
                yield part
        self._is_read = not self.missing_bytes

    def _chunks(self) -> Iterator[bytes]:
        for _ in range(MAX_CHUNKS):
            line = self._read_line()
            size = _CHUNK_SIZE.fullmatch(line)
            if size is None:
                raise BadResponse(f"{line[:60]!r} is not the size of a chunk")
            left = int(size[1], 16)
            if not left:
                break
            while left:
                if not self._fill_empty_buffer():
                    raise BadResponse(f"the connection ended {left} bytes before the end of a chunk")
                part = self._take(left)
                left -= len(part)
                yield part
            if self._read_line():
                raise BadResponse("a chunk is longer than its size")
        else:
            raise BadResponse(f"more than {MAX_CHUNKS} chunks")
        for _ in range(MAX_TRAILER_LINES):
            if not self._read_line():
                return
        raise BadResponse(f"more than {MAX_TRAILER_LINES} lines of trailers")

    def _read_head(self) -> None:
        position = self._at
        while (end := _HEAD_END.search(self._buffer, position)) is None:
            size = len(self._buffer) - self._at
            if size > MAX_HEAD_BYTES:
                raise BadResponse(f"more than {MAX_HEAD_BYTES} bytes of headers")
            if not self._fill():
                raise (BadResponse if size else ConnectionEnded)("the connection ended before the response")
            position = max(0, size - 2)
        lines = self._buffer[self._at : end.start()].split(b"\n")
        self._at = end.end()
        if len(lines) > MAX_HEADER_LINES + 1:
            raise BadResponse(f"more than {MAX_HEADER_LINES} headers")
        status = _STATUS.fullmatch(lines[0].rstrip(b"\r"))
        if status is None:
            raise BadResponse(f"{lines[0][:60]!r} is not the status line of HTTP/1.1")
        self.status = int(status[2])
        self._read_headers(lines[1:], is_current=status[1] == b"1")

    def _read_headers(self, lines: list[bytes], *, is_current: bool) -> None:
        values: dict[bytes, bytes] = {}
        for line in lines:
            name, _, value = line.partition(b":")
            key = name.lower()
            if key in _HEAD_NAMES:
                text = value.strip().lower()
                if key == b"connection" and key in values:
                    # A list, of which each header has a part (RFC 9110, 5.3).
                    values[key] += b"," + text
                elif values.setdefault(key, text) != text:
                    raise BadResponse(f"the header {key.decode()} has two values")
        self.is_gzip = values.get(b"content-encoding") in (b"gzip", b"x-gzip")
        options = [option.strip() for option in values.get(b"connection", b"").split(b",")]
        self._closes = b"close" in options or not (is_current or b"keep-alive" in options)
        encoding, length = values.get(b"transfer-encoding"), values.get(b"content-length")
        if encoding not in (None, b"chunked", b"identity"):
            raise BadResponse(f"the transfer encoding {encoding!r} is not known")
        if length is not None and not (length.isdigit() and len(length) < 16):
            raise BadResponse(f"the length {length[:60]!r} is not a number")
        self._is_chunked = encoding == b"chunked"
        has_body = self.status >= 200 and self.status not in (204, 304)
        self.missing_bytes = int(length) if length is not None and has_body and not self._is_chunked else 0
        self.ends_with_connection = has_body and length is None and not self._is_chunked
        self._closes = self._closes or self.ends_with_connection

    def _read_line(self) -> bytes:
        """Returns a line without its end."""
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            if len(self._buffer) - self._at > MAX_LINE_BYTES:
                raise BadResponse(f"a line between chunks has more than {MAX_LINE_BYTES} bytes")
            if not self._fill():
                raise BadResponse("the connection ended between two chunks")
        line = self._buffer[self._at : end]
        self._at = end + 1
        return line.rstrip(b"\r")

    def _fill_empty_buffer(self) -> bool:
        """Returns whether there is anything to read, now or after more was received."""
        return self._at < len(self._buffer) or self._fill()

    def _fill(self) -> bool:
        """Receives more. Returns whether there was any."""
        received = self._receive(PART_BYTES)
        self._receives += 1
        self._sent_bytes += len(received)
        if self._receives > MAX_RECEIVES:
            raise BadResponse(f"more than {MAX_RECEIVES} small parts")
        if self._sent_bytes > MAX_SENT_BYTES:
            raise BadResponse(f"more than {MAX_SENT_BYTES} bytes")
        self._buffer, self._at = self._buffer[self._at :] + received, 0
        return bool(received)

    def _take(self, size: int) -> bytes:
        """Returns at most so many bytes of what has been received, and at most `PART_BYTES`."""
        end = min(self._at + min(size, PART_BYTES), len(self._buffer))
        part = self._buffer[self._at : end]
        self._at = end
        return part
