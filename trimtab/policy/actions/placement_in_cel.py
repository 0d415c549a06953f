"""Compiles the placement action to CEL: node affinity, node selector and tolerations, all of them or none.

Required terms of node affinity are ORed, so a requirement is added to each term that is not empty. If a requirement
contradicts one of the pod's own conditions, nothing is added; each pair of conditions is compared by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trimtab.policy.actions.action import PolicyTerms
from trimtab.policy.actions.placement_fields import AddedToleration, NodeLabel, PlacementAction
from trimtab.policy.cel import NotExpressible, cel_list, cel_string, has_entry, join_all
from trimtab.policy.cel_patches import PatchPart, ensure_map, map_literal, operation, pointer
from trimtab.policy.cel_pod import ANNOTATIONS, HAS_NO_NODE, IS_APPLIED, IS_DAEMON, LABELS, MANAGED, NAMESPACE_LABELS
from trimtab.policy.field_owners import APPLIED

_AFFINITY, _NODE = "object.spec.affinity", "object.spec.affinity.nodeAffinity"
_REQUIRED = f"{_NODE}.requiredDuringSchedulingIgnoredDuringExecution"
_TERMS, _PREFERRED = f"{_REQUIRED}.nodeSelectorTerms", f"{_NODE}.preferredDuringSchedulingIgnoredDuringExecution"
_SELECTOR, _TOLERATIONS = "object.spec.nodeSelector", "object.spec.tolerations"
_HAS_NODE = f"has({_AFFINITY}) && has({_NODE})"
_HAS_TERMS = f"({_HAS_NODE} && has({_REQUIRED}) && has({_TERMS}) && {_TERMS}.size() > 0)"
_HAS_PREFERRED = f"({_HAS_NODE} && has({_PREFERRED}) && {_PREFERRED}.size() > 0)"
_IS_FILLED = (
    "((has(t.matchExpressions) && t.matchExpressions.size() > 0) || (has(t.matchFields) && t.matchFields.size() > 0))"
)
_NODE_POINTER = ("spec", "affinity", "nodeAffinity")


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A condition on a label of the node, written in CEL."""

    key: str
    operator: str
    values: str
    """A CEL expression for a list of strings; the list is empty if the operator takes no values."""

    @property
    def literal(self) -> str:
        listed = "" if self.values == "[]" else f", 'values': dyn({self.values})"
        return f"{{'key': dyn({cel_string(self.key)}), 'operator': dyn({cel_string(self.operator)}){listed}}}"

    def is_in(self, expressions: str) -> str:
        """Returns a CEL expression that is true if `expressions` contain this same requirement."""
        same = f"e.key == {cel_string(self.key)} && e.operator == {cel_string(self.operator)}"
        if self.values == "[]":
            return f"{expressions}.exists(e, {same} && (!has(e.values) || e.values.size() == 0))"
        return f"{expressions}.exists(e, {same} && has(e.values) && e.values == {self.values})"

    def contradicts_selector(self) -> str:
        """Returns a CEL expression that is true if no node can satisfy both this requirement and the pod's node
        selector."""
        present, value = has_entry(_SELECTOR, self.key), f"{_SELECTOR}[{cel_string(self.key)}]"
        tests = {
            "In": f"!({value} in {self.values})",
            "NotIn": f"{value} in {self.values}",
            "DoesNotExist": "true",
            "Gt": f"!{value}.matches('^[0-9]{{1,18}}$') || !(int({value}) > int({self.values}[0]))",
            "Lt": f"!{value}.matches('^[0-9]{{1,18}}$') || !(int({value}) < int({self.values}[0]))",
        }
        return f"({present} && ({tests.get(self.operator, 'false')}))"

    def contradicts_expression(self) -> str:
        """Returns a CEL expression that is true if no node can satisfy both this requirement and the expression `e` of
        the pod."""
        listed = "(has(e.values) ? e.values : [])"
        number = "v.matches('^[0-9]{1,18}$') && int(v)"
        tests = {
            "In": [
                ("In", f"!{listed}.exists(v, v in {self.values})"),
                ("NotIn", f"{self.values}.all(v, v in {listed})"),
                ("DoesNotExist", "true"),
                ("Gt", f"!{self.values}.exists(v, {number} > int({listed}[0]))"),
                ("Lt", f"!{self.values}.exists(v, {number} < int({listed}[0]))"),
            ],
            "NotIn": [("In", f"{listed}.all(v, v in {self.values})")],
            "DoesNotExist": [(other, "true") for other in ("In", "Exists", "Gt", "Lt")],
            "Exists": [("DoesNotExist", "true")],
            "Gt": [("DoesNotExist", "true"), ("In", f"!{listed}.exists(v, {number} > int({self.values}[0]))")],
            "Lt": [("DoesNotExist", "true"), ("In", f"!{listed}.exists(v, {number} < int({self.values}[0]))")],
        }[self.operator]
        either = " || ".join(f"(e.operator == '{operator}' && ({test}))" for operator, test in tests)
        return f"(e.key == {cel_string(self.key)} && ({either}))"


