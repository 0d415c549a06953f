"""The reports of `trimtab fleet`: the types of the published reports, and the functions that build them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from trimtab.cli.fleet.machine_groups import MachineGroupReport
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import format_timestamp
from trimtab.fleet.cluster_digest import ClusterDigest, PoolSums
from trimtab.fleet.cluster_merge import ClusterMerge
from trimtab.fleet.money_report import MICRO_DOLLARS, ClusterFailure, ContainerDecision, FleetSums, RequestSums
from trimtab.fleet.run_decisions import FleetDecisions


class FailureReport(ReportPart, frozen=True, kw_only=True):
    """A cluster that the report leaves out, with the reason."""

    cluster: str
    problem: str


class RequestLine(ReportPart, frozen=True, kw_only=True):
    """The sums of the requests of a cluster, a team or a namespace. Every replica of a pod counts."""

    by: str
    """What the line sums over: cluster, team, namespace, or total."""
    value: str
    """The name of the cluster, team or namespace. The team is empty for containers whose pods and namespace both lack
    the team's label."""
    containers: int
    changes: int
    """The number of containers whose request changes."""
    unknown: int
    """The number of containers with too little usage of both cpu and memory for a recommendation."""
    too_small: int
    """The number of containers that request less than they need."""
    cpu_now: float | None
    """The number of cores that are requested today. This amount and all amounts below are null if the present requests
    are not known."""
    cpu_proposed: float | None
    """The cores that would be requested with the recommendations."""
    memory_now: float | None
    """The requested GiB of today."""
    memory_proposed: float | None
    """The GiB that would be requested with the recommendations."""
    monthly_now: float | None
    """The cost of today's requests in dollars per month."""
    monthly_proposed: float | None
    """The cost of the recommended requests in dollars per month."""
    monthly_saved: float | None
    """The dollars per month that the recommendations save; negative if they cost more."""
    monthly_waste: float | None
    """The cost in dollars per month of what containers request but do not need. Containers that request too little do
    not lower this amount."""


class DecisionReport(ReportPart, frozen=True, kw_only=True):
    """A container with a large change of its requests."""

    cluster: str
    namespace: str
    workload: str
    """The workload of the container, as Kind/name."""
    container: str
    """The name of the container."""
    team: str
    """The value of the label for teams; empty if pod and namespace lack the label."""
    replicas: int | None
    cpu_now: str | None
    cpu_proposed: str | None
    """The recommended cpu request, such as 250m; null if the request stays."""
    memory_now: str | None
    memory_proposed: str | None
    """The recommended memory request, such as 512Mi; null if the request stays."""
    cpu_reason: str
    """The code of the reason for the recommended cpu request."""
    memory_reason: str
    """The code of the reason for the recommended memory request."""
    monthly_saved: float | None


class FleetRecommendReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab fleet recommend`. Published as deploy/schemas/fleet-recommend-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab fleet recommend --usage FOLDER"
    api_version: str = API_VERSION
    kind: str = "FleetRecommendReport"
    at: str
    """The time of the report, as RFC 3339. The age of the usage is measured back from it."""
    days: int
    rule: str
    """The rule of the recommendations, such as adaptive or p95."""
    total: RequestLine
    clusters: list[RequestLine]
    """The sums by cluster. This list and those below are sorted by waste, the largest first."""
    teams: list[RequestLine]
    namespaces: list[RequestLine]
    """The sums by namespace and cluster."""
    largest: list[DecisionReport]
    """The containers whose cost changes most."""
    gone: dict[str, int]
    """Cluster → the number of containers that have usage but no longer have a pod. They are not part of any sum."""
    failures: list[FailureReport]
    """The clusters that were left out, each with what could not be read."""
    notes: list[str]


class ClusterPlanLine(ReportPart, frozen=True, kw_only=True):
    """The result of planning the compaction of one cluster."""

    cluster: str
    nodes: int
    nodes_to_remove: int
    """The number of nodes that the plan removes."""
    evictions: int
    karpenter_nodes: int
    """The number of nodes that Karpenter created; the plan does not change them."""
    monthly_cost: float | None
    """The cost of all nodes in dollars per month; null if no price is known."""
    monthly_saved: float | None
    notes: list[str]


class PoolLine(ReportPart, frozen=True, kw_only=True):
    """One pool of one cluster."""

    cluster: str
    pool: str
    """The name of the pool; empty for nodes in no pool."""
    nodes: int
    nodes_to_remove: int
    """The number of the pool's nodes that the plan removes."""
    monthly_cost: float | None
    monthly_saved: float | None


class FleetPlanReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab fleet plan`. Published as deploy/schemas/fleet-plan-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab fleet plan --clusters FOLDER"
    api_version: str = API_VERSION
    kind: str = "FleetPlanReport"
    nodes: int
    nodes_to_remove: int
    """The number of nodes that the plans of all clusters remove."""
    evictions: int
    monthly_cost: float
    """The cost in dollars per month of all nodes whose price is known."""
    monthly_saved: float
    clusters: list[ClusterPlanLine]
    """The plans of all clusters, the largest saving first."""
    pools: list[PoolLine]
    """The pools of all clusters, the largest saving first."""
    failures: list[FailureReport]
    """The clusters that were left out, each with what could not be read."""


