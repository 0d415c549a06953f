"""Builds the report of `trimtab recommend` from usage and current requests, for the containers that are selected."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil, fsum

from trimtab.cli.output import report_reason
from trimtab.cli.recommend.fit_decisions import ContainerDecision, ResourceDecision, fit_decisions
from trimtab.cli.recommend.pod_level import WholePodReport, report_pod
from trimtab.cli.recommend.report import (
    ContainerReport,
    DayReport,
    MissingReport,
    RecommendReport,
    ReplicaRoleReport,
    ResourceReport,
    TotalsLine,
    group_totals,
    sum_lines,
)
from trimtab.cluster import quantity, selectors
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import confidence_at
from trimtab.cluster.selectors import requirement_matches
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.histogram.batch_history import RESOURCES, BatchHistory, ContainerKey
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.time_buckets import DAY
from trimtab.inputs.command_faults import check_names, check_namespaces
from trimtab.inputs.current_requests import CurrentContainer, CurrentRequests
from trimtab.inputs.replica_usage import LeaderUsage
from trimtab.inputs.usage_sources import KINDS as ENDING_KINDS
from trimtab.inputs.usage_sources import RunningTime
from trimtab.policy.reasons import OOM_KILLED
from trimtab.sizing import reasons
from trimtab.sizing.cost import HOURS_PER_MONTH
from trimtab.sizing.recommendation import build_percentiles as percentiles_of
from trimtab.sizing.request import CurrentResources, Proposal, SizingSettings, Unchanged, propose_request
from trimtab.sizing.statistics import (
    SizingSeverity,
    UsageStatistics,
    most_severe,
    rate_severity,
    required_history,
    summarize_usage,
)

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Pod")
"""The kinds that --kind accepts in any case; other kinds (an Argo `Rollout`) must be spelled exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The filters for the containers of a report. An empty field selects everything."""

    namespaces: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    """The names of the kinds in lower case."""
    labels: tuple[SelectorRequirement, ...] = ()
    """The requirements on the labels of pods, or of their namespace if the pods do not have the label."""

    def includes_container(self, container: ContainerKey, current: CurrentContainer | None) -> bool:
        """Returns whether the report has a row for the container; `current` is None if the snapshot does not have
        it."""
        if self.labels and current is None:
            return False
        return self.includes_workload(container.namespace, container.kind) and (
            current is None
            or all(requirement_matches(requirement, current.merged_labels) for requirement in self.labels)
        )

    def includes_workload(self, namespace: str, kind: str) -> bool:
        """Returns whether the namespace and the kind are selected."""
        return (not self.namespaces or namespace in self.namespaces) and (not self.kinds or kind.lower() in self.kinds)


def parse_selection(
    namespaces: Iterable[str], kinds: Iterable[str], selector: str | None, *, has_cluster: bool
) -> tuple[Selection, list[ConfigError]]:
    """Returns the selection that the options describe, and the mistakes in them."""
    mistakes, labels = list[ConfigError](), tuple[SelectorRequirement, ...]()
    kind_names = [part.strip() for text in kinds for part in text.split(",") if part.strip()]
    known_kinds = {kind.lower() for kind in KINDS}
    for kind in kind_names:
        if kind.lower() not in known_kinds and kind.lower().removesuffix("s") in known_kinds:
            todo = suggest_name(kind.removesuffix("s").capitalize(), KINDS)
            mistakes.append(
                ConfigError(file="--kind", expected="the name of a kind, such as Deployment", got=repr(kind), todo=todo)
            )
    if selector is not None:
        try:
            labels = selectors.parse(selector)
        except ValueError as error:
            mistakes.append(ConfigError(file="--selector", expected=str(error), got=repr(selector)))
        if not has_cluster:
            todo = "a --cluster snapshot, because labels can be read only from its pods"
            mistakes.append(ConfigError(file="--selector", expected="--cluster", got="none", todo=todo))
    lower = frozenset(kind.lower() for kind in kind_names)
    return Selection(namespaces=frozenset(namespaces), kinds=lower, labels=labels), mistakes


CURVE_SHARES = (0.05, 0.5, 0.95)
MAX_NAMES = 20
"""The largest number of namespaces or kinds that a note names."""
MAX_CONTAINERS = 3
"""The largest number of containers that a note names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user wants in the report: the sizing settings, the selection of containers, and the totals."""

    settings: SizingSettings
    now: Seconds | None
    by: str = ""
    """The label whose values divide the usage into separate histories; empty if the usage is one history."""
    selection: Selection = field(default_factory=Selection)
    least_severity: SizingSeverity = SizingSeverity.UNKNOWN
    total_by: tuple[str, ...] = ()
    pod_level: bool = False
    """Whether the report has requests of whole pods."""
    pod_history: BatchHistory | None = None
    """The usage of whole pods, or None if it was not read."""
    replica_usage: LeaderUsage | None = None
    """The usage of leaders apart from that of other replicas, or None if there are none."""


def build_report(
    histories: Mapping[str, BatchHistory],
    runs: Mapping[str, RunningTime],
    cluster: CurrentRequests,
    question: Question,
    notes: Iterable[str],
) -> RecommendReport:
    """Returns a report of every selected container that has usage or is in the snapshot, the largest saving first."""
    all_notes, lines, pods = [*cluster.notes, *notes], list[TotalsLine](), list[WholePodReport]()
    for value, history in histories.items():
        history_lines, history_notes, history_pods = _report_history(
            history, runs.get(value, RunningTime()), cluster, question, value if question.by else None
        )
        lines += history_lines
        pods += history_pods
        all_notes += history_notes
    if any(line.row.hours_per_month is not None and line.row.monthly_now is not None for line in lines):
        all_notes.append("The costs of CronJobs and Jobs include only the hours that they run.")
    roles = list[ReplicaRoleReport]()
    if question.replica_usage is not None:
        # Imported here, because most clusters have no leaders whose use is known.
        from trimtab.cli.recommend.replica_roles import report_roles

        includes = question.selection.includes_container
        containers = sorted(key for key, current in cluster.containers.items() if includes(key, current))
        roles += report_roles(question.replica_usage, containers, cluster, question.settings, question.now)
    all_notes += [role.text for role in roles]
    lines.sort(key=lambda line: _sort_key(line.row))
    rows = [line.row for line in lines]
    end_of_history = question.now or max((run.last for run in runs.values()), default=0)
    # The rule as it is written on the command line; a rule for each resource if they differ.
    cpu, memory = question.settings.rule_of("cpu"), question.settings.rule_of("memory")
    return RecommendReport(
        at=format_timestamp(end_of_history) if end_of_history else None,
        rule=str(cpu) if cpu == memory else f"cpu {cpu}, memory {memory}",
        by=question.by or None,
        containers=rows,
        saved=round(fsum(row.monthly_saved or 0.0 for row in rows), 2),
        changes=sum(bool(row.cpu.proposed or row.memory.proposed) for row in rows),
        unknown=sum(bool(row.cpu.missing and row.memory.missing) for row in rows),
        total=sum_lines(lines),
        totals=[group_total for by in question.total_by for group_total in group_totals(lines, by)],
        pods=sorted(pods, key=lambda pod: (-pod.monthly_saved, pod.namespace, pod.workload)),
        roles=roles,
        against=None,
        notes=all_notes,
    )


def _sort_key(row: ContainerReport) -> tuple[float, str, str, str, str]:
    return -abs(row.monthly_saved or 0.0), row.cluster or "", row.namespace, row.workload, row.container


def _report_history(
    history: BatchHistory, runs: RunningTime, cluster: CurrentRequests, question: Question, value: str | None
) -> tuple[list[TotalsLine], list[str], list[WholePodReport]]:
    """Returns a line for each container of one history, notes about the containers that are left out, and the requests
    of whole pods, if they are wanted."""
    has_snapshot = bool(cluster.containers)
    all_containers = sorted(set(history.list_containers()) | cluster.containers.keys())
    namespaces = {container.namespace for container in all_containers}
    check_namespaces(question.selection.namespaces, namespaces)
    kinds = {container.kind for container in all_containers}
    known_kinds = {kind.lower() for kind in (*kinds, *KINDS)}
    check_names("--kind", "the name of a kind", question.selection.kinds, known_kinds)
    selected_containers = [
        container
        for container in all_containers
        if question.selection.includes_container(container, cluster.containers.get(container))
    ]
    reported = [container for container in selected_containers if not has_snapshot or container in cluster.containers]
    lines, notes, pods = list[TotalsLine](), list[str](), list[WholePodReport]()
    # One workload at a time, because the windows of a large cluster do not fit into the memory together.
    for owner, containers in groupby(reported, key=lambda container: container.owner):
        decisions, pod_notes = fit_decisions(
            owner, {one: _decide_container(history, cluster, one, question) for one in containers}, cluster
        )
        notes += pod_notes
        lines += [_report_container(part, history, runs, cluster, one, value) for one, part in decisions.items()]
        if question.pod_history is not None:
            pod = report_pod(owner, decisions, question.pod_history, cluster, question.settings, question.now)
            pods += [] if pod is None else [pod]
    lines = [line for line in lines if SizingSeverity(line.row.severity).rank >= question.least_severity.rank]
    if all_containers and not selected_containers:
        selectable = f"the namespaces are {_format_names(namespaces)}, the kinds {_format_names(kinds)}"
        notes.append(f"--namespace, --kind and --selector select no container; {selectable}.")
    missing = [container for container in selected_containers if has_snapshot and container not in cluster.containers]
    if missing_count := len(missing):
        text = reasons.NO_SUCH_WORKLOAD.means
        notes.append(
            f"{missing_count} container{'s' if missing_count > 1 else ''} left out: {text[0].lower()}{text[1:]} "
            f"Usage is known of {_format_names(map(str, missing), MAX_CONTAINERS)}."
        )
    return lines, notes, pods


def _format_names(names: Iterable[str], limit: int = MAX_NAMES) -> str:
    sorted_names = sorted(names)
    return ", ".join(sorted_names[:limit]) + (
        f" and {len(sorted_names) - limit} more" if len(sorted_names) > limit else ""
    )


def _decide_container(
    history: BatchHistory, cluster: CurrentRequests, container: ContainerKey, question: Question
) -> ContainerDecision:
    """Returns the proposals for one container, by its own bounds."""
    current, parts = cluster.containers.get(container), dict[str, ResourceDecision]()
    for resource in RESOURCES:
        advice = history.vpa_recommendations.get((container, resource))
        resources = (
            CurrentResources(resource=resource, request=None, limit=None, advice=advice)
            if current is None
            else current.current_resources(resource, cluster.nodes, advice)
        )
        window = history.compressed_window(container, resource)
        statistics = _usage_statistics(history, container, resource, window, question.now, question.settings)
        proposal = propose_request(resources, statistics, question.settings)
        parts[resource] = ResourceDecision(
            resources=resources,
            statistics=statistics,
            proposal=proposal,
            window=window,
            now=resources.request or 0,
            after=proposal.request if isinstance(proposal, Proposal) else resources.request or 0,
        )
    return parts


def _report_container(
    decision: ContainerDecision,
    history: BatchHistory,
    running_time: RunningTime,
    cluster: CurrentRequests,
    container: ContainerKey,
    value: str | None,
) -> TotalsLine:
    current = cluster.containers.get(container)
    replicas = current.replicas if current else None
    hours = running_time.hours_per_month(container, history, replicas)
    pods = hours / HOURS_PER_MONTH if hours is not None else float(1 if replicas is None else replicas)
    parts = {
        resource: _report_resource(
            part, _severity(part.resources, part.proposal, max(pods, 1.0), is_current=current is not None)
        )
        for resource, part in decision.items()
    }
    now, proposed = ([getattr(decision[name], which) for name in RESOURCES] for which in ("now", "after"))
    paid, cost = (cluster.price.monthly_cost(*amounts) * pods for amounts in (now, proposed))
    is_priced = current is not None and not (container.kind in ENDING_KINDS and hours is None)
    row = ContainerReport(
        cluster=value,
        namespace=container.namespace,
        kind=container.kind,
        workload=container.workload,
        container=container.name,
        role=str(current.container_ref.role) if current else None,
        replicas=replicas,
        former_pods=running_time.former_pods(container, cluster.pods) if current else None,
        hours_per_month=hours,
        severity=most_severe(*(SizingSeverity(part.severity) for part in parts.values())),
        cpu=parts["cpu"],
        memory=parts["memory"],
        monthly_now=round(paid, 2) if is_priced else None,
        monthly_proposed=round(cost, 2),
        monthly_saved=round(paid - cost, 2) if is_priced else None,
    )
    labels = current.merged_labels if current else {}
    return TotalsLine(row=row, labels=labels, pods=pods, now=(now[0], now[1]), proposed=(proposed[0], proposed[1]))


def _severity(
    resources: CurrentResources, proposal: Proposal | Unchanged | NotYet, pods: float, *, is_current: bool
) -> SizingSeverity:
    if isinstance(proposal, NotYet) or not is_current:
        return SizingSeverity.UNKNOWN
    if any(reason.code == reasons.LIMIT_TOO_SMALL for reason in _reasons(proposal)):
        return SizingSeverity.HIGH
    if isinstance(proposal, Unchanged):
        return SizingSeverity.NONE
    killed = any(reason.code == OOM_KILLED for reason in proposal.reasons)
    return rate_severity(resources.resource, resources.request, proposal.request, pods, killed=killed)


def _usage_statistics(
    history: BatchHistory,
    container: ContainerKey,
    resource: str,
    window: DailyHistograms,
    now: Seconds | None,
    terms: SizingSettings,
) -> UsageStatistics | NotYet:
    if not window.last:
        return NotYet(
            reason=reasons.NO_USAGE(f"the source of usage has no {resource} usage of the container"),
            have="nothing",
            need=required_history(resource),
        )
    return summarize_usage(
        resource,
        window,
        now,
        kind=container.kind,
        oom=history.oom_records.get(container),
        pods=history.pod_averages.recent_uses((container, resource)),
        percentiles=terms.extra_percentiles(resource),
    )


def _report_resource(part: ResourceDecision, resource_severity: SizingSeverity) -> ResourceReport:
    resources, statistics, proposal_or_reason = part.resources, part.statistics, part.proposal
    percentiles = statistics if isinstance(statistics, UsageStatistics) else None
    proposal = proposal_or_reason if isinstance(proposal_or_reason, Proposal) else None

    def shown(name: str) -> str | None:
        return None if percentiles is None else format_rounded_up(resources.resource, getattr(percentiles, name))

    return ResourceReport(
        now=_format_amount(resources, resources.request),
        limit=_format_amount(resources, resources.limit),
        proposed=_format_amount(resources, proposal.request if proposal else None),
        proposed_limit=_format_amount(resources, proposal.limit if proposal else None),
        severity=resource_severity,
        p5=shown("p5"),
        p50=shown("p50"),
        p95=shown("p95"),
        p99=shown("p99"),
        max=shown("max"),
        days=percentiles.observed_days if percentiles else None,
        samples=part.window.merge_days().total_count,
        confidence=_confidence(statistics, proposal),
        reasons=[report_reason(reason) for reason in _reasons(proposal_or_reason)],
        missing=MissingReport(
            reason=report_reason(proposal_or_reason.reason), have=proposal_or_reason.have, need=proposal_or_reason.need
        )
        if isinstance(proposal_or_reason, NotYet)
        else None,
        curve=list(_report_days(part.window)),
    )


def _confidence(statistics: UsageStatistics | NotYet, proposal: Proposal | None) -> float | None:
    """Returns the confidence in the proposed request, or in the usage if there is no proposal; None with too little
    usage.

    Parts of the usage may be uncertain. A part that is below the proposed request does not lower the confidence.
    """
    if isinstance(statistics, NotYet):
        return None
    if proposal is None:
        return statistics.confidence
    return confidence_at(statistics.resource, percentiles_of(statistics), proposal.request, statistics.confidence)


def _reasons(proposal: Proposal | Unchanged | NotYet) -> tuple[Reason, ...]:
    return proposal.reasons if isinstance(proposal, Proposal) else (proposal.reason,)


def _report_days(window: DailyHistograms) -> Iterable[DayReport]:
    for day, counts in sorted(window.histograms_by_day().items()):
        if counts.total_count:
            p5, p50, p95 = counts.compute_percentiles(CURVE_SHARES)
            yield DayReport(day=format_timestamp(day * DAY)[:10], p5=p5, p50=p50, p95=p95, max=counts.top)


def _format_amount(resources: CurrentResources, number: int | None) -> str | None:
    return None if number is None else quantity.format_quantity(resources.resource, number)


def format_rounded_up(resource: str, value: float) -> str:
    """Returns the amount as a quantity, rounded up to a millicore or mebibyte."""
    if resource == "cpu":
        return quantity.format_cpu(ceil(value * 1000 - 1e-6))
    return quantity.format_memory(ceil(value / (1 << 20) - 1e-6) << 20)
