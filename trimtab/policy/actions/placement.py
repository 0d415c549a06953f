"""On which nodes may this pod run, and where would it rather?

Required terms are ORed by Kubernetes, so an expression of ours goes into every term that is not empty (an empty one
matches no node and stays so). All that one policy asks is done together or not at all: a toleration without its
affinity would let pods onto a pool they were not meant for.
"""

from trimtab.cluster.api.meta import UNSET, SelectorRequirement, change, get
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
from trimtab.cluster.selectors import covered
from trimtab.policy import reasons
from trimtab.policy.actions.placement_fields import NodeLabel, PlacementAction, resolved
from trimtab.policy.affinity_conflicts import contradiction, is_empty, required_terms
from trimtab.policy.field_owners import grows_applied
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter


def propose_changes(settings: PlacementAction, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """All of it, or none and why."""
    found = resolved(settings, draft.subject)
    if isinstance(found, Reason):
        draft.leave_unchanged("placement", found, loud=found.code is not reasons.POD_LABEL_MISSING)
        return
    settings = found
    if _overruled(settings, draft):
        return
    obstacle = _obstacle(settings, draft)
    if obstacle is not None:
        draft.leave_unchanged("placement", obstacle, loud=obstacle.code is reasons.CONTRADICTION)
        return
    stands, stands_spec, said = draft.create_savepoint(), draft.spec, len(draft.left)
    _select(settings, draft)
    _require(settings, draft)
    _require_any(settings, draft)
    _prefer(settings, draft)
    _tolerate(settings, draft)
    missing = missing_part(settings, draft.spec)
    if missing is None:
        return
    obstacles, half_applied = tuple(draft.left)[said:], draft.spec is not stands_spec
    draft.restore_savepoint(stands)
    draft.left |= dict.fromkeys(obstacles)
    if half_applied:
        sentence = f"{missing} cannot be given, so none of the policy's placement is"
        draft.leave_unchanged("placement", reasons.PLACEMENT_PART(sentence), loud=True)


def missing_part(settings: PlacementAction, spec: PodSpec) -> str | None:
    """The first part of the placement that a pod of this spec lacks; None where it has all of it."""
    selector = get(spec.node_selector, {})
    for key, value in (settings.node_selector or {}).items():
        if selector.get(key) != value:
            return f"nodeSelector[{key}]"
    for label in settings.require:
        if not _everywhere(spec, label.requirement):
            return _required_name(label)
    if settings.require_any and not _has_any(spec, _alternatives(settings)):
        return _any_name(settings)
    preferred = [get(term.preference.match_expressions, ()) for term in _preferred(spec)]
    for label in settings.prefer:
        if (label.requirement,) not in preferred:
            return _preferred_name(label)
    present = get(spec.tolerations, ())
    for wish in settings.tolerate:
        if not covered(wish.api_toleration, present):
            return _tolerated_name(wish.api_toleration)
    return None


def find_unmet_field(settings: PlacementAction, result: PodBeforeAndAfter) -> str | None:
    """The first part of it that the pod lacks."""
    found = resolved(settings, result.after)
    return "placement" if isinstance(found, Reason) else missing_part(found, result.spec)


def _overruled(settings: PlacementAction, draft: PodChanges) -> bool:
    wishes = [(_required_name(label), shown(label.requirement)) for label in settings.require]
    wishes += [(f"nodeSelector[{key}]", value) for key, value in (settings.node_selector or {}).items()]
    overruled = [name for name, text in wishes if draft.is_overruled(name, text)]
    return bool(overruled)


def _preferred_name(label: NodeLabel) -> str:
    """Of its value, too: preferences are a list, and one more takes nothing from another."""
    return f"nodeAffinity.preferred[{label.label} {shown(label.requirement)}]"


def _tolerated_name(toleration: Toleration) -> str:
    """Of its value, too: tolerations are a list, and one more takes nothing from another."""
    taint = f"{toleration.key or '*'}={toleration.value}" if toleration.value else toleration.key or "*"
    return f"tolerations[{taint}:{toleration.effect or '*'}]"


def _required_name(label: NodeLabel) -> str:
    return f"nodeAffinity.required[{label.label}]"


def _obstacle(settings: PlacementAction, draft: PodChanges) -> Reason | None:
    if draft.spec.node_name and not settings.required:
        return reasons.ON_ITS_NODE(f"the pod names node {draft.spec.node_name} itself")
    if draft.subject.is_daemon and not draft.names_daemons and not settings.required:
        return reasons.DAEMON("the pod belongs to a DaemonSet")
    needed = [label.requirement for label in settings.require]
    needed += [
        SelectorRequirement(key=k, operator="In", values=(v,)) for k, v in (settings.node_selector or {}).items()
    ]
    impossible = contradiction(draft.spec, [*needed, *_brought(draft)])
    if impossible:
        return reasons.CONTRADICTION(impossible)
    if settings.require_any:
        contradictions = [
            contradiction(draft.spec, [*needed, *group, *_brought(draft)]) for group in _alternatives(settings)
        ]
        if all(contradictions):
            return reasons.CONTRADICTION(contradictions[0] or "")
        needed += _alternatives(settings)[0]
    terms = required_terms(draft.spec)
    if needed and terms and all(map(is_empty, terms)):
        return reasons.CONTRADICTION("all terms of the pod's required node affinity are empty and match no node")
    return None


def _brought(draft: PodChanges) -> list[SelectorRequirement]:
    """What the RuntimeClass chosen for the pod will require of its node, once the API server has filled it in."""
    chosen = draft.subject.facts.runtime_classes.get(get(draft.spec.runtime_class_name, ""))
    selector = chosen.scheduling.node_selector if chosen else {}
    return [SelectorRequirement(key=key, operator="In", values=(value,)) for key, value in selector.items()]


def _select(settings: PlacementAction, draft: PodChanges) -> None:
    selector = get(draft.spec.node_selector, {})
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


def _require(settings: PlacementAction, draft: PodChanges) -> None:
    own = bool(required_terms(draft.subject.pod.spec))
    for label in settings.require:
        requirement = label.requirement
        if _everywhere(draft.spec, requirement):
            draft.decide_first(_required_name(label), shown(requirement))  # also where it was written down before
            continue
        if draft.claim_field(
            _required_name(label), None, shown(requirement),
            reasons.POLICY_SAYS("the policy requires it of the node"), replaces=own,
        ):  # fmt: skip
            draft.spec = _with_required(draft.spec, requirement)


def _alternatives(settings: PlacementAction) -> list[list[SelectorRequirement]]:
    return [[label.requirement for label in group] for group in settings.require_any]


def _any_name(settings: PlacementAction) -> str:
    """Of its values, too: several policies may each ask for one of some groups."""
    said = " or ".join(" and ".join(f"{r.key} {shown(r)}" for r in group) for group in _alternatives(settings))
    return f"nodeAffinity.required[{said}]"


def _has_any(spec: PodSpec, alternatives: list[list[SelectorRequirement]]) -> bool:
    """Does every term that matches a node hold one of the groups whole?"""
    terms = [get(term.match_expressions, ()) for term in required_terms(spec) if not is_empty(term)]
    return bool(terms) and all(any(all(r in term for r in group) for group in alternatives) for term in terms)


def _require_any(settings: PlacementAction, draft: PodChanges) -> None:
    """Each of the pod's terms once with each group: terms are ORed, and what stands in one is ANDed."""
    if not settings.require_any or _has_any(draft.spec, _alternatives(settings)):
        return
    own, name = bool(required_terms(draft.subject.pod.spec)), _any_name(settings)
    says = reasons.POLICY_SAYS("the policy requires one of these of the node")
    before = [term for term in required_terms(draft.spec) if not is_empty(term)] or [NodeSelectorTerm()]
    if len(before) * len(settings.require_any) > _MOST_TERMS:
        draft.leave_unchanged(name, reasons.PLACEMENT_PART(f"it would take more than {_MOST_TERMS} terms"), loud=True)
        return
    if not draft.claim_field(name, None, f"one of {len(settings.require_any)} groups", says, replaces=own):
        return
    terms = [_with_all(term, group) for term in before for group in _alternatives(settings)]
    draft.spec = _with_node_affinity(draft.spec, required=NodeSelector(node_selector_terms=tuple(terms)))


def _with_all(term: NodeSelectorTerm, group: list[SelectorRequirement]) -> NodeSelectorTerm:
    expressions = get(term.match_expressions, ())
    added = tuple(requirement for requirement in group if requirement not in expressions)
    return change(term, match_expressions=(*expressions, *added))


_MOST_TERMS = 64
"""Terms are multiplied by groups: what nobody writes by hand is not made either."""


def _everywhere(spec: PodSpec, requirement: SelectorRequirement) -> bool:
    terms = [term for term in required_terms(spec) if not is_empty(term)]
    return bool(terms) and all(requirement in get(term.match_expressions, ()) for term in terms)


def _with_required(spec: PodSpec, requirement: SelectorRequirement) -> PodSpec:
    terms = tuple(_and(term, requirement) for term in required_terms(spec))
    terms = terms or (NodeSelectorTerm(match_expressions=(requirement,)),)
    return _with_node_affinity(spec, required=NodeSelector(node_selector_terms=terms))


def _and(term: NodeSelectorTerm, requirement: SelectorRequirement) -> NodeSelectorTerm:
    expressions = get(term.match_expressions, ())
    if is_empty(term) or requirement in expressions:
        return term
    return change(term, match_expressions=(*expressions, requirement))


def _with_node_affinity(spec: PodSpec, **parts: object) -> PodSpec:
    affinity = get(spec.affinity, Affinity())
    node = change(get(affinity.node_affinity, NodeAffinity()), **parts)
    return change(spec, affinity=change(affinity, node_affinity=node))


def _prefer(settings: PlacementAction, draft: PodChanges) -> None:
    own = bool(_preferred(draft.subject.pod.spec))
    for label in settings.prefer:
        requirement = label.requirement
        present = _preferred(draft.spec)
        if any(get(term.preference.match_expressions, ()) == (requirement,) for term in present):
            continue
        name = _preferred_name(label)
        prefers = reasons.POLICY_SAYS("the policy prefers such nodes")
        if draft.claim_field(name, None, shown(requirement), prefers, replaces=own):
            term = PreferredTerm(
                weight=label.weight or 50, preference=NodeSelectorTerm(match_expressions=(requirement,))
            )
            draft.spec = _with_node_affinity(draft.spec, preferred=(*present, term))


def _preferred(spec: PodSpec) -> tuple[PreferredTerm, ...]:
    node = UNSET if spec.affinity is UNSET else spec.affinity.node_affinity
    return () if node is UNSET else get(node.preferred, ())


def _tolerate(settings: PlacementAction, draft: PodChanges) -> None:
    for wish in settings.tolerate:
        toleration = wish.api_toleration
        present = get(draft.spec.tolerations, ())
        if covered(toleration, present):
            continue
        name = _tolerated_name(toleration)
        text = f"{toleration.operator} {toleration.value}".strip()
        tolerates = reasons.POLICY_SAYS("the policy tolerates the taint")
        if draft.claim_field(name, None, text, tolerates, replaces=grows_applied(draft.subject, "tolerations")):
            draft.spec = change(draft.spec, tolerations=(*present, toleration))


def shown(requirement: SelectorRequirement) -> str:
    """ "In batch, spot"."""
    return f"{requirement.operator} {', '.join(requirement.values)}".strip()
