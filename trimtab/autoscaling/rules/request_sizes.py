"""Rules about requests compared with usage."""

from collections.abc import Iterator
from math import ceil, fsum
from typing import NamedTuple

from trimtab.autoscaling.container_amounts import (
    CPU,
    MEMORY,
    RESOURCES,
    format_amount,
    request_of,
    running_containers,
    vpa_containers,
)
from trimtab.autoscaling.lint_snapshot import LintSnapshot, LintWorkload, controls_resource
from trimtab.autoscaling.objects import LintContainer
from trimtab.autoscaling.request_changes import cap_at_limit, change_request
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, Needs, lint_rule
from trimtab.autoscaling.rules.vpa_bounds import VPA_MARGIN_FACTOR, least_request
from trimtab.autoscaling.usage_history import ResourceUsage
from trimtab.autoscaling.vpa_recommenders import read_recommenders
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.format_count import format_count

SMALL = {CPU: 50, MEMORY: 100_000_000}
"""The usage, in millicores and bytes, below which a VPA is more work than it saves (Gardener's guide)."""
SMALLEST_BUCKET = {CPU: 10, MEMORY: 10_000_000}
"""The size of the first bucket of the VPA's histograms. The VPA does not distinguish smaller amounts."""
WASTE = {CPU: 50, MEMORY: 50 << 20}
STEADY_SPREAD = 2.0
MIN_MANY_REPLICAS = 4
SMALL_REPLICA_MILLICORES = 100
FIXED_SHARE = 0.8
"""If P5 of the memory usage is at least this share of P95, the memory does not depend on the load, so each replica
needs all of it."""
LARGE_REPLICA_MILLICORES = 250
"""The cpu usage, at P95, that each replica has after the proposed change."""
LEAST_REPLICAS = 3
"""The smallest number of replicas that is proposed: one for each of three zones."""
MIN_SAVED_BYTES = 256 << 20
_GUIDE = "Gardener's guide on pod autoscaling (shoot_pod_autoscaling_best_practices.md)"
_USAGE = (Needs.USAGE,)


class _Sized(NamedTuple):
    """A container, the VPA that sets its requests, and its usage by resource. What is not known is missing."""

    workload: LintWorkload
    container: LintContainer
    vpas: tuple[VerticalPodAutoscaler, ...]
    usage: dict[str, ResourceUsage]


def _sized_containers(snapshot: LintSnapshot) -> Iterator[_Sized]:
    """Yields every container whose usage is known."""
    for workload in snapshot.workloads:
        for container in workload.spec.containers:
            usage = {
                resource: percentiles
                for resource in RESOURCES
                if (percentiles := snapshot.usage_of(workload, container.name, resource)) is not None
            }
            if usage:
                vpas = tuple(
                    vpa
                    for vpa in snapshot.vpas_of(workload.subject)
                    if any(controls_resource(vpa, container.name, resource) for resource in RESOURCES)
                )
                yield _Sized(workload, container, vpas, usage)


def _is_managed(sized: _Sized, resource: str) -> bool:
    return any(controls_resource(vpa, sized.container.name, resource) for vpa in sized.vpas)


def _is_small(usage: dict[str, ResourceUsage], bounds: dict[str, int]) -> bool:
    """Returns whether the P95 of both resources is known and is at most the given `bounds`."""
    return all(resource in usage and usage[resource].p95 <= bounds[resource] for resource in RESOURCES)


