"""Requests cpu and memory once for the pod, from the usage of the sum of its containers (KEP-2837).

The sum of the containers peaks less than their peaks together. The request replaces those of the containers: a
container keeps its own only where it has a limit, because the API server would set a missing request to the limit.

An API server that does not know the field drops it, and the pod would have no request at all. So `admission` takes the
request back if a node that may take the pod has a kubelet older than 1.34 or of an unknown version: no kubelet is newer
than its API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import LOWERING_CONFIDENCE
from trimtab.cluster.resource_quotas import quota_with_qos_scope
from trimtab.cluster.resources import (
    POD_LEVEL,
    QoS,
    Role,
    limits_of,
    qos_class,
    requests_of,
    requests_without_overhead,
)
from trimtab.cluster.whole_pods import has_huge_pages, list_lasting_names, name_whole_pod
from trimtab.policy import autoscalers, reasons
from trimtab.policy.actions.action import (
    NOTHING,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_missing_objects,
    not_always,
    not_in_cel,
)
from trimtab.policy.actions.request_fields import ResourceRequestRule
from trimtab.policy.actions.request_origin import RequestOrigin, find_recorded_origin
from trimtab.policy.cel import NotExpressible
from trimtab.policy.cel_patches import PatchPart
from trimtab.policy.field_types import Quantity, Required, UsageRule, policy_type
from trimtab.policy.odd_amounts import find_odd_amounts
from trimtab.policy.pod_changes import FieldChange, PodChanges, WholePodRequest
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext
from trimtab.policy.pod_level import reasons as pod_level_reasons
from trimtab.policy.pod_level.obstacles import (
    PodLevelSubject,
    describe_pod_request,
    explain_separate_requests,
    explain_useless_request,
)
from trimtab.policy.write_resources import find_newly_unmet_quota

_NEEDED_KINDS = frozenset({"LimitRange", "ResourceQuota", "HorizontalPodAutoscaler", "VerticalPodAutoscaler", "Node"})
_STEPS = {"cpu": 1, "memory": 1 << 20}
"""Resource → the step to which a request is rounded up, in millicores or bytes."""


@policy_type
class PodLevelRule:
    """How the request of one resource is computed for the pod as a whole."""

    rule: UsageRule = "adaptive"
    """Which number of the usage is taken, as in `requests`: `adaptive`, `p95` (or p5, p50, p90, p99, `max`), each with
    headroom if you like (`p99 +15%`). It is applied to the average container of the pod, and multiplied by the number
    of containers."""
    min: Quantity | None = None
    """The smallest request of the pod that the policy sets."""
    max: Quantity | None = None
    """The largest request of the pod that the policy sets."""

    def __post_init__(self) -> None:
        if self.min and self.max and quantity.compare_quantities(self.min, self.max) > 0:
            raise ValueError(f"a min ({self.min}) not above the max ({self.max})")


@policy_type
class PodLevelRequests:
    """One request for all containers of a pod together (`spec.resources`), from the usage of their sum. It replaces the
    requests of the containers, also those that the author wrote, if it is smaller than these together. A container with
    a limit keeps its request. Every node that may take the pod must have a kubelet of 1.34 or newer."""

    cpu: PodLevelRule | None = None
    memory: PodLevelRule | None = None
    required: Required = False

    def __post_init__(self) -> None:
        if self.cpu is None and self.memory is None:
            raise ValueError("`cpu`, `memory` or both")


def _rules_of(settings: PodLevelRequests) -> Iterator[tuple[str, PodLevelRule]]:
    for resource, rule in zip(POD_LEVEL, (settings.cpu, settings.memory), strict=True):
        if rule is not None:
            yield resource, rule


def propose_changes(settings: PodLevelRequests, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Notes that the policy requests for the pod as a whole. The first policy that does so decides."""
    for resource, rule in _rules_of(settings):
        changes.whole_pod.setdefault(resource, WholePodRequest(changes.policy, rule, places))


