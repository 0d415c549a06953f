"""Calculates what the nodes of a snapshot have for pods."""

from collections.abc import Mapping

from trimtab.autoscaling.container_amounts import RESOURCES, amount_in, running_request
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.objects import LintNode
from trimtab.cluster.api.meta import value_or
from trimtab.machines.prices import SPOT_LABELS


def largest_allocatable(snapshot: LintSnapshot) -> Mapping[str, int] | None:
    """Returns, for each resource, the largest amount that any node offers to pods after what DaemonSets request on
    every node; None if there are no nodes.

    The largest cpu and the largest memory may be on different nodes. A request above one of these amounts fits on no
    node."""
    if not snapshot.nodes:
        return None
    return {
        resource: max(amount_in(node.status.allocatable, resource) or 0 for node in snapshot.nodes)
        - _daemon_requests(snapshot, resource)
        for resource in RESOURCES
    }


def _daemon_requests(snapshot: LintSnapshot, resource: str) -> int:
    """Returns what the DaemonSets without a node selector, which run on every node, request together."""
    return sum(
        running_request(workload.spec, resource)
        for workload in snapshot.workloads
        if workload.subject.kind == "DaemonSet" and not value_or(workload.spec.node_selector, {})
    )


def is_spot_label(key: str, value: str) -> bool:
    """Returns whether the label with this key and value marks a spot node."""
    return key in SPOT_LABELS and value.lower() in ("spot", "true")


def is_spot_node(node: LintNode) -> bool:
    """Returns whether the node is a spot node, which the cloud may reclaim."""
    return any(is_spot_label(key, value) for key, value in value_or(node.metadata.labels, {}).items())
