"""Removes the limits of containers, or sets them to a multiple of the request.

A limit that something in the pod reads stays: the downward API, the kubelet for a volume in memory, or the runtime in
the container. The pod of a review is decoded without environment variables and command lines, because most
decisions do not need them. Here they are decoded from the pod's own bytes, once, for the first limit that would be
removed.
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BeforeValidator, Field, WithJsonSchema

from trimtab.cluster.api.meta import UNSET, ApiObject, decode_part, value_or
from trimtab.cluster.api.pod import Container, ContainerSecurityContext, Pod, Volume, downward_items
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import limits_of
from trimtab.cluster.runtime_patterns import CPU, MEMORY
from trimtab.cluster.runtime_signs import (
    IndependentRuntime,
    LimitReader,
    LimitUse,
    RuntimeSign,
    UnknownRuntime,
    add_label_signs,
    container_signs,
    find_limit_use,
)
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
from trimtab.policy.decision_reads import ContainerSigns
from trimtab.policy.field_types import Required, policy_type
from trimtab.policy.pod_changes import PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext

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
    if autoscalers.is_boosting_cpu(changes.pod_context, container, resource):
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
        if is_removal and resource in _NEEDED_ON_WINDOWS and changes.pod_context.is_windows:
            sentence = (
                f"the {resource} limit ({author_limit}) of container {container.container.name} stays: on Windows, "
            )
            changes.leave_unchanged(field, reasons.WINDOWS(f"{sentence}{_NEEDED_ON_WINDOWS[resource]}"))
            return
        reader = find_reference(changes.pod_context, container, resource)
        if reader is None and is_removal and resource == "memory":
            # Those of the draft: the action `emptyDirs` may have set a size.
            reader = find_memory_volume_reader(changes.spec.volumes)
        use = find_runtime_use(changes.pod_context, container, resource) if reader is None and is_removal else reader
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


def _list_differences(settings: LimitsAction) -> Iterator[str]:
    yield "namespace-rules"
    if any(rule == "remove" for _, rule in limit_rules(settings)):
        yield from ("zero-request", "read-limit", "applied")


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
    list_differences=_list_differences,
)


LimitField = tuple[str, str]
"""(container, field), such as ("app", "limits.memory"). Container names are unique within a pod."""


def env_limit_fields(container: Container) -> tuple[LimitField, ...]:
    """Returns the limits to which the container's environment variables refer, of itself or of another container."""
    references = [env.value_from.resource_field_ref for env in container.env if env.value_from is not None]
    # A reference without a container's name means its own container (core/v1 ResourceFieldRef).
    fields = [(field.container_name or container.name, field.resource) for field in references if field is not None]
    return tuple([field for field in fields if field[1].startswith("limits.")])


def volume_limit_fields(volumes: Iterable[Volume]) -> Iterator[LimitField]:
    """Yields the limits that files of these volumes show."""
    for volume in volumes:
        for item in downward_items(volume):
            field = item.resource_field_ref
            if field is not None and field.resource.startswith("limits."):
                yield field.container_name, field.resource


def find_reference_reader(
    limit: LimitField, volume_fields: Iterable[LimitField], env_fields: Iterable[LimitField]
) -> LimitReader | None:
    """Returns what reads this limit through the downward API, or None if nothing does.

    `volume_fields` and `env_fields`: the limits to which the volumes and the environment variables of the pod refer.
    """
    if limit in volume_fields:
        place = "a volume"
    elif limit in env_fields:
        place = "an environment variable"
    else:
        return None
    return LimitReader("the downward API", f"resourceFieldRef: {limit[1]} in {place}")


# Kubernetes, pkg/volume/emptydir/empty_dir.go, calculateEmptyDirMemorySize: the memory that the node can allocate, or
# less if the pod has a limit or the volume has a size limit.
def find_memory_volume_reader(volumes: Iterable[Volume]) -> LimitReader | None:
    """Returns the kubelet as the reader of the pod's memory limits if it gives a volume in memory its size by them, or
    None if there is no such volume.

    Without the limit of a single container, the pod has no limit, and the volume may fill the memory of the node. A
    volume with a size limit never grows beyond that.
    """
    for volume in volumes:
        empty_dir = value_or(volume.empty_dir, None)
        if empty_dir is not None and empty_dir.medium == "Memory" and empty_dir.size_limit in (UNSET, None):
            return LimitReader(
                "the kubelet",
                f"emptyDir {volume.name} in memory without a sizeLimit",
                without_limit="the volume could grow to the memory of the node",
                instead=f"set a sizeLimit for emptyDir {volume.name}",
            )
    return None


def find_reference(pod_context: PodContext, container: ContainerRef, resource: str) -> LimitReader | None:
    """Returns what reads this limit through the downward API: an environment variable of any container, or a volume."""
    limit = container.container.name, f"limits.{resource}"
    return find_reference_reader(limit, pod_context.compute_once(_volume_fields), pod_context.compute_once(_env_fields))


def find_runtime_use(pod_context: PodContext, container: ContainerRef, resource: str) -> LimitUse:
    """Returns whether the container's runtime reads this limit. No runtime reads a limit of ephemeral storage."""
    if resource not in (CPU, MEMORY):
        return IndependentRuntime("")
    return find_limit_use(pod_context.compute_once(_runtimes_by_container).get(container.container.name, ()), resource)


def _runtimes_by_container(pod_context: PodContext) -> dict[str, tuple[RuntimeSign, ...]]:
    # Operators name a pod's language in annotations, too.
    mappings = pod_context.labels, pod_context.annotations
    return {signs.name: add_label_signs(signs.runtimes, *mappings) for signs in pod_context.compute_once(_all_signs)}


def _all_signs(pod_context: PodContext) -> tuple[ContainerSigns, ...]:
    signs = read_container_signs(pod_context.pod, pod_context.body)
    if pod_context.reads is not None:
        pod_context.reads.container_signs.add(signs)
    return signs


class _TextContainer(Container, frozen=True, kw_only=True):
    security_context: ContainerSecurityContext | None = msgspec.field(default=None, name="-")


class _TextSpec(ApiObject, frozen=True, kw_only=True):
    containers: tuple[_TextContainer, ...] = ()
    init_containers: tuple[_TextContainer, ...] = ()


class _TextPod(ApiObject, frozen=True, kw_only=True):
    """A pod with those fields only that may show a runtime."""

    spec: _TextSpec = _TextSpec()


_text_decoder = msgspec.json.Decoder(_TextPod)


def _read_containers(body: bytes) -> tuple[Container, ...]:
    """Returns the containers of the pod with what their environment variables and command lines show."""
    spec = decode_part(_text_decoder, _TextPod, body).spec
    return (*spec.containers, *spec.init_containers)


def read_container_signs(pod: Pod, body: bytes) -> tuple[ContainerSigns, ...]:
    """Returns what the environment variables, command lines and images of the pod's containers show.

    body: the pod's own bytes; if they are empty, `pod` itself has been decoded with its variables and command lines.
    """
    containers = _read_containers(body) if body else (*pod.spec.containers, *pod.spec.init_containers)
    return tuple([_signs_of(container) for container in containers])


def _signs_of(container: Container) -> ContainerSigns:
    signs = container_signs(container.runtime_signs, container.image)
    return ContainerSigns(container.name, env_limit_fields(container), signs)


def _env_fields(pod_context: PodContext) -> frozenset[LimitField]:
    return frozenset([field for signs in pod_context.compute_once(_all_signs) for field in signs.limit_fields])


def _volume_fields(pod_context: PodContext) -> frozenset[LimitField]:
    return frozenset(volume_limit_fields(pod_context.pod.spec.volumes))
