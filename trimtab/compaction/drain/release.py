"""Which emptied nodes are opened again for pods that no open node takes?

The autoscaler answers an unschedulable pod within one scan (ten seconds) and counts no cordoned node: who is slower has
it buy a machine beside an empty one. As few nodes as hold the pods are opened, the smallest that will do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.backoff import is_unplaced
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity, build
from trimtab.scheduling.filters import admits
from trimtab.scheduling.node_filters import CORDON
from trimtab.scheduling.pod_class import PodClass


def nodes_to_open(view: ClusterView, terms: DrainTimeouts) -> dict[str, str]:
    """Emptied node → a pod (namespace/name) that it is opened for.

    Within what each pool may still open in this hour. A pod counts when the scheduler has said that it is
    unschedulable, or when it has had no node for `terms.pending` seconds; not one that fits on an open node.
    """
    emptied = [node for node, note in view.noted() if _may_open(node, note)]
    pods = [pod for pod in view.inventory.pods if _waits(pod, view, terms)] if emptied else []
    if not pods:
        return {}
    world = build(opened(view.inventory, {node.name for node in emptied}))
    kinds = {pod.uid: kind for pod, kind in world.waiting}
    order = sorted(pods, key=lambda pod: (-pod.priority, pod.created or 0, pod.key))
    queue = [(pod.key, kinds[pod.uid]) for pod in order if pod.uid in kinds]
    closed = {world.index[node.name] for node in emptied}
    chosen = chosen_nodes(FreeCapacity(world), queue, _smallest_first(world, closed))
    return _within_allowance({world.nodes[number].name: pod for number, pod in chosen.items()}, view)


def chosen_nodes(room: FreeCapacity, queue: Sequence[tuple[str, PodClass]], closed: Sequence[int]) -> dict[int, str]:
    """Closed node → the first pod it takes; `closed` in the order of preference, the room as if they were open.

    First each pod takes room on an open node, where there is some. Of the closed nodes the first that takes all that
    are left is opened, else the one that takes most, and so on.
    """
    shut, found = set(closed), dict[int, str]()
    others = [node for node in range(len(room.world.nodes)) if node not in shut]
    left = [(pod, kind) for pod, kind in queue if not _take(room, kind, others)]
    rest = list(closed)
    while left and rest:
        taken = {node: _filled(room, left, node) for node in rest}
        best = max(rest, key=lambda node: (len(taken[node]), -rest.index(node)))
        if not taken[best]:
            break
        found[best] = left[taken[best][0]][0]
        for number in taken[best]:
            room.take(left[number][1], best)
        left = [pair for number, pair in enumerate(left) if number not in set(taken[best])]
        rest.remove(best)
    return found


def opened(inventory: Inventory, names: Iterable[str]) -> Inventory:
    """With these nodes open, whoever cordoned them."""
    mine = set(names)
    nodes = tuple(_open(node) if node.name in mine else node for node in inventory.nodes)
    return replace(inventory, nodes=nodes)


def _open(node: NodeInfo) -> NodeInfo:
    return replace(node, cordoned=False, taints=tuple(taint for taint in node.taints if taint.key != CORDON.key))


def _may_open(node: NodeInfo, note: object) -> bool:
    """Is it empty, in good health, and by our hand alone?"""
    if not isinstance(note, DrainAnnotation) or note.emptied is None:
        return False
    return node.ready and node.cordoned and node.going is None


def _waits(pod: PodInfo, view: ClusterView, terms: DrainTimeouts) -> bool:
    return pod.seeking and not pod.finished and pod.deleted is None and is_unplaced(pod, view.at, terms.pending)


def _smallest_first(world: ClusterModel, numbers: Iterable[int]) -> list[int]:
    sizes = {number: [world.amount(number, name) for name in world.resources] for number in numbers}
    return sorted(sizes, key=lambda number: (sizes[number], number))


def _take(room: FreeCapacity, kind: PodClass, nodes: Iterable[int]) -> bool:
    place = next((node for node in nodes if admits(room, kind, node)), None)
    if place is not None:
        room.take(kind, place)
    return place is not None


def _filled(room: FreeCapacity, queue: Sequence[tuple[str, PodClass]], node: int) -> list[int]:
    """Which of the queue the node takes, together; the room is as it was afterwards."""
    found = []
    for number, (_, kind) in enumerate(queue):
        if admits(room, kind, node):
            room.take(kind, node)
            found.append(number)
    for number in found:
        room.give(queue[number][1], node)
    return found


def _within_allowance(chosen: dict[str, str], view: ClusterView) -> dict[str, str]:
    """Without what is over a pool's openings per hour."""
    notes, left = view.notes.ours, dict[str, int]()
    found: dict[str, str] = {}
    for name, pod in chosen.items():
        note = notes[name]
        pool = view.pool(note.pool) if isinstance(note, DrainAnnotation) else None
        if pool is not None:
            left.setdefault(pool.name, pool.openings_per_hour - view.opened.get(pool.name, 0))
            if left[pool.name] > 0:
                left[pool.name] -= 1
                found[name] = pod
    return found
