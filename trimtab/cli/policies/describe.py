"""Describes a policy in sentences: the pods that it matches, and its actions."""

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from trimtab.policy.all_actions import iterate_actions
from trimtab.policy.conditions import AmountCondition, Conditions, Match
from trimtab.policy.podpolicy import Actions, PodPolicy
from trimtab.policy.required_action_rules import required_actions


def describe_match(policy: PodPolicy) -> list[str]:
    """Returns a text for each condition of the policy; if it has none, one text that it matches every pod."""
    match: Match = policy.spec.match
    phrases = list(_describe_conditions(match)) or ["every pod, except in the namespaces that are always excluded"]
    phrases += [f"except: {'; '.join(_describe_conditions(excluded))}" for excluded in match.exclude]
    return phrases


def _describe_conditions(conditions: Conditions) -> Iterator[str]:
    spaces = conditions.namespaces
    if spaces is not None:
        if spaces.include:
            yield f"namespaces {', '.join(spaces.include)}"
        if spaces.exclude:
            yield f"all namespaces except {', '.join(spaces.exclude)}"
        if spaces.selector is not None:
            yield "pods in namespaces whose labels the policy's selector matches"
    for key, value in (conditions.pod_labels or {}).items():
        yield f"pods labelled {key}={value}"
    if conditions.pod_selector is not None:
        yield "pods whose labels the policy's selector matches"
    if conditions.owners:
        yield f"pods owned by {' or '.join(conditions.owners)}"
    if conditions.containers is not None:
        kinds = conditions.containers
        if kinds.names or kinds.roles or kinds.images:
            yield "containers " + ", ".join((*kinds.names, *kinds.roles, *kinds.images))
        if kinds.not_images:
            yield f"containers with images other than {', '.join(kinds.not_images)}"
        for resource, amount in (kinds.requests or {}).items():
            yield f"containers that request {resource} {_describe_amount(amount)}"
    if conditions.runtime_classes:
        yield f"pods with RuntimeClass {' or '.join(conditions.runtime_classes)}"
    if conditions.priority_classes:
        yield f"pods with PriorityClass {' or '.join(conditions.priority_classes)}"
    for resource, amount in (conditions.requests or {}).items():
        yield f"pods that request {resource} {_describe_amount(amount)}"
    for key, value in (conditions.annotations or {}).items():
        yield f"pods annotated {key}={value}"
    if conditions.service_accounts:
        yield f"pods with ServiceAccount {' or '.join(conditions.service_accounts)}"
    if conditions.vpa is not None:
        yield f"pods {conditions.vpa} by a VerticalPodAutoscaler"
    if conditions.hpa == "utilization":
        yield "pods that a HorizontalPodAutoscaler scales on utilization"
    elif conditions.hpa is not None:
        yield "pods that no HorizontalPodAutoscaler scales on utilization"


def _describe_amount(amount: AmountCondition) -> str:
    if amount.absent:
        return "not at all"
    bounds = (("at least", amount.at_least), ("below", amount.below))
    return " and ".join(f"{word} {value}" for word, value in bounds if value) or "at all"


def describe_actions(policy: PodPolicy) -> list[str]:
    """Returns a text for each action, and one for the denial of pods if an action is required."""
    required = required_actions(policy.spec.actions)
    denies = [f"denies a pod that would run without {' or '.join(map(to_camel, required))}"] if required else []
    # As the policy language lists the actions, not as they are applied.
    order = list(Actions.__dataclass_fields__)
    actions = sorted(iterate_actions(policy.spec.actions), key=lambda one: order.index(one[0].name))
    phrases = (phrase for action, settings in actions for phrase in action.describe(settings))
    return [*phrases, *denies]
