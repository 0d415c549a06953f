"""Records what the pods of each pool request, and forecasts the room that the pools need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace as change

from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.room_forecast import (
    SLOT_SECONDS,
    DemandHistory,
    NeededRoom,
    count_horizon_slots,
    forecast_rooms,
)
from trimtab.compactor.pool_state_store import PoolStates


def record_demand(states: PoolStates, view: ClusterView, slot_seconds: int = SLOT_SECONDS) -> None:
    """Adds what the pods of each pool request now to the history of the pool. A history with slots of another length
    begins anew."""
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
    for pool in view.pools:
        state, (cpu, memory) = states.state_of(pool.name), demand[pool.name]
        history = state.demand
        if history.slot_seconds != slot_seconds:
            history = DemandHistory(slot_seconds=slot_seconds)
        longer = history.with_demand(view.now, cpu, memory >> 20, count_horizon_slots(pool, history))
        if longer != state.demand:
            states.set_state(pool.name, change(state, demand=longer))


def forecast_pools(states: PoolStates, pools: Sequence[Pool], now: Seconds) -> Mapping[str, NeededRoom]:
    """Returns pool → the room that it needs, for the pools that keep it and whose history is long enough."""
    return forecast_rooms({pool.name: states.state_of(pool.name).demand for pool in pools}, pools, now)
