"""May a pod ask for these nodes, and for this spread?

May a pod tolerate it this way?

May a pod have these ports on its host? On the host network every port is one, so two containers soon collide.

What would the API refuse in the fields that we may write?

`ValidatePodCreate` (pkg/apis/core/validation/validation.go, 1.36) as far as our shapes go: names and labels, resources,
host ports, placement, tolerations, overhead. What nobody here changes (images, volumes, probes) is not checked.
"""

import json
from collections.abc import Iterator

from trimtab.admission.apiserver import validate_names, validate_resources
from trimtab.admission.apiserver.outcome import PodRejected, aggregate
from trimtab.admission.apiserver.validate_names import invalid, key_complaints, unsupported, value_complaints
from trimtab.cluster.api.meta import SelectorRequirement, UnsetType, get
from trimtab.cluster.api.pod import (
    PREFERRED,
    REQUIRED,
    Affinity,
    Container,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PreferredTerm,
    Toleration,
    TopologySpreadConstraint,
)
from trimtab.policy.cluster_facts import ClusterFacts

_HEAVIEST = 100


def affinity(spec: PodSpec) -> Iterator[str]:
    """Node affinity only: pod affinity is nothing we write."""
    node = get(get(spec.affinity, Affinity()).node_affinity, NodeAffinity())
    if not isinstance(node.required, UnsetType):
        yield from _required(f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms", node.required)
    yield from _preferred(f"spec.affinity.nodeAffinity.{PREFERRED}", get(node.preferred, ()))


def _required(field: str, selector: NodeSelector) -> Iterator[str]:
    if not selector.node_selector_terms:
        yield f"{field}: Required value: must have at least one node selector term"
    for place, term in enumerate(selector.node_selector_terms):
        yield from _term(f"{field}[{place}]", term, values=True)


def _preferred(field: str, terms: tuple[PreferredTerm, ...]) -> Iterator[str]:
    for place, preferred in enumerate(terms):
        at = f"{field}[{place}]"
        if not 0 < preferred.weight <= _HEAVIEST:
            yield invalid(f"{at}.weight", preferred.weight, "must be in the range 1-100")
        yield from _term(f"{at}.preference", preferred.preference, values=False)


def _term(field: str, term: NodeSelectorTerm, *, values: bool) -> Iterator[str]:
    """`values`: label values are checked too (for required terms; preferred ones may hold anything)."""
    for place, expression in enumerate(get(term.match_expressions, ())):
        at = f"{field}.matchExpressions[{place}]"
        yield from _expression(at, expression)
        yield from key_complaints(f"{at}.key", expression.key)
        if values:
            yield from _values(f"{at}.values", expression)
    for place, expression in enumerate(get(term.match_fields, ())):
        yield from _by_field(f"{field}.matchFields[{place}]", expression)


def _expression(field: str, expression: SelectorRequirement) -> Iterator[str]:
    """Gt and Lt need one value; that it is a number is nobody's business until the scheduler's."""
    match expression.operator:
        case "In" | "NotIn":
            if not expression.values:
                yield f"{field}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        case "Exists" | "DoesNotExist":
            if expression.values:
                yield f"{field}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        case "Gt" | "Lt":
            if len(expression.values) != 1:
                yield f"{field}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
        case _:
            yield invalid(f"{field}.operator", expression.operator, "not a valid selector operator")


def _values(field: str, expression: SelectorRequirement) -> Iterator[str]:
    for place, value in enumerate(expression.values):
        yield from (invalid(f"{field}[{place}]", value, why) for why in value_complaints(value))


def _by_field(field: str, expression: SelectorRequirement) -> Iterator[str]:
    if expression.operator not in ("In", "NotIn"):
        yield invalid(f"{field}.operator", expression.operator, "not a valid selector operator")
    elif len(expression.values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield f"{field}.values: Required value: {why}"
    if expression.key != "metadata.name":
        yield invalid(f"{field}.key", expression.key, "not a valid field selector key")


def spread(spec: PodSpec) -> Iterator[str]:
    """Topology spread: skew, key, what to do when it can't be had, each pair once. Label selectors are not checked."""
    constraints = get(spec.topology_spread_constraints, ())
    last = {(c.topology_key, c.when_unsatisfiable): place for place, c in enumerate(constraints)}
    for place, constraint in enumerate(constraints):
        field = f"spec.topologySpreadConstraints[{place}]"
        yield from _constraint(field, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if last[pair] > place:
            named = f"{field}.{{topologyKey, whenUnsatisfiable}}"
            yield f'{named}: Duplicate value: "{{{pair[0]}, {pair[1]}}}"'


def _constraint(field: str, constraint: TopologySpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield invalid(f"{field}.maxSkew", constraint.max_skew, "must be greater than zero")
    if not constraint.topology_key:
        yield f"{field}.topologyKey: Required value: can not be empty"
    if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        choices = ("DoNotSchedule", "ScheduleAnyway")
        yield unsupported(f"{field}.whenUnsatisfiable", constraint.when_unsatisfiable, choices)
    if isinstance(constraint.min_domains, int):
        yield from _min_domains(f"{field}.minDomains", constraint.min_domains, constraint.when_unsatisfiable)


def _min_domains(field: str, count: int, action: str) -> Iterator[str]:
    if count <= 0:
        yield invalid(field, count, "must be greater than zero")
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(field, count, why)


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def toleration_complaints(tolerations: tuple[Toleration, ...]) -> Iterator[str]:
    """`ValidateTolerations`: key, seconds, operator with value, effect."""
    for place, toleration in enumerate(tolerations):
        field = f"spec.tolerations[{place}]"
        yield from _key(field, toleration)
        yield from _operator(field, toleration)
        if toleration.effect and toleration.effect not in _EFFECTS:
            yield unsupported(f"{field}.effect", toleration.effect, _EFFECTS)


def _key(field: str, toleration: Toleration) -> Iterator[str]:
    if toleration.key:
        yield from key_complaints(f"{field}.key", toleration.key)
    elif toleration.operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{field}.operator", toleration.operator, why)
    if not isinstance(toleration.toleration_seconds, UnsetType) and toleration.effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{field}.effect", toleration.effect, why)


def _operator(field: str, toleration: Toleration) -> Iterator[str]:
    """Lt and Gt exist behind a feature gate that is off in 1.36 (TaintTolerationComparisonOperators)."""
    field = f"{field}.operator"
    match toleration.operator:
        case "" | "Equal":
            why = ";".join(value_complaints(toleration.value))
            if why:
                yield invalid(field, toleration.value, why)
        case "Exists":
            if toleration.value:
                yield invalid(field, toleration.value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":
            yield unsupported(field, toleration.operator, ("Equal", "Exists", "Lt", "Gt"))
        case _:
            yield unsupported(field, toleration.operator, ("Equal", "Exists"))


def complaints(spec: PodSpec) -> Iterator[str]:
    """A protocol, address and port once among the containers; init containers run alone, each is judged by itself."""
    yield from _twice("spec.containers", spec.containers)
    for init in spec.init_containers:
        yield from _twice("spec.initContainers", (init,))


def _twice(field: str, containers: tuple[Container, ...]) -> Iterator[str]:
    seen: set[str] = set()
    for at, container in enumerate(containers):
        for place, port in enumerate(container.ports):
            named = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if port.host_port and named in seen:
                yield f"{field}[{at}].ports[{place}].hostPort: Duplicate value: {json.dumps(named)}"
            seen.add(named)


PLUGIN = "validation"


def validate(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """422 with every complaint at once, in the server's order and words; the pod where there are none."""
    complaints = [*_named(pod), *_metadata(pod), *_spec(pod.spec)]
    return PodRejected(422, PLUGIN, aggregate(complaints)) if complaints else pod


def _named(pod: Pod) -> Iterator[str]:
    if not pod.metadata.name and not pod.metadata.generate_name:
        yield "metadata.name: Required value: name or generateName is required"


def _metadata(pod: Pod) -> Iterator[str]:
    yield from validate_names.labels("metadata.labels", get(pod.metadata.labels, {}))
    yield from validate_names.annotations("metadata.annotations", get(pod.metadata.annotations, {}))


def _spec(spec: PodSpec) -> Iterator[str]:
    if not spec.containers:
        yield "spec.containers: Required value"
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for place, container in enumerate(containers):
            yield from validate_resources.of_container(
                f"spec.{kind}[{place}].resources", get(container.resources, None)
            )
    yield from complaints(spec)
    yield from validate_resources.of_pod(spec)
    yield from validate_names.labels("spec.nodeSelector", get(spec.node_selector, {}))
    yield from affinity(spec)
    yield from spread(spec)
    yield from toleration_complaints(get(spec.tolerations, ()))
    yield from _classes(spec)
    yield from validate_resources.of_overhead("spec.overhead", get(spec.overhead, {}))


def _classes(spec: PodSpec) -> Iterator[str]:
    if get(spec.priority_class_name, ""):
        yield from validate_names.subdomain("spec.priorityClassName", get(spec.priority_class_name, ""))
    if not isinstance(spec.runtime_class_name, UnsetType):
        yield from validate_names.subdomain("spec.runtimeClassName", spec.runtime_class_name)
    policy = get(spec.preemption_policy, "Never")
    if policy not in ("PreemptLowerPriority", "Never"):
        yield validate_names.unsupported("spec.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
