"""Is there a node that could hold the pod as it would be, if there was one before?

Among those that it may use: by node selector, required affinity and taints. On what is allocatable less the daemons,
not on what is free now; all resources together, with what its RuntimeClass brings. A node group that may get its first
node is a node of a kind that nobody has seen: then what is required of nodes stays, with a warning.
"""

from trimtab.admission.quota_headroom import as_stored
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import SelectorRequirement, get
from trimtab.cluster.api.pod import NodeSelectorTerm, Pod, PodSpec
from trimtab.cluster.node_shapes import MACHINE_LABELS, Machines, NodeShape, NodeShapes
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import Amounts, pod_requests
from trimtab.cluster.selectors import requirement_matches
from trimtab.policy import reasons
from trimtab.policy.affinity_conflicts import required_terms
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.scheduling.node_filters import untolerated

_MOST_NAMED = 3
"""Node groups in one sentence."""


def missing_node(
    before: Pod, after: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings
) -> Reason | None:
    """Why no node could hold the pod any more; None: one could, or none could as it came.

    `no-known-node-matches` where a node may come that could.
    """
    nodes = facts.nodes
    if not nodes.shapes or "Node" not in facts.known or after.spec.node_name:
        return None
    is_daemon = any(owner.kind == "DaemonSet" for owner in after.metadata.owner_references)
    room = [shape.allocatable for shape in nodes.shapes] if is_daemon else nodes.once(_room)
    later, machines = as_stored(after, facts, namespace, terms).spec, facts.machines
    if _has_node(later, nodes.shapes, room, machines):
        return None
    if not _has_node(as_stored(before, facts, namespace, terms).spec, nodes.shapes, room, machines):
        return None
    if any(_may_use(later, shape, machines) for shape in nodes.shapes):
        asked = ", ".join(f"{n} {quantity.format_quantity(n, v)}" for n, v in sorted(pod_requests(later).items()) if v)
        return reasons.NO_NODE(
            f"no node that the pod may use can hold {asked} beside its daemons, and one could before"
        )
    if _has_node(later, nodes.closed, [shape.allocatable for shape in nodes.closed], machines):
        return reasons.NODE_UNKNOWN("all nodes with these labels and tolerated taints are cordoned")
    if nodes.may_grow:
        return reasons.NODE_UNKNOWN(_growth(nodes))
    return reasons.NO_NODE("no node has these labels and only tolerated taints")


def _growth(nodes: NodeShapes) -> str:
    known = "no node that is known has these labels or tolerated taints"
    if not nodes.growing:
        return f"{known}; an autoscaler may make one"
    more = len(nodes.growing) - _MOST_NAMED
    named = ", ".join(nodes.growing[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{known}; the autoscaler may make one in a group that has none: {named}"


def _room(nodes: NodeShapes) -> list[Amounts]:
    """What each kind of nodes can hold beside the daemons that run on it."""
    daemons = [(daemon, _requests(daemon)) for daemon in nodes.daemons]
    return [
        _less(shape.allocatable, [asked for daemon, asked in daemons if _may_use(daemon, shape, None)])
        for shape in nodes.shapes
    ]


def _requests(daemon: PodSpec) -> Amounts:
    try:
        return pod_requests(daemon)
    except NotAQuantity:
        return {}


def _less(allocatable: Amounts, parts: list[Amounts]) -> Amounts:
    return {name: amount - sum(part.get(name, 0) for part in parts) for name, amount in allocatable.items()}


def _has_node(spec: PodSpec, shapes: tuple[NodeShape, ...], room: list[Amounts], machines: Machines) -> bool:
    asked = [(name, amount) for name, amount in pod_requests(spec).items() if amount > 0]
    for shape, left in zip(shapes, room, strict=True):
        for name, amount in asked:
            if amount > left.get(name, 0):
                break
        else:
            if _may_use(spec, shape, machines):
                return True
    return False


def _may_use(spec: PodSpec, shape: NodeShape, machines: Machines | None) -> bool:
    """Do node selector, required affinity and tolerations let the pod onto such a node?

    What asks for one machine by its name is met by the kind of that machine; without `machines` it is taken to be met.
    """
    for name, value in get(spec.node_selector, {}).items():
        if name in MACHINE_LABELS:
            if not _is_of(shape, name, (value,), machines):
                return False
        elif shape.labels.get(name) != value:
            return False
    terms = required_terms(spec)
    if terms and not any(_meets(term, shape, machines) for term in terms):
        return False
    return not shape.taints or untolerated(get(spec.tolerations, ()), shape.taints) is None


def _meets(term: NodeSelectorTerm, shape: NodeShape, machines: Machines | None) -> bool:
    expressions, fields = get(term.match_expressions, ()), get(term.match_fields, ())
    return bool(expressions or fields) and all(_holds(expression, shape, machines) for expression in expressions)


def _holds(requirement: SelectorRequirement, shape: NodeShape, machines: Machines | None) -> bool:
    if requirement.key in MACHINE_LABELS and requirement.operator == "In":
        return _is_of(shape, requirement.key, requirement.values, machines)
    return requirement_matches(requirement, shape.labels)


def _is_of(shape: NodeShape, label: str, values: tuple[str, ...], machines: Machines | None) -> bool:
    """Is a machine that is named by one of these values of this kind?"""
    if machines is None:
        return True
    return any(one.shape == shape for value in values for one in machines.get((label, value), ()))
