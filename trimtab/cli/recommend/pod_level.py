"""Requests of whole pods in the report of `trimtab recommend` (`--pod-level`)."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.admission.whole_pod import refuse_whole_request
from trimtab.cli.output import ReasonReport, ReportPart, report_reason
from trimtab.cli.recommend.fit_decisions import Decisions
from trimtab.cluster import quantity
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resources import Role
from trimtab.cluster.timestamps import Seconds
from trimtab.histogram.batch_history import RESOURCES, BatchHistory
from trimtab.inputs.current_requests import CurrentRequests
from trimtab.inputs.pod_level_subjects import read_pod_level_subject
from trimtab.inputs.pod_sums import whole_pod_key
from trimtab.sizing.pod_level import PodLevelProposal, propose_pod_level
from trimtab.sizing.reasons import NO_USAGE
from trimtab.sizing.request import SizingSettings
from trimtab.sizing.statistics import UsageStatistics, required_history, summarize_usage


class WholePodResourceReport(ReportPart, frozen=True, kw_only=True):
    """One resource of a pod as a whole."""

    separate: str
    """What the containers of the pod request together, by the rows of this report."""
    proposed: str | None
    """The request of the pod as a whole; null if its containers should request for themselves."""
    reason: ReasonReport
    """Where the request of the whole pod comes from, or why there is none."""


class WholePodReport(ReportPart, frozen=True, kw_only=True):
    """The pods of one workload with several containers."""

    namespace: str
    """The namespace of the workload."""
    kind: str
    """The kind of the workload."""
    workload: str
    """The name of the workload."""
    containers: int
    """The number of containers that run as long as the pod does."""
    replicas: int
    """The number of replicas."""
    cpu: WholePodResourceReport
    """The cpu of the pod as a whole."""
    memory: WholePodResourceReport
    """The memory of the pod as a whole."""
    monthly_saved: float
    """The dollars per month that requests of whole pods save beyond what this report proposes for the containers."""


def report_pod(
    owner: OwnerKey,
    decisions: Decisions,
    history: BatchHistory,
    cluster: CurrentRequests,
    settings: SizingSettings,
    now: Seconds | None,
) -> WholePodReport | None:
    """Returns what one request for all containers of a workload's pods would be; None if the snapshot has fewer than
    two containers of it that run as long as the pod does."""
    lasting = {
        key: decision
        for key, decision in decisions.items()
        if key in cluster.containers and cluster.containers[key].container_ref.role is not Role.INIT
    }
    if len(lasting) < 2:
        return None
    parts: dict[str, WholePodResourceReport] = {}
    saved: dict[str, int] = {}
    for resource in RESOURCES:
        separate = sum(decision[resource].after for decision in lasting.values())
        result = _propose(owner, resource, separate, decisions, history, cluster, settings, now)
        proposed = result.request if isinstance(result, PodLevelProposal) else None
        saved[resource] = 0 if proposed is None else separate - proposed
        parts[resource] = WholePodResourceReport(
            separate=quantity.format_quantity(resource, separate),
            proposed=None if proposed is None else quantity.format_quantity(resource, proposed),
            reason=report_reason(result if isinstance(result, Reason) else result.reason),
        )
    replicas = next(cluster.containers[key].replicas for key in lasting)
    return WholePodReport(
        namespace=owner.namespace,
        kind=owner.kind,
        workload=owner.name,
        containers=len(lasting),
        replicas=replicas,
        cpu=parts["cpu"],
        memory=parts["memory"],
        monthly_saved=round(_cost(cluster, saved) * replicas, 2),
    )


def _propose(
    owner: OwnerKey,
    resource: str,
    separate: int,
    decisions: Decisions,
    history: BatchHistory,
    cluster: CurrentRequests,
    settings: SizingSettings,
    now: Seconds | None,
) -> PodLevelProposal | Reason | NotYet:
    subject = read_pod_level_subject(cluster, decisions, resource, separate)
    assert subject is not None, "the caller has seen two containers of it"
    key = whole_pod_key(owner)
    window = history.compressed_window(key, resource)
    if window.last:
        statistics: UsageStatistics | NotYet = summarize_usage(
            resource,
            window,
            now,
            kind=owner.kind,
            pods=history.pod_averages.recent_uses((key, resource)),
            percentiles=settings.extra_percentiles(resource),
        )
    else:
        missing = NO_USAGE(f"the source has no time at which the {resource} usage of every container is known")
        statistics = NotYet(reason=missing, have="nothing", need=required_history(resource))
    of_workload = [cluster.containers[key] for key in decisions if key in cluster.containers]
    lasting = next(one for one in of_workload if one.container_ref.role is not Role.INIT)
    kubelets = cluster.nodes.kubelet_versions(lasting.pod_context.pod)
    result = propose_pod_level(subject, kubelets, statistics, settings.rule_of(resource))
    if not isinstance(result, PodLevelProposal):
        return result
    refusal = refuse_whole_request(
        cluster.find_pod(owner, decisions) or of_workload[0].pod_context.pod,
        of_workload[0].pod_context.facts,
        owner.namespace,
        resource=resource,
        request=result.request,
        containers={one.container_ref.container.name for one in of_workload if one.container_ref.role is not Role.INIT},
    )
    return refusal or result


def _cost(cluster: CurrentRequests, saved: Mapping[str, int]) -> float:
    return cluster.price.monthly_cost(saved["cpu"], saved["memory"])