class MergeReport(ReportPart, frozen=True, kw_only=True):
    """A cluster whose workload could run in another cluster."""

    source: str
    target: str
    monthly_saved: float
    nodes_removed: int
    """The number of nodes of the source, which are no longer needed."""
    nodes_added: int
    """The number of nodes that the target needs in addition."""
    pods: int
    volumes: int
    """The number of volumes that would have to be moved by hand."""
    shared_namespaces: list[str]
    """The namespaces that both clusters have, which a merge would mix."""
    text: str


class FleetMachinesReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab fleet machines`. Published as deploy/schemas/fleet-machines-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab fleet machines --clusters FOLDER"
    api_version: str = API_VERSION
    kind: str = "FleetMachinesReport"
    groups: list[MachineGroupReport]
    """The groups of similar clusters, the most expensive first."""
    failures: list[FailureReport]
    """The clusters that were left out, each with what could not be read."""
    notes: list[str]


class ClusterMoneyLine(ReportPart, frozen=True, kw_only=True):
    """What one cluster costs and what could be saved."""

    cluster: str
    nodes: int
    monthly_cost: float | None
    """The cost of all nodes in dollars per month; null if no price is known."""
    requests: RequestLine | None
    """The sums of the cluster's requests; null if there is no history of usage."""
    saved_by_plan: float | None
    """The dollars per month that a compaction would save today, with the present requests; null if no price is
    known."""
    nodes_to_remove: int
    """The number of nodes that a compaction would remove today."""
    karpenter_nodes: int
    monthly_worst: float
    """The waste of requests plus the saving of the plan, in dollars per month. Clusters are sorted by this amount."""
    notes: list[str]


class FleetReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab fleet report`. Published as deploy/schemas/fleet-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab fleet report --clusters FOLDER"
    api_version: str = API_VERSION
    kind: str = "FleetReport"
    at: str | None
    monthly_cost: float
    monthly_waste: float
    saved_by_plan: float
    clusters: list[ClusterMoneyLine]
    """The costs of all clusters, sorted by the waste of requests plus the saving of the plan, the largest first."""
    teams: list[RequestLine]
    """The sums by team, the most waste first."""
    pools: list[PoolLine]
    """The pools of all clusters, the largest saving first."""
    merges: list[MergeReport]
    """Clusters to merge, the largest saving first."""
    machines: list[MachineGroupReport]
    """Machine types for groups of similar clusters."""
    failures: list[FailureReport]
    """The clusters that were left out, each with what could not be read."""
    notes: list[str]


def report_failures(failures: Iterable[ClusterFailure]) -> list[FailureReport]:
    """Returns the failures in the form of reports, sorted."""
    return [FailureReport(cluster=one.cluster, problem=one.problem) for one in sorted(set(failures))]


def dollars(micro_dollars: int) -> float:
    """Returns the amount in dollars, rounded to cents."""
    return round(micro_dollars / MICRO_DOLLARS, 2)


