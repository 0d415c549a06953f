"""Finds contradictions between the conditions that a pod sets for its node.

Only the conditions are compared with each other. Whether a node with such labels exists is decided by the scheduler.
"""

from collections.abc import Iterable, Iterator

from trimtab.cluster.api.meta import SelectorRequirement, value_or
from trimtab.cluster.api.pod import NodeSelectorTerm, PodSpec, required_node_terms
from trimtab.cluster.format_count import join_first


def is_empty(term: NodeSelectorTerm) -> bool:
    """Returns whether the term has neither expressions nor fields: such a term matches no node."""
    return not value_or(term.match_expressions, ()) and not value_or(term.match_fields, ())


def find_contradiction(spec: PodSpec, more: Iterable[SelectorRequirement] = ()) -> str | None:
    """Returns why no node can satisfy the node selector, the required affinity and the requirements `more` together, or
    None if a node can.

    The time is linear in the size of the input: conditions that hold for every term are tested once, and each term only
    tests the keys that it names.
    """
    terms, needed = required_node_terms(spec), [*selector_requirements(spec), *more]
    if not terms and not needed:
        return None
    common = _CommonRequirements(needed)
    if common.impossible:
        return common.impossible
    first: _KeyRequirements | None = None
    for term in terms:
        # It matches no node, so it cannot be the term that makes placement possible.
        if is_empty(term):
            continue
        impossible = common.with_term(term)
        if impossible is None:
            return None
        first = first or impossible
    return _describe_conflict(first) if first is not None else None


def selector_requirements(spec: PodSpec) -> Iterator[SelectorRequirement]:
    """Yields the labels of the pod's node selector as requirements."""
    for key, value in value_or(spec.node_selector, {}).items():
        yield SelectorRequirement(key=key, operator="In", values=(value,))


_KeyRequirements = tuple[str, list[SelectorRequirement]]
"""A label's key, and all requirements for that label. If no node can satisfy several of the labels, the first of them
is reported."""


class _CommonRequirements:
    """The conditions that a node must satisfy no matter which of the ORed terms it matches."""

    def __init__(self, requirements: Iterable[SelectorRequirement]) -> None:
        self._by_key = _by_key(requirements)
        conflict = next((entry for entry in self._by_key.items() if _is_impossible(entry[1])), None)
        self.impossible = _describe_conflict(conflict) if conflict is not None else None

    def with_term(self, term: NodeSelectorTerm) -> _KeyRequirements | None:
        """Returns a key of the term, with all its requirements, that no node can satisfy together with the common
        conditions, or None if there is none."""
        for key, same in _by_key(value_or(term.match_expressions, ())).items():
            every = [*self._by_key[key], *same] if key in self._by_key else same
            if _is_impossible(every):
                return key, every
        return None


def _by_key(requirements: Iterable[SelectorRequirement]) -> dict[str, list[SelectorRequirement]]:
    grouped: dict[str, list[SelectorRequirement]] = {}
    for requirement in requirements:
        grouped.setdefault(requirement.key, []).append(requirement)
    return grouped


def _is_impossible(requirements: list[SelectorRequirement]) -> bool:
    """Returns whether no value of one label satisfies all of these requirements."""
    # A single requirement is satisfiable, unless it is In without values.
    if len(requirements) == 1 and (requirements[0].operator != "In" or requirements[0].values):
        return False
    operators = {r.operator for r in requirements}
    if _requires_presence_and_absence(operators):
        return True
    value_sets = [frozenset(r.values) for r in requirements if r.operator == "In"]
    if not value_sets:
        return False
    # The smallest set first: an intersection costs as much as the smaller set, and it never grows.
    allowed = frozenset.intersection(*sorted(value_sets, key=len))
    allowed -= {value for r in requirements if r.operator == "NotIn" for value in r.values}
    if operators & {"Gt", "Lt"}:
        allowed = _whole_numbers_between(requirements, allowed)
    return not allowed


def _requires_presence_and_absence(operators: set[str]) -> bool:
    """Returns whether the label must exist and must also be absent. NotIn does not require the label: it matches a node
    without it too."""
    return "DoesNotExist" in operators and not operators.isdisjoint(("In", "Exists", "Gt", "Lt"))


def _describe_conflict(impossible: _KeyRequirements) -> str:
    """Returns a sentence that says why no value of this label satisfies all requirements."""
    key, same = impossible
    if _requires_presence_and_absence({r.operator for r in same}):
        return f"label {key} of the node must both exist and be absent"
    words = " and ".join(map(describe_requirement, same[:_MAX_QUOTED])) + (
        " and other conditions" if len(same) > _MAX_QUOTED else ""
    )
    return f"no value of the node label {key} is {words}"


def _whole_numbers_between(requirements: list[SelectorRequirement], values: frozenset[str]) -> frozenset[str]:
    """Returns those of the values that are whole numbers within every bound. There are none if a bound is not a number,
    because Gt and Lt only accept integers."""
    try:
        lowest = max((int(r.values[0]) for r in requirements if r.operator == "Gt"), default=None)
        highest = min((int(r.values[0]) for r in requirements if r.operator == "Lt"), default=None)
    # The API server refuses such a requirement; here it only means that no value matches.
    except (ValueError, IndexError):
        return frozenset()
    return frozenset(value for value in values if _is_between(value, lowest, highest))


def _is_between(value: str, lowest: int | None, highest: int | None) -> bool:
    try:
        number = int(value)
    except ValueError:
        return False
    return (lowest is None or number > lowest) and (highest is None or number < highest)


# Requirements, and values of one, that a sentence quotes: people read it, and it is sent as a warning.
_MAX_QUOTED = 12


def describe_requirement(requirement: SelectorRequirement) -> str:
    """Returns the condition of a requirement on its label, such as "in [batch, spot]"."""
    values = join_first(requirement.values, _MAX_QUOTED)
    return {
        "In": f"in [{values}]",
        "NotIn": f"not in [{values}]",
        "Gt": f"above {values}",
        "Lt": f"below {values}",
        "Exists": "there",
        "DoesNotExist": "absent",
    }.get(requirement.operator, requirement.operator)