def _requirement(label: NodeLabel) -> _Requirement:
    if label.in_namespace_label is not None:
        return _Requirement(label.label, "In", f"[string({NAMESPACE_LABELS}[{cel_string(label.in_namespace_label)}])]")
    if label.in_pod_label is not None:
        return _Requirement(label.label, "In", f"[string({LABELS}[{cel_string(label.in_pod_label)}])]")
    plain = label.selector_requirement
    return _Requirement(plain.key, plain.operator, cel_list(plain.values))


def compile_placement(settings: PlacementAction, terms: PolicyTerms) -> tuple[PatchPart, ...]:
    """Returns the one change that adds the whole placement. Raises NotExpressible with the name of the field."""
    if settings.require_any and (settings.require or settings.node_selector):
        raise NotExpressible(
            "spec.actions.placement.requireAny: CEL does not support it together with `require`; use a separate policy"
        )
    required = [_requirement(label) for label in settings.require]
    selected = [
        _Requirement(key, "In", cel_list([value])) for key, value in sorted((settings.node_selector or {}).items())
    ]
    groups = [[_requirement(label) for label in group] for group in settings.require_any]
    labels = [*settings.require, *settings.prefer, *(label for group in settings.require_any for label in group)]
    sources = [_resolved_source(label) for label in labels if label.in_namespace_label or label.in_pod_label]
    sources += [_toleration_source(wish) for wish in settings.tolerate]
    pieces = [
        *([_required_piece(required)] if required else []),
        *([_any_piece(groups)] if groups else []),
        *([_selector_piece(settings.node_selector or {})] if selected else []),
        *([_preferred_piece(settings.prefer)] if settings.prefer else []),
        *([_toleration_piece(settings.tolerate)] if settings.tolerate else []),
    ]
    tests = [*(source for source in sources if source != "true"), " || ".join(test for test, _ in pieces)]
    tests += _free_to_place(settings, terms.names_daemons)
    alternatives = groups or [[]]
    fits = " || ".join(f"({_can_meet([*required, *selected, *group])})" for group in alternatives)
    tests.append(fits)
    late = any(label.in_namespace_label for label in labels) or any(w.value_from_namespace for w in settings.tolerate)
    # Once for all pieces: an empty map that is added again would remove what another piece has put into it.
    ensure = _ensure_node_affinity() if settings.require or settings.require_any or settings.prefer else "[]"
    operations = " + ".join([ensure, *(f"({test} ? {text} : [])" for test, text in pieces)])
    part = PatchPart(name="placement", test=join_all(tests), note="'placement'", reads_late=late, operations=operations)
    return (part,)


def _free_to_place(settings: PlacementAction, names_daemons: bool) -> Iterable[str]:
    """Yields the CEL conditions under which the pod's placement may be changed at all."""
    if not settings.required:
        yield HAS_NO_NODE
        if not names_daemons:
            yield f"!({IS_DAEMON})"
    written = f"{has_entry(ANNOTATIONS, APPLIED)} && {ANNOTATIONS}[{cel_string(APPLIED)}].contains('\"tolerations\"')"
    by_server = f"(has({MANAGED}) && {MANAGED}.exists(m, has(m.operation) && m.operation == 'Apply'))"
    kept = [
        *([_HAS_TERMS] if settings.require or settings.require_any else []),
        *([_HAS_PREFERRED] if settings.prefer else []),
        *([f"({written})", by_server] if settings.tolerate else []),
        *([by_server] if settings.node_selector else []),
    ]
    yield f"!({IS_APPLIED} && ({' || '.join(kept)}))"


def _can_meet(requirements: Sequence[_Requirement]) -> str:
    """Returns a CEL expression that is true if none of the pod's own conditions on its node contradicts these
    requirements."""
    against = [requirement.contradicts_selector() for requirement in requirements]
    conflicts = [requirement.contradicts_expression() for requirement in requirements]
    conflicts.append(
        f"(has({_SELECTOR}) && e.key in {_SELECTOR} && ((e.operator == 'DoesNotExist') || "
        f"(e.operator == 'In' && !({_SELECTOR}[e.key] in e.values)) || "
        f"(e.operator == 'NotIn' && {_SELECTOR}[e.key] in e.values)))"
    )
    impossible = f"has(t.matchExpressions) && t.matchExpressions.exists(e, {' || '.join(conflicts)})"
    # Terms that are all empty match no node; that is a contradiction only of a policy that requires something.
    empty = "false" if requirements else f"!{_TERMS}.exists(t, {_IS_FILLED})"
    term = f"!{_HAS_TERMS} || {empty} || {_TERMS}.exists(t, {_IS_FILLED} && !({impossible}))"
    nothing = f"!({' || '.join(against)})" if against else "true"
    return f"{nothing} && ({term})"