def finish_pod_level(changes: PodChanges) -> None:
    """Writes the requests of the pod as a whole, after all requests and limits of containers have been decided."""
    for resource, wanted in changes.whole_pod.items():
        field = f"resources.requests.{resource}"
        if field in changes.applied_before:
            _raise_for_later_containers(changes, resource, field, wanted)
            continue
        refusal = _write_request(changes, resource, field, wanted)
        if refusal is not None:
            changes.leave_unchanged(field, refusal, policy=wanted.policy)


def _raise_for_later_containers(changes: PodChanges, resource: str, field: str, wanted: WholePodRequest) -> None:
    """Raises the request that an earlier call of the webhook has set, if the API server would refuse the pod with it
    because another webhook has added containers since. Otherwise the request stays, and what the earlier call removed
    stays away, because the pod has pod-level resources."""
    own = requests_of(changes.spec.resources).get(resource)
    containers = requests_without_overhead(change(changes.spec, resources=UNSET), resource).get(resource, 0)
    if own is None:
        return
    present, changes.policy = quantity.scheduler_value(resource, own), wanted.policy
    if changes.decide_first(field, str(own)) and containers > present:
        text = quantity.format_quantity(resource, present + containers)
        sentence = (
            f"with containers added later, the containers request {quantity.format_quantity(resource, containers)}"
        )
        changes.spec = _with_pod_request(changes.spec, [], resource, text)
        changes.record_change(field, str(own), text, pod_level_reasons.FROM_POD_SUM(sentence))
    changes.policy = ""


def _write_request(changes: PodChanges, resource: str, field: str, wanted: WholePodRequest) -> Reason | None:
    """Writes one request of the pod as a whole. Returns why it is not written, or None if it is."""
    context = changes.pod_context
    lasting = tuple(place for place in context.container_refs if place.role is not Role.INIT)
    if not context.facts.listed_kinds >= _NEEDED_KINDS:
        return reasons.FACTS_MISSING("not all objects that decide about requests of whole pods have been read yet")
    if not set(lasting) <= set(wanted.places):
        return pod_level_reasons.POD_LEVEL_OTHER_CONTAINERS("the policy selects only some of the pod's containers")
    present = [_request_of(_container_at(changes.spec, place), resource) for place in lasting]
    known = sum(amount for amount in present if amount is not None)
    subject = _read_subject(context, resource, lasting, None if None in present else known)
    refusal = explain_separate_requests(subject)
    if refusal is not None:
        return refusal
    name = name_whole_pod([place.container.name for place in lasting])
    origin = find_recorded_origin(_rule_like(wanted.rule.rule), context, name, resource) if name else None
    if not isinstance(origin, RequestOrigin):
        names = ", ".join(place.container.name for place in lasting[:3])
        sentence = f"the usage of the containers {names}{' …' if len(lasting) > 3 else ''} together is not known"
        ended = isinstance(origin, NotYet) and origin.reason.code is reasons.RECOMMENDATION_ENDED
        return origin.reason if isinstance(origin, NotYet) and ended else pod_level_reasons.POD_LEVEL_NO_USAGE(sentence)
    amount = _amount_of_pod(wanted.rule, resource, len(lasting) * origin.amount)
    refusal = explain_useless_request(subject, amount) or _find_doubt(origin, lowers=amount < known)
    if refusal is not None:
        return refusal
    removed = [
        place
        for place, request in zip(lasting, present, strict=True)
        if request is not None and resource not in limits_of(_container_at(changes.spec, place).resources)
    ]
    if any(
        resource in requests_of(place.container.resources)
        and changes.must_stay_applied(f"{place.name}.requests.{resource}", wanted.policy)
        for place in removed
    ):
        return reasons.APPLIED("the pod itself is applied, with the requests of its containers")
    text = quantity.format_quantity(resource, amount)
    spec = _with_pod_request(changes.spec, removed, resource, text)
    refusal = _find_larger_rest(spec, resource, amount) or _find_quota(changes, spec)
    if refusal is not None:
        return refusal
    changes.policy = wanted.policy
    if changes.decide_first(field, text):
        changes.spec = spec
        _record(changes, subject, amount, removed, field)
    changes.policy = ""
    return None


