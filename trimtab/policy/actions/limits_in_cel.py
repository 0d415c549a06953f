"""Compiles the limits action to CEL.

A limit is removed or raised only if the parameters say that the namespace has neither a LimitRange nor a quota, which
could refuse the change.
"""

from collections.abc import Iterator
from fractions import Fraction

from trimtab.policy.actions.action import PolicyTerms
from trimtab.policy.actions.empty_dirs import gives_memory_sizes
from trimtab.policy.actions.limits import LimitsAction, limit_factor, limit_rules
from trimtab.policy.actions.requests_in_cel import compiled_storage_request
from trimtab.policy.cel import NotExpressible, cel_string
from trimtab.policy.cel_patches import REMOVE, AmountPatch
from trimtab.policy.cel_pod import ALL_CONTAINERS
from trimtab.policy.compiled.amounts import UNBOUNDED, amount_text, format_number, has_amount, needs_bounds, number_of
from trimtab.policy.compiled.runtime_expressions import runtime_reads


def compile_limits(settings: LimitsAction, terms: PolicyTerms) -> Iterator[AmountPatch]:
    """Yields the new limits. Raises NotExpressible with the name of the field."""
    sizes_memory_volumes = gives_memory_sizes(terms.settings_by_action.get("empty_dirs"))
    for resource, rule in limit_rules(settings):
        where = f"spec.actions.limits.{resource}"
        has_limit = has_amount("c", "limits", resource)
        if rule == "keep":
            continue
        if rule == "remove":
            if settings.unknown_runtime == "keep" and resource in ("cpu", "memory"):
                raise NotExpressible(
                    "spec.actions.limits.unknownRuntime: a compiled policy does not distinguish a runtime that reads "
                    "no limit from an unknown one"
                )
            # A request of zero next to the limit: without the limit the pod might be of class BestEffort.
            asked = f"quantity({amount_text('c', 'requests', resource)}).isGreaterThan(quantity('0'))"
            asks = f"{has_amount('c', 'requests', resource)} && {asked}"
            guards = [
                has_limit,
                UNBOUNDED,
                "!variables.applied",
                "!variables.guaranteed",
                *([] if settings.required or resource not in ("cpu", "memory") else ["!variables.windows"]),
                asks,
                f"!({_is_read(resource)})",
                *([f"!({_MEMORY_VOLUME})"] if resource == "memory" and not sizes_memory_volumes else []),
                f"!({runtime_reads(resource)})",
            ]
            yield _limit_patch(resource, f"({' && '.join(f'({g})' for g in guards)} ? {REMOVE} : '')")
            continue
        if resource != "ephemeral-storage":
            raise NotExpressible(
                f"{where}: a limit that follows the request needs the largest known usage, which CEL cannot read"
            )
        yield _limit_patch(resource, _following_limit(rule, resource, compiled_storage_request(terms)))


def _limit_patch(resource: str, text: str) -> AmountPatch:
    return AmountPatch(side="limits", resource=resource, text=text, problem_without_parameters=needs_bounds("limits"))


def _following_limit(rule: str, resource: str, gap: int) -> str:
    """Returns a CEL expression for the limit request × factor, which is never lower than the author's limit.
    `gap` is the request of a container without one."""
    factor = Fraction(limit_factor(rule) or "1")
    asked = number_of(amount_text("c", "requests", resource), resource)
    request = f"({has_amount('c', 'requests', resource)} ? {asked} : {gap})"
    wanted = f"{request} * {factor.numerator} / {factor.denominator}"
    limit = number_of(amount_text("c", "limits", resource), resource)
    is_lower = f"!({has_amount('c', 'limits', resource)}) || {limit} < {wanted}"
    guards = f"{UNBOUNDED} && !variables.applied && !({_is_read(resource)}) && {wanted} > 0 && ({is_lower})"
    return f"({guards} ? [{wanted}].map(n, {format_number('n', resource)})[0] : '')"


_MEMORY_VOLUME = (
    "has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.emptyDir) && has(v.emptyDir.medium) && "
    "v.emptyDir.medium == 'Memory' && !has(v.emptyDir.sizeLimit))"
)
"""A CEL expression that is true if the kubelet gives a volume in memory its size by the pod's memory limits."""


def _is_read(resource: str) -> str:
    """Returns a CEL expression that is true if a container or a volume reads this limit of the container `c` through
    the downward API."""
    name = cel_string(f"limits.{resource}")
    reference = ("has({0}.resourceFieldRef) && {0}.resourceFieldRef.resource == " + name).format
    other = "e.valueFrom.resourceFieldRef.containerName"
    own = f"(has({other}) && {other} != '' ? {other} : d.name) == c.name"
    reads = f"has(e.valueFrom) && {reference('e.valueFrom')} && {own}"
    env = f"{ALL_CONTAINERS}.exists(d, has(d.env) && d.env.exists(e, {reads}))"
    item = f"({reference('f')} && f.resourceFieldRef.containerName == c.name)"
    volumes = (
        f"has(object.spec.volumes) && object.spec.volumes.exists(v, (has(v.downwardAPI) && has(v.downwardAPI.items) && "
        f"v.downwardAPI.items.exists(f, {item})) || (has(v.projected) && has(v.projected.sources) && "
        f"v.projected.sources.exists(s, has(s.downwardAPI) && has(s.downwardAPI.items) && "
        f"s.downwardAPI.items.exists(f, {item}))))"
    )
    return f"({env}) || ({volumes})"
