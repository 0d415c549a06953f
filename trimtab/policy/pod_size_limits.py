"""How much may one pod hold and still be decided about?

Whoever may create pods may write any pod, and reviews are decided one after the other. So a pod that no team would
write is not decided at all: its cost would be everybody's. Real pods are far below every limit here.

What costs work is counted by the lengths of its lists and mappings, so that counting itself costs next to nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from trimtab.cluster.api.meta import UNSET, get
from trimtab.cluster.api.pod import Affinity, NodeSelectorTerm, Pod, PodSpec, Resources
from trimtab.cluster.resources import all_containers, limits_of, requests_of
from trimtab.policy import changed_annotation

MAX_BYTES = 320 * 1024
"""Of a pod as JSON. All its annotations together may take 256 KiB, by the API server's own rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSizeLimits:
    """The most of each that a pod may hold to be decided about."""

    containers: int = 100
    """Init containers and sidecars included."""
    node_selector_keys: int = 256
    terms: int = 256
    """Of node affinity, pod affinity and pod anti-affinity, required and preferred."""
    tolerations: int = 256
    topology_spread_constraints: int = 256
    expressions: int = 1_000
    """Of all terms of node affinity."""
    expression_values: int = 4_000
    resources: int = 1_000
    """Requests, limits and overhead: amounts of all containers together."""
    ports: int = 2_000
    volumes: int = 2_000
    labels: int = 2_000
    annotations: int = 2_000
    owners: int = 500


LIMITS = PodSizeLimits()


@dataclass(frozen=True, slots=True)
class SizeExcess:
    """What a pod holds too much of to be decided about."""

    what: str
    count: int
    most: int

    def __str__(self) -> str:
        return f"the pod holds {self.count} {self.what}, and Trimtab decides about pods of at most {self.most}"


def excess_bytes(raw: bytes) -> SizeExcess | None:
    """The bytes of the pod, where they are too many; None: the pod may be read."""
    size = len(raw)
    if size <= MAX_BYTES or (size <= _more(MAX_BYTES) and changed_annotation.ANNOTATION.encode() in raw):
        return None
    return SizeExcess("bytes of JSON", size, MAX_BYTES)


def excess(pod: Pod) -> SizeExcess | None:
    """The first of which the pod holds too much; None: it is decided about.

    A pod that carries our annotation may hold a quarter more: what policies added at the first call of a request must
    not make the second call another one.
    """
    if _is_ordinary(pod):
        return None
    for what, count, most in _counted(pod):
        if count > most and (
            count > _more(most) or changed_annotation.ANNOTATION not in get(pod.metadata.annotations, {})
        ):
            return SizeExcess(what, count, most)
    return None


_FEW = 16
"""Containers whose amounts and ports are below every limit where none of them has more than as many of each."""


def _is_ordinary(pod: Pod) -> bool:
    """Is the pod so small that nothing in it needs to be counted? Plain comparisons: nearly every pod is, and every
    pod is asked."""
    spec, metadata = pod.spec, pod.metadata
    if (
        len(spec.containers) + len(spec.init_containers) > _FEW
        or len(spec.volumes) > LIMITS.volumes
        or len(metadata.owner_references) > LIMITS.owners
        or not (metadata.labels is UNSET or len(metadata.labels) <= LIMITS.labels)
        or not (metadata.annotations is UNSET or len(metadata.annotations) <= LIMITS.annotations)
        or not (spec.node_selector is UNSET or len(spec.node_selector) <= LIMITS.node_selector_keys)
        or not (spec.tolerations is UNSET or len(spec.tolerations) <= LIMITS.tolerations)
        or spec.topology_spread_constraints is not UNSET
        or not (spec.affinity is UNSET or _is_brief(spec.affinity))
        or spec.overhead is not UNSET
        or spec.resources is not UNSET
    ):
        return False
    for container in spec.containers:
        resources = container.resources
        if len(container.ports) > _FEW or not (resources is UNSET or _is_short(resources)):
            return False
    return all(c.resources is UNSET or _is_short(c.resources) for c in spec.init_containers)


def _is_brief(affinity: Affinity) -> bool:
    """So few terms, with so few expressions of so few values, that all of them together are below every limit."""
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not UNSET and len(part.required) + len(part.preferred) > _FEW:
            return False
    terms = _node_terms(affinity)
    if len(terms) > _FEW // 2:
        return False
    for term in terms:
        for expressions in (term.match_expressions, term.match_fields):
            if expressions is UNSET:
                continue
            if len(expressions) > _FEW // 2 or any(len(expression.values) > _FEW for expression in expressions):
                return False
    return True


def _is_short(resources: Resources) -> bool:
    requests, limits = resources.requests, resources.limits
    return (requests is UNSET or len(requests) <= _FEW) and (limits is UNSET or len(limits) <= _FEW)


def excess_of_template(pod: Pod) -> SizeExcess | None:
    """`excess`, for a pod that nobody has sent: its bytes are those of what is read of it."""
    return excess(pod) or excess_bytes(msgspec.json.encode(pod))


def _more(most: int) -> int:
    return most + most // 4


def _counted(pod: Pod) -> Iterator[tuple[str, int, int]]:
    """What, how many, and the most there may be. Short lists first: the longer ones are only looked through then."""
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
    yield "labels", len(get(metadata.labels, {})), LIMITS.labels
    yield "annotations", len(get(metadata.annotations, {})), LIMITS.annotations
    yield "owner references", len(metadata.owner_references), LIMITS.owners
    if spec.affinity is not UNSET:
        yield from _terms(spec.affinity)
    yield from _of_containers(spec)


def _terms(affinity: Affinity) -> Iterator[tuple[str, int, int]]:
    terms = _node_terms(affinity)
    of_pods = sum(
        len(part.required) + len(part.preferred)
        for part in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if part is not UNSET
    )
    yield "affinity terms", len(terms) + of_pods, LIMITS.terms
    lists = [found for term in terms for found in (term.match_expressions, term.match_fields) if found is not UNSET]
    yield "expressions", sum(map(len, lists)), LIMITS.expressions
    values = sum(len(expression.values) for found in lists for expression in found)
    yield "values of expressions", values, LIMITS.expression_values


def _node_terms(affinity: Affinity) -> list[NodeSelectorTerm]:
    node = affinity.node_affinity
    if node is UNSET:
        return []
    required = [] if node.required is UNSET else list(node.required.node_selector_terms)
    return required + [term.preference for term in get(node.preferred, ())]


def _of_containers(spec: PodSpec) -> Iterator[tuple[str, int, int]]:
    amounts, ports = len(get(spec.overhead, {})), 0
    for resources in (spec.resources, *(container.resources for container in all_containers(spec))):
        amounts += len(requests_of(resources)) + len(limits_of(resources))
    for container in spec.containers:
        ports += len(container.ports)
    yield "amounts of resources", amounts, LIMITS.resources
    yield "container ports", ports, LIMITS.ports
