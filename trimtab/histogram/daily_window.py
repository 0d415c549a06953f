"""A day's counts as bytes, and back.

A day that is over and spread wide is kept in pairs of buckets: half the bytes, and still within 1/64 of the middle of
a pair. Where many days are too much all the same, counts are kept in units of several values: the value at a rank is
then that of a rank at most half a unit beside it.

What was seen in the last days?

A ring of days, as people mean "the last two weeks": nothing fades, a day is there until it is too old. The newest day
is dense, those before it are one compressed piece, opened when somebody asks or a value comes late.
"""

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence

from trimtab.histogram.histogram import WIDEST, UsageHistogram, halves, merged, narrow, pairs
from trimtab.histogram.time_buckets import A_DAY, DAY, HOUR, WHOLE, Hours, during, join, ring, unring, within

_HEAD = struct.Struct("<IHHBId")
"""Day (the upper bits: in pairs, unit), base, length, width of a count, nothing, top."""
_HELD = struct.Struct("<I")
"""Behind it where the unit is more than one: how many values there are in all."""
_PAIRS, _UNIT = 1 << 31, 26
_DAY = (1 << _UNIT) - 1
_WIDTHS = {1: "B", 2: "H", 4: "I"}


class DamagedHistogram(ValueError):
    """These bytes hold no sketch of ours."""


WIDE = 64
"""Buckets that hold something, beyond which a day is kept in pairs."""


def pack(day: int, counts: UsageHistogram, *, over: bool, most: int | None = None) -> bytes:
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


def unpack(packed: bytes) -> list[tuple[int, UsageHistogram]]:
    """All days that stand behind one another. Raises Damaged."""
    found, at = [], 0
    while at < len(packed):
        day, counts, at = _one(packed, at)
        found.append((day, counts))
    return found


def _one(packed: bytes, at: int) -> tuple[int, UsageHistogram, int]:
    try:
        marked, base, length, width, nothing, top = _HEAD.unpack_from(packed, at)
        step, paired = marked >> _UNIT & 31, bool(marked & _PAIRS)
        start = at + _HEAD.size + (_HELD.size if step else 0)
        end = start + length * width
        body = array(_WIDTHS[width], packed[start:end])
        held = _HELD.unpack_from(packed, at + _HEAD.size)[0] if step else 0
    except (struct.error, KeyError, ValueError) as error:
        raise DamagedHistogram(f"a day at byte {at} makes no sense: {error}") from None
    if end > len(packed) or length > WIDEST or not top >= 0:
        raise DamagedHistogram(f"a day at byte {at} is cut short")
    if sys.byteorder == "big":
        body.byteswap()
    cells = narrow(_values(body, 1 << step, held)) if step else body
    return marked & _DAY, UsageHistogram(base >> paired, cells, nothing, top, paired=paired), end


def _values(cells: Sequence[int], unit: int, held: int) -> list[int]:
    """The other way; what the units are too many or too few, the last cell that holds something takes."""
    found = [count * unit for count in cells]
    last = max((place for place, count in enumerate(found) if count), default=0)
    if found:
        found[last] = max(0, found[last] + held - sum(found))
    return found


DAYS = 14
_VERSION, _BEFORE = 3, (1, 2)
"""Those before knew no hours (and the first no units), and are read as well."""
_HISTOGRAMS_HEAD = struct.Struct("<BBIqq")
"""Version, days kept, newest day, first and last second."""
_A_DAY = A_DAY // 8
"""Bytes of a day's hours, of which as many days as are kept stand before all else."""


BUDGET = 1750
"""Bytes the past of a window may take before its days are counted in units. Today and all around it take less than
1 300, while none of its buckets holds more than 65 535: so all of it stays below 3 KB."""
_MOST = (None, 4096, 2048, 1024, 512, 256)
"""Units a day at most, one after the other until the past is small enough."""


def _past(kept: Mapping[int, UsageHistogram]) -> bytes:
    """Days that are over, in one compressed piece."""
    found = b""
    for most in _MOST:
        found = _pressed(b"".join(pack(day, kept[day], over=True, most=most) for day in sorted(kept)))
        if len(found) <= BUDGET:
            break
    return found


def _pressed(body: bytes) -> bytes:
    """Counts are noise around a shape: what is found by letters counts, not what repeats itself."""
    press = zlib.compressobj(6, strategy=zlib.Z_FILTERED)
    return press.compress(body) + press.flush()


