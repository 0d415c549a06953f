"""On which nodes may this pod run, and where would it rather?

Required terms are ORed by Kubernetes, so an expression of ours goes into every term that is not empty (an empty one
matches no node and stays so). All that one policy asks is done together or not at all: a toleration without its
affinity would let pods onto a pool they were not meant for.
"""

from typing import Annotated, Literal

from pydantic import Field

from trimtab.cluster.api.meta import UNSET, Requirement, change, get
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
from trimtab.policy.draft import Draft
from trimtab.policy.feasible import contradiction, is_empty, required_terms
from trimtab.policy.subject import Place
from trimtab.policy.vocabulary import LabelKey, LabelValue, Whole, words


@words
class NodeLabel:
    """One thing asked of a node's label; give exactly one of the conditions."""

    label: LabelKey
    in_: Annotated[tuple[LabelValue, ...], Field(alias="in")] = ()
    """One of these values."""
    not_in: tuple[LabelValue, ...] = ()
    """None of these values (a node without the label will do)."""
    exists: Literal[True] | None = None
    """The label is there, whatever its value."""
    absent: Literal[True] | None = None
    """The label is not there."""
    above: Whole | None = None
    """Its value is a whole number above this."""
    below: Whole | None = None
    """Its value is a whole number below this."""
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """Under `prefer`: how much it counts, 1 to 100 (default 50)."""

    @property
    def requirement(self) -> Requirement:
        """As Kubernetes writes it."""
        operator, values = self._condition
        return Requirement(key=self.label, operator=operator, values=values)

    @property
    def _condition(self) -> tuple[str, tuple[str, ...]]:
        if self.in_:
            return "In", self.in_
        if self.not_in:
            return "NotIn", self.not_in
        if self.above is not None:
            return "Gt", (str(self.above),)
        if self.below is not None:
            return "Lt", (str(self.below),)
        return ("DoesNotExist", ()) if self.absent else ("Exists", ())

    def __post_init__(self) -> None:
        given = [self.in_, self.not_in, self.exists, self.absent]
        numbers = [self.above is not None, self.below is not None]
        if sum(map(bool, given)) + sum(numbers) != 1:
            raise ValueError("exactly one of in, notIn, exists, absent, above, below")


@words
class Tolerate:
    """A taint to put up with."""

    key: LabelKey | None = None
    """Absent, with `operator: Exists`: every taint."""
    operator: Literal["Equal", "Exists"] | None = None
    """Default: Equal where a value is given, Exists where none is."""
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Absent: every effect."""
    seconds: Whole | None = None
    """How long to stay once a NoExecute taint appears; absent: for ever."""

    @property
    def toleration(self) -> Toleration:
        """As Kubernetes writes it."""
        operator = self.operator or ("Equal" if self.value is not None else "Exists")
        return Toleration(
            key=self.key or "",
            operator=operator,
            value=self.value or "",
            effect=self.effect or "",
            toleration_seconds=UNSET if self.seconds is None else self.seconds,
        )

    def __post_init__(self) -> None:
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("no value with operator Exists")
        if self.key is None and (self.operator == "Equal" or self.value is not None):
            raise ValueError("a key, unless the operator is Exists")
        if self.seconds is not None and self.effect != "NoExecute":
            raise ValueError("effect NoExecute where seconds are given")


@words
class Placement:
    """Where a pod may run, and where it would rather."""

    require: tuple[NodeLabel, ...] = ()
    """Node labels the pod needs: ANDed into every required term it has."""
    prefer: tuple[NodeLabel, ...] = ()
    """Node labels the pod would like, with weights."""
    node_selector: dict[LabelKey, LabelValue] | None = None
    """The plain form: labels that must be equal."""
    tolerate: tuple[Tolerate, ...] = ()
    """Taints of the pool, such as a dedicated one's."""


def propose(settings: Placement, draft: Draft, places: tuple[Place, ...]) -> None:
    """All of it, or none and why."""
    if _overruled(settings, draft):
        return
    obstacle = _obstacle(settings, draft)
    if obstacle is not None:
        draft.leave("placement", obstacle, loud=obstacle.code is reasons.CONTRADICTION)
        return
    _select(settings, draft)
    _require(settings, draft)
    _prefer(settings, draft)
    _tolerate(settings, draft)


def _overruled(settings: Placement, draft: Draft) -> bool:
    wishes = [(_required_name(label), shown(label.requirement)) for label in settings.require]
    wishes += [(f"nodeSelector[{key}]", value) for key, value in (settings.node_selector or {}).items()]
    overruled = [name for name, text in wishes if draft.is_overruled(name, text)]
    return bool(overruled)


def _required_name(label: NodeLabel) -> str:
    return f"nodeAffinity.required[{label.label}]"


