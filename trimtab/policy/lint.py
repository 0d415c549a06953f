"""Finds policies that are valid but will not do what they say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic.alias_generators import to_camel

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.reason import Code, Reason
from trimtab.cluster.selectors import requirement_matches
from trimtab.policy import reasons
from trimtab.policy.actions.placement import format_requirement
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.authoring_rules import exclude_conditions, image_conditions
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.conditions import Conditions
from trimtab.policy.field_deciders import is_storable_choice
from trimtab.policy.lint_conflicts import find_disagreements, find_overruled
from trimtab.policy.lint_fields import find_odd_fields
from trimtab.policy.lint_matches import NOT_IN_CLUSTER, collect_label_values, find_unmatched_conditions
from trimtab.policy.pod_context import CRITICAL
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.required_action_rules import required_actions

SWITCHED_OFF = Code("switched-off", "The policy is switched off.", "Set `enabled: true` to switch it on.")
AUTHOR_CHOOSES = Code(
    "match-chosen-by-author",
    "A policy with a required action has a `match` that reads a field which the pod's author sets: a pod without "
    "that field is not denied.",
    "If the action must be enforced for every author, match only by namespace.",
)
IMAGE_CHOSEN = Code(
    "image-chosen-by-author",
    "A policy with a required action selects pods by an image, or frees images whose registry its pattern does not "
    "fix. The author of a pod chooses the image, so the action can be avoided. Such a policy cannot be created any "
    "more; this one was stored before.",
    "Select the images that need no action with `notImages` under `match.containers`, each with its registry, or match "
    "by namespace.",
)
EXCLUDE_CHOSEN = Code(
    "exclude-chosen-by-author",
    "A policy with a required action exempts pods by a field that the author of a pod decides, such as a label, a "
    "ServiceAccount or a container, so the action can be avoided. Such a policy cannot be created any more; this one "
    "was stored before.",
    "Exclude by namespace, or select the images that need no action with `notImages` under `match.containers`.",
)
NO_SHARE = Code("rollout-is-zero", "The policy is rolled out to no owner of pods.", "Raise `rollout` above 0%.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """A problem of a policy of which its author should know."""

    policy: str
    reason: Reason


def lint(
    policies: Policies, facts: ClusterFacts | None = None, pod_labels: Iterable[Labels] = ()
) -> tuple[LintFinding, ...]:
    """Returns all findings. Findings that can cause pods to be refused come first; the others are in the order in which
    the policies decide.

    `facts` are the cluster's objects, or None if there is no cluster to compare with. `pod_labels` are the labels of
    its pods, or empty if they were not read.
    """
    findings: list[LintFinding] = []
    pod_values = collect_label_values(pod_labels)
    for index, policy in enumerate(policies.all):
        before = policies.all[:index]
        policy_reasons = [
            *_find_inactive(policy),
            *_find_missing_objects(policy, facts),
            *find_unmatched_conditions(policy, facts.namespaces if facts is not None else {}, pod_values),
            *_find_author_choices(policy),
            *_find_avoidable(policy),
            *find_odd_fields(policy),
            *find_overruled(policy, before),
            *find_disagreements(policy, before),
        ]
        findings += [LintFinding(policy=policy.name, reason=reason) for reason in policy_reasons]
    requiring = {policy.name for policy in policies.all if policy.spec.mode == "apply" and _requires_class(policy)}
    # `sorted` is stable: within the two groups the order of the policies stays.
    return tuple(sorted(findings, key=lambda item: not (item.policy in requiring and item.reason.code is _NO_CLASS)))


_NO_CLASS = reasons.RUNTIME_CLASS_NOT_FOUND


def _requires_class(policy: PodPolicy) -> bool:
    return policy.spec.enabled and "runtime_class" in required_actions(policy.spec.actions)


def _find_inactive(policy: PodPolicy) -> Iterator[Reason]:
    if not policy.spec.enabled:
        yield SWITCHED_OFF("`enabled` of the policy is false")
    elif policy.spec.rollout == 0:
        yield NO_SHARE("`rollout` of the policy is 0%")


def _find_missing_objects(policy: PodPolicy, facts: ClusterFacts | None) -> Iterator[Reason]:
    """Yields a finding for each object that the policy names and that does not exist in the cluster."""
    if facts is None:
        return
    actions = policy.spec.actions
    runtime_class = facts.runtime_classes.get(actions.runtime_class.name) if actions.runtime_class else None
    if runtime_class is not None and facts.nodes.shapes:
        selector = runtime_class.scheduling.node_selector
        # Cordoned nodes count here: they may take pods again.
        shapes = (*facts.nodes.shapes, *facts.nodes.closed)
        if not any(all(shape.labels.get(key) == value for key, value in selector.items()) for shape in shapes):
            labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
            yield NOT_IN_CLUSTER(
                f"RuntimeClass {runtime_class.metadata.name} selects nodes with {labels}, but the cluster has no "
                "such node"
            )
    if actions.runtime_class and actions.runtime_class.name not in facts.runtime_classes:
        denies = ", so every pod that the policy matches is denied" if _requires_class(policy) else ""
        yield _NO_CLASS(f"RuntimeClass {actions.runtime_class.name} does not exist{denies}")
    # The system's two classes always exist (pkg/apis/scheduling, SystemPriorityClasses).
    class_names = {*facts.priority_classes, *CRITICAL}
    if actions.priority_class and actions.priority_class.name not in class_names:
        yield reasons.PRIORITY_CLASS_NOT_FOUND(f"PriorityClass {actions.priority_class.name} does not exist")
    yield from _find_unmatched_labels(policy, facts)


def _find_unmatched_labels(policy: PodPolicy, facts: ClusterFacts) -> Iterator[Reason]:
    """Yields a finding for each label that the actions of the policy select by and that nothing in the cluster has."""
    placement = policy.spec.actions.placement
    if placement is not None:
        yield from _find_unmatched_nodes(placement, facts)
    for label in _namespace_labels(policy) if facts.namespaces else ():
        if not any(label in labels for labels in facts.namespaces.values()):
            yield NOT_IN_CLUSTER(f"no namespace of the cluster has a label {label}, which the policy reads")


def _find_unmatched_nodes(placement: PlacementAction, facts: ClusterFacts) -> Iterator[Reason]:
    shapes = facts.nodes.shapes
    # Without any node nothing can be concluded: the snapshot may simply not contain nodes.
    if not shapes:
        return
    for label in placement.require:
        if not any(requirement_matches(label.selector_requirement, shape.labels) for shape in shapes):
            kind = f"{label.label} {format_requirement(label.selector_requirement)}"
            yield NOT_IN_CLUSTER(f"the cluster has no node with the label {kind}")
        # A pod that chooses a value without nodes would stay Pending.
        for value in label.among:
            if not any(shape.labels.get(label.label) == value for shape in shapes):
                yield NOT_IN_CLUSTER(
                    f"the cluster has no node with the label {label.label} In {value}, which a pod may choose"
                )
    for group in placement.require_any:
        requirements = [label.selector_requirement for label in group]
        if not any(all(requirement_matches(item, shape.labels) for item in requirements) for shape in shapes):
            kind = " and ".join(f"{item.key} {format_requirement(item)}" for item in requirements)
            yield NOT_IN_CLUSTER(f"no node has the labels {kind}, which one group of requireAny requires")


def _namespace_labels(policy: PodPolicy) -> Iterator[str]:
    """Yields the labels of namespaces from which the policy takes values."""
    placement, labels = policy.spec.actions.placement, policy.spec.actions.labels
    if placement is not None:
        groups = (placement.require, *placement.require_any, placement.prefer)
        yield from (label.in_namespace_label for group in groups for label in group if label.in_namespace_label)
        yield from (taint.value_from_namespace for taint in placement.tolerate if taint.value_from_namespace)
    if labels is not None:
        yield from (labels.from_namespace or {}).values()


def _find_author_choices(policy: PodPolicy) -> Iterator[Reason]:
    """Yields a finding for each condition with which a pod's author can keep the pod from a required action."""
    if not required_actions(policy.spec.actions):
        return
    for field in Conditions.__dataclass_fields__:
        if getattr(policy.spec.match, field) and is_storable_choice(field):
            word = _CONTAINERS if field == "containers" else to_camel(field)
            yield AUTHOR_CHOOSES(f"an action is required, but `match` reads {word}, which the pod's author chooses")


_CONTAINERS = "containers; the image of a running container can be changed as well"


def _find_avoidable(policy: PodPolicy) -> Iterator[Reason]:
    """Yields a finding for each field for which the policy could not be created any more."""
    for code, paths in (
        (IMAGE_CHOSEN, image_conditions(policy.spec)),
        (EXCLUDE_CHOSEN, exclude_conditions(policy.spec)),
    ):
        for path in paths:
            field = ".".join(map(str, path[1:]))
            yield code(f"an action is required, but the pod's author chooses what `{field}` reads")


def is_avoidable(policy: PodPolicy) -> bool:
    """Returns whether the policy is in force with a required action that a pod's author can avoid by an image, or by an
    exclusion."""
    return policy.spec.enabled and bool(image_conditions(policy.spec) or exclude_conditions(policy.spec))
