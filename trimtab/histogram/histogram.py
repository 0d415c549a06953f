"""A histogram of usage with logarithmic buckets, and the arithmetic that finds the bucket of a value.

The upper bits of a float32 are already a logarithm: the exponent and six bits of the mantissa give the number of a
bucket. There are 64 buckets per octave, and no bucket is wider than 1/64 of its lower end. So a million values become
bucket numbers without arithmetic in Python: they are written as float32, read again as 16-bit halves, and counted in C.
"""

import operator
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import ceil

BUCKETS_PER_OCTAVE = 64
MAX_RELATIVE_ERROR = 1 / BUCKETS_PER_OCTAVE
"""The width of a bucket as a share of its lower end. The error of any value read from the histogram is at most this
large."""

_UPPER_HALVES = slice(1, None, 2) if sys.byteorder == "little" else slice(0, None, 2)
_FLOAT32, _UPPER_HALF = struct.Struct("<f"), struct.Struct("<2xH")
MAX_VALUE = 2.0**127
"""Larger values are invalid; no real amount of cpu or memory is nearly as large."""
INVALID_BUCKET = (127 + 127) * BUCKETS_PER_OCTAVE
"""The lowest bucket number that stands for invalid values."""
# A bucket's number is the upper 15 bits of a float32: with 17 zero bits below them it is the bucket's lower end.
_BUCKET_STARTS = memoryview(array("I", (number << 17 for number in range(INVALID_BUCKET + 1)))).cast("B").cast("f")

MIN_VALUE = 2.0**-14
"""Smaller values, below 60 millionths of a core, count as zero. Amounts in bytes are never so small."""
FIRST_BUCKET = (127 - 14) * BUCKETS_PER_OCTAVE
"""The number of the bucket that begins at `MIN_VALUE`."""
ZERO_BUCKET = 0
"""The bucket number of every value below `MIN_VALUE`."""


def upper_halves_of(values: Sequence[float]) -> "array[int]":
    """Returns the upper half of each value's float32, which is twice the number of its bucket, or one more. For an
    invalid value it is `2 * INVALID_BUCKET` or more."""
    return array("H", _float_packer(len(values))(*values))[_UPPER_HALVES]


@lru_cache(maxsize=64)
def _float_packer(count: int) -> Callable[..., bytes]:
    """Returns a function that packs `count` numbers as float32, in a third of the time that filling an array takes."""
    return struct.Struct(f"{count}f").pack


def bucket_distances(halves_: "array[int]", first: int) -> bytes | None:
    """Returns the distance of each half's bucket from the bucket `first`, one byte each; None if a bucket is below
    `first`, or 256 or more above it.

    All distances are computed at once: the halves form one long number, and a single subtraction takes the first bucket
    from each 16-bit lane. The upper bit of each lane is set before, so that no lane borrows from the next. If that bit
    is cleared afterwards, or if bits above the byte are set, the bucket was out of range.
    """
    lane_ones, guard_bits, outside_bits, byte_masks = _lane_masks(len(halves_))
    lanes = int.from_bytes(halves_.tobytes(), sys.byteorder)
    differences = (lanes | guard_bits) - 2 * first * lane_ones
    if lanes & guard_bits or differences & outside_bits != guard_bits:
        return None
    distances = ((differences >> 1) & byte_masks).to_bytes(2 * len(halves_), sys.byteorder)
    return distances[::2] if sys.byteorder == "little" else distances[1::2]


def locate_buckets(values: Sequence[float]) -> tuple[int, bytes] | None:
    """Returns a bucket, and the distance of each value's bucket from it, one byte each. None if there are no values, if
    some are zero or invalid, or if they are more than about four octaves apart."""
    upper_halves = upper_halves_of(values)
    # The first values nearly always show the range of all of them, for a fraction of the cost of the maximum.
    for sample, headroom in ((values[:_SAMPLE_SIZE], BUCKETS_PER_OCTAVE), (values, 0)):
        highest = bucket_of(max(sample, default=0.0))
        if highest is not None and highest >= FIRST_BUCKET:
            first = max(FIRST_BUCKET, highest + headroom - 255)
            distances = bucket_distances(upper_halves, first)
            if distances is not None:
                return first, distances
    return None


_SAMPLE_SIZE = 256
"""The number of values from which the range of all values is estimated."""


