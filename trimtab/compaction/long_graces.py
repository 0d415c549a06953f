"""Pods that may take long to stop: what a plan says about their termination grace periods.

A drain lasts at least as long as the longest grace period of its pods, if they use it. The cluster autoscaler waits for
a pod at most `--max-graceful-termination-sec` (10 minutes by default), and then deletes the node.
"""

from collections.abc import Iterable, Mapping, Sequence

from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.several_autoscalers import autoscaler_of_node

LONG_GRACE_SECONDS = 600
"""A grace period that is longer is named in the notes of a plan (the default of the autoscaler's
`--max-graceful-termination-sec`, cluster-autoscaler config/flags 1.34)."""
MAX_GRACEFUL_FLAG = "max-graceful-termination-sec"


def longest_grace(pods: Iterable[PodInfo]) -> int:
    """Returns the longest termination grace period of these pods in seconds, or 0 if there are none."""
    return max((pod.grace_seconds for pod in pods), default=0)


def is_only_stopping(pods: Iterable[PodInfo]) -> bool:
    """Returns whether a drain only waits for its last pods to stop, and these may take long: all `pods` that are still
    on the node are being deleted, and the longest grace period of them is a long one."""
    rest = list(pods)
    return longest_grace(rest) > LONG_GRACE_SECONDS and all(pod.deletion_requested_at is not None for pod in rest)


def note_long_drains(pods_by_node: Mapping[str, Sequence[PodInfo]]) -> list[str]:
    """Returns a note about the drains whose pods may take long to stop, if there are any.

    `pods_by_node`: node to drain → the pods that move."""
    slow = {node: pod for node, pods in pods_by_node.items() if (pod := _slowest(pods)) is not None}
    if not slow:
        return []
    node, pod = max(slow.items(), key=lambda item: (item[1].grace_seconds, item[0]))
    others = f"; so may {format_count(len(slow) - 1, 'more drain')}" if len(slow) > 1 else ""
    return [
        f"the drain of node {node} may take {pod.grace_seconds} s, because pod {pod.key} has this termination grace "
        f"period{others}"
    ]


def note_cut_graces(
    pods_by_node: Mapping[str, Sequence[PodInfo]], nodes: Mapping[str, NodeInfo], autoscaler: Autoscaler
) -> list[str]:
    """Returns a note for each node that is left to the cluster autoscaler, if the autoscaler stops one of its pods
    before the pod's grace period ends."""
    notes = []
    for name in sorted(pods_by_node):
        slowest = max(pods_by_node[name], key=lambda pod: pod.grace_seconds, default=None)
        limit = min(_max_graceful_seconds(member) for member in autoscaler_of_node(autoscaler, nodes[name]).each)
        if slowest is not None and slowest.grace_seconds > limit:
            notes.append(
                f"node {name} is left to the cluster autoscaler, which waits {limit} s for its pods "
                f"(--{MAX_GRACEFUL_FLAG}), but pod {slowest.key} has a termination grace period of "
                f"{slowest.grace_seconds} s"
            )
    return notes


def _slowest(pods: Sequence[PodInfo]) -> PodInfo | None:
    slowest = max(pods, key=lambda pod: (pod.grace_seconds, pod.key), default=None)
    return slowest if slowest is not None and slowest.grace_seconds > LONG_GRACE_SECONDS else None


def _max_graceful_seconds(autoscaler: Autoscaler) -> int:
    text = autoscaler.flags.get(MAX_GRACEFUL_FLAG, "")
    return int(text) if text.isdecimal() else LONG_GRACE_SECONDS
