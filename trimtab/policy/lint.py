"""Which sound policies will not do what they say?"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trimtab.cluster.reason import Code, Reason
from trimtab.cluster.selectors import labels_match, requirement_matches
from trimtab.policy import reasons
from trimtab.policy.actions.placement import shown
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.lint_conflicts import disagreements, overruled
from trimtab.policy.lint_fields import odd_words
from trimtab.policy.match import namespace_name_test
from trimtab.policy.pod_context import CRITICAL, NAME_LABEL
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.required_action_rules import required_actions

SWITCHED_OFF = Code("switched-off", "The policy is on file and does nothing.", "Say `enabled: true` to switch it on.")
AUTHOR_CHOOSES = Code(
    "match-chosen-by-author",
    "A policy with a required action matches by a fact that the pod's author chooses: a pod without it is not denied.",
    "Match by namespace alone where the action must hold against whoever writes the pod.",
)
NOT_IN_CLUSTER = Code(
    "not-in-the-cluster",
    "The policy speaks of a namespace, or of nodes, that the cluster does not have now.",
    "Correct the name; a group of nodes that grows from zero, or a namespace to come, is fine as it is.",
)
NO_SHARE = Code("rollout-is-zero", "The policy is rolled out to nobody.", "Raise `rollout` above 0%.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """Something about a policy that its author would want to know."""

    policy: str
    reason: Reason


def lint(policies: Policies, facts: ClusterFacts | None = None) -> tuple[LintFinding, ...]:
    """All findings, policies in the order in which they decide; what denies pods comes first.

    `facts` None: no cluster is known.
    """
    found: list[LintFinding] = []
    for index, policy in enumerate(policies.all):
        before = policies.all[:index]
        reasons_found = [
            *_idle(policy), *_missing(policy, facts), *_chosen(policy), *odd_words(policy),
            *overruled(policy, before), *disagreements(policy, before),
        ]  # fmt: skip
        found += [LintFinding(policy=policy.name, reason=reason) for reason in reasons_found]
    requiring = {policy.name for policy in policies.all if policy.spec.mode == "apply" and _requires_class(policy)}
    return tuple(sorted(found, key=lambda one: not (one.policy in requiring and one.reason.code is _NO_CLASS)))


_NO_CLASS = reasons.RUNTIME_CLASS_NOT_FOUND


def _requires_class(policy: PodPolicy) -> bool:
    return policy.spec.enabled and "runtime_class" in required_actions(policy.spec.actions)


def _idle(policy: PodPolicy) -> Iterator[Reason]:
    if not policy.spec.enabled:
        yield SWITCHED_OFF("`enabled` is false")
    elif policy.spec.rollout == 0:
        yield NO_SHARE("`rollout` is 0%")


def _missing(policy: PodPolicy, facts: ClusterFacts | None) -> Iterator[Reason]:
    """Objects it names that the cluster does not have."""
    if facts is None:
        return
    actions = policy.spec.actions
    chosen = facts.runtime_classes.get(actions.runtime_class.name) if actions.runtime_class else None
    if chosen is not None and facts.nodes.shapes:
        selector = chosen.scheduling.node_selector
        shapes = (*facts.nodes.shapes, *facts.nodes.closed)
        if not any(all(shape.labels.get(key) == value for key, value in selector.items()) for shape in shapes):
            labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
            yield NOT_IN_CLUSTER(f"RuntimeClass {chosen.metadata.name} selects nodes of {labels}, and there is none")
    if actions.runtime_class and actions.runtime_class.name not in facts.runtime_classes:
        denies = ", and every pod that the policy means is denied" if _requires_class(policy) else ""
        yield _NO_CLASS(f"RuntimeClass {actions.runtime_class.name} does not exist{denies}")
    known = {*facts.priority_classes, *CRITICAL}
    if actions.priority_class and actions.priority_class.name not in known:
        yield reasons.PRIORITY_CLASS_NOT_FOUND(f"PriorityClass {actions.priority_class.name} does not exist")
    yield from _unlike(policy, facts)


def _unlike(policy: PodPolicy, facts: ClusterFacts) -> Iterator[Reason]:
    """What no namespace and no node of the cluster is like."""
    spaces = policy.spec.match.namespaces
    for name in spaces.include if spaces is not None and facts.namespaces else ():
        if not any(fnmatchcase(known, name) for known in facts.namespaces):
            yield NOT_IN_CLUSTER(f"the cluster has no namespace {name}")
    if spaces is not None and spaces.selector is not None and facts.namespaces:
        selector, is_named = spaces.selector.selector, namespace_name_test(spaces)
        meant = (name for name in facts.namespaces if is_named(name))
        if not any(labels_match(selector, {NAME_LABEL: name, **facts.namespaces[name]}) for name in meant):
            yield NOT_IN_CLUSTER("no namespace of the cluster has the labels that the policy selects")
    placement = policy.spec.actions.placement
    if placement is not None:
        yield from _unlike_nodes(placement, facts)
    for label in _namespace_labels(policy) if facts.namespaces else ():
        if not any(label in known for known in facts.namespaces.values()):
            yield NOT_IN_CLUSTER(f"no namespace of the cluster has a label {label}, which the policy reads")


def _unlike_nodes(placement: PlacementAction, facts: ClusterFacts) -> Iterator[Reason]:
    shapes = facts.nodes.shapes
    if not shapes:
        return
    for label in placement.require:
        if not any(requirement_matches(label.requirement, shape.labels) for shape in shapes):
            kind = f"{label.label} {shown(label.requirement)}"
            yield NOT_IN_CLUSTER(f"the cluster has no node of label {kind}")
        for value in label.among:
            if not any(shape.labels.get(label.label) == value for shape in shapes):
                yield NOT_IN_CLUSTER(
                    f"the cluster has no node of label {label.label} In {value}, which a pod may choose"
                )
    for group in placement.require_any:
        asked = [label.requirement for label in group]
        if not any(all(requirement_matches(one, shape.labels) for one in asked) for shape in shapes):
            kind = " and ".join(f"{one.key} {shown(one)}" for one in asked)
            yield NOT_IN_CLUSTER(f"the cluster has no node of labels {kind}, a group of requireAny")


def _namespace_labels(policy: PodPolicy) -> Iterator[str]:
    """Labels of namespaces from which it takes a value."""
    placement, labels = policy.spec.actions.placement, policy.spec.actions.labels
    if placement is not None:
        groups = (placement.require, *placement.require_any, placement.prefer)
        yield from (label.in_namespace_label for group in groups for label in group if label.in_namespace_label)
        yield from (taint.value_from_namespace for taint in placement.tolerate if taint.value_from_namespace)
    if labels is not None:
        yield from (labels.from_namespace or {}).values()


def _chosen(policy: PodPolicy) -> Iterator[Reason]:
    """Conditions by which the author of a pod keeps it from a required action."""
    if not required_actions(policy.spec.actions):
        return
    match = policy.spec.match
    for conditions in (match, *match.exclude):
        for field, word in _AUTHORS:
            if getattr(conditions, field):
                yield AUTHOR_CHOOSES(f"an action is required, and the match reads {word}")


_AUTHORS = (
    ("pod_labels", "podLabels"), ("pod_selector", "podSelector"), ("runtime_classes", "runtimeClasses"),
    ("vpa", "vpa"), ("hpa", "hpa"),
    ("containers", "containers; the image of one that runs can be changed, too"),
)  # fmt: skip
