"""Unpacks and decodes bytes that others may have written, within a limit of memory that is checked before each step.

A few kilobytes of gzip can hold gigabytes, and a few megabytes of JSON or MessagePack can describe objects of a hundred
times that size. So the unpacked size has a limit, and the memory of the decoded objects is estimated from the bytes
before they are decoded. No other module of Trimtab unpacks anything (tests/architecture/test_unpacking.py).
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

T = TypeVar("T")
MAX_DOCUMENT_BYTES = 16 << 20
"""The maximum size of one stored document after decompression, in bytes. A ConfigMap holds at most 1 MiB of packed
text, and what Trimtab stores is unpacked to a few times its size."""
MAX_DECODED_BYTES = 40 << 20
"""The maximum memory that the objects of one stored document may take, in bytes, as estimated before decoding."""
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Accepts the header of gzip and of zlib."""
_FIRST_BYTES, _LARGEST_BYTES = 256, 64 << 10
"""The number of packed bytes that zlib gets at the beginning of a member, and at most; it doubles in between."""
_OUTPUT_BYTES = 1 << 20
"""The maximum number of bytes that are unpacked before their number is compared with the limit."""


class BytesRefused(ValueError):
    """Raised for bytes that are damaged, or that would take more memory than is allowed."""


class Unpacker:
    """Unpacks the parts of one document. Together they have at most `max_bytes` bytes."""

    def __init__(self, max_bytes: int = MAX_DOCUMENT_BYTES) -> None:
        self.max_bytes = max_bytes
        self._free_bytes = max_bytes

    def unpack(self, packed: bytes) -> bytes:
        """Returns the content of gzip (of one or several members) or zlib data. Raises BytesRefused."""
        contents = []
        for content in unpack_parts((packed,), _OUTPUT_BYTES):
            self._free_bytes -= len(content)
            # The content is counted: the size in the trailer of gzip is modulo 2^32 and may be forged.
            if self._free_bytes < 0:
                raise BytesRefused(f"the data unpacks to more than {_size_text(self.max_bytes)}")
            contents.append(content)
        return b"".join(contents)


