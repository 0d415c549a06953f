"""Computes what an owner's next pod would be, and request, if the pod were created now.

The pod is built as its controller would send it. It then goes through the API server's two passes with the present
policies and facts, and with the recommendation of a VerticalPodAutoscaler (VPA).
"""

from dataclasses import dataclass, replace
from decimal import Decimal

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resourcequota import is_exceeded_quota
from trimtab.admission.preview import describe_next_pod, preview_next_pod
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Container, Pod, Resources
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodReader, SchedulingRequirements
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ContainerUsage
from trimtab.cluster.resources import Amounts, GrowingAmounts, pod_requests, requests_of
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.policy import autoscalers
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.vpa_webhook import EVERYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPod:
    """The pod that an owner would create now, as the API server would store it."""

    requests: Amounts
    """What the scheduler would count for it."""
    stored: Pod
    requirements: SchedulingRequirements
    """Where it may run; its requests are those of `stored`, without the room of a VPA."""


def admit_next_pod(
    template: PodTemplateSpec, owner: OwnerKey, context: AdmissionContext, now: Seconds | None = None
) -> NextPod | Unreadable:
    """Returns the owner's next pod; Unreadable, with the reason, if there would be no such pod.

    A template that is too large for the webhook to decide is Unreadable. For each container and resource, the largest
    of three amounts is requested:

    - the template's request;
    - the request that the policies set;
    - the recommendation of a VPA that acts (in any mode but Off), because the VPA's webhook sets its request after
      Trimtab, whenever it is called.

    If a VPA acts but has no recommendation yet, the result is Unreadable as long as the VPA is younger than
    `MAX_SILENCE_SECONDS`; after that, the other two amounts are used. If `now` is None, the age is unknown, and the VPA
    counts as young.

    For a VPA that resizes running pods in place, the amount includes the room that it may need for that
    (`VpaConstraints.growth`), because the kubelet defers a resize without room. The result is then a GrowingAmounts:
    running pods may grow to these amounts. For a resource that no container of the pod requests, the known usage of the
    containers is used (`with_known_usage`).
    """
    where, namespace, facts = describe_next_pod(owner), owner.namespace, context.facts
    previewed = preview_next_pod(template, owner, context)
    if isinstance(previewed, Unreadable):
        return previewed
    if isinstance(previewed.result, PodRejected) and _prevents_successor(previewed.result):
        return Unreadable(where, f"the API server would refuse the pod: {previewed.result.message}")
    admitted = previewed.final_pod
    sized = with_vpa_targets(admitted, namespace, facts, now)
    if isinstance(sized, str):
        return Unreadable(where, sized)
    try:
        amounts = with_known_usage(pod_requests(sized.spec), sized, namespace, facts)
    except NotAQuantity as error:
        return Unreadable(where, str(error))
    if _is_resized_in_place(admitted, namespace, facts):
        amounts = GrowingAmounts(amounts)
    return NextPod(requests=amounts, stored=admitted, requirements=PodReader().read_pod(admitted).requirements)


def _prevents_successor(rejected: PodRejected) -> bool:
    """Returns whether this rejection means that an evicted pod would not be created again.

    A full quota does not mean that: it still counts the pod that is to be replaced (see `find_refusing_quota`). And of
    what validation finds, only amounts count, because a snapshot need not contain the rest of a template.
    """
    if is_exceeded_quota(rejected):
        return False
    return rejected.code == 403 or ".resources" in rejected.message


MAX_SILENCE_SECONDS = 24 * 3600
"""If a VPA is older than this many seconds and has no recommendation, its pods are assumed to have no usage metrics."""


def _is_resized_in_place(pod: Pod, namespace: str, facts: ClusterFacts) -> bool:
    """Returns whether a VPA with a recommendation resizes such pods in place."""
    manager = autoscalers.find_managing_vpa(
        PodContext(pod=pod, namespace=namespace, facts=replace(facts, vpa_reach=EVERYWHERE))
    )
    if manager is None or manager.spec.update_policy.update_mode not in autoscalers.RESIZING:
        return False
    return bool(manager.status.recommendation.container_recommendations)


