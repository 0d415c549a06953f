"""Which pods of one node, as few as possible, free what a pod lacks on it.

Pods that free the same amounts are alike: of each kind only the number counts, and of alike sets only one is given.
"""

from collections.abc import Iterator, Sequence

Amounts = tuple[int, ...]


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


def list_eviction_sets(missing: Amounts, pods: Sequence[tuple[int, Amounts]], count: int) -> Iterator[tuple[int, ...]]:
    """Yields sets of `count` pods that free what is missing, those of small pods first. `pods`: (pod, amounts)."""
    by_amounts: dict[Amounts, list[int]] = {}
    for pod, amounts in sorted(pods, key=lambda one: (one[1], one[0])):
        by_amounts.setdefault(amounts, []).append(pod)
    kinds = list(by_amounts.items())

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
