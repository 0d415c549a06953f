"""Tests whether a policy's `match` selects a pod, and which of the pod's containers."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from typing import NamedTuple

from trimtab.cluster import quantity
from trimtab.cluster.kinds import GROUPS_BY_KIND
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import Amounts, requests_of, requests_without_overhead, scheduler_amounts
from trimtab.cluster.selectors import labels_match, name_matcher
from trimtab.policy import autoscalers, reasons
from trimtab.policy.actions.requests_of_policies import request_image_patterns
from trimtab.policy.conditions import (
    AmountCondition,
    Conditions,
    Containers,
    Match,
    NamespaceMatch,
)
from trimtab.policy.image_names import image_test
from trimtab.policy.pod_context import CRITICAL, MIRROR, OPT_OUT, AdmissionSettings, ContainerRef, PodContext
from trimtab.policy.podpolicy import PodPolicy, Policies

PodPredicate = Callable[[PodContext], bool]
"""A function that tests a pod. Its patterns are compiled once for many pods."""


def always_left_alone(pod_context: PodContext) -> Reason | None:
    """Returns why no policy may be evaluated for the pod, or None if policies are to be evaluated."""
    # The order matters for the reason that users see: the switch for everything comes first.
    if pod_context.settings.paused:
        return reasons.PAUSED("Trimtab is paused, so no pod is changed")
    if MIRROR in pod_context.annotations:
        # The kubelet starts nothing for a mirror pod whose static pod it does not have.
        return reasons.MIRROR_POD("the pod mirrors a static pod of the kubelet")
    if is_switched_off(pod_context.namespace, pod_context.settings):
        return reasons.SYSTEM_NAMESPACE(f"pods of namespace {pod_context.namespace} are never changed")
    return None


def is_switched_off(namespace: str, settings: AdmissionSettings) -> bool:
    """Returns whether no policy is evaluated for any pod of this namespace: changes are paused, or the namespace
    belongs to the system or to Trimtab."""
    return settings.paused or namespace in settings.system_namespaces or namespace == settings.own_namespace


def allows_opt_out(policy: PodPolicy, pod_context: PodContext) -> bool:
    """Returns whether the pod has opted out in a way that this policy allows."""
    allowed = policy.spec.opt_out
    # With `pod` an opt-out of the namespace counts as well.
    return pod_context.opt_out is not None and (allowed == "pod" or allowed == pod_context.opt_out)


def opt_out_reason(pod_context: PodContext) -> Reason:
    """Returns the reason that says whether the pod or its namespace has opted out. Call it only for a pod that has
    opted out."""
    if pod_context.opt_out == "pod":
        return reasons.OPTED_OUT(f"the pod has the label or annotation {OPT_OUT}")
    return reasons.OPTED_OUT(f"the namespace {pod_context.namespace} has the label or annotation {OPT_OUT}")


def pod_test(match: Match) -> PodPredicate:
    """Returns a test of all conditions of `match`, except the condition on the namespace (see `namespace_test`) and the
    exclusions."""
    wanted = tuple(_compile_conditions(match))
    unwanted = tuple(_compile_exclusion(excluded) for excluded in match.exclude)

    def matches(pod_context: PodContext) -> bool:
        # Loops, not generators: this runs for every policy and pod.
        for condition in wanted:
            if not condition(pod_context):
                return False
        for excluded in unwanted:
            for condition in excluded:
                if not condition(pod_context):
                    break
            else:
                return False
        return True

    return matches


def in_rollout(policy: PodPolicy, pod_context: PodContext) -> bool:
    """Returns whether the pod's owner is in the policy's rollout. A hash of policy and owner decides, so the selected
    owners stay the same, and a larger rollout includes all owners of a smaller one."""
    # Nearly every policy: no hash is computed.
    if policy.spec.rollout >= 100:
        return True
    is_included = rollout_place(policy.name, pod_context.rollout_identity) < policy.spec.rollout
    if pod_context.reads is not None:
        pod_context.reads.rollouts[policy.name, policy.spec.rollout] = is_included
    return is_included


def rollout_place(policy_name: str, rollout_identity: str) -> int:
    """Returns the position of an owner in a rollout of the policy, from 0 to 99. The owner is included if `rollout` is
    larger than the position.

    rollout_identity: see `pod_context.identify_for_rollout`.
    """
    digest = hashlib.blake2b(f"{policy_name}\n{rollout_identity}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % 100


def namespace_test(match: Match, *, required: bool = False) -> PodPredicate:
    """Returns a test of the condition on the namespace alone."""
    return _namespace_condition(match.namespaces or NamespaceMatch(), unknown=required)


def _compile_exclusion(excluded: Conditions) -> tuple[PodPredicate, ...]:
    """Returns the tests of all conditions of an exclusion."""
    if excluded.namespaces is None:
        return tuple(_compile_conditions(excluded))
    # A namespace whose labels are not known yet is not excluded: its pods must not escape a required action.
    return _namespace_condition(excluded.namespaces, unknown=False), *_compile_conditions(excluded)


def _compile_conditions(conditions: Conditions) -> Iterator[PodPredicate]:
    """Yields one test for each condition that is set, except the one on the namespace; the fastest tests come first."""
    if conditions.pod_labels:
        yield _labels_condition(conditions.pod_labels)
    if conditions.pod_selector is not None:
        selector = conditions.pod_selector.api_selector
        yield lambda subject: labels_match(selector, subject.labels)
    if conditions.runtime_classes:
        matches_class = _name_condition(conditions.runtime_classes)
        yield lambda subject: matches_class(subject.pod.spec.runtime_class_name)
    if conditions.priority_classes:
        matches_priority = _name_condition(conditions.priority_classes)
        yield lambda subject: matches_priority(subject.pod.spec.priority_class_name)
    if conditions.owners:
        is_wanted = owner_test(conditions.owners)
        yield lambda subject: subject.has_owner(is_wanted)
    if conditions.annotations:
        has_values = values_test(conditions.annotations)
        yield lambda subject: has_values(subject.annotations)
    if conditions.service_accounts:
        matches_account = name_matcher(conditions.service_accounts)
        yield lambda subject: matches_account(subject.pod.spec.service_account_name or "default")
    if conditions.requests:
        has_amounts = amounts_test(conditions.requests)
        yield lambda subject: has_amounts(subject.compute_once(requested_amounts))
    yield from _compile_lookups(conditions)


def _compile_lookups(conditions: Conditions) -> Iterator[PodPredicate]:
    """Yields the tests that need a lookup in the facts, or must look at every container."""
    if conditions.containers is not None:
        is_meant = containers_test(conditions.containers)
        yield lambda subject: any(map(is_meant, subject.container_refs))
    if conditions.vpa is not None:
        managed = conditions.vpa == "managed"
        yield lambda subject: managed == (subject.compute_once(autoscalers.find_managing_vpa) is not None)
    if conditions.hpa is not None:
        by_utilization = conditions.hpa == "utilization"
        yield lambda subject: by_utilization == subject.compute_once(autoscalers.is_scaled_by_utilization)


def _namespace_condition(namespaces: NamespaceMatch, *, unknown: bool) -> PodPredicate:
    """Returns a test of the conditions on the namespace.

    `unknown` is the result for a namespace whose labels are not known, if there is a label selector.
    """
    matches_name = namespace_name_test(namespaces.include, namespaces.exclude)
    selector = None if namespaces.selector is None else namespaces.selector.api_selector

    def is_in(pod_context: PodContext) -> bool:
        if not matches_name(pod_context.namespace):
            return False
        if selector is None:
            return True
        labels = pod_context.namespace_labels
        return unknown if labels is None else labels_match(selector, labels)

    return is_in


def namespace_name_test(include: tuple[str, ...], exclude: tuple[str, ...]) -> Callable[[str], bool]:
    """Returns a test of a namespace's name. No pattern to include means all names. A namespace that passes may still
    not match the label selector."""
    is_included, is_excluded = name_matcher(include or ("*",)), name_matcher(exclude)
    return lambda name: is_included(name) and not is_excluded(name)


def values_test(wanted: Mapping[str, str]) -> Callable[[Mapping[str, str]], bool]:
    """Returns a test of labels or annotations: each key must exist, and its value must match the pattern."""
    patterns = [(key, name_matcher((pattern,))) for key, pattern in wanted.items()]
    return lambda values: all(key in values and pattern(values[key]) for key, pattern in patterns)


def _labels_condition(wanted: dict[str, str]) -> PodPredicate:
    has_values = values_test(wanted)
    return lambda subject: has_values(subject.labels)


def _name_condition(patterns: tuple[str, ...]) -> Callable[[object], bool]:
    """Returns a test of an optional name. The pattern `none` matches a pod without the name; no other pattern does."""
    selects_none, matches_name = "none" in patterns, name_matcher(patterns)
    return lambda name: matches_name(name) if isinstance(name, str) and name else selects_none


def owner_test(wanted: Iterable[str]) -> Callable[[str], bool]:
    """Returns a test of one owner, written as `Deployment/web`. A pattern with a kind alone matches owners of any
    name.

    The kind is written as in `GroupKind`: `StatefulSet` means the one of Kubernetes, and another group's is written
    with its group. A kind that only other groups have, such as `Kafka`, matches that of any group.
    """
    return name_matcher(tuple(chain.from_iterable(map(owner_patterns, wanted))))


def owner_patterns(pattern: str) -> tuple[str, ...]:
    """Returns the patterns for the text of an owner (`OwnerKey`), from one pattern in a policy."""
    kind, slash, name = pattern.partition("/")
    name = name if slash else "*"
    return tuple(f"{one}/{name}" for one in ((kind, f"{kind}.*") if means_any_group(kind) else (kind,)))


def means_any_group(kind: str) -> bool:
    """Returns whether a kind in a policy means the kinds of this name of all groups: it is a name, not a pattern, it is
    written without a group, and no group is implied."""
    return kind not in GROUPS_BY_KIND and not set(kind) & set("*?[.")


def containers_test(containers: Containers) -> Callable[[ContainerRef], bool]:
    """Returns a test of the conditions on one container."""
    # Read from the policy once: this runs for every policy, pod and container.
    has_amounts = amounts_test(containers.requests) if containers.requests else None
    is_excluded_image = image_test(containers.not_images) if containers.not_images else None
    matches_image = image_test(containers.images) if containers.images else None
    matches_name = name_matcher(containers.names) if containers.names else None
    roles = containers.roles

    def is_selected(container: ContainerRef) -> bool:
        image = container.container.image
        return (
            (is_excluded_image is None or not is_excluded_image(image))
            and (matches_name is None or matches_name(container.container.name))
            and (not roles or container.role in roles)
            and (matches_image is None or matches_image(image))
            and (has_amounts is None or has_amounts(_container_amounts(container)))
        )

    return is_selected


def amounts_test(wanted: dict[str, AmountCondition]) -> Callable[[Amounts | None], bool]:
    """Returns a test of amounts by resource. It is false for None, which stands for amounts that cannot be parsed."""
    bounds = [(resource, _amount_range(resource, amount)) for resource, amount in wanted.items()]

    def is_within(requested: Amounts | None) -> bool:
        return requested is not None and all(low <= requested.get(name, 0) < high for name, (low, high) in bounds)

    return is_within


def _amount_range(resource: str, amount: AmountCondition) -> tuple[float, float]:
    """Returns the range of a condition as (at least, below), in the scheduler's unit."""
    # `exists` and `absent` are ranges, too: at least 1, and below 1, in the scheduler's units.
    low = quantity.scheduler_value(resource, amount.at_least) if amount.at_least else 1 if amount.exists else 0
    high = quantity.scheduler_value(resource, amount.below) if amount.below else 1 if amount.absent else inf
    return low, high


