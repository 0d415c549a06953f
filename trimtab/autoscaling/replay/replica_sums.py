"""Sums of pods over workloads, of which only what has changed is counted again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.autoscaling.churn.churn_objects import ChurningWorkload
from trimtab.cluster.owner import OwnerKey

SumKey = OwnerKey | str
"""An owner of pods, or the name of a budget."""


@dataclass(slots=True)
class ReplicaSum:
    """The pods of all workloads that count for one owner or for one budget."""

    wanted: int = 0
    have: int = 0
    ready: int = 0
    workloads: int = 0
    """The number of these workloads."""


@dataclass(slots=True)
class ReplicaSums:
    """The sums of all owners and budgets."""

    keys_of: Callable[[str], Iterable[SumKey]]
    """Workload → for what its pods count."""
    sums: dict[SumKey, ReplicaSum] = field(default_factory=dict)
    _counted: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Workload → its wanted, present and ready pods when they were last counted."""

    def count_changes(self, workloads: Mapping[str, ChurningWorkload]) -> set[SumKey]:
        """Counts the workloads that have changed since the last call, and returns the keys whose sums changed. A key
        without a workload has no sum."""
        counted, changed = self._counted, set[SumKey]()
        for name, workload in workloads.items():
            counts = (workload.wanted, len(workload.pods), workload.ready)
            before = counted.get(name)
            if counts != before:
                self._add(name, counts, before or (0, 0, 0), before is None, changed)
                counted[name] = counts
        if len(counted) > len(workloads):
            for name in [name for name in counted if name not in workloads]:
                self._add(name, (0, 0, 0), counted.pop(name), -1, changed)
        return changed

    def _add(
        self,
        name: str,
        counts: tuple[int, int, int],
        before: tuple[int, int, int],
        workloads: int,
        changed: set[SumKey],
    ) -> None:
        for key in self.keys_of(name):
            one = self.sums.setdefault(key, ReplicaSum())
            one.wanted += counts[0] - before[0]
            one.have += counts[1] - before[1]
            one.ready += counts[2] - before[2]
            one.workloads += workloads
            if not one.workloads:
                del self.sums[key]
            changed.add(key)
