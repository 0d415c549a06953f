"""What a pool's kubelets and container runtimes use, and the reservation that follows from it.

A memory reservation protects the node, so a recommendation is never below the measured maximum. For cpu, reservations
only set shares, so the 95th percentile is enough. Every change of a reservation replaces nodes, or restarts kubelets
and may evict pods. So small differences change nothing, an increase applies only to new nodes, and a reservation is
lowered only after seven days have been measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import NotYet, Reason
from trimtab.reservations import reasons
from trimtab.reservations.overhead_fit import OverheadFit, fit_overhead, weighted_percentile
from trimtab.reservations.overhead_history import CPU, DAY_SECONDS, MEMORY, OverheadHistory
from trimtab.reservations.profile import MIB

CPU_STEP = 10
"""A cpu reservation is rounded up to a multiple of this many millicores."""
MEMORY_STEP = 64 * MIB
MIN_COVERAGE = 0.9
"""The minimum share of a pool's nodes that must have been measured, and the minimum share of samples that must be
complete."""
MIN_DAYS_TO_LOWER = 7
TOLERANCE = 0.1
TOLERANCE_MILLICORES, TOLERANCE_BYTES = 20, 128 * MIB
"""A difference counts only if it is larger than ten percent of what is reserved, and larger than these amounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUse:
    """The usage of one resource by kubelet and container runtime, in millicores or bytes per node."""

    fit: OverheadFit | NotYet
    p50: float
    p95: float
    maximum: float
    residual_p95: float
    """By how much nodes exceed the fitted line, at the 95th percentile; 0 if there is no line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """What was measured for one pool with one container runtime."""

    cpu: ResourceUse
    memory: ResourceUse
    nodes: int
    """The number of nodes that were measured."""
    silent_nodes: int
    """The number of the pool's nodes that were not measured."""
    coverage: float
    """The share of samples in which both cpu and memory are known."""
    span_seconds: int
    max_pods: int
    """The largest number of pods on a measured node."""

    @property
    def node_coverage(self) -> float:
        """The share of the pool's nodes that were measured."""
        return self.nodes / (self.nodes + self.silent_nodes) if self.nodes else 0.0


def measure_pool(history: OverheadHistory, silent_nodes: int = 0) -> PoolUse | NotYet:
    """Returns what the pool's nodes use; NotYet if there are no samples."""
    if not history.groups:
        return NotYet(
            reason=reasons.NO_SAMPLES("no kubelet of the pool reported its own usage"),
            have=f"{format_count(history.moments, 'response')} without the usage of the kubelet, and "
            f"{format_count(silent_nodes, 'node that does', 'nodes that do')} not answer",
            need="one node whose kubelet reports its usage",
        )
    return PoolUse(
        cpu=_resource_use(history, CPU),
        memory=_resource_use(history, MEMORY),
        nodes=len(history.nodes),
        silent_nodes=silent_nodes,
        coverage=history.coverage,
        span_seconds=history.span_seconds,
        max_pods=history.max_pods,
    )