def _ensure_node_affinity() -> str:
    affinity = ensure_map(_AFFINITY, "spec", "affinity")
    node = operation("add", pointer(*_NODE_POINTER), "{}")
    return f"{affinity} + ({_HAS_NODE} ? [] : [{node}])"


def _required_piece(required: Sequence[_Requirement]) -> tuple[str, str]:
    """Returns two CEL expressions: one that is true if a term lacks a requirement, and one for the operations that add
    the requirements to each term."""
    expressions = "(has(t.matchExpressions) ? t.matchExpressions : [])"
    has_all = " && ".join(r.is_in(expressions) for r in required)
    test = f"(!{_HAS_TERMS} || {_TERMS}.exists(t, {_IS_FILLED} && !({has_all})))"
    whole = f"{{'nodeSelectorTerms': [{{'matchExpressions': [{', '.join(r.literal for r in required)}]}}]}}"
    path = pointer(*_NODE_POINTER, "requiredDuringSchedulingIgnoredDuringExecution")
    create = f"[{operation('add', path, whole)}]"
    term_path = f'{path[:-1]}/nodeSelectorTerms/" + string(i) + "/matchExpressions'
    ensure = f"(has(t.matchExpressions) ? [] : [{operation('add', term_path + chr(34), '[]')}])"
    adds = " + ".join(
        f"({r.is_in(expressions)} ? [] : [{operation('add', term_path + '/-' + chr(34), r.literal)}])" for r in required
    )
    append = f"{_TERMS}.transformList(i, t, {_IS_FILLED} && !({has_all}), {ensure} + {adds}).flatten()"
    return test, f"({_HAS_TERMS} ? {append} : {create})"


