"""Which bucket does a value fall into, and what does a bucket hold?

A float32's upper bits are a logarithm already: the exponent and six bits of the mantissa number 64 buckets an octave,
none wider than 1/64 of its lower end. So a million values become bucket numbers without a line of arithmetic: written
as float32, read again as 16-bit halves, counted in C.

How many values fell into each bucket?
"""

import operator
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import ceil

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


FINE = 448
"""Buckets at most that are counted one by one: seven octaves. What is spread wider is counted in pairs of buckets."""
WIDEST = 896
"""Buckets at most: fourteen octaves. What is below 1/16384 of the greatest value is counted as that much."""


class UsageHistogram:
    """A distribution. Mutable: it is added to and merged into; everything else asks."""

    __slots__ = ("base", "counts", "nothing", "shift", "top")

    def __init__(
        self,
        base: int = 0,
        counts: "array[int] | None" = None,
        nothing: int = 0,
        top: float = 0.0,
        *,
        paired: bool = False,
    ) -> None:
        self.base = base
        """The number of the bucket (or of the pair of buckets) of counts[0]."""
        self.counts = array("B") if counts is None else counts
        """A byte each, or wider where a count asks for it: what is spread wide has low counts."""
        self.nothing = nothing
        """How many values were (almost) zero."""
        self.top = top
        """The greatest value, exact."""
        self.shift = 1 + paired
        """Lower bits of a half (see `buckets`) that are not told apart: 1, or 2 where buckets are counted in pairs."""

    @property
    def paired(self) -> bool:
        """Pairs of buckets are counted: no more than that can be told apart."""
        return self.shift == 2

    @property
    def total(self) -> int:
        return self.nothing + sum(self.counts)

    def add(self, value: float) -> None:
        """One value; what is no amount is left out."""
        found = number(value)
        if found is None:
            return
        if value > self.top:
            self.top = value
        self._count(found, 1)

    def extend(self, values: Sequence[float]) -> None:
        """Many values at once."""
        found = spread(values)
        if found is None:
            self.take(numbers(halves(values)), greatest(values))
        else:
            self.tally(*found, values)

    def tally(self, first: int, told: bytes, values: Sequence[float]) -> None:
        """Values, at least one, and their buckets as `spread` gives them: a short step for each."""
        cells = [0] * 256
        for offset in told:
            cells[offset] += 1
        try:
            body = bytes(cells).rstrip(b"\0")
        except ValueError:
            self.take({first + offset: count for offset, count in enumerate(cells) if count}, max(values))
            return
        held, highest = body.lstrip(b"\0"), len(body) - 1
        top = _topmost(told, highest, values) if cells[highest] < _MANY else max(values)
        base = first + len(body) - len(held)
        if len(self.counts) or self.paired:
            self.merge(UsageHistogram(base, array("B", held), 0, top))
            return
        self.base, self.counts = base, array("B", held)
        if top > self.top:
            self.top = top

    def take(self, found: Mapping[int, int], top: float) -> None:
        """Bucket number → count, and the greatest of the values."""
        if not found:
            return
        self.top = max(self.top, top)
        self.nothing += found.get(NOTHING, 0)
        held = found if NOTHING not in found else {b: n for b, n in found.items() if b != NOTHING}
        if not held:
            return
        self._room(max(held))
        self._room(min(held))
        base, cells, wide = self.base, self.counts, self.shift - 1
        for bucket, count in held.items():
            try:
                cells[max(0, (bucket >> wide) - base)] += count
            except OverflowError:
                self._count(bucket, count)
                cells = self.counts

    def merge(self, other: "UsageHistogram") -> None:
        """As if every value of the other had been added here."""
        self.top = max(self.top, other.top)
        self.nothing += other.nothing
        if other.paired:
            self._pair()
        if not len(other.counts):
            return
        wide = other.shift - 1
        self._room((other.base + len(other.counts) - 1 << wide) | wide)
        start = max(0, self._room(other.base << wide))
        base, cells = (other.base, other.counts) if self.shift == other.shift else pairs(other.base, other.counts)
        below = max(0, self.base - base)
        part = cells[below:]
        self._put(start, list(map(operator.add, self.counts[start : start + len(part)], part)))
        if below:
            self._put(0, (self.counts[0] + sum(cells[:below]),))

    def _count(self, bucket: int, count: int) -> None:
        if bucket == NOTHING:
            self.nothing += count
            return
        place = max(0, self._room(bucket))
        try:
            self.counts[place] += count
        except OverflowError:
            self._put(place, (self.counts[place] + count,))

    def _put(self, start: int, counts: Sequence[int]) -> None:
        """These counts from there on, in wider cells where they need them."""
        for wider in ("", "H", "I"):
            if wider > "B" and wider != self.counts.typecode:
                self.counts = array(wider, self.counts)
            try:
                self.counts[start : start + len(counts)] = array(self.counts.typecode, counts)
                return
            except OverflowError:
                continue
        raise OverflowError("more than four thousand million values in a bucket")

    def _room(self, bucket: int) -> int:
        """The place of a bucket, made if it has none; negative where it is below what is told apart."""
        if not len(self.counts):
            self.base, self.counts = bucket >> (self.shift - 1), array("B", [0])
        lowest, highest = min(bucket, self.base), max(bucket, self.base + len(self.counts) - 1)
        if not self.paired and highest - lowest >= FINE:
            self._pair()
        place = (bucket >> (self.shift - 1)) - self.base
        if place >= len(self.counts):
            self.counts.frombytes(bytes((place - len(self.counts) + 1) * self.counts.itemsize))
            self._fold()
        elif place < 0:
            more = min(-place, self.base - self._floor())
            self.counts = array(self.counts.typecode, bytes(more * self.counts.itemsize)) + self.counts
            self.base -= more
        return (bucket >> (self.shift - 1)) - self.base

    def _pair(self) -> None:
        """From now on pairs of buckets are counted."""
        if not self.paired:
            self.base, self.counts, self.shift = *pairs(self.base, self.counts), 2

    def _floor(self) -> int:
        """The lowest place that is told apart from the highest. Only pairs come so far."""
        return self.base + len(self.counts) - (WIDEST >> (self.shift - 1))

    def _fold(self) -> None:
        """What is too low is counted in the lowest."""
        surplus = self._floor() - self.base
        if surplus > 0:
            lowest = sum(self.counts[: surplus + 1])
            self.base += surplus
            self.counts = self.counts[surplus:]
            self._put(0, (lowest,))

    def __eq__(self, other: object) -> bool:
        """The same values were seen, as far as anybody can tell."""
        return isinstance(other, UsageHistogram) and self._told() == other._told()

    __hash__ = None  # type: ignore[assignment]

    def _told(self) -> tuple[float, int, bool, dict[int, int]]:
        found = {place: count for place, count in enumerate(self.counts, start=self.base) if count}
        return self.top, self.nothing, self.paired, found

    def percentiles(self, shares: Iterable[float]) -> tuple[float, ...]:
        """For each share, the value that so much is not above, by nearest rank; all 0 where nothing was seen.

        Within a bucket its values are taken to be spread evenly; of a pair the answer is the middle. Both are within
        1/64 of the exact value.
        """
        total = self.total
        return tuple(self._at(min(total, max(1, ceil(share * total - 1e-9)))) if total else 0.0 for share in shares)

    def _at(self, rank: int) -> float:
        before = self.nothing
        if rank >= self.total:
            return self.top
        if rank <= before:
            return 0.0
        for place, count in enumerate(self.counts):
            if rank <= before + count:
                return self._within(place, 0.5 if self.paired else (rank - before - 0.5) / count)
            before += count
        return self.top

    def _within(self, place: int, part: float) -> float:
        """So far from the beginning of what is counted there to its end."""
        wide = self.shift - 1
        first = self.base + place << wide
        start, end = low(first), high(first | wide)
        if end > self.top and not self.paired:
            end = self.top
        return min(self.top, start + part * (end - start))

    def values(self) -> Iterator[tuple[float, int]]:
        """Every bucket that holds something: its middle, and how many values it holds."""
        if self.nothing:
            yield 0.0, self.nothing
        for place, count in enumerate(self.counts):
            if count:
                yield self._within(place, 0.5), count

    def copy(self) -> "UsageHistogram":
        return UsageHistogram(self.base, self.counts[:], self.nothing, self.top, paired=self.paired)


