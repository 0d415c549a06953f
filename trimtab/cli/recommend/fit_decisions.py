"""Brings the proposals for the containers of one workload within what bounds its pod as a whole."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trimtab.admission.fitted_requests import (
    Changes,
    FittedRequests,
    ProposedAmounts,
    changed_pod,
    fit_requests,
    share_pod_level,
)
from trimtab.admission.resource_refusal import complete_resources
from trimtab.cluster import quantity
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resources import Role
from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.inputs.current_requests import CurrentRequests
from trimtab.sizing.request import CurrentResources, Proposal, Unchanged
from trimtab.sizing.statistics import UsageStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDecision:
    """What is decided for one resource of one container, and from what."""

    resources: CurrentResources
    statistics: UsageStatistics | NotYet
    proposal: Proposal | Unchanged | NotYet
    window: DailyHistograms
    now: int
    """What the container adds to the present request of its pod, in the scheduler's unit. In a pod with pod-level
    resources, this is its share of them."""
    after: int
    """What the container adds to the request of its pod after the change."""


ContainerDecision = Mapping[str, ResourceDecision]
"""Resource → decision."""
Decisions = Mapping[ContainerKey, ContainerDecision]


def fit_changes(
    owner: OwnerKey, containers: Iterable[ContainerKey], current_requests: CurrentRequests, proposed: Changes
) -> FittedRequests:
    """Returns the changes that the API server accepts for the pods of the workload; all of them if the snapshot does
    not have the workload."""
    keys = [key for key in containers if key in current_requests.containers]
    pod = current_requests.find_pod(owner, keys)
    if pod is None:
        return FittedRequests(changes=proposed)
    return fit_requests(pod, current_requests.containers[keys[0]].pod_context.facts, owner.namespace, proposed)


def fit_decisions(
    owner: OwnerKey, decisions: Decisions, current_requests: CurrentRequests
) -> tuple[Decisions, list[str]]:
    """Returns the decisions for all containers of one workload as the API server accepts them together, and a note for
    each pod-level request that rises."""
    proposed = {
        (key.name, resource): ProposedAmounts(part.proposal.request, part.proposal.limit)
        for key, decision in decisions.items()
        for resource, part in decision.items()
        if isinstance(part.proposal, Proposal)
    }
    fitted = fit_changes(owner, decisions, current_requests, proposed)
    fitted_decisions = {
        key: {resource: _fitted_part(part, fitted, (key.name, resource)) for resource, part in decision.items()}
        for key, decision in decisions.items()
    }
    notes = [
        f"The pod-level {resource} request of {owner.kind} {owner.namespace}/{owner.name} becomes "
        f"{quantity.format_quantity(resource, amount)}, the sum of its containers."
        for resource, amount in sorted(fitted.pod_requests.items())
    ]
    return _with_pod_level(owner, fitted_decisions, current_requests, fitted), notes


def _fitted_part(part: ResourceDecision, fitted: FittedRequests, key: tuple[str, str]) -> ResourceDecision:
    proposal = part.proposal
    if not isinstance(proposal, Proposal):
        return part
    reason, accepted = fitted.reasons.get(key), fitted.changes.get(key)
    if accepted is None:
        assert reason is not None
        return replace(part, proposal=Unchanged(reason), after=part.now)
    reasons: tuple[Reason, ...] = proposal.reasons if reason is None else (*proposal.reasons, reason)
    accepted_proposal = Proposal(request=accepted.request, limit=accepted.limit, reasons=reasons)
    return replace(part, proposal=accepted_proposal, after=accepted.request)


def _with_pod_level(
    owner: OwnerKey, decisions: Decisions, current_requests: CurrentRequests, fitted: FittedRequests
) -> Decisions:
    """Returns the decisions with the shares of the pod-level resources: what a pod requests is its pod-level request,
    whatever its containers request."""
    pod = current_requests.find_pod(owner, decisions)
    if pod is None or not pod.spec.resources:
        return decisions
    facts = next(
        current_requests.containers[key].pod_context.facts for key in decisions if key in current_requests.containers
    )
    try:
        specs = [complete_resources(one, facts, owner.namespace).spec for one in (pod, changed_pod(pod, fitted))]
        shares = {
            resource: [
                share_pod_level(
                    spec,
                    resource,
                    {
                        key.name: getattr(decision[resource], which)
                        for key, decision in decisions.items()
                        if current_requests.containers[key].container_ref.role is not Role.INIT
                    },
                )
                for spec, which in zip(specs, ("now", "after"), strict=True)
            ]
            for resource in RESOURCES
        }
    except NotAQuantity:
        return decisions
    return {
        key: {
            resource: replace(
                part, now=shares[resource][0].get(key.name, 0), after=shares[resource][1].get(key.name, 0)
            )
            for resource, part in decision.items()
        }
        for key, decision in decisions.items()
    }
