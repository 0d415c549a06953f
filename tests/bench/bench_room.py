"""How many pods have to move so that a large pod or a gang fits? Measured by `make bench-replace`.

Fifty drawn GPU clusters (`room_clusters` says how) of `SMALL` nodes, each also solved by an exact model: `over_best` is
the sum of evictions over the sum of the model's, where the model needs one or more; `placed_share` counts the
instances with room, of those where the model has some. CPU is that of the search and of its cluster model, at `LARGE`
nodes that are fuller, also where there is no room.
"""

import json
import time

import room_clusters

from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.snapshot import load_snapshot
from trimtab.compaction.room.make_room import make_room
from trimtab.compaction.room.room_plan import RoomPlan

SMALL, LARGE = 14, 1000


def solve(cluster):
    """(the plan, CPU s) of one instance; a plan is checked."""
    content = json.dumps({"kind": "List", "items": [*cluster.items(), *cluster.wanted_items()]}).encode()
    reading = load_snapshot([("cluster.json", content)])
    assert not reading.mistakes, reading.mistakes[:3]
    inventory = snapshot_inventory(reading.snapshot)
    wanted = [pod for pod in inventory.pods if pod.name.startswith("wanted-")]
    started = time.process_time()
    plan = make_room(inventory, wanted)
    spent = time.process_time() - started
    if isinstance(plan, RoomPlan):
        room_clusters.check_room(cluster, plan)
    return plan, spent


def measure(instances, large):
    """(evictions over the best, placed share, CPU s at most at 1 000 nodes, instances with evictions)."""
    trace = room_clusters.read_trace()
    evictions = best = placed = possible = needing = 0
    for seed in range(instances):
        cluster = room_clusters.Cluster(seed, SMALL, trace)
        plan, _ = solve(cluster)
        least = room_clusters.least_evictions(cluster)
        is_placed = isinstance(plan, RoomPlan)
        assert least is not None or not is_placed, f"instance {seed}: the model has no room"
        possible += least is not None
        placed += least is not None and is_placed
        if is_placed and least:
            assert len(plan.moves) >= least, f"instance {seed}: fewer evictions than the model's"
            evictions, best, needing = evictions + len(plan.moves), best + least, needing + 1
    solved = [solve(room_clusters.Cluster(1000 + seed, LARGE, trace, (0.8, 0.97))) for seed in range(large)]
    spent, rooms = [cpu for _, cpu in solved], sum(isinstance(plan, RoomPlan) for plan, _ in solved)
    over = evictions / max(1, best)
    print(
        f"{instances} GPU clusters of {SMALL} nodes: room in {placed} of the {possible} where an exact model has it, "
        f"{evictions} evictions where it needs {best} ({needing} instances with any)"
    )
    print(f"  {large} GPU clusters of {LARGE} nodes: {max(spent):.2f} s CPU at most, {rooms} of them with room")
    return over, placed / max(1, possible), max(spent), needing


if __name__ == "__main__":
    print(measure(50, 5))
