"""Makes room in a cluster: for pods that want to run, or so that a node has no pods of workloads any more."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.room import reasons as r
from trimtab.compaction.room.room_plan import NoRoom, RoomPlan
from trimtab.compaction.room.room_search import RoomSearch
from trimtab.scheduling.cluster_model import Again, build_cluster_model

MAX_TRIES_OF_FREE_NODES = 40
"""The largest number of sets that are tried for one pod of a node that is to be free."""


def make_room(
    inventory: Inventory,
    wanted: Sequence[PodInfo],
    now: Seconds | None = None,
    again: Again | None = None,
    within: str = "",
    pools: Sequence[Pool] = (),
) -> RoomPlan | NoRoom:
    """Returns the places and the moves, or why there is no room. Equal input gives an equal plan.

    `wanted`: pods without a node; those of them that are in the inventory are counted once. `again` returns what a pod
    would request if it were admitted again. `within`: a label of nodes; all pods get nodes with one value of it.
    `pools`: of their settings, only the labels that make groups of pods count."""
    keys = {pod.key for pod in wanted}
    others = [pod for pod in inventory.pods if pod.key not in keys]
    pods = tuple(sorted([*others, *wanted], key=attrgetter("namespace", "name")))
    model = build_cluster_model(replace(inventory, pods=pods), again)
    own = [one for one in model.pending_pods if one[0].key in keys]
    model.pending_pods = [one for one in model.pending_pods if one[0].key not in keys]
    search = RoomSearch.for_model(model, now, pools)
    ranked = sorted(own, key=lambda one: (-one[0].priority, search.sizes.rank(one[1]), one[0].key))
    search.preempt_below(min((pod.priority for pod, _ in ranked), default=0))
    if not within:
        return search.place_all(ranked, range(len(model.nodes)))
    domains: dict[str, list[int]] = {}
    for number, node in enumerate(model.nodes):
        if (value := node.labels.get(within)) is not None:
            domains.setdefault(value, []).append(number)
    results = []
    for _, nodes in sorted(domains.items()):
        saved = search.capacity.save_state()
        results.append(search.place_all(ranked, nodes))
        search.capacity.restore_state(saved)
        search.targets.clear()
    plans = [one for one in results if isinstance(one, RoomPlan)]
    if plans:
        return min(plans, key=lambda plan: len(plan.moves))
    misses = [one for one in results if isinstance(one, NoRoom)]
    if not misses:
        name = ranked[0][0].key if ranked else ""
        return NoRoom(pod=name, reason=r.NO_NODE_ADMITS(f"no node has the label {within}"), placed=0)
    return max(misses, key=lambda miss: miss.placed)


def free_node(
    inventory: Inventory,
    names: Collection[str],
    now: Seconds | None = None,
    again: Again | None = None,
    pools: Sequence[Pool] = (),
) -> RoomPlan | NoRoom:
    """Returns the moves after which one of these nodes has no pods of a workload: the node with the fewest such pods
    whose pods all fit elsewhere; or why none of the nodes can be free.

    `again` returns what a pod would request if it were admitted again. `pools`: of their settings, only the labels that
    make groups of pods count."""
    model = build_cluster_model(inventory, again)
    search = RoomSearch.for_model(model, now, pools)
    search.max_tries = MAX_TRIES_OF_FREE_NODES
    counts = {
        number: sum(not (model.pods[pod].is_daemon or model.pods[pod].is_static) for pod in model.pods_on_node[number])
        for number, node in enumerate(model.nodes)
        if node.name in names and node.is_staying
    }
    nearest: NoRoom | None = None
    for number in sorted(counts, key=lambda number: (counts[number], model.nodes[number].name)):
        saved = search.capacity.save_state()
        result = search.move_all(number)
        if isinstance(result, RoomPlan):
            return result
        search.capacity.restore_state(saved)
        search.capacity.closed_nodes[number] = 0
        search.targets.clear()
        nearest = nearest or result
    return nearest or NoRoom(
        pod="", reason=r.NO_NODE_CAN_BE_FREE("none of the nodes is ready and takes pods at present"), placed=0
    )