def _any_piece(groups: Sequence[Sequence[_Requirement]]) -> tuple[str, str]:
    """Returns two CEL expressions: one that is true if a term contains none of the groups, and one for the operation
    that replaces each term by one term per group."""
    expressions = "(has(t.matchExpressions) ? t.matchExpressions : [])"
    has_any = " || ".join("(" + " && ".join(r.is_in(expressions) for r in group) + ")" for group in groups)
    test = (
        f"((!{_HAS_TERMS} || {_TERMS}.exists(t, {_IS_FILLED} && !({has_any}))) && "
        f"(!{_HAS_TERMS} || {_TERMS}.size() * {len(groups)} <= 64))"
    )
    path = pointer(*_NODE_POINTER, "requiredDuringSchedulingIgnoredDuringExecution")
    plain = ", ".join(f"{{'matchExpressions': [{', '.join(r.literal for r in group)}]}}" for group in groups)
    whole = f"{{'nodeSelectorTerms': [{plain}]}}"
    create = f"[{operation('add', path, whole)}]"
    products = []
    for group in groups:
        merged = " + ".join([expressions, *(f"({r.is_in(expressions)} ? [] : [{r.literal}])" for r in group)])
        both = f"{{'matchFields': dyn(t.matchFields), 'matchExpressions': dyn({merged})}}"
        products.append(f"(has(t.matchFields) ? {both} : {{'matchExpressions': dyn({merged})}})")
    terms = f"{_TERMS}.filter(t, {_IS_FILLED}).map(t, [{', '.join(products)}]).flatten()"
    replace = operation(
        "add", pointer(*_NODE_POINTER, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"), terms
    )
    return test, f"({_HAS_TERMS} ? [{replace}] : {create})"


def _selector_piece(selector: dict[str, str]) -> tuple[str, str]:
    lacking = {key: f"!({has_entry(_SELECTOR, key)})" for key in sorted(selector)}
    adds = " + ".join(
        f"({test} ? [{operation('add', pointer('spec', 'nodeSelector', key), cel_string(selector[key]))}] : [])"
        for key, test in lacking.items()
    )
    return f"({' || '.join(lacking.values())})", f"{ensure_map(_SELECTOR, 'spec', 'nodeSelector')} + {adds}"


def _preferred_piece(prefer: Sequence[NodeLabel]) -> tuple[str, str]:
    path, lacking = pointer(*_NODE_POINTER, "preferredDuringSchedulingIgnoredDuringExecution"), []
    for label in prefer:
        requirement = _requirement(label)
        listed = "t.preference.matchExpressions"
        same = f"has({listed}) && {listed}.size() == 1 && {requirement.is_in(listed)}"
        term = (
            f"{{'weight': dyn({label.weight or 50}), "
            f"'preference': dyn({{'matchExpressions': [{requirement.literal}]}})}}"
        )
        lacking.append((f"!({_HAS_PREFERRED} && {_PREFERRED}.exists(t, {same}))", term))
    adds = " + ".join(
        f"({test} ? [{operation('add', path[:-1] + '/-' + chr(34), term)}] : [])" for test, term in lacking
    )
    create = f"({_HAS_NODE} && has({_PREFERRED}) ? [] : [{operation('add', path, '[]')}])"
    return f"({' || '.join(test for test, _ in lacking)})", f"{create} + {adds}"


def _toleration_source(toleration: AddedToleration) -> str:
    label = (
        NodeLabel(label="x", in_namespace_label=toleration.value_from_namespace)
        if toleration.value_from_namespace
        else None
    )
    if toleration.value_from_pod:
        label = NodeLabel(label="x", in_pod_label=toleration.value_from_pod, among=toleration.among)
    return _resolved_source(label) if label is not None else "true"


def _toleration_piece(wishes: Sequence[AddedToleration]) -> tuple[str, str]:
    lacking = []
    for wish in wishes:
        if wish.value_from_namespace is not None:
            value = f"string({NAMESPACE_LABELS}[{cel_string(wish.value_from_namespace)}])"
        elif wish.value_from_pod is not None:
            value = f"string({LABELS}[{cel_string(wish.value_from_pod)}])"
        else:
            value = cel_string(wish.value or "")
        is_dynamic = wish.value_from_namespace is not None or wish.value_from_pod is not None
        operator = wish.operator or ("Equal" if is_dynamic or wish.value is not None else "Exists")
        lacking.append((_not_tolerated(wish, operator, value), _toleration_literal(wish, operator, value)))
    path = pointer("spec", "tolerations")
    adds = " + ".join(
        f"({test} ? [{operation('add', path[:-1] + '/-' + chr(34), text)}] : [])" for test, text in lacking
    )
    create = f"(has({_TOLERATIONS}) ? [] : [{operation('add', path, '[]')}])"
    return f"({' || '.join(test for test, _ in lacking)})", f"{create} + {adds}"


def _not_tolerated(wish: AddedToleration, operator: str, value: str) -> str:
    """Returns a CEL expression that is true if no toleration of the pod covers the wanted toleration
    (pkg/util/tolerations `isSuperset`)."""
    key, effect = cel_string(wish.key or ""), cel_string(wish.effect or "")
    field = "(has(t.{0}) ? t.{0} : '')".format
    has_seconds = "has(t.tolerationSeconds)"
    long = f"t.tolerationSeconds >= {wish.seconds}" if wish.seconds is not None else "false"
    tests = [
        f"!({field('effect')} in ['', 'NoExecute']) || !{has_seconds} || {long}",
        f"{field('effect')} in ['', {effect}]",
        f"{field('operator')} == 'Exists' ? {field('key')} in ['', {key}] : "
        + (f"({field('key')} == {key} && {field('value')} == {value})" if operator == "Equal" else "false"),
    ]
    return f"!(has({_TOLERATIONS}) && {_TOLERATIONS}.exists(t, {join_all(tests)}))"


def _toleration_literal(toleration: AddedToleration, operator: str, value: str) -> str:
    fields: dict[str, object] = {"operator": operator}
    fields |= {"key": toleration.key} if toleration.key else {}
    fields |= {"effect": toleration.effect} if toleration.effect else {}
    fields |= {"tolerationSeconds": toleration.seconds} if toleration.seconds is not None else {}
    given = f", 'value': dyn({value})}}" if operator == "Equal" and value != '""' else "}"
    return map_literal(fields)[:-1] + given


def _resolved_source(label: NodeLabel) -> str:
    """Returns a CEL expression that is true if the source of this node label's value exists, which is a label of the
    pod or of its namespace."""
    if label.in_namespace_label is not None:
        path = NAMESPACE_LABELS
        return f"{has_entry(path, label.in_namespace_label)} && {path}[{cel_string(label.in_namespace_label)}] != ''"
    if label.in_pod_label is not None:
        value = f"{LABELS}[{cel_string(label.in_pod_label)}]"
        return f"{has_entry(LABELS, label.in_pod_label)} && {value} in {cel_list(label.among)}"
    return "true"
