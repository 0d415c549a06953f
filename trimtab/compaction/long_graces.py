"""Pods that may take long to stop: what a plan says about their termination grace periods.

A drain lasts at least as long as the longest grace period of its pods, if they use it. It lasts longer if a budget lets
pods leave only one after another and their controller creates a successor only after the pod is gone, as a StatefulSet
does. The cluster autoscaler waits for a pod at most `--max-graceful-termination-sec` (10 minutes by default), and then
deletes the node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import JOB, REPLICA_SET, REPLICATION_CONTROLLER
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.several_autoscalers import autoscaler_of_node
from trimtab.compaction import reasons as r

LONG_GRACE_SECONDS = 600
"""A grace period that is longer is named in the notes of a plan (the default of the autoscaler's
`--max-graceful-termination-sec`, cluster-autoscaler config/flags 1.34)."""


REPLACED_AT_ONCE = frozenset({JOB, REPLICA_SET, REPLICATION_CONTROLLER})
"""Kinds of owners that create a successor while the evicted pod still stops (controllers/replicaset and job: a pod with
a deletion timestamp is no longer active). A StatefulSet waits until the pod is gone, because the successor has its
name; other kinds may wait."""


@dataclass(frozen=True, slots=True)
class DrainTime:
    """How long a drain may wait for pods that stop. It is an estimate: the time in which successors start is not
    included."""

    seconds: int
    slowest: PodInfo
    """The pod with the longest grace period."""

    @property
    def is_chain(self) -> bool:
        """Whether pods stop one after another, and together longer than any of them alone."""
        return self.seconds > self.slowest.grace_seconds


def estimate_drain_time(evictions: Iterable[tuple[PodInfo, int]]) -> DrainTime | None:
    """Returns how long the pods of a node may take to stop, or None if there are none.

    `evictions`: each pod with its turn. A turn begins when the successors of the previous turn are ready."""
    pods_by_turn: dict[int, list[PodInfo]] = {}
    for pod, turn in evictions:
        pods_by_turn.setdefault(turn, []).append(pod)
    if not pods_by_turn:
        return None
    begin = end = 0
    for _, pods in sorted(pods_by_turn.items()):
        end = max(end, begin + longest_grace(pods))
        begin += longest_grace(pod for pod in pods if pod.owner is None or pod.owner.kind not in REPLACED_AT_ONCE)
    every = (pod for pods in pods_by_turn.values() for pod in pods)
    return DrainTime(end, max(every, key=lambda pod: (pod.grace_seconds, pod.key)))


def longest_grace(pods: Iterable[PodInfo]) -> int:
    """Returns the longest termination grace period of these pods in seconds, or 0 if there are none."""
    return max((pod.grace_seconds for pod in pods), default=0)


def is_only_stopping(pods: Iterable[PodInfo]) -> bool:
    """Returns whether a drain only waits for its last pods to stop, and these may take long: all `pods` that are still
    on the node are being deleted, and the longest grace period of them is a long one."""
    rest = list(pods)
    return longest_grace(rest) > LONG_GRACE_SECONDS and all(pod.deletion_requested_at is not None for pod in rest)


def note_long_drains(evictions_by_node: Mapping[str, Iterable[tuple[PodInfo, int]]]) -> list[str]:
    """Returns a note about the drains whose pods may take long to stop, if there are any.

    `evictions_by_node`: node to drain → the pods that move, each with its turn."""
    times = {node: estimate_drain_time(evictions) for node, evictions in evictions_by_node.items()}
    slow = {node: time for node, time in times.items() if time is not None and time.seconds > LONG_GRACE_SECONDS}
    if not slow:
        return []
    node, time = max(slow.items(), key=lambda item: (item[1].seconds, item[0]))
    others = f"; so may {format_count(len(slow) - 1, 'more drain')}" if len(slow) > 1 else ""
    if time.is_chain:
        return [
            f"the drain of node {node} may take about {time.seconds} s (an estimate), because budgets let its pods "
            f"leave only one after another, and each successor may wait until the pod is gone; the longest termination "
            f"grace period is that of pod {time.slowest.key}, {time.slowest.grace_seconds} s{others}"
        ]
    return [
        f"the drain of node {node} may take {time.seconds} s, because pod {time.slowest.key} has this termination "
        f"grace period{others}"
    ]


def note_cut_graces(
    pods_by_node: Mapping[str, Sequence[PodInfo]], nodes: Mapping[str, NodeInfo], autoscaler: Autoscaler
) -> list[str]:
    """Returns a note for each node that is left to the cluster autoscaler, if the autoscaler stops one of its pods
    before the pod's grace period ends."""
    notes = []
    for name in sorted(pods_by_node):
        members = autoscaler_of_node(autoscaler, nodes[name]).each
        limits = [(*min(_grace_limit(member, pod) for member in members), pod) for pod in pods_by_node[name]]
        cut = [
            (pod.grace_seconds - limit, limit, flag, pod) for limit, flag, pod in limits if pod.grace_seconds > limit
        ]
        if cut:
            _, limit, flag, slowest = max(cut, key=lambda one: (one[0], one[3].key))
            notes.append(
                f"node {name} is left to the cluster autoscaler, which waits {limit} s for its pods (--{flag}), but "
                f"pod {slowest.key} has a termination grace period of {slowest.grace_seconds} s"
            )
    return notes


def _grace_limit(autoscaler: Autoscaler, pod: PodInfo) -> tuple[int, str]:
    """Returns (how many seconds the autoscaler waits for the pod, the flag that says so)."""
    # Priority → seconds, in order of priority, from a text such as `10000:20,1000:100,0:60`. A pair that cannot be
    # parsed is left out.
    text = f.DRAIN_PRIORITIES.text_in(autoscaler.flags)
    pairs = (pair.strip().partition(":") for pair in text.split(","))
    by_priority = dict(
        sorted(
            (int(priority), int(seconds))
            for priority, _, seconds in pairs
            if priority.removeprefix("-").isdecimal() and seconds.isdecimal()
        )
    )
    if not by_priority:
        return f.MAX_GRACEFUL.number_in(autoscaler.flags), f.MAX_GRACEFUL.name
    # As the kubelet's graceful shutdown, whose rule the autoscaler uses: a pod has the entry with the largest priority
    # that is not above its own; below all of them, the first entry.
    first = next(iter(by_priority.values()))
    fitting = [seconds for priority, seconds in by_priority.items() if priority <= pod.priority]
    return (fitting[-1] if fitting else first), f.DRAIN_PRIORITIES.name


def grace_reason(pod: PodInfo, pool: Pool) -> Reason | None:
    """Returns the reason if the pod may take longer to stop than the pool permits, otherwise None."""
    if not pool.max_grace or pod.grace_seconds <= pool.max_grace:
        return None
    return r.LONG_GRACE(
        f"pod {pod.key} has a termination grace period of {pod.grace_seconds} s, but the pool allows "
        f"{pool.max_grace} s (protect.maxGrace)"
    )
