"""Checks that some node can hold the changed pod, if one can hold the pod as submitted.

Only nodes that the pod may use count: by node selector, required affinity and taints. The pod with the overhead of its
RuntimeClass must fit into the allocatable amounts minus the requests of the DaemonSet pods, for all resources together.
The amounts that are free now do not matter. If a node group without nodes may still get a node of unknown labels,
changed node requirements are kept, and a warning says so.
"""

from collections.abc import Iterator

from trimtab.admission import reasons
from trimtab.admission.apiserver.pod_classes import with_class_overhead
from trimtab.admission.spread_domains import describe_unreachable_domains, has_every_topology, strict_constraints
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import SelectorRequirement, UnsetType, change, value_or
from trimtab.cluster.api.pod import NodeSelectorTerm, PodSpec, Toleration, required_node_terms
from trimtab.cluster.format_count import join_first
from trimtab.cluster.kinds import DAEMON_SET
from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.cluster.node_shapes import MACHINE_LABELS, Machines, NodeShape, NodeShapes
from trimtab.cluster.owner import kind_of_reference
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import Amounts, pod_requests
from trimtab.cluster.selectors import requirement_matches
from trimtab.policy.affinity_conflicts import describe_requirement, selector_requirements
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import PodBeforeAndAfter
from trimtab.scheduling.node_filters import first_untolerated_taint, format_taint

_MAX_NAMED_GROUPS = 3
"""The maximum number of node groups that one sentence names."""
_MAX_NAMED_LABELS = 3
"""The maximum number of labels or taints that one sentence names."""
_MAX_LABEL_TEXT = 200
"""The number of characters after which a label with its values is cut off."""
_EVERY_TAINT = Toleration(operator="Exists")


def explain_missing_node(pods: PodBeforeAndAfter) -> Reason | None:
    """Returns why no node can hold the changed pod; None if one can, or if none could hold the pod as submitted.

    The reason's code is `no-known-node-matches` if a node that can hold the pod may be added.
    """
    facts, after = pods.after.facts, pods.after.pod
    nodes, machines = facts.nodes, facts.machines
    if not nodes.shapes or "Node" not in facts.listed_kinds or after.spec.node_name:
        return None
    is_daemon = any(kind_of_reference(owner) == DAEMON_SET for owner in after.metadata.owner_references)
    free = [shape.allocatable for shape in nodes.shapes] if is_daemon else nodes.compute_once(_free_after_daemons)
    changed_spec = pods.after.compute_once(with_class_overhead).spec
    has_node = _has_node(changed_spec, nodes.shapes, free, machines, _handler_of(changed_spec, facts))
    if has_node and not (changed_spec.topology_spread_constraints and strict_constraints(changed_spec)):
        return None
    submitted_spec = pods.before.compute_once(with_class_overhead).spec
    if has_node:
        return _unreachable_domains(pods, submitted_spec, changed_spec, free)
    if not _has_node(submitted_spec, nodes.shapes, free, machines, _handler_of(submitted_spec, facts)):
        return None
    if (handler := _handler_of(changed_spec, facts)) and _has_node(changed_spec, nodes.shapes, free, machines):
        missing = f"no node that the pod may use reports the runtime handler {handler} of its RuntimeClass"
        return reasons.NODE_UNKNOWN(_growth_sentence(nodes, missing)) if nodes.may_grow else reasons.NO_NODE(missing)
    if any(may_use_shape(changed_spec, shape, machines) for shape in nodes.shapes):
        amounts = ", ".join(
            f"{n} {quantity.format_quantity(n, v)}" for n, v in sorted(pod_requests(changed_spec).items()) if v
        )
        return reasons.NO_NODE(
            f"no node that the pod may use has room for {amounts} in addition to its DaemonSet pods; without the "
            "change, such a node exists"
        )
    if _has_node(changed_spec, nodes.addable, [shape.allocatable for shape in nodes.addable], machines):
        return reasons.NODE_UNKNOWN(
            "all nodes that have the required labels, and whose taints the pod tolerates, are cordoned"
        )
    missing = _describe_missing(changed_spec, nodes.shapes, machines)
    if nodes.may_grow:
        return reasons.NODE_UNKNOWN(_growth_sentence(nodes, missing))
    return reasons.NO_NODE(missing)


