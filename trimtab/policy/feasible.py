"""Can any node satisfy both of these? Contradictions between what a pod requires of a node.

Only what can be told from the words alone: whether a node with such labels exists is the scheduler's question.
"""

from collections.abc import Iterable

from trimtab.cluster.api.meta import Requirement, get
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


def contradiction(spec: PodSpec, more: Iterable[Requirement] = ()) -> str | None:
    """Why no node can satisfy node selector, required affinity and `more` together; None: nothing speaks against it."""
    base = [Requirement(key=k, operator="In", values=(v,)) for k, v in get(spec.node_selector, {}).items()]
    base += more
    impossible = _impossible(base)
    terms = [term for term in required_terms(spec) if not is_empty(term)]
    if impossible or not terms:
        return impossible
    found = [_impossible([*base, *get(term.match_expressions, ())]) for term in terms]
    return next((text for text in found if text), None) if all(found) else None


def _impossible(requirements: Iterable[Requirement]) -> str | None:
    by_key: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        by_key.setdefault(requirement.key, []).append(requirement)
    for key, same in by_key.items():
        text = _impossible_key(key, same)
        if text:
            return text
    return None


def _impossible_key(key: str, same: list[Requirement]) -> str | None:
    operators = {r.operator for r in same}
    if "DoesNotExist" in operators and operators & {"In", "Exists", "Gt", "Lt"}:
        return f"label {key} must both be there and be absent"
    wanted = [set(r.values) for r in same if r.operator == "In"]
    if not wanted:
        return None
    left = set.intersection(*wanted)
    for requirement in same:
        left = {value for value in left if _allows(requirement, value)}
    if left:
        return None
    words = " and ".join(_words(r) for r in same)
    return f"no value of label {key} is {words}"


def _allows(requirement: Requirement, value: str) -> bool:
    if requirement.operator == "NotIn":
        return value not in requirement.values
    if requirement.operator in ("Gt", "Lt"):
        try:
            have, bound = int(value), int(requirement.values[0])
        except (ValueError, IndexError):
            return False
        return have > bound if requirement.operator == "Gt" else have < bound
    return True


def _words(requirement: Requirement) -> str:
    values = ", ".join(requirement.values)
    return {
        "In": f"in [{values}]",
        "NotIn": f"not in [{values}]",
        "Gt": f"above {values}",
        "Lt": f"below {values}",
        "Exists": "there",
        "DoesNotExist": "absent",
    }.get(requirement.operator, requirement.operator)
