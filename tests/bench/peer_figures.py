"""A history → the figures of one peer: what it costs before and after, and what it disturbed on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.autoscaling.churn.churn_history import ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_outcome import judge_history


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPhase:
    """One part of a run."""

    nodes: int
    """Those that are there at its end."""
    dollars: float
    """What they cost an hour."""
    seconds: float
    """From its beginning to the last change of a node or pod."""
    evictions: int
    bought: int
    pending_seconds: float
    """The sum of the times for which new pods waited for a node."""
    not_ready_seconds: float
    """The sum of the times from the creation of pods until they were ready."""
    longest_wait: float
    broken: int
    """Evictions after which a budget had fewer ready pods than it wants."""


def judge_phase(history: Sequence[ChurnRecord], begin: float, end: float) -> PeerPhase:
    """Returns the figures of the time from `begin` to `end`."""
    outcome = judge_history([record for record in history if record.at < end], begin, end)
    nodes, price = count_nodes(history, end)
    return PeerPhase(
        nodes=nodes,
        dollars=price / 1e6,
        seconds=max(0.0, find_last_change(history, end) - begin),
        evictions=outcome.evictions,
        bought=outcome.bought,
        pending_seconds=outcome.pending_seconds,
        not_ready_seconds=sum_not_ready(history, begin, end),
        longest_wait=outcome.wait_longest,
        broken=outcome.broken,
    )


def count_nodes(history: Sequence[ChurnRecord], at: float) -> tuple[int, int]:
    """Returns the number of nodes at a time, and their price in micro-dollars an hour."""
    prices: dict[str, int] = {}
    for record in history:
        if record.at >= at:
            continue
        if isinstance(record, NodeSeen):
            prices[record.name] = record.price
        elif isinstance(record, NodeGone):
            prices.pop(record.name, None)
    return len(prices), sum(prices.values())


def find_last_change(history: Sequence[ChurnRecord], end: float) -> float:
    """Returns when a node last came or went, or a pod last came, became ready or went; 0 before all of it."""
    nodes: set[str] = set()
    pods: dict[str, tuple[str, bool]] = {}
    last = 0.0
    for record in history:
        if record.at >= end:
            continue
        is_change = False
        match record:
            case NodeSeen():
                is_change = record.name not in nodes
                nodes.add(record.name)
            case NodeGone():
                is_change = record.name in nodes
                nodes.discard(record.name)
            case PodSeen():
                is_change = pods.get(record.uid) != (record.node, record.is_ready)
                pods[record.uid] = (record.node, record.is_ready)
            case PodGone():
                is_change = pods.pop(record.uid, None) is not None
        if is_change:
            last = max(last, record.at)
    return last


def sum_not_ready(history: Sequence[ChurnRecord], begin: float, end: float) -> float:
    """Returns the seconds, within this time, from the creation of each pod until it was ready for the first time."""
    waiting: dict[str, float] = {}
    names: set[str] = set()
    total = 0.0
    for record in history:
        if record.at >= end:
            continue
        if isinstance(record, PodSeen):
            if record.uid not in names:
                names.add(record.uid)
                waiting[record.uid] = record.at
            if record.is_ready and record.uid in waiting:
                total += max(0.0, record.at - max(begin, waiting.pop(record.uid)))
        elif isinstance(record, PodGone) and record.uid in waiting:
            total += max(0.0, record.at - max(begin, waiting.pop(record.uid)))
    return total + sum(max(0.0, end - max(begin, since)) for since in waiting.values())
