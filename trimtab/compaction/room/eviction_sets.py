"""Which pods of one node, as few as possible, free what a pod lacks on it.

Pods of the same kind and priority that free the same amounts are alike: only their number counts, and of alike sets
only one is given.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Amounts = tuple[int, ...]


class Evictee(NamedTuple):
    """A pod that may move, with the amounts that it frees."""

    pod: int
    amounts: Amounts
    priority: int
    kind: int = 0
    """A number that pods share which may stand for each other, whatever they free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionWay:
    """How evictions could make room for one pod on one node."""

    node: int
    missing: Amounts
    """What is missing after the blockers have left."""
    movable: Sequence[Evictee]
    """The other pods of the node that may move."""
    blockers: tuple[int, ...]
    """The pods that must leave in any case, on whatever node they are."""
    least: int
    """How many pods have to move at least."""
    priority: int
    """The highest priority of so many pods, if they are well chosen."""


def least_count(missing: Amounts, pods: Sequence[Amounts]) -> int | None:
    """Returns the smallest number of pods that could free what is missing, by each resource alone; None if all of them
    free too little."""
    count = 0
    for position, amount in enumerate(missing):
        freed = number = 0
        for one in sorted((pod[position] for pod in pods), reverse=True) if amount > 0 else ():
            if freed >= amount:
                break
            freed += one
            number += 1
        if amount > freed:
            return None
        count = max(count, number)
    return count


def list_eviction_sets(missing: Amounts, pods: Sequence[Evictee], count: int) -> Iterator[tuple[int, ...]]:
    """Yields sets of `count` pods that free what is missing, those of low priorities and of small pods first."""
    alike: dict[tuple[int, Amounts, int], list[int]] = {}
    for one in sorted(pods, key=lambda one: (one.priority, one.amounts, one.pod)):
        alike.setdefault((one.priority, one.amounts, one.kind), []).append(one.pod)
    kinds = [(amounts, members) for (_, amounts, _), members in alike.items()]

    def extend(first: int, left: int, lacking: Amounts, chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if not left:
            if all(amount <= 0 for amount in lacking):
                yield chosen
            return
        # Even the largest of the kinds that are left may free too little.
        for position, amount in enumerate(lacking):
            if amount > 0 and left * max((kind[position] for kind, _ in kinds[first:]), default=0) < amount:
                return
        for number in range(first, len(kinds)):
            amounts, members = kinds[number]
            for taken in range(1, min(left, len(members)) + 1):
                rest = tuple([one - taken * freed for one, freed in zip(lacking, amounts, strict=True)])
                yield from extend(number + 1, left - taken, rest, (*chosen, *members[:taken]))

    yield from extend(0, count, missing, ())