def report_sums(by: str, value: str, sums: RequestSums) -> RequestLine:
    """Returns the sums of one group (a cluster, team, namespace or the total) as a line of the report.

    `by`: the kind of group. `value`: the name of the group."""

    def known(amount: float) -> float | None:
        return round(amount, 3) if sums.priced else None

    return RequestLine(
        by=by,
        value=value,
        containers=sums.containers,
        changes=sums.changes,
        unknown=sums.unknown,
        too_small=sums.too_small,
        cpu_now=known(sums.cpu_now / 1000),
        cpu_proposed=known(sums.cpu_proposed / 1000),
        memory_now=known(sums.memory_now / 1024),
        memory_proposed=known(sums.memory_proposed / 1024),
        monthly_now=known(dollars(sums.cost_now)),
        monthly_proposed=known(dollars(sums.cost_proposed)),
        monthly_saved=known(dollars(sums.saved)),
        monthly_waste=known(dollars(sums.waste)),
    )


def report_groups(by: str, groups: dict[str, RequestSums]) -> list[RequestLine]:
    """Returns a line of sums for each group, the line with the most waste first."""
    ordered = sorted(groups.items(), key=lambda item: (-item[1].waste, item[0]))
    return [report_sums(by, value, sums) for value, sums in ordered]


def build_recommend_report(
    decided: FleetDecisions, failures: Iterable[ClusterFailure], now: int, days: int, rule: str, notes: Sequence[str]
) -> FleetRecommendReport:
    """Returns the report of `trimtab fleet recommend`, which is the same with every engine."""
    sums = decided.sums
    return FleetRecommendReport(
        at=format_timestamp(now),
        days=days,
        rule=rule,
        total=report_sums("total", "", sums.total),
        clusters=report_groups("cluster", sums.groups.get("cluster", {})),
        teams=report_groups("team", sums.groups.get("team", {})),
        namespaces=report_groups("namespace", sums.groups.get("namespace", {})),
        largest=[_report_decision(one) for one in sums.largest],
        gone=dict(sorted(sums.gone.items())),
        failures=report_failures([*decided.failures, *failures]),
        notes=[*notes, *_note_foreign_usage(sums)],
    )


def _note_foreign_usage(sums: FleetSums) -> Iterator[str]:
    """Yields a note per cluster with usage of other containers only than those of its snapshot."""
    for cluster, gone in sorted(sums.gone.items()):
        group = sums.groups.get("cluster", {}).get(cluster)
        if group is not None and group.unknown == group.containers:
            yield (
                f"The history of the cluster {cluster} has usage of {format_count(gone, 'container')}, and none of "
                f"them is in its snapshot. {format_count(group.containers, 'container')} of the snapshot "
                f"{'has' if group.containers == 1 else 'have'} too little usage. Check whether the history and the "
                "snapshot are of the same cluster, and whether the pods have the names that their controllers give "
                "them."
            )


def _report_decision(one: ContainerDecision) -> DecisionReport:
    def cpu(amount: int | None) -> str | None:
        return None if amount is None else quantity.format_quantity("cpu", amount)

    def memory(amount: int | None) -> str | None:
        return None if amount is None else quantity.format_quantity("memory", amount)

    return DecisionReport(
        cluster=one.cluster,
        namespace=one.namespace,
        workload=f"{one.kind}/{one.workload}",
        container=one.container,
        team=one.team,
        replicas=one.replicas,
        cpu_now=cpu(one.cpu_now),
        cpu_proposed=cpu(one.cpu_proposed),
        memory_now=memory(one.memory_now),
        memory_proposed=memory(one.memory_proposed),
        cpu_reason=one.cpu_reason,
        memory_reason=one.memory_reason,
        monthly_saved=None if one.cost_now is None else dollars(one.saved),
    )


def report_pools(digests: Iterable[ClusterDigest]) -> list[PoolLine]:
    """Returns all pools of all clusters, the largest saving first."""
    pools = sorted(
        (pool for digest in digests for pool in digest.pools),
        key=lambda pool: (-pool.saved, -pool.nodes_to_remove, -pool.cost, pool.cluster, pool.pool),
    )
    return [_report_pool(pool) for pool in pools]


def _report_pool(pool: PoolSums) -> PoolLine:
    return PoolLine(
        cluster=pool.cluster,
        pool=pool.pool,
        nodes=pool.nodes,
        nodes_to_remove=pool.nodes_to_remove,
        monthly_cost=dollars(pool.cost) if pool.cost else None,
        monthly_saved=dollars(pool.saved) if pool.cost else None,
    )


