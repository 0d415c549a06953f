"""Which pods are on nodes where they cost more than they need: on spot, scattered, or on nodes made for others?

- critical pods on spot nodes, which may be taken away within minutes;
- pods that may not move, scattered over many nodes where few would hold them: each keeps its node;
- pods that run for long on nodes that are mostly there for Jobs: the Jobs end, the node stays.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import CRITICAL, PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.compaction import reasons as r
from trimtab.compaction.blockers import DO_NOT_DISRUPT, NO_EVICTION, SAFE
from trimtab.compaction.plan_types import Plan
from trimtab.machines.prices import spot
from trimtab.scheduling.cluster_model import ClusterModel

MIN_SCATTERED = 3
"""Nodes that pods of one reason must keep before they are called scattered, and twice as many as would hold them."""
LASTING = frozenset(
    code.name
    for code in (r.UNSAFE, r.NO_OWNER, r.STRANGE_OWNER, r.JOB, r.LOCAL_DATA, r.SINGLE, r.BUDGET_NEVER, r.CRITICAL)
)
"""Reasons of pods that keep their node for as long as they run, and could run elsewhere."""
SAYING = (SAFE, DO_NOT_DISRUPT, NO_EVICTION)
LONG_RUNNING = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})


class Misplacement(StrEnum):
    CRITICAL_ON_SPOT = "critical-on-spot"
    SCATTERED = "scattered"
    LONG_ON_TEMPORARY = "long-running-on-temporary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """Pods alike that would be better elsewhere."""

    kind: Misplacement
    pods: tuple[PodInfo, ...]
    nodes: tuple[NodeInfo, ...]
    why: str
    """Of scattered pods the code of what keeps them; of critical ones what makes them so; else empty."""
    annotation: tuple[str, str] | None = None
    """(name, value) that all of them carry and that says so; None where none does."""
    fewest: int = 0
    """Of scattered pods: nodes that would hold them all, by volume."""


def misplaced(world: ClusterModel, plan: Plan) -> tuple[Misplaced, ...]:
    """In the order of the kinds, those on most nodes first."""
    found = [*_critical(world), *_scattered(world, plan), *_long(world)]
    order = list(Misplacement)
    return tuple(sorted(found, key=lambda one: (order.index(one.kind), -len(one.nodes), one.why, one.annotation or ())))


def _critical(world: ClusterModel) -> Iterator[Misplaced]:
    """Of the system by their priority, or not to be evicted by their annotations."""
    groups: dict[tuple[str, tuple[str, str] | None], list[PodInfo]] = {}
    spots = {node.name for node in world.nodes if spot(node)}
    for pod in world.pods:
        if pod.node not in spots or pod.daemon or pod.static:
            continue
        if pod.priority >= CRITICAL:
            groups.setdefault((r.CRITICAL.name, None), []).append(pod)
        elif (said := _says(pod)) is not None:
            groups.setdefault((r.UNSAFE.name, said), []).append(pod)
    for (why, said), pods in groups.items():
        yield Misplaced(
            kind=Misplacement.CRITICAL_ON_SPOT, pods=tuple(pods), nodes=_nodes(world, pods), why=why, annotation=said
        )


def _scattered(world: ClusterModel, plan: Plan) -> Iterator[Misplaced]:
    groups: dict[tuple[str, tuple[str, str] | None], list[PodInfo]] = {}
    for pod in world.pods:
        reason = plan.pods.get(pod.key)
        if reason is not None and reason.code.name in LASTING and not pod.daemon:
            groups.setdefault((reason.code.name, _says(pod) if reason.code is r.UNSAFE else None), []).append(pod)
    for (why, said), pods in groups.items():
        nodes = _nodes(world, pods)
        fewest = _fewest(world, pods, nodes)
        if len(nodes) >= max(MIN_SCATTERED, 2 * fewest):
            yield Misplaced(
                kind=Misplacement.SCATTERED, pods=tuple(pods), nodes=nodes, why=why, annotation=said, fewest=fewest
            )


def _long(world: ClusterModel) -> Iterator[Misplaced]:
    """On nodes where Jobs ask for at least half of what is asked for, DaemonSets left out."""
    pods: list[PodInfo] = []
    for number in range(len(world.nodes)):
        mine = [world.pods[n] for n in world.on[number] if not (world.pods[n].daemon or world.pods[n].static)]
        jobs = sum(_cpu(pod) for pod in mine if _owner(pod) == "Job")
        if jobs and jobs * 2 >= sum(map(_cpu, mine)):
            pods += [pod for pod in mine if _owner(pod) in LONG_RUNNING]
    if pods:
        yield Misplaced(kind=Misplacement.LONG_ON_TEMPORARY, pods=tuple(pods), nodes=_nodes(world, pods), why="")


def _says(pod: PodInfo) -> tuple[str, str] | None:
    """The annotation by which it may not be evicted."""
    notes = pod.annotations
    said = ((key, notes[key]) for key in SAYING if key in notes)
    return next(((key, text) for key, text in said if text == ("false" if key == SAFE else "true")), None)


def _owner(pod: PodInfo) -> str:
    return pod.owner.kind if pod.owner is not None else ""


def _cpu(pod: PodInfo) -> int:
    return 0 if isinstance(pod.ask.requests, Unreadable) else pod.ask.requests.get("cpu", 0)


def _nodes(world: ClusterModel, pods: Iterable[PodInfo]) -> tuple[NodeInfo, ...]:
    return tuple(world.nodes[world.index[name]] for name in sorted({pod.node for pod in pods}))


def _fewest(world: ClusterModel, pods: Iterable[PodInfo], nodes: Iterable[NodeInfo]) -> int:
    """How many of the nodes, the largest first, would hold them by volume: at least one."""
    need: Counter[str] = Counter()
    for pod in pods:
        amounts: Mapping[str, int] = {} if isinstance(pod.ask.requests, Unreadable) else pod.ask.requests
        need.update({resource: amounts.get(resource, 0) for resource in ("cpu", "memory")} | {"pods": 1})
    return max(1, *(_enough(need[what], (_have(node, what) for node in nodes)) for what in need))


def _enough(need: int, have: Iterable[int]) -> int:
    count = 0
    for amount in sorted(have, reverse=True):
        if need <= 0:
            break
        need, count = need - amount, count + 1
    return count


def _have(node: NodeInfo, what: str) -> int:
    return 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get(what, 0)
