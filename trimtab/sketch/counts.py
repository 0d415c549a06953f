"""How many values fell into each bucket?"""

import operator
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

from trimtab.sketch.buckets import GREATEST, NOTHING, halves, high, low, number, numbers, spread

WIDEST = 768
"""Buckets at most: twelve octaves. What is below 1/4096 of the greatest value is counted as that much."""


class Counts:
    """A distribution. Mutable: it is added to and merged into; everything else asks."""

    __slots__ = ("base", "counts", "nothing", "paired", "top")

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
        """The bucket number of counts[0]."""
        self.counts = array("B") if counts is None else counts
        """A byte each, or wider where a count asks for it: what is spread wide has low counts."""
        self.nothing = nothing
        """How many values were (almost) zero."""
        self.top = top
        """The greatest value, exact."""
        self.paired = paired
        """Some of it was kept in pairs of buckets (see `packed`): no more than that can be told apart."""

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
        if len(self.counts):
            self.merge(Counts(base, array("B", held), 0, top))
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
        base, cells = self.base, self.counts
        for bucket, count in held.items():
            try:
                cells[max(0, bucket - base)] += count
            except OverflowError:
                self._count(bucket, count)
                cells = self.counts

    def merge(self, other: "Counts") -> None:
        """As if every value of the other had been added here."""
        self.top = max(self.top, other.top)
        self.nothing += other.nothing
        self.paired |= other.paired
        if not len(other.counts):
            return
        self._room(other.base + len(other.counts) - 1)
        start = max(0, self._room(other.base))
        below = max(0, self.base - other.base)
        part = other.counts[below:]
        self._put(start, list(map(operator.add, self.counts[start : start + len(part)], part)))
        if below:
            self._count(self.base, sum(other.counts[:below]))

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
            self.base, self.counts = bucket, array("B", [0])
        place = bucket - self.base
        if place >= len(self.counts):
            self.counts.frombytes(bytes((place - len(self.counts) + 1) * self.counts.itemsize))
            self._fold()
        elif place < 0:
            more = min(-place, self.base - self._floor())
            self.counts = array(self.counts.typecode, bytes(more * self.counts.itemsize)) + self.counts
            self.base -= more
        return bucket - self.base

    def _floor(self) -> int:
        """The lowest bucket that is told apart from the highest; even, so that pairs of buckets stay pairs."""
        return ((self.base + len(self.counts) - 1) | 1) + 1 - WIDEST

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
        return isinstance(other, Counts) and self._told() == other._told()

    __hash__ = None  # type: ignore[assignment]

    def _told(self) -> tuple[float, int, bool, dict[int, int]]:
        found: dict[int, int] = {}
        for bucket, count in enumerate(self.counts, start=self.base):
            if count:
                told = bucket & ~1 if self.paired else bucket
                found[told] = found.get(told, 0) + count
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
                bucket, part = self.base + place, (rank - before - 0.5) / count
                return self._within(bucket & ~1, bucket | 1, 0.5) if self.paired else self._within(bucket, bucket, part)
            before += count
        return self.top

    def _within(self, first: int, last: int, part: float) -> float:
        start, end = low(first), high(last)
        if end > self.top and not self.paired:
            end = self.top
        return min(self.top, start + part * (end - start))

    def values(self) -> Iterator[tuple[float, int]]:
        """Every bucket that holds something: its middle, and how many values it holds."""
        if self.nothing:
            yield 0.0, self.nothing
        for bucket, count in enumerate(self.counts, start=self.base):
            if count:
                first, last = (bucket & ~1, bucket | 1) if self.paired else (bucket, bucket)
                yield self._within(first, last, 0.5), count

    def copy(self) -> "Counts":
        return Counts(self.base, self.counts[:], self.nothing, self.top, paired=self.paired)


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


def merged(parts: Iterable[Counts]) -> Counts:
    """All of them as one; the parts stay as they are."""
    whole = Counts()
    for part in parts:
        whole.merge(part)
    return whole