def requested_amounts(pod_context: PodContext) -> Amounts | None:
    """Returns the pod's requests without overhead, or None if a quantity cannot be parsed."""
    try:
        return requests_without_overhead(pod_context.pod.spec)
    except NotAQuantity:
        return None


def _container_amounts(container: ContainerRef) -> Amounts | None:
    try:
        return scheduler_amounts(requests_of(container.container.resources))
    except NotAQuantity:
        return None


class MatchDependencies(NamedTuple):
    """The fields that policies change and on which the `match` of some policy of a set depends."""

    annotations: frozenset[str]
    """The keys of annotations that some `match` reads."""
    requests: bool


def match_dependencies(policies: Policies) -> MatchDependencies:
    """Returns the fields on which the matches of all enabled policies depend."""
    matches = [policy.spec.match for policy in policies.all if policy.spec.enabled]
    keys = frozenset(key for match in matches for key in annotations_asked_for(match))
    return MatchDependencies(annotations=keys, requests=any(map(asks_for_requests, matches)))


def annotations_asked_for(match: Match) -> frozenset[str]:
    """Returns the keys of the pod's annotations that the `match` of the policy, or its exclusions, read."""
    return frozenset(key for conditions in (match, *match.exclude) for key in conditions.annotations or ())


def asks_for_requests(match: Match) -> bool:
    """Returns whether the `match` of the policy, or its exclusions, read requests of the pod or of its containers."""
    return any(
        bool(conditions.requests) or (conditions.containers is not None and bool(conditions.containers.requests))
        for conditions in (match, *match.exclude)
    )


