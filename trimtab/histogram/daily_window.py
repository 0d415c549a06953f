"""A window of the last days of usage, with one histogram per day; past days are packed as bytes.

The window is a ring of calendar days (UTC). A day counts in full until it is too old. The histogram of the newest day
is not compressed. The days before it are one compressed piece, which is unpacked when they are read or when a late
value arrives.

A past day with widely spread values is packed in pairs of buckets, which takes half the bytes and is still within 1/64
of the middle of a pair. If many days are still too large, their counts are stored as multiples of a unit, such as 4
values. The error of a percentile is then at most half a unit in rank.
"""

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from trimtab.cluster.bounded_decode import BytesRefused, Unpacker, unpack
from trimtab.histogram.histogram import (
    MAX_BUCKETS,
    UsageHistogram,
    merge_histograms,
    narrowest_array,
    pair_buckets,
    upper_halves_of,
)
from trimtab.histogram.time_buckets import (
    ALL_HOURS,
    DAY,
    HOUR,
    HOURS_PER_DAY,
    Hours,
    add_hours,
    decode_hours,
    encode_hours,
    hours_between,
    hours_within_day,
)

_HEAD = struct.Struct("<IHHBId")
"""The head of a packed day: the day number (with the unit and the flag for paired buckets in its upper bits), the first
bucket, the number of counts, the bytes per count, the number of zeros, and the largest value."""
_TOTAL = struct.Struct("<I")
"""Follows the head if the unit is larger than one: the exact number of values."""
_PAIRED_BIT, _UNIT_SHIFT = 1 << 31, 26
_DAY_MASK = (1 << _UNIT_SHIFT) - 1
_TYPECODES = {1: "B", 2: "H", 4: "I"}


class DamagedHistogram(ValueError):
    """Raised for bytes that are not a histogram in this format."""


PAIRING_THRESHOLD = 64
"""A day that uses more buckets than this is packed in pairs."""


