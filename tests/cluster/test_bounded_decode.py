"""What is packed or described in few bytes takes no more memory than the limit, and what Trimtab stores is read."""

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.bounded_decode import (
    MAX_DOCUMENT_BYTES,
    BytesRefused,
    Unpacker,
    decode_json,
    decode_msgpack,
    estimate_json_memory,
    estimate_msgpack_memory,
    unpack,
    unpack_parts,
)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "zlib"])
@given(content=st.binary(max_size=300))
def test_what_was_packed_is_unpacked(pack: Callable[[bytes], bytes], content: bytes) -> None:
    assert unpack(pack(content)) == content
    assert b"".join(unpack_parts([pack(content)], 7)) == content


def test_several_members_are_one_content() -> None:
    assert unpack(gzip.compress(b"a") + gzip.compress(b"b") + bytes(9)) == b"ab"


@pytest.mark.parametrize(
    "packed",
    [b"", b"plain", gzip.compress(b"abc")[:-3], zlib.compress(b"abc")[:-1] + b"x", gzip.compress(b"a") + b"b"],
    ids=["nothing", "not packed", "cut short", "a wrong checksum", "more after it"],
)
def test_damaged_data_is_refused(packed: bytes) -> None:
    with pytest.raises(BytesRefused):
        unpack(packed)


def test_data_of_the_largest_size_is_unpacked_and_one_byte_more_is_refused() -> None:
    assert len(unpack(zlib.compress(bytes(MAX_DOCUMENT_BYTES)))) == MAX_DOCUMENT_BYTES
    with pytest.raises(BytesRefused, match="more than 16 MiB"):
        unpack(zlib.compress(bytes(MAX_DOCUMENT_BYTES + 1)))


def test_the_parts_of_one_document_share_its_size() -> None:
    unpacker, part = Unpacker(10), zlib.compress(bytes(6))
    unpacker.unpack(part)
    with pytest.raises(BytesRefused):
        unpacker.unpack(part)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=9), inner, max_size=40),
    max_leaves=60,
)


def _memory_of(content: bytes, decode: Callable[[bytes], object]) -> int:
    tracemalloc.start()
    try:
        value = decode(content)
        size, _ = tracemalloc.get_traced_memory()
        del value
    finally:
        tracemalloc.stop()
    return size


@given(value=VALUES)
def test_decoded_json_takes_no_more_than_the_estimate(value: object) -> None:
    text = msgspec.json.encode(value)
    assert _memory_of(text, msgspec.json.decode) <= estimate_json_memory(text) + 2000


@given(value=VALUES)
def test_decoded_msgpack_takes_no_more_than_the_estimate(value: object) -> None:
    content = msgspec.msgpack.encode(value)
    assert _memory_of(content, msgspec.msgpack.decode) <= estimate_msgpack_memory(content, 1 << 40) + 2000


@given(value=VALUES | st.binary(max_size=70_000) | st.lists(st.text("ab", max_size=300), max_size=300))
def test_each_value_of_msgpack_is_counted_once(value: object) -> None:
    padding = b"\x90" * 200_000  # so long that values are counted

    def memory_of(content: bytes) -> int:
        return estimate_msgpack_memory(content + padding, 1 << 40)

    content = msgspec.msgpack.encode(value)
    assert memory_of(content * 3) - memory_of(b"") == 3 * (memory_of(content) - memory_of(b""))


@pytest.mark.parametrize(
    "text",
    [b"[0,0]," * 800_000, b'{"a":{}},' * 500_000, b"[" * 200_000, b'"",' * 900_000],
    ids=["lists", "maps", "depth", "texts"],
)
def test_json_of_many_values_is_refused(text: bytes) -> None:
    with pytest.raises(BytesRefused, match="40 MiB"):
        decode_json(text, list[object])


@pytest.mark.parametrize(
    "content", [b"\x90" * 300_000, b"\xa1a\x80" * 300_000, b"\xcd\xff\xff" * 900_000], ids=["lists", "maps", "numbers"]
)
def test_msgpack_of_many_values_is_refused(content: bytes) -> None:
    with pytest.raises(BytesRefused, match="40 MiB"):
        decode_msgpack(content, list[object])


@pytest.mark.parametrize("padding", [b"", bytes(9)], ids=["members", "members-and-zeros"])
def test_many_members_are_unpacked_in_linear_time(padding: bytes) -> None:
    member = gzip.compress(b"") + padding
    times = []
    for count in (2_000, 32_000):
        start = time.process_time()
        assert unpack(member * count) == b""
        times.append(time.process_time() - start)
    assert times[1] < 40 * times[0]


def test_zeros_after_each_member_are_read_once() -> None:
    packed = gzip.compress(b"a") + bytes(3 << 20) + gzip.compress(b"b") + bytes(3 << 20)
    assert unpack(packed) == b"ab"


@pytest.mark.parametrize("cut", [1, 7, 21, 22, 30, 1000])
def test_parts_contain_every_member(cut: int) -> None:
    packed = gzip.compress(b"a") + bytes(30) + gzip.compress(b"") + gzip.compress(b"bcd") + bytes(30)
    parts = [packed[at : at + cut] for at in range(0, len(packed), cut)]
    assert b"".join(unpack_parts(parts, 2)) == b"abcd"


@pytest.mark.parametrize(
    "tail", [b"plain", gzip.compress(b"b")[:-1], gzip.compress(b"b")[:4]], ids=["plain", "cut short", "a beginning"]
)
def test_parts_with_a_damaged_member_are_refused(tail: bytes) -> None:
    with pytest.raises(BytesRefused):
        list(unpack_parts([gzip.compress(b"a"), tail], 9))
