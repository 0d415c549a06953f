"""Checks that the spread constraints of a pod leave a node for every pod of its owner.

For a constraint with `DoNotSchedule` (PodTopologySpread), kube-scheduler rejects nodes without the topology label, and
no domain may have more than `maxSkew` pods above the domain with the fewest. Domains whose nodes the pod does not
tolerate, or on which it does not fit, count too: such a domain always has zero pods, so every other domain accepts only
`maxSkew` pods.
"""

from collections.abc import Sequence

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import PodSpec, TopologySpreadConstraint
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node_shapes import MACHINE_LABELS, NodeShape


def strict_constraints(spec: PodSpec) -> tuple[TopologySpreadConstraint, ...]:
    """Returns the spread constraints that can keep a pod from every node."""
    constraints = value_or(spec.topology_spread_constraints, ())
    if not constraints:
        return ()
    return tuple(each for each in constraints if each.when_unsatisfiable != "ScheduleAnyway")


def has_every_topology(spec: PodSpec, shape: NodeShape) -> bool:
    """Returns whether nodes of this shape have the topology labels of all constraints with `DoNotSchedule`."""
    constraints = strict_constraints(spec)
    return not constraints or all(each.topology_key in shape.labels for each in constraints)


def describe_unreachable_domains(
    spec: PodSpec, shapes: Sequence[NodeShape], eligible: Sequence[bool], usable: Sequence[bool], replicas: int | None
) -> str | None:
    """Returns a sentence about the first constraint that would leave some pods of the owner without a node, or None if
    there is none.

    `eligible`: for each node shape, whether the pod may run there if taints are ignored. `usable`: for each node shape,
    whether such a node can hold the pod. `replicas`: the number of pods that the owner wants; None if it is unknown,
    and then many are assumed.
    """
    counted = [place for place, shape in enumerate(shapes) if has_every_topology(spec, shape)]
    for constraint in strict_constraints(spec):
        key = constraint.topology_key
        if key in MACHINE_LABELS:
            continue  # a shape does not tell how many nodes it has
        is_domain = usable if constraint.node_taints_policy == "Honor" else eligible
        every_shape = constraint.node_affinity_policy == "Ignore"
        domains = {shapes[place].labels[key] for place in counted if every_shape or is_domain[place]}
        reachable = {shapes[place].labels[key] for place in counted if usable[place]}
        most = len(reachable) * constraint.max_skew
        if replicas is not None and replicas <= most:
            continue
        if closed := sorted(domains - reachable):
            return f"no node in {key} {', '.join(closed[:3])} can hold the pod, so {_only(most, key)}"
        if len(domains) < (least := value_or(constraint.min_domains, 1)):
            return (
                f"the policy requires {least} different values of {key}, but the nodes have only {len(domains)}, "
                f"so {_only(most, key)}"
            )
    return None


def _only(most: int, key: str) -> str:
    return f"with a spread constraint over {key}, at most {format_count(most, 'pod')} of its owner would get a node"
