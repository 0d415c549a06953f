"""A day's counts as bytes, and back.

A day that is over and spread wide is kept in pairs of buckets: half the bytes, and still within 1/64 of the middle of
a pair.
"""

import operator
import struct
import sys
from array import array
from collections.abc import Sequence

from trimtab.sketch.counts import WIDEST, Counts

_HEAD = struct.Struct("<IHHBId")
"""Day (the upper bit: in pairs), base, length, width of a count, nothing, top."""
_PAIRS = 1 << 31
_WIDTHS = {1: "B", 2: "H", 4: "I"}


class Damaged(ValueError):
    """These bytes hold no sketch of ours."""


WIDE = 64
"""Buckets that hold something, beyond which a day is kept in pairs."""


def pack(day: int, counts: Counts, *, over: bool) -> bytes:
    """A day and its counts, as narrow as they fit. `over`: nothing more is expected of it."""
    pairs = counts.paired or (over and sum(map(bool, counts.counts)) > WIDE)
    cells: Sequence[int] = counts.counts
    base = counts.base
    if pairs:
        lead, base = base & 1, base & ~1
        even = [0] * lead + list(cells) + [0] * ((lead + len(cells)) & 1)
        cells = list(map(operator.add, even[::2], even[1::2]))
    most = max(cells, default=0)
    width = 1 if most < 256 else 2 if most < 65536 else 4
    body = array(_WIDTHS[width], cells)
    if sys.byteorder == "big":
        body.byteswap()
    marked = day | _PAIRS if pairs else day
    return _HEAD.pack(marked, base, len(body), width, counts.nothing, counts.top) + body.tobytes()


def unpack(packed: bytes) -> list[tuple[int, Counts]]:
    """All days that stand behind one another. Raises Damaged."""
    found, at = [], 0
    while at < len(packed):
        day, counts, at = _one(packed, at)
        found.append((day, counts))
    return found


def _one(packed: bytes, at: int) -> tuple[int, Counts, int]:
    try:
        day, base, length, width, nothing, top = _HEAD.unpack_from(packed, at)
        end = at + _HEAD.size + length * width
        body = array(_WIDTHS[width], packed[at + _HEAD.size : end])
    except (struct.error, KeyError, ValueError) as error:
        raise Damaged(f"a day at byte {at} makes no sense: {error}") from None
    if end > len(packed) or length > WIDEST or not top >= 0:
        raise Damaged(f"a day at byte {at} is cut short")
    if sys.byteorder == "big":
        body.byteswap()
    if day & _PAIRS:
        return day & ~_PAIRS, Counts(base, _apart(body), nothing, top, paired=True), end
    return day, Counts(base, body, nothing, top), end


def _apart(pairs: "array[int]") -> "array[int]":
    """Each pair counted in its first bucket."""
    body = array(pairs.typecode, bytes(2 * len(pairs) * pairs.itemsize))
    body[::2] = pairs
    return body
