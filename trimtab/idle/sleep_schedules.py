"""Reads the sleep schedules that a cluster already has, as hours of the week: kube-green, KEDA's cron trigger,
kube-downscaler.

kube-green: a SleepInfo scales the Deployments of its namespace to zero at `sleepAt` and back at `wakeUpAt`, on its
weekdays (api/v1alpha1, sleepinfo_types.go). KEDA: outside its cron windows, a ScaledObject scales to minReplicaCount.
kube-downscaler: `downscaler/uptime` or `downscaler/downtime` on a workload or its namespace, "Mon-Fri 07:30-20:30
Europe/Berlin". An hour of which only a part is asleep counts as awake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from trimtab.cluster.kinds import GroupKind, group_kind, kind_of_object
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.scaled_objects import DEFAULT_TARGET
from trimtab.cluster.timestamps import DAYS
from trimtab.idle.object_mentions import Manifest, name_of
from trimtab.idle.quiet_hours import HOURS_PER_WEEK

MINUTES_PER_WEEK = HOURS_PER_WEEK * 60
_CRON_DAYS = ("sun", *DAYS)
"""Cron's names of weekdays by number; 7 means Sunday too."""
_UPTIME, _DOWNTIME = "downscaler/uptime", "downscaler/downtime"
_WINDOW = re.compile(r"([A-Za-z]{3})(?:-([A-Za-z]{3}))?\s+(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})\s+(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepSchedule:
    """One sleep schedule, and the workloads that it covers."""

    source: str
    """Kind, namespace and name of the object with the schedule."""
    namespace: str
    zone: str
    asleep: frozenset[int]
    """The hours of the week in which workloads sleep, by the local time of the zone."""
    targets: tuple[OwnerKey, ...] = ()
    """The workloads that the schedule covers; empty: all of the namespace, except `excluded`."""
    excluded: tuple[OwnerKey, ...] = ()
    kinds: tuple[str, ...] = ("Deployment",)
    """The kinds of workloads that the schedule covers if `targets` is empty."""

    def covers_workload(self, workload: OwnerKey) -> bool:
        """Returns whether the schedule puts this workload to sleep."""
        if workload.namespace != self.namespace or workload in self.excluded:
            return False
        return workload in self.targets if self.targets else workload.kind in self.kinds


def read_sleep_schedules(manifests: Iterable[Manifest]) -> tuple[tuple[SleepSchedule, ...], tuple[Unreadable, ...]]:
    """Returns (schedules of the cluster, schedules that cannot be read with the reason)."""
    schedules: list[SleepSchedule] = []
    unreadable: list[Unreadable] = []
    for manifest in manifests:
        kind, namespace, name = name_of(manifest)
        where = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        try:
            schedules += _schedules_of(manifest, where)
        except ValueError as error:
            unreadable.append(Unreadable(where, str(error)))
    return tuple(schedules), tuple(unreadable)


def _schedules_of(manifest: Manifest, where: str) -> Iterator[SleepSchedule]:
    """Yields the schedules of one object. Raises ValueError with the part that is not understood."""
    kind = kind_of_object(manifest)
    if kind == "SleepInfo":
        yield _kube_green_schedule(manifest, where)
    elif kind == "ScaledObject":
        yield from _keda_schedules(manifest, where)
    elif kind in ("Namespace", "Deployment", "StatefulSet"):
        yield from _downscaler_schedules(manifest, where)


def _kube_green_schedule(manifest: Manifest, where: str) -> SleepSchedule:
    spec = _mapping(manifest.get("spec"))
    days = parse_cron_days(str(spec.get("weekdays", "")))
    zone = _check_zone(str(spec.get("timeZone") or "UTC"))
    events = [(day * 1440 + _minute(spec.get("sleepAt")), True) for day in days]
    if spec.get("wakeUpAt"):
        events += [(day * 1440 + _minute(spec.get("wakeUpAt")), False) for day in days]
    namespace = name_of(manifest)[1]
    excluded = tuple(_workload(namespace, part) for part in map(_mapping, spec.get("excludeRef") or ()))
    kinds = ["Deployment"] if spec.get("suspendDeployments", True) else []
    if spec.get("suspendStatefulSets"):
        kinds.append("StatefulSet")
    kinds += [str(_mapping(patch.get("target")).get("kind")) for patch in spec.get("patches") or ()]
    return SleepSchedule(
        source=where,
        namespace=namespace,
        zone=zone,
        asleep=hours_after_events(events),
        excluded=excluded,
        kinds=tuple(dict.fromkeys(kinds)),
    )


def _keda_schedules(manifest: Manifest, where: str) -> Iterator[SleepSchedule]:
    """Yields the schedule of a ScaledObject, whose workload sleeps outside the cron windows. There is none if the
    minimum is not 0, or if another trigger can wake the workload."""
    spec = _mapping(manifest.get("spec"))
    triggers = [_mapping(trigger) for trigger in spec.get("triggers") or ()]
    if (
        not triggers
        or any(trigger.get("type") != "cron" for trigger in triggers)
        or spec.get("minReplicaCount") not in (0, None)
    ):
        return
    target = _mapping(spec.get("scaleTargetRef"))
    metadata = [_mapping(trigger.get("metadata")) for trigger in triggers]
    zones = {str(part.get("timezone") or "UTC") for part in metadata}
    if len(zones) > 1:
        raise ValueError("triggers in several time zones")
    events = [
        (minute, asleep)
        for part in metadata
        for key, asleep in (("start", False), ("end", True))
        for minute in parse_weekly_cron(str(part.get(key, "")))
    ]
    yield SleepSchedule(
        source=where,
        namespace=name_of(manifest)[1],
        zone=_check_zone(zones.pop()),
        asleep=hours_after_events(events),
        targets=(
            _workload(
                name_of(manifest)[1], {**DEFAULT_TARGET, **{key: value for key, value in target.items() if value}}
            ),
        ),
    )


def _downscaler_schedules(manifest: Manifest, where: str) -> Iterator[SleepSchedule]:
    annotations = _mapping(_mapping(manifest.get("metadata")).get("annotations"))
    kind, namespace, name = name_of(manifest)
    for key in (_UPTIME, _DOWNTIME):
        text = annotations.get(key)
        if not isinstance(text, str) or text in ("never", "always"):
            continue
        windows = [_WINDOW.fullmatch(part.strip()) for part in text.split(",")]
        zones = {window[7] for window in windows if window}
        if len(zones) != 1 or None in windows:
            raise ValueError(f"{key} {text!r} does not have the form DAY-DAY HH:MM-HH:MM ZONE")
        events = [event for window in windows if window for event in _window_events(window, asleep=key == _DOWNTIME)]
        yield SleepSchedule(
            source=where,
            namespace=name if kind == "Namespace" else namespace,
            zone=_check_zone(zones.pop()),
            asleep=hours_after_events(events),
            targets=() if kind == "Namespace" else (OwnerKey(namespace, GroupKind(kind), name),),
            kinds=("Deployment", "StatefulSet"),
        )


def _workload(namespace: str, reference: Mapping[str, Any]) -> OwnerKey:
    """Returns the workload that a reference with kind, name and perhaps apiVersion names."""
    kind = group_kind(str(reference.get("apiVersion") or ""), str(reference.get("kind")))
    return OwnerKey(namespace, kind, str(reference.get("name")))


def _window_events(window: re.Match[str], *, asleep: bool) -> Iterator[tuple[int, bool]]:
    first = _day_number(window[1])
    last = _day_number(window[2]) if window[2] else first
    days = [(first + n) % 7 for n in range((last - first) % 7 + 1)]
    start, end = int(window[3]) * 60 + int(window[4]), int(window[5]) * 60 + int(window[6])
    for day in days:
        yield day * 1440 + start, asleep
        yield (day * 1440 + end) % MINUTES_PER_WEEK, not asleep


def hours_after_events(events: Sequence[tuple[int, bool]]) -> frozenset[int]:
    """Returns the hours of the week that are entirely asleep.

    Each event is (minute of the week, whether sleep begins then). Of two events in the same minute, the later one in
    the list counts. Without events, no hour is asleep."""
    ordered = sorted(dict(events).items())
    if not ordered:
        return frozenset()
    asleep_minutes = bytearray(MINUTES_PER_WEEK)
    for n, (minute, asleep) in enumerate(ordered):
        following = ordered[(n + 1) % len(ordered)][0]
        length = (following - minute) % MINUTES_PER_WEEK or MINUTES_PER_WEEK
        if asleep:
            for at in range(minute, minute + length):
                asleep_minutes[at % MINUTES_PER_WEEK] = 1
    return frozenset(hour for hour in range(HOURS_PER_WEEK) if all(asleep_minutes[hour * 60 : hour * 60 + 60]))


def parse_cron_days(text: str) -> tuple[int, ...]:
    """Returns the weekdays of a cron field ("1-5", "*", "sat,sun"), from 0 for Monday to 6. Raises ValueError."""
    days: list[int] = []
    for part in text.lower().split(","):
        if part in ("*", "?"):
            return tuple(range(7))
        first, dash, last = part.strip().partition("-")
        start, end = _cron_day(first), _cron_day(last if dash else first)
        days += [(start + n - 1) % 7 for n in range((end - start) % 7 + 1)]
    return tuple(sorted(set(days)))


def parse_weekly_cron(text: str) -> tuple[int, ...]:
    """Returns the minutes of the week (from Monday 0:00) of a cron expression "MINUTE HOUR * * DAYS" with single
    numbers. Raises ValueError."""
    fields = text.split()
    if len(fields) != 5 or fields[2:4] != ["*", "*"] or not fields[0].isdecimal() or not fields[1].isdecimal():
        raise ValueError(f"{text!r} is not a cron expression with one minute and one hour for every week")
    return tuple(day * 1440 + int(fields[1]) * 60 + int(fields[0]) for day in parse_cron_days(fields[4]))


def _cron_day(text: str) -> int:
    """Returns a weekday in cron's number, with 0 for Sunday."""
    if text.isdecimal() and int(text) <= 7:
        return int(text) % 7
    if text in _CRON_DAYS:
        return _CRON_DAYS.index(text)
    raise ValueError(f"{text!r} is not a day of the week")


def _day_number(text: str) -> int:
    if text.lower() not in DAYS:
        raise ValueError(f"{text!r} is not a day of the week")
    return DAYS.index(text.lower())


def _minute(value: Any) -> int:
    """Returns the minute of the day for "HH:MM". Raises ValueError, also for kube-green's patterns such as *:*."""
    hour, colon, minute = str(value).partition(":")
    if not colon or not hour.isdecimal() or not minute.isdecimal() or int(hour) > 23 or int(minute) > 59:
        raise ValueError(f"{value!r} is not a time of day in the form HH:MM")
    return int(hour) * 60 + int(minute)


def _check_zone(zone: str) -> str:
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"{zone!r} is not a time zone") from None
    return zone


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