def _describe_missing(spec: PodSpec, shapes: tuple[NodeShape, ...], machines: Machines) -> str:
    """Returns a sentence that names the labels or taints for which the pod may use none of the nodes."""
    tolerant = change(spec, tolerations=(_EVERY_TAINT,))
    rejecting = [
        format_taint(taint)
        for shape in shapes
        if may_use_shape(tolerant, shape, machines)
        and (taint := first_untolerated_taint(value_or(spec.tolerations, ()), shape.taints)) is not None
    ]
    if rejecting:
        taints = join_first(tuple(dict.fromkeys(rejecting)), _MAX_NAMED_LABELS)
        return f"every node that has the required labels has a taint that the pod does not tolerate: {taints}"
    unmet = dict.fromkeys(_name_unmet_labels(spec, shapes, machines))
    if unmet:
        return f"no node has {' or '.join(list(unmet)[:_MAX_NAMED_LABELS])}"
    if spec.topology_spread_constraints:
        tolerant = change(tolerant, topology_spread_constraints=())
        if any(may_use_shape(tolerant, shape, machines) for shape in shapes):
            keys = dict.fromkeys(constraint.topology_key for constraint in strict_constraints(spec))
            named = _shorten(join_first(tuple(keys), _MAX_NAMED_LABELS))
            return f"no node with the required labels has the topology of the pod's spread constraints: {named}"
    required, terms = [*selector_requirements(spec)], required_node_terms(spec)
    if len(terms) > 1:
        return "no node has all the labels of one of the terms of node affinity that the pod requires"
    required += value_or(terms[0].match_expressions, ()) if terms else ()
    more = " and others" if len(required) > _MAX_NAMED_LABELS else ""
    return f"no single node has {' and '.join(map(_describe_label, required[:_MAX_NAMED_LABELS]))}{more}"


def _name_unmet_labels(spec: PodSpec, shapes: tuple[NodeShape, ...], machines: Machines) -> Iterator[str]:
    """Yields each label of the node selector that no node has. If the nodes have all of these, yields one such label of
    each term of required affinity; nothing if a term has no such label."""

    def is_unmet(requirement: SelectorRequirement) -> bool:
        return not any(_expression_matches(requirement, shape, machines) for shape in shapes)

    unmet = list(filter(is_unmet, selector_requirements(spec)))
    if not unmet:
        terms = [value_or(term.match_expressions, ()) for term in required_node_terms(spec)]
        first = [next(filter(is_unmet, expressions), None) for expressions in terms]
        unmet = [requirement for requirement in first if requirement is not None]
        if len(unmet) < len(first):
            return
    yield from map(_describe_label, unmet)


def _describe_label(requirement: SelectorRequirement) -> str:
    condition = "" if requirement.operator == "Exists" else f" {describe_requirement(requirement)}"
    return _shorten(f"the label {requirement.key}{condition}")


def _shorten(text: str) -> str:
    # The pod's author chooses some of the labels, and the sentence is sent as a warning.
    return text if len(text) <= _MAX_LABEL_TEXT else f"{text[:_MAX_LABEL_TEXT]}…"


def _unreachable_domains(
    pods: PodBeforeAndAfter, submitted: PodSpec, changed_spec: PodSpec, free: list[Amounts]
) -> Reason | None:
    """Returns why the spread constraints of the changed pod leave some pods of its owner without a node. None if they
    leave none without a node, or if the constraints of the pod as submitted also do."""
    nodes, machines, replicas = pods.after.facts.nodes, pods.after.facts.machines, pods.after.replicas
    wanted = None if replicas is None else replicas.wanted

    def describe(spec: PodSpec) -> str | None:
        requests = [(name, amount) for name, amount in pod_requests(spec).items() if amount > 0]
        tolerant = change(spec, tolerations=(_EVERY_TAINT,))
        eligible = [may_use_shape(tolerant, shape, machines) for shape in nodes.shapes]
        usable = [
            may_use_shape(spec, shape, machines) and all(amount <= amounts.get(name, 0) for name, amount in requests)
            for shape, amounts in zip(nodes.shapes, free, strict=True)
        ]
        return describe_unreachable_domains(spec, nodes.shapes, eligible, usable, wanted)

    problem = describe(changed_spec)
    if problem is None or describe(submitted) is not None:
        return None
    if nodes.may_grow:
        return reasons.NODE_UNKNOWN(f"{problem}; an autoscaler may add such a node")
    return reasons.NO_NODE(problem)


def _growth_sentence(nodes: NodeShapes, missing: str) -> str:
    base = f"at present {missing}"
    if not nodes.growing:
        return f"{base}; an autoscaler may add such a node"
    unnamed = len(nodes.growing) - _MAX_NAMED_GROUPS
    names = ", ".join(nodes.growing[:_MAX_NAMED_GROUPS]) + (f" and {unnamed} more" if unnamed > 0 else "")
    return f"{base}; the autoscaler may add such a node in a node group that is empty now: {names}"