@lint_rule(
    "L21",
    LintSeverity.INFO,
    "A VPA for a container with small or steady usage",
    why="A static request at the 95th percentile of the usage has the same effect, without a webhook, evictions "
    "and their risks.",
    source=_GUIDE,
    fix="Remove the VPA, and set requests at the 95th percentile of the usage (`trimtab recommend`).",
    needs=_USAGE,
)
def needless_vpa(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each container under a VPA that uses at most 50m and 100 MB (but see L22), or whose P95 is
    at most twice its P5 in both resources."""
    for sized in _sized_containers(snapshot):
        if not sized.vpas or _is_small(sized.usage, SMALLEST_BUCKET):
            continue
        steady = all(r in sized.usage and sized.usage[r].p95 <= STEADY_SPREAD * sized.usage[r].p5 for r in RESOURCES)
        if steady or _is_small(sized.usage, SMALL):
            how = "steadily" if steady else "little"
            yield rule.report_problem(
                sized.workload.subject,
                f"Container {sized.container.name} of {sized.workload.subject} uses {how} "
                f"({_describe_usage(sized.usage)}), and VPA {sized.vpas[0].metadata.name} sizes it.",
            )


def _describe_usage(usage: dict[str, ResourceUsage]) -> str:
    return ", ".join(
        f"5th to 95th percentile of {resource}: {format_amount(resource, percentiles.p5)} to "
        f"{format_amount(resource, percentiles.p95)}"
        for resource, percentiles in usage.items()
    )


@lint_rule(
    "L22",
    LintSeverity.WARNING,
    "A VPA for a container whose usage is below the VPA's smallest bucket",
    why="The VPA cannot distinguish such small amounts, so it sets its minimum: the request is higher than the "
    "usage, and the evictions of the VPA have no benefit.",
    source=_GUIDE + "; VPA histograms begin at 10m and 10 MB",
    fix="Remove the VPA, and set small requests yourself.",
    needs=_USAGE,
)
def tiny_container(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each container under a VPA whose P95 is at most 10m and 10 MB."""
    for sized in _sized_containers(snapshot):
        if sized.vpas and _is_small(sized.usage, SMALLEST_BUCKET):
            yield rule.report_problem(
                sized.workload.subject,
                f"Container {sized.container.name} of {sized.workload.subject} uses at most 10m and 10 MB "
                f"({_describe_usage(sized.usage)}), and VPA {sized.vpas[0].metadata.name} sizes it.",
            )


@lint_rule(
    "L23",
    LintSeverity.INFO,
    "A large container with varying usage and no autoscaler",
    why="The request of the container is too large most of the time, or too small at peak load.",
    source=_GUIDE,
    fix="Add an HPA or a VPA (`trimtab lint` then checks its bounds).",
    needs=_USAGE,
)
def unscaled_container(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each container without VPA and HPA that uses more than 50m or 100 MB and whose P95 is above
    twice its P5."""
    for sized in _sized_containers(snapshot):
        if sized.vpas or snapshot.hpas_of(sized.workload.subject) or not sized.workload.is_scaled_by_count:
            continue
        for resource, usage in sized.usage.items():
            if usage.p95 > SMALL[resource] and usage.p95 > STEADY_SPREAD * usage.p5:
                yield rule.report_problem(
                    sized.workload.subject,
                    f"Container {sized.container.name} of {sized.workload.subject} uses "
                    f"{format_amount(resource, usage.p5)} to {format_amount(resource, usage.p95)} of {resource}, "
                    "but no autoscaler changes its request.",
                )
                break


@lint_rule(
    "L37",
    LintSeverity.WARNING,
    "A static request below P95",
    why="For at least one minute in twenty the container needs more than it has reserved. On a full node it is "
    "then slow, or among the first to be evicted.",
    source=_GUIDE,
    fix="Raise the request to the 95th percentile of the usage (`trimtab recommend`).",
    needs=_USAGE,
)
def low_request(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each request that is below P95, if no VPA sets it."""
    for sized in _sized_containers(snapshot):
        for resource, usage in sized.usage.items():
            request = request_of(sized.container, resource)
            if request is not None and request < usage.p95 and not _is_managed(sized, resource):
                path = sized.workload.container_path(sized.container, "resources", "requests", resource)
                yield rule.report_problem(
                    sized.workload.subject,
                    f"Container {sized.container.name} of {sized.workload.subject} requests "
                    f"{format_amount(resource, request)} of {resource}, but the 95th percentile of its usage is "
                    f"{format_amount(resource, usage.p95)}.",
                    path=path,
                )


@lint_rule(
    "L38",
    LintSeverity.INFO,
    "A static request far above P95",
    why="You pay for the difference, but the container does not use it, and no other pod can reserve it.",
    source="Trimtab",
    fix="Lower the request (`trimtab recommend` shows the amount and the savings).",
    needs=_USAGE,
)
def high_request(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each request that is above 1.5 times P95 and by more than 50m or 50Mi, if no VPA sets it."""
    for sized in _sized_containers(snapshot):
        for resource, usage in sized.usage.items():
            request = request_of(sized.container, resource)
            if request is None or _is_managed(sized, resource):
                continue
            if request > 1.5 * usage.p95 and request - usage.p95 > WASTE[resource]:
                replicas = snapshot.needed_replicas(sized.workload) or 1
                waste = format_amount(resource, (request - usage.p95) * replicas)
                pods = "One pod reserves" if replicas == 1 else f"{replicas} pods reserve"
                yield rule.report_problem(
                    sized.workload.subject,
                    f"Container {sized.container.name} of {sized.workload.subject} requests "
                    f"{format_amount(resource, request)} of {resource}, but the 95th percentile of its usage is "
                    f"{format_amount(resource, usage.p95)}.",
                    path=sized.workload.container_path(sized.container, "resources", "requests", resource),
                    outcome=f"{pods} {waste} of {resource} that is not used"
                    f"{_cost_text(snapshot, resource, (request - usage.p95) * replicas)}.",
                )


@lint_rule(
    "L39",
    LintSeverity.INFO,
    "An initial request under a VPA outside of P5 to P50",
    why="A VPA soon raises an initial request at the 5th percentile of the usage. Above the 50th percentile each "
    "rollout wastes resources until the VPA acts; below the 5th percentile each rollout starts with too few "
    "resources.",
    source=_GUIDE,
    fix="Set the initial request to the 5th percentile of the usage.",
    needs=_USAGE,
)
def unusual_initial_request(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each request whose first value, before a VPA sets it, differs much from the usage:

    - it is more than 10 % below P5; or
    - it is more than 10 % above P50, and above the smallest request that the VPA sets (or should set according to the
      quietest day, see L17)."""
    recommenders = read_recommenders(snapshot)
    for sized in _sized_containers(snapshot):
        for resource, usage in sized.usage.items():
            request = request_of(sized.container, resource)
            if request is None or not _is_managed(sized, resource) or usage.p50 <= 0:
                continue
            containers = len(vpa_containers(sized.workload.spec))
            least = max(
                least_request(recommenders.flags_of(vpa), vpa, sized.container, resource, containers)[0]
                for vpa in sized.vpas
            )
            least = max(least, ceil((usage.idle or 0) * VPA_MARGIN_FACTOR))
            # The VPA that allows the most decides whether the limit bounds the request.
            start = max(
                cap_at_limit(vpa, sized.container, resource, ceil(max(1.0, usage.p5, least))) for vpa in sized.vpas
            )
            if request > 1.1 * max(usage.p50, start) or request < 0.9 * min(usage.p5, start):
                path = sized.workload.container_path(sized.container, "resources", "requests", resource)
                yield rule.report_problem(
                    sized.workload.subject,
                    f"Container {sized.container.name} of {sized.workload.subject} starts with a request of "
                    f"{format_amount(resource, request)} of {resource}, but the 5th percentile of its usage is "
                    f"{format_amount(resource, usage.p5)} and the 50th {format_amount(resource, usage.p50)}.",
                    path=path,
                    fix=f"Set the initial request to {format_amount(resource, start)}"
                    + (", which is the smallest request that its VPA should set." if start == least else ", P5."),
                    changes=change_request(sized.workload, sized.vpas[0], sized.container, resource, start),
                )


def _cost_text(snapshot: LintSnapshot, resource: str, amount: float) -> str:
    """Returns the cost of an amount, after a colon; an empty string if no price is known."""
    if snapshot.price is None:
        return ""
    cpu, memory = (amount, 0.0) if resource == CPU else (0.0, amount)
    return f": {snapshot.price.describe_cost(cpu, memory)}"


@lint_rule(
    "N16",
    LintSeverity.INFO,
    "Many small replicas, each with a fixed cost",
    why="Each replica needs memory that does not depend on its load, so fewer and larger replicas need less "
    "memory for the same load.",
    source="Gardener's GEP-23, section on deficiencies: small replicas are inefficient",
    fix="Run fewer, larger replicas.",
    needs=_USAGE,
)
def many_small_replicas(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each workload for which all of these hold:

    - it is meant to have at least four replicas;
    - a replica uses at most 100m of cpu at P95, and its P95 is more than twice its P5, so there is load, and it
      changes;
    - a replica's memory at P5 is at least 80 % of its memory at P95, so memory does not follow the load;
    - fewer replicas that use 250m each would save at least 256Mi. There must be at least three of them, and one more
      than a budget keeps available.
    """
    for workload in snapshot.workloads:
        replicas, cpu, memory = snapshot.needed_replicas(workload), *_replica_usage(snapshot, workload)
        if replicas is None or replicas < MIN_MANY_REPLICAS or cpu is None or memory is None:
            continue
        if cpu.p95 > SMALL_REPLICA_MILLICORES or cpu.p95 <= STEADY_SPREAD * cpu.p5:
            continue
        fewer = max(_least_count(snapshot, workload), ceil(replicas * cpu.p95 / LARGE_REPLICA_MILLICORES))
        saved = (replicas - fewer) * memory.p5
        if memory.p5 >= FIXED_SHARE * memory.p95 and saved >= MIN_SAVED_BYTES:
            load = format_amount(CPU, ceil(replicas * cpu.p95 / fewer))
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} has {snapshot.describe_replicas(workload)}. Each uses "
                f"{format_amount(CPU, cpu.p95)} of cpu at the 95th percentile, and keeps "
                f"{format_amount(MEMORY, memory.p5)} of memory even without load.",
                path=("spec", "replicas"),
                outcome=f"{format_count(fewer, 'replica')} can serve the same load and need "
                f"{format_amount(MEMORY, saved)} "
                f"less{_cost_text(snapshot, MEMORY, saved)}.",
                fix=f"Run {format_count(fewer, 'replica')}, each of which may use {load} of cpu and "
                f"{format_amount(MEMORY, memory.p95)} of memory; with an HPA, set minReplicas to this number "
                "and raise the target.",
            )


def _replica_usage(snapshot: LintSnapshot, workload: LintWorkload) -> tuple[ResourceUsage | None, ResourceUsage | None]:
    """Returns the cpu and the memory usage of one replica, summed over its containers; None for a resource that is
    unknown for one of them."""
    sums: list[ResourceUsage | None] = []
    for resource in RESOURCES:
        usages = [snapshot.usage_of(workload, c.name, resource) for c in running_containers(workload.spec)]
        whole = [usage for usage in usages if usage is not None]
        complete = len(whole) == len(usages) > 0
        sums.append(
            ResourceUsage(
                p5=fsum(u.p5 for u in whole),
                p50=fsum(u.p50 for u in whole),
                p90=fsum(u.p90 for u in whole),
                p95=fsum(u.p95 for u in whole),
                max=fsum(u.max for u in whole),
            )
            if complete
            else None
        )
    return sums[0], sums[1]


def _least_count(snapshot: LintSnapshot, workload: LintWorkload) -> int:
    """Returns the smallest number of replicas that availability allows: three, and one more than each budget keeps
    available."""
    kept = [value_or(pdb.spec.min_available, 0) for pdb in snapshot.pdbs_of(workload)]
    return max([LEAST_REPLICAS, *(amount + 1 for amount in kept if isinstance(amount, int))])
