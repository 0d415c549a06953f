"""A budget that allows no eviction: the Deployment has one more pod first, and its own count again afterwards."""

from dataclasses import replace
from typing import Any

import pytest

from tests.compactor.played import ACT, Played, process, run
from trimtab.cluster.pool import MAX_SURGE
from trimtab.compactor.loop import Loop

SURGES = replace(ACT, surge=1)


def three() -> Played:
    """A Deployment of three pods whose budget wants three, one of them alone on node n1; n2 and n3 have room."""
    played = Played().with_nodes("n1", "n2", "n3")
    played.with_app("web", "n1", "n2", "n3", cpu="500m", minimum=3).with_app("big", "n2", "n3", cpu="1500m")
    played.pools = (SURGES,)
    return played


def surge_begins(played: Played, loop: Loop) -> None:
    """Lets time pass until the Deployment has been given more pods."""
    for _ in range(30):
        if played.wanted["web"] != 3:
            return
        loop.run_round()
        played.tick()
    raise AssertionError(played.writes)


def scalings(played: Played) -> list[str]:
    return [write for write in played.writes if write.startswith("scale")]


def ended(played: Played) -> Any:
    """What holds whatever happened: counts as before, nothing broken, nothing bought."""
    return played.wanted["web"], played.short, played.bought, len(played.healthy("web"))


def test_without_the_setting_nothing_is_scaled_and_nothing_moves() -> None:
    played = three()
    played.pools = (ACT,)
    run(played, 60)
    assert not [write for write in played.writes if "web" in write]


def test_a_pod_more_comes_first_and_the_count_is_as_before() -> None:
    played = three()
    loop, fewest = process(played), 3
    for _ in range(60):
        loop.run_round()
        played.tick()
        fewest = min(fewest, len(played.healthy("web")))
    assert "web-0" not in played.on("n1")
    assert scalings(played) == ["scale default/web 4", "scale default/web 3"]
    assert (fewest, played.refused, ended(played)) == (3, 0, (3, [], [], 3))
    assert loop.pool_states.state_of("all").surged == {}


def test_two_pods_of_one_node_move_one_after_the_other_with_one_surge() -> None:
    played = Played().with_nodes("n1", "n2")
    played.with_app("web", "n1", "n1", "n2", cpu="500m", minimum=3).with_app("big", "n2", "n2", "n2", cpu="500m")
    played.pools = (SURGES,)
    run(played, 120)
    assert scalings(played) == ["scale default/web 4", "scale default/web 3"]
    assert ended(played) == (3, [], [], 3)


def test_a_budget_that_wants_more_pods_than_there_are_gets_two() -> None:
    played = Played().with_nodes("n1", "n2").with_app("one", "n1", cpu="500m", minimum=2)
    played.with_app("two", "n2", "n2", cpu="500m")
    played.pools = (replace(ACT, surge=2, single_replicas=True),)
    run(played, 90)
    assert scalings(played)[:1] == ["scale default/one 3"]
    assert played.wanted["one"] == 1


def test_a_count_that_another_client_writes_in_the_middle_stays_and_is_said() -> None:
    played = three()
    loop = process(played)
    surge_begins(played, loop)
    played.wanted["web"] = 6
    run(played, 60, loop)
    assert played.wanted["web"] == 6
    assert "workload-count-changed" in played.told("left-surged")


def test_who_writes_the_count_back_each_time_keeps_the_pod() -> None:
    """As Git does."""
    played = three()
    loop = process(played)
    for _ in range(60):
        loop.run_round()
        played.wanted["web"] = 3
        played.tick()
    assert played.told("released") == ["drain-surge-reverted"], "it is not tried again"
    assert loop.pool_states.state_of("all").reverted.keys() == {"default/web"}
    assert not [write for write in played.writes if write.startswith("evict default/web")]


def test_where_somebody_else_spends_the_disruption_the_pod_stays_and_the_count_goes_back() -> None:
    played = three()
    loop = process(played)
    for _ in range(300):
        loop.run_round()
        played.tick()
        # Another budget's owner: whatever becomes ready is wanted.
        played.minimums["web"] = max(3, len(played.healthy("web")))
        if "released" in [record.what for record in played.records]:
            break
    assert played.wanted["web"] == 3
    assert not [write for write in played.writes if write.startswith("evict default/web")]
    assert len([write for write in scalings(played) if write.endswith("4")]) == 1


def writes_of_a_drain() -> list[str]:
    played = three()
    run(played, 60)
    return played.writes


def test_the_process_may_die_after_any_write() -> None:
    for number, write in enumerate(writes_of_a_drain()):
        for fault in ("killed", "lost"):
            played = three()
            played.faults[number] = fault
            run(played, 120)
            assert ended(played) == (3, [], [], 3), (number, write, fault)
            assert len(set(scalings(played))) <= 2, scalings(played)


@pytest.mark.parametrize("extra", range(1, MAX_SURGE + 1))
def test_nothing_is_left_where_the_node_goes_in_the_middle(extra: int) -> None:
    played = three()
    played.minimums["web"] = 2 + extra
    played.pools = (replace(ACT, surge=MAX_SURGE),)
    loop: Loop = process(played)
    surge_begins(played, loop)
    assert played.wanted["web"] == 3 + extra
    for name in played.cordoned:
        del played.nodes[name]
        played.pods = {uid: p for uid, p in played.pods.items() if p["spec"]["nodeName"] != name}
    run(played, 20, loop)
    assert (played.wanted["web"], loop.pool_states.state_of("all").surged) == (3, {})