def unpack(packed: bytes, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Returns the content of gzip or zlib data. Raises BytesRefused if it is damaged or has more than `max_bytes`."""
    return Unpacker(max_bytes).unpack(packed)


def unpack_parts(parts: Iterable[bytes], part_bytes: int) -> Iterator[bytes]:
    """Yields the content of gzip (of one or several members) or zlib data in parts of at most `part_bytes` bytes, so
    that the caller can stop at its own limit. Raises BytesRefused.

    The time is linear in the size, however many members there are: zlib copies what follows a member, so it gets only a
    small piece at the beginning of each one.
    """
    unpacker, has_member = None, False
    for part in parts:
        view, position, size = memoryview(part), 0, _FIRST_BYTES
        while position < len(view):
            if unpacker is None:
                # Programs that pad a gzip file use zeros, which `gzip` ignores as well.
                position = _skip_zeros(view, position) if has_member else position
                if position == len(view):
                    break
                unpacker, size = zlib.decompressobj(_ANY_HEADER), _FIRST_BYTES
            piece = view[position : position + size]
            try:
                content = unpacker.decompress(piece, part_bytes)
            except zlib.error as error:
                raise BytesRefused(f"the compressed data is damaged: {error}") from None
            # At the end of a member zlib may still have an old tail.
            position += len(piece) - len(unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail)
            size = min(2 * size, _LARGEST_BYTES)
            if unpacker.eof:
                unpacker, has_member = None, True
            if content:
                yield content
    if unpacker is not None or not has_member:
        raise BytesRefused("the compressed data ends too early")


def _skip_zeros(view: memoryview, position: int) -> int:
    """Returns the position of the next byte that is not zero, or the end."""
    size = _FIRST_BYTES
    while position < len(view):
        piece = bytes(view[position : position + size])
        rest = piece.lstrip(b"\0")
        position += len(piece) - len(rest)
        if rest:
            break
        size = min(2 * size, _LARGEST_BYTES)
    return position


def decode_json(content: bytes | str, shape: type[T], max_memory: int = MAX_DECODED_BYTES) -> T:
    """Returns the decoded JSON. Raises BytesRefused if its objects could take more memory than `max_memory`, and the
    errors of msgspec."""
    text = content.encode() if isinstance(content, str) else content
    _check_memory(estimate_json_memory(text), max_memory)
    return msgspec.json.decode(text, type=shape)


def decode_msgpack(content: bytes, shape: type[T], max_memory: int = MAX_DECODED_BYTES) -> T:
    """Returns the decoded MessagePack. Raises BytesRefused if its objects could take more memory than `max_memory`, and
    the errors of msgspec."""
    _check_memory(estimate_msgpack_memory(content, max_memory), max_memory)
    return msgspec.msgpack.decode(content, type=shape)


_COLLECTION_MEMORY = 400
"""The bytes of an array or a map, or of a struct whose fields have default values that are dicts."""
_SCALAR_MEMORY = 70
"""The bytes of a number, or of a string without its characters, with its place in a list or dict."""
_CHARACTER_MEMORY = 4
"""The bytes of each character of a string that has one character above U+FFFF."""


def estimate_json_memory(text: bytes) -> int:
    """Returns the number of bytes that the decoded objects of a JSON text take at most."""
    collections = text.count(b"[") + text.count(b"{")
    # Each scalar is followed by a comma, a colon or the end of its collection.
    scalars = text.count(b",") + text.count(b":") + collections + 1
    return _CHARACTER_MEMORY * len(text) + _COLLECTION_MEMORY * collections + _SCALAR_MEMORY * scalars


def estimate_msgpack_memory(content: bytes, enough: int) -> int:
    """Returns the number of bytes that the decoded objects of MessagePack take at most. Counting ends when the number
    is more than `enough`."""
    upper_bound = (_COLLECTION_MEMORY + _CHARACTER_MEMORY) * len(content)
    if upper_bound <= enough:  # cheap, and most documents are small
        return upper_bound
    position, end, memory = 0, len(content), _CHARACTER_MEMORY * len(content)
    while position < end and memory <= enough:
        head = content[position]
        memory += _MEMORY_BY_HEAD[head]
        size_bytes = _SIZE_BYTES_BY_HEAD[head]
        if size_bytes:
            position += size_bytes + int.from_bytes(content[position + 1 : position + 1 + size_bytes])
        position += _BYTES_BY_HEAD[head]
    return memory


def _bytes_by_head() -> Iterator[int]:
    """Yields, for each first byte of a value, its bytes without the content of collections and without what a size
    field counts (see github.com/msgpack/msgpack/blob/master/spec.md)."""
    fixed = {
        0xC7: 2,
        0xC8: 2,
        0xC9: 2,
        0xCA: 5,
        0xCB: 9,
        0xCC: 2,
        0xCD: 3,
        0xCE: 5,
        0xCF: 9,
        0xD0: 2,
        0xD1: 3,
        0xD2: 5,
        0xD3: 9,
        0xD4: 3,
        0xD5: 4,
        0xD6: 6,
        0xD7: 10,
        0xD8: 18,
        0xDC: 3,
        0xDD: 5,
        0xDE: 3,
        0xDF: 5,
    }
    for head in range(256):
        yield head - 0xA0 + 1 if 0xA0 <= head <= 0xBF else fixed.get(head, 1)


_BYTES_BY_HEAD = tuple(_bytes_by_head())
_SIZE_BYTES_BY_HEAD = tuple(
    {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}.get(head, 0)
    for head in range(256)
)
"""The number of bytes of the size field after the first byte: of bin, ext and str."""
_MEMORY_BY_HEAD = tuple(
    _COLLECTION_MEMORY if 0x80 <= head <= 0x9F or 0xDC <= head <= 0xDF else _SCALAR_MEMORY for head in range(256)
)


def _check_memory(memory: int, max_memory: int) -> None:
    if memory > max_memory:
        raise BytesRefused(f"the decoded data could take more than {_size_text(max_memory)} of memory")


def _size_text(number: int) -> str:
    return f"{number >> 30} GiB" if number >= 1 << 30 else f"{number >> 20} MiB"
