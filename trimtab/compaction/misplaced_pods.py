"""Reports pods that run on nodes where they cost more than necessary:

- critical pods on spot nodes, which the cloud provider may reclaim within minutes;
- pods that may not move, scattered over many nodes where few would hold them: each prevents the drain of its node;
- long-running pods on nodes that mostly run Jobs: when the Jobs end, these pods prevent the drain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.node import HOSTNAME_LABEL, NodeInfo
from trimtab.cluster.pod import CRITICAL_PRIORITY, PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.selectors import labels_match
from trimtab.compaction import reasons as r
from trimtab.compaction.blockers import NO_EVICTION, SAFE
from trimtab.compaction.candidates import DO_NOT_DISRUPT
from trimtab.compaction.plan_types import Plan
from trimtab.machines.prices import is_spot
from trimtab.scheduling.cluster_model import ClusterModel

MIN_SCATTERED = 3
"""Pods that may not move for one reason are reported as scattered if they are on at least this many nodes."""
LASTING_REASONS = frozenset(
    code.name
    for code in (r.UNSAFE, r.NO_OWNER, r.STRANGE_OWNER, r.JOB, r.LOCAL_DATA, r.SINGLE, r.BUDGET_NEVER, r.CRITICAL)
)
"""Reasons for which pods may not move as long as they run, although they could have been placed on another node."""
FORBIDDING_ANNOTATIONS = (SAFE, DO_NOT_DISRUPT, NO_EVICTION)
"""Annotations that forbid the eviction of a pod."""
LONG_RUNNING = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})


class Misplacement(StrEnum):
    CRITICAL_ON_SPOT = "critical-on-spot"
    SCATTERED = "scattered"
    LONG_ON_TEMPORARY = "long-running-on-temporary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Misplaced:
    """Pods that are misplaced in the same way."""

    kind: Misplacement
    pods: tuple[PodInfo, ...]
    nodes: tuple[NodeInfo, ...]
    why: str
    """The code of the reason why scattered pods may not move, or of what makes pods critical; empty for long-running
    pods."""
    annotation: tuple[str, str] | None = None
    """(name, value) of the annotation that is the cause, if all of the pods have it; otherwise None."""
    fewest: int = 0
    """For scattered pods: the number of nodes that would hold them all, judged by the sum of their requests and by
    their anti-affinity to each other."""


def find_misplaced(model: ClusterModel, plan: Plan) -> tuple[Misplaced, ...]:
    """Returns the misplaced pods in the order of `Misplacement`; within each kind, those on most nodes come first."""
    misplaced_pods = [*_critical_on_spot(model), *_scattered_pods(model, plan), *_long_running_among_jobs(model)]
    order = list(Misplacement)
    return tuple(
        sorted(misplaced_pods, key=lambda one: (order.index(one.kind), -len(one.nodes), one.why, one.annotation or ()))
    )


def _critical_on_spot(model: ClusterModel) -> Iterator[Misplaced]:
    """Yields the pods on spot nodes that have a system priority, or an annotation that forbids their eviction."""
    groups: dict[tuple[str, tuple[str, str] | None], list[PodInfo]] = {}
    spots = {node.name for node in model.nodes if is_spot(node)}
    for pod in model.pods:
        if pod.node not in spots or pod.is_daemon or pod.is_static:
            continue
        if pod.priority >= CRITICAL_PRIORITY:
            groups.setdefault((r.CRITICAL.name, None), []).append(pod)
        elif (annotation := _forbidding_annotation(pod)) is not None:
            groups.setdefault((r.UNSAFE.name, annotation), []).append(pod)
    for (code, annotation), pods in groups.items():
        yield Misplaced(
            kind=Misplacement.CRITICAL_ON_SPOT,
            pods=tuple(pods),
            nodes=_nodes_of(model, pods),
            why=code,
            annotation=annotation,
        )


def _scattered_pods(model: ClusterModel, plan: Plan) -> Iterator[Misplaced]:
    groups: dict[tuple[str, tuple[str, str] | None], list[PodInfo]] = {}
    for pod in model.pods:
        reason = plan.pods.get(pod.key)
        if reason is not None and reason.code.name in LASTING_REASONS and not pod.is_daemon:
            groups.setdefault(
                (reason.code.name, _forbidding_annotation(pod) if reason.code is r.UNSAFE else None), []
            ).append(pod)
    for (code, annotation), pods in groups.items():
        nodes = _nodes_of(model, pods)
        fewest = max(_min_nodes(model, pods, nodes), _most_kept_apart(pods))
        if len(nodes) >= max(MIN_SCATTERED, 2 * fewest):
            yield Misplaced(
                kind=Misplacement.SCATTERED,
                pods=tuple(pods),
                nodes=nodes,
                why=code,
                annotation=annotation,
                fewest=fewest,
            )


def _long_running_among_jobs(model: ClusterModel) -> Iterator[Misplaced]:
    """Yields the long-running pods on nodes where Jobs request at least half of the cpu (DaemonSets are left out)."""
    pods: list[PodInfo] = []
    for number in range(len(model.nodes)):
        movable = [
            model.pods[n]
            for n in model.pods_on_node[number]
            if not (model.pods[n].is_daemon or model.pods[n].is_static)
        ]
        jobs = sum(_cpu_request(pod) for pod in movable if _owner_kind(pod) == "Job")
        if jobs and jobs * 2 >= sum(map(_cpu_request, movable)):
            pods += [pod for pod in movable if _owner_kind(pod) in LONG_RUNNING]
    if pods:
        yield Misplaced(kind=Misplacement.LONG_ON_TEMPORARY, pods=tuple(pods), nodes=_nodes_of(model, pods), why="")


def _forbidding_annotation(pod: PodInfo) -> tuple[str, str] | None:
    """Returns (name, value) of the annotation that forbids the eviction of the pod, or None if there is none."""
    present = ((key, pod.annotations[key]) for key in FORBIDDING_ANNOTATIONS if key in pod.annotations)
    return next(((key, value) for key, value in present if value == ("false" if key == SAFE else "true")), None)


def _owner_kind(pod: PodInfo) -> str:
    return pod.owner.kind if pod.owner is not None else ""


def _cpu_request(pod: PodInfo) -> int:
    return 0 if isinstance(pod.requirements.requests, Unreadable) else pod.requirements.requests.get("cpu", 0)


def _nodes_of(model: ClusterModel, pods: Iterable[PodInfo]) -> tuple[NodeInfo, ...]:
    return tuple(model.nodes[model.node_numbers[name]] for name in sorted({pod.node for pod in pods}))


def _min_nodes(model: ClusterModel, pods: Iterable[PodInfo], nodes: Iterable[NodeInfo]) -> int:
    """Returns how many of the nodes, if the largest are used first, would hold the pods; at least one. Only the sum of
    the pods' requests is compared."""
    requested: Counter[str] = Counter()
    for pod in pods:
        amounts: Mapping[str, int] = (
            {} if isinstance(pod.requirements.requests, Unreadable) else pod.requirements.requests
        )
        requested.update({resource: amounts.get(resource, 0) for resource in ("cpu", "memory")} | {"pods": 1})
    return max(
        1,
        *(
            _count_nodes(requested[resource], (_allocatable(node, resource) for node in nodes))
            for resource in requested
        ),
    )


def _most_kept_apart(pods: Iterable[PodInfo]) -> int:
    """Returns the largest number of the pods of which each requires a node without the others, by its anti-affinity to
    pods with its own labels."""
    apart: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        apart.update(
            # A selector has no hash.
            (pod.namespace, repr(term))
            for term in pod.requirements.required_anti_affinity
            if term.topology_key == HOSTNAME_LABEL
            and (selector := value_or(term.label_selector, None)) is not None
            and labels_match(selector, pod.requirements.labels)
        )
    return max(apart.values(), default=0)


def _count_nodes(remaining: int, amounts: Iterable[int]) -> int:
    count = 0
    for amount in sorted(amounts, reverse=True):
        if remaining <= 0:
            break
        remaining, count = remaining - amount, count + 1
    return count


def _allocatable(node: NodeInfo, resource: str) -> int:
    return 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get(resource, 0)
