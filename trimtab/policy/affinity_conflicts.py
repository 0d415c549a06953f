"""Can any node satisfy both of these? Contradictions between what a pod requires of a node.

Only what can be told from the words alone: whether a node with such labels exists is the scheduler's question.
"""

from collections.abc import Iterable, Iterator

from trimtab.cluster.api.meta import SelectorRequirement, get
from trimtab.cluster.api.pod import NodeSelectorTerm, PodSpec


def required_terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    """The ORed terms of required node affinity; empty where there is none."""
    affinity = get(spec.affinity, None)
    node = get(affinity.node_affinity, None) if affinity else None
    required = get(node.required, None) if node else None
    return required.node_selector_terms if required else ()


def is_empty(term: NodeSelectorTerm) -> bool:
    """A term without expressions or fields matches no node at all."""
    return not get(term.match_expressions, ()) and not get(term.match_fields, ())


def contradiction(spec: PodSpec, more: Iterable[SelectorRequirement] = ()) -> str | None:
    """Why no node can satisfy node selector, required affinity and `more` together; None: nothing speaks against it.

    Linear in all that is written: what holds for every term is looked at once, and for a term only the keys it names.
    """
    terms, needed = required_terms(spec), [*_selected(spec), *more]
    if not terms and not needed:
        return None
    base = _Base(needed)
    if base.impossible:
        return base.impossible
    first: _Same | None = None
    for term in terms:
        if is_empty(term):
            continue
        impossible = base.with_term(term)
        if impossible is None:
            return None
        first = first or impossible
    return _sentence(first) if first is not None else None


def _selected(spec: PodSpec) -> Iterator[SelectorRequirement]:
    for key, value in get(spec.node_selector, {}).items():
        yield SelectorRequirement(key=key, operator="In", values=(value,))


_Same = tuple[str, list[SelectorRequirement]]
"""A label's key, and all that is required of it. Of several that are impossible, one becomes a sentence."""


class _Base:
    """What must hold beside every term."""

    def __init__(self, requirements: Iterable[SelectorRequirement]) -> None:
        self._by_key = _by_key(requirements)
        found = next((one for one in self._by_key.items() if _is_impossible(one[1])), None)
        self.impossible = _sentence(found) if found is not None else None

    def with_term(self, term: NodeSelectorTerm) -> _Same | None:
        """What no node can satisfy beside the term. Keys that it does not name are possible as they were."""
        for key, same in _by_key(get(term.match_expressions, ())).items():
            every = [*self._by_key[key], *same] if key in self._by_key else same
            if _is_impossible(every):
                return key, every
        return None


def _by_key(requirements: Iterable[SelectorRequirement]) -> dict[str, list[SelectorRequirement]]:
    found: dict[str, list[SelectorRequirement]] = {}
    for requirement in requirements:
        found.setdefault(requirement.key, []).append(requirement)
    return found


def _is_impossible(same: list[SelectorRequirement]) -> bool:
    """Is no value of one label allowed by all of these? Each value that is written is looked at once."""
    if len(same) == 1 and (same[0].operator != "In" or same[0].values):
        return False
    operators = {r.operator for r in same}
    if _is_absent_too(operators):
        return True
    wanted = [frozenset(r.values) for r in same if r.operator == "In"]
    if not wanted:
        return False
    # The smallest first: what is left is never larger, and no set is looked through for the sake of another one.
    allowed = frozenset.intersection(*sorted(wanted, key=len))
    allowed -= {value for r in same if r.operator == "NotIn" for value in r.values}
    if operators & {"Gt", "Lt"}:
        allowed = _between(same, allowed)
    return not allowed


def _is_absent_too(operators: set[str]) -> bool:
    """Must the label be there, and be absent?"""
    return "DoesNotExist" in operators and not operators.isdisjoint(("In", "Exists", "Gt", "Lt"))


def _sentence(impossible: _Same) -> str:
    """Why no value of this label is allowed by all that is required of it."""
    key, same = impossible
    if _is_absent_too({r.operator for r in same}):
        return f"label {key} must both be there and be absent"
    words = " and ".join(map(_words, same[:_MOST_QUOTED])) + (" and more" if len(same) > _MOST_QUOTED else "")
    return f"no value of label {key} is {words}"


def _between(same: list[SelectorRequirement], values: frozenset[str]) -> frozenset[str]:
    """Of the values, the whole numbers within every bound; none where a bound is no number."""
    try:
        lowest = max((int(r.values[0]) for r in same if r.operator == "Gt"), default=None)
        highest = min((int(r.values[0]) for r in same if r.operator == "Lt"), default=None)
    except (ValueError, IndexError):
        return frozenset()
    return frozenset(value for value in values if _is_between(value, lowest, highest))


def _is_between(value: str, lowest: int | None, highest: int | None) -> bool:
    try:
        number = int(value)
    except ValueError:
        return False
    return (lowest is None or number > lowest) and (highest is None or number < highest)


_MOST_QUOTED = 12
"""Requirements, and values of one, that a sentence quotes: it is for people, and goes out in a warning."""


def _words(requirement: SelectorRequirement) -> str:
    values = ", ".join(requirement.values[:_MOST_QUOTED]) + (", …" if len(requirement.values) > _MOST_QUOTED else "")
    return {
        "In": f"in [{values}]",
        "NotIn": f"not in [{values}]",
        "Gt": f"above {values}",
        "Lt": f"below {values}",
        "Exists": "there",
        "DoesNotExist": "absent",
    }.get(requirement.operator, requirement.operator)