@lru_cache(maxsize=64)
def _lane_masks(count: int) -> tuple[int, int, int, int]:
    """Returns four numbers of `count` lanes of 16 bits each, in which every lane is: one; its upper bit; all bits above
    twice a byte; one byte."""
    ones = int.from_bytes(b"\1\0" * count, "little")
    return ones, 0x8000 * ones, 0xFE00 * ones, 0xFF * ones


def count_buckets(upper_halves: Iterable[int]) -> Counter[int]:
    """Returns bucket number → the number of values in it. Invalid values are left out."""
    counts: Counter[int] = Counter()
    for half, count in Counter(upper_halves).items():
        bucket = half >> 1
        if bucket < INVALID_BUCKET:
            counts[bucket if bucket >= FIRST_BUCKET else ZERO_BUCKET] += count
    return counts


def bucket_of(value: float) -> int | None:
    """Returns the bucket number of a value, or None if the value is invalid."""
    try:
        half = _UPPER_HALF.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return None
    bucket: int = half >> 1
    return None if bucket >= INVALID_BUCKET else bucket if bucket >= FIRST_BUCKET else ZERO_BUCKET


def bucket_start(number: int) -> float:
    """Returns the lower end of a bucket."""
    return _BUCKET_STARTS[number] if number >= FIRST_BUCKET else 0.0


def bucket_end(number: int) -> float:
    """Returns the upper end of a bucket, where the next one begins."""
    return _BUCKET_STARTS[number + 1] if number >= FIRST_BUCKET else MIN_VALUE


MAX_SINGLE_BUCKETS = 448
"""The maximum number of single buckets, which cover seven octaves. If values are further apart, pairs of buckets are
counted."""
MAX_BUCKETS = 896
"""The maximum number of buckets, which cover fourteen octaves. A value below 1/16384 of the largest value counts as
that fraction."""


