"""Computes what policies with `running: resize` want the running pods of an owner to request.

The pod that the owner would create now goes through admission (`preview_next_pod`). A request counts only if a policy
with `running: resize` in mode `apply` decided it from a recommendation. Running pods do not follow a request that comes
only from the policy's `otherwise`. They also do not follow a recommendation that is no longer valid, is less than a day
old, or has too little confidence, nor any recommendation if another autoscaler depends on the request.
"""

from collections.abc import Iterator
from dataclasses import replace

from trimtab.admission import reasons
from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.preview import preview_next_pod
from trimtab.cluster import quantity
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet, Reason, Unreadable
from trimtab.cluster.recommendation import LOWERING_CONFIDENCE, ContainerUsage
from trimtab.cluster.resizable_pod import RESIZED_RESOURCES
from trimtab.cluster.resources import Role, requests_of
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.wanted_requests import NOTHING_WANTED, ContainerResource, WantedRequest, WantedRequests
from trimtab.policy import autoscalers
from trimtab.policy.actions.request_fields import ResourceRequestRule
from trimtab.policy.actions.request_origin import RequestOrigin, find_origin
from trimtab.policy.actions.requests import resize_rule
from trimtab.policy.actions.requests_of_policies import policies_that_resize
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.podpolicy import PodPolicy
from trimtab.policy.reasons import FROM_DEFAULT
from trimtab.policy.vpa_webhook import EVERYWHERE


def requests_of_running_pods(
    template: PodTemplateSpec, owner: OwnerKey, context: AdmissionContext, now: Seconds | None = None
) -> WantedRequests | Unreadable:
    """Returns what policies want for the running pods of this owner; Unreadable, with the reason, if the owner's next
    pod would not be admitted. `now` is None if the time is unknown; every recommendation then counts as valid."""
    resizing = {policy.name: policy for policy in policies_that_resize(context.policies)}
    if not resizing:
        return NOTHING_WANTED
    previewed = preview_next_pod(template, owner, context)
    if isinstance(previewed, Unreadable):
        return previewed
    changes = {change.field: change for change in previewed.all_changes}
    # Whether the VPA's webhook is called now does not matter: a VPA changes pods that run.
    facts = replace(context.facts, vpa_reach=EVERYWHERE)
    # A quota still counts the pods that run, so a rejection by the simulated server is no obstacle here.
    before, subject = (
        PodContext(pod=pod, namespace=owner.namespace, facts=facts, settings=context.settings)
        for pod in (previewed.sent, previewed.final_pod)
    )
    requests: dict[ContainerResource, WantedRequest] = {}
    refusals: dict[ContainerResource, Reason] = {}
    for place, resource, change, rule in _decided_requests(subject, changes, resizing):
        wanted = _wanted_request(before, subject, place, resource, change, rule, now)
        if isinstance(wanted, WantedRequest):
            requests[place.container.name, resource] = wanted
        else:
            refusals[place.container.name, resource] = wanted
    return WantedRequests(requests=requests, refusals=refusals)


def _decided_requests(
    pod_context: PodContext, changes: dict[str, FieldChange], resizing: dict[str, PodPolicy]
) -> Iterator[tuple[ContainerRef, str, FieldChange, ResourceRequestRule]]:
    """Yields each request that a policy with `running: resize` has decided, with its rule."""
    for place in pod_context.container_refs:
        if place.role is Role.INIT:
            continue
        for resource in RESIZED_RESOURCES:
            change = changes.get(f"{place.name}.requests.{resource}")
            policy = resizing.get(change.policy) if change is not None else None
            rule = None if policy is None else resize_rule(policy, place, resource)
            if change is not None and rule is not None:
                yield place, resource, change, rule


