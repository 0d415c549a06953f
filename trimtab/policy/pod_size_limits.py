"""Limits the size of pods on which Trimtab decides.

Users who may create pods may write very large ones, and admission reviews are decided one after the other. So Trimtab
does not decide on a pod that is far larger than any real one, because every other review would wait for it. Real pods
are far below every limit.

Costs are estimated from the lengths of lists and mappings, so that counting itself costs next to nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from trimtab.cluster.api.meta import UNSET, value_or
from trimtab.cluster.api.pod import Affinity, NodeSelectorTerm, Pod, PodSpec, Resources
from trimtab.cluster.resources import all_containers, limits_of, requests_of
from trimtab.policy import changed_annotation

# Of a pod as JSON. The API server allows all annotations of a pod together 256 KiB.
MAX_BYTES = 320 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSizeLimits:
    """The maximum number of each part that a pod may have, so that Trimtab decides on it."""

    containers: int = 100
    """Containers, including init containers and sidecars."""
    node_selector_keys: int = 256
    terms: int = 256
    """Terms of node affinity, pod affinity and pod anti-affinity, required and preferred."""
    tolerations: int = 256
    topology_spread_constraints: int = 256
    expressions: int = 1_000
    """Expressions in all terms of node affinity."""
    expression_values: int = 4_000
    resources: int = 1_000
    """Requests, limits and overhead: the number of amounts of all containers together."""
    ports: int = 2_000
    volumes: int = 2_000
    labels: int = 2_000
    annotations: int = 2_000
    owners: int = 500


LIMITS = PodSizeLimits()


@dataclass(frozen=True, slots=True)
class SizeExcess:
    """A part of a pod that is too large, so that Trimtab does not decide on the pod."""

    what: str
    count: int
    most: int

    def __str__(self) -> str:
        return f"the pod has {self.count} {self.what}, but Trimtab handles only pods with at most {self.most}"


def find_excess_bytes(raw: bytes) -> SizeExcess | None:
    """Returns the size of the pod's JSON and its limit if the JSON is too long to be parsed, otherwise None."""
    size = len(raw)
    # The annotation's bytes are searched, because a pod that may be too large must not be parsed to find out.
    if size <= MAX_BYTES or (size <= _with_tolerance(MAX_BYTES) and changed_annotation.ANNOTATION.encode() in raw):
        return None
    return SizeExcess("bytes of JSON", size, MAX_BYTES)


def find_excess(pod: Pod) -> SizeExcess | None:
    """Returns the first part of which the pod has too many, or None if Trimtab may decide on the pod.

    A pod with Trimtab's annotation may have a quarter more of each part: what policies add in the first call for a
    request must not change the result of the second call.
    """
    if _is_small(pod):
        return None
    for what, count, most in _count_parts(pod):
        if count > most and (
            count > _with_tolerance(most) or changed_annotation.ANNOTATION not in value_or(pod.metadata.annotations, {})
        ):
            return SizeExcess(what, count, most)
    return None


# Containers, and amounts and ports of each, up to which everything together is below every limit.
_MAX_UNCOUNTED = 16


def _is_small(pod: Pod) -> bool:
    """Returns whether the pod is so small that nothing needs to be counted. It uses plain comparisons, because every
    pod is tested and nearly every one is small."""
    spec, metadata = pod.spec, pod.metadata
    if (
        len(spec.containers) + len(spec.init_containers) > _MAX_UNCOUNTED
        or len(spec.volumes) > LIMITS.volumes
        or len(metadata.owner_references) > LIMITS.owners
        or not (metadata.labels is UNSET or len(metadata.labels) <= LIMITS.labels)
        or not (metadata.annotations is UNSET or len(metadata.annotations) <= LIMITS.annotations)
        or not (spec.node_selector is UNSET or len(spec.node_selector) <= LIMITS.node_selector_keys)
        or not (spec.tolerations is UNSET or len(spec.tolerations) <= LIMITS.tolerations)
        # Rare fields are not measured here: a pod with any of them takes the exact count.
        or spec.topology_spread_constraints is not UNSET
        or not (spec.affinity is UNSET or _is_small_affinity(spec.affinity))
        or spec.overhead is not UNSET
        or spec.resources is not UNSET
    ):
        return False
    for container in spec.containers:
        resources = container.resources
        if len(container.ports) > _MAX_UNCOUNTED or not (resources is UNSET or _is_small_resources(resources)):
            return False
    return all(c.resources is UNSET or _is_small_resources(c.resources) for c in spec.init_containers)