def _read_subject(
    context: PodContext, resource: str, lasting: tuple[ContainerRef, ...], separate: int | None
) -> PodLevelSubject:
    """Returns what is known of one resource of the pod. `lasting` are the containers that run as long as it does."""
    own, vpa = context.pod.spec.resources, autoscalers.find_managing_vpa(context)
    names = [place.container.name for place in lasting]
    hpa = autoscalers.counts_utilization_of(context, "", resource)
    bounds = context.facts.bounds.get(context.namespace, {}).get(resource)
    default = None if bounds is None else bounds.default_request
    return PodLevelSubject(
        resource=resource,
        containers=len(lasting),
        separate=separate,
        has_pod_level=any(name in side(own) for side in (requests_of, limits_of) for name in POD_LEVEL),
        is_guaranteed=context.qos is QoS.GUARANTEED,
        is_windows=context.is_windows,
        has_huge_pages=has_huge_pages(context.pod.spec),
        scheduler=context.pod.spec.scheduler_name,
        vpa="" if vpa is None else vpa.metadata.name,
        hpa=hpa,
        container_hpa=next(
            (n for one in names if (n := autoscalers.counts_utilization_of(context, one, resource))), ""
        ),
        default_by="" if default is None else default.by,
        default_request=0 if default is None else quantity.scheduler_value(resource, default.value),
    )


def _container_at(spec: PodSpec, place: ContainerRef) -> Container:
    return (spec.containers if place.part == "containers" else spec.init_containers)[place.index]


def _request_of(container: Container, resource: str) -> int | None:
    """Returns what the container requests, in millicores or bytes; None if it requests nothing."""
    written = requests_of(container.resources).get(resource)
    return None if written is None else quantity.scheduler_value(resource, written)


# The cache of numbers is by rule object, so equal texts share one.
@lru_cache(maxsize=64)
def _rule_like(text: str) -> ResourceRequestRule:
    return ResourceRequestRule(rule=text, when="always")


