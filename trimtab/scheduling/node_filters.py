"""The filters whose result does not change when pods move: labels, names, taints and volumes of nodes.

Two more functions check pods for what these filters cannot judge:

- `selects_copied_labels`: the API server copies `topology.kubernetes.io/zone` and `/region` from the node to a pod at
  binding (1.35). Trimtab reads pods without these labels, because a successor gets those of its own node. So a pod that
  selects other pods by these labels cannot be judged.
- `shared_exclusive_claims`: claims with an exclusive access mode that more than one pod mounts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields

from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import LabelSelector, SelectorRequirement, UnsetType, value_or
from trimtab.cluster.api.pod import NodeSelector, NodeSelectorTerm, Toleration
from trimtab.cluster.claims import Claim
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import DELETION_TAINTS, NodeInfo
from trimtab.cluster.pod import COPIED_LABELS, SchedulingRequirements
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import requirement_matches
from trimtab.scheduling.reasons import NOT_SELECTED, NOT_TOLERATED, VOLUME_ELSEWHERE

REJECTING_EFFECTS = ("NoSchedule", "NoExecute")
"""The taint effects that reject a new pod; PreferNoSchedule only lowers the score."""
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The key of the taint that the node controller adds to a cordoned node."""


def node_rejection_reason(
    requirements: SchedulingRequirements, volumes: Iterable[NodeSelector], node: NodeInfo
) -> Reason | None:
    """Returns the first reason for which the node's labels, name, taints or volumes reject the pod, or None if none
    does."""
    if not matches_node_selector(requirements, node):
        return NOT_SELECTED(f"node {node.name} does not match the pod's node selector or node affinity")
    taint = first_untolerated_taint(requirements.tolerations, node.taints)
    if taint is not None:
        return NOT_TOLERATED(f"node {node.name} has the taint {format_taint(taint)}, which the pod does not tolerate")
    if not all(matches_any_term(selector, node) for selector in volumes):
        return VOLUME_ELSEWHERE(f"a volume of the pod cannot be reached from node {node.name}")
    return None


def matches_node_selector(requirements: SchedulingRequirements, node: NodeInfo) -> bool:
    """Returns whether the node matches both nodeSelector and required node affinity."""
    return all(node.labels.get(k) == v for k, v in requirements.node_selector.items()) and (
        requirements.node_affinity is None or matches_any_term(requirements.node_affinity, node)
    )


