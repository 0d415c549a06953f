"""Finds policies that are valid but will not do what they say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic.alias_generators import to_camel

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.reason import Code, Reason
from trimtab.policy import reasons
from trimtab.policy.actions import runtime_class
from trimtab.policy.all_actions import iterate_actions, read_terms
from trimtab.policy.authoring_rules import exclude_conditions, image_conditions
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.conditions import Conditions
from trimtab.policy.field_deciders import is_storable_choice
from trimtab.policy.lint_conflicts import find_disagreements, find_overruled
from trimtab.policy.lint_fields import find_odd_conditions
from trimtab.policy.lint_matches import collect_label_values, find_unmatched_conditions
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.required_action_rules import required_actions

SWITCHED_OFF = Code("switched-off", "The policy is switched off.", "Set `enabled: true` in the policy to switch it on.")
AUTHOR_CHOOSES = Code(
    "match-chosen-by-author",
    "A policy with a required action matches by a field that the pod's author sets. A pod without that field is not "
    "denied.",
    "Match only by namespace if the action must hold for every author.",
)
IMAGE_CHOSEN = Code(
    "image-chosen-by-author",
    "A policy with a required action selects pods by an image, which their author chooses. Or it frees images whose "
    "registry its pattern does not fix. So the action can be avoided. Such a policy cannot be created any more; this "
    "one was stored before.",
    "Match by namespace, or select images with `notImages`, each with its registry. Those are the images that need "
    "no action; the field is under `match.containers`.",
)
EXCLUDE_CHOSEN = Code(
    "exclude-chosen-by-author",
    "A policy with a required action exempts pods by a field that their author decides. It may be a label, a "
    "ServiceAccount or a container, so the action can be avoided. Such a policy cannot be created any more; this one "
    "was stored before.",
    "Exclude by namespace, or select images with `notImages` under `match.containers`. Those are the images that "
    "need no action.",
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
            *_find_odd_fields(policy),
            *find_overruled(policy, before),
            *find_disagreements(policy, before),
        ]
        findings += [LintFinding(policy=policy.name, reason=reason) for reason in policy_reasons]
    # `sorted` is stable: within the two groups the order of the policies stays.
    denying = {policy.name for policy in policies.all if _requires_class(policy)}
    no_class = reasons.RUNTIME_CLASS_NOT_FOUND
    return tuple(sorted(findings, key=lambda item: not (item.policy in denying and item.reason.code is no_class)))


def _requires_class(policy: PodPolicy) -> bool:
    """Returns whether pods without the policy's RuntimeClass are denied."""
    required = required_actions(policy.spec.actions)
    return policy.spec.enabled and policy.spec.mode == "apply" and runtime_class.ACTION.name in required


def _find_inactive(policy: PodPolicy) -> Iterator[Reason]:
    if not policy.spec.enabled:
        yield SWITCHED_OFF("`enabled` of the policy is false")
    elif policy.spec.rollout == 0:
        yield NO_SHARE("`rollout` of the policy is 0%")


def _find_missing_objects(policy: PodPolicy, facts: ClusterFacts | None) -> Iterator[Reason]:
    """Yields a finding for each object that an action names and that does not exist in the cluster."""
    if facts is None:
        return
    terms = read_terms(policy)
    for action, settings in iterate_actions(policy.spec.actions):
        yield from action.find_missing(settings, terms, facts)


def _find_odd_fields(policy: PodPolicy) -> Iterator[Reason]:
    terms = read_terms(policy)
    for action, settings in iterate_actions(policy.spec.actions):
        yield from action.find_odd(settings, terms)
    yield from find_odd_conditions(policy)


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