def _wanted_request(
    before: PodContext,
    pod_context: PodContext,
    container: ContainerRef,
    resource: str,
    change: FieldChange,
    rule: ResourceRequestRule,
    now: Seconds | None,
) -> WantedRequest | Reason:
    refusal = _autoscaler_refusal(pod_context, container, resource) or _usage_refusal(
        before, container, resource, rule, now
    )
    if refusal is not None:
        return refusal
    written = requests_of(container.container.resources).get(resource)
    try:
        amount = quantity.scheduler_value(resource, written) if written is not None else 0
        floor = quantity.scheduler_value(resource, rule.min) if rule.min else 0
    except NotAQuantity as error:
        return reasons.RUNNING_NOT_MEASURED(str(error))
    if amount <= 0:
        return reasons.RUNNING_NOT_MEASURED(
            f"by the policies, container {container.name} would have no {resource} request"
        )
    return WantedRequest(
        amount=amount,
        policy=change.policy,
        reason=change.reason,
        floor=floor,
        used=_recorded_peak(before, container, resource),
    )


def _autoscaler_refusal(pod_context: PodContext, container: ContainerRef, resource: str) -> Reason | None:
    name, facts = container.container.name, pod_context.facts
    for kind in ("VerticalPodAutoscaler", "HorizontalPodAutoscaler"):
        if kind not in facts.listed_kinds:
            return reasons.RUNNING_AUTOSCALERS_UNSEEN(f"Trimtab has not read the objects of kind {kind} yet")
    constraints = pod_context.compute_once(autoscalers.index_vpa_constraints).constraints_for(container, resource)
    if constraints is not None:
        return reasons.RUNNING_VPA(f"VPA {constraints.name} manages the {resource} of container {name}")
    hpa = autoscalers.counts_utilization_of(pod_context, name, resource)
    if hpa:
        return reasons.RUNNING_HPA(f"HPA {hpa} scales by the {resource} utilization of container {name}")
    return None


def _usage_refusal(
    before: PodContext, container: ContainerRef, resource: str, rule: ResourceRequestRule, now: Seconds | None
) -> Reason | None:
    """Returns why the request does not come from a recommendation that is good enough for lowering requests of running
    pods; None if it does."""
    name = container.container.name
    usage = _find_usage(before, name, resource)
    if isinstance(usage, NotYet):
        return reasons.RUNNING_NOT_MEASURED(usage.reason.sentence)
    end = usage.validity_end(rule.max_age)
    if now is not None and end is not None and now > end:
        return reasons.RUNNING_NOT_MEASURED(
            f"the recommendation for container {name} has ended, and there is no newer one"
        )
    origin = find_origin(rule, before, container, resource, None, None)
    if not isinstance(origin, RequestOrigin) or not origin.is_recommended:
        return reasons.RUNNING_NOT_MEASURED(
            f"the {resource} request of container {name} does not come from a recommendation"
        )
    if origin.is_young:
        return reasons.RUNNING_NOT_MEASURED(f"less than a day of the usage of container {name} is known")
    needed = LOWERING_CONFIDENCE if rule.min_confidence is None else rule.min_confidence
    if origin.confidence is not None and origin.confidence < needed:
        sentence = f"{origin.reason}; a confidence of {needed:g} is needed to change a running pod"
        return reasons.RUNNING_NOT_MEASURED(sentence)
    return None


def _find_usage(pod_context: PodContext, container: str, resource: str) -> ContainerUsage | NotYet:
    missing: NotYet | None = None
    for _, usage in pod_context.usage_of(container):
        if isinstance(usage, NotYet):
            missing = missing or usage
        elif usage.percentiles_of(resource) is not None:
            return usage
    if missing is not None:
        return missing
    reason = FROM_DEFAULT(f"no usage of container {container} is known")
    return NotYet(reason=reason, have="no history", need="a day of usage")


def _recorded_peak(pod_context: PodContext, container: ContainerRef, resource: str) -> int:
    """Returns the largest usage of the workload that the recommendation contains; 0 if it contains none."""
    usage = _find_usage(pod_context, container.container.name, resource)
    percentiles = None if isinstance(usage, NotYet) else usage.percentiles_of(resource)
    if percentiles is None:
        return 0
    amounts = (percentiles.p95, percentiles.p99, percentiles.max, percentiles.pod_use, percentiles.floor)
    return max(quantity.scheduler_value(resource, amount) for amount in amounts if amount is not None)
