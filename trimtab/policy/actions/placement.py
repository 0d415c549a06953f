"""Restricts the nodes on which a pod may run, and adds preferences and tolerations.

Kubernetes ORs the required terms of node affinity, so an expression is added to every term that is not empty (an empty
term matches no node, and stays empty). Everything that one policy asks for is applied together or not at all: a
toleration without its affinity would let the pod onto nodes that are reserved for others.
"""

from typing import NamedTuple

from trimtab.cluster.api.meta import UNSET, SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodSpec,
    PreferredTerm,
    Toleration,
    required_node_terms,
)
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import is_covered
from trimtab.policy import reasons
from trimtab.policy.actions.placement_fields import NodeLabel, PlacementAction, resolve_labels
from trimtab.policy.affinity_conflicts import find_contradiction, is_empty
from trimtab.policy.cluster_facts import Derived
from trimtab.policy.field_owners import grows_applied
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext


class _NodeCondition(NamedTuple):
    """A condition on the node, with the name of the field that it decides and that field's value."""

    field: str
    requirement: SelectorRequirement
    text: str
    weight: int = 0


class _TolerationWish(NamedTuple):
    """A toleration to add, with the name of the field that it decides and that field's value."""

    field: str
    toleration: Toleration
    text: str


class CompiledPlacement:
    """The placement settings of one policy as they are written in a pod's spec, with the names of all fields that they
    decide.

    It is built once per policy, because nothing in it depends on the pod.
    """

    def __init__(self, settings: PlacementAction) -> None:
        self.is_required = bool(settings.required)
        self.selector = tuple(
            (f"nodeSelector[{key}]", key, value) for key, value in (settings.node_selector or {}).items()
        )
        self.require = tuple(
            _describe_condition(f"nodeAffinity.required[{label.label}]", label) for label in settings.require
        )
        self.groups = [[label.selector_requirement for label in group] for group in settings.require_any]
        # The name of the field for required groups of node labels. The name includes the groups, because several
        # policies may each require one of their own groups.
        text = " or ".join(" and ".join(f"{r.key} {format_requirement(r)}" for r in group) for group in self.groups)
        self.groups_field = f"nodeAffinity.required[{text}]"
        # The name of the field for one preferred node label. The name includes the value, because preferences are a
        # list: a new entry does not replace another.
        self.prefer = tuple(
            _describe_condition(
                f"nodeAffinity.preferred[{label.label} {format_requirement(label.selector_requirement)}]", label
            )
            for label in settings.prefer
        )
        self.tolerate = tuple(_describe_toleration(added.api_toleration) for added in settings.tolerate)
        self.needed = [condition.requirement for condition in self.require] + [
            SelectorRequirement(key=key, operator="In", values=(value,)) for _, key, value in self.selector
        ]
        """What every term of the pod must agree with; `groups` come on top."""
        self.exclusive_values = [(condition.field, condition.text) for condition in self.require] + [
            (field, value) for field, _, value in self.selector
        ]
        """Fields that one policy alone can decide, with the values that this one gives them."""


def _describe_condition(field: str, label: NodeLabel) -> _NodeCondition:
    requirement = label.selector_requirement
    # 50: the middle of the API's range of 1 to 100.
    return _NodeCondition(field, requirement, format_requirement(requirement), label.weight or 50)


def _describe_toleration(toleration: Toleration) -> _TolerationWish:
    text = f"{toleration.operator} {toleration.value}".strip()
    # The name of the field for one toleration. The name includes the value, because tolerations are a list: a new
    # entry does not replace another.
    taint = f"{toleration.key or '*'}={toleration.value}" if toleration.value else toleration.key or "*"
    return _TolerationWish(f"tolerations[{taint}:{toleration.effect or '*'}]", toleration, text)


_placements: Derived[PlacementAction, CompiledPlacement] = Derived(CompiledPlacement)


def _build_placement(settings: PlacementAction, pod_context: PodContext) -> CompiledPlacement | Reason:
    resolved = resolve_labels(settings, pod_context)
    if isinstance(resolved, Reason):
        return resolved
    # Settings with values from labels are new for each pod, and so is what is built of them.
    return _placements.value_for(settings) if resolved is settings else CompiledPlacement(resolved)