def _amount_of_pod(rule: PodLevelRule, resource: str, amount: int) -> int:
    """Returns an amount in millicores or bytes, rounded up and within the bounds of the rule."""
    step = _STEPS[resource]
    rounded = max(-(-amount // step) * step, quantity.scheduler_value(resource, rule.min) if rule.min else step)
    return min(rounded, quantity.scheduler_value(resource, rule.max)) if rule.max else rounded


def _find_doubt(origin: RequestOrigin, *, lowers: bool) -> Reason | None:
    """Returns why the usage is not certain enough to lower a request, or None if it is."""
    if not lowers:
        return None
    if origin.is_young:
        return reasons.YOUNG_HISTORY("less than a day of the usage of the sum is known")
    if origin.confidence is not None and origin.confidence < LOWERING_CONFIDENCE:
        return reasons.LOW_CONFIDENCE(f"{origin.reason}; to lower a request, a confidence of 0.5 is needed")
    return None


def _with_pod_request(spec: PodSpec, removed: list[ContainerRef], resource: str, text: str) -> PodSpec:
    """Returns the spec with the request of the pod as a whole, and without those of these containers."""
    parts = {"containers": list(spec.containers), "initContainers": list(spec.init_containers)}
    for place in removed:
        container = parts[place.part][place.index]
        resources = value_or(container.resources, Resources())
        requests = {name: amount for name, amount in requests_of(resources).items() if name != resource}
        parts[place.part][place.index] = change(container, resources=change(resources, requests=requests or UNSET))
    own = value_or(spec.resources, Resources())
    return change(
        spec,
        containers=tuple(parts["containers"]),
        init_containers=tuple(parts["initContainers"]),
        resources=change(own, requests={**requests_of(own), resource: text}),
    )


def _find_larger_rest(spec: PodSpec, resource: str, amount: int) -> Reason | None:
    """Returns why the API server would refuse this request of the pod, in millicores or bytes: what containers with a
    limit and init containers still request is more. None if it is not. It is asked for each resource, so that limits of
    memory do not keep cpu from being requested for the pod."""
    rest = requests_without_overhead(change(spec, resources=UNSET), resource).get(resource, 0)
    if rest <= amount:
        return None
    texts = [quantity.format_quantity(resource, one) for one in (amount, rest)]
    return pod_level_reasons.POD_LEVEL_REFUSED(
        f"the pod would request {texts[0]}, and the containers that keep a request need {texts[1]}"
    )


def _find_quota(changes: PodChanges, spec: PodSpec) -> Reason | None:
    """Returns which quota would refuse or count the pod with this spec, and not as it is; None if none would."""
    context = changes.pod_context
    quotas = context.facts.quotas.get(context.namespace, ())
    try:
        name = find_newly_unmet_quota(changes, spec)
        by_class = quota_with_qos_scope(quotas) if qos_class(changes.spec) is not qos_class(spec) else None
    except NotAQuantity as error:
        return reasons.NOT_A_QUANTITY(str(error))
    if name is not None:
        return reasons.QUOTA_COUNTS_LIMIT(f"ResourceQuota {name} would refuse the pod")
    return (
        None if by_class is None else reasons.QUOTA_COUNTS_QOS(f"ResourceQuota {by_class} counts pods by their class")
    )


def _record(
    changes: PodChanges, subject: PodLevelSubject, amount: int, removed: list[ContainerRef], field: str
) -> None:
    """Records the request of the pod, and the requests of containers that it replaces."""
    reason, resource = describe_pod_request(subject, amount), subject.resource
    replaced = {f"{place.name}.requests.{resource}": place for place in removed}
    # What a policy proposed for a container is not written after all.
    changes.changes[:] = [one for one in changes.changes if one.field not in replaced]
    for name, place in replaced.items():
        written = requests_of(place.container.resources).get(resource)
        if written is not None:
            changes.record_change(name, str(written), None, reason)
    text = quantity.format_quantity(resource, amount)
    changes.changes.append(FieldChange(field=field, before=None, after=text, policy=changes.policy, reason=reason))


def find_unmet_field(settings: PodLevelRequests, result: PodBeforeAndAfter) -> str | None:
    """Returns the first request that the pod as a whole does not have, or None if it has all. The request of a single
    container is that of the pod."""
    is_single = len(list_lasting_names(result.spec)) == 1
    requests = requests_without_overhead(result.spec) if is_single else requests_of(result.spec.resources)
    return next((f"resources.requests.{name}" for name, _ in _rules_of(settings) if name not in requests), None)


def _describe(settings: PodLevelRequests) -> Iterator[str]:
    for resource, rule in _rules_of(settings):
        bounds = [f"{word} {value}" for word, value in (("at least", rule.min), ("at most", rule.max)) if value]
        phrase = f"requests {resource} once for the pod: from the usage of the sum of its containers"
        yield ", ".join([phrase, *bounds, "in place of the requests of the containers"])


def _list_values(settings: PodLevelRequests) -> FieldValues:
    for resource, rule in _rules_of(settings):
        parts = [f"{one.name}: {value}" for one in fields(rule) if (value := getattr(rule, one.name)) is not None]
        yield f"resources.requests.{resource}", "{" + ", ".join(parts) + "}"


def _list_match_fields(_settings: PodLevelRequests) -> tuple[str, ...]:
    return ("requests",)


def _find_odd(settings: PodLevelRequests, _terms: PolicyTerms) -> Iterator[Reason]:
    for resource, rule in _rules_of(settings):
        amounts = [(word, getattr(rule, word)) for word in ("min", "max")]
        yield from find_odd_amounts(f"podLevelRequests.{resource}", resource, amounts)


def _compile(_settings: PodLevelRequests, _terms: PolicyTerms) -> Iterator[PatchPart]:
    raise NotExpressible("spec.actions.podLevelRequests: CEL knows neither the kubelets nor the autoscalers of the pod")


ACTION = Action(
    name="pod_level_requests",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=not_always,
    list_match_fields=_list_match_fields,
    find_odd=_find_odd,
    find_missing=no_missing_objects,
    compile=_compile,
    require=not_in_cel("pod_level_requests"),
    order_matters=True,
    affects=NOTHING,
    list_differences=no_differences,
)
