"""Removes the limits of containers, or sets them to a multiple of the request."""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import limits_of
from trimtab.cluster.runtime_signs import LimitReader, UnknownRuntime
from trimtab.policy import autoscalers, reasons
from trimtab.policy.actions.action import (
    WRITTEN,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_match_fields,
    no_missing_objects,
    no_odd_values,
)
from trimtab.policy.cel import NotExpressible, cel_string
from trimtab.policy.cel_patches import AmountPatch
from trimtab.policy.cel_pod import ALL_CONTAINERS
from trimtab.policy.field_types import Required, policy_type
from trimtab.policy.limit_readers import find_memory_volume_reader, find_reference, find_runtime_use
from trimtab.policy.pod_changes import PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

_RULE = re.compile(r"remove|keep|request(\s*[x×*]\s*(\d+(\.\d+)?))?")


def _check_rule(value: Any) -> str:
    match = _RULE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("remove, keep, request, or request x 1.5")
    # `Fraction` reads "1.1" exactly; a float would not.
    if match[2] is not None and Fraction(match[2]) < 1:
        raise ValueError("a factor of at least 1 (Kubernetes refuses a limit below the request)")
    return str(value)


LimitRule = Annotated[
    str, BeforeValidator(_check_rule), WithJsonSchema({"type": "string", "pattern": f"^({_RULE.pattern})$"})
]
"""`remove`: no limit. `keep`: the limit is not changed, and no later policy may change it. `request`: equal to the
request. `request x 1.5`: the request times a factor of at least 1."""


@policy_type
class LimitsAction:
    """What happens to the limits of containers."""

    cpu: LimitRule | None = None
    """`remove`, `keep`, `request`, or `request x 1.5`."""
    memory: LimitRule | None = None
    """`remove`, `keep`, `request`, or `request x 1.5`."""
    ephemeral_storage: Annotated[LimitRule | None, Field(alias="ephemeral-storage")] = None
    """The rule for the limit of ephemeral storage, with the same values as for cpu. The kubelet evicts a pod that
    writes more than its limit."""
    unknown_runtime: Literal["remove", "keep"] = "remove"
    """What `remove` does to the limits of cpu and memory of a container if nothing in the pod shows its language
    runtime: `remove` or `keep`. A limit that a known runtime reads always stays, and so does each limit of cpu or
    memory of a pod that runs on Windows."""
    required: Required = False


def limit_rules(settings: LimitsAction) -> Iterator[tuple[str, str]]:
    """Yields (resource, rule) for each resource that has a rule."""
    if settings.cpu is not None:
        yield "cpu", settings.cpu
    if settings.memory is not None:
        yield "memory", settings.memory
    if settings.ephemeral_storage is not None:
        yield "ephemeral-storage", settings.ephemeral_storage


