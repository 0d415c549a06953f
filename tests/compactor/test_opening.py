"""Load comes back while emptied nodes stand: they are open before the autoscaler's next scan."""

from dataclasses import replace

from tests.compactor.five import five
from tests.compactor.played import ACT, Played, process, run
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.compactor.loop import Loop

SCAN = 10
DELAY = 300


def emptied() -> tuple[Played, Loop]:
    """Two nodes are empty and cordoned; the autoscaler adds a node for pods that wait at its next scan."""
    played = five()
    played.scaler = Autoscaler(threshold=0, flags={"scale-down-delay-after-add": f"{DELAY}s"})
    played.buys_after = SCAN
    loop = process(played)
    run(played, 40, loop)
    assert len(played.told("emptied")) >= 2
    return played, loop


def load(played: Played, pods: int, cpu: str = "3500m") -> None:
    played.with_app("new")
    played.wanted["new"], played.successors["new"] = pods, cpu


def open_nodes(played: Played) -> int:
    return len(played.nodes) - len(played.cordoned)


def test_a_node_is_open_within_three_seconds_and_none_is_bought() -> None:
    played, loop = emptied()
    load(played, 1)
    played.tick()  # the scheduler says that it is unschedulable
    before = open_nodes(played)
    waited = 0.0
    while open_nodes(played) == before and waited < 10:
        waited += loop.run_round()
        played.tick()
    assert waited <= 3
    assert open_nodes(played) == before + 1
    run(played, 30, loop)
    assert not played.bought
    assert played.told("released") == ["drain-node-uncordoned-for-pods"]


def test_the_loop_looks_often_while_an_emptied_node_stands() -> None:
    played, loop = emptied()
    for _ in range(40):
        assert loop.run_round() <= 3
        played.tick()


def test_the_pool_begins_nothing_for_the_autoscalers_delay() -> None:
    played, loop = emptied()
    load(played, 1)
    run(played, 10, loop)
    played.wanted["new"] = 0
    at = next(record.at for record in played.records if record.code == "drain-node-uncordoned-for-pods")
    begun = len(played.told("started"))
    while played.now < at + DELAY - 2:
        run(played, 1, loop)
    assert len(played.told("started")) == begun
    run(played, 60, loop)
    assert len(played.told("started")) > begun


def test_that_it_was_opened_counts_as_no_failure() -> None:
    played, loop = emptied()
    load(played, 1)
    run(played, 10, loop)
    memory = loop.pool_states.state_of("all")
    assert (memory.failures, memory.strikes, memory.backoff, memory.closed) == ({}, 0, None, None)
    assert len(memory.opened) == 1


def test_where_none_may_be_opened_they_stay_cordoned() -> None:
    played, loop = emptied()
    played.pools = (replace(ACT, openings_per_hour=0),)
    load(played, 1)
    run(played, 10, loop)
    assert played.bought
    assert not played.told("released")