def _free_after_daemons(nodes: NodeShapes) -> list[Amounts]:
    """Returns, for each node shape, the allocatable amounts minus the requests of the DaemonSet pods that run on nodes
    of this shape."""
    daemons = [(daemon, _daemon_requests(daemon)) for daemon in nodes.daemons]
    return [
        shape.allocatable
        if shape.is_made_to_measure
        else _subtract(
            shape.allocatable, [requests for daemon, requests in daemons if may_use_shape(daemon, shape, None)]
        )
        for shape in nodes.shapes
    ]


def _daemon_requests(daemon: PodSpec) -> Amounts:
    try:
        return pod_requests(daemon)
    except NotAQuantity:
        return {}


def _handler_of(spec: PodSpec, facts: ClusterFacts) -> str:
    """Returns the handler of the pod's RuntimeClass; empty if it has no class, or if the class is not known."""
    name = value_or(spec.runtime_class_name, "")
    runtime_class = facts.runtime_classes.get(name) if name else None
    return runtime_class.handler if runtime_class is not None else ""


def _subtract(allocatable: Amounts, parts: list[Amounts]) -> Amounts:
    return {name: amount - sum(part.get(name, 0) for part in parts) for name, amount in allocatable.items()}


def _has_node(
    spec: PodSpec, shapes: tuple[NodeShape, ...], free: list[Amounts], machines: Machines, handler: str = ""
) -> bool:
    """Returns whether the pod may use a node and fits there. `handler`: the runtime handler that the node must have; a
    node that reports no handlers may have it."""
    requests = [(name, amount) for name, amount in pod_requests(spec).items() if amount > 0]
    for shape, free_amounts in zip(shapes, free, strict=True):
        if handler and shape.handlers is not None and handler not in shape.handlers:
            continue
        for name, amount in requests:
            if amount > free_amounts.get(name, 0) and not shape.is_made_to_measure:
                break
        else:
            if may_use_shape(spec, shape, machines):
                return True
    return False


def may_use_shape(spec: PodSpec, shape: NodeShape, machines: Machines | None) -> bool:
    """Returns whether the pod may run on nodes of this shape (nodes with these labels and taints).

    Its node selector, required affinity, tolerations, operating system and the topologies of its strict spread
    constraints are checked.
    If the pod requires one machine by name, the shape of that machine meets the requirement; if `machines` is None,
    every shape does.
    """
    for name, value in value_or(spec.node_selector, {}).items():
        if name in MACHINE_LABELS:
            if not _is_machine_of_shape(shape, name, (value,), machines):
                return False
        elif shape.labels.get(name) != value:
            return False
    # The kubelet rejects a pod of another operating system; the scheduler does not look at this field.
    if not isinstance(spec.os, UnsetType) and shape.operating_system not in ("", spec.os.name):
        return False
    terms = required_node_terms(spec)
    if terms and not any(_term_matches(term, shape, machines) for term in terms):
        return False
    if shape.taints and first_untolerated_taint(value_or(spec.tolerations, ()), shape.taints) is not None:
        return False
    # Few pods have any constraint, and this runs for every review.
    return not spec.topology_spread_constraints or has_every_topology(spec, shape)


def _term_matches(term: NodeSelectorTerm, shape: NodeShape, machines: Machines | None) -> bool:
    expressions, fields = value_or(term.match_expressions, ()), value_or(term.match_fields, ())
    return (
        bool(expressions or fields)
        and all(_expression_matches(expression, shape, machines) for expression in expressions)
        # A node is known by its label kubernetes.io/hostname, which has the node's name.
        and all(
            _is_machine_of_shape(shape, HOSTNAME_LABEL, field.values, machines)
            for field in fields
            if field.operator == "In"
        )
    )


def _expression_matches(requirement: SelectorRequirement, shape: NodeShape, machines: Machines | None) -> bool:
    if requirement.key in MACHINE_LABELS and requirement.operator == "In":
        return _is_machine_of_shape(shape, requirement.key, requirement.values, machines)
    return requirement_matches(requirement, shape.labels)


def _is_machine_of_shape(shape: NodeShape, label: str, values: tuple[str, ...], machines: Machines | None) -> bool:
    """Returns whether one of these values of the label names a machine that has this shape."""
    if machines is None:
        return True
    return any(machine.shape == shape for value in values for machine in machines.get((label, value), ()))
