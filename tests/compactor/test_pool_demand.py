"""What the compactor remembers of a pool's requests, and what it keeps free because of that."""

from dataclasses import replace

from tests.compactor.played import ACT, Played, process
from trimtab.compaction.room_forecast import SLOT_SECONDS, DemandHistory, NeededRoom
from trimtab.compactor.pool_demand import forecast_pools


def played() -> Played:
    return Played().with_nodes("a", "b").with_app("web", "a", "b", cpu="500m").with_app("api", "a", cpu="250m")


def test_each_plan_records_what_the_pods_of_the_pool_request() -> None:
    cluster = played()
    loop = process(cluster)
    loop.run_round()
    demand = loop.pool_states.state_of("all").demand
    assert demand == DemandHistory(first=cluster.now // SLOT_SECONDS, cpu=(1250,), memory=(0,))


def test_a_young_history_forecasts_nothing_and_changes_no_plan() -> None:
    loop = process(played())
    loop.run_round()
    assert loop.planner.needed_room == {}
    assert loop.planner.last_plan is not None
    assert [step.node for step in loop.planner.last_plan.all_steps] != []


def with_history(cluster: Played) -> DemandHistory:
    """Two days in which the requests rise by six cores each third hour, the next time within half an hour."""
    slots = 300
    cpus = tuple(7250 if slot % 18 >= 15 else 1250 for slot in range(slots))
    return DemandHistory(first=cluster.now // SLOT_SECONDS - slots, cpu=cpus, memory=(0,) * slots)


def test_a_pool_keeps_what_it_will_need_unless_it_is_told_not_to() -> None:
    plans = []
    for keeps in (True, False):
        cluster = played()
        cluster.pools = (replace(ACT, keeps_forecast=keeps),)
        loop = process(cluster)
        state = loop.pool_states.state_of("all")
        loop.pool_states.set_state("all", type(state)(demand=with_history(cluster)))
        loop.run_round()
        assert loop.planner.last_plan is not None
        plans.append(len(loop.planner.last_plan.all_steps))
        assert ("all" in forecast_pools(loop.pool_states, cluster.pools, cluster.now)) is keeps
    assert plans == [0, 1]


def test_the_forecast_of_the_last_plan_is_there_for_the_metrics() -> None:
    cluster = played()
    loop = process(cluster)
    state = loop.pool_states.state_of("all")
    loop.pool_states.set_state("all", type(state)(demand=with_history(cluster)))
    loop.run_round()
    assert isinstance(loop.planner.needed_room["all"], NeededRoom)


def test_a_longer_payback_keeps_what_is_needed_later() -> None:
    """Six cores more are needed in 100 minutes: too late for an hour, and soon enough for two."""
    plans = []
    for payback in (3600, 7200):
        cluster = played()
        cluster.pools = (replace(ACT, payback=payback),)
        loop = process(cluster)
        slots = 300
        cpus = tuple(7250 if (slot - slots) % 30 >= 10 else 1250 for slot in range(slots))
        demand = DemandHistory(first=cluster.now // SLOT_SECONDS - slots, cpu=cpus, memory=(0,) * slots)
        loop.pool_states.set_state("all", type(loop.pool_states.state_of("all"))(demand=demand))
        loop.run_round()
        plans.append(loop.planner.needed_room["all"].millicores)
    assert plans[0] < plans[1] == 6000


def test_a_history_with_slots_of_another_length_begins_anew() -> None:
    cluster = played()
    loop = process(cluster)
    loop.pool_states.set_state("all", type(loop.pool_states.state_of("all"))(demand=with_history(cluster)))
    loop.planner.slot_seconds = 60
    loop.run_round()
    assert loop.pool_states.state_of("all").demand == DemandHistory(
        first=cluster.now // 60, cpu=(1250,), memory=(0,), slot_seconds=60
    )
