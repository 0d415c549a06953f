"""What would this owner's next pod ask for, were it created now?

The pod as its controller would send it, through the API server's two passes with today's policies and facts, and with
what a VerticalPodAutoscaler would make of it.
"""

from dataclasses import replace

from trimtab.admission.apiserver.outcome import PodAdmitted
from trimtab.admission.preview import Preview, preview
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import OwnerReference, change, get
from trimtab.cluster.api.pod import Container, Pod, Resources
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.owner import Owner
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, GrowingAmounts, pod_requests, requests_of
from trimtab.cluster.timestamps import Seconds, seconds
from trimtab.policy import autoscalers
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import DEFAULT_TERMS, AdmissionSettings, ContainerRef, PodContext
from trimtab.policy.pod_size_limits import excess_of_template
from trimtab.policy.podpolicy import Policies
from trimtab.policy.reasons import TOO_LARGE
from trimtab.policy.vpa_webhook import EVERYWHERE


def readmitted(
    template: PodTemplateSpec,
    owner: Owner,
    namespace: str,
    policies: Policies,
    facts: ClusterFacts,
    terms: AdmissionSettings = DEFAULT_TERMS,
    now: Seconds | None = None,
) -> Amounts | Unreadable:
    """What the scheduler would count; Unreadable where there would be no such pod, and who says so.

    A template that holds more than the webhook decides about is Unreadable. Per container and resource the largest
    of what the template asks for, what the policies give, and what a VPA that acts (any mode but Off) recommends: its
    webhook sets that after ours, whenever it is called. One that resizes pods where they run counts with the room it
    may need there (`VpaConstraints.growth`), for a resize that finds none is put off. A VPA that acts and
    recommends nothing yet makes the answer Unreadable while it is younger than `MAX_SILENCE_SECONDS`; then the other
    two count. `now` None: how old it is cannot be told, so it is taken for young. GrowingAmounts where a VPA resizes
    pods on their nodes: pods that run may come to ask for as much.
    """
    where = f"the next pod of {owner.kind} {namespace}/{owner.name}"
    sent = _sent(template, owner, namespace)
    over = excess_of_template(sent)
    if over is not None:
        return Unreadable(where, f"{over} [{TOO_LARGE.name}]")
    found = preview(sent, policies, facts, namespace, terms)
    denied = next((call.decision.denied for call in found.calls if call.decision.denied is not None), None)
    if denied is not None:
        return Unreadable(where, f"a policy denies it: {denied}")
    # A quota counts the pod that would go, too: what the server itself would refuse was asked of it before.
    last = found.result.pod if isinstance(found.result, PodAdmitted) else _decided(found)
    sized = with_vpa_targets(last, namespace, facts, now)
    if isinstance(sized, str):
        return Unreadable(where, sized)
    try:
        amounts = pod_requests(sized.spec)
        return GrowingAmounts(amounts) if _is_resized(last, namespace, facts) else amounts
    except NotAQuantity as error:
        return Unreadable(where, str(error))


MAX_SILENCE_SECONDS = 24 * 3600
"""A VPA that recommended nothing for so long watches pods of which nobody measures any usage."""


def _is_resized(pod: Pod, namespace: str, facts: ClusterFacts) -> bool:
    """Does a VPA that recommends something resize such pods where they run?"""
    manager = autoscalers.of(PodContext(pod=pod, namespace=namespace, facts=replace(facts, vpa_reach=EVERYWHERE)))
    if manager is None or manager.spec.update_policy.update_mode not in autoscalers.RESIZING:
        return False
    return bool(manager.status.recommendation.container_recommendations)


def with_vpa_targets(pod: Pod, namespace: str, facts: ClusterFacts, now: Seconds | None) -> Pod | str:
    """The pod with at least what a VPA that acts recommends for it; the reason where that cannot be told yet."""
    # Whether its webhook can act at this moment does not matter: it may when the pod comes back.
    subject = PodContext(pod=pod, namespace=namespace, facts=replace(facts, vpa_reach=EVERYWHERE))
    manager = autoscalers.of(subject)
    if manager is None:
        return pod
    if not manager.status.recommendation.container_recommendations:
        created = seconds(manager.metadata.creation_timestamp)
        if now is None or created is None or now - created < MAX_SILENCE_SECONDS:
            return f"VerticalPodAutoscaler {namespace}/{manager.metadata.name} acts and has no recommendation yet"
        return pod
    main = [place for place in subject.places if place.part == "containers"]
    sizes = autoscalers.VpaConstraintsIndex(manager, subject)
    sized = tuple([_at_least(place.container, _targets(sizes, place)) for place in main])
    return change(pod, spec=change(pod.spec, containers=sized))


def _targets(sizes: autoscalers.VpaConstraintsIndex, place: ContainerRef) -> Amounts:
    sizings = {resource: sizes.of(place, resource) for resource in ("cpu", "memory")}
    told = {name: found for name, found in sizings.items() if found is not None}
    return {name: max(one.target, one.growth or 0) for name, one in told.items() if one.target is not None}


def _at_least(container: Container, targets: Amounts) -> Container:
    """The container with requests raised to these amounts (the scheduler's numbers) where they are less."""
    written = requests_of(container.resources)
    try:
        raised = {
            name: f"{amount}m" if name == "cpu" else str(amount)
            for name, amount in targets.items()
            if quantity.scheduler_value(name, written.get(name, 0)) < amount
        }
    except NotAQuantity:
        return container
    if not raised:
        return container
    resources = get(container.resources, Resources())
    return change(container, resources=change(resources, requests={**written, **raised}))


def _decided(found: Preview) -> Pod:
    """What we made of it, where the server then refused it."""
    return found.calls[-1].applied(found.seen[-1]) if found.calls else found.sent


def _sent(template: PodTemplateSpec, owner: Owner, namespace: str) -> Pod:
    """As the controller sends it. A StatefulSet's pod has a name of its own, all others one of chance."""
    meta, above = template.metadata, OwnerReference(kind=owner.kind, name=owner.name, controller=True)
    named = change(
        meta, name=f"{owner.name}-0" if owner.kind == "StatefulSet" else "", generate_name=f"{owner.name}-",
        namespace=namespace, owner_references=(above,),
    )  # fmt: skip
    return Pod(metadata=named, spec=template.spec)