class UsageHistogram:
    """A mutable histogram of values. Only adding values and merging change it."""

    __slots__ = ("base", "counts", "shift", "top", "zeros")

    def __init__(
        self,
        base: int = 0,
        counts: "array[int] | None" = None,
        nothing: int = 0,
        top: float = 0.0,
        *,
        is_paired: bool = False,
    ) -> None:
        self.base = base
        """The number of the bucket (or of the pair of buckets) of counts[0]."""
        self.counts = array("B") if counts is None else counts
        """A byte per bucket, or wider where a count needs it: widely spread values have low counts."""
        self.zeros = nothing
        """The number of values below `MIN_VALUE`."""
        self.top = top
        """The largest value, exact."""
        self.shift = 1 + is_paired
        """Lower bits of a half (see `upper_halves_of`) that are not distinguished: 1, or 2 where buckets are counted in
        pairs."""

    @property
    def is_paired(self) -> bool:
        """Whether pairs of buckets are counted instead of single buckets."""
        return self.shift == 2

    @property
    def total_count(self) -> int:
        """The number of values."""
        return self.zeros + sum(self.counts)

    def add_value(self, value: float) -> None:
        """Adds one value. An invalid value is dropped."""
        bucket = bucket_of(value)
        if bucket is None:
            return
        if value > self.top:
            self.top = value
        self._add_to_bucket(bucket, 1)

    def add_values(self, values: Sequence[float]) -> None:
        """Adds many values at once. Invalid values are dropped."""
        located = locate_buckets(values)
        if located is None:
            self.add_bucket_counts(count_buckets(upper_halves_of(values)), max_valid_value(values))
        else:
            self.add_located_values(*located, values)

    def add_located_values(self, first: int, distances: bytes, values: Sequence[float]) -> None:
        """Adds one or more values whose buckets `locate_buckets` has found, which saves most of the work per value."""
        cells = [0] * 256
        for offset in distances:
            cells[offset] += 1
        try:
            counts = bytes(cells).rstrip(b"\0")
        except ValueError:
            self.add_bucket_counts({first + offset: count for offset, count in enumerate(cells) if count}, max(values))
            return
        used, highest = counts.lstrip(b"\0"), len(counts) - 1
        top = _max_in_bucket(distances, highest, values) if cells[highest] < _MAX_LOOKUPS else max(values)
        base = first + len(counts) - len(used)
        if len(self.counts) or self.is_paired:
            self.merge(UsageHistogram(base, array("B", used), 0, top))
            return
        self.base, self.counts = base, array("B", used)
        if top > self.top:
            self.top = top

    def add_bucket_counts(self, counts_by_bucket: Mapping[int, int], top: float) -> None:
        """Adds values that are already counted by bucket number; `top` is the largest of them."""
        if not counts_by_bucket:
            return
        self.top = max(self.top, top)
        self.zeros += counts_by_bucket.get(ZERO_BUCKET, 0)
        nonzero = (
            counts_by_bucket
            if ZERO_BUCKET not in counts_by_bucket
            else {b: n for b, n in counts_by_bucket.items() if b != ZERO_BUCKET}
        )
        if not nonzero:
            return
        self._place_of(max(nonzero))
        self._place_of(min(nonzero))
        base, cells, pair_shift = self.base, self.counts, self.shift - 1
        for bucket, count in nonzero.items():
            try:
                cells[max(0, (bucket >> pair_shift) - base)] += count
            except OverflowError:
                self._add_to_bucket(bucket, count)
                cells = self.counts

    def merge(self, other: "UsageHistogram") -> None:
        """Adds every value of another histogram."""
        self.top = max(self.top, other.top)
        self.zeros += other.zeros
        if other.is_paired:
            self._pair()
        if not len(other.counts):
            return
        pair_shift = other.shift - 1
        self._place_of((other.base + len(other.counts) - 1 << pair_shift) | pair_shift)
        start = max(0, self._place_of(other.base << pair_shift))
        base, cells = (
            (other.base, other.counts) if self.shift == other.shift else pair_buckets(other.base, other.counts)
        )
        # Counts of the other histogram below the lowest place are added to the lowest place.
        below = max(0, self.base - base)
        added = cells[below:]
        self._set_counts(start, list(map(operator.add, self.counts[start : start + len(added)], added)))
        if below:
            self._set_counts(0, (self.counts[0] + sum(cells[:below]),))

    def _add_to_bucket(self, bucket: int, count: int) -> None:
        if bucket == ZERO_BUCKET:
            self.zeros += count
            return
        place = max(0, self._place_of(bucket))
        try:
            self.counts[place] += count
        except OverflowError:
            self._set_counts(place, (self.counts[place] + count,))

    def _set_counts(self, start: int, counts: Sequence[int]) -> None:
        """Stores these counts from position `start` on. If they do not fit, all cells become wider."""
        # Most writes fit the current width: the arrays are widened one step at a time, only after an overflow.
        for typecode in ("", "H", "I"):
            if typecode > "B" and typecode != self.counts.typecode:
                self.counts = array(typecode, self.counts)
            try:
                self.counts[start : start + len(counts)] = array(self.counts.typecode, counts)
                return
            except OverflowError:
                continue
        raise OverflowError("a bucket holds more than four thousand million values")

    def _place_of(self, bucket: int) -> int:
        """Returns the position of a bucket in `counts`, which are extended if necessary. The position is negative if
        the bucket is so far below the highest bucket that it is not counted separately."""
        if not len(self.counts):
            self.base, self.counts = bucket >> (self.shift - 1), array("B", [0])
        lowest, highest = min(bucket, self.base), max(bucket, self.base + len(self.counts) - 1)
        if not self.is_paired and highest - lowest >= MAX_SINGLE_BUCKETS:
            self._pair()
        place = (bucket >> (self.shift - 1)) - self.base
        if place >= len(self.counts):
            self.counts.frombytes(bytes((place - len(self.counts) + 1) * self.counts.itemsize))
            self._fold()
        elif place < 0:
            added = min(-place, self.base - self._lowest_place())
            self.counts = array(self.counts.typecode, bytes(added * self.counts.itemsize)) + self.counts
            self.base -= added
        return (bucket >> (self.shift - 1)) - self.base

    def _pair(self) -> None:
        """Counts pairs of buckets instead of single buckets from now on."""
        if not self.is_paired:
            self.base, self.counts, self.shift = *pair_buckets(self.base, self.counts), 2

    def _lowest_place(self) -> int:
        """Returns the lowest position in `counts` that is counted separately, given the highest one (see
        `MAX_BUCKETS`). Only histograms of pairs have positions below it."""
        return self.base + len(self.counts) - (MAX_BUCKETS >> (self.shift - 1))

    def _fold(self) -> None:
        """Adds the counts of all positions below the lowest separately counted position (see `_lowest_place`) to that
        position."""
        surplus = self._lowest_place() - self.base
        if surplus > 0:
            lowest = sum(self.counts[: surplus + 1])
            self.base += surplus
            self.counts = self.counts[surplus:]
            self._set_counts(0, (lowest,))

    def __eq__(self, other: object) -> bool:
        """Returns whether both histograms hold the same values, as far as buckets distinguish them."""
        return isinstance(other, UsageHistogram) and self._comparable() == other._comparable()

    # Mutable and compared by value, so it must not be hashable.
    __hash__ = None  # type: ignore[assignment]

    def _comparable(self) -> tuple[float, int, bool, dict[int, int]]:
        counts = {place: count for place, count in enumerate(self.counts, start=self.base) if count}
        return self.top, self.zeros, self.is_paired, counts

    def compute_percentiles(self, shares: Iterable[float]) -> tuple[float, ...]:
        """Returns, for each share, the value that this share of all values does not exceed (nearest rank); 0 for an
        empty histogram.

        The values of a bucket are assumed to be spread evenly over the bucket. For a pair of buckets, the middle of the
        pair is used. Both results are within 1/64 of the exact value.
        """
        total = self.total_count
        # 1e-9: a share such as 0.07 of 100 values must not become rank 8 by the error of its float.
        return tuple(
            self._value_at_rank(min(total, max(1, ceil(share * total - 1e-9)))) if total else 0.0 for share in shares
        )

    def _value_at_rank(self, rank: int) -> float:
        before = self.zeros
        if rank >= self.total_count:
            return self.top
        if rank <= before:
            return 0.0
        for place, count in enumerate(self.counts):
            if rank <= before + count:
                return self._value_in(place, 0.5 if self.is_paired else (rank - before - 0.5) / count)
            before += count
        return self.top

    def _value_in(self, place: int, part: float) -> float:
        """Returns the value that is at the fraction `part` (0 to 1) between the lower and the upper end of a bucket or
        pair."""
        pair_shift = self.shift - 1
        first = self.base + place << pair_shift
        start, end = bucket_start(first), bucket_end(first | pair_shift)
        if end > self.top and not self.is_paired:
            end = self.top
        return min(self.top, start + part * (end - start))

    def iter_buckets(self) -> Iterator[tuple[float, int]]:
        """Yields (middle, number of values) for each bucket that is not empty."""
        if self.zeros:
            yield 0.0, self.zeros
        for place, count in enumerate(self.counts):
            if count:
                yield self._value_in(place, 0.5), count

    def copy(self) -> "UsageHistogram":
        return UsageHistogram(self.base, self.counts[:], self.zeros, self.top, is_paired=self.is_paired)