def with_vpa_targets(pod: Pod, namespace: str, facts: ClusterFacts, now: Seconds | None) -> Pod | str:
    """Returns the pod with its requests raised to the recommendation of a VPA in any mode but Off. Returns the reason,
    as text, if such a VPA has no recommendation yet."""
    # It does not matter whether the VPA's webhook can act now: it may when the pod is created again.
    subject = PodContext(pod=pod, namespace=namespace, facts=replace(facts, vpa_reach=EVERYWHERE))
    manager = autoscalers.find_managing_vpa(subject)
    if manager is None:
        return pod
    if not manager.status.recommendation.container_recommendations:
        created = parse_timestamp(manager.metadata.creation_timestamp)
        if now is None or created is None or now - created < MAX_SILENCE_SECONDS:
            return (
                f"VerticalPodAutoscaler {namespace}/{manager.metadata.name} changes the requests of pods, but "
                "has no recommendation yet"
            )
        return pod
    main = [place for place in subject.container_refs if place.part == "containers"]
    sizes = autoscalers.VpaConstraintsIndex(manager, subject)
    sized = tuple([_raise_requests(place.container, _vpa_targets(sizes, place)) for place in main])
    return change(pod, spec=change(pod.spec, containers=sized))


USUAL_PERCENTILE = Decimal(95)
"""The percentile of recorded usage that counts for a pod without a request."""


def with_known_usage(amounts: Amounts, pod: Pod, namespace: str, facts: ClusterFacts) -> Amounts:
    """Returns the amounts, and in addition the known usage of each resource that the pod does not request at all.

    The known usage is a sum over the pod's containers: the recorded P95 or, without one, the recommendation of a VPA in
    any mode. If neither is known for one of the containers, the resource is left out.
    """
    missing = [resource for resource in ("cpu", "memory") if not amounts.get(resource)]
    if not missing:
        return amounts
    context = PodContext(pod=pod, namespace=namespace, facts=facts)
    main = [place for place in context.container_refs if place.part == "containers"]
    used = {resource: [_known_amount(context, place, resource) for place in main] for resource in missing}
    known_usage = {resource: sum(filter(None, parts)) for resource, parts in used.items() if None not in parts}
    return {**amounts, **known_usage}


def _known_amount(context: PodContext, container: ContainerRef, resource: str) -> int | None:
    """Returns what the container is known to use, in the scheduler's unit, or None if it is not known."""
    for _, usage in context.usage_of(container.container.name):
        percentiles = usage.percentiles_of(resource) if isinstance(usage, ContainerUsage) else None
        amount = percentiles.amount_at(USUAL_PERCENTILE) if percentiles is not None else None
        if amount is not None:
            return quantity.scheduler_value(resource, amount)
    recommended = autoscalers.find_vpa_recommendation(context, container, resource)
    return None if recommended is None else recommended.target


def _vpa_targets(sizes: autoscalers.VpaConstraintsIndex, container: ContainerRef) -> Amounts:
    sizings = {resource: sizes.constraints_for(container, resource) for resource in ("cpu", "memory")}
    known_sizings = {name: sizing for name, sizing in sizings.items() if sizing is not None}
    return {
        name: max(sizing.target, sizing.growth or 0)
        for name, sizing in known_sizings.items()
        if sizing.target is not None
    }


def _raise_requests(container: Container, targets: Amounts) -> Container:
    """Returns the container with each request raised that is below its amount in `targets` (in the scheduler's
    units)."""
    requests = requests_of(container.resources)
    try:
        raised_requests = {
            name: f"{amount}m" if name == "cpu" else str(amount)
            for name, amount in targets.items()
            if quantity.scheduler_value(name, requests.get(name, 0)) < amount
        }
    except NotAQuantity:
        return container
    if not raised_requests:
        return container
    resources = value_or(container.resources, Resources())
    return change(container, resources=change(resources, requests={**requests, **raised_requests}))
