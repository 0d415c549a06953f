"""Validates the fields of a pod that Trimtab may set, as the API server does, and with its messages.

The rules are those of `ValidatePodCreate` (pkg/apis/core/validation/validation.go, 1.36), for the fields that
`cluster.api` decodes: names and labels, resources, host ports, placement, tolerations, overhead. Fields that Trimtab
never changes (images, volumes, probes) are not validated.
"""

import json
from collections.abc import Callable, Iterator

from trimtab.admission.apiserver import resource_sums, validate_names
from trimtab.admission.apiserver.outcome import PodRejected, join_errors
from trimtab.admission.apiserver.validate_names import (
    format_invalid,
    format_unsupported,
    label_key_errors,
    label_value_errors,
    qualified_name_errors,
)
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, ResourceList, SelectorRequirement, UnsetType, value_or
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
    Resources,
    Toleration,
    TopologySpreadConstraint,
)
from trimtab.cluster.quantity import Written
from trimtab.cluster.resources import is_pod_level, limits_of, requests_of
from trimtab.policy.cluster_facts import ClusterFacts

_MAX_WEIGHT = 100


def affinity_errors(spec: PodSpec) -> Iterator[str]:
    """Yields the errors of node affinity. Pod affinity is not validated, because Trimtab never sets it."""
    node = value_or(value_or(spec.affinity, Affinity()).node_affinity, NodeAffinity())
    if not isinstance(node.required, UnsetType):
        yield from _required_term_errors(f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms", node.required)
    field = f"spec.affinity.nodeAffinity.{PREFERRED}"
    terms = value_or(node.preferred, ())
    for index, preferred in enumerate(terms):
        term_field = f"{field}[{index}]"
        if not 0 < preferred.weight <= _MAX_WEIGHT:
            yield format_invalid(f"{term_field}.weight", preferred.weight, "must be in the range 1-100")
        yield from _term_errors(f"{term_field}.preference", preferred.preference, values=False)


def _required_term_errors(field: str, selector: NodeSelector) -> Iterator[str]:
    if not selector.node_selector_terms:
        yield f"{field}: Required value: must have at least one node selector term"
    for index, term in enumerate(selector.node_selector_terms):
        yield from _term_errors(f"{field}[{index}]", term, values=True)


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


def _expression_errors(field: str, requirement: SelectorRequirement) -> Iterator[str]:
    """Yields the errors of an expression. Gt and Lt need exactly one value; only the scheduler checks whether it is a
    number."""
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield f"{field}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield f"{field}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                yield f"{field}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
        case _:
            yield format_invalid(f"{field}.operator", requirement.operator, "not a valid selector operator")


def _value_errors(field: str, requirement: SelectorRequirement) -> Iterator[str]:
    for index, value in enumerate(requirement.values):
        yield from (format_invalid(f"{field}[{index}]", value, why) for why in label_value_errors(value))


def _field_selector_errors(field: str, requirement: SelectorRequirement) -> Iterator[str]:
    if requirement.operator not in ("In", "NotIn"):
        yield format_invalid(f"{field}.operator", requirement.operator, "not a valid selector operator")
    elif len(requirement.values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield f"{field}.values: Required value: {why}"
    if requirement.key != "metadata.name":
        yield format_invalid(f"{field}.key", requirement.key, "not a valid field selector key")


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
            yield from container_resource_errors(f"spec.{kind}[{index}].resources", value_or(container.resources, None))
    yield from host_port_errors(spec)
    yield from pod_resource_errors(spec)
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
        yield from overhead_errors("spec.overhead", spec.overhead)


def _class_name_errors(spec: PodSpec) -> Iterator[str]:
    if value_or(spec.priority_class_name, ""):
        yield from validate_names.subdomain_errors("spec.priorityClassName", value_or(spec.priority_class_name, ""))
    if not isinstance(spec.runtime_class_name, UnsetType):
        yield from validate_names.subdomain_errors("spec.runtimeClassName", spec.runtime_class_name)
    policy = value_or(spec.preemption_policy, "Never")
    if policy not in ("PreemptLowerPriority", "Never"):
        yield validate_names.format_unsupported("spec.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


_NameValidator = Callable[[str, str], Iterator[str]]
_STANDARD = {"cpu", "memory", "ephemeral-storage"}
_QUOTA_RESOURCES = {f"{side}.{part}" for side in ("requests", "limits") for part in _STANDARD} | {
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers"),
}


def container_resource_errors(field: str, resources: Resources | None) -> Iterator[str]:
    """Yields the errors of resource names and quantities, and of requests above their limit."""
    if resources is not None and not _is_trivially_valid(requests_of(resources), limits_of(resources)):
        yield from _requirement_errors(field, requests_of(resources), limits_of(resources), _container_name_errors)


def _is_trivially_valid(requests: ResourceList, limits: ResourceList) -> bool:
    """Returns whether only standard resource names are used and no request exceeds its limit, as in nearly every
    container."""
    for name, value in limits.items():
        if name not in _STANDARD or quantity.parse(value) < 0:
            return False
    for name, value in requests.items():
        if (
            name not in _STANDARD
            or quantity.parse(value) < 0
            or quantity.compare_quantities(value, limits.get(name, value)) > 0
        ):
            return False
    return True


def overhead_errors(field: str, overhead: ResourceList) -> Iterator[str]:
    """Yields the errors of overhead. It is validated like the limits of a container, and the messages name a field of
    `limits`."""
    yield from _requirement_errors(field, {}, overhead, _container_name_errors)


def pod_resource_errors(spec: PodSpec) -> Iterator[str]:
    """Yields the errors of pod-level resources (KEP-2837): only cpu, memory and huge pages are allowed, and they must
    be at least the sum of the containers' requests."""
    if isinstance(spec.resources, UnsetType):
        return
    if not isinstance(spec.os, UnsetType) and spec.os.name == "windows":
        yield "spec.resources: Forbidden: may not be set for a windows pod"
        return
    requests, limits = requests_of(spec.resources), limits_of(spec.resources)
    yield from _requirement_errors("spec.resources", requests, limits, _pod_name_errors)
    yield from _sum_errors(spec, requests, limits)


def _requirement_errors(
    field: str, requests: ResourceList, limits: ResourceList, validate_name: _NameValidator
) -> Iterator[str]:
    for name, value in limits.items():
        yield from _limit_errors(f"{field}.limits[{name}]", name, value, validate_name)
    for name, value in requests.items():
        yield from validate_name(f"{field}.requests[{name}]", name)
        yield from _amount_errors(f"{field}.requests[{name}]", name, value)
        yield from _compare_with_limit(field, name, value, limits.get(name))
        yield from _page_size_errors(f"{field}.requests[{name}]", name, value)
    names = requests.keys() | limits.keys()
    if any(map(_is_hugepages, names)) and not names & {"cpu", "memory"}:
        yield f"{field}: Forbidden: HugePages require cpu or memory"


def _limit_errors(field: str, name: str, value: Written, validate_name: _NameValidator) -> Iterator[str]:
    yield from validate_name(field, name)
    yield from _amount_errors(field, name, value)
    yield from _page_size_errors(field, name, value)


def _amount_errors(field: str, name: str, value: Written) -> Iterator[str]:
    if quantity.parse(value) < 0:
        yield format_invalid(field, quantity.canonical_form(value), "must be greater than or equal to 0")
    if _is_extended(name) and quantity.to_milli(value) % 1000:
        yield format_invalid(field, quantity.canonical_form(value), "must be an integer")


def _compare_with_limit(field: str, name: str, request: Written, limit: Written | None) -> Iterator[str]:
    is_fixed = _is_hugepages(name) or not _is_native(name)
    if limit is None:
        if is_fixed:
            yield f"{field}.limits: Required value: Limit must be set for non overcommitable resources"
        return
    difference = quantity.compare_quantities(request, limit)
    if difference and (is_fixed or difference > 0):
        relation = "equal to" if is_fixed else "less than or equal to"
        why = f"must be {relation} {name} limit of {quantity.canonical_form(limit)}"
        yield format_invalid(f"{field}.requests", quantity.canonical_form(request), why)


def _page_size_errors(field: str, name: str, value: Written) -> Iterator[str]:
    if not _is_hugepages(name):
        return
    size = name.removeprefix("hugepages-")
    if not quantity.is_quantity(size) or quantity.parse(size) <= 0 or quantity.parse(value) % quantity.parse(size):
        shown = quantity.canonical_form(value)
        yield format_invalid(field, shown, f"{shown} is not positive integer multiple of {name}")


def _sum_errors(spec: PodSpec, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    """Yields the errors of containers that exceed the pod-level resources.

    The containers' requests together must be at most the pod's request. Each container's limit must be at most the
    pod's limit; for huge pages, the containers' limits together must be too."""
    for name, total in resource_sums.sum_containers(spec, requests_of).items():
        if name in requests and quantity.compare_quantities(total, requests[name]) > 0:
            yield _less_than_sum_error(f"spec.resources.requests[{name}]", requests[name], "requests", total)
    for name, total in resource_sums.sum_containers(spec, limits_of).items():
        if _is_hugepages(name) and name in limits and quantity.compare_quantities(total, limits[name]) > 0:
            yield _less_than_sum_error(f"spec.resources.limits[{name}]", limits[name], "limits", total)
    for index, container in enumerate(spec.containers):
        for name, value in limits_of(value_or(container.resources, Resources())).items():
            if name in limits and quantity.compare_quantities(value, limits[name]) > 0:
                why = f"must be less than or equal to pod limits of {quantity.canonical_form(limits[name])}"
                yield format_invalid(
                    f"spec.resources.containers[{index}][{name}].limits", quantity.canonical_form(value), why
                )


def _less_than_sum_error(field: str, pod_level: Written, side: str, total: Written) -> str:
    why = f"must be greater than or equal to aggregate container {side} of {quantity.canonical_form(total)}"
    return format_invalid(field, quantity.canonical_form(pod_level), why)


def _standard_name_errors(field: str, name: str) -> Iterator[str]:
    yield from (format_invalid(field, name, why) for why in qualified_name_errors(name))
    if "/" not in name and not (_is_hugepages(name) or name in _STANDARD | _QUOTA_RESOURCES):
        yield format_invalid(field, name, "must be a standard resource type or fully qualified")


def _container_name_errors(field: str, name: str) -> Iterator[str]:
    if name in _STANDARD:
        return
    yield from _standard_name_errors(field, name)
    if "/" not in name and not _is_hugepages(name):
        yield format_invalid(field, name, "must be a standard resource for containers")
    # `ValidateContainerResourceName`: native names are those without a domain or in kubernetes.io; all others are
    # extended resources.
    elif not _is_native(name) and not _is_extended(name):
        yield format_invalid(field, name, "doesn't follow extended resource name standard")


def _pod_name_errors(field: str, name: str) -> Iterator[str]:
    errors = list(_standard_name_errors(field, name))
    yield from errors
    if not errors and not is_pod_level(name):
        yield f'{field}: Unsupported value: "{name}": supported values: "cpu", "hugepages-", "memory"'


def _is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return (
        not _is_native(name) and not name.startswith("requests.") and not any(qualified_name_errors(f"requests.{name}"))
    )