class DailyHistograms:
    """The last `days` days of one resource of one container. Times are seconds since 1970, days are those of UTC."""

    __slots__ = ("days", "first", "hours", "last", "newest", "past", "today", "unstored")

    def __init__(self, days: int = DAYS) -> None:
        self.days = days
        self.newest = 0
        self.today = UsageHistogram()
        self.past = b""
        self.first = 0
        """Second of the oldest value that may still count; 0 when nothing was seen."""
        self.last = 0
        self.hours = 0
        """In which hours something was seen, as a `ring` from the newest day on."""
        self.unstored = 0
        """A bit for each day that changed since `set_stored`, the lowest for the newest."""

    def add(self, at: int, value: float) -> bool:
        """One value; False where it is too old for the window and was left out."""
        return self.extend(at, at, (value,))

    def extend(self, first: int, last: int, values: Sequence[float], looked: int | None = None) -> bool:
        """Values of one day, seen from `first` to `last`, or in those of its hours that `looked` tells (see `hours`);
        False where that day is too old."""
        day = first // DAY
        if day == self.newest:
            self.today.extend(values)
        elif day > self.newest:
            self._turn(day)
            self.today.extend(values)
        elif day <= self.newest - self.days:
            return False
        else:
            self._late(day, values)
        self.hours |= (within(first, last) if looked is None else looked) << A_DAY * (self.newest - day)
        self.unstored |= 1 << self.newest - day
        self._span(first, last)
        return True

    def _span(self, first: int, last: int) -> None:
        oldest = (self.newest - self.days + 1) * DAY
        self.first = max(min(self.first or first, first), oldest)
        self.last = max(self.last, last)

    def _turn(self, day: int) -> None:
        """A new day begins; what is too old goes."""
        held, hours = self.by_day(), self.looked()
        self.today = UsageHistogram()
        self._move_to(day)
        self._keep(held, hours)

    def _move_to(self, day: int) -> None:
        """That day is the newest from now on."""
        self.unstored = self.unstored << (day - self.newest) & (1 << self.days) - 1 if self.unstored else 0
        self.newest = day

    def _late(self, day: int, values: Sequence[float]) -> None:
        held = self.by_day()
        held.setdefault(day, UsageHistogram()).extend(values)
        self._keep(held, self.looked())

    def _keep(self, held: Mapping[int, UsageHistogram], hours: Hours) -> None:
        """These days and hours, as far as they are young enough; the newest is `today`."""
        kept = {day: counts for day, counts in held.items() if day > self.newest - self.days}
        self.today = kept.pop(self.newest, self.today)
        self.past = _past(kept) if kept else b""
        self.hours = ring(hours, self.newest, self.days)
        self.first = max(self.first, (self.newest - self.days + 1) * DAY) if self.first else 0

    def by_day(self) -> dict[int, UsageHistogram]:
        """Day (since 1970) → what was seen in it; the newest is not a copy."""
        found = dict(unpack(zlib.decompress(self.past))) if self.past else {}
        if self.last or self.today.total:
            found[self.newest] = self.today
        return found

    def counts_of(self, days: Iterable[int]) -> dict[int, UsageHistogram]:
        """The counts of those of these days on which something was seen; the newest is not a copy."""
        wanted = set(days)
        if wanted == {self.newest} and (self.last or self.today.total):
            return {self.newest: self.today}  # without opening the past
        return {day: counts for day, counts in self.by_day().items() if day in wanted}

    def whole(self) -> UsageHistogram:
        """All days as one."""
        return merged(self.by_day().values())

    def percentiles(self, shares: Iterable[float]) -> tuple[float, ...]:
        """Of all that was seen; zeros where nothing was."""
        return self.whole().percentiles(shares)

    def looked(self) -> Hours:
        """In which hours of which days something was seen."""
        return unring(self.hours, self.newest)

    def hours_of(self, day: int) -> int:
        """The same of one day."""
        ago = self.newest - day
        return self.hours >> A_DAY * ago & WHOLE if ago >= 0 else 0

    @property
    def days_seen(self) -> int:
        """On how many days something was seen, for however long."""
        return len(self.looked())

    @property
    def seconds(self) -> int:
        """For how long something was seen: every hour in which it was, but no more than from the first value to the
        last. What lies in between and was not seen is no history."""
        return min(HOUR * self.hours.bit_count(), max(0, self.last - self.first))

    def merge(self, other: "DailyHistograms") -> None:
        """As if every value of the other had been added here, day by day."""
        if not other.last:
            return
        theirs = other.by_day()
        if theirs.keys() == {self.newest} and self.last:  # nearly always: what the last minutes brought
            self.today.merge(other.today)
            self.hours |= other.hours
            self.unstored |= 1
            self._span(other.first, other.last)
            return
        mine, hours = self.by_day(), dict(self.looked())
        join(hours, other.looked())
        self.today = UsageHistogram()
        self._move_to(max(self.newest, other.newest))
        for day, counts in theirs.items():
            self.unstored |= 1 << self.newest - day
            if day in mine:
                mine[day].merge(counts)
            else:
                mine[day] = counts.copy()
        self.unstored &= (1 << self.days) - 1
        self._keep(mine, hours)
        self._span(other.first, other.last)

    def unstored_days(self) -> list[int]:
        """The days whose counts changed since `set_stored`, the newest last."""
        bits = self.unstored
        return [self.newest - ago for ago in range(bits.bit_length() - 1, -1, -1) if bits >> ago & 1]

    def set_stored(self, day: int) -> None:
        """What that day holds now is stored somewhere."""
        if 0 <= self.newest - day < self.days:
            self.unstored &= ~(1 << self.newest - day)

    def dump(self) -> bytes:
        """All of it, for a checkpoint."""
        body = self.hours.to_bytes(_A_DAY * self.days, "little") + (zlib.decompress(self.past) if self.past else b"")
        if self.last or self.today.total:
            body += pack(self.newest, self.today, over=False)
        return _HISTOGRAMS_HEAD.pack(_VERSION, self.days, self.newest, self.first, self.last) + _pressed(body)

    @classmethod
    def load(cls, dumped: bytes) -> "DailyHistograms":
        """What `dump` wrote. Raises Damaged, and never gives half of it."""
        try:
            version, days, newest, first, last = _HISTOGRAMS_HEAD.unpack_from(dumped)
            body = zlib.decompress(dumped[_HISTOGRAMS_HEAD.size :])
        except (struct.error, zlib.error) as error:
            raise DamagedHistogram(str(error)) from None
        if version != _VERSION and version not in _BEFORE:
            raise DamagedHistogram(f"version {version}; this one reads version {_VERSION}")
        found = cls(days)
        found.newest, found.first, found.last = newest, first, last
        told = 0 if version in _BEFORE else _A_DAY * days
        held = dict(unpack(body[told:]))
        hours = unring(int.from_bytes(body[:told], "little"), newest) if told else _spanned(held, first, last)
        found._keep(held, hours)
        found._set_unstored(held)
        return found

    @classmethod
    def of(
        cls, held: Mapping[int, UsageHistogram], hours: Hours, first: int, last: int, days: int = DAYS
    ) -> "DailyHistograms":
        """The last of these days, seen from `first` to `last` in these hours."""
        found = cls(days)
        found.newest = max(held, default=0)
        found._keep(held, hours)
        found._set_unstored(held)
        found._span(first, last)
        return found

    def _set_unstored(self, held: Iterable[int]) -> None:
        """These days, as far as they are young enough, are stored nowhere yet."""
        for day in held:
            if self.newest - day < self.days:
                self.unstored |= 1 << self.newest - day

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DailyHistograms) and (self.first, self.last, self.looked(), self.by_day()) == (
            other.first, other.last, other.looked(), other.by_day())  # fmt: skip

    __hash__ = None  # type: ignore[assignment]


def _spanned(held: Iterable[int], first: int, last: int) -> Hours:
    """Of who told no hours: all between the first and the last of the days in which something was seen."""
    days = set(held)
    return {day: hours for day, hours in during(first, last).items() if day in days}


def observe(windows: Sequence[DailyHistograms], at: int, values: Sequence[float]) -> None:
    """One value for each of many windows at one moment, no earlier than before: what a poll of everything brings."""
    began = at // HOUR * HOUR
    for window, value, half in zip(windows, values, halves(values), strict=True):
        counts = window.today
        place = (half >> counts.shift) - counts.base
        if window.last < began or not 0 <= place < len(counts.counts):
            window.add(at, value)  # as well as the first of each hour
            continue
        try:
            counts.counts[place] += 1
        except OverflowError:
            counts.add(value)
        if value > counts.top:
            counts.top = value
        window.last = at
        window.unstored |= 1
