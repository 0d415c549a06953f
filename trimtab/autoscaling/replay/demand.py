"""A stretch of a recording → its demand: when which workload wanted how many pods, and what happened to machines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from trimtab.autoscaling.churn.churn_script import ChurnEvent, ChurnKind
from trimtab.autoscaling.replay.recording import PodLife, Stretch
from trimtab.cluster.owner import OwnerKey


@dataclass(slots=True)
class _Step:
    """One pod more, or one fewer, of a slot."""

    slot: str
    round: int
    at: int
    is_more: bool
    is_known: bool
    """Whether a capture shows the time."""


def list_events(stretch: Stretch, top_owners: Mapping[OwnerKey, OwnerKey] | None = None) -> tuple[ChurnEvent, ...]:
    """Returns the events of the stretch in the order of their times, in seconds since its beginning.

    A pod that another one of its workload replaced between two rounds is no event: with other nodes, it might not have
    moved. So a rollout is one workload that shrinks and one that grows, and an eviction is nothing. `top_owners`:
    ReplicaSet → Deployment.
    """
    steps = [step for slot, lives in _lives_by_slot(stretch).items() for step in _list_steps(slot, lives)]
    _join_replacements(steps, stretch, top_owners or {})
    # What goes makes room for what comes in the same second, as when a Deployment is rolled out.
    steps.sort(key=lambda step: (step.at, step.is_more, step.slot))
    replicas = Counter(life.slot for life in stretch.pods if life.is_initial)
    events = []
    for step in steps:
        replicas[step.slot] += 1 if step.is_more else -1
        at = max(0, step.at - stretch.begin)
        events.append(ChurnEvent(at=at, kind=ChurnKind.SCALE, workload=step.slot, amount=max(0, replicas[step.slot])))
    events += _list_node_events(stretch)
    return tuple(sorted(events, key=lambda event: event.at))


def order_initial_pods(stretch: Stretch, repeat: int) -> list[PodLife]:
    """Returns the pods of the first round: in another order in each repeat of a replay, by which ties between pods of
    a workload fall, as of which goes when it shrinks."""
    pods = [pod for pod in stretch.pods if pod.is_initial]
    if repeat:
        draws = {id(pod): crc32(f"{repeat} {pod.slot} {number}".encode()) for number, pod in enumerate(pods)}
        pods.sort(key=lambda pod: draws[id(pod)])
    return pods


def _list_steps(slot: str, lives: Sequence[PodLife]) -> Iterator[_Step]:
    begins: dict[int, list[PodLife]] = defaultdict(list)
    ends: dict[int, list[PodLife]] = defaultdict(list)
    for life in lives:
        if not life.is_initial:
            begins[life.begin_round].append(life)
        if life.end is not None:
            ends[life.end_round].append(life)
    for number in sorted(begins.keys() | ends.keys()):
        net = len(begins[number]) - len(ends[number])
        if net > 0:
            for at in sorted(life.begin for life in begins[number])[-net:]:
                yield _Step(slot, number, at, is_more=True, is_known=True)
        elif net < 0:
            for life in sorted(ends[number], key=lambda one: one.end or 0)[net:]:
                yield _Step(slot, number, life.end or 0, is_more=False, is_known=life.is_end_known)


def _join_replacements(steps: Sequence[_Step], stretch: Stretch, top_owners: Mapping[OwnerKey, OwnerKey]) -> None:
    """Lets a pod go when one of the same Deployment came, if both happened between the same two rounds: the controller
    does both at once. A time between would be too late for half of the pods, and nodes would be bought for it."""
    by_place: dict[tuple[OwnerKey | str, int], tuple[list[_Step], list[_Step]]] = defaultdict(lambda: ([], []))
    for step in steps:
        owner = stretch.samples[step.slot].owner
        place = (step.slot if owner is None else top_owners.get(owner, owner), step.round)
        by_place[place][step.is_more].append(step)
    for fewer, more in by_place.values():
        unknown = [step for step in fewer if not step.is_known]
        for old, new in zip(unknown, sorted(more, key=lambda step: step.at), strict=False):
            old.at = new.at


def _list_node_events(stretch: Stretch) -> Iterator[ChurnEvent]:
    for life in stretch.nodes:
        # Where the replay does not have this node, it happens to another one: `share` says which.
        name, share = life.node.name, (sum(life.node.name.encode()) % 97) / 97
        if life.is_lost and life.end is not None:
            at = life.end - stretch.begin
            yield ChurnEvent(at=at, kind=ChurnKind.NODE_DIES, workload=name, share=share)
        for begin, end in life.cordons:
            at, seconds = max(0, begin - stretch.begin), end - begin
            yield ChurnEvent(at=at, kind=ChurnKind.CORDON, workload=name, share=share, amount=seconds)


def count_replaced(stretch: Stretch) -> Counter[str]:
    """Returns workload → how many of its pods went and were replaced by another one of it between two rounds: those
    that were evicted or deleted, or whose node went."""
    replaced: Counter[str] = Counter()
    for slot, lives in _lives_by_slot(stretch).items():
        begins = Counter(life.begin_round for life in lives if not life.is_initial)
        ends = Counter(life.end_round for life in lives if life.end is not None and life.bound is not None)
        replaced[slot] += sum(min(count, begins[number]) for number, count in ends.items())
    return +replaced


def _lives_by_slot(stretch: Stretch) -> dict[str, list[PodLife]]:
    by_slot: dict[str, list[PodLife]] = defaultdict(list)
    for life in stretch.pods:
        by_slot[life.slot].append(life)
    return by_slot
