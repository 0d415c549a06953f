"""A plan carried out on a played cluster, step by step, with every budget kept."""

from dataclasses import replace

from msgspec.structs import replace as change
from prometheus_client import CollectorRegistry

from tests.compactor.five import five, meant
from tests.compactor.played import ACT, TERMS, Played, process, run
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.compactor.metrics import Metrics
from trimtab.compactor.settings import Settings
from trimtab.runtime.metrics import render_metrics


def test_a_pool_is_emptied_and_no_budget_is_broken() -> None:
    played = five()
    played.takes_after = 20
    run(played, 120, terms=replace(TERMS, rest=30))
    assert len(played.nodes) == 2
    assert (played.short, played.refused, played.cordoned) == ([], 0, [])
    assert played.told("removed") == ["drain-node-removed"] * 3


def test_what_was_saved_is_counted_in_its_unit() -> None:
    played = five()
    played.takes_after = 20
    loop = run(played, 120, terms=replace(TERMS, rest=30))
    memory = loop.pool_states.state_of("all")
    assert (memory.saved, memory.worth, memory.promised) == (3, {"millicores": 12000}, {})


def test_a_node_that_is_taken_while_successors_still_start_counts_as_saved() -> None:
    played = five()
    played.ready_after, played.pools = 60, (replace(ACT, drains=1),)
    loop = process(played)
    while not played.cordoned or any(played.on(name) for name in played.cordoned):
        loop.run_round()
        played.tick()
    [name] = played.cordoned
    loop.run_round()
    del played.nodes[name]
    run(played, 5, loop)
    assert played.told("removed") == ["drain-node-removed"]


def test_an_empty_node_is_left_cordoned_for_the_autoscaler() -> None:
    played = five()
    run(played, 60)
    assert len(played.cordoned) == 3
    assert all(played.on(name) == [] for name in played.cordoned)
    assert played.noted == played.cordoned


def test_an_empty_node_that_nobody_takes_is_given_back_with_the_reason() -> None:
    played = five()
    played.scaler = Autoscaler(scale_down=True, threshold=0)
    run(played, 40, terms=replace(TERMS, taken=30))
    assert "drain-node-not-removed" in played.told("released")


def test_a_rehearsal_writes_nothing_but_its_own_state() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    run(played, 60)
    assert set(played.writes) == {"save all"}
    assert played.told("started")
    assert all(record.rehearsed for record in played.records)
    assert len(played.told("started")) <= 3, "what is only written down is written down once"


def test_nothing_changes_at_rest() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    loop = run(played, 30)
    before = len(played.writes)
    run(played, 30, loop)
    assert len(played.writes) == before


def test_successors_are_kept_off_the_nodes_that_go_next() -> None:
    played = five()
    loop = run(played, 8)
    assert any(write.startswith("taint") for write in played.writes)
    loop.shut_down()
    assert not [item for item in played.nodes.values() if item["spec"]["taints"]]


def test_what_the_loop_did_is_told_in_numbers() -> None:
    played = five()
    played.takes_after = 20
    loop = process(played)
    numbers = Metrics(CollectorRegistry(), lambda: True, lambda: 3.0)
    loop.pool_states.sinks = (*loop.pool_states.sinks, numbers.count_decision)
    for _ in range(60):
        loop.run_round()
        numbers.update_from(loop, 2.0)
        played.tick()
    page = render_metrics(numbers.registry).decode()
    assert 'trimtab_compactor_drains_total{how="removed",pool="all",reason="drain-node-removed"} 3.0' in page
    assert 'trimtab_compactor_nodes{pool="all",state="staying"} 2.0' in page
    assert 'trimtab_compactor_evictions_total{pool="all",result="evicted"}' in page
    assert "trimtab_compactor_data_age_seconds 3.0" in page
    assert "trimtab_compactor_autoscaler_healthy NaN" in page


def test_a_pool_that_was_closed_while_its_plan_settled_begins_nothing() -> None:
    played, loop = meant()
    loop.pool_states.set_state("all", change(loop.pool_states.state_of("all"), closed=played.now, strikes=2))
    loop.run_round()
    assert played.cordoned == []


def test_a_pool_whose_pace_was_lowered_while_its_plan_settled_begins_no_more_than_that() -> None:
    played, loop = meant()
    played.pools = (replace(ACT, drains=1),)
    run(played, 2, loop)
    assert len(played.cordoned) == 1


def test_an_eviction_is_waited_for_longer_than_the_oldest_view_that_is_acted_on() -> None:
    drains = process(five()).drainer
    view = five().look()
    uid = view.inventory.pods[0].uid
    drains.evicted_at = {uid: 0.0}
    assert Settings().max_watch_age_seconds < drains.unobserved_seconds
    assert drains.settle_flight(view, Settings().max_watch_age_seconds + 1) == {uid}
    assert drains.settle_flight(view, drains.unobserved_seconds + 1) == frozenset()


def test_pods_that_drains_under_way_still_have_to_evict_count_against_the_hour() -> None:
    played = Played(ready_after=20, ends_after=20).with_nodes("n1", "n2", "n3").with_nodes("n4", cpu="32")
    for app, name in (("aa", "n1"), ("bb", "n2"), ("cc", "n3")):
        played.with_app(app, *[name] * 4, *["n4"] * 4, allowed=1)
    played.with_app("dd", *["n4"] * 10)
    played.pools = (replace(ACT, drains=2, evictions_per_hour=6),)
    run(played, 150)
    assert len([write for write in played.writes if write.startswith("evict")]) <= 6
    assert played.told("emptied")
