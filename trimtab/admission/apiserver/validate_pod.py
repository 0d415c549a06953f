"""Validates the fields of a pod that Trimtab may set, as the API server does.

The rules are those of `ValidatePodCreate` (pkg/apis/core/validation/validation.go, 1.36), for the fields that
`cluster.api` decodes: names and labels, resources, host ports, placement, tolerations, overhead. Fields that Trimtab
never changes (images, volumes, probes) are not validated.
"""

import json
from collections.abc import Iterator

from trimtab.admission.apiserver import validate_names, validate_resources
from trimtab.admission.apiserver.outcome import PodRejected, join_errors
from trimtab.admission.apiserver.validate_names import (
    format_invalid,
    format_unsupported,
    label_key_errors,
    label_value_errors,
)
from trimtab.cluster.api.meta import UNSET, SelectorRequirement, UnsetType, value_or
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

_MAX_WEIGHT = 100


def affinity_errors(spec: PodSpec) -> Iterator[str]:
    """Yields the errors of node affinity. Pod affinity is not validated, because Trimtab never sets it."""
    node = value_or(value_or(spec.affinity, Affinity()).node_affinity, NodeAffinity())
    if not isinstance(node.required, UnsetType):
        yield from _required_term_errors(f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms", node.required)
    yield from _preferred_term_errors(f"spec.affinity.nodeAffinity.{PREFERRED}", value_or(node.preferred, ()))


def _required_term_errors(field: str, selector: NodeSelector) -> Iterator[str]:
    if not selector.node_selector_terms:
        yield f"{field}: Required value: must have at least one node selector term"
    for index, term in enumerate(selector.node_selector_terms):
        yield from _term_errors(f"{field}[{index}]", term, values=True)


def _preferred_term_errors(field: str, terms: tuple[PreferredTerm, ...]) -> Iterator[str]:
    for index, preferred in enumerate(terms):
        term_field = f"{field}[{index}]"
        if not 0 < preferred.weight <= _MAX_WEIGHT:
            yield format_invalid(f"{term_field}.weight", preferred.weight, "must be in the range 1-100")
        yield from _term_errors(f"{term_field}.preference", preferred.preference, values=False)


def _term_errors(field: str, term: NodeSelectorTerm, *, values: bool) -> Iterator[str]:
    """Yields the errors of a term. With `values`, label values are checked too; the server does that only for required
    terms."""
    for index, expression in enumerate(value_or(term.match_expressions, ())):
        expression_field = f"{field}.matchExpressions[{index}]"
        yield from _expression_errors(expression_field, expression)
        yield from label_key_errors(f"{expression_field}.key", expression.key)
        if values:
            yield from _value_errors(f"{expression_field}.values", expression)
    for index, expression in enumerate(value_or(term.match_fields, ())):
        yield from _field_selector_errors(f"{field}.matchFields[{index}]", expression)


def _expression_errors(field: str, expression: SelectorRequirement) -> Iterator[str]:
    """Yields the errors of an expression. Gt and Lt need exactly one value; only the scheduler checks whether it is a
    number."""
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
            yield format_invalid(f"{field}.operator", expression.operator, "not a valid selector operator")


def _value_errors(field: str, expression: SelectorRequirement) -> Iterator[str]:
    for index, value in enumerate(expression.values):
        yield from (format_invalid(f"{field}[{index}]", value, why) for why in label_value_errors(value))


def _field_selector_errors(field: str, expression: SelectorRequirement) -> Iterator[str]:
    if expression.operator not in ("In", "NotIn"):
        yield format_invalid(f"{field}.operator", expression.operator, "not a valid selector operator")
    elif len(expression.values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield f"{field}.values: Required value: {why}"
    if expression.key != "metadata.name":
        yield format_invalid(f"{field}.key", expression.key, "not a valid field selector key")


def topology_spread_errors(spec: PodSpec) -> Iterator[str]:
    """Yields the errors of topology spread constraints: skew, key, `whenUnsatisfiable`, and duplicate pairs. Label
    selectors are not validated."""
    constraints = value_or(spec.topology_spread_constraints, ())
    last_index = {
        (constraint.topology_key, constraint.when_unsatisfiable): index for index, constraint in enumerate(constraints)
    }
    for index, constraint in enumerate(constraints):
        field = f"spec.topologySpreadConstraints[{index}]"
        yield from _constraint_errors(field, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if last_index[pair] > index:
            pair_field = f"{field}.{{topologyKey, whenUnsatisfiable}}"
            yield f'{pair_field}: Duplicate value: "{{{pair[0]}, {pair[1]}}}"'


def _constraint_errors(field: str, constraint: TopologySpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield format_invalid(f"{field}.maxSkew", constraint.max_skew, "must be greater than zero")
    if not constraint.topology_key:
        yield f"{field}.topologyKey: Required value: can not be empty"
    if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        choices = ("DoNotSchedule", "ScheduleAnyway")
        yield format_unsupported(f"{field}.whenUnsatisfiable", constraint.when_unsatisfiable, choices)
    if isinstance(constraint.min_domains, int):
        yield from _min_domains_errors(f"{field}.minDomains", constraint.min_domains, constraint.when_unsatisfiable)


def _min_domains_errors(field: str, count: int, action: str) -> Iterator[str]:
    if count <= 0:
        yield format_invalid(field, count, "must be greater than zero")
    if action != "DoNotSchedule":
        why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield format_invalid(field, count, why)


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def toleration_errors(tolerations: tuple[Toleration, ...]) -> Iterator[str]:
    """Yields the errors of tolerations (`ValidateTolerations`): key, seconds, operator with value, effect."""
    for index, toleration in enumerate(tolerations):
        field = f"spec.tolerations[{index}]"
        yield from _key_errors(field, toleration)
        yield from _operator_errors(field, toleration)
        if toleration.effect and toleration.effect not in _EFFECTS:
            yield format_unsupported(f"{field}.effect", toleration.effect, _EFFECTS)


def _key_errors(field: str, toleration: Toleration) -> Iterator[str]:
    if toleration.key:
        yield from label_key_errors(f"{field}.key", toleration.key)
    elif toleration.operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield format_invalid(f"{field}.operator", toleration.operator, why)
    if not isinstance(toleration.toleration_seconds, UnsetType) and toleration.effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield format_invalid(f"{field}.effect", toleration.effect, why)


def _operator_errors(field: str, toleration: Toleration) -> Iterator[str]:
    """Yields the errors of the operator. Lt and Gt need a feature gate that is off in 1.36
    (TaintTolerationComparisonOperators)."""
    field = f"{field}.operator"
    match toleration.operator:
        case "" | "Equal":
            why = ";".join(label_value_errors(toleration.value))
            if why:
                yield format_invalid(field, toleration.value, why)
        case "Exists":
            if toleration.value:
                yield format_invalid(field, toleration.value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":
            yield format_unsupported(field, toleration.operator, ("Equal", "Exists", "Lt", "Gt"))
        case _:
            yield format_unsupported(field, toleration.operator, ("Equal", "Exists"))


def host_port_errors(spec: PodSpec) -> Iterator[str]:
    """Yields the errors of duplicate host ports: protocol, address and port must be unique among the containers. Init
    containers run one at a time, so each is checked by itself."""
    yield from _duplicate_port_errors("spec.containers", spec.containers)
    for init in spec.init_containers:
        yield from _duplicate_port_errors("spec.initContainers", (init,))


def _duplicate_port_errors(field: str, containers: tuple[Container, ...]) -> Iterator[str]:
    used_ports: set[str] = set()
    for container_index, container in enumerate(containers):
        for port_index, port in enumerate(container.ports):
            port_key = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if port.host_port and port_key in used_ports:
                port_field = f"{field}[{container_index}].ports[{port_index}].hostPort"
                yield f"{port_field}: Duplicate value: {json.dumps(port_key)}"
            used_ports.add(port_key)


PLUGIN = "validation"


def validate_pod(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the pod if it is valid; otherwise a rejection with 422 and all errors, in the server's order and
    words."""
    errors = [*_name_errors(pod), *metadata_errors(pod), *_spec_errors(pod.spec)]
    return PodRejected(422, PLUGIN, join_errors(errors)) if errors else pod


def _name_errors(pod: Pod) -> Iterator[str]:
    if not pod.metadata.name and not pod.metadata.generate_name:
        yield "metadata.name: Required value: name or generateName is required"


def metadata_errors(pod: Pod) -> Iterator[str]:
    """Yields errors of labels and annotations."""
    yield from validate_names.label_errors("metadata.labels", value_or(pod.metadata.labels, {}))
    yield from validate_names.annotation_errors("metadata.annotations", value_or(pod.metadata.annotations, {}))


def _spec_errors(spec: PodSpec) -> Iterator[str]:
    if not spec.containers:
        yield "spec.containers: Required value"
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            yield from validate_resources.container_resource_errors(
                f"spec.{kind}[{index}].resources", value_or(container.resources, None)
            )
    yield from host_port_errors(spec)
    yield from validate_resources.pod_resource_errors(spec)
    # Absent fields have no errors; testing here costs less than a generator for each of them.
    if spec.node_selector is not UNSET:
        yield from validate_names.label_errors("spec.nodeSelector", spec.node_selector)
    if spec.affinity is not UNSET:
        yield from affinity_errors(spec)
    if spec.topology_spread_constraints is not UNSET:
        yield from topology_spread_errors(spec)
    if spec.tolerations is not UNSET:
        yield from toleration_errors(spec.tolerations)
    yield from _class_name_errors(spec)
    if spec.overhead is not UNSET:
        yield from validate_resources.overhead_errors("spec.overhead", spec.overhead)


def _class_name_errors(spec: PodSpec) -> Iterator[str]:
    if value_or(spec.priority_class_name, ""):
        yield from validate_names.subdomain_errors("spec.priorityClassName", value_or(spec.priority_class_name, ""))
    if not isinstance(spec.runtime_class_name, UnsetType):
        yield from validate_names.subdomain_errors("spec.runtimeClassName", spec.runtime_class_name)
    policy = value_or(spec.preemption_policy, "Never")
    if policy not in ("PreemptLowerPriority", "Never"):
        yield validate_names.format_unsupported("spec.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