def _resource_use(history: OverheadHistory, resource: str) -> ResourceUse:
    fit = fit_overhead(history.list_points(resource))
    amounts = list(history.weighted_amounts(resource))
    residual = 0.0
    if not isinstance(fit, NotYet):
        beyond = [(amount - fit.predict_use(pods), weight) for pods, amount, weight in amounts]
        residual = max(0.0, weighted_percentile(beyond, 0.95))
    pairs = [(amount, weight) for _, amount, weight in amounts]
    return ResourceUse(
        fit=fit,
        p50=weighted_percentile(pairs, 0.5),
        p95=weighted_percentile(pairs, 0.95),
        maximum=history.maximum_of(resource),
        residual_p95=residual,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The reservation of a node: the sum of kube reserved and system reserved."""

    millicores: int
    memory_bytes: int


def recommend_reservation(use: PoolUse, max_pods: int | None = None) -> Reserved | NotYet:
    """Returns the reservation that covers what was measured; NotYet if too little of the pool was measured.

    `max_pods` is the number of pods on a node for which to plan; None means the largest number on a measured node.
    """
    if min(use.node_coverage, use.coverage) < MIN_COVERAGE:
        return NotYet(
            reason=reasons.LOW_COVERAGE(
                f"{format_count(use.nodes, 'node was', 'nodes were')} measured, but "
                f"{format_count(use.silent_nodes, 'node did', 'nodes did')} not answer"
            ),
            have=f"at least {use.node_coverage:.0%} of the nodes and {use.coverage:.0%} of the samples",
            need=f"{MIN_COVERAGE:.0%}",
        )
    pods = use.max_pods if max_pods is None else max_pods
    cpu = max(use.cpu.p95, _predicted_use(use.cpu, pods))
    memory = max(use.memory.maximum, _predicted_use(use.memory, pods))
    return Reserved(millicores=_round_up(cpu, CPU_STEP), memory_bytes=_round_up(memory, MEMORY_STEP))


def _predicted_use(use: ResourceUse, pods: int) -> float:
    return 0.0 if isinstance(use.fit, NotYet) else use.fit.predict_use(pods) + use.residual_p95


def _round_up(amount: float, step: int) -> int:
    # At least one step: a node without any reservation lets pods starve its kubelet.
    return max(1, int(-(-amount // step))) * step


class ChangeKind(StrEnum):
    """What to do with a present reservation."""

    KEEP = "keep"
    RAISE = "raise"
    LOWER = "lower"
    WAIT = "wait"
    """The reservation could be lowered, but not enough days have been measured yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationChange:
    """The decision about one pool's reservation."""

    kind: ChangeKind
    reserved: Reserved
    """What should be reserved; the present reservation if nothing is to be changed."""
    reason: Reason


def decide_change(now: Reserved | None, recommended: Reserved, span_seconds: int) -> ReservationChange:
    """Returns whether the reservation should change.

    `now` is the present or published reservation, or None if it is not known. `span_seconds` is the length of the
    measured time.
    """
    if now is None:
        reason = reasons.RESERVED_UNKNOWN("the present reservation is not known")
        return ReservationChange(kind=ChangeKind.RAISE, reserved=recommended, reason=reason)
    cpu = _beyond_tolerance(now.millicores, recommended.millicores, TOLERANCE_MILLICORES)
    memory = _beyond_tolerance(now.memory_bytes, recommended.memory_bytes, TOLERANCE_BYTES)
    wanted = Reserved(
        millicores=recommended.millicores if cpu else now.millicores,
        memory_bytes=recommended.memory_bytes if memory else now.memory_bytes,
    )
    if max(cpu, memory) > 0:
        # A raise does not wait for a lower value of the other resource, which would need a week.
        raised = Reserved(
            millicores=max(now.millicores, wanted.millicores), memory_bytes=max(now.memory_bytes, wanted.memory_bytes)
        )
        reason = reasons.TOO_SMALL(f"{_describe_change(now, raised)} for new nodes")
        return ReservationChange(kind=ChangeKind.RAISE, reserved=raised, reason=reason)
    if min(cpu, memory) == 0 and wanted == now:
        sentence = (
            f"the recommended reservation of {_describe_reserved(recommended)} is close to {_describe_reserved(now)}"
        )
        return ReservationChange(kind=ChangeKind.KEEP, reserved=now, reason=reasons.WITHIN_TOLERANCE(sentence))
    if span_seconds < MIN_DAYS_TO_LOWER * DAY_SECONDS:
        days = span_seconds / DAY_SECONDS
        sentence = (
            f"{_describe_change(now, wanted)}, but only after {MIN_DAYS_TO_LOWER} days; so far {days:.1f} days "
            "were measured"
        )
        return ReservationChange(kind=ChangeKind.WAIT, reserved=now, reason=reasons.LOWER_LATER(sentence))
    reason = reasons.TOO_LARGE(_describe_change(now, wanted))
    return ReservationChange(kind=ChangeKind.LOWER, reserved=wanted, reason=reason)


def _beyond_tolerance(now: int, recommended: int, least: int) -> int:
    """Returns 1 if the reservation should be raised, -1 if it should be lowered, and 0 if the difference is too
    small."""
    difference = recommended - now
    if abs(difference) <= max(TOLERANCE * now, least):
        return 0
    return 1 if difference > 0 else -1


def _describe_reserved(reserved: Reserved) -> str:
    return f"{reserved.millicores}m cpu and {reserved.memory_bytes // MIB}Mi memory"


def _describe_change(now: Reserved, wanted: Reserved) -> str:
    parts = []
    if wanted.millicores != now.millicores:
        parts.append(f"cpu from {now.millicores}m to {wanted.millicores}m")
    if wanted.memory_bytes != now.memory_bytes:
        parts.append(f"memory from {now.memory_bytes // MIB}Mi to {wanted.memory_bytes // MIB}Mi")
    return " and ".join(parts)