def propose_changes(settings: PlacementAction, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the policy's whole placement, or, if a part of it is not possible, none of it, and records why."""
    placement = _build_placement(settings, changes.pod_context)
    if isinstance(placement, Reason):
        is_loud = placement.code is not reasons.POD_LABEL_MISSING
        changes.leave_unchanged("placement", placement, loud=is_loud)
        return
    if bool([field for field, text in placement.exclusive_values if changes.is_overruled(field, text)]):
        return
    obstacle = _find_obstacle(placement, changes)
    if obstacle is not None:
        changes.leave_unchanged("placement", obstacle, loud=obstacle.code is reasons.CONTRADICTION)
        return
    savepoint, spec_before, reason_count = changes.create_savepoint(), changes.spec, len(changes.fields_kept)
    if placement.selector:
        _apply_node_selector(placement, changes)
    if placement.require:
        _apply_required(placement, changes)
    if placement.groups:
        _apply_required_any(placement, changes)
    if placement.prefer:
        _apply_preferred(placement, changes)
    if placement.tolerate:
        _apply_tolerations(placement, changes)
    missing = missing_part(placement, changes.spec)
    if missing is None:
        return
    # Everything is taken back, except the reasons: they say which part could not be applied, and why.
    obstacles, half_applied = tuple(changes.fields_kept)[reason_count:], changes.spec is not spec_before
    changes.restore_savepoint(savepoint)
    changes.fields_kept |= dict.fromkeys(obstacles)
    if half_applied:
        sentence = f"{missing} of the policy's placement cannot be applied, so none of the placement is applied"
        changes.leave_unchanged("placement", reasons.PLACEMENT_PART(sentence), loud=True)


def missing_part(placement: CompiledPlacement, spec: PodSpec) -> str | None:
    """Returns the first part of the placement that is missing in this spec, or None if nothing is missing."""
    if placement.selector:
        selector = value_or(spec.node_selector, {})
        for field, key, value in placement.selector:
            if selector.get(key) != value:
                return field
    for condition in placement.require:
        if not _has_in_every_term(spec, condition.requirement):
            return condition.field
    if placement.groups and not _has_any(spec, placement.groups):
        return placement.groups_field
    for condition in placement.prefer:
        if not _is_preferred(spec, condition.requirement):
            return condition.field
    present = value_or(spec.tolerations, ())
    for wish in placement.tolerate:
        if not is_covered(wish.toleration, present):
            return wish.field
    return None


def find_unmet_field(settings: PlacementAction, result: PodBeforeAndAfter) -> str | None:
    """Returns the first part of the placement that the pod lacks, or None if it lacks none."""
    placement = _build_placement(settings, result.after)
    return "placement" if isinstance(placement, Reason) else missing_part(placement, result.spec)


def _find_obstacle(placement: CompiledPlacement, changes: PodChanges) -> Reason | None:
    """Returns why the placement cannot be applied, or None if nothing prevents it."""
    # Such a pod bypasses the scheduler, and its kubelet rejects it where a required affinity does not match the node.
    if changes.spec.node_name and not placement.is_required:
        return reasons.ON_ITS_NODE(f"the pod itself names node {changes.spec.node_name}, so placement has no effect")
    # The DaemonSet controller pins each pod to its node by a required affinity (metadata.name).
    if changes.pod_context.is_daemon and not changes.names_daemons and not placement.is_required:
        return reasons.DAEMON("the pod belongs to a DaemonSet")
    needed, of_class = placement.needed, _runtime_class_requirements(changes)
    impossible = find_contradiction(changes.spec, [*needed, *of_class])
    if impossible:
        return reasons.CONTRADICTION(impossible)
    if placement.groups:
        contradictions = [find_contradiction(changes.spec, [*needed, *group, *of_class]) for group in placement.groups]
        # One group without a contradiction is enough: groups are ORed.
        if all(contradictions):
            return reasons.CONTRADICTION(contradictions[0] or "")
    terms = required_node_terms(changes.spec)
    # An expression is added to terms that are not empty; here there is none to add it to.
    if terms and (needed or placement.groups) and all(map(is_empty, terms)):
        return reasons.CONTRADICTION("all terms of the pod's required node affinity are empty, so they match no node")
    return None


def _runtime_class_requirements(changes: PodChanges) -> list[SelectorRequirement]:
    """Returns the node labels that the pod's RuntimeClass will require once the API server has filled in its node
    selector."""
    runtime_class = changes.pod_context.facts.runtime_classes.get(value_or(changes.spec.runtime_class_name, ""))
    selector = runtime_class.scheduling.node_selector if runtime_class else {}
    return [SelectorRequirement(key=key, operator="In", values=(value,)) for key, value in selector.items()]


def _apply_node_selector(placement: CompiledPlacement, changes: PodChanges) -> None:
    selector = value_or(changes.spec.node_selector, {})
    reason = reasons.POLICY_SAYS("the policy selects these nodes")
    is_kept = grows_applied(changes.pod_context, "nodeSelector")
    added = {
        key: value
        for field, key, value in placement.selector
        if changes.claim_field(field, selector.get(key), value, reason, replaces=is_kept or key in selector)
    }
    if added:
        changes.spec = change(changes.spec, node_selector={**selector, **added})


def _apply_required(placement: CompiledPlacement, changes: PodChanges) -> None:
    has_own_terms = bool(required_node_terms(changes.pod_context.pod.spec))
    for field, requirement, text, _ in placement.require:
        if _has_in_every_term(changes.spec, requirement):
            changes.decide_first(field, text)  # also where it was written down before
        elif changes.claim_field(field, None, text, _REQUIRES, replaces=has_own_terms):
            terms = tuple(_add_expression(term, requirement) for term in required_node_terms(changes.spec))
            terms = terms or (NodeSelectorTerm(match_expressions=(requirement,)),)
            changes.spec = _change_node_affinity(changes.spec, required=NodeSelector(node_selector_terms=terms))


_REQUIRES = reasons.POLICY_SAYS("the policy requires this label of the pod's node")


def _has_any(spec: PodSpec, groups: list[list[SelectorRequirement]]) -> bool:
    """Returns whether every required term that can match a node already contains all expressions of one of the
    groups."""
    terms = [value_or(term.match_expressions, ()) for term in required_node_terms(spec) if not is_empty(term)]
    return bool(terms) and all(any(all(r in term for r in group) for group in groups) for term in terms)


def _apply_required_any(placement: CompiledPlacement, changes: PodChanges) -> None:
    """Replaces each required term of the pod by one term per group, with the group's expressions added: terms are ORed,
    and the expressions of one term are ANDed."""
    groups, field = placement.groups, placement.groups_field
    if _has_any(changes.spec, groups):
        return
    has_own_terms = bool(required_node_terms(changes.pod_context.pod.spec))
    reason = reasons.POLICY_SAYS("the policy requires one of these labels of the pod's node")
    terms_before = [term for term in required_node_terms(changes.spec) if not is_empty(term)] or [NodeSelectorTerm()]
    if len(terms_before) * len(groups) > _MAX_TERMS:
        changes.leave_unchanged(
            field,
            reasons.PLACEMENT_PART(
                f"with the policy's labels, the node affinity of the pod would need more than {_MAX_TERMS} terms"
            ),
            loud=True,
        )
        return
    if not changes.claim_field(field, None, f"one of {len(groups)} groups", reason, replaces=has_own_terms):
        return
    terms = [_add_expressions(term, group) for term in terms_before for group in groups]
    changes.spec = _change_node_affinity(changes.spec, required=NodeSelector(node_selector_terms=tuple(terms)))


def _add_expressions(term: NodeSelectorTerm, group: list[SelectorRequirement]) -> NodeSelectorTerm:
    expressions = value_or(term.match_expressions, ())
    added = tuple(requirement for requirement in group if requirement not in expressions)
    return change(term, match_expressions=(*expressions, *added))


# Terms are multiplied by groups: a number that no author writes by hand is not generated either.
_MAX_TERMS = 64


def _has_in_every_term(spec: PodSpec, requirement: SelectorRequirement) -> bool:
    terms = [term for term in required_node_terms(spec) if not is_empty(term)]
    return bool(terms) and all(requirement in value_or(term.match_expressions, ()) for term in terms)


def _add_expression(term: NodeSelectorTerm, requirement: SelectorRequirement) -> NodeSelectorTerm:
    expressions = value_or(term.match_expressions, ())
    if is_empty(term) or requirement in expressions:
        return term
    return change(term, match_expressions=(*expressions, requirement))


def _change_node_affinity(spec: PodSpec, **parts: object) -> PodSpec:
    affinity = value_or(spec.affinity, Affinity())
    node = change(value_or(affinity.node_affinity, NodeAffinity()), **parts)
    return change(spec, affinity=change(affinity, node_affinity=node))


def _apply_preferred(placement: CompiledPlacement, changes: PodChanges) -> None:
    has_own_terms = bool(_preferred_terms(changes.pod_context.pod.spec))
    for field, requirement, text, weight in placement.prefer:
        if _is_preferred(changes.spec, requirement):
            continue
        if changes.claim_field(field, None, text, _PREFERS, replaces=has_own_terms):
            term = PreferredTerm(weight=weight, preference=NodeSelectorTerm(match_expressions=(requirement,)))
            changes.spec = _change_node_affinity(changes.spec, preferred=(*_preferred_terms(changes.spec), term))


_PREFERS = reasons.POLICY_SAYS("the policy prefers nodes with this label")


def _is_preferred(spec: PodSpec, requirement: SelectorRequirement) -> bool:
    # A loop, not a generator: this runs twice for every review.
    for term in _preferred_terms(spec):  # noqa: SIM110
        if term.preference.match_expressions == (requirement,):
            return True
    return False


def _preferred_terms(spec: PodSpec) -> tuple[PreferredTerm, ...]:
    node = UNSET if spec.affinity is UNSET else spec.affinity.node_affinity
    return () if node is UNSET else value_or(node.preferred, ())


def _apply_tolerations(placement: CompiledPlacement, changes: PodChanges) -> None:
    for field, toleration, text in placement.tolerate:
        present = value_or(changes.spec.tolerations, ())
        # A toleration with a wider key, operator or effect already tolerates the taint.
        if is_covered(toleration, present):
            continue
        if changes.claim_field(
            field, None, text, _TOLERATES, replaces=grows_applied(changes.pod_context, "tolerations")
        ):
            changes.spec = change(changes.spec, tolerations=(*present, toleration))


_TOLERATES = reasons.POLICY_SAYS("the policy adds this toleration")


def format_requirement(requirement: SelectorRequirement) -> str:
    """Returns the operator and the values of a requirement as text, such as "In batch, spot"."""
    return f"{requirement.operator} {', '.join(requirement.values)}".strip()
