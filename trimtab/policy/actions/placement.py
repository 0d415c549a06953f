"""Restricts the nodes that a pod may run on, and adds preferences and tolerations.

Kubernetes ORs required terms, so an expression is added to every term that is not empty (an empty term matches no node
and stays empty). All that one policy asks for is applied together or not at all: a toleration without its affinity
would let pods onto a pool that they are not meant for.
"""

from trimtab.cluster.api.meta import UNSET, SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodSpec,
    PreferredTerm,
    Toleration,
)
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import is_covered
from trimtab.policy import reasons
from trimtab.policy.actions.placement_fields import NodeLabel, PlacementAction, resolve_labels
from trimtab.policy.affinity_conflicts import find_contradiction, is_empty, required_terms
from trimtab.policy.field_owners import grows_applied
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter


def propose_changes(settings: PlacementAction, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Applies the whole placement, or nothing and records why."""
    resolved_settings = resolve_labels(settings, draft.subject)
    if isinstance(resolved_settings, Reason):
        is_loud = resolved_settings.code is not reasons.POD_LABEL_MISSING
        draft.leave_unchanged("placement", resolved_settings, loud=is_loud)
        return
    settings = resolved_settings
    if _is_overruled(settings, draft):
        return
    obstacle = _find_obstacle(settings, draft)
    if obstacle is not None:
        draft.leave_unchanged("placement", obstacle, loud=obstacle.code is reasons.CONTRADICTION)
        return
    savepoint, spec_before, reason_count = draft.create_savepoint(), draft.spec, len(draft.fields_kept)
    _apply_node_selector(settings, draft)
    _apply_required(settings, draft)
    _apply_required_any(settings, draft)
    _apply_preferred(settings, draft)
    _apply_tolerations(settings, draft)
    missing = missing_part(settings, draft.spec)
    if missing is None:
        return
    # Everything is taken back, except the reasons: they say which part could not be applied, and why.
    obstacles, half_applied = tuple(draft.fields_kept)[reason_count:], draft.spec is not spec_before
    draft.restore_savepoint(savepoint)
    draft.fields_kept |= dict.fromkeys(obstacles)
    if half_applied:
        sentence = f"{missing} cannot be given, so none of the policy's placement is"
        draft.leave_unchanged("placement", reasons.PLACEMENT_PART(sentence), loud=True)


def missing_part(settings: PlacementAction, spec: PodSpec) -> str | None:
    """Returns the first part of the placement that a pod with this spec lacks; None where it has all of it."""
    selector = value_or(spec.node_selector, {})
    for key, value in (settings.node_selector or {}).items():
        if selector.get(key) != value:
            return f"nodeSelector[{key}]"
    for label in settings.require:
        if not _has_in_every_term(spec, label.selector_requirement):
            return _required_name(label)
    if settings.require_any and not _has_any(spec, _alternatives(settings)):
        return _required_any_name(settings)
    preferred = [value_or(term.preference.match_expressions, ()) for term in _preferred_terms(spec)]
    for label in settings.prefer:
        if (label.selector_requirement,) not in preferred:
            return _preferred_name(label)
    present = value_or(spec.tolerations, ())
    for wish in settings.tolerate:
        if not is_covered(wish.api_toleration, present):
            return _tolerated_name(wish.api_toleration)
    return None


def find_unmet_field(settings: PlacementAction, result: PodBeforeAndAfter) -> str | None:
    """Returns the first part of the placement that the pod lacks."""
    resolved_settings = resolve_labels(settings, result.after)
    if isinstance(resolved_settings, Reason):
        return "placement"
    return missing_part(resolved_settings, result.spec)


def _is_overruled(settings: PlacementAction, draft: PodChanges) -> bool:
    values_by_field = [
        (_required_name(label), format_requirement(label.selector_requirement)) for label in settings.require
    ]
    values_by_field += [(f"nodeSelector[{key}]", value) for key, value in (settings.node_selector or {}).items()]
    overruled = [name for name, text in values_by_field if draft.is_overruled(name, text)]
    return bool(overruled)


def _preferred_name(label: NodeLabel) -> str:
    """Names the field with its value: preferences are a list, and a new entry replaces no other one."""
    return f"nodeAffinity.preferred[{label.label} {format_requirement(label.selector_requirement)}]"


def _tolerated_name(toleration: Toleration) -> str:
    """Names the field with its value: tolerations are a list, and a new entry replaces no other one."""
    taint = f"{toleration.key or '*'}={toleration.value}" if toleration.value else toleration.key or "*"
    return f"tolerations[{taint}:{toleration.effect or '*'}]"


def _required_name(label: NodeLabel) -> str:
    return f"nodeAffinity.required[{label.label}]"


def _find_obstacle(settings: PlacementAction, draft: PodChanges) -> Reason | None:
    """Returns why the placement cannot be applied; None: nothing prevents it."""
    # Such a pod bypasses the scheduler, and its kubelet rejects it where a required affinity does not match the node.
    if draft.spec.node_name and not settings.required:
        return reasons.ON_ITS_NODE(f"the pod names node {draft.spec.node_name} itself")
    # The DaemonSet controller pins each pod to its node by a required affinity (metadata.name).
    if draft.subject.is_daemon and not draft.names_daemons and not settings.required:
        return reasons.DAEMON("the pod belongs to a DaemonSet")
    needed = [label.selector_requirement for label in settings.require]
    needed += [
        SelectorRequirement(key=k, operator="In", values=(v,)) for k, v in (settings.node_selector or {}).items()
    ]
    impossible = find_contradiction(draft.spec, [*needed, *_runtime_class_requirements(draft)])
    if impossible:
        return reasons.CONTRADICTION(impossible)
    if settings.require_any:
        contradictions = [
            find_contradiction(draft.spec, [*needed, *group, *_runtime_class_requirements(draft)])
            for group in _alternatives(settings)
        ]
        # One group without a contradiction is enough: groups are ORed.
        if all(contradictions):
            return reasons.CONTRADICTION(contradictions[0] or "")
        needed += _alternatives(settings)[0]
    terms = required_terms(draft.spec)
    # An expression is added to terms that are not empty; here there is none to add it to.
    if needed and terms and all(map(is_empty, terms)):
        return reasons.CONTRADICTION("all terms of the pod's required node affinity are empty and match no node")
    return None


def _runtime_class_requirements(draft: PodChanges) -> list[SelectorRequirement]:
    """Returns what the pod's RuntimeClass will require of its node, once the API server has filled it in."""
    runtime_class = draft.subject.facts.runtime_classes.get(value_or(draft.spec.runtime_class_name, ""))
    selector = runtime_class.scheduling.node_selector if runtime_class else {}
    return [SelectorRequirement(key=key, operator="In", values=(value,)) for key, value in selector.items()]


def _apply_node_selector(settings: PlacementAction, draft: PodChanges) -> None:
    selector = value_or(draft.spec.node_selector, {})
    reason = reasons.POLICY_SAYS("the policy selects these nodes")
    wanted = (settings.node_selector or {}).items()
    is_kept = bool(wanted) and grows_applied(draft.subject, "nodeSelector")
    added = {
        key: value
        for key, value in wanted
        if draft.claim_field(
            f"nodeSelector[{key}]", selector.get(key), value, reason, replaces=is_kept or key in selector
        )
    }
    if added:
        draft.spec = change(draft.spec, node_selector={**selector, **added})


def _apply_required(settings: PlacementAction, draft: PodChanges) -> None:
    has_own_terms = bool(required_terms(draft.subject.pod.spec))
    for label in settings.require:
        requirement = label.selector_requirement
        if _has_in_every_term(draft.spec, requirement):
            draft.decide_first(
                _required_name(label), format_requirement(requirement)
            )  # also where it was written down before
            continue
        if draft.claim_field(
            _required_name(label), None, format_requirement(requirement),
            reasons.POLICY_SAYS("the policy requires it of the node"), replaces=has_own_terms,
        ):  # fmt: skip
            draft.spec = _add_required(draft.spec, requirement)


def _alternatives(settings: PlacementAction) -> list[list[SelectorRequirement]]:
    return [[label.selector_requirement for label in group] for group in settings.require_any]


def _required_any_name(settings: PlacementAction) -> str:
    """Names the field with its values: several policies may each require one of some groups."""
    text = " or ".join(
        " and ".join(f"{r.key} {format_requirement(r)}" for r in group) for group in _alternatives(settings)
    )
    return f"nodeAffinity.required[{text}]"


def _has_any(spec: PodSpec, alternatives: list[list[SelectorRequirement]]) -> bool:
    """Returns whether every term that matches a node contains one of the groups as a whole."""
    terms = [value_or(term.match_expressions, ()) for term in required_terms(spec) if not is_empty(term)]
    return bool(terms) and all(any(all(r in term for r in group) for group in alternatives) for term in terms)


def _apply_required_any(settings: PlacementAction, draft: PodChanges) -> None:
    """Combines each of the pod's terms with each group: terms are ORed, and the expressions of one term are ANDed."""
    if not settings.require_any or _has_any(draft.spec, _alternatives(settings)):
        return
    has_own_terms, name = bool(required_terms(draft.subject.pod.spec)), _required_any_name(settings)
    reason = reasons.POLICY_SAYS("the policy requires one of these of the node")
    terms_before = [term for term in required_terms(draft.spec) if not is_empty(term)] or [NodeSelectorTerm()]
    if len(terms_before) * len(settings.require_any) > _MAX_TERMS:
        draft.leave_unchanged(name, reasons.PLACEMENT_PART(f"it would take more than {_MAX_TERMS} terms"), loud=True)
        return
    if not draft.claim_field(name, None, f"one of {len(settings.require_any)} groups", reason, replaces=has_own_terms):
        return
    terms = [_add_expressions(term, group) for term in terms_before for group in _alternatives(settings)]
    draft.spec = _change_node_affinity(draft.spec, required=NodeSelector(node_selector_terms=tuple(terms)))


def _add_expressions(term: NodeSelectorTerm, group: list[SelectorRequirement]) -> NodeSelectorTerm:
    expressions = value_or(term.match_expressions, ())
    added = tuple(requirement for requirement in group if requirement not in expressions)
    return change(term, match_expressions=(*expressions, *added))


# Terms are multiplied by groups: a number that no author writes by hand is not generated either.
_MAX_TERMS = 64


def _has_in_every_term(spec: PodSpec, requirement: SelectorRequirement) -> bool:
    terms = [term for term in required_terms(spec) if not is_empty(term)]
    return bool(terms) and all(requirement in value_or(term.match_expressions, ()) for term in terms)


def _add_required(spec: PodSpec, requirement: SelectorRequirement) -> PodSpec:
    terms = tuple(_add_expression(term, requirement) for term in required_terms(spec))
    terms = terms or (NodeSelectorTerm(match_expressions=(requirement,)),)
    return _change_node_affinity(spec, required=NodeSelector(node_selector_terms=terms))


def _add_expression(term: NodeSelectorTerm, requirement: SelectorRequirement) -> NodeSelectorTerm:
    expressions = value_or(term.match_expressions, ())
    if is_empty(term) or requirement in expressions:
        return term
    return change(term, match_expressions=(*expressions, requirement))


def _change_node_affinity(spec: PodSpec, **parts: object) -> PodSpec:
    affinity = value_or(spec.affinity, Affinity())
    node = change(value_or(affinity.node_affinity, NodeAffinity()), **parts)
    return change(spec, affinity=change(affinity, node_affinity=node))


def _apply_preferred(settings: PlacementAction, draft: PodChanges) -> None:
    has_own_terms = bool(_preferred_terms(draft.subject.pod.spec))
    for label in settings.prefer:
        requirement = label.selector_requirement
        present = _preferred_terms(draft.spec)
        if any(value_or(term.preference.match_expressions, ()) == (requirement,) for term in present):
            continue
        name = _preferred_name(label)
        reason = reasons.POLICY_SAYS("the policy prefers such nodes")
        if draft.claim_field(name, None, format_requirement(requirement), reason, replaces=has_own_terms):
            term = PreferredTerm(
                # The middle of the API's range of 1 to 100.
                weight=label.weight or 50,
                preference=NodeSelectorTerm(match_expressions=(requirement,)),
            )
            draft.spec = _change_node_affinity(draft.spec, preferred=(*present, term))


def _preferred_terms(spec: PodSpec) -> tuple[PreferredTerm, ...]:
    node = UNSET if spec.affinity is UNSET else spec.affinity.node_affinity
    return () if node is UNSET else value_or(node.preferred, ())


def _apply_tolerations(settings: PlacementAction, draft: PodChanges) -> None:
    for added in settings.tolerate:
        toleration = added.api_toleration
        present = value_or(draft.spec.tolerations, ())
        # A toleration with a wider key, operator or effect already tolerates the taint.
        if is_covered(toleration, present):
            continue
        name = _tolerated_name(toleration)
        text = f"{toleration.operator} {toleration.value}".strip()
        reason = reasons.POLICY_SAYS("the policy tolerates the taint")
        if draft.claim_field(name, None, text, reason, replaces=grows_applied(draft.subject, "tolerations")):
            draft.spec = change(draft.spec, tolerations=(*present, toleration))


def format_requirement(requirement: SelectorRequirement) -> str:
    """Formats the condition of a requirement, such as "In batch, spot"."""
    return f"{requirement.operator} {', '.join(requirement.values)}".strip()
