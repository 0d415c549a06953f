"""Proposes objects that put workloads to sleep in their quiet hours: kube-green's SleepInfo, or an HPA with a minimum
of 0.

A SleepInfo has one time to sleep and one to wake, on a set of weekdays, for a whole namespace. The proposed one sleeps
for as long as possible without including a single busy hour of any workload that it covers; workloads without quiet
hours are excluded. From Kubernetes 1.37 on, an HPA may scale to 0 if it has a metric that does not come from the pods
themselves: the HPA then wakes the workload when there is work, at any hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.kinds import scale_target_kind
from trimtab.cluster.owner import OwnerKey
from trimtab.idle.object_mentions import Manifest, name_of
from trimtab.idle.quiet_hours import HOURS_PER_WEEK, MIN_WINDOW_HOURS, QuietHours, find_runs
from trimtab.idle.sleep_schedules import SleepSchedule, hours_after_events

SLEEPING_KINDS = ("Deployment", "StatefulSet")
"""Kinds that a SleepInfo can scale to 0."""
_OUTSIDE_METRICS = ("External", "Object")
"""Types of metrics that have a value even while the workload has no pods."""
MIN_VERSION_TO_ZERO = (1, 37)
"""The first Kubernetes version in which HPAScaleToZero is on by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DailySleep:
    """One hour at which workloads go to sleep and one at which they wake, the same on each of `days`."""

    days: tuple[int, ...]
    """The weekdays; 0 is Monday."""
    sleep_hour: int
    wake_hour: int | None
    """The hour at which the workloads wake, or None if they never wake."""
    asleep: frozenset[int]
    """The hours of the week in which the workloads sleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedSleep:
    """A workload whose sleep schedule does not fit its quiet hours."""

    workload: OwnerKey
    schedule: SleepSchedule
    awake_and_quiet: tuple[tuple[int, int], ...]
    """Quiet hours outside the schedule that are long enough to sleep, as (hour of the week, number of hours)."""
    asleep_and_busy: tuple[tuple[int, int], ...]
    """Hours in which the workload should sleep but has usage, as (hour of the week, number of hours). Either the
    schedule is not obeyed, or pods are stopped while they work."""


def propose_daily_sleep(quiet: frozenset[int]) -> DailySleep | None:
    """Returns the longest daily sleep within these quiet hours of the week, or None if there is none of at least three
    hours.

    The days of the sleep are all days, Monday to Friday, or the days with a busy hour. If several of these give equally
    long sleeps, the first in this order is returned.
    """
    if len(quiet) == HOURS_PER_WEEK:
        return DailySleep(days=tuple(range(7)), sleep_hour=0, wake_hour=None, asleep=quiet)
    busy_days = tuple(sorted({hour // 24 for hour in range(HOURS_PER_WEEK) if hour not in quiet}))
    best: DailySleep | None = None
    for days in dict.fromkeys((tuple(range(7)), (0, 1, 2, 3, 4), busy_days)):
        for sleep_hour in range(24):
            for wake_hour in range(24):
                asleep = _hours_of_daily_sleep(days, sleep_hour, wake_hour, quiet)
                if asleep and (best is None or len(asleep) > len(best.asleep)):
                    best = DailySleep(days=days, sleep_hour=sleep_hour, wake_hour=wake_hour, asleep=asleep)
    shortest = min((count for _, count in find_runs(best.asleep)), default=0) if best else 0
    return best if shortest >= MIN_WINDOW_HOURS else None


def _hours_of_daily_sleep(
    days: Sequence[int], sleep_hour: int, wake_hour: int, quiet: frozenset[int]
) -> frozenset[int]:
    """Returns the hours of the week that this daily sleep covers; empty if one of these hours is not quiet."""
    if sleep_hour == wake_hour:
        return frozenset()
    # Quick: the first hours of the sleep must be quiet on every day.
    if any(day * 24 + sleep_hour not in quiet for day in days):
        return frozenset()
    asleep: set[int] = set()
    wakes = {day * 24 + wake_hour for day in days}
    for day in days:
        hour = day * 24 + sleep_hour
        while hour not in wakes:
            if hour not in quiet:
                return frozenset()
            asleep.add(hour)
            hour = (hour + 1) % HOURS_PER_WEEK
    return frozenset(asleep)


def propose_sleep_infos(
    quiet_hours: Mapping[OwnerKey, QuietHours], all_workloads: Iterable[OwnerKey], scheduled: Iterable[str] = ()
) -> tuple[dict[str, Any], ...]:
    """Returns one SleepInfo for every namespace in which workloads could sleep at the same time, sorted by namespace.

    `all_workloads`: the workloads that a SleepInfo would cover. The SleepInfo excludes those that have no quiet hours,
    or none in common with the others. `scheduled`: the namespaces that already have a schedule, for which nothing is
    proposed.
    """
    by_namespace: dict[str, list[OwnerKey]] = {}
    for workload in sorted({*all_workloads, *quiet_hours}):
        if workload.kind in SLEEPING_KINDS and workload.namespace not in set(scheduled):
            by_namespace.setdefault(workload.namespace, []).append(workload)
    proposals = []
    for namespace, workloads in by_namespace.items():
        covered, sleep = _choose_workloads(workloads, quiet_hours)
        if sleep is not None:
            zone = quiet_hours[covered[0]].zone
            proposals.append(_render_sleep_info(namespace, workloads, covered, sleep, zone))
    return tuple(proposals)


def _choose_workloads(
    workloads: Sequence[OwnerKey], quiet_hours: Mapping[OwnerKey, QuietHours]
) -> tuple[list[OwnerKey], DailySleep | None]:
    """Returns the workloads that can sleep together, and when. Workloads are added in descending order of their quiet
    time. A workload that would shorten the sleep of the others to less than half is excluded."""
    ordered = sorted(
        (workload for workload in workloads if workload in quiet_hours and quiet_hours[workload].sleeping_hours),
        key=lambda workload: (-len(quiet_hours[workload].sleeping_hours), workload),
    )
    covered: list[OwnerKey] = []
    common, sleep = frozenset(range(HOURS_PER_WEEK)), None
    for workload in ordered:
        narrower = common & quiet_hours[workload].sleeping_hours
        candidate = propose_daily_sleep(narrower)
        if candidate is not None and (sleep is None or 2 * len(candidate.asleep) >= len(sleep.asleep)):
            covered, common, sleep = [*covered, workload], narrower, candidate
    return covered, sleep


def _render_sleep_info(
    namespace: str, workloads: Sequence[OwnerKey], covered: Sequence[OwnerKey], sleep: DailySleep, zone: str
) -> dict[str, Any]:
    spec: dict[str, Any] = {"weekdays": _format_days(sleep.days), "sleepAt": f"{sleep.sleep_hour:02d}:00"}
    if sleep.wake_hour is not None:
        spec["wakeUpAt"] = f"{sleep.wake_hour:02d}:00"
    spec["timeZone"] = zone
    kinds = {workload.kind for workload in covered}
    if "Deployment" not in kinds:
        spec["suspendDeployments"] = False
    if "StatefulSet" in kinds:
        # A patch of its own works with every version of kube-green that has patches (0.6 and later).
        patch = "- op: add\n  path: /spec/replicas\n  value: 0\n"
        spec["patches"] = [{"target": {"group": "apps", "kind": "StatefulSet"}, "patch": patch}]
    excluded = [workload for workload in workloads if workload not in covered and workload.kind in kinds]
    if excluded:
        spec["excludeRef"] = [{"apiVersion": "apps/v1", "kind": each.kind, "name": each.name} for each in excluded]
    metadata = {"name": "quiet-hours", "namespace": namespace}
    return {"apiVersion": "kube-green.com/v1alpha1", "kind": "SleepInfo", "metadata": metadata, "spec": spec}


def _format_days(days: Sequence[int]) -> str:
    """Returns the weekdays in cron's numbers, with 0 for Sunday: "1-5", "*", "1,3"."""
    numbers = [(day + 1) % 7 for day in days]
    if len(numbers) == 7:
        return "*"
    return "1-5" if numbers == [1, 2, 3, 4, 5] else ",".join(map(str, sorted(numbers)))


