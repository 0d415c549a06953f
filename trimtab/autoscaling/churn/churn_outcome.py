"""A history → what the hours cost, what they disturbed, and what was bought in vain."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum

from trimtab.autoscaling.churn.churn_history import BudgetSeen, ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen

HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnOutcome:
    """The figures of one variant. All times are of the cluster's clock."""

    core_hours: float
    """Allocatable cores of all nodes × hours."""
    dollars: float
    evictions: int
    bought: int
    """Nodes that were added after the beginning."""
    returned_within_hour: int
    """Those of them that were removed within an hour, without those that the churn took away."""
    pending_seconds: float
    """The sum of the times for which pods waited for a node."""
    wait_p99: float
    """The time within which 99 of 100 pods had a node, in seconds."""
    wait_longest: float
    pods: int
    """The number of pods that were created."""
    moved_twice: int
    """Evictions of a pod that had itself replaced an evicted pod at most an hour before."""
    broken: int
    """Evictions after which a budget had fewer ready pods than it wants."""
    cordons_left: int
    """Nodes that were still cordoned at the end of the history, without those that a user cordoned."""

    @property
    def twice_share(self) -> float:
        """The share of the evictions that moved a pod twice."""
        return self.moved_twice / self.evictions if self.evictions else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What the compactor itself used."""

    cpu_seconds: float
    max_rss_bytes: int


@dataclass(slots=True)
class _Workload:
    ready: set[str] = field(default_factory=set)
    desired: int = 0
    owed: deque[float] = field(default_factory=deque)
    """The times of evictions whose successor has not been seen yet."""


@dataclass(slots=True)
class _Pod:
    workload: str
    since: float
    is_new: bool
    moved_at: float | None
    """When the pod was evicted that this one replaces; None if it replaces none."""
    has_node: bool = False
    is_evicted: bool = False


@dataclass(slots=True)
class _Judge:
    begin: float
    end: float
    nodes: dict[str, tuple[float, NodeSeen]] = field(default_factory=dict)
    pods: dict[str, _Pod] = field(default_factory=dict)
    workloads: dict[str, _Workload] = field(default_factory=lambda: defaultdict(_Workload))
    waits: list[float] = field(default_factory=list)
    core_seconds: float = 0.0
    price_seconds: float = 0.0
    bought: int = 0
    returned: int = 0
    evictions: int = 0
    twice: int = 0
    broken: int = 0

    def read_records(self, history: Iterable[ChurnRecord]) -> None:
        """Reads the records in their order."""
        for record in history:
            match record:
                case PodSeen():
                    self._see_pod(record)
                case PodGone():
                    self._lose_pod(record.uid, record.at)
                case NodeSeen():
                    self._see_node(record)
                case NodeGone():
                    self._lose_node(record)
                case BudgetSeen():
                    self.workloads[record.workload].desired = record.desired_healthy

    def is_measured(self, at: float) -> bool:
        """Returns whether the time is within the measurement."""
        return self.begin <= at < self.end

    def _see_node(self, seen: NodeSeen) -> None:
        known = self.nodes.get(seen.name)
        self.nodes[seen.name] = (seen.at if known is None else known[0], seen)
        if known is None and self.is_measured(seen.at):
            self.bought += 1

    def _lose_node(self, gone: NodeGone) -> None:
        known = self.nodes.pop(gone.name, None)
        if known is None:
            return
        since, last = known
        self._account(since, gone.at, last)
        if self.is_measured(since) and not last.is_lost and gone.at - since <= HOUR:
            self.returned += 1

    def _account(self, since: float, until: float, node: NodeSeen) -> None:
        seconds = max(0.0, min(until, self.end) - max(since, self.begin))
        self.core_seconds += seconds * node.millicores / 1000
        self.price_seconds += seconds * node.price / 1e6

    def _see_pod(self, seen: PodSeen) -> None:
        workload, pod = self.workloads[seen.workload], self.pods.get(seen.uid)
        if pod is None:
            moved_at = workload.owed.popleft() if workload.owed else None
            pod = self.pods[seen.uid] = _Pod(seen.workload, seen.at, self.is_measured(seen.at), moved_at)
        if seen.node and not pod.has_node:
            pod.has_node = True
            if pod.is_new:
                self.waits.append(seen.at - pod.since)
        if seen.is_evicted and not pod.is_evicted:
            pod.is_evicted = True
            workload.owed.append(seen.at)
            self._count_eviction(pod, seen, workload)
        if seen.is_ready and not seen.is_leaving and not seen.is_evicted:
            workload.ready.add(seen.uid)
        else:
            workload.ready.discard(seen.uid)

    def _count_eviction(self, pod: _Pod, seen: PodSeen, workload: _Workload) -> None:
        if not self.is_measured(seen.at):
            return
        self.evictions += 1
        self.twice += pod.moved_at is not None and seen.at - pod.moved_at <= HOUR
        # An eviction of a pod that is not ready costs a budget nothing.
        self.broken += seen.uid in workload.ready and len(workload.ready) - 1 < workload.desired

    def _lose_pod(self, uid: str, at: float) -> None:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        self.workloads[pod.workload].ready.discard(uid)
        if pod.is_new and not pod.has_node:
            self.waits.append(at - pod.since)

    def finish(self) -> ChurnOutcome:
        """Returns the figures, after the last record."""
        for since, node in self.nodes.values():
            self._account(since, self.end, node)
        self.waits += [max(0.0, self.end - pod.since) for pod in self.pods.values() if pod.is_new and not pod.has_node]
        waits = sorted(self.waits)
        left = [node for _, node in self.nodes.values() if node.is_cordoned and not node.is_cordoned_by_user]
        return ChurnOutcome(
            core_hours=self.core_seconds / HOUR,
            dollars=self.price_seconds / HOUR,
            evictions=self.evictions,
            bought=self.bought,
            returned_within_hour=self.returned,
            pending_seconds=fsum(waits),
            wait_p99=waits[-(-len(waits) * 99 // 100) - 1] if waits else 0.0,
            wait_longest=waits[-1] if waits else 0.0,
            pods=len(waits),
            moved_twice=self.twice,
            broken=self.broken,
            cordons_left=len(left),
        )


def judge_history(history: Sequence[ChurnRecord], begin: float, end: float) -> ChurnOutcome:
    """Returns the figures of the time from `begin` to `end`. Records after the end only show how nodes end and whether
    cordons are left."""
    judge = _Judge(begin, end)
    judge.read_records(history)
    return judge.finish()
