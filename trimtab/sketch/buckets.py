"""Which bucket does a value fall into, and what does a bucket hold?

A float32's upper bits are a logarithm already: the exponent and six bits of the mantissa number 64 buckets an octave,
none wider than 1/64 of its lower end. So a million values become bucket numbers without a line of arithmetic: written
as float32, read again as 16-bit halves, counted in C.
"""

import struct
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

PER_OCTAVE = 64
ERROR = 1 / PER_OCTAVE
"""The width of a bucket as a share of its lower end: no answer from within it is further off."""

_HALF = slice(1, None, 2) if sys.byteorder == "little" else slice(0, None, 2)
_FLOAT, _UPPER = struct.Struct("<f"), struct.Struct("<2xH")
GREATEST = 2.0**127
"""What is above is no amount of anything."""
BEYOND = (127 + 127) * PER_OCTAVE
"""The first number of no amount."""
_LOW = memoryview(array("I", (number << 17 for number in range(BEYOND + 1)))).cast("B").cast("f")

LEAST = 2.0**-14
"""Sixty millionths of a core: what is below is nothing. Bytes never come near."""
FIRST = (127 - 14) * PER_OCTAVE
"""The number of the bucket that begins at `LEAST`."""
NOTHING = 0
"""The number of whatever is below `LEAST`."""


def halves(values: Sequence[float]) -> "array[int]":
    """The upper half of each value's float32: twice its bucket's number, or one more. What is no amount is at or
    beyond `2 * BEYOND`."""
    return array("H", _floats(len(values))(*values))[_HALF]


@lru_cache(maxsize=64)
def _floats(count: int) -> Callable[..., bytes]:
    """Numbers as so many float32: a third of the time that an array takes to be filled."""
    return struct.Struct(f"{count}f").pack


def offsets(found: "array[int]", first: int) -> bytes | None:
    """How far each half's bucket is above the first, a byte each; None where one is below it, or 256 or more above.

    All at once: the halves as one long number, of which one subtraction takes the first from each. The upper bit of
    each place is set before, and lends: where it is gone, or others above the byte are there, a half was outside.
    """
    ones, lent, above, bytes_ = _lanes(len(found))
    lanes = int.from_bytes(found.tobytes(), sys.byteorder)
    apart = (lanes | lent) - 2 * first * ones
    if lanes & lent or apart & above != lent:
        return None
    told = ((apart >> 1) & bytes_).to_bytes(2 * len(found), sys.byteorder)
    return told[::2] if sys.byteorder == "little" else told[1::2]


def spread(values: Sequence[float]) -> tuple[int, bytes] | None:
    """A bucket, and how far each value's is above it. None where there are no values, some are nothing or no amount,
    or they lie more than about four octaves apart."""
    found = halves(values)
    # The first few tell where all of them lie, nearly always; else the greatest does.
    for some, above in ((values[:_FEW], PER_OCTAVE), (values, 0)):
        last = number(max(some, default=0.0))
        if last is not None and last >= FIRST:
            first = max(FIRST, last + above - 255)
            told = offsets(found, first)
            if told is not None:
                return first, told
    return None


_FEW = 256


@lru_cache(maxsize=64)
def _lanes(count: int) -> tuple[int, int, int, int]:
    """In each of so many places of 16 bits: a one, the upper bit, what is above twice a byte, a byte."""
    ones = int.from_bytes(b"\1\0" * count, "little")
    return ones, 0x8000 * ones, 0xFE00 * ones, 0xFF * ones


def numbers(found: Iterable[int]) -> Counter[int]:
    """Bucket number → how many of these halves fall into it, without those of what is no amount."""
    counted: Counter[int] = Counter()
    for half, count in Counter(found).items():
        number = half >> 1
        if number < BEYOND:
            counted[number if number >= FIRST else NOTHING] += count
    return counted


def number(value: float) -> int | None:
    """The bucket of one value; None where it is no amount."""
    try:
        half = _UPPER.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return None
    found: int = half >> 1
    return None if found >= BEYOND else found if found >= FIRST else NOTHING


def low(number: int) -> float:
    """Where a bucket begins."""
    return _LOW[number] if number >= FIRST else 0.0


def high(number: int) -> float:
    """Where a bucket ends, and the next begins."""
    return _LOW[number + 1] if number >= FIRST else LEAST