def propose_scale_to_zero(
    quiet_hours: Mapping[OwnerKey, QuietHours], autoscalers: Iterable[Manifest], version: tuple[int, int] | None
) -> tuple[dict[str, Any], ...]:
    """Returns, for each HPA that could scale its quiet workload to 0, a patch as a manifest for server-side apply.

    `version` is that of the API server; if it is older than 1.37 or unknown (None), nothing is proposed.
    """
    if version is None or version < MIN_VERSION_TO_ZERO:
        return ()
    patches = []
    for manifest in autoscalers:
        _, namespace, name = name_of(manifest)
        owners = (manifest.get("metadata") or {}).get("ownerReferences") or ()
        if any(owner.get("controller") for owner in owners):
            continue  # Its controller, such as KEDA, would undo the patch.
        spec = manifest.get("spec") or {}
        target = spec.get("scaleTargetRef") or {}
        kind = scale_target_kind(str(target.get("apiVersion") or ""), str(target.get("kind")))
        quiet = quiet_hours.get(OwnerKey(namespace, kind, str(target.get("name"))))
        outside = any(metric.get("type") in _OUTSIDE_METRICS for metric in spec.get("metrics") or ())
        if quiet is not None and quiet.sleeping_hours and outside and spec.get("minReplicas", 1) > 0:
            patches.append(
                {
                    "apiVersion": "autoscaling/v2",
                    "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": {"minReplicas": 0},
                }
            )
    return tuple(patches)


def find_missed_sleep(workload: OwnerKey, schedule: SleepSchedule, quiet: QuietHours) -> MissedSleep | None:
    """Returns how a schedule differs from a workload's quiet hours, in the schedule's time zone; None if it fits."""
    if not schedule.covers_workload(workload):
        return None
    missed = tuple(run for run in find_runs(quiet.sleeping_hours - schedule.asleep) if run[1] >= MIN_WINDOW_HOURS)
    busy = find_runs(schedule.asleep - quiet.quiet)
    if not missed and not busy:
        return None
    return MissedSleep(workload=workload, schedule=schedule, awake_and_quiet=missed, asleep_and_busy=busy)


__all__ = [
    "DailySleep",
    "MissedSleep",
    "find_missed_sleep",
    "hours_after_events",
    "propose_daily_sleep",
    "propose_scale_to_zero",
    "propose_sleep_infos",
]
