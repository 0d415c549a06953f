"""The surges of an order (`--surge-pods`): more pods of a Deployment for a while, so that its budget allows an
eviction.

The record on the node says what was before anything is scaled, in a write of its own, so that another run of the
command can go on or undo it. The record is not signed: it alone undoes nothing. The object itself must prove that an
order set its present count (`owns_count`), which no client can forge that may not scale it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msgspec.structs import replace as change

from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain import actions as a
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.state_machine import DrainPlanner
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.record import OrderRecord
from trimtab.compaction.plan_types import DrainStep


@dataclass(frozen=True, slots=True)
class OrderSurges:
    """Decides about the surges of one order in one view."""

    planner: DrainPlanner
    rules: OrderRules

    def refusal_of(self, drain: DrainAnnotation, step: a.SetReplicas) -> Reason | None:
        """Returns why a Deployment gets no more pods; None if it may."""
        extra = drain.extra_of(step.deployment)
        if extra <= self.rules.surge_pods:
            return None
        return o.SURGE_NOT_PERMITTED(
            f"Deployment {step.deployment} would need {format_count(extra, 'more pod')} for a while (--surge-pods "
            f"{extra})"
        )

    def announce(self, drain: DrainAnnotation, step: a.SetReplicas) -> DrainAnnotation | None:
        """Returns the drain with a note that the Deployment is about to get more pods; None if it has the note."""
        if step.deployment in drain.surged:
            return None
        return change(drain, surged={**drain.surged, step.deployment: self.planner.view.now})

    def is_surging(self, drain: DrainAnnotation, pod: PodInfo) -> bool:
        """Returns whether the pod's Deployment has been given more pods for this drain."""
        surges = self.planner.surges_of(drain)
        return any(move.uid == pod.uid and surges.deployment_of(move) in drain.surged for move in drain.moves)

    def undo_steps(self, drain: DrainAnnotation) -> tuple[a.SetReplicas, ...]:
        """Returns the steps that undo the surges of a drain that does not go on. They wait until the Deployment has as
        many ready pods as before, but not longer than a successor may take to become ready."""
        surges, seconds = self.planner.surges_of(drain), self.planner.timeouts.ready
        is_late = self.planner.view.now > max(drain.surged.values(), default=0) + seconds
        return surges.undo_steps(waits_for_ready=not is_late)

    def has_open(self, drain: DrainAnnotation | None) -> bool:
        """Returns whether a Deployment still has the additional pods of this drain."""
        return drain is not None and bool(self.planner.surges_of(drain).undo_steps())


def with_planned_surges(drain: DrainAnnotation, step: DrainStep) -> DrainAnnotation:
    """Returns the drain with only those surges that the plan of the order has: other pods are evicted at once."""
    has_surges = any(move.surge for move in step.moves)
    surges = {name: count for name, count in drain.surges.items() if has_surges and name in drain.extras}
    floors = {name: floor for name, floor in drain.floors.items() if name in surges}
    return change(drain, surges=surges, floors=floors)


SurgeMark = tuple[str, Seconds]
"""(Deployment as namespace/name, when it was given more pods)."""


def without_surges(drain: DrainAnnotation, others: Collection[SurgeMark]) -> DrainAnnotation:
    """Returns the drain without these surges, because another client has set the present count."""
    surged = {name: at for name, at in drain.surged.items() if (name, at) not in others}
    return drain if surged == drain.surged else change(drain, surged=surged)


def records_without_surges(
    records: Mapping[str, OrderRecord], others: Collection[SurgeMark]
) -> Mapping[str, OrderRecord]:
    """Returns the records without these surges, because another client has set the present count."""
    if not others:
        return records
    return {
        node: record if record.drain is None else change(record, drain=without_surges(record.drain, others))
        for node, record in records.items()
    }
