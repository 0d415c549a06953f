"""A profile: the formula by which one vendor reserves cpu, memory, disk and process ids of a node.

Amounts are exact fractions, because a percentage of a number of bytes is not a whole number, and the sum of rounded
parts is not the rounded sum. Cpu is in millicores, memory and disk in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

GIB = 1 << 30
MIB = 1 << 20
ZERO = Fraction(0)


class Direction(StrEnum):
    """The direction in which an amount is rounded."""

    UP = "up"
    DOWN = "down"
    NEAREST = "nearest"
    """To the nearest step; an amount in the middle is rounded up."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounding to whole steps."""

    step: Fraction
    direction: Direction

    def round_amount(self, amount: Fraction) -> Fraction:
        """Returns the amount, rounded to a multiple of the step."""
        steps = amount / self.step
        if self.direction is Direction.UP:
            return self.step * -(-steps // 1)
        if self.direction is Direction.NEAREST:
            steps += Fraction(1, 2)
        return self.step * (steps // 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """A range of machine sizes, and the share that is reserved of the part of a machine's size that lies in it. A
    bracket begins where the previous one ends."""

    up_to: Fraction | None
    """The end of the bracket, or None for the last one, which has no end."""
    share: Fraction
    """The reserved share, from 0 to 1."""
    width_beyond: Fraction | None = None
    """For a machine that is larger than the bracket: the amount that the vendor's program counts for this bracket.
    None: the width of the bracket."""
    counted_from: Fraction | None = None
    """The size from which the vendor's program counts this bracket. None: the beginning of the bracket."""


class TermKind(StrEnum):
    """The kind of one term of a formula."""

    BASE = "base"
    BRACKET = "bracket"
    PER_POD = "per-pod"
    SMALL_MACHINE = "small-machine"
    MAX_SHARE = "max-share"
    MINIMUM = "minimum"
    ROUNDING = "rounding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term of a reservation. The terms of a reservation add up to exactly its amount."""

    kind: TermKind
    amount: Fraction
    low: Fraction = ZERO
    """For a bracket, its beginning. For an amount per pod, the amount for each pod."""
    high: Fraction | None = None
    """For a bracket, the end of the part that is counted. For an amount per pod, the number of pods."""
    share: Fraction = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountRule:
    """How much of one resource is reserved, depending on the size of the machine and its number of pods."""

    base: Fraction = ZERO
    brackets: tuple[Bracket, ...] = ()
    per_pod: Fraction = ZERO
    max_share: Fraction | None = None
    """The largest share of the size that may be reserved, or None if there is no such limit."""
    minimum: Fraction = ZERO
    small_below: Fraction | None = None
    """For a machine that is smaller than this, `small_amount` is reserved, and no other term counts; None: there is no
    such rule."""
    small_amount: Fraction = ZERO
    shared_core: Fraction | None = None
    """The amount that is reserved on a machine with shared cores, or None if it is treated like any other machine."""
    size_rounding: Rounding | None = None
    """How the vendor's program rounds the size of the machine, or None if it does not."""
    bracket_rounding: Rounding | None = None
    rounding: Rounding | None = None

    def list_terms(self, size: Fraction, pods: Fraction, *, is_shared_core: bool = False) -> tuple[Term, ...]:
        """Returns the terms for a machine of this size, whose sum is what is reserved."""
        if is_shared_core and self.shared_core is not None:
            return (Term(kind=TermKind.SMALL_MACHINE, amount=self.shared_core),)
        if self.small_below is not None and size < self.small_below:
            return (Term(kind=TermKind.SMALL_MACHINE, amount=self.small_amount, high=self.small_below),)
        counted_size = self.size_rounding.round_amount(size) if self.size_rounding else size
        terms = [*self._sum_terms(counted_size, pods)]
        for kind, bounded in (
            (TermKind.MAX_SHARE, self._within_share(counted_size, _sum_amounts(terms))),
            (TermKind.MINIMUM, None),
            (TermKind.ROUNDING, None),
        ):
            total = _sum_amounts(terms)
            wanted = bounded if bounded is not None else self._after_step(kind, total)
            if wanted != total:
                terms.append(Term(kind=kind, amount=wanted - total, share=self.max_share or ZERO))
        return tuple(terms)

    def _sum_terms(self, size: Fraction, pods: Fraction) -> Iterator[Term]:
        if self.base:
            yield Term(kind=TermKind.BASE, amount=self.base)
        yield from self._bracket_terms(size)
        if self.per_pod:
            yield Term(kind=TermKind.PER_POD, amount=self.per_pod * pods, low=self.per_pod, high=pods)

    def _bracket_terms(self, size: Fraction) -> Iterator[Term]:
        low = ZERO
        for bracket in self.brackets:
            if size <= low:
                return
            high = size if bracket.up_to is None else min(size, bracket.up_to)
            width = high - (low if bracket.counted_from is None else bracket.counted_from)
            if bracket.width_beyond is not None and bracket.up_to is not None and size > bracket.up_to:
                width = bracket.width_beyond
            amount = bracket.share * width
            if self.bracket_rounding is not None:
                amount = self.bracket_rounding.round_amount(amount)
            if bracket.share:
                yield Term(kind=TermKind.BRACKET, amount=amount, low=low, high=high, share=bracket.share)
            low = high

    def _within_share(self, size: Fraction, total: Fraction) -> Fraction:
        return total if self.max_share is None else min(total, self.max_share * size)

    def _after_step(self, kind: TermKind, total: Fraction) -> Fraction:
        if kind is TermKind.MINIMUM:
            return max(total, self.minimum)
        return self.rounding.round_amount(total) if self.rounding else total


def _sum_amounts(terms: list[Term]) -> Fraction:
    return sum((term.amount for term in terms), ZERO)


class ReservedAs(StrEnum):
    """The kubelet setting under which a vendor makes the reservation."""

    KUBE = "kube"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRule:
    """The reserved ephemeral storage: the smallest of several amounts, each of which is a base plus a share of the boot
    disk."""

    smallest_of: tuple[tuple[Fraction, Fraction], ...]
    """The amounts of which the smallest counts, each as (base in bytes, share of the disk)."""
    local_disks: tuple[Fraction, ...] = ()
    """The reserved bytes if local disks hold the ephemeral storage: the first entry for one disk, the second for two,
    and so on. The last entry also counts for more disks. Empty: the rule for a boot disk applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRule:
    """The memory that a planner subtracts from a machine's memory, because the kubelet does not see it."""

    share: Fraction
    rounding: Rounding | None = None
    arm64: Fraction = ZERO
    """The bytes that are subtracted first for an arm64 machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The formula by which one vendor reserves resources of a node."""

    name: str
    title: str
    source: str
    """Where the vendor has published the numbers."""
    cpu: AmountRule
    memory: AmountRule
    reserved_as: ReservedAs = ReservedAs.KUBE
    counts_installed_memory: bool = False
    """Whether the memory formula uses the memory with which the machine is sold; otherwise it uses what the kubelet
    sees."""
    eviction_memory: Fraction = Fraction(100 * MIB)
    """The kubelet's hard eviction threshold for memory.available, in bytes."""
    eviction_disk: Fraction = ZERO
    """The share of the disk below which the kubelet evicts pods (nodefs.available)."""
    disk: DiskRule | None = None
    """The rule for ephemeral storage, or None if the profile has none."""
    process_ids: int | None = None
    """The number of reserved process ids, or None if the profile has none."""
    loss: LossRule | None = None
    """The memory that the kubelet does not see, or None if the profile does not start from a machine's own memory."""
    smallest: tuple[int, int] = (1000, GIB)
    """(millicores, bytes) of the smallest machine that the vendor offers for nodes."""
