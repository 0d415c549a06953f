"""What was seen in the last days?

A ring of days, as people mean "the last two weeks": nothing fades, a day is there until it is too old. The newest day
is dense, those before it are one compressed piece, opened when somebody asks or a value comes late.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

from trimtab.sketch.buckets import halves
from trimtab.sketch.counts import Counts, merged
from trimtab.sketch.hours import A_DAY, DAY, HOUR, WHOLE, Hours, during, join, ring, unring, within
from trimtab.sketch.packed import Damaged, pack, unpack

DAYS = 14
_VERSION, _BEFORE = 3, (1, 2)
"""Those before knew no hours (and the first no units), and are read as well."""
_HEAD = struct.Struct("<BBIqq")
"""Version, days kept, newest day, first and last second."""
_A_DAY = A_DAY // 8
"""Bytes of a day's hours, of which as many days as are kept stand before all else."""


BUDGET = 1750
"""Bytes the past of a window may take before its days are counted in units. Today and all around it take less than
1 300, while none of its buckets holds more than 65 535: so all of it stays below 3 KB."""
_MOST = (None, 4096, 2048, 1024, 512, 256)
"""Units a day at most, one after the other until the past is small enough."""


def _past(kept: Mapping[int, Counts]) -> bytes:
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


class Window:
    """The last `days` days of one resource of one container. Times are seconds since 1970, days are those of UTC."""

    __slots__ = ("days", "first", "hours", "last", "newest", "past", "today")

    def __init__(self, days: int = DAYS) -> None:
        self.days = days
        self.newest = 0
        self.today = Counts()
        self.past = b""
        self.first = 0
        """Second of the oldest value that may still count; 0 when nothing was seen."""
        self.last = 0
        self.hours = 0
        """In which hours something was seen, as a `ring` from the newest day on."""

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
        self._span(first, last)
        return True

    def _span(self, first: int, last: int) -> None:
        oldest = (self.newest - self.days + 1) * DAY
        self.first = max(min(self.first or first, first), oldest)
        self.last = max(self.last, last)

    def _turn(self, day: int) -> None:
        """A new day begins; what is too old goes."""
        held, hours = self.by_day(), self.looked()
        self.newest, self.today = day, Counts()
        self._keep(held, hours)

    def _late(self, day: int, values: Sequence[float]) -> None:
        held = self.by_day()
        held.setdefault(day, Counts()).extend(values)
        self._keep(held, self.looked())

    def _keep(self, held: Mapping[int, Counts], hours: Hours) -> None:
        """These days and hours, as far as they are young enough; the newest is `today`."""
        kept = {day: counts for day, counts in held.items() if day > self.newest - self.days}
        self.today = kept.pop(self.newest, self.today)
        self.past = _past(kept) if kept else b""
        self.hours = ring(hours, self.newest, self.days)
        self.first = max(self.first, (self.newest - self.days + 1) * DAY) if self.first else 0

    def by_day(self) -> dict[int, Counts]:
        """Day (since 1970) → what was seen in it; the newest is not a copy."""
        found = dict(unpack(zlib.decompress(self.past))) if self.past else {}
        if self.last or self.today.total:
            found[self.newest] = self.today
        return found

    def whole(self) -> Counts:
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

    def merge(self, other: "Window") -> None:
        """As if every value of the other had been added here, day by day."""
        if not other.last:
            return
        theirs = other.by_day()
        if theirs.keys() == {self.newest} and self.last:  # nearly always: what the last minutes brought
            self.today.merge(other.today)
            self.hours |= other.hours
            self._span(other.first, other.last)
            return
        mine, hours = self.by_day(), dict(self.looked())
        join(hours, other.looked())
        self.newest, self.today = max(self.newest, other.newest), Counts()
        for day, counts in theirs.items():
            if day in mine:
                mine[day].merge(counts)
            else:
                mine[day] = counts.copy()
        self._keep(mine, hours)
        self._span(other.first, other.last)

    def dump(self) -> bytes:
        """All of it, for a checkpoint."""
        body = self.hours.to_bytes(_A_DAY * self.days, "little") + (zlib.decompress(self.past) if self.past else b"")
        if self.last or self.today.total:
            body += pack(self.newest, self.today, over=False)
        return _HEAD.pack(_VERSION, self.days, self.newest, self.first, self.last) + _pressed(body)

    @classmethod
    def load(cls, dumped: bytes) -> "Window":
        """What `dump` wrote. Raises Damaged, and never gives half of it."""
        try:
            version, days, newest, first, last = _HEAD.unpack_from(dumped)
            body = zlib.decompress(dumped[_HEAD.size :])
        except (struct.error, zlib.error) as error:
            raise Damaged(str(error)) from None
        if version != _VERSION and version not in _BEFORE:
            raise Damaged(f"version {version}; this one reads version {_VERSION}")
        found = cls(days)
        found.newest, found.first, found.last = newest, first, last
        told = 0 if version in _BEFORE else _A_DAY * days
        held = dict(unpack(body[told:]))
        hours = unring(int.from_bytes(body[:told], "little"), newest) if told else _spanned(held, first, last)
        found._keep(held, hours)
        return found

    @classmethod
    def of(cls, held: Mapping[int, Counts], hours: Hours, first: int, last: int, days: int = DAYS) -> "Window":
        """The last of these days, seen from `first` to `last` in these hours."""
        found = cls(days)
        found.newest = max(held, default=0)
        found._keep(held, hours)
        found._span(first, last)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Window) and (self.first, self.last, self.looked(), self.by_day()) == (
            other.first, other.last, other.looked(), other.by_day())  # fmt: skip

    __hash__ = None  # type: ignore[assignment]


def _spanned(held: Iterable[int], first: int, last: int) -> Hours:
    """Of who told no hours: all between the first and the last of the days in which something was seen."""
    days = set(held)
    return {day: hours for day, hours in during(first, last).items() if day in days}


def observe(windows: Sequence[Window], at: int, values: Sequence[float]) -> None:
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
