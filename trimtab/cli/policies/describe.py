"""Describes a policy in sentences: the pods that it matches, and its actions."""

from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from trimtab.policy.actions.limits import limit_rules
from trimtab.policy.actions.placement import format_requirement
from trimtab.policy.actions.placement_fields import NodeLabel, PlacementAction
from trimtab.policy.actions.request_fields import (
    ContainerRequests,
    RequestRule,
    RequestsAction,
    ResourceRequestRule,
    request_rules,
)
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
    return [*_action_phrases(policy.spec.actions), *denies]


def _action_phrases(actions: Actions) -> Iterator[str]:
    if actions.runtime_class is not None:
        yield f"sets the RuntimeClass {actions.runtime_class.name}" + _override_suffix(actions.runtime_class.override)
    if actions.overhead is not None:
        yield (
            f"removes or keeps pod overhead: without a RuntimeClass, {actions.overhead.stray}; if it contradicts "
            f"the RuntimeClass, {actions.overhead.contradicting}"
        )
    if actions.requests is not None:
        yield from _request_phrases(actions.requests)
    if actions.limits is not None:
        for resource, limit in limit_rules(actions.limits):
            yield f"sets the {resource} limit: {limit}"
    if actions.placement is not None:
        yield from _placement_phrases(actions.placement)
    if actions.safe_to_evict_volumes is not None:
        yield (
            f"marks the volumes {', '.join(actions.safe_to_evict_volumes.volumes)}, so that they do not prevent "
            "an eviction"
        )
    if actions.priority_class is not None:
        yield f"sets the PriorityClass {actions.priority_class.name}" + _override_suffix(
            actions.priority_class.override
        )
    if actions.topology_spread is not None:
        for spread in actions.topology_spread.constraints:
            yield (
                f"spreads pods over the values of {spread.topology_key} (maxSkew {spread.max_skew}, "
                f"{spread.when_unsatisfiable})"
            )
    if actions.scheduler_name is not None:
        yield f"sets the scheduler {actions.scheduler_name.name}" + _override_suffix(actions.scheduler_name.override)
    if actions.termination_grace_period is not None:
        grace_period = actions.termination_grace_period
        bounds = (("at least", grace_period.min_seconds), ("at most", grace_period.max_seconds))
        seconds_text = ", ".join(f"{word} {value} s" for word, value in bounds if value is not None)
        yield f"sets the termination grace period: {seconds_text}"
    if actions.empty_dirs is not None:
        yield f"sets the size limit {actions.empty_dirs.size_limit} on emptyDir volumes without a size limit"
    for name, pairs in (("label", actions.labels), ("annotation", actions.annotations)):
        if pairs is not None:
            for key, value in (pairs.add or {}).items():
                yield f"{name} {key}={value}" + _override_suffix(pairs.override)
    if actions.labels is not None:
        for key, label in (actions.labels.from_namespace or {}).items():
            yield f"sets the label {key} to the value of the namespace's label {label}" + _override_suffix(
                actions.labels.override
            )
        for key, pod_label in (actions.labels.from_pod or {}).items():
            phrase = (
                f"sets the label {key} to the value of the pod's label {pod_label.label}, if the value is one of "
                f"{', '.join(pod_label.among)}"
            )
            yield phrase + _override_suffix(actions.labels.override)


def _override_suffix(override: bool) -> str:
    return ", and replaces another value" if override else ""


def _request_phrases(requests: RequestsAction) -> Iterator[str]:
    yield from _container_request_phrases(requests, "")
    for special in requests.containers:
        means = ", ".join((*special.names, *special.roles, *special.images)) or "every container"
        yield from _container_request_phrases(special, f" of {means}")


def _container_request_phrases(settings: RequestsAction | ContainerRequests, container_suffix: str) -> Iterator[str]:
    for resource, rule in request_rules(settings):
        yield f"sets the {resource} request{container_suffix}: {_describe_rule(rule)}"
    for resource, count in (settings.extended or {}).items():
        yield (
            f"sets {resource}{container_suffix} to {count}, as request and limit, if the container has no "
            "request for it"
        )


def _describe_rule(rule: RequestRule) -> str:
    source = {
        "usage": "from the usage of the container",
        "policy": str(rule.otherwise),
        "limit": f"{rule.percent}% of the limit",
        "request": "its own request" if rule.percent == 100 else f"{rule.percent}% of its own request",
    }[rule.from_]
    parts = [source]
    if rule.from_ == "usage" and rule.otherwise:
        only_missing = " if the container has no request" if rule.when == "always" else ""
        parts.append(f"{rule.otherwise} until usage is known{only_missing}")
    bounds = [f"{word} {value}" for word, value in (("at least", rule.min), ("at most", rule.max)) if value]
    if isinstance(rule, ResourceRequestRule):
        shares = (("at least", rule.min_percent), ("at most", rule.max_percent))
        bounds += [f"{word} {share}% of its own request" for word, share in shares if share is not None]
    if rule.from_ == "request":
        return ", ".join([*parts, *bounds])
    if rule.when == "missing":
        condition = "only if the container has no request"
    else:
        condition = "replaces the container's own request" + (" once usage is known" if rule.from_ == "usage" else "")
    return ", ".join([*parts, *bounds, condition])


def _placement_phrases(placement: PlacementAction) -> Iterator[str]:
    for label in placement.require:
        yield f"requires the node label {_describe_label(label)}"
    if placement.require_any:
        groups = (" and ".join(map(_describe_label, group)) for group in placement.require_any)
        yield f"requires one of these node labels: {'; or '.join(groups)}"
    for label in placement.prefer:
        yield f"prefers the node label {_describe_label(label)}"
    for key, value in (placement.node_selector or {}).items():
        yield f"sets the node selector {key}={value}"
    for taint in placement.tolerate:
        value = taint.value or "*"
        if taint.value_from_namespace:
            value = f"(the namespace's label {taint.value_from_namespace})"
        elif taint.value_from_pod:
            value = f"(the pod's label {taint.value_from_pod}, one of {', '.join(taint.among)})"
        yield f"tolerates the taint {taint.key or '*'}={value}:{taint.effect or '*'}"


def _describe_label(label: NodeLabel) -> str:
    if label.in_namespace_label is not None:
        return f"{label.label} with the value of the namespace's label {label.in_namespace_label}"
    if label.in_pod_label is not None:
        return f"{label.label} with the value of the pod's label {label.in_pod_label}, one of {', '.join(label.among)}"
    return f"{label.label} {format_requirement(label.selector_requirement)}"
