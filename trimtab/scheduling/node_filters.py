"""Does a node's nature admit a pod? Labels, names and taints: what no move of a pod changes.

Does a pod select others by the labels the API server gives them when it binds?

`topology.kubernetes.io/zone` and `/region` are copied from the node onto the pod (1.35). We read pods without them,
for a successor gets its own; so who selects pods by them cannot be judged.

Which claims do several pods hold, though one pod, or one node, has them for itself?
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import LabelSelector, SelectorRequirement, UnsetType, get
from trimtab.cluster.api.pod import NodeSelector, NodeSelectorTerm, Toleration
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import COPIED, SchedulingRequirements
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import requirement_matches
from trimtab.cluster.volume_claims import Claim
from trimtab.scheduling.reasons import NOT_SELECTED, NOT_TOLERATED, VOLUME_ELSEWHERE

KEEPS_OUT = ("NoSchedule", "NoExecute")
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What the node controller adds to a cordoned node."""


def objection(ask: SchedulingRequirements, volumes: Iterable[NodeSelector], node: NodeInfo) -> Reason | None:
    """The first thing in the node's nature that keeps the pod off; None when nothing does."""
    if not selected(ask, node):
        return NOT_SELECTED(f"node {node.name} is not chosen by the pod's node selector or node affinity")
    taint = untolerated(ask.tolerations, node.taints)
    if taint is not None:
        return NOT_TOLERATED(f"node {node.name} has the taint {_shown(taint)}, which the pod does not tolerate")
    if not all(node_selected(selector, node) for selector in volumes):
        return VOLUME_ELSEWHERE(f"a volume of the pod cannot be reached from node {node.name}")
    return None


def selected(ask: SchedulingRequirements, node: NodeInfo) -> bool:
    """nodeSelector and required node affinity, both."""
    return all(node.labels.get(k) == v for k, v in ask.node_selector.items()) and (
        ask.node_affinity is None or node_selected(ask.node_affinity, node)
    )


def preferred(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    """Does the node have what a preferred term asks for? A term without any expression prefers nothing."""
    return _term(term, node)


def node_selected(selector: NodeSelector, node: NodeInfo) -> bool:
    """Terms are ORed; a term without any expression matches nothing (nodeaffinity.NewNodeSelector)."""
    return any(_term(term, node) for term in selector.node_selector_terms)


def _term(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    expressions, fields = get(term.match_expressions, ()), get(term.match_fields, ())
    if not expressions and not fields:
        return False
    name = {"metadata.name": node.name}
    return all(_holds(e, node.labels) for e in expressions) and all(_holds(f, name) for f in fields)


def _holds(requirement: SelectorRequirement, labels: dict[str, str]) -> bool:
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


def keys_read(ask: SchedulingRequirements, volumes: Iterable[NodeSelector]) -> Iterable[str]:
    """Label keys that `objection` looks at for this pod; "" where it looks at the node's name."""
    yield from ask.node_selector
    selectors = [*volumes] if ask.node_affinity is None else [ask.node_affinity, *volumes]
    for selector in selectors:
        for term in selector.node_selector_terms:
            yield from (e.key for e in get(term.match_expressions, ()))
            if get(term.match_fields, ()):
                yield ""


def speaks_of_copied(ask: SchedulingRequirements) -> bool:
    """Of its conditions; wishes may be wrong without harm."""
    if not (ask.together or ask.apart or ask.spreads):
        return False
    found = [key for spread in ask.spreads for key in (*_keys(spread.label_selector), *spread.match_label_keys)]
    for term in (*ask.together, *ask.apart):
        found += (*_keys(term.label_selector), *term.match_label_keys, *term.mismatch_label_keys)
    return any(key in COPIED for key in found)


def _keys(selector: LabelSelector | UnsetType) -> Iterable[str]:
    if not isinstance(selector, UnsetType):
        yield from selector.match_labels
        yield from (expression.key for expression in selector.match_expressions)


def shared(inventory: Inventory) -> Mapping[tuple[str, str], str]:
    """(namespace, claim) → its access mode in words. Pods that are finished hold nothing."""
    claims = inventory.claims
    if not any(_exclusive(claim) for claim in claims.values()):
        return {}
    holders = [pod for pod in inventory.pods if pod.claims and not pod.finished]
    held = Counter([(pod.namespace, name) for pod in holders for name in pod.claims])
    several = [name for name, count in held.items() if count > 1]
    return {name: _mode(claims[name]) for name in several if name in claims and _exclusive(claims[name])}


def _exclusive(claim: Claim) -> bool:
    return claim.alone or claim.one_node


def _mode(claim: Claim) -> str:
    return "ReadWriteOncePod" if claim.alone else "ReadWriteOnce: both must be on one node"
