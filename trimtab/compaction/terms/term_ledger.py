"""What the compactor recorded about the terms of pods: evictions of workloads, and how long terms have kept nodes.

A delay begins when the terms of pods keep a node. For as long as the pool's `podTerms.maxDelay` they count; for as long
again they do not, whatever tenants write meanwhile; then a new delay may begin. The delay is over earlier if the terms
permitted the drain for an hour in all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster.owner import TEMPLATE_HASH
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.timestamps import Seconds

DAY_SECONDS = 86_400
CHANCE_SECONDS = 3600
"""Terms that permitted the drain of a node for so many seconds have not kept it."""
MAX_COUNTED_EVICTIONS = 5000
"""The largest number of evictions of a day that the state of a pool counts for workloads."""
_MAX_ROUND_SECONDS = 600
"""The longest time between two rounds that counts as observed."""


class NodeDelay(msgspec.Struct, frozen=True, omit_defaults=True):
    """Since when the terms of pods have kept one node."""

    since: Seconds
    seen: Seconds
    """The time of the last round that observed the node."""
    open_seconds: int = 0
    """For how many seconds since then the terms permitted the drain."""

    def are_terms_in_force(self, now: Seconds, max_delay: int) -> bool:
        """Returns whether the terms still count. After `max_delay` seconds they do not for as long again."""
        return not max_delay < now - self.since <= 2 * max_delay

    def is_over(self, now: Seconds, max_delay: int) -> bool:
        """Returns whether the delay is no longer recorded: the compactor has had its time to drain the node."""
        return self.open_seconds >= CHANCE_SECONDS or now - self.since > 2 * max_delay

    def observe_round(self, now: Seconds, *, kept: bool) -> "NodeDelay":
        """Returns the delay after a round. kept: the terms of a pod keep the node now."""
        passed = 0 if kept else min(max(0, now - self.seen), _MAX_ROUND_SECONDS)
        return NodeDelay(since=self.since, seen=now, open_seconds=self.open_seconds + passed)

    def clamp_to_now(self, now: Seconds) -> "NodeDelay":
        """Returns the delay with times in the future replaced by now."""
        return NodeDelay(since=min(self.since, now), seen=min(self.seen, now), open_seconds=self.open_seconds)

    def observe_stop(self, now: Seconds) -> "NodeDelay":
        """Returns the delay after terms ended a drain that had begun: the time in which it was permitted was none."""
        return NodeDelay(since=self.since, seen=now)


def update_delays(
    delays: Mapping[str, NodeDelay], kept: Mapping[str, bool], now: Seconds, max_delay: int
) -> dict[str, NodeDelay]:
    """Returns the delays of a pool after a round. kept: node → whether the terms of its pods keep it, for each node
    that the round judged."""
    updated = {}
    for node in delays.keys() | kept.keys():
        delay = delays.get(node)
        if delay is None and kept.get(node):
            delay = NodeDelay(since=now, seen=now)
        elif delay is not None and node in kept:
            delay = delay.observe_round(now, kept=kept[node])
        if delay is not None and not delay.is_over(now, max_delay):
            updated[node] = delay
    return dict(sorted(updated.items()))


def without_old_disruptions(
    disruptions: Mapping[str, tuple[Seconds, ...]], now: Seconds
) -> dict[str, tuple[Seconds, ...]]:
    """Returns workload → the times of its evictions, only those of the last 24 hours."""
    recent = {name: tuple(when for when in times if when > now - DAY_SECONDS) for name, times in disruptions.items()}
    return {name: times for name, times in recent.items() if times}


def add_disruption(
    disruptions: Mapping[str, tuple[Seconds, ...]], workload: str, now: Seconds
) -> dict[str, tuple[Seconds, ...]]:
    """Returns workload → the times of its evictions with one more. Of too many, the workloads are forgotten whose last
    eviction was first: tenants choose how many are counted, and the state has a size."""
    added = {**disruptions, workload: (*disruptions.get(workload, ()), now)}
    while sum(map(len, added.values())) > MAX_COUNTED_EVICTIONS:
        added.pop(min(added, key=lambda name: (added[name][-1], name)))
    return added


def workload_of(pod: PodInfo) -> str:
    """Returns the workload whose evictions are counted for this pod, as Kind/namespace/name: the Deployment of a
    ReplicaSet, or the owner; an empty string for a pod without an owner."""
    owner = pod.owner
    if owner is None:
        return ""
    # A ReplicaSet is named after its Deployment and the hash of its template, so a rollout does not begin a new count.
    suffix = f"-{pod.requirements.labels.get(TEMPLATE_HASH, '')}"
    if suffix != "-" and owner.name.endswith(suffix):
        return f"Deployment/{pod.namespace}/{owner.name.removesuffix(suffix)}"
    return f"{owner.kind}/{pod.namespace}/{owner.name}"


@dataclass(frozen=True, slots=True)
class TermLedger:
    """The records of all pools together. Empty: nothing was recorded, as in an offline plan."""

    delays: Mapping[str, NodeDelay] = field(default_factory=dict)
    """Node → since when terms have kept it."""
    disruptions: Mapping[str, tuple[Seconds, ...]] = field(default_factory=dict)
    """Workload → the times of its evictions, for workloads whose pods limit them."""

    def are_terms_in_force(self, node: str, now: Seconds | None, max_delay: int) -> bool:
        """Returns whether the windows and daily numbers of the pods on this node count now."""
        delay = self.delays.get(node)
        if not max_delay:
            return False
        return delay is None or now is None or delay.are_terms_in_force(now, max_delay)

    def count_disruptions(self, workload: str, now: Seconds) -> int:
        """Returns how many pods of the workload the compactor evicted in the last 24 hours."""
        return sum(when > now - DAY_SECONDS for when in self.disruptions.get(workload, ()))


EMPTY_LEDGER = TermLedger()