def _is_small_affinity(affinity: Affinity) -> bool:
    """Returns whether the affinity has so few terms, expressions and values that all of them together are below every
    limit."""
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not UNSET and len(part.required) + len(part.preferred) > _MAX_UNCOUNTED:
            return False
    terms = _node_terms(affinity)
    if len(terms) > _MAX_UNCOUNTED // 2:
        return False
    for term in terms:
        for expressions in (term.match_expressions, term.match_fields):
            if expressions is UNSET:
                continue
            if len(expressions) > _MAX_UNCOUNTED // 2 or any(
                len(expression.values) > _MAX_UNCOUNTED for expression in expressions
            ):
                return False
    return True


def _is_small_resources(resources: Resources) -> bool:
    requests, limits = resources.requests, resources.limits
    return (requests is UNSET or len(requests) <= _MAX_UNCOUNTED) and (limits is UNSET or len(limits) <= _MAX_UNCOUNTED)


def find_template_excess(pod: Pod) -> SizeExcess | None:
    """Returns the part that is too large in a pod that was read from a template, or None. The length of the pod is that
    of the parsed fields, encoded again."""
    return find_excess(pod) or find_excess_bytes(msgspec.json.encode(pod))


def _with_tolerance(most: int) -> int:
    return most + most // 4


def _count_parts(pod: Pod) -> Iterator[tuple[str, int, int]]:
    """Yields the name, the number and the limit of each part. Short lists come first, so that longer ones are only
    counted if the short ones are within their limits."""
    spec, metadata = pod.spec, pod.metadata
    yield "containers", len(spec.containers) + len(spec.init_containers), LIMITS.containers
    if spec.node_selector is not UNSET:
        yield "keys of nodeSelector", len(spec.node_selector), LIMITS.node_selector_keys
    if spec.tolerations is not UNSET:
        yield "tolerations", len(spec.tolerations), LIMITS.tolerations
    if spec.topology_spread_constraints is not UNSET:
        constraints = len(spec.topology_spread_constraints)
        yield "topology spread constraints", constraints, LIMITS.topology_spread_constraints
    yield "volumes", len(spec.volumes), LIMITS.volumes
    yield "labels", len(value_or(metadata.labels, {})), LIMITS.labels
    yield "annotations", len(value_or(metadata.annotations, {})), LIMITS.annotations
    yield "owner references", len(metadata.owner_references), LIMITS.owners
    if spec.affinity is not UNSET:
        yield from _count_affinity_terms(spec.affinity)
    yield from _count_container_parts(spec)


def _count_affinity_terms(affinity: Affinity) -> Iterator[tuple[str, int, int]]:
    terms = _node_terms(affinity)
    of_pods = sum(
        len(part.required) + len(part.preferred)
        for part in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if part is not UNSET
    )
    yield "affinity terms", len(terms) + of_pods, LIMITS.terms
    lists = [items for term in terms for items in (term.match_expressions, term.match_fields) if items is not UNSET]
    yield "expressions", sum(map(len, lists)), LIMITS.expressions
    values = sum(len(expression.values) for items in lists for expression in items)
    yield "values of affinity expressions", values, LIMITS.expression_values


def _node_terms(affinity: Affinity) -> list[NodeSelectorTerm]:
    node = affinity.node_affinity
    if node is UNSET:
        return []
    required = [] if node.required is UNSET else list(node.required.node_selector_terms)
    return required + [term.preference for term in value_or(node.preferred, ())]


def _count_container_parts(spec: PodSpec) -> Iterator[tuple[str, int, int]]:
    amounts, ports = len(value_or(spec.overhead, {})), 0
    for resources in (spec.resources, *(container.resources for container in all_containers(spec))):
        amounts += len(requests_of(resources)) + len(limits_of(resources))
    for container in spec.containers:
        ports += len(container.ports)
    yield "amounts of resources", amounts, LIMITS.resources
    yield "container ports", ports, LIMITS.ports