def propose_changes(settings: LimitsAction, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes a limit for each container and resource that no earlier policy has decided."""
    rules = tuple(limit_rules(settings))
    for place in places:
        for resource, rule in rules:
            _propose_limit(settings, rule, changes, place, resource)


def find_unmet_field(settings: LimitsAction, result: PodBeforeAndAfter) -> str | None:
    """Returns the first limit that is not what the rule demands, or None if there is none."""
    limits_before = {place.name: limits_of(place.container.resources) for place in result.before.container_refs}
    for place in result.places:
        for resource, rule in limit_rules(settings):
            after, before = (
                limits_of(place.container.resources).get(resource),
                limits_before.get(place.name, {}).get(resource),
            )
            is_unmet = (
                (rule == "remove" and after is not None)
                or (rule == "keep" and after != before)
                or (rule.startswith("request") and after is None)
            )
            if is_unmet:
                return f"{place.name}.limits.{resource}"
    return None


# Kubernetes, concepts/configuration/windows-resource-management.
_NEEDED_ON_WINDOWS = {
    "cpu": "no container has a guaranteed share of the cpu",
    "memory": "the system does not end a container when memory runs out, but slows down the whole node",
}
"""Resource → why its limit stays on a pod that runs on Windows."""
_NOT_SHOWN = "nothing in the pod shows which runtime container"


def _reason_of_reader(reader: LimitReader, container: ContainerRef, resource: str, limit: str) -> Reason:
    return reasons.CONTAINER_READS_LIMIT(
        f"the {resource} limit ({limit}) of container {container.container.name} stays, because {reader} reads it"
    )


def _propose_limit(
    settings: LimitsAction, rule: str, changes: PodChanges, container: ContainerRef, resource: str
) -> None:
    """Proposes the limit of one container and resource, or records why it is not changed."""
    field = f"{container.name}.limits.{resource}"
    author_limit = limits_of(container.container.resources).get(resource)
    if autoscalers.is_boosting_cpu(changes.subject, container, resource):
        changes.leave_unchanged(
            field, reasons.VPA_BOOSTS(f"the VPA raises the cpu of {container.container.name} during its start")
        )
        return
    # `keep` decides the field, too, so that no later policy changes the limit.
    first = changes.decide_first(field, rule)
    if not first or rule == "keep" or (rule == "remove" and author_limit is None):
        return
    is_removal = rule == "remove"
    reason = (
        reasons.LIMIT_REMOVED("the policy removes the limit") if is_removal else reasons.POLICY_SAYS(f"limit = {rule}")
    )
    if author_limit is not None and not settings.required:
        if is_removal and resource in _NEEDED_ON_WINDOWS and changes.subject.is_windows:
            sentence = (
                f"the {resource} limit ({author_limit}) of container {container.container.name} stays: on Windows, "
            )
            changes.leave_unchanged(field, reasons.WINDOWS(f"{sentence}{_NEEDED_ON_WINDOWS[resource]}"))
            return
        reader = find_reference(changes.subject, container, resource)
        if reader is None and is_removal and resource == "memory":
            # Those of the draft: the action `emptyDirs` may have set a size.
            reader = find_memory_volume_reader(changes.spec.volumes)
        use = find_runtime_use(changes.subject, container, resource) if reader is None and is_removal else reader
        if isinstance(use, LimitReader):
            changes.leave_unchanged(field, _reason_of_reader(use, container, resource, str(author_limit)))
            return
        if isinstance(use, UnknownRuntime):
            if settings.unknown_runtime == "keep":
                changes.leave_unchanged(field, reasons.RUNTIME_UNKNOWN(f"{_NOT_SHOWN} {container.container.name} has"))
                return
            reason = reasons.LIMIT_REMOVED(f"the policy removes the limit; {_NOT_SHOWN} {container.container.name} has")
    changes.limits[container, resource] = ResourceRequest(
        place=container,
        resource=resource,
        value=None,
        factor=limit_factor(rule),
        policy=changes.policy,
        reason=reason,
        changes_guaranteed=changes.changes_guaranteed,
    )


@lru_cache(maxsize=256)
def limit_factor(rule: str) -> str | None:
    """Returns the factor in a rule: "1.5" for "request x 1.5", "1" for "request"; None for `remove` and `keep`."""
    match = _RULE.fullmatch(rule)
    return (match[2] or "1") if match and rule.startswith("request") else None


def _describe(settings: LimitsAction) -> Iterable[str]:
    return (f"sets the {resource} limit: {limit}" for resource, limit in limit_rules(settings))


def _list_values(settings: LimitsAction) -> FieldValues:
    return ((f"limits.{resource}", rule) for resource, rule in limit_rules(settings))


def _list_decided(settings: LimitsAction) -> dict[str, int]:
    return {f"limits.{resource}": WRITTEN for resource, _ in limit_rules(settings)}


def _require(settings: LimitsAction, terms: PolicyTerms) -> FieldValues:
    if terms.match.containers is not None:
        raise NotExpressible(
            "spec.actions.limits: with `match.containers` this action applies only to some containers, which CEL "
            "cannot check"
        )
    for resource, rule in limit_rules(settings):
        if rule == "keep":
            raise NotExpressible(f"spec.actions.limits.{resource}: CEL does not know the former limit")
        has_limit = f"has(c.resources) && has(c.resources.limits) && {cel_string(resource)} in c.resources.limits"
        expression = f"!({has_limit})" if rule == "remove" else has_limit
        yield f"limits.{resource}", f"{ALL_CONTAINERS}.all(c, {expression})"


def _compile(settings: LimitsAction, terms: PolicyTerms) -> Iterable[AmountPatch]:
    # Only a compiler needs it: commands that compile nothing start without.
    from trimtab.policy.actions.limits_in_cel import compile_limits

    return compile_limits(settings, terms)


ACTION = Action(
    name="limits",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=_list_decided,
    list_match_fields=no_match_fields,
    find_odd=no_odd_values,
    find_missing=no_missing_objects,
    compile=_compile,
    require=_require,
    order_matters=False,
    affects=frozenset({"nodes", "quotas"}),
)