def pair_buckets(base: int, counts: "array[int]") -> tuple[int, "array[int]"]:
    """Returns the counts for pairs of buckets, as (number of the first pair, counts)."""
    # Pairs begin at even bucket numbers.
    even = [0] * (base & 1) + list(counts)
    even += [0] * (len(even) & 1)
    return base >> 1, narrowest_array(list(map(operator.add, even[::2], even[1::2])))


def narrowest_array(counts: Sequence[int]) -> "array[int]":
    """Returns the counts as an array of the narrowest type that can hold them."""
    largest = max(counts, default=0)
    return array("B" if largest < 256 else "H" if largest < 65536 else "I", counts)


_MAX_LOOKUPS = 32
"""If a bucket has more values than this, one pass over all values is faster than looking each value up."""


def _max_in_bucket(distances: bytes, highest: int, values: Sequence[float]) -> float:
    """Returns the largest value, which is one of the few in the highest bucket."""
    position = distances.find(highest)
    top = values[position]
    while (position := distances.find(highest, position + 1)) >= 0:
        if values[position] > top:
            top = values[position]
    return top


def max_valid_value(values: Sequence[float]) -> float:
    """Returns the largest valid value; 0 if there is none."""
    largest = max(values, default=0.0)
    if 0 <= largest < MAX_VALUE:
        return largest
    return max((value for value in values if 0 <= value < MAX_VALUE), default=0.0)


def merge_histograms(parts: Iterable[UsageHistogram]) -> UsageHistogram:
    """Returns a new histogram with the values of all parts."""
    whole = UsageHistogram()
    for part in parts:
        whole.merge(part)
    return whole