def matches_preferred_term(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    """Returns whether the node matches a preferred term. A term without expressions matches no node."""
    return _matches_term(term, node)


def matches_any_term(selector: NodeSelector, node: NodeInfo) -> bool:
    """Returns whether any term of the selector matches the node. A term without expressions matches nothing
    (nodeaffinity.NewNodeSelector)."""
    return any(_matches_term(term, node) for term in selector.node_selector_terms)


def _matches_term(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    expressions, fields = value_or(term.match_expressions, ()), value_or(term.match_fields, ())
    if not expressions and not fields:
        return False
    name = {"metadata.name": node.name}
    return all(_matches_requirement(e, node.labels) for e in expressions) and all(
        _matches_requirement(f, name) for f in fields
    )


def _matches_requirement(requirement: SelectorRequirement, labels: dict[str, str]) -> bool:
    return requirement_matches(requirement, labels)


def first_untolerated_taint(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Returns the first taint that rejects a pod with these tolerations, or None if none does."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in REJECTING_EFFECTS and not any(tolerates_taint(t, taint) for t in tolerations):
            return taint
    return None


def tolerates_taint(toleration: Toleration, taint: Taint) -> bool:
    """Returns whether the toleration covers the taint (v1.Toleration.ToleratesTaint); an unknown operator tolerates
    nothing."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.key != "" and toleration.operator in ("", "Equal") and toleration.value == taint.value


def may_return(requirements: SchedulingRequirements, volumes: Iterable[NodeSelector], node: NodeInfo) -> bool:
    """Returns whether kube-scheduler may place the successor of a pod on the node that the pod leaves, although the
    node is cordoned.

    As the plugin NodeUnschedulable: a pod that tolerates the taint of a cordon passes on a cordoned node. It prefers
    the node even, because the node has the most free capacity. A soft taint rejects no pod.
    """
    return tolerates_cordon(requirements) and node_rejection_reason(requirements, volumes, node) is None


def tolerates_cordon(requirements: SchedulingRequirements) -> bool:
    """Returns whether the pod may run on a cordoned node, because it tolerates the taint that a cordon adds."""
    return any(
        toleration.key in ("", UNSCHEDULABLE_TAINT.key) and tolerates_taint(toleration, UNSCHEDULABLE_TAINT)
        for toleration in requirements.tolerations
    )


def format_taint(taint: Taint) -> str:
    """Returns a taint as `kubectl taint` takes it: key=value:effect."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def label_keys_read(requirements: SchedulingRequirements, volumes: Iterable[NodeSelector]) -> Iterable[str]:
    """Yields the label keys that `node_rejection_reason` reads for this pod; an empty key stands for the node's
    name."""
    yield from requirements.node_selector
    selectors = [*volumes] if requirements.node_affinity is None else [requirements.node_affinity, *volumes]
    for selector in selectors:
        for term in selector.node_selector_terms:
            yield from (e.key for e in value_or(term.match_expressions, ()))
            if value_or(term.match_fields, ()):
                yield ""


def selects_copied_labels(requirements: SchedulingRequirements) -> bool:
    """Returns whether a required affinity term of the pod selects other pods by a label that the API server copies from
    nodes. Preferred terms are not checked, because a mistake in them does no harm."""
    if not (requirements.required_affinity or requirements.required_anti_affinity or requirements.hard_spreads):
        return False
    keys = [
        key
        for spread in requirements.hard_spreads
        for key in (*_selector_keys(spread.label_selector), *spread.match_label_keys)
    ]
    for term in (*requirements.required_affinity, *requirements.required_anti_affinity):
        keys += (*_selector_keys(term.label_selector), *term.match_label_keys, *term.mismatch_label_keys)
    return any(key in COPIED_LABELS for key in keys)


def _selector_keys(selector: LabelSelector | UnsetType) -> Iterable[str]:
    if not isinstance(selector, UnsetType):
        yield from selector.match_labels
        yield from (expression.key for expression in selector.match_expressions)


def shared_exclusive_claims(inventory: Inventory) -> Mapping[tuple[str, str], str]:
    """Returns (namespace, claim) → access mode as text, for each claim with an exclusive access mode that several pods
    mount. Finished pods are left out."""
    claims = inventory.claims
    if not any(_is_exclusive(claim) for claim in claims.values()):
        return {}
    mounting = [pod for pod in inventory.pods if pod.claims and not pod.is_finished]
    mount_counts = Counter([(pod.namespace, name) for pod in mounting for name in pod.claims])
    several = [name for name, count in mount_counts.items() if count > 1]
    return {
        name: "ReadWriteOncePod" if claims[name].is_single_pod else "ReadWriteOnce: both pods must be on one node"
        for name in several
        if name in claims and _is_exclusive(claims[name])
    }


def _is_exclusive(claim: Claim) -> bool:
    return claim.is_single_pod or claim.is_single_node


_CHANGING_FIELDS = frozenset({"annotations", "is_cordoned", "nature", "price", "taints"})
_LASTING_FIELDS = tuple(one.name for one in fields(NodeInfo) if one.name not in _CHANGING_FIELDS)


def is_alike_to_pods(before: NodeInfo, after: NodeInfo) -> bool:
    """Returns whether the node admits the same pods as before, as long as it receives pods at all. True if all of these
    hold:

    - nothing else differs than annotations, the price, the cordon and taints;
    - the taints that reject pods are the same, or that of a node which is being removed was added."""
    rejecting = [taint for taint in after.taints if taint.effect in REJECTING_EFFECTS]
    former = [taint for taint in before.taints if taint.effect in REJECTING_EFFECTS]
    return former == [taint for taint in rejecting if taint in former or taint.key not in DELETION_TAINTS] and all(
        getattr(before, name) == getattr(after, name) for name in _LASTING_FIELDS
    )
