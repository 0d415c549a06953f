"""May a pod ask for these nodes, and for this spread?"""

from collections.abc import Iterator

from trimtab.admission.apiserver.valid.names import invalid, key_complaints, unsupported, value_complaints
from trimtab.cluster.api.meta import Requirement, UnsetType, get
from trimtab.cluster.api.pod import (
    PREFERRED,
    REQUIRED,
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodSpec,
    PreferredTerm,
    TopologySpreadConstraint,
)

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


def _expression(field: str, expression: Requirement) -> Iterator[str]:
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


def _values(field: str, expression: Requirement) -> Iterator[str]:
    for place, value in enumerate(expression.values):
        yield from (invalid(f"{field}[{place}]", value, why) for why in value_complaints(value))


def _by_field(field: str, expression: Requirement) -> Iterator[str]:
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
    for place, constraint in enumerate(constraints):
        field = f"spec.topologySpreadConstraints[{place}]"
        yield from _constraint(field, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in [(c.topology_key, c.when_unsatisfiable) for c in constraints[place + 1 :]]:
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
