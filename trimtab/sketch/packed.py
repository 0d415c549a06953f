"""A day's counts as bytes, and back.

A day that is over and spread wide is kept in pairs of buckets: half the bytes, and still within 1/64 of the middle of
a pair. Where many days are too much all the same, counts are kept in units of several values: the value at a rank is
then that of a rank at most half a unit beside it.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence

from trimtab.sketch.counts import WIDEST, Counts, narrow, pairs

_HEAD = struct.Struct("<IHHBId")
"""Day (the upper bits: in pairs, unit), base, length, width of a count, nothing, top."""
_HELD = struct.Struct("<I")
"""Behind it where the unit is more than one: how many values there are in all."""
_PAIRS, _UNIT = 1 << 31, 26
_DAY = (1 << _UNIT) - 1
_WIDTHS = {1: "B", 2: "H", 4: "I"}


class Damaged(ValueError):
    """These bytes hold no sketch of ours."""


WIDE = 64
"""Buckets that hold something, beyond which a day is kept in pairs."""


def pack(day: int, counts: Counts, *, over: bool, most: int | None = None) -> bytes:
    """A day and its counts, as narrow as they fit. `over`: nothing more is expected of it. `most`: units at most that
    its values are counted in; None counts each."""
    paired, base, cells = counts.paired, counts.base, counts.counts
    if not paired and over and sum(map(bool, cells)) > WIDE:
        paired, (base, cells) = True, pairs(base, cells)
    held = sum(cells)
    step = 0 if most is None else max(0, (held - 1) // most).bit_length()
    body = narrow(_in_units(cells, 1 << step, day & 1) if step else cells)
    if sys.byteorder == "big":
        body.byteswap()
    marked = day | step << _UNIT | (_PAIRS if paired else 0)
    head = _HEAD.pack(marked, base << paired, len(body), body.itemsize, counts.nothing, counts.top)
    return head + (_HELD.pack(held) if step else b"") + body.tobytes()


def _in_units(cells: Iterable[int], unit: int, odd: int) -> list[int]:
    """So that up to each cell there are as many as there were, to half a unit; what is in the middle goes up on one
    day and down on the next."""
    told, seen, before = [], 0, 0
    for count in cells:
        seen += count
        upto = (seen + unit // 2 - odd) // unit
        told.append(upto - before)
        before = upto
    return told


def unpack(packed: bytes) -> list[tuple[int, Counts]]:
    """All days that stand behind one another. Raises Damaged."""
    found, at = [], 0
    while at < len(packed):
        day, counts, at = _one(packed, at)
        found.append((day, counts))
    return found


def _one(packed: bytes, at: int) -> tuple[int, Counts, int]:
    try:
        marked, base, length, width, nothing, top = _HEAD.unpack_from(packed, at)
        step, paired = marked >> _UNIT & 31, bool(marked & _PAIRS)
        start = at + _HEAD.size + (_HELD.size if step else 0)
        end = start + length * width
        body = array(_WIDTHS[width], packed[start:end])
        held = _HELD.unpack_from(packed, at + _HEAD.size)[0] if step else 0
    except (struct.error, KeyError, ValueError) as error:
        raise Damaged(f"a day at byte {at} makes no sense: {error}") from None
    if end > len(packed) or length > WIDEST or not top >= 0:
        raise Damaged(f"a day at byte {at} is cut short")
    if sys.byteorder == "big":
        body.byteswap()
    cells = narrow(_values(body, 1 << step, held)) if step else body
    return marked & _DAY, Counts(base >> paired, cells, nothing, top, paired=paired), end


def _values(cells: Sequence[int], unit: int, held: int) -> list[int]:
    """The other way; what the units are too many or too few, the last cell that holds something takes."""
    found = [count * unit for count in cells]
    last = max((place for place, count in enumerate(found) if count), default=0)
    if found:
        found[last] = max(0, found[last] + held - sum(found))
    return found