def build_plan_report(digests: Sequence[ClusterDigest], failures: Iterable[ClusterFailure]) -> FleetPlanReport:
    """Returns the report of `trimtab fleet plan`."""
    ordered = sorted(digests, key=lambda one: (-one.saved_by_plan, -one.nodes_to_remove, one.cluster))
    return FleetPlanReport(
        nodes=sum(one.nodes for one in digests),
        nodes_to_remove=sum(one.nodes_to_remove for one in digests),
        evictions=sum(one.evictions for one in digests),
        monthly_cost=dollars(sum(one.cost for one in digests)),
        monthly_saved=dollars(sum(one.saved_by_plan for one in digests)),
        clusters=[
            ClusterPlanLine(
                cluster=one.cluster,
                nodes=one.nodes,
                nodes_to_remove=one.nodes_to_remove,
                evictions=one.evictions,
                karpenter_nodes=one.karpenter_nodes,
                monthly_cost=dollars(one.cost) if one.cost else None,
                monthly_saved=dollars(one.saved_by_plan) if one.cost else None,
                notes=one.notes,
            )
            for one in ordered
        ],
        pools=report_pools(digests),
        failures=report_failures(failures),
    )


def report_merge(merge: ClusterMerge) -> MergeReport:
    """Returns the merge in the form of reports."""
    new = (
        f", which need{'s' * (merge.nodes_added == 1)} {format_count(merge.nodes_added, 'new node')}"
        if merge.nodes_added
        else ""
    )
    subject = f"The pod of {merge.source} fits" if merge.pods == 1 else f"The {merge.pods:,} pods of {merge.source} fit"
    text = f"{subject} on the nodes of {merge.target}{new}."
    if merge.volumes:
        text += f" {format_count(merge.volumes, 'volume has', 'volumes have')} to be moved to the other cluster."
    if merge.shared_namespaces:
        text += f" These namespaces exist in both clusters: {', '.join(merge.shared_namespaces[:5])}."
    return MergeReport(
        source=merge.source,
        target=merge.target,
        monthly_saved=dollars(merge.saved),
        nodes_removed=merge.nodes_removed,
        nodes_added=merge.nodes_added,
        pods=merge.pods,
        volumes=merge.volumes,
        shared_namespaces=list(merge.shared_namespaces),
        text=text,
    )


def build_fleet_report(
    digests: Sequence[ClusterDigest],
    decided: FleetDecisions | None,
    merges: Iterable[ClusterMerge],
    machines: Sequence[MachineGroupReport],
    failures: Iterable[ClusterFailure],
    at: int | None,
    notes: Sequence[str],
) -> FleetReport:
    """Returns the report of `trimtab fleet report`; `decided` is None if there is no history of usage."""
    groups = {} if decided is None else decided.sums.groups
    by_cluster = groups.get("cluster", {})
    lines = [_report_cluster(one, by_cluster.get(one.cluster)) for one in digests]
    return FleetReport(
        at=None if at is None else format_timestamp(at),
        monthly_cost=dollars(sum(one.cost for one in digests)),
        monthly_waste=0.0 if decided is None else dollars(decided.sums.total.waste),
        saved_by_plan=dollars(sum(one.saved_by_plan for one in digests)),
        clusters=sorted(lines, key=lambda line: (-line.monthly_worst, line.cluster)),
        teams=report_groups("team", groups.get("team", {})),
        pools=report_pools(digests),
        merges=[report_merge(merge) for merge in merges],
        machines=list(machines),
        failures=report_failures(failures),
        notes=list(notes),
    )


def _report_cluster(digest: ClusterDigest, sums: RequestSums | None) -> ClusterMoneyLine:
    return ClusterMoneyLine(
        cluster=digest.cluster,
        nodes=digest.nodes,
        monthly_cost=dollars(digest.cost) if digest.cost else None,
        requests=None if sums is None else report_sums("cluster", digest.cluster, sums),
        saved_by_plan=dollars(digest.saved_by_plan) if digest.cost else None,
        nodes_to_remove=digest.nodes_to_remove,
        karpenter_nodes=digest.karpenter_nodes,
        monthly_worst=dollars(digest.saved_by_plan + (sums.waste if sums is not None else 0)),
        notes=digest.notes,
    )
