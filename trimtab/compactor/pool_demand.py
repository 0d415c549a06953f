"""Records what the pods of each pool request, and forecasts the room that the pools need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace as change

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.room_forecast import NeededRoom, forecast_room
from trimtab.compactor.pool_state_store import PoolStates


def record_demand(states: PoolStates, view: ClusterView) -> None:
    """Adds what the pods of each pool request now to the history of the pool."""
    pool_by_node: dict[str, str] = {}
    for pool in view.pools:
        pool_by_node |= {node.name: pool.name for node in view.inventory.nodes if pool.has_node(node)}
    demand = {pool.name: [0, 0] for pool in view.pools}
    for pod in view.inventory.pods:
        requests = pod.requirements.requests
        if pod.node not in pool_by_node or pod.is_finished or pod.is_daemon or pod.is_static:
            continue
        if not isinstance(requests, Unreadable):
            amounts = demand[pool_by_node[pod.node]]
            amounts[0] += requests.get("cpu", 0)
            amounts[1] += requests.get("memory", 0)
    for name, (cpu, memory) in demand.items():
        state = states.state_of(name)
        longer = state.demand.with_demand(view.now, cpu, memory >> 20)
        if longer != state.demand:
            states.set_state(name, change(state, demand=longer))


def forecast_pools(states: PoolStates, pools: Sequence[Pool], now: Seconds) -> Mapping[str, NeededRoom]:
    """Returns pool → the room that it needs, for the pools that keep it and whose history is long enough."""
    rooms = {pool.name: forecast_room(states.state_of(pool.name).demand, now) for pool in pools if pool.keeps_forecast}
    return {name: room for name, room in rooms.items() if isinstance(room, NeededRoom)}