def pack_day(day: int, histogram: UsageHistogram, *, over: bool, max_units: int | None = None) -> bytes:
    """Returns a day and its histogram as bytes, with counts as narrow as possible.

    `over`: whether the day is over, so that no more values are expected and pairs of buckets may be used. `max_units`:
    the largest number of units into which the day's values are divided; None: each value is counted."""
    paired, base, cells = histogram.is_paired, histogram.base, histogram.counts
    if not paired and over and sum(map(bool, cells)) > PAIRING_THRESHOLD:
        paired, (base, cells) = True, pair_buckets(base, cells)
    total = sum(cells)
    # Units are powers of two: the exponent takes five of the upper bits beside the day number, so the head stays one C
    # struct.
    unit_bits = 0 if max_units is None else max(0, (total - 1) // max_units).bit_length()
    # The day's parity decides the rounding of exact halves, so that the errors of many days cancel out.
    body = narrowest_array(_in_units(cells, 1 << unit_bits, day & 1) if unit_bits else cells)
    if sys.byteorder == "big":
        body.byteswap()
    day_bits = day | unit_bits << _UNIT_SHIFT | (_PAIRED_BIT if paired else 0)
    head = _HEAD.pack(day_bits, base << paired, len(body), body.itemsize, histogram.zeros, histogram.top)
    return head + (_TOTAL.pack(total) if unit_bits else b"") + body.tobytes()


def _in_units(cells: Iterable[int], unit: int, odd: int) -> list[int]:
    """Returns the counts as multiples of `unit`, rounded so that each running sum is wrong by at most half a unit. A
    sum exactly between two units is rounded down on odd days and up on even ones."""
    units, total, units_before = [], 0, 0
    for count in cells:
        total += count
        units_so_far = (total + unit // 2 - odd) // unit
        units.append(units_so_far - units_before)
        units_before = units_so_far
    return units


DAY_MEMORY = 600
"""The number of bytes that one day of a restored window takes beside its counts."""


def unpack_days(packed: bytes) -> list[tuple[int, UsageHistogram]]:
    """Returns all days in a sequence of packed days. Raises DamagedHistogram."""
    return list(iterate_days(packed))


def iterate_days(packed: bytes) -> Iterator[tuple[int, UsageHistogram]]:
    """Yields each day in a sequence of packed days. Raises DamagedHistogram."""
    position = 0
    while position < len(packed):
        day, counts, position = _unpack_day(packed, position)
        yield day, counts


def _unpack_day(packed: bytes, position: int) -> tuple[int, UsageHistogram, int]:
    """Returns (day, histogram, position after it) for the packed day at a byte position. Raises DamagedHistogram."""
    try:
        day_bits, base, length, width, nothing, top = _HEAD.unpack_from(packed, position)
        unit_bits, paired = day_bits >> _UNIT_SHIFT & 31, bool(day_bits & _PAIRED_BIT)
        start = position + _HEAD.size + (_TOTAL.size if unit_bits else 0)
        end = start + length * width
        body = array(_TYPECODES[width], packed[start:end])
        total = _TOTAL.unpack_from(packed, position + _HEAD.size)[0] if unit_bits else 0
    except (struct.error, KeyError, ValueError) as error:
        raise DamagedHistogram(f"the day at byte {position} cannot be decoded: {error}") from None
    # A NaN fails `top >= 0` as well.
    if end > len(packed) or length > MAX_BUCKETS or not top >= 0:
        raise DamagedHistogram(f"the day at byte {position} is cut short")
    if sys.byteorder == "big":
        body.byteswap()
    cells = narrowest_array(_from_units(body, 1 << unit_bits, total)) if unit_bits else body
    return day_bits & _DAY_MASK, UsageHistogram(base >> paired, cells, nothing, top, is_paired=paired), end


def _from_units(cells: Sequence[int], unit: int, total: int) -> list[int]:
    """Returns the counts of cells that are given in units. The last used cell gets the difference to the exact
    total."""
    counts = [count * unit for count in cells]
    last = max((cell for cell, count in enumerate(counts) if count), default=0)
    if counts:
        counts[last] = max(0, counts[last] + total - sum(counts))
    return counts


DEFAULT_DAYS = 14
_VERSION, _EARLIER_VERSIONS = 3, (1, 2)
"""The version of the format that is written, and earlier versions that are still read: they had no hours, and version 1
had no units."""
_HISTOGRAMS_HEAD = struct.Struct("<BBIqq")
"""The head of a dumped window: version, days in the window, newest day, first and last second."""
_DAY_BYTES = HOURS_PER_DAY // 8
"""The number of bytes for the hours of one day; the hours of all days of the window come first."""


MAX_PAST_BYTES = 1750
"""If the past days take more bytes than this, their values are counted in units. Today and the rest take less than 1
300 bytes while no bucket has more than 65 535 values, so a window stays below 3 KB."""
_UNITS_BY_STEP = (None, 4096, 2048, 1024, 512, 256)
"""The maximum number of units per day; the entries are tried in order until the past days are small enough. None: each
value is counted."""


def _pack_past(days: Mapping[int, UsageHistogram]) -> bytes:
    """Returns days that are over as one compressed piece."""
    body = b""
    for max_units in _UNITS_BY_STEP:
        body = _compress(b"".join(pack_day(day, days[day], over=True, max_units=max_units) for day in sorted(days)))
        if len(body) <= MAX_PAST_BYTES:
            break
    return body


def _compress(body: bytes) -> bytes:
    """Returns compressed bytes. The counts are irregular and seldom repeat, so Z_FILTERED is used: it relies more on
    Huffman coding than on repeated strings."""
    compressor = zlib.compressobj(6, strategy=zlib.Z_FILTERED)
    return compressor.compress(body) + compressor.flush()


class DailyHistograms:
    """The last `days` days of one resource of one container. Times are seconds since 1970; days are UTC days."""

    __slots__ = ("days", "first", "hours", "last", "newest", "packed_past", "today", "unstored_bits")

    def __init__(self, days: int = DEFAULT_DAYS) -> None:
        self.days = days
        self.newest = 0
        self.today = UsageHistogram()
        self.packed_past = b""
        self.first = 0
        """The second of the oldest value that may still count; 0 for an empty window."""
        self.last = 0
        self.hours = 0
        """The hours in which usage was observed, encoded from the newest day on (see `time_buckets.encode_hours`)."""
        self.unstored_bits = 0
        """A bit for each day that changed since `mark_stored`, the lowest for the newest day."""

    def add_value(self, at: int, value: float) -> bool:
        """Adds one value. Returns False if the value is too old for the window and was dropped."""
        return self.add_values(at, at, (value,))

    def add_values(self, first: int, last: int, values: Sequence[float], hours: int | None = None) -> bool:
        """Adds values of one day. They were observed from `first` to `last`, or, if `hours` is given, in those hours of
        the day (one bit per hour). Returns False if the day is too old."""
        day = first // DAY
        if day == self.newest:
            self.today.add_values(values)
        elif day > self.newest:
            self._begin_day(day)
            self.today.add_values(values)
        elif day <= self.newest - self.days:
            return False
        else:
            histograms = self.histograms_by_day()
            histograms.setdefault(day, UsageHistogram()).add_values(values)
            self._retain(histograms, self.hours_by_day())
        # The newest day has the lowest bits: the hours of an older day are shifted up.
        self.hours |= (hours_within_day(first, last) if hours is None else hours) << HOURS_PER_DAY * (self.newest - day)
        self.unstored_bits |= 1 << self.newest - day
        self._extend_span(first, last)
        return True

    def _extend_span(self, first: int, last: int) -> None:
        oldest = (self.newest - self.days + 1) * DAY
        self.first = max(min(self.first or first, first), oldest)
        self.last = max(self.last, last)

    def _begin_day(self, day: int) -> None:
        """Begins a new day, and drops the days that are too old."""
        histograms, hours = self.histograms_by_day(), self.hours_by_day()
        self.today = UsageHistogram()
        self._move_to(day)
        self._retain(histograms, hours)

    def _move_to(self, day: int) -> None:
        """Makes `day` the newest day of the window, and shifts the bit set of unstored days by the same number of
        days."""
        # Days that fall out of the window lose their bit.
        self.unstored_bits = (
            self.unstored_bits << (day - self.newest) & (1 << self.days) - 1 if self.unstored_bits else 0
        )
        self.newest = day

    def _retain(self, histograms: Mapping[int, UsageHistogram], hours: Hours) -> None:
        """Stores these histograms and hours, without the days that are too old. The histogram of the newest day becomes
        `today`."""
        recent = {day: counts for day, counts in histograms.items() if day > self.newest - self.days}
        self.today = recent.pop(self.newest, self.today)
        self.packed_past = _pack_past(recent) if recent else b""
        self.hours = encode_hours(hours, self.newest, self.days)
        self.first = max(self.first, (self.newest - self.days + 1) * DAY) if self.first else 0

    def histograms_by_day(self) -> dict[int, UsageHistogram]:
        """Returns day (since 1970) → its histogram. The histogram of the newest day is not a copy."""
        histograms = dict(unpack_days(unpack(self.packed_past))) if self.packed_past else {}
        if self.last or self.today.total_count:
            histograms[self.newest] = self.today
        return histograms

    def histograms_of_days(self, days: Iterable[int]) -> dict[int, UsageHistogram]:
        """Returns day → histogram, for those of these days that have values. The histogram of the newest day is not a
        copy."""
        wanted = set(days)
        if wanted == {self.newest} and (self.last or self.today.total_count):
            return {self.newest: self.today}  # the past days stay packed
        return {day: counts for day, counts in self.histograms_by_day().items() if day in wanted}

    def merge_days(self) -> UsageHistogram:
        """Returns one histogram with the values of all days."""
        return merge_histograms(self.histograms_by_day().values())

    def compute_percentiles(self, shares: Iterable[float]) -> tuple[float, ...]:
        """Returns the percentiles of all values; zeros for an empty window."""
        return self.merge_days().compute_percentiles(shares)

    def hours_by_day(self) -> Hours:
        """Returns day → the hours in which usage was observed (one bit per hour)."""
        return decode_hours(self.hours, self.newest)

    def hours_of(self, day: int) -> int:
        """Returns the hours of one day in which usage was observed (one bit per hour)."""
        ago = self.newest - day
        return self.hours >> HOURS_PER_DAY * ago & ALL_HOURS if ago >= 0 else 0

    @property
    def observed_days(self) -> int:
        """The number of days on which usage was observed, however short."""
        return len(self.hours_by_day())

    @property
    def observed_seconds(self) -> int:
        """The observed time in seconds. Each hour with a value counts in full, but the total is at most the time from
        the first value to the last. Hours without values do not count."""
        return min(HOUR * self.hours.bit_count(), max(0, self.last - self.first))

    def merge(self, other: "DailyHistograms") -> None:
        """Adds every value of another window, day by day."""
        if not other.last:
            return
        theirs = other.histograms_by_day()
        if theirs.keys() == {self.newest} and self.last:  # the common case: values of the last minutes
            self.today.merge(other.today)
            self.hours |= other.hours
            self.unstored_bits |= 1
            self._extend_span(other.first, other.last)
            return
        mine, hours = self.histograms_by_day(), dict(self.hours_by_day())
        add_hours(hours, other.hours_by_day())
        self.today = UsageHistogram()
        self._move_to(max(self.newest, other.newest))
        for day, counts in theirs.items():
            self.unstored_bits |= 1 << self.newest - day
            if day in mine:
                mine[day].merge(counts)
            else:
                mine[day] = counts.copy()
        self.unstored_bits &= (1 << self.days) - 1
        self._retain(mine, hours)
        self._extend_span(other.first, other.last)

    def unstored_days(self) -> list[int]:
        """Returns the days whose histograms changed since `mark_stored`, the newest last."""
        bits = self.unstored_bits
        return [self.newest - ago for ago in range(bits.bit_length() - 1, -1, -1) if bits >> ago & 1]

    def mark_stored(self, day: int) -> None:
        """Records that the present content of this day is stored."""
        if 0 <= self.newest - day < self.days:
            self.unstored_bits &= ~(1 << self.newest - day)

    def dump(self) -> bytes:
        """Returns the whole window as bytes, for `load`."""
        body = self.hours.to_bytes(_DAY_BYTES * self.days, "little") + (
            unpack(self.packed_past) if self.packed_past else b""
        )
        if self.last or self.today.total_count:
            body += pack_day(self.newest, self.today, over=False)
        return _HISTOGRAMS_HEAD.pack(_VERSION, self.days, self.newest, self.first, self.last) + _compress(body)

    @classmethod
    def load(cls, dumped: bytes, unpacker: Unpacker | None = None) -> "DailyHistograms":
        """Returns the window that `dump` returned as bytes. Raises DamagedHistogram; there is no partial result.

        With `unpacker`, the content counts towards the size of the document to which the window belongs."""
        try:
            version, days, newest, first, last = _HISTOGRAMS_HEAD.unpack_from(dumped)
            body = (unpacker or Unpacker()).unpack(dumped[_HISTOGRAMS_HEAD.size :])
        except (struct.error, BytesRefused) as error:
            raise DamagedHistogram(str(error)) from None
        if version != _VERSION and version not in _EARLIER_VERSIONS:
            raise DamagedHistogram(f"the data has the version {version}, but this Trimtab reads version {_VERSION}")
        window = cls(days)
        window.newest, window.first, window.last = newest, first, last
        hours_length = 0 if version in _EARLIER_VERSIONS else _DAY_BYTES * days
        histograms: dict[int, UsageHistogram] = {}
        for day, histogram in iterate_days(body[hours_length:]):
            histograms[day] = histogram
            if len(histograms) > days:
                raise DamagedHistogram(f"the data has more than the {days} days of its window")
        hours = (
            decode_hours(int.from_bytes(body[:hours_length], "little"), newest)
            if hours_length
            else _hours_without_record(histograms, first, last)
        )
        window._retain(histograms, hours)
        window._set_unstored(histograms)
        return window

    @classmethod
    def from_days(
        cls, histograms: Mapping[int, UsageHistogram], hours: Hours, first: int, last: int, days: int = DEFAULT_DAYS
    ) -> "DailyHistograms":
        """Returns a window with the last `days` of these days, observed from `first` to `last` in these hours."""
        window = cls(days)
        window.newest = max(histograms, default=0)
        window._retain(histograms, hours)
        window._set_unstored(histograms)
        window._extend_span(first, last)
        return window

    def _set_unstored(self, days: Iterable[int]) -> None:
        """Records that these days are not stored. Days that are no longer in the window are left out."""
        for day in days:
            if self.newest - day < self.days:
                self.unstored_bits |= 1 << self.newest - day

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DailyHistograms) and (
            (self.first, self.last, self.hours_by_day(), self.histograms_by_day())
            == (other.first, other.last, other.hours_by_day(), other.histograms_by_day())
        )

    # Mutable and compared by value, so it must not be hashable.
    __hash__ = None  # type: ignore[assignment]


def _hours_without_record(days_with_values: Iterable[int], first: int, last: int) -> Hours:
    """Returns the hours for a window that has none recorded: all hours between the first and the last value, on the
    days that have values."""
    days = set(days_with_values)
    return {day: hours for day, hours in hours_between(first, last).items() if day in days}


def add_to_windows(windows: Sequence[DailyHistograms], at: int, values: Sequence[float]) -> None:
    """Adds one value to each of many windows, all at the same moment. The moment must not be earlier than the last
    value of any window. Used for the result of one poll of all containers."""
    hour_start = at // HOUR * HOUR
    for window, value, upper_half in zip(windows, values, upper_halves_of(values), strict=True):
        histogram = window.today
        cell = (upper_half >> histogram.shift) - histogram.base
        if window.last < hour_start or not 0 <= cell < len(histogram.counts):
            window.add_value(at, value)  # also the first value of each hour, which sets its bit
            continue
        try:
            histogram.counts[cell] += 1
        except OverflowError:
            histogram.add_value(value)
        if value > histogram.top:
            histogram.top = value
        window.last = at
        window.unstored_bits |= 1
