"""Leaders that need other requests than the other replicas of their workload, in the report of `trimtab recommend`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trimtab.cli.recommend.report import ReplicaRoleReport, RoleResourceReport
from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import Seconds
from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.inputs.current_requests import CurrentRequests
from trimtab.inputs.replica_usage import LeaderUsage, role_key
from trimtab.sizing.replica_roles import ReplicaRole, RoleAmounts, compare_roles
from trimtab.sizing.request import SizingSettings, round_up_amount
from trimtab.sizing.statistics import UsageStatistics, summarize_usage


def report_roles(
    usage: LeaderUsage,
    containers: Iterable[ContainerKey],
    cluster: CurrentRequests,
    settings: SizingSettings,
    now: Seconds | None,
) -> Iterator[ReplicaRoleReport]:
    """Yields each of these containers whose leaders need other requests than the other replicas."""
    for container in containers:
        roles = {
            name: role
            for (namespace, name), role in usage.roles.items()
            if namespace == container.namespace and cluster.pods.get((namespace, name)) == container.owner
        }
        if not roles:
            continue
        differences = {
            resource: amounts
            for resource in RESOURCES
            if (amounts := _compare(usage, container, resource, settings, now)) is not None
        }
        if differences:
            yield _report(container, roles, differences, cluster)


def _compare(
    usage: LeaderUsage, container: ContainerKey, resource: str, settings: SizingSettings, now: Seconds | None
) -> RoleAmounts | None:
    leader, other = (_summarize(usage, container, resource, settings, now, is_leader=side) for side in (True, False))
    return compare_roles(resource, leader, other, settings.rule_of(resource))


def _summarize(
    usage: LeaderUsage,
    container: ContainerKey,
    resource: str,
    settings: SizingSettings,
    now: Seconds | None,
    *,
    is_leader: bool,
) -> UsageStatistics | None:
    key = role_key(container, is_leader=is_leader)
    window = usage.history.compressed_window(key, resource)
    if not window.last:
        return None
    statistics = summarize_usage(
        resource,
        window,
        now,
        kind=container.kind,
        pods=usage.history.pod_averages.recent_uses((key, resource)),
        percentiles=settings.extra_percentiles(resource),
    )
    return statistics if isinstance(statistics, UsageStatistics) else None


def _report(
    container: ContainerKey,
    roles: dict[str, ReplicaRole],
    differences: dict[str, RoleAmounts],
    cluster: CurrentRequests,
) -> ReplicaRoleReport:
    leader = next(role for role in roles.values() if role.is_leader)
    leaders = sum(role.is_leader for role in roles.values())
    others = len(roles) - leaders
    resources, saved = [], {"cpu": 0, "memory": 0}
    for resource, amounts in differences.items():
        high, low = (round_up_amount(resource, amount) for amount in (amounts.leader, amounts.other))
        saved[resource] = (high - low) * others if high > low else (low - high) * leaders
        resources.append(
            RoleResourceReport(
                resource=resource,
                leader=quantity.format_quantity(resource, high),
                other=quantity.format_quantity(resource, low),
            )
        )
    needs = " and ".join(f"{one.leader} of {one.resource} instead of {one.other}" for one in resources)
    return ReplicaRoleReport(
        namespace=container.namespace,
        kind=container.kind,
        workload=container.workload,
        container=container.name,
        label=leader.label,
        leader_value=leader.value,
        leaders=leaders,
        others=others,
        resources=resources,
        monthly_saved=round(cluster.price.monthly_cost(saved["cpu"], saved["memory"]), 2),
        text=(
            f"{container}: a pod with {leader.label}={leader.value} needs {needs}, which is right for the other "
            f"{format_count(others, 'pod')}, so one request suits neither."
        ),
    )
