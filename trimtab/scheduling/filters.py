"""kube-scheduler's filters for one pod on one node, and best fit for many pods on many nodes.

`fits_on_node` is the fast check; `rejection_reason` is the same check with the reason, and a property test compares the
two. The checks are made in this order: whether the pod can be judged, whether the node receives pods, node attributes,
resources, host ports and anti-affinity, affinity, topology spread.

`place_pods` places pods that have no node yet: pending pods, successors, and hypothetical pods.
"""

from collections.abc import Iterable, Sequence

from trimtab.cluster import quantity
from trimtab.cluster.reason import Reason
from trimtab.scheduling import node_filters
from trimtab.scheduling.cluster_model import FreeCapacity
from trimtab.scheduling.pod_class import PodAffinityRule, PodClass, SpreadRule
from trimtab.scheduling.reasons import NO_COMPANY, NO_ROOM, NODE_CLOSED, PORT_TAKEN, TOO_CLOSE, UNEVEN, UNJUDGED
from trimtab.scheduling.run_conditions import unfit_reason
from trimtab.scheduling.topology import TopologyGroup


def fits_on_node(capacity: FreeCapacity, pod_class: PodClass, node: int) -> bool:
    """Returns whether kube-scheduler would place a pod of this class on this node, with this free capacity."""
    # The cheapest checks first: nearly all rejections end at the bit of the node set or at the free resources.
    return (
        pod_class.unjudged_reason is None
        and not capacity.closed_nodes[node]
        and capacity.world.node_sets[pod_class.node_set][node] == 1
        and has_free_resources(capacity, pod_class, node)
        and (not pod_class.has_constraints or satisfies_pod_constraints(capacity, pod_class, node))
    )


def has_free_resources(capacity: FreeCapacity, pod_class: PodClass, node: int) -> bool:
    """Returns whether enough resources and a pod slot are free. A resource that the pod does not request is not checked
    (noderesources `fitsRequest`)."""
    for number, amount in pod_class.other_requests:
        if capacity.other_free[number][node] < amount:
            return False
    # A pod slot is needed even by a pod that requests nothing: kubelets limit the number of pods (maxPods).
    return (
        capacity.slots[node] > 0
        and (pod_class.major == 0 or capacity.major[node] >= pod_class.major)
        and (pod_class.minor == 0 or capacity.minor[node] >= pod_class.minor)
    )


def satisfies_pod_constraints(capacity: FreeCapacity, pod_class: PodClass, node: int) -> bool:
    """Returns whether the other pods allow the placement: host ports, anti-affinity in both directions, affinity and
    spread."""
    counts = capacity.group_counts
    # Both directions of anti-affinity are groups: pods that the class must avoid, and pods that must avoid the class.
    for group in pod_class.forbidden_groups:
        if group.domain_of[node] in counts[group.number]:
            return False
    for spread in pod_class.spreads:
        if not satisfies_spread(capacity, spread, node):
            return False
    return pod_class.affinity is None or satisfies_affinity(capacity, pod_class.affinity, node)


def satisfies_affinity(capacity: FreeCapacity, affinity: PodAffinityRule, node: int) -> bool:
    """Returns whether a matching pod is in the node's domain for every term. If no pod in the cluster matches, returns
    whether the pod matches its own terms."""
    # A node without the topology key never satisfies a term, not even for the first pod of its kind.
    if any(group.domain_of[node] < 0 for group in affinity.groups):
        return False
    if all(group.domain_of[node] in capacity.group_counts[group.number] for group in affinity.groups):
        return True
    # As satisfyPodAffinity in kube-scheduler: the first pod of a group may match its own terms, or it could never be
    # placed.
    return affinity.matches_itself and not any(
        capacity.group_counts[group.number] for group in affinity.existing_groups
    )


