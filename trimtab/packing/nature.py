"""Does a node's nature admit a pod? Labels, names and taints: what no move of a pod changes."""

from collections.abc import Iterable

from trimtab.cluster.api.meta import Requirement, get
from trimtab.cluster.api.node import Taint
from trimtab.cluster.api.pod import NodeSelector, NodeSelectorTerm, Toleration
from trimtab.cluster.node import Node
from trimtab.cluster.pod import Ask
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import requirement_matches
from trimtab.packing.reasons import NOT_SELECTED, NOT_TOLERATED, VOLUME_ELSEWHERE

KEEPS_OUT = ("NoSchedule", "NoExecute")
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What the node controller adds to a cordoned node."""


def objection(ask: Ask, volumes: Iterable[NodeSelector], node: Node) -> Reason | None:
    """The first thing in the node's nature that keeps the pod off; None when nothing does."""
    if not selected(ask, node):
        return NOT_SELECTED(f"node {node.name} is not chosen by the pod's node selector or node affinity")
    taint = untolerated(ask.tolerations, node.taints)
    if taint is not None:
        return NOT_TOLERATED(f"node {node.name} has the taint {_shown(taint)}, which the pod does not tolerate")
    if not all(node_selected(selector, node) for selector in volumes):
        return VOLUME_ELSEWHERE(f"a volume of the pod cannot be reached from node {node.name}")
    return None


def selected(ask: Ask, node: Node) -> bool:
    """nodeSelector and required node affinity, both."""
    return all(node.labels.get(k) == v for k, v in ask.node_selector.items()) and (
        ask.node_affinity is None or node_selected(ask.node_affinity, node)
    )


def preferred(term: NodeSelectorTerm, node: Node) -> bool:
    """Does the node have what a preferred term asks for? A term without any expression prefers nothing."""
    return _term(term, node)


def node_selected(selector: NodeSelector, node: Node) -> bool:
    """Terms are ORed; a term without any expression matches nothing (nodeaffinity.NewNodeSelector)."""
    return any(_term(term, node) for term in selector.node_selector_terms)


def _term(term: NodeSelectorTerm, node: Node) -> bool:
    expressions, fields = get(term.match_expressions, ()), get(term.match_fields, ())
    if not expressions and not fields:
        return False
    name = {"metadata.name": node.name}
    return all(_holds(e, node.labels) for e in expressions) and all(_holds(f, name) for f in fields)


def _holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    return requirement_matches(requirement, labels)


def untolerated(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """The first taint that keeps such a pod out."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in KEEPS_OUT and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """v1.Toleration.ToleratesTaint; operators we do not know tolerate nothing."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.key != "" and toleration.operator in ("", "Equal") and toleration.value == taint.value


def _shown(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def keys_read(ask: Ask, volumes: Iterable[NodeSelector]) -> Iterable[str]:
    """Label keys that `objection` looks at for this pod; "" where it looks at the node's name."""
    yield from ask.node_selector
    selectors = [*volumes] if ask.node_affinity is None else [ask.node_affinity, *volumes]
    for selector in selectors:
        for term in selector.node_selector_terms:
            yield from (e.key for e in get(term.match_expressions, ()))
            if get(term.match_fields, ()):
                yield ""
