"""Finds the fields for which two policies want different values, among all actions and the containers that both
policies name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

from pydantic.alias_generators import to_camel

from trimtab.policy.actions.labels import Annotations, Labels
from trimtab.policy.actions.limits import limit_rules
from trimtab.policy.actions.overhead import OverheadAction
from trimtab.policy.actions.placement import format_requirement
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.actions.request_fields import ContainerRequests, RequestRule, RequestsAction, request_rules
from trimtab.policy.actions.safe_to_evict_volumes import LOCAL_VOLUMES
from trimtab.policy.podpolicy import Actions

OWN_WORDS_OF_OVERHEAD = ("strip", "deny")
"""The values of `stray` and `contradicting` with which an overhead action decides. With `warn` and `keep`, another
policy may still decide."""


@dataclass(frozen=True, slots=True, order=True)
class ValueDifference:
    """One field with the value that each of two policies wants."""

    field: str
    own: str
    other: str


def find_differences(own: Actions, other: Actions) -> list[ValueDifference]:
    """Returns the fields that both policies decide, and for which they want different values."""
    own_values, other_values = wanted_values(own), wanted_values(other)
    differences = [
        ValueDifference(field, own_values[field], other_values[field])
        for field in own_values.keys() & other_values.keys()
        if own_values[field] != other_values[field]
    ]
    if own.requests is not None and other.requests is not None:
        differences += _container_differences(own.requests, other.requests)
    return sorted(differences)


def wanted_values(actions: Actions) -> Mapping[str, str]:
    """Returns field → the value that the actions want, as text, for fields that only one policy can decide. Rules for
    single containers are left out."""
    values = dict[str, str]()
    if actions.requests is not None:
        values |= {f"requests.{resource}": _describe_rule(rule) for resource, rule in request_rules(actions.requests)}
        values |= {f"requests.{name}": str(pieces) for name, pieces in (actions.requests.extended or {}).items()}
    if actions.limits is not None:
        values |= {f"limits.{resource}": rule for resource, rule in limit_rules(actions.limits)}
    for field, choice in (
        ("runtimeClassName", actions.runtime_class),
        ("priorityClassName", actions.priority_class),
        ("schedulerName", actions.scheduler_name),
    ):
        if choice is not None:
            values[field] = choice.name
    values |= dict(_volume_values(actions))
    if actions.overhead is not None:
        values |= dict(_overhead_values(actions.overhead))
    if actions.termination_grace_period is not None:
        bounds = actions.termination_grace_period
        values["terminationGracePeriodSeconds"] = f"{bounds.min_seconds or 0} to {bounds.max_seconds or 'any'}"
    if actions.topology_spread is not None:
        for spread in actions.topology_spread.constraints:
            text = f"maxSkew {spread.max_skew}, {spread.when_unsatisfiable}"
            values[f"topologySpreadConstraints[{spread.topology_key}]"] = text + (
                f", minDomains {spread.min_domains}" if spread.min_domains else ""
            )
    for field, added in (("labels", actions.labels), ("annotations", actions.annotations)):
        if added is not None:
            values |= dict(_added_values(field, added))
    if actions.placement is not None:
        values |= dict(_placement_values(actions.placement))
    return values


def _volume_values(actions: Actions) -> Iterator[tuple[str, str]]:
    if actions.empty_dirs is not None:
        for medium in actions.empty_dirs.medium or ("Memory", "disk"):
            yield f"emptyDir.sizeLimit ({medium})", actions.empty_dirs.size_limit
    volumes = actions.safe_to_evict_volumes
    if volumes is not None:
        kinds = "emptyDir and hostPath" if volumes.host_paths else "emptyDir"
        yield f"annotations[{LOCAL_VOLUMES}]", f"{', '.join(volumes.volumes)} ({kinds})"


def _overhead_values(overhead: OverheadAction) -> Iterator[tuple[str, str]]:
    for name, word in (("stray", overhead.stray), ("contradicting", overhead.contradicting)):
        if word in OWN_WORDS_OF_OVERHEAD:
            yield f"overhead.{name}", word


def _added_values(field: str, added: Labels | Annotations) -> Iterator[tuple[str, str]]:
    for key, value in (added.add or {}).items():
        yield f"{field}[{key}]", value
    if isinstance(added, Labels):
        for key, label in (added.from_namespace or {}).items():
            yield f"{field}[{key}]", f"from the namespace's label {label}"
        for key, listed in (added.from_pod or {}).items():
            yield f"{field}[{key}]", f"from the pod's label {listed.label}"


def _placement_values(placement: PlacementAction) -> Iterator[tuple[str, str]]:
    for key, value in (placement.node_selector or {}).items():
        yield f"nodeSelector[{key}]", value
    for label in placement.require:
        yield f"require[{label.label}]", format_requirement(label.selector_requirement)
    for label in placement.prefer:
        weight = "default weight" if label.weight is None else f"weight {label.weight}"
        yield f"prefer[{label.label} {format_requirement(label.selector_requirement)}]", weight
    for taint in placement.tolerate:
        name = f"{taint.key or 'every taint'}={taint.value or ''}:{taint.effect or 'every effect'}"
        yield f"tolerations[{name}]", "without end" if taint.seconds is None else f"for {taint.seconds} s"


def _container_differences(own: RequestsAction, other: RequestsAction) -> Iterator[ValueDifference]:
    """Yields the resources for which a rule for single containers differs from a rule of the other action. Only rules
    that can apply to the same container are compared."""
    for a, b in ((x, y) for x in (None, *own.containers) for y in (None, *other.containers)):
        if (a is None and b is None) or not _can_share_container(a, b):
            continue
        own_rules = dict(request_rules(own if a is None else a))
        other_rules = dict(request_rules(other if b is None else b))
        for resource in own_rules.keys() & other_rules.keys():
            texts = _describe_rule(own_rules[resource]), _describe_rule(other_rules[resource])
            if texts[0] != texts[1]:
                yield ValueDifference(f"requests.{resource} of {_describe_containers(a or b)}", *texts)


def _can_share_container(a: ContainerRequests | None, b: ContainerRequests | None) -> bool:
    """Returns whether both rules can apply to the same container; None stands for the rule for all containers."""
    if a is None or b is None:
        return True
    return (
        can_meet_patterns(a.names, b.names)
        and can_meet_patterns(a.images, b.images)
        and (not a.roles or not b.roles or bool(set(a.roles) & set(b.roles)))
    )


def _describe_containers(rule: ContainerRequests | None) -> str:
    """Returns the containers of a rule, as in "containers proxy, istio-*"."""
    words = [*rule.names, *rule.roles, *rule.images] if rule is not None else []
    return f"containers {', '.join(words)}" if words else "all containers"


def can_meet_patterns(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Returns whether two lists of patterns can select the same name. An empty list selects everything."""
    return not a or not b or any(is_meeting(pattern, other_pattern) for pattern in a for other_pattern in b)


def is_meeting(a: str, b: str) -> bool:
    """Returns whether both patterns may match the same name. Two patterns with wildcards always may."""
    has_wildcards = [bool(set(pattern) & set("*?[")) for pattern in (a, b)]
    if all(has_wildcards):
        return True
    # A name without wildcards meets a pattern exactly where the pattern matches it.
    return fnmatchcase(a, b) if has_wildcards[1] else fnmatchcase(b, a)


def _describe_rule(rule: RequestRule) -> str:
    """Returns the settings of a rule that differ from their defaults."""
    defaults = {field.name: field.default for field in fields(rule)}
    settings = [
        f"{to_camel(name.strip('_'))}: {getattr(rule, name)}"
        for name in defaults
        if getattr(rule, name) != defaults[name]
    ]
    return "{" + ", ".join(settings) + "}"
