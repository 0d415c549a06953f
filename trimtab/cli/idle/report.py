"""The report of `trimtab idle`: its parts, and the functions that build them from the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import ClassVar

import msgspec

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.selection import ObjectSelection
from trimtab.cluster.kinds import GroupKind
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import NotYet
from trimtab.cluster.timestamps import format_timestamp
from trimtab.idle.claim_usage import ClaimFinding
from trimtab.idle.object_mentions import Manifest, Name, name_of
from trimtab.idle.orphans import Orphan, OrphanReport
from trimtab.idle.quiet_hours import QuietHours, describe_window
from trimtab.idle.sleep_proposals import MissedSleep
from trimtab.idle.storage_prices import price_storage_class


class ObjectName(ReportPart, frozen=True, kw_only=True):
    """The kind, namespace and name of an object; the namespace is empty for cluster-scoped kinds."""

    kind: str
    """The kind of the object."""
    namespace: str
    """The namespace of the object; empty for kinds of the whole cluster."""
    name: str
    """The name of the object."""


class OrphanRow(ReportPart, frozen=True, kw_only=True):
    """One object that no other object names."""

    object: ObjectName
    """The object that nothing names."""
    reason: ReasonReport
    """Why the object is listed."""
    created: str | None
    """When the object was created, as RFC 3339; null if that is not known."""
    dollars_per_month: float | None
    """The list price of the object; null if it costs nothing or its price is not known."""


class UnjudgedRow(ReportPart, frozen=True, kw_only=True):
    """An object that no other object names. It is not reported as an orphan, because a program may read it through the
    API."""

    object: ObjectName
    """The object that nothing names."""
    reason: ReasonReport
    """The sign that a program may read the object."""


class UnknownRow(ReportPart, frozen=True, kw_only=True):
    """A part of the report that could not be determined, with the reason."""

    subject: str
    """What could not be determined."""
    reason: ReasonReport
    """Why it could not be determined."""
    have: str
    """How much of the data there is, in words."""
    need: str
    """How much of the data is needed, in words."""


class SleeperRow(ReportPart, frozen=True, kw_only=True):
    """A workload with hours of the week in which it could sleep (be scaled to zero)."""

    object: ObjectName
    """The workload."""
    windows: list[str]
    """The times of the week in which it could sleep, in the report's time zone."""
    hours_per_week: int
    """The hours of the week in which it could sleep."""
    weeks: int
    """The number of weeks of usage."""
    threshold_cores: float
    """The usage up to which an hour counts as quiet."""
    dollars_per_month: float | None
    """The cost of the workload's requests in the hours in which it could sleep, in dollars per month; null if its
    requests are not known."""


class MissedSleepRow(ReportPart, frozen=True, kw_only=True):
    """A workload whose sleep schedule does not match its quiet hours."""

    object: ObjectName
    """The workload."""
    schedule: str
    """The object that has the schedule, with its time zone."""
    awake_and_quiet: list[str]
    """The times of the week in which the schedule keeps the workload awake and it is quiet."""
    asleep_and_busy: list[str]
    """The times of the week in which the workload should sleep and has usage."""
    dollars_per_month: float | None
    """The cost in dollars per month of the workload's requests in quiet hours in which its schedule keeps it awake."""


class ClaimRow(ReportPart, frozen=True, kw_only=True):
    """A PersistentVolumeClaim that is mostly empty or of an expensive StorageClass."""

    object: ObjectName
    """The claim."""
    reason: ReasonReport
    """Why the claim is listed, with the size or the class that would do."""
    used_bytes: int
    """The bytes that are used, in the fullest of the summaries."""
    capacity_bytes: int
    """The size of the volume's file system in bytes, by the kubelet."""
    dollars_per_month: float | None
    """What the change would save in dollars per month; null if no price is known."""


class IdleReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab idle`. Published as deploy/schemas/idle-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab idle"
    api_version: str = API_VERSION
    kind: str = "IdleReport"
    zone: str
    """The time zone in which all hours of the report are given."""
    orphans: list[OrphanRow]
    """The objects that no other object names."""
    checked: dict[str, int]
    """Kind → the number of objects that were checked."""
    unjudged: list[UnjudgedRow]
    """The objects that nothing names and a program may read all the same, each with the sign of that."""
    sleepers: list[SleeperRow]
    """The workloads that could sleep for some hours of the week; empty without --usage."""
    missed_sleep: list[MissedSleepRow]
    """The workloads whose schedule of sleep does not match their usage; empty without --usage."""
    claims: list[ClaimRow]
    """The claims that are mostly empty, or of an expensive class; empty without --summary."""
    unknown: list[UnknownRow]
    """What could not be determined, with the data that this needs."""
    notes: list[str]
    """The assumptions of the report, one sentence each."""


def select_rows(report: IdleReport, selection: ObjectSelection, manifests: Sequence[Manifest]) -> IdleReport:
    """Returns the report with the rows of selected objects only. Whether a pod names an object is checked in the whole
    cluster."""
    if selection.is_everything:
        return report
    labels = {name_of(manifest): (manifest.get("metadata") or {}).get("labels") or {} for manifest in manifests}

    def includes(name: ObjectName) -> bool:
        return selection.includes(name.namespace, labels.get((name.kind, name.namespace, name.name), {}))

    return msgspec.structs.replace(
        report,
        orphans=[row for row in report.orphans if includes(row.object)],
        unjudged=[row for row in report.unjudged if includes(row.object)],
        sleepers=[row for row in report.sleepers if includes(row.object)],
        missed_sleep=[row for row in report.missed_sleep if includes(row.object)],
        claims=[row for row in report.claims if includes(row.object)],
    )


def build_orphan_rows(
    orphan_report: OrphanReport, manifests: Sequence[Manifest], nodes: Mapping[str, float], balancer: float | None
) -> list[OrphanRow]:
    """Returns a row for every object that no other object names, with its price.

    `nodes`: node → dollars per month, for the nodes whose price is known. `balancer`: the price of a load balancer in
    dollars per month, or None if it was not given."""
    per_gib = {
        priced.name: priced.dollars_per_gib
        for manifest in manifests
        if manifest.get("kind") == "StorageClass" and (priced := price_storage_class(manifest)) is not None
    }
    return [
        OrphanRow(
            object=_object_name(orphan.name),
            reason=report_reason(orphan.reason),
            created=None if orphan.created is None else format_timestamp(orphan.created),
            dollars_per_month=_price_orphan(orphan, per_gib, nodes, balancer),
        )
        for orphan in orphan_report.orphans
    ]


def _price_orphan(
    orphan: Orphan, per_gib: Mapping[str, float], nodes: Mapping[str, float], balancer: float | None
) -> float | None:
    kind, _, name = orphan.name
    if kind == "Service":
        return balancer
    if kind == "Node":
        return nodes.get(name)
    price = per_gib.get(orphan.storage_class)
    return None if price is None or orphan.storage_bytes is None else round(orphan.storage_bytes / (1 << 30) * price, 2)


def build_unjudged_rows(orphan_report: OrphanReport) -> list[UnjudgedRow]:
    """Returns a row for every object that no other object names but that a program may read through the API."""
    return [
        UnjudgedRow(object=_object_name(left.name), reason=report_reason(left.reason))
        for left in orphan_report.unjudged
    ]


def build_sleeper_rows(quiet: Mapping[OwnerKey, QuietHours], costs: Mapping[OwnerKey, float]) -> list[SleeperRow]:
    """Returns a row for every workload that could sleep, the most expensive first.

    costs: workload → the dollars per month of its requests."""
    rows = [
        SleeperRow(
            object=_workload_name(workload),
            windows=[describe_window(*window) for window in hours.windows],
            hours_per_week=len(hours.sleeping_hours),
            weeks=hours.weeks,
            threshold_cores=round(hours.threshold_cores, 4),
            dollars_per_month=_share_of_cost(costs.get(workload), hours.quiet_share),
        )
        for workload, hours in quiet.items()
        if hours.sleeping_hours
    ]
    return sorted(rows, key=lambda row: (-(row.dollars_per_month or 0.0), -row.hours_per_week, row.object.name))


def build_missed_rows(missed: Sequence[MissedSleep], costs: Mapping[OwnerKey, float]) -> list[MissedSleepRow]:
    """Returns a row for every sleep schedule that does not match the quiet hours of its workload."""
    return [
        MissedSleepRow(
            object=_workload_name(miss.workload),
            schedule=f"{miss.schedule.source} ({miss.schedule.zone})",
            awake_and_quiet=[describe_window(*run) for run in miss.awake_and_quiet],
            asleep_and_busy=[describe_window(*run) for run in miss.asleep_and_busy],
            dollars_per_month=_share_of_cost(
                costs.get(miss.workload), fsum(count for _, count in miss.awake_and_quiet) / 168
            ),
        )
        for miss in missed
    ]


def build_claim_rows(findings: Sequence[ClaimFinding]) -> list[ClaimRow]:
    """Returns a row for every PersistentVolumeClaim with which money can be saved."""
    return [
        ClaimRow(
            object=ObjectName(kind="PersistentVolumeClaim", namespace=finding.namespace, name=finding.claim),
            reason=report_reason(finding.reason),
            used_bytes=finding.used_bytes,
            capacity_bytes=finding.capacity_bytes,
            dollars_per_month=None if finding.dollars_per_month is None else round(finding.dollars_per_month, 2),
        )
        for finding in findings
    ]


def build_unknown_row(subject: str, not_yet: NotYet) -> UnknownRow:
    """Returns a row that says which data is missing to check `subject`, a part of the report."""
    return UnknownRow(subject=subject, reason=report_reason(not_yet.reason), have=not_yet.have, need=not_yet.need)


def manifest_names(manifests: Sequence[Manifest], kinds: Sequence[str]) -> list[OwnerKey]:
    """Returns all objects of these kinds."""
    names = (name_of(manifest) for manifest in manifests)
    return [OwnerKey(namespace, GroupKind(kind), name) for kind, namespace, name in names if kind in kinds]


def _share_of_cost(cost: float | None, share: float) -> float | None:
    return None if cost is None else round(cost * share, 2)


def _object_name(name: Name) -> ObjectName:
    return ObjectName(kind=name[0], namespace=name[1], name=name[2])


def _workload_name(workload: OwnerKey) -> ObjectName:
    namespace, kind, name = workload
    return ObjectName(kind=kind, namespace=namespace, name=name)
