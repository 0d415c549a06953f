"""What happened on each day and in each pool: of a recording, and of its replay, by the same function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.autoscaling.churn.churn_history import ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.replay.recording import Stretch
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds

HOUR, DAY = 3600, 86_400
LONG_WAIT_SECONDS = 60
"""From so many seconds on, a pod's wait for a node counts as long."""


@dataclass(slots=True)
class DayPool:
    """The machines of one pool on one day (UTC)."""

    node_seconds: float = 0.0
    core_seconds: float = 0.0
    micro_dollar_hours: float = 0.0
    """Micro-dollars an hour × hours."""
    bought: float = 0
    """The nodes that were added; of several replays, their average."""


@dataclass(slots=True)
class DayPods:
    """The pods of one day; of several replays, their averages."""

    evictions: float = 0
    created: float = 0
    waits: float = 0
    """The pods that waited for a node for a minute or longer."""
    wait_seconds: float = 0.0


@dataclass(slots=True)
class DailyOutcome:
    """The days and pools of one variant."""

    pools: dict[tuple[int, str], DayPool] = field(default_factory=lambda: defaultdict(DayPool))
    """(the number of the day since 1970, pool) → its machines."""
    pods: dict[int, DayPods] = field(default_factory=lambda: defaultdict(DayPods))

    def sum_pools(self, day: int | None = None, pool: str | None = None) -> DayPool:
        """Returns the sum of these days and pools; None: of all."""
        total = DayPool()
        for (one_day, one_pool), part in self.pools.items():
            if day in (None, one_day) and pool in (None, one_pool):
                total.node_seconds += part.node_seconds
                total.core_seconds += part.core_seconds
                total.micro_dollar_hours += part.micro_dollar_hours
                total.bought += part.bought
        return total

    def sum_pods(self, day: int | None = None) -> DayPods:
        """Returns the sum of the pods of one day; None: of all days."""
        total = DayPods()
        for one_day, part in self.pods.items():
            if day in (None, one_day):
                total.evictions += part.evictions
                total.created += part.created
                total.waits += part.waits
                total.wait_seconds += part.wait_seconds
        return total


def average_outcomes(outcomes: Sequence[DailyOutcome]) -> DailyOutcome:
    """Returns the average of several outcomes of the same time."""
    average, share = DailyOutcome(), 1 / len(outcomes)
    for one in outcomes:
        for place, part in one.pools.items():
            pool = average.pools[place]
            pool.node_seconds += part.node_seconds * share
            pool.core_seconds += part.core_seconds * share
            pool.micro_dollar_hours += part.micro_dollar_hours * share
            pool.bought += part.bought * share
        for day, own in one.pods.items():
            pods = average.pods[day]
            pods.evictions += own.evictions * share
            pods.created += own.created * share
            pods.waits += own.waits * share
            pods.wait_seconds += own.wait_seconds * share
    return average


@dataclass(slots=True)
class _Pod:
    since: float
    is_initial: bool
    has_node: bool = False
    is_evicted: bool = False


def add_history(
    outcome: DailyOutcome, history: Iterable[ChurnRecord], begin: Seconds, end: Seconds, groups: Mapping[str, str]
) -> None:
    """Adds what a history of the time from `begin` to `end` shows. Its times are seconds since `begin`; what is there
    at second 0 was there before. `groups`: node → its pool; a node without one is no machine, and has no hours."""
    nodes: dict[str, NodeSeen] = {}
    pods: dict[str, _Pod] = {}

    def day_of(at: float) -> int:
        return int((begin + at) // DAY)

    def account(seen: NodeSeen, until: float) -> None:
        if seen.name not in groups:
            return
        at, stop = begin + seen.at, min(end, begin + until)
        while at < stop:
            day = int(at // DAY)
            until_midnight = min(stop, (day + 1) * DAY)
            part = outcome.pools[day, groups[seen.name]]
            seconds = until_midnight - at
            part.node_seconds += seconds
            part.core_seconds += seconds * seen.millicores / 1000
            part.micro_dollar_hours += seconds * seen.price / HOUR
            at = until_midnight

    def end_wait(pod: _Pod, at: float) -> None:
        waited, day = at - pod.since, outcome.pods[day_of(pod.since)]
        day.wait_seconds += waited
        day.waits += waited >= LONG_WAIT_SECONDS

    for record in history:
        if begin + record.at > end:
            continue
        match record:
            case NodeSeen():
                present = nodes.get(record.name)
                if present is not None:
                    account(present, record.at)
                elif record.at > 0 and record.name in groups:
                    outcome.pools[day_of(record.at), groups[record.name]].bought += 1
                nodes[record.name] = record
            case NodeGone():
                node = nodes.pop(record.name, None)
                if node is not None:
                    account(node, record.at)
            case PodSeen():
                pod = pods.get(record.uid)
                if pod is None:
                    pod = pods[record.uid] = _Pod(record.at, is_initial=record.at <= 0)
                    outcome.pods[day_of(record.at)].created += record.at > 0
                if record.node and not pod.has_node:
                    pod.has_node = True
                    if not pod.is_initial:
                        end_wait(pod, record.at)
                if record.is_evicted and not pod.is_evicted:
                    pod.is_evicted = True
                    outcome.pods[day_of(record.at)].evictions += record.at > 0
            case PodGone():
                ended_pod = pods.pop(record.uid, None)
                if ended_pod is not None and not ended_pod.has_node and not ended_pod.is_initial:
                    end_wait(ended_pod, record.at)
    for node in nodes.values():
        account(node, end - begin)
    for pod in pods.values():
        if not pod.has_node and not pod.is_initial:
            end_wait(pod, end - begin)


def recorded_history(stretch: Stretch, prices: Mapping[str, int]) -> list[ChurnRecord]:
    """Returns what was recorded as a history, in the order of its times. `prices`: node → micro-dollars an hour."""
    records: list[ChurnRecord] = []
    for node_life in stretch.nodes:
        node, begin = node_life.node, float(node_life.begin - stretch.begin)
        cpu = 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get("cpu", 0)
        records.append(NodeSeen(begin, node.name, cpu, prices.get(node.name, 0)))
        if node_life.end is not None:
            records.append(NodeGone(float(node_life.end - stretch.begin), node.name))
    for number, life in enumerate(stretch.pods):
        uid, begin = str(number), float(life.begin - stretch.begin)
        records.append(PodSeen(begin, uid, life.slot))
        if life.bound is not None:
            records.append(PodSeen(float(life.bound - stretch.begin), uid, life.slot, node=life.node))
        if life.end is not None:
            end = float(life.end - stretch.begin)
            if life.was_evicted:
                records.append(PodSeen(end, uid, life.slot, node=life.node, is_evicted=True))
            records.append(PodGone(end, uid))
    return sorted(records, key=lambda record: record.at)
