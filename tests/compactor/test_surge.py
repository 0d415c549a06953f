"""The only replica: a second one comes first, and goes again."""

from dataclasses import replace

from tests.cluster_of import NOW
from tests.compactor.five import begun
from tests.compactor.played import ACT, Played, process, run
from trimtab.compactor.loop import Loop


def test_the_only_replica_stays_unless_the_pool_says_otherwise() -> None:
    played = Played().with_nodes("n1", "n2").with_app("one", "n1", cpu="1").with_app("two", "n2", "n2", cpu="1")
    run(played, 60)
    assert played.on("n1") != [] or "one-0" in played.on("n1")
    assert not [write for write in played.writes if "one" in write]


def test_the_only_replica_moves_after_a_second_one_is_ready() -> None:
    played = Played().with_nodes("n1", "n2").with_app("one", "n1", cpu="1").with_app("two", "n2", "n2", cpu="1")
    played.pools = (replace(ACT, single_replicas=True),)
    loop = process(played)
    missing = 0
    for _ in range(60):
        loop.run_round()
        played.tick()
        missing += not played.healthy("one")
    assert played.wanted["one"] == 1
    assert missing == 0, "there was always one"
    if "evict default/one-0" in played.writes:
        assert [w for w in played.writes if w.startswith("scale")] == ["scale default/one 2", "scale default/one 1"]


def test_a_surge_is_undone_when_the_node_goes_in_the_middle_of_it() -> None:
    played = Played().with_nodes("n1", "n2").with_app("one", "n1", cpu="1").with_app("two", "n2", "n2", cpu="1")
    played.pools = (replace(ACT, single_replicas=True),)
    loop = process(played)
    while played.wanted["one"] == 1 and played.now < NOW + 100:
        loop.run_round()
        played.tick()
    assert played.wanted["one"] == 2
    for name in played.cordoned:
        del played.nodes[name]
        played.pods = {uid: p for uid, p in played.pods.items() if p["spec"]["nodeName"] != name}
    run(played, 10, loop)
    assert played.wanted["one"] == 1
    assert loop.pool_states.state_of("all").surged == {}


def the_only_one() -> tuple[Played, Loop]:
    """The drain of a workload's only replica has begun, and the second one is not asked for yet."""
    played = Played().with_nodes("n1", "n2").with_app("one", "n1", cpu="1").with_app("two", "n2", "n2", cpu="1")
    played.pools = (replace(ACT, single_replicas=True),)
    return played, begun(played)[0]


def test_a_second_replica_that_somebody_else_asked_for_stays() -> None:
    played, loop = the_only_one()
    played.wanted["one"] = 2
    run(played, 30, loop)
    assert played.wanted["one"] == 2
    assert not [write for write in played.writes if write.startswith("scale")]


def test_who_takes_the_second_replica_back_is_not_argued_with() -> None:
    """A HorizontalPodAutoscaler, or Git."""
    played, loop = the_only_one()
    [name] = played.cordoned
    for _ in range(60):
        loop.run_round()
        played.wanted["one"] = 1
        played.tick()
    assert played.told("released") == ["drain-surge-reverted"]
    assert name not in played.cordoned
    assert len([write for write in played.writes if write.startswith("scale")]) < 35
