"""The report of `trimtab reserved measure`: for each pool, what is used, what is reserved, and what should be
reserved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from trimtab.cli import output
from trimtab.cli.output import ReasonReport, ReportPart, report_reason
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import NotYet
from trimtab.reservations.measure import PoolUse, Reserved, ResourceUse
from trimtab.reservations.overhead_history import DAY_SECONDS
from trimtab.sizing.pool_reservations import PoolReservation


class NotYetReport(ReportPart, frozen=True, kw_only=True):
    """The measurements that are missing to compute a value."""

    reason: ReasonReport
    """Why there is no value."""
    have: str
    """How much was measured, in words."""
    need: str
    """How much has to be measured, in words."""


class FitReport(ReportPart, frozen=True, kw_only=True):
    """The straight line fitted to the measurements, in millicores or bytes."""

    base: float
    """What a node without pods uses."""
    per_pod: float
    """What each pod adds."""
    pods_per_unit: float | None
    """The number of pods that together use one core or one GiB more; null if the usage does not grow with the number of
    pods."""
    from_pods: float
    """The smallest number of pods on a measured node."""
    to_pods: float
    """The largest number of pods on a measured node. The line was fitted to nodes with `from_pods` to `to_pods`
    pods."""


class UseReport(ReportPart, frozen=True, kw_only=True):
    """The use of one resource by kubelet and runtime on a node, in millicores or bytes."""

    p50: float
    """The use that half of the samples are below."""
    p95: float
    """The use that 95 % of the samples are below."""
    maximum: float
    """The largest use."""
    fit: FitReport | None
    """How the use grows with the number of pods on the node; null if no line was fitted."""
    missing_fit: NotYetReport | None
    """Why no line was fitted; null if a line was fitted."""


class ReservedReport(ReportPart, frozen=True, kw_only=True):
    """The reservation of a node: the sum of kube reserved and system reserved."""

    millicores: int
    """The reserved millicores."""
    bytes: int
    """The reserved bytes of memory."""


class PoolReservationReport(ReportPart, frozen=True, kw_only=True):
    """One pool with one container runtime."""

    pool: str
    """The name of the pool."""
    runtime: str
    """The container runtime; empty if it is not known."""
    nodes: int
    """The number of nodes of the pool."""
    measured_nodes: int
    """The number of nodes of which there is a measurement; 0 if nothing was measured."""
    coverage: float
    """The share of the samples that are complete, from 0 to 1."""
    days: float
    """The days from the first to the last sample."""
    max_pods_seen: int
    """The largest number of pods that a measured node had; 0 if nothing was measured."""
    sources: dict[str, int]
    """`system-containers` or `node-less-pods` (the fallback) → the number of nodes that are measured in this way."""
    cpu: UseReport | None
    """The use of cpu; null if nothing was measured."""
    memory: UseReport | None
    """The use of memory; null if nothing was measured."""
    missing: NotYetReport | None
    """Why nothing was measured; null if something was measured."""
    reserved_now: ReservedReport | None
    """The present reservation; null if it is not known."""
    reserved_now_from: str
    """Where the present reservation was read: `configz`, `allocatable`, or empty if it is not known."""
    used_of_reserved: dict[str, float]
    """Resource → the median usage divided by the reservation. Above 1, the kubelet and the runtime use resources that
    are meant for pods."""
    recommended: ReservedReport | None
    """The reservation that is recommended; null if none is."""
    missing_recommendation: NotYetReport | None
    """Why nothing is recommended; null if something is."""
    change: str
    """The recommended change: `keep`, `raise` (for new nodes only), `lower`, `wait`, or `unknown`."""
    reason: ReasonReport | None
    """Why this change is recommended; null if nothing is."""
    unused_dollars_per_month: float | None
    """The cost of what is reserved but not used; null without a price."""
    overdraft_dollars_per_month: float | None
    """The cost of what is used but not reserved; null without a price."""
    notes: list[str]
    """What the recommendation rests on, one sentence each."""


class ReservedMeasureReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab reserved measure`. Published as deploy/schemas/reserved-measure-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab reserved measure"
    api_version: str = output.API_VERSION
    kind: str = "ReservedMeasureReport"
    pools: list[PoolReservationReport]
    """The pools, one entry for each container runtime."""
    notes: list[str]
    """What the measurement lacks, one sentence each."""


def build_report(
    pools: Sequence[PoolReservation], sources: Mapping[str, Mapping[str, str]], notes: Sequence[str]
) -> ReservedMeasureReport:
    """Returns the report of all pools.

    `sources`: the pool's name and runtime, joined by a slash → the name of the node → how the node was measured."""
    return ReservedMeasureReport(
        pools=[_report_pool(pool, sources.get(f"{pool.key.pool}/{pool.key.runtime}", {})) for pool in pools],
        notes=list(notes),
    )


