"""What ends a drain before its time, and whose nodes are left alone."""

from dataclasses import replace
from io import StringIO

import pytest

from tests.cluster_of import NOW
from tests.compactor.five import begun, five, meant
from tests.compactor.played import ACT, TERMS, Played, process, run
from trimtab.cluster.pool import KEEP_ANNOTATION
from trimtab.compaction.candidates import CORDONED_BY_US, NO_SCALE_DOWN
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor.loop import Loop
from trimtab.runtime import log


def test_a_pause_gives_back_what_is_not_empty_and_begins_nothing() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick()
    played.paused = "said so"
    run(played, 5, loop)
    assert played.cordoned == []
    assert "drain-stopped" in played.told("released")
    assert not [write for write in played.writes[-5:] if write.startswith("evict")]


@pytest.mark.parametrize("change", [{"enabled": False}, {"dry_run": True}])
def test_a_pool_that_may_no_longer_act_gets_its_node_back(change: dict[str, bool]) -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick()
    played.pools = (replace(ACT, **change),)  # type: ignore[arg-type]
    run(played, 3, loop)
    assert played.cordoned == []


def test_a_pool_that_is_gone_gets_its_node_back() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick()
    played.pools = ()
    run(played, 3, loop)
    assert played.cordoned == []


def test_a_node_somebody_opened_is_left_open_and_backed_off_from() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick()
    [name] = played.cordoned[:1]
    played.nodes[name]["spec"]["unschedulable"] = False
    run(played, 30, loop)
    assert name not in played.cordoned
    assert name not in played.noted
    assert "drain-uncordoned" in played.told("released")


def test_a_successor_that_finds_no_node_opens_the_node_again() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick(1)
    for name in set(played.nodes) - set(played.cordoned):
        played.nodes[name]["spec"]["unschedulable"] = True
        played._touch(played.nodes[name])
    run(played, 40, loop)
    ours = set(played.noted)
    assert ours == set()
    assert {"drain-successor-not-placed", "drain-pods-pending"} & set(played.told("released"))


def test_a_process_that_stops_gives_back_what_is_not_empty() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick()
    loop.shut_down()
    assert played.cordoned == []
    assert "drain-process-stopping" in played.told("released")