def pairs(base: int, counts: "array[int]") -> tuple[int, "array[int]"]:
    """The same, counted in pairs of buckets: the number of the first pair, and the counts."""
    even = [0] * (base & 1) + list(counts)
    even += [0] * (len(even) & 1)
    return base >> 1, narrow(list(map(operator.add, even[::2], even[1::2])))


def narrow(counts: Sequence[int]) -> "array[int]":
    """As narrow as they fit."""
    most = max(counts, default=0)
    return array("B" if most < 256 else "H" if most < 65536 else "I", counts)


_MANY = 32
"""Values in a bucket beyond which going through all values is quicker than finding them."""


def _topmost(told: bytes, highest: int, values: Sequence[float]) -> float:
    """The greatest value: one of the few in the highest bucket."""
    at = told.find(highest)
    top = values[at]
    while (at := told.find(highest, at + 1)) >= 0:
        if values[at] > top:
            top = values[at]
    return top


def greatest(values: Sequence[float]) -> float:
    """Of those that are amounts."""
    found = max(values, default=0.0)
    if 0 <= found < GREATEST:
        return found
    return max((value for value in values if 0 <= value < GREATEST), default=0.0)


def merged(parts: Iterable[UsageHistogram]) -> UsageHistogram:
    """All of them as one; the parts stay as they are."""
    whole = UsageHistogram()
    for part in parts:
        whole.merge(part)
    return whole