def satisfies_spread(capacity: FreeCapacity, spread: SpreadRule, node: int) -> bool:
    """Returns whether (matching pods in the node's domain) + (1 if the pod matches itself) - (smallest count of any
    domain) ≤ maxSkew (podtopologyspread `Filter`).

    A node without a domain either lacks the topology key, so that the constraint rejects it, or is rejected by another
    filter anyway.
    """
    domain = spread.group.domain_of[node]
    if domain < 0:
        return False
    count, least = spread_counts(capacity, spread, domain)
    return count + spread.self_count - least <= spread.max_skew


def spread_counts(capacity: FreeCapacity, spread: SpreadRule, domain: int) -> tuple[int, int]:
    """Returns (matching pods in this domain, the smallest number of matching pods in any domain)."""
    group = spread.group
    if group.is_counted_per_node:
        by_domain = _counts_without_draining(capacity, group)
        # With fewer domains than minDomains, kube-scheduler takes the global minimum as 0.
        least = 0 if len(by_domain) < spread.min_domains else min(by_domain.values(), default=0)
        return by_domain.get(domain, 0), least
    return capacity.group_counts[group.number].get(domain, 0), min_domain_count(capacity, spread)


def min_domain_count(capacity: FreeCapacity, spread: SpreadRule) -> int:
    """Returns the smallest number of matching pods in any domain; 0 if there are fewer domains than minDomains."""
    group = spread.group
    if group.is_counted_per_node:
        by_domain = _counts_without_draining(capacity, group)
        return 0 if len(by_domain) < spread.min_domains else min(by_domain.values(), default=0)
    counts = capacity.group_counts[group.number]
    # Counts hold no zeros: a domain without an entry has no matching pod, and the minimum is 0.
    if spread.domain_count < spread.min_domains or len(counts) < spread.domain_count:
        return 0
    return min(counts.values(), default=0)


def _counts_without_draining(capacity: FreeCapacity, group: TopologyGroup) -> dict[int, int]:
    """Returns domain → count, without the nodes that are being drained: with nodeTaintsPolicy Honor, kube-scheduler
    ignores these nodes."""
    count_by_domain: dict[int, int] = {}
    counts = capacity.group_counts[group.number]
    for node, domain in enumerate(group.domain_of):
        # A cordoned node has the taint node.kubernetes.io/unschedulable, which Honor takes into account.
        if domain >= 0 and node not in capacity.draining_nodes:
            count_by_domain[domain] = count_by_domain.get(domain, 0) + counts.get(node, 0)
    return count_by_domain


def rejection_reason(capacity: FreeCapacity, pod_class: PodClass, node: int) -> Reason | None:
    """Returns the reason for which the first constraint rejects the pod on this node, or None if the pod fits."""
    model, name = capacity.world, capacity.world.nodes[node].name
    if pod_class.unjudged_reason is not None:
        return pod_class.unjudged_reason
    # Drained nodes are closed as well; checked before, so that the reason names the drain and not the cordon.
    if node in capacity.draining_nodes:
        return NODE_CLOSED(f"node {name} is being drained")
    if capacity.closed_nodes[node]:
        return NODE_CLOSED(_closed_text(capacity, node))
    reason = node_filters.node_rejection_reason(pod_class.ask, pod_class.volumes, model.nodes[node])
    if reason is not None:
        return reason
    return (
        unfit_reason(pod_class.conditions, model.nodes[node])
        or _resource_reason(capacity, pod_class, node)
        or _conflict_reason(capacity, pod_class, node)
        or _affinity_reason(capacity, pod_class, node)
        or _spread_reason(capacity, pod_class, node)
    )


def _closed_text(capacity: FreeCapacity, node: int) -> str:
    name = capacity.world.nodes[node].name
    if node in capacity.world.unreadable_nodes:
        return f"node {name} cannot be read: {capacity.world.unreadable_nodes[node]}"
    if capacity.world.nodes[node].is_cordoned:
        return f"node {name} is cordoned"
    if capacity.world.nodes[node].removal_taint is not None:
        return f"node {name} is being deleted"
    if capacity.world.nodes[node].is_ready:
        return f"node {name} accepts no pods in this plan"
    return f"node {name} is not ready"