def test_not_another_write_goes_to_a_node_somebody_deletes() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.run_round()
        played.tick()
    [name] = played.cordoned[:1]
    played.nodes[name]["spec"]["taints"].append({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"})
    before = len(played.writes)
    run(played, 20, loop)
    assert not [write for write in played.writes[before:] if write.split()[1:2] == [name]]
    assert "drain-deleted-by-another" in played.told("abandoned")
    played.nodes[name]["spec"]["taints"].pop()
    run(played, 3, loop)
    assert name not in played.cordoned, "the other gave up: what was ours is undone"


def test_a_closed_pool_is_opened_by_a_word_or_by_time() -> None:
    played = five()
    loop = process(played)
    closed = PoolState(strikes=2, closed=NOW)
    texts: dict[str, int] = {}
    loop.reopened_at = texts.get
    loop.pool_states.set_state("all", closed)
    run(played, 10, loop)
    assert played.cordoned == []
    texts["all"] = played.now
    run(played, 10, loop)
    assert played.cordoned != []
    played = five()
    loop = process(played, replace(TERMS, closed=30))
    loop.pool_states.set_state("all", closed)
    run(played, 40, loop)
    assert loop.pool_states.state_of("all").closed is None
    assert played.cordoned != []


def test_another_compactors_drain_is_left_alone() -> None:
    played = five()
    loop = process(played)
    note = DrainAnnotation(drain="d", pool="all", since=NOW, home="elsewhere")
    played.annotate("n1", note)
    played.nodes["n1"]["spec"]["unschedulable"] = True
    played.paused = "so that nothing else happens"
    run(played, 3, loop)
    assert (played.cordoned, played.noted) == (["n1"], ["n1"])


def test_a_process_that_stops_opens_no_node_that_somebody_deletes() -> None:
    played = five()
    loop, name = begun(played)
    played.nodes[name]["spec"]["taints"].append({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"})
    loop.shut_down()
    assert name in played.cordoned


def test_a_taint_of_ours_with_the_earlier_key_is_removed_when_the_compactor_starts() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    earlier = {"key": "trimtab.dev/leaving", "effect": "PreferNoSchedule"}
    played.nodes["n1"]["spec"]["taints"].append(earlier)
    run(played, 3)
    assert earlier not in played.nodes["n1"]["spec"]["taints"]


def test_another_compactors_taint_is_left_alone() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    theirs = {"key": "trimtab.dev/drain-candidate", "value": "elsewhere", "effect": "PreferNoSchedule"}
    played.nodes["n1"]["spec"]["taints"].append(theirs)
    run(played, 20)
    assert theirs in played.nodes["n1"]["spec"]["taints"]


def test_a_node_that_another_namespaces_compactor_left_is_told_of_and_takes_no_other_nodes_turn() -> None:
    played = five()
    played.pools = (replace(ACT, drains=1),)
    note = DrainAnnotation(drain="d", pool="all", since=NOW, home="elsewhere")
    played.annotate("n5", note)
    played.nodes["n5"]["spec"]["unschedulable"] = True
    stream = StringIO()
    loop = process(played)
    loop.log = log.build_logger("warning", "json", stream)
    run(played, 20, loop)
    assert loop.planner.last_plan is not None
    assert loop.planner.last_plan.refusals["n5"].code.name == "cordoned-by-another"
    assert played.noted != ["n5"], "others are emptied"
    assert stream.getvalue().count("node.of-another-compactor") == 1


THEIRS = {"key": "theirs", "value": "", "effect": "PreferNoSchedule"}


def meddled(played: Played, loop: Loop) -> None:
    """Somebody writes on every node between our look and our write, in the first round that writes."""
    look = loop.read_view

    def late() -> ClusterView:
        view = look()
        assert isinstance(view, ClusterView)
        for item in played.nodes.values():
            if THEIRS not in item["spec"]["taints"]:
                item["spec"]["taints"].append(dict(THEIRS))
                item["metadata"]["labels"]["theirs"] = "yes"
                played._touch(item)
        loop.read_view = look
        return view

    loop.read_view = late


def test_a_taint_that_somebody_wrote_between_our_look_and_our_write_stays() -> None:
    """Ours goes beside it: a list of taints is written whole, on the version that was looked at."""
    played = five()
    loop = process(played)
    meddled(played, loop)
    run(played, 3, loop)
    tainted = [
        item["spec"]["taints"] for item in played.nodes.values() if "drain-candidate" in str(item["spec"]["taints"])
    ]
    assert tainted
    assert all(THEIRS in item["spec"]["taints"] for item in played.nodes.values())


def test_a_node_that_somebody_wrote_on_between_our_look_and_our_write_is_looked_at_again() -> None:
    played, loop = meant()
    meddled(played, loop)
    loop.run_round()
    assert played.cordoned == []
    assert [write for write in played.writes if write.startswith("cordon")], "we tried"
    run(played, 20, loop)
    assert played.cordoned != []
    assert all(item["metadata"]["labels"]["theirs"] == "yes" for item in played.nodes.values())


def slow() -> Played:
    """A node of four pods that go one by one, slowly."""
    played = Played(ready_after=20, ends_after=20).with_nodes("n1").with_nodes("n2", cpu="32")
    return played.with_app("web", *["n1"] * 4, *["n2"] * 4, allowed=1).with_app("big", *["n2"] * 10)


@pytest.mark.parametrize("key", [KEEP_ANNOTATION, NO_SCALE_DOWN])
def test_a_node_that_shall_stay_by_what_somebody_writes_in_mid_drain_is_given_back(key: str) -> None:
    played = slow()
    loop, name = begun(played)
    played.nodes[name]["metadata"]["annotations"][key] = "true"
    run(played, 3, loop)
    assert played.told("released") == ["drain-node-kept"]
    assert loop.pool_states.state_of("all").failures == {}


def test_an_empty_node_that_shall_stay_is_given_back_at_once() -> None:
    played = five()
    loop = process(played)
    while not played.told("emptied"):
        loop.run_round()
        played.tick()
    [name] = [record.node for record in played.records if record.what == "emptied"][:1]
    played.nodes[name]["metadata"]["annotations"][KEEP_ANNOTATION] = "true"
    run(played, 2, loop)
    assert name not in played.cordoned


def test_a_drain_that_nobody_carried_on_for_its_time_closes_no_pool() -> None:
    """Nobody led for an hour, or by a clock that was an hour behind ours."""
    played = slow()
    begun(played)
    played.now += 3600
    loop = run(played, 2)
    assert played.told("released") == ["drain-too-long"]
    assert (loop.pool_states.state_of("all").strikes, loop.pool_states.state_of("all").failures) == (0, {})


def test_a_cordon_whose_note_somebody_took_off_is_theirs() -> None:
    played = slow()
    loop, name = begun(played)
    run(played, 1, loop)
    played.nodes[name]["metadata"]["annotations"].pop(CORDONED_BY_US)
    played._touch(played.nodes[name])
    run(played, 20, loop)
    loop.shut_down()
    assert played.cordoned == [name]
    assert played.told("abandoned") == ["drain-annotation-missing"]
