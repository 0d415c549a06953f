"""Does this policy mean this pod, and which of its containers?"""

import hashlib
from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

from trimtab.cluster import quantity
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import Amounts, amounts, requests_of, requests_without_overhead
from trimtab.cluster.selectors import glob, labels_match
from trimtab.policy import autoscalers, reasons
from trimtab.policy.pod_context import (
    CRITICAL,
    MIRROR,
    OPT_OUT,
    AdmissionSettings,
    ContainerRef,
    PodContext,
    image_test,
)
from trimtab.policy.podpolicy import (
    AmountCondition,
    Conditions,
    Containers,
    Match,
    NamespaceMatch,
    PodPolicy,
    Policies,
    PolicyLabelSelector,
)

Test = Callable[[PodContext], bool]
"""A question about a pod, its patterns read once for many pods."""


def always_left_alone(subject: PodContext) -> Reason | None:
    """Pods no policy is ever asked about, with the reason; None: policies decide."""
    if subject.terms.paused:
        return reasons.PAUSED("all changes are paused")
    if MIRROR in subject.annotations:
        # The kubelet starts nothing for a mirror pod whose static pod it does not have.
        return reasons.MIRROR_POD("the pod mirrors a static pod of the kubelet")
    if is_switched_off(subject.namespace, subject.terms):
        return reasons.SYSTEM_NAMESPACE(f"pods of {subject.namespace} are never changed")
    return None


def is_switched_off(namespace: str, terms: AdmissionSettings) -> bool:
    """Is no policy ever asked about pods of this namespace, whatever the pods say?"""
    return terms.paused or namespace in terms.system_namespaces or namespace == terms.own_namespace


def allows_opt_out(policy: PodPolicy, subject: PodContext) -> bool:
    """Has the pod opted out in a way that this policy allows?"""
    allowed = policy.spec.opt_out
    return subject.opt_out is not None and (allowed == "pod" or allowed == subject.opt_out)


def opt_out_reason(subject: PodContext) -> Reason:
    """Who opted out, as a reason; for a pod that did."""
    if subject.opt_out == "pod":
        return reasons.OPTED_OUT(f"the pod says {OPT_OUT}")
    return reasons.OPTED_OUT(f"namespace {subject.namespace} says {OPT_OUT}")


def pod_test(match: Match) -> Test:
    """All conditions of `match` but the one on the namespace (`namespace_test`), and none of its exclusions.

    An exclusion does not mean a namespace whose labels are not known yet.
    """
    wanted = tuple(_asked(match))
    unwanted = tuple(_of_exclusion(excluded) for excluded in match.exclude)

    def meets(subject: PodContext) -> bool:
        # Loops, not generators: this runs for every policy and pod.
        for asks in wanted:
            if not asks(subject):
                return False
        for excluded in unwanted:
            for asks in excluded:
                if not asks(subject):
                    break
            else:
                return False
        return True

    return meets


def in_rollout(policy: PodPolicy, subject: PodContext) -> bool:
    """Is this owner among the policy's share? The same owners every time; a larger share keeps them."""
    if policy.spec.rollout >= 100:
        return True
    drawn = hashlib.blake2b(f"{policy.name}\n{subject.identity}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") % 100 < policy.spec.rollout


def namespace_test(match: Match, *, required: bool = False) -> Test:
    """The condition on the namespace alone."""
    return _in_namespaces(match.namespaces or NamespaceMatch(), unknown=required)


def _of_exclusion(excluded: Conditions) -> tuple[Test, ...]:
    if excluded.namespaces is None:
        return tuple(_asked(excluded))
    return _in_namespaces(excluded.namespaces, unknown=False), *_asked(excluded)


def _asked(given: Conditions) -> Iterator[Test]:
    """Every condition but the one on the namespace; the cheapest first."""
    if given.pod_labels:
        yield _labelled(given.pod_labels)
    if given.pod_selector is not None:
        yield _selected(given.pod_selector)
    if given.runtime_classes:
        of_class = _named(given.runtime_classes)
        yield lambda subject: of_class(subject.pod.spec.runtime_class_name)
    if given.priority_classes:
        of_priority = _named(given.priority_classes)
        yield lambda subject: of_priority(subject.pod.spec.priority_class_name)
    if given.owners:
        yield _owned(given.owners)
    if given.annotations:
        yield _annotated(given.annotations)
    if given.service_accounts:
        of_account = glob(given.service_accounts)
        yield lambda subject: of_account(subject.pod.spec.service_account_name or "default")
    if given.requests:
        asks = amounts_test(given.requests)
        yield lambda subject: asks(subject.once(asked_amounts))
    yield from _found_out(given)


def _found_out(given: Conditions) -> Iterator[Test]:
    """What has to be looked up, or looked for in every container."""
    if given.containers is not None:
        is_meant = containers_test(given.containers)
        yield lambda subject: any(map(is_meant, subject.places))
    if given.vpa is not None:
        managed = given.vpa == "managed"
        yield lambda subject: managed == (subject.once(autoscalers.of) is not None)
    if given.hpa is not None:
        by_utilization = given.hpa == "utilization"
        yield lambda subject: by_utilization == subject.once(autoscalers.by_utilization)


