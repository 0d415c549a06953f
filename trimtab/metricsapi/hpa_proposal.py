"""Proposes an HPA for a metric, with a threshold from history: how many HTTP requests a pod can serve with its cpu
request.

A pod's cpu usage is modelled as a constant part, which the pod needs even without any HTTP request, and a part for each
HTTP request. Both are fitted to the history by a straight line (least squares). The threshold is the rate at which a
pod uses the wanted share of its cpu request. If a VPA changes the cpu request, the number of HTTP requests per core
stays the same, and a new threshold can be derived from it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.format_count import format_count
from trimtab.cluster.quantity import canonical_form
from trimtab.cluster.reason import NotYet
from trimtab.metricsapi.reasons import CPU_UNRELATED, HISTORY_TOO_FLAT, REQUEST_TOO_SMALL, TOO_LITTLE_HISTORY

MIN_POINTS = 100
MIN_SPREAD = 2.0
"""The minimum ratio of the rate in the busiest twentieth of the points to the rate in the quietest twentieth."""
MIN_CORRELATION = 0.7
MAX_REPLICAS = 2**31 - 1
"""The largest `maxReplicas` of an HPA: the API has it as an int32."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """The request rate and the cpu usage of one pod at one time."""

    at: int
    """The time in seconds since 1970. Points with the same time belong together."""
    rate: float
    """The number of requests per second."""
    cores: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalTerms:
    """What the author of the HPA specifies."""

    namespace: str
    deployment: str
    metric: str
    cpu_request: float
    """The cpu request of one pod, in cores."""
    utilization: float = 0.7
    """The share of its cpu request that a pod should use."""
    scale_down_window_seconds: int = 300
    """For how many seconds a lower load must last before the HPA scales down. With less than two scrape intervals, it
    would follow single samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaProposal:
    """A proposed HPA, and the figures from which it follows."""

    threshold: float
    """The target in requests per second for each pod."""
    requests_per_core: float
    """The number of requests per second that one more core serves."""
    base_cores: float
    """The cores that a pod needs even if it serves no HTTP requests."""
    correlation: float
    min_replicas: int
    max_replicas: int
    points: int


def propose_hpa(points: Sequence[LoadPoint], terms: ProposalTerms) -> HpaProposal | NotYet:
    """Returns the proposal, or what is missing for it."""
    rates = sorted(point.rate for point in points)
    if len(rates) < MIN_POINTS:
        reason = TOO_LITTLE_HISTORY(f"the history has {format_count(len(rates), 'point')}")
        return NotYet(reason=reason, have=f"{format_count(len(rates), 'point')}", need=f"{MIN_POINTS}")
    quiet, busy = rates[len(rates) // 20], rates[-1 - len(rates) // 20]
    if busy < MIN_SPREAD * quiet or busy <= 0:
        reason = HISTORY_TOO_FLAT(
            f"the rate in the history is only between {quiet:.3g} and {busy:.3g} requests per second"
        )
        return NotYet(
            reason=reason, have=f"{quiet:.3g} to {busy:.3g}", need=f"a rate that varies by a factor of {MIN_SPREAD:g}"
        )
    slope, base, correlation = _fit_line(points)
    if slope <= 0 or correlation < MIN_CORRELATION:
        reason = CPU_UNRELATED(f"the correlation of cpu usage and request rate is {correlation:.2f}")
        return NotYet(reason=reason, have=f"{correlation:.2f}", need=f"{MIN_CORRELATION:g}")
    threshold = (terms.cpu_request * terms.utilization - base) / slope
    wanted = terms.cpu_request * terms.utilization
    # An HPA cannot express less than a thousandth of a request per second.
    if threshold < 0.001:
        reason = REQUEST_TOO_SMALL(
            f"a pod should use at most {wanted:.3g} cores, but needs {base:.3g} cores without any load"
        )
        return NotYet(reason=reason, have=f"{wanted:.3g} cores", need=f"more than {base + slope * 0.001:.3g}")
    least, most = _replica_range(points, threshold)
    if most > MAX_REPLICAS:
        needed = format_count(most, "pod")
        reason = REQUEST_TOO_SMALL(f"with at most {wanted:.3g} cores for each pod, the load would need {needed}")
        return NotYet(reason=reason, have=f"{wanted:.3g} cores", need=f"a load for at most {MAX_REPLICAS:,} pods")
    return HpaProposal(
        threshold=threshold,
        requests_per_core=1 / slope,
        base_cores=base,
        correlation=correlation,
        min_replicas=least,
        max_replicas=most,
        points=len(points),
    )


def _fit_line(points: Sequence[LoadPoint]) -> tuple[float, float, float]:
    """Returns (cores per HTTP request, cores that are needed without any HTTP request, correlation). The cores without
    requests are never negative."""
    count = len(points)
    mean_rate = math.fsum(point.rate for point in points) / count
    mean_cores = math.fsum(point.cores for point in points) / count
    rate_square = math.fsum((point.rate - mean_rate) ** 2 for point in points)
    cores_square = math.fsum((point.cores - mean_cores) ** 2 for point in points)
    both = math.fsum((point.rate - mean_rate) * (point.cores - mean_cores) for point in points)
    if rate_square <= 0 or cores_square <= 0:
        return 0.0, mean_cores, 0.0
    slope = both / rate_square
    return slope, max(0.0, mean_cores - slope * mean_rate), both / math.sqrt(rate_square * cores_square)


def _replica_range(points: Sequence[LoadPoint], threshold: float) -> tuple[int, int]:
    """Returns the number of replicas for the quietest time (at least 2), and for one and a half times the load of the
    busiest time."""
    rates: dict[int, list[float]] = {}
    for point in points:
        rates.setdefault(point.at, []).append(point.rate)
    # Exact sums do not depend on the order of the points.
    totals = [math.fsum(at_one_time) for at_one_time in rates.values()]
    quiet, busy = min(totals), max(totals)
    least = max(2, math.ceil(quiet / threshold))
    return least, max(least + 1, math.ceil(1.5 * busy / threshold))


def render_hpa(proposal: HpaProposal, terms: ProposalTerms) -> dict[str, Any]:
    """Returns the HorizontalPodAutoscaler. Its target is an AverageValue, which does not depend on requests that a VPA
    changes."""
    target = {"type": "AverageValue", "averageValue": canonical_form(f"{max(1, round(proposal.threshold * 1000))}m")}
    behavior = {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Percent", "value": 100, "periodSeconds": 60},
                {"type": "Pods", "value": 4, "periodSeconds": 60},
            ],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": terms.scale_down_window_seconds,
            "policies": [{"type": "Percent", "value": 20, "periodSeconds": 60}],
        },
    }
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": terms.deployment},
        "minReplicas": proposal.min_replicas,
        "maxReplicas": proposal.max_replicas,
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": terms.metric}, "target": target}}],
        "behavior": behavior,
    }
    metadata = {"name": terms.deployment, "namespace": terms.namespace}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
