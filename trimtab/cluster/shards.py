"""Which of several ConfigMaps holds what is known of this workload?

The one its namespace's hash says, so that a namespace is in one place. Where a ConfigMap grows too large there are
twice as many; where one namespace alone is too large, its workloads are spread over neighbours. The same workloads
and the same sizes always lead to the same places.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

LIMIT = 900_000
"""Bytes of one shard. A ConfigMap holds 1 MiB (1 048 576) of data, keys and values together."""
MOST = 1024
"""Shards at the most: a gigabyte, half of what an etcd holds unless told otherwise."""


class TooMuch(ValueError):
    """More than all shards together hold."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Workloads are told as NAMESPACE/KIND/NAME."""

    count: int = 1
    """A power of two."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """Namespace → over how many shards it is spread; 1 where it is not here."""

    def place(self, workload: str) -> int:
        namespace = workload.partition("/")[0]
        width = self.widths.get(namespace, 1)
        beside = _hash(workload) % width if width > 1 else 0
        return (_hash(namespace) + beside) % self.count

    def places(self, namespace: str) -> set[int]:
        """Every shard that may hold a workload of it."""
        first, width = _hash(namespace), self.widths.get(namespace, 1)
        return {(first + beside) % self.count for beside in range(width)}

    def grown(self, held: Iterable[str]) -> "Layout":
        """For a shard that became too large with these workloads in it. Raises TooMuch."""
        namespaces = {workload.partition("/")[0] for workload in held}
        if len(namespaces) > 1:
            return Layout(_doubled(self.count), self.widths)
        (alone,) = namespaces
        width = _doubled(self.widths.get(alone, 1))
        return Layout(max(self.count, width), {**self.widths, alone: width})


def _doubled(count: int) -> int:
    if count >= MOST:
        raise TooMuch(f"more than {MOST} shards of {LIMIT} bytes")
    return 2 * count


def _hash(text: str) -> int:
    """The same on every machine and in every life."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@dataclass(slots=True)
class Homes:
    """Where each workload was written last. It leaves a shard only after it was written to its new one: whoever is
    killed between two writes leaves something twice, and never nothing."""

    of: dict[str, int] = field(default_factory=dict)

    def plan(self, layout: Layout, workloads: Collection[str]) -> dict[int, list[str]]:
        """Shard → what has its place there; shards that only hold what has to leave come with an empty list."""
        found: dict[int, list[str]] = {shard: [] for shard in self.of.values()}
        for workload in sorted(workloads):
            found.setdefault(layout.place(workload), []).append(workload)
        return found

    def waiting(self, shard: int, layout: Layout, workloads: Collection[str]) -> list[str]:
        """What stands in a shard until its new place is written."""
        return [w for w in workloads if self.of.get(w) == shard and layout.place(w) != shard]

    def moved(self, shard: int, workloads: Iterable[str]) -> None:
        """These were written there."""
        self.of.update(dict.fromkeys(workloads, shard))

    def forget(self, workloads: Collection[str]) -> None:
        """All but these are gone."""
        self.of = {workload: shard for workload, shard in self.of.items() if workload in workloads}