def _in_namespaces(namespaces: NamespaceMatch, *, unknown: bool) -> Test:
    """`unknown`: is a namespace selected whose labels are not known?"""
    by_name = namespace_name_test(namespaces)
    selector = None if namespaces.selector is None else namespaces.selector.selector

    def is_in(subject: PodContext) -> bool:
        if not by_name(subject.namespace):
            return False
        if selector is None:
            return True
        labels = subject.namespace_labels
        return unknown if labels is None else labels_match(selector, labels)

    return is_in


def namespace_name_test(namespaces: NamespaceMatch) -> Callable[[str], bool]:
    """May a namespace of this name be meant?"""
    included, excluded = glob(namespaces.include or ("*",)), glob(namespaces.exclude)
    return lambda name: included(name) and not excluded(name)


def _labelled(wanted: dict[str, str]) -> Test:
    patterns = [(key, glob((pattern,))) for key, pattern in wanted.items()]

    def is_labelled(subject: PodContext) -> bool:
        labels = subject.labels
        return all(key in labels and pattern(labels[key]) for key, pattern in patterns)

    return is_labelled


def _selected(wanted: PolicyLabelSelector) -> Test:
    selector = wanted.selector
    return lambda subject: labels_match(selector, subject.labels)


def _named(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """`none` stands for a pod that names nothing; no other pattern does."""
    nothing, named = "none" in patterns, glob(patterns)
    return lambda name: named(name) if isinstance(name, str) and name else nothing


def _owned(wanted: tuple[str, ...]) -> Test:
    is_wanted = glob(tuple(pattern if "/" in pattern else f"{pattern}/*" for pattern in wanted))
    return lambda subject: any(map(is_wanted, subject.owner_names))


def containers_test(containers: Containers) -> Callable[[ContainerRef], bool]:
    """Is a container one of these?"""
    # Read from the policy once: this runs for every policy, pod and container.
    asks = amounts_test(containers.requests) if containers.requests else None
    is_unwanted_image = image_test(containers.not_images) if containers.not_images else None
    is_image = image_test(containers.images) if containers.images else None
    is_named = glob(containers.names) if containers.names else None
    roles = containers.roles

    def is_meant(place: ContainerRef) -> bool:
        image = place.container.image
        return (
            (is_unwanted_image is None or not is_unwanted_image(image))
            and (is_named is None or is_named(place.container.name))
            and (not roles or place.role in roles)
            and (is_image is None or is_image(image))
            and (asks is None or asks(_amounts_of(place)))
        )

    return is_meant


def amounts_test(wanted: dict[str, AmountCondition]) -> Callable[[Amounts | None], bool]:
    """Is as much asked for? Amounts that cannot be read are never meant."""
    bounds = [(resource, _bounds(resource, amount)) for resource, amount in wanted.items()]

    def asks(found: Amounts | None) -> bool:
        return found is not None and all(low <= found.get(name, 0) < high for name, (low, high) in bounds)

    return asks


def _bounds(resource: str, amount: AmountCondition) -> tuple[float, float]:
    """At least, and below, in the scheduler's numbers."""
    low = quantity.scheduler_value(resource, amount.at_least) if amount.at_least else 1 if amount.exists else 0
    high = quantity.scheduler_value(resource, amount.below) if amount.below else 1 if amount.absent else inf
    return low, high


def asked_amounts(subject: PodContext) -> Amounts | None:
    """What the pod asks for without overhead; None where a quantity cannot be read."""
    try:
        return requests_without_overhead(subject.pod.spec)
    except NotAQuantity:
        return None


def _amounts_of(place: ContainerRef) -> Amounts | None:
    try:
        return amounts(requests_of(place.container.resources))
    except NotAQuantity:
        return None


def _annotated(wanted: dict[str, str]) -> Test:
    patterns = [(key, glob((pattern,))) for key, pattern in wanted.items()]

    def is_annotated(subject: PodContext) -> bool:
        annotations = subject.annotations
        return all(key in annotations and pattern(annotations[key]) for key, pattern in patterns)

    return is_annotated


class MatchDependencies(NamedTuple):
    """What the `match` of any policy of a set asks for that policies change."""

    annotations: frozenset[str]
    """Their keys."""
    requests: bool


def match_asks(policies: Policies) -> MatchDependencies:
    """Of all policies that are switched on."""
    given = [policy.spec.match for policy in policies.all if policy.spec.enabled]
    keys = frozenset(key for match in given for key in annotations_asked_for(match))
    return MatchDependencies(annotations=keys, requests=any(map(asks_for_requests, given)))


def annotations_asked_for(match: Match) -> frozenset[str]:
    """Keys of the pod's annotations that the match, or what it excludes, asks for."""
    return frozenset(key for given in (match, *match.exclude) for key in given.annotations or ())


def asks_for_requests(match: Match) -> bool:
    """Does the match, or what it excludes, ask for what the pod or one of its containers requests?"""
    return any(
        bool(given.requests) or (given.containers is not None and bool(given.containers.requests))
        for given in (match, *match.exclude)
    )


def names_critical(policy: PodPolicy) -> frozenset[str]:
    """The system's PriorityClasses that the policy speaks of; a mere `*` speaks of none."""
    patterns = tuple(pattern for pattern in policy.spec.match.priority_classes if pattern.strip("*"))
    return frozenset(filter(glob(patterns), CRITICAL)) if patterns else frozenset()


def names_daemons(policy: PodPolicy) -> bool:
    """Does the policy speak of DaemonSets by name? Only then may it move their pods."""
    return any(owner.split("/")[0] == "DaemonSet" for owner in policy.spec.match.owners)