def fields_selected_by(match: Match) -> frozenset[str]:
    """Returns which of the fields that policies may change are used by the match to select pods: `labels[KEY]`,
    `annotations[KEY]`, `runtimeClassName`, `priorityClassName`, `requests`.

    Exclusions are ignored: what a policy adds to a pod seldom makes an exclusion end, and if it does, the pod is
    selected at its next admission."""
    selector = match.pod_selector
    label_keys = [*(match.pod_labels or ())]
    if selector is not None:
        label_keys += [*(selector.match_labels or ()), *(expression.key for expression in selector.match_expressions)]
    fields = [f"labels[{key}]" for key in label_keys] + [f"annotations[{key}]" for key in match.annotations or ()]
    if match.runtime_classes:
        fields.append("runtimeClassName")
    if match.priority_classes:
        fields.append("priorityClassName")
    if match.requests or (match.containers is not None and match.containers.requests):
        fields.append("requests")
    return frozenset(fields)


def reads_image_tags(policies: Policies) -> bool:
    """Returns whether any image pattern of a policy can distinguish two images that differ only in tag or digest."""
    enabled = (policy for policy in policies.all if policy.spec.enabled)
    # Whether the pattern is an image name, or the beginning of one, followed by a final `*`. A colon is permitted
    # before a port, and as the last character before the `*`, which selects images with any tag.
    return not all(
        _PREFIX_OF_NAMES.fullmatch(pattern) is not None for policy in enabled for pattern in _image_patterns(policy)
    )


def _image_patterns(policy: PodPolicy) -> Iterator[str]:
    match = policy.spec.match
    for containers in (conditions.containers for conditions in (match, *match.exclude)):
        if containers is not None:
            yield from (*containers.images, *containers.not_images)
    yield from request_image_patterns(policy)


_PREFIX_OF_NAMES = re.compile(r"(?:[^*?\[@/]*/)*[^*?\[@/:]*:?\*")


def names_critical(policy: PodPolicy) -> frozenset[str]:
    """Returns which of the system's PriorityClasses the policy names; the pattern `*` counts as naming none."""
    patterns = tuple(pattern for pattern in policy.spec.match.priority_classes if pattern.strip("*"))
    return frozenset(filter(name_matcher(patterns), CRITICAL)) if patterns else frozenset()


def names_daemons(policy: PodPolicy) -> bool:
    """Returns whether the policy names DaemonSet as an owner. Only such a policy may change the placement of DaemonSet
    pods."""
    return any(owner.split("/")[0] == "DaemonSet" for owner in policy.spec.match.owners)