def _obstacle(settings: Placement, draft: Draft) -> Reason | None:
    if draft.spec.node_name:
        return reasons.ON_ITS_NODE(f"the pod names node {draft.spec.node_name} itself")
    if any(owner.kind == "DaemonSet" for owner in draft.subject.owners) and not draft.names_daemons:
        return reasons.DAEMON("the pod belongs to a DaemonSet")
    needed = [label.requirement for label in settings.require]
    needed += [Requirement(key=k, operator="In", values=(v,)) for k, v in (settings.node_selector or {}).items()]
    impossible = contradiction(draft.spec, [*needed, *_brought(draft)])
    if impossible:
        return reasons.CONTRADICTION(impossible)
    terms = required_terms(draft.spec)
    if needed and terms and all(map(is_empty, terms)):
        return reasons.CONTRADICTION("all terms of the pod's required node affinity are empty and match no node")
    return None


def _brought(draft: Draft) -> list[Requirement]:
    """What the RuntimeClass chosen for the pod will require of its node, once the API server has filled it in."""
    chosen = draft.subject.facts.runtime_classes.get(get(draft.spec.runtime_class_name, ""))
    selector = chosen.scheduling.node_selector if chosen else {}
    return [Requirement(key=key, operator="In", values=(value,)) for key, value in selector.items()]


def _select(settings: Placement, draft: Draft) -> None:
    selector = get(draft.spec.node_selector, {})
    reason = reasons.POLICY_SAYS("the policy selects these nodes")
    added = {
        key: value
        for key, value in (settings.node_selector or {}).items()
        if draft.claim(f"nodeSelector[{key}]", selector.get(key), value, reason)
    }
    if added:
        draft.spec = change(draft.spec, node_selector={**selector, **added})


def _require(settings: Placement, draft: Draft) -> None:
    own = bool(required_terms(draft.subject.pod.spec))
    for label in settings.require:
        requirement = label.requirement
        if _everywhere(draft.spec, requirement):
            continue
        if draft.claim(
            _required_name(label), None, shown(requirement),
            reasons.POLICY_SAYS("the policy requires it of the node"), replaces=own,
        ):  # fmt: skip
            draft.spec = _with_required(draft.spec, requirement)


def _everywhere(spec: PodSpec, requirement: Requirement) -> bool:
    terms = [term for term in required_terms(spec) if not is_empty(term)]
    return bool(terms) and all(requirement in get(term.match_expressions, ()) for term in terms)


def _with_required(spec: PodSpec, requirement: Requirement) -> PodSpec:
    terms = tuple(_and(term, requirement) for term in required_terms(spec))
    terms = terms or (NodeSelectorTerm(match_expressions=(requirement,)),)
    return _with_node_affinity(spec, required=NodeSelector(node_selector_terms=terms))


def _and(term: NodeSelectorTerm, requirement: Requirement) -> NodeSelectorTerm:
    expressions = get(term.match_expressions, ())
    if is_empty(term) or requirement in expressions:
        return term
    return change(term, match_expressions=(*expressions, requirement))


def _with_node_affinity(spec: PodSpec, **parts: object) -> PodSpec:
    affinity = get(spec.affinity, Affinity())
    node = change(get(affinity.node_affinity, NodeAffinity()), **parts)
    return change(spec, affinity=change(affinity, node_affinity=node))


def _prefer(settings: Placement, draft: Draft) -> None:
    own = bool(_preferred(draft.subject.pod.spec))
    for label in settings.prefer:
        requirement = label.requirement
        present = _preferred(draft.spec)
        if any(get(term.preference.match_expressions, ()) == (requirement,) for term in present):
            continue
        name = f"nodeAffinity.preferred[{label.label}]"
        prefers = reasons.POLICY_SAYS("the policy prefers such nodes")
        if draft.claim(name, None, shown(requirement), prefers, replaces=own):
            term = PreferredTerm(
                weight=label.weight or 50, preference=NodeSelectorTerm(match_expressions=(requirement,))
            )
            draft.spec = _with_node_affinity(draft.spec, preferred=(*present, term))


def _preferred(spec: PodSpec) -> tuple[PreferredTerm, ...]:
    return get(get(get(spec.affinity, Affinity()).node_affinity, NodeAffinity()).preferred, ())


def _tolerate(settings: Placement, draft: Draft) -> None:
    for wish in settings.tolerate:
        toleration = wish.toleration
        present = get(draft.spec.tolerations, ())
        if covered(toleration, present):
            continue
        name = f"tolerations[{toleration.key or '*'}:{toleration.effect or '*'}]"
        text = f"{toleration.operator} {toleration.value}".strip()
        tolerates = reasons.POLICY_SAYS("the policy tolerates the taint")
        if draft.claim(name, None, text, tolerates, replaces=draft.subject.tolerations_applied):
            draft.spec = change(draft.spec, tolerations=(*present, toleration))


def shown(requirement: Requirement) -> str:
    """ "In batch, spot"."""
    return f"{requirement.operator} {', '.join(requirement.values)}".strip()