def _report_pool(pool: PoolReservation, sources: Mapping[str, str]) -> PoolReservationReport:
    use = pool.use
    is_known = not isinstance(use, NotYet)
    now = pool.nodes.reserved
    counts = {name: list(sources.values()).count(name) for name in sorted(set(sources.values()))}
    return PoolReservationReport(
        pool=pool.key.pool,
        runtime=pool.key.runtime,
        nodes=len(pool.nodes.names) or (0 if isinstance(use, NotYet) else use.nodes),
        measured_nodes=0 if isinstance(use, NotYet) else use.nodes,
        coverage=0.0 if isinstance(use, NotYet) else round(use.coverage, 4),
        days=0.0 if isinstance(use, NotYet) else round(use.span_seconds / DAY_SECONDS, 2),
        max_pods_seen=0 if isinstance(use, NotYet) else use.max_pods,
        sources=counts,
        cpu=None if isinstance(use, NotYet) else _report_use(use.cpu, 1000),
        memory=None if isinstance(use, NotYet) else _report_use(use.memory, 1 << 30),
        missing=_report_missing(use) if isinstance(use, NotYet) else None,
        reserved_now=None if now is None else _report_reserved(now),
        reserved_now_from="" if now is None else "configz" if pool.nodes.is_configured else "allocatable",
        used_of_reserved={} if isinstance(use, NotYet) or now is None else _used_of_reserved(use, now),
        recommended=None if isinstance(pool.recommended, NotYet) else _report_reserved(pool.recommended),
        missing_recommendation=_report_missing(pool.recommended) if isinstance(pool.recommended, NotYet) else None,
        change="unknown" if isinstance(pool.change, NotYet) else pool.change.kind,
        reason=report_reason(pool.change.reason),
        unused_dollars_per_month=None if pool.money is None else round(pool.money.unused, 2),
        overdraft_dollars_per_month=None if pool.money is None else round(pool.money.overdraft, 2),
        notes=_pool_notes(counts) if is_known else [],
    )


def _pool_notes(counts: Mapping[str, int]) -> list[str]:
    fallback = counts.get("node-less-pods", 0)
    if not fallback:
        return []
    return [
        f"{format_count(fallback, 'node does', 'nodes do')} not report the usage of their container runtime. For "
        "these nodes it is computed as "
        "the node's usage minus that of its pods, which includes the rest of the system. To measure it, set the "
        "cgroup of the runtime in the kubelet (--runtime-cgroups)."
    ]


def _used_of_reserved(use: PoolUse, now: Reserved) -> dict[str, float]:
    pairs = {"cpu": (use.cpu.p50, now.millicores), "memory": (use.memory.p50, now.memory_bytes)}
    return {resource: round(used / reserved, 4) for resource, (used, reserved) in pairs.items() if reserved}


def _report_use(use: ResourceUse, unit: int) -> UseReport:
    fit = use.fit
    return UseReport(
        p50=round(use.p50, 3),
        p95=round(use.p95, 3),
        maximum=round(use.maximum, 3),
        fit=None
        if isinstance(fit, NotYet)
        else FitReport(
            base=round(fit.base, 3),
            per_pod=round(fit.per_pod, 3),
            from_pods=round(fit.min_pods, 1),
            to_pods=round(fit.max_pods, 1),
            pods_per_unit=round(unit / fit.per_pod, 1) if fit.per_pod else None,
        ),
        missing_fit=_report_missing(fit) if isinstance(fit, NotYet) else None,
    )


def _report_reserved(reserved: Reserved) -> ReservedReport:
    return ReservedReport(millicores=reserved.millicores, bytes=reserved.memory_bytes)


def _report_missing(not_yet: NotYet) -> NotYetReport:
    return NotYetReport(reason=report_reason(not_yet.reason), have=not_yet.have, need=not_yet.need)
