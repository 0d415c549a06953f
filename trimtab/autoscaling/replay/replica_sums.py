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

    def count_changes(self, workloads: Mapping[str, ChurningWorkload], names: Iterable[str]) -> set[SumKey]:
        """Counts again the workloads of these names, and returns the keys whose sums changed. A key without a workload
        has no sum."""
        counted, changed = self._counted, set[SumKey]()
        for name in names:
            workload, before = workloads.get(name), counted.pop(name, None)
            if workload is not None:
                counted[name] = (workload.wanted, len(workload.pods), workload.ready)
            if counted.get(name) != before:
                self._add(name, counted.get(name), before, changed)
        return changed

    def forget_workload(self, name: str) -> None:
        """Counts the workload no longer, until it is counted again."""
        before = self._counted.pop(name, None)
        if before is not None:
            self._add(name, None, before, set())

    def _add(
        self,
        name: str,
        counts: tuple[int, int, int] | None,
        before: tuple[int, int, int] | None,
        changed: set[SumKey],
    ) -> None:
        wanted, have, ready = counts or (0, 0, 0)
        former_wanted, former_have, former_ready = before or (0, 0, 0)
        for key in self.keys_of(name):
            one = self.sums.setdefault(key, ReplicaSum())
            one.wanted += wanted - former_wanted
            one.have += have - former_have
            one.ready += ready - former_ready
            one.workloads += (counts is not None) - (before is not None)
            if not one.workloads:
                del self.sums[key]
            changed.add(key)