def _resource_reason(capacity: FreeCapacity, pod_class: PodClass, node: int) -> Reason | None:
    name = capacity.world.nodes[node].name
    if capacity.slots[node] <= 0:
        return NO_ROOM(f"node {name} has reached its maximum number of pods")
    names = (*capacity.world.main_resources, *capacity.world.other_resources)
    requested = dict(enumerate((pod_class.major, pod_class.minor))) | {
        2 + number: amount for number, amount in pod_class.other_requests
    }
    free = (capacity.major, capacity.minor, *capacity.other_free)
    # By name, so that the reported resource does not depend on which two count as the main ones in this snapshot.
    for number, amount in sorted(requested.items(), key=lambda item: names[item[0]]):
        if amount and free[number][node] < amount:
            resource, available = names[number], max(0, free[number][node])
            device_class = capacity.world.inventory.devices.class_of_resource(resource)
            if device_class and not capacity.world.allocatable_amount(node, resource):
                return UNJUDGED(
                    f"the pod requests {resource}, which DeviceClass {device_class} gives by dynamic resource "
                    f"allocation, and Trimtab does not count such devices on node {name}"
                )
            return NO_ROOM(
                f"node {name} has {quantity.format_quantity(resource, available)} of {resource} free, but the "
                f"pod requests {quantity.format_quantity(resource, amount)}"
            )
    return None


def _conflict_reason(capacity: FreeCapacity, pod_class: PodClass, node: int) -> Reason | None:
    name = capacity.world.nodes[node].name
    for group in pod_class.forbidden_groups:
        if group.domain_of[node] in capacity.group_counts[group.number]:
            if group.key == "":  # the node itself is the domain: only host ports have such groups
                return PORT_TAKEN(f"a host port of the pod is in use on node {name}")
            whose = "the pod's" if group.terms else "another pod's"
            return TOO_CLOSE(f"{whose} required anti-affinity on {group.key} forbids node {name}")
    return None


def _affinity_reason(capacity: FreeCapacity, pod_class: PodClass, node: int) -> Reason | None:
    if pod_class.affinity is None or satisfies_affinity(capacity, pod_class.affinity, node):
        return None
    keys = ", ".join(sorted({group.key for group in pod_class.affinity.groups}))
    return NO_COMPANY(
        f"the pod requires, by its affinity, another pod near node {capacity.world.nodes[node].name} (by "
        f"{keys}), but there is none"
    )


def _spread_reason(capacity: FreeCapacity, pod_class: PodClass, node: int) -> Reason | None:
    name = capacity.world.nodes[node].name
    for spread in pod_class.spreads:
        if not satisfies_spread(capacity, spread, node):
            domain = spread.group.domain_of[node]
            if domain < 0:
                return UNEVEN(f"node {name} lacks the label {spread.group.key}, over whose values the pod is spread")
            count, least = spread_counts(capacity, spread, domain)
            return UNEVEN(
                f"with the pod, {spread.group.key} of node {name} would have {count + spread.self_count} "
                f"matching pods and another value only {least}: the difference exceeds maxSkew {spread.max_skew}"
            )
    return None


def place_pods(capacity: FreeCapacity, classes: Iterable[PodClass], nodes: Sequence[int]) -> list[int | None]:
    """Returns a node for each class, in the order of `classes`, or None if no node fits. The placed pods are added to
    the capacity.

    The largest pods are placed first, each on the fitting node with the least free capacity (best fit decreasing).
    """
    classes = list(classes)
    placements: list[int | None] = [None] * len(classes)
    # The number last: equal pods keep their order, so the same input gives the same placement.
    for number in sorted(range(len(classes)), key=lambda n: (-classes[n].major, -classes[n].minor, n)):
        best, free = None, 1 << 62
        for node in nodes:
            if capacity.major[node] < free and fits_on_node(capacity, classes[number], node):
                best, free = node, capacity.major[node]
        if best is not None:
            capacity.add_pod(classes[number], best)
            placements[number] = best
    return placements
