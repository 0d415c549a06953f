"""A policy in words: whom it means, and what it does."""

from collections.abc import Iterator

from trimtab.policy.actions.placement import NodeLabel, Placement, shown
from trimtab.policy.actions.requests import Request, Requests
from trimtab.policy.document import Actions, Conditions, Match, PodPolicy


def whom(policy: PodPolicy) -> list[str]:
    """Every condition as a phrase; one phrase where there is none."""
    match: Match = policy.spec.match
    found = list(_conditions(match)) or ["every pod that is not always left alone"]
    found += [f"but not: {'; '.join(_conditions(excluded))}" for excluded in match.exclude]
    return found


def _conditions(conditions: Conditions) -> Iterator[str]:
    spaces = conditions.namespaces
    if spaces is not None:
        if spaces.include:
            yield f"namespaces {', '.join(spaces.include)}"
        if spaces.exclude:
            yield f"not in namespaces {', '.join(spaces.exclude)}"
        if spaces.selector is not None:
            yield "namespaces with certain labels"
    for key, value in (conditions.pod_labels or {}).items():
        yield f"pods labelled {key}={value}"
    if conditions.pod_selector is not None:
        yield "pods with certain labels"
    if conditions.owners:
        yield f"owned by {' or '.join(conditions.owners)}"
    if conditions.containers is not None:
        kinds = conditions.containers
        if kinds.names or kinds.roles or kinds.images:
            yield "containers " + ", ".join((*kinds.names, *kinds.roles, *kinds.images))
        if kinds.not_images:
            yield f"images other than {', '.join(kinds.not_images)}"
    if conditions.runtime_classes:
        yield f"RuntimeClass {' or '.join(conditions.runtime_classes)}"
    if conditions.priority_classes:
        yield f"PriorityClass {' or '.join(conditions.priority_classes)}"
    if conditions.vpa is not None:
        yield f"{conditions.vpa} by a VerticalPodAutoscaler"
    if conditions.hpa == "utilization":
        yield "scaled by use relative to requests (HorizontalPodAutoscaler)"
    elif conditions.hpa is not None:
        yield "not scaled by use relative to requests"


def what(policy: PodPolicy) -> list[str]:
    """Every action as a phrase."""
    return list(_actions(policy.spec.actions))


def _actions(actions: Actions) -> Iterator[str]:
    if actions.runtime_class is not None:
        yield f"RuntimeClass {actions.runtime_class.name}" + _replacing(actions.runtime_class.override)
    if actions.overhead is not None:
        yield f"stray overhead: {actions.overhead.stray}; contradicting: {actions.overhead.contradicting}"
    if actions.requests is not None:
        yield from _requests(actions.requests)
    if actions.limits is not None:
        for resource in ("cpu", "memory"):
            rule = getattr(actions.limits, resource)
            if rule is not None:
                yield f"{resource} limit: {rule}"
    if actions.placement is not None:
        yield from _placement(actions.placement)
    if actions.safe_to_evict_volumes is not None:
        yield f"volumes {', '.join(actions.safe_to_evict_volumes.volumes)} do not keep a node alive"
    if actions.priority_class is not None:
        yield f"PriorityClass {actions.priority_class.name}" + _replacing(actions.priority_class.override)
    if actions.topology_spread is not None:
        for spread in actions.topology_spread.constraints:
            yield f"spread over {spread.topology_key}, skew {spread.max_skew}, {spread.when_unsatisfiable}"
    for name, added in (("label", actions.labels), ("annotation", actions.annotations)):
        if added is not None:
            for key, value in added.add.items():
                yield f"{name} {key}={value}" + _replacing(added.override)


def _replacing(override: bool) -> str:
    return ", replacing another" if override else ""


def _requests(requests: Requests) -> Iterator[str]:
    for resource in ("cpu", "memory"):
        rule: Request | None = getattr(requests, resource)
        if rule is not None:
            yield f"{resource} request: {_rule(rule)}"
    for special in requests.containers:
        means = ", ".join((*special.names, *special.roles, *special.images)) or "every container"
        for resource in ("cpu", "memory"):
            rule = getattr(special, resource)
            if rule is not None:
                yield f"{resource} request of {means}: {_rule(rule)}"


def _rule(rule: Request) -> str:
    source = {"usage": "from usage", "policy": str(rule.otherwise), "limit": f"{rule.percent}% of the limit"}[
        rule.from_
    ]
    parts = [source]
    if rule.from_ == "usage" and rule.otherwise:
        parts.append(f"{rule.otherwise} until that is known")
    bounds = [f"{word} {value}" for word, value in (("at least", rule.min), ("at most", rule.max)) if value]
    where = "where none is written" if rule.when == "missing" else "replacing what is written"
    return ", ".join([*parts, *bounds, where])


def _placement(placement: Placement) -> Iterator[str]:
    for label in placement.require:
        yield f"needs node label {_label(label)}"
    for label in placement.prefer:
        yield f"prefers node label {_label(label)}"
    for key, value in (placement.node_selector or {}).items():
        yield f"node selector {key}={value}"
    for taint in placement.tolerate:
        yield f"tolerates taint {taint.key or '*'}={taint.value or '*'}:{taint.effect or '*'}"


def _label(label: NodeLabel) -> str:
    return f"{label.label} {shown(label.requirement)}"
