"""A plan carried out on a played cluster, step by step, with every budget kept."""

from dataclasses import replace
from io import StringIO

import pytest
from msgspec.structs import replace as change
from prometheus_client import CollectorRegistry

from tests.cluster_of import NOW
from tests.compactor.played import ACT, TERMS, Played, process, run
from trimtab.cluster.autoscaler import Autoscaler
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain import memory as memories
from trimtab.compaction.drain.memory import Memory
from trimtab.compaction.drain.note import Note, read, write
from trimtab.compaction.drain.view import View
from trimtab.compactor.doors import Answer, Became
from trimtab.compactor.loop import Loop
from trimtab.compactor.metrics import Metrics
from trimtab.compactor.settings import Settings
from trimtab.runtime import log
from trimtab.runtime.metrics import render


def five() -> Played:
    """Five nodes of four cores, ten pods of three apps: two nodes would do."""
    played = Played().with_nodes("n1", "n2", "n3", "n4", "n5")
    played.with_app("web", "n1", "n2", "n3", "n4", allowed=1)
    played.with_app("api", "n2", "n3", "n5", allowed=1)
    return played.with_app("job", "n1", "n4", "n5")


def test_a_pool_is_emptied_and_no_budget_is_broken() -> None:
    played = five()
    played.takes_after = 20
    run(played, 120, terms=replace(TERMS, rest=30))
    assert len(played.nodes) == 2
    assert (played.short, played.refused, played.cordoned) == ([], 0, [])
    assert played.told("taken") == ["drain-node-taken"] * 3


def test_what_was_saved_is_counted_in_its_unit() -> None:
    played = five()
    played.takes_after = 20
    loop = run(played, 120, terms=replace(TERMS, rest=30))
    memory = loop.books.of("all")
    assert (memory.saved, memory.worth, memory.promised) == (3, {"millicores": 12000}, {})


def test_a_node_that_is_taken_while_successors_still_start_counts_as_saved() -> None:
    played = five()
    played.ready_after, played.pools = 60, (replace(ACT, drains=1),)
    loop = process(played)
    while not played.cordoned or any(played.on(name) for name in played.cordoned):
        loop.round()
        played.tick()
    [name] = played.cordoned
    loop.round()
    del played.nodes[name]
    run(played, 5, loop)
    assert played.told("taken") == ["drain-node-taken"]


def test_an_empty_node_is_left_cordoned_for_the_autoscaler() -> None:
    played = five()
    run(played, 60)
    assert len(played.cordoned) == 3
    assert all(played.on(name) == [] for name in played.cordoned)
    assert played.noted == played.cordoned


def test_an_empty_node_that_nobody_takes_is_given_back_with_the_reason() -> None:
    played = five()
    played.scaler = Autoscaler(scale_down=True, updated=10**12, threshold=0)
    run(played, 40, terms=replace(TERMS, taken=30))
    assert "drain-not-taken" in played.told("released")


def test_a_rehearsal_writes_nothing_but_its_own_state() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    run(played, 60)
    assert set(played.writes) == {"save all"}
    assert played.told("begun")
    assert all(record.rehearsed for record in played.records)
    assert len(played.told("begun")) <= 3, "what is only written down is written down once"


def test_nothing_changes_at_rest() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    loop = run(played, 30)
    before = len(played.writes)
    run(played, 30, loop)
    assert len(played.writes) == before


def test_a_pause_gives_back_what_is_not_empty_and_begins_nothing() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.round()
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
        loop.round()
        played.tick()
    played.pools = (replace(ACT, **change),)  # type: ignore[arg-type]
    run(played, 3, loop)
    assert played.cordoned == []


def test_a_pool_that_is_gone_gets_its_node_back() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.round()
        played.tick()
    played.pools = ()
    run(played, 3, loop)
    assert played.cordoned == []


def test_a_node_somebody_opened_is_left_open_and_backed_off_from() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.round()
        played.tick()
    [name] = played.cordoned[:1]
    played.nodes[name]["spec"]["unschedulable"] = False
    run(played, 30, loop)
    assert name not in played.cordoned
    assert name not in played.noted
    assert "drain-uncordoned" in played.told("released")


def test_a_pod_that_never_ends_costs_the_drain_and_two_of_them_close_the_pool() -> None:
    played = five()
    played.ends_after = 10**6
    played.pools = (replace(ACT, drains=1),)
    run(played, 300)
    assert played.told("released")[:2] == ["drain-pod-stuck", "drain-pod-stuck"]
    assert played.told("closed") == ["pool-closed"]
    assert played.cordoned == []


def test_a_successor_that_finds_no_node_opens_the_node_again() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.round()
        played.tick(1)
    for name in set(played.nodes) - set(played.cordoned):
        played.nodes[name]["spec"]["unschedulable"] = True
        played._touch(played.nodes[name])
    run(played, 40, loop)
    ours = set(played.noted)
    assert ours == set()
    assert {"drain-successor-not-placed", "drain-pods-pending"} & set(played.told("released"))


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
        loop.round()
        played.tick()
        missing += not played.healthy("one")
    assert played.wanted["one"] == 1
    assert missing == 0, "there was always one"
    if "evict default/one-0" in played.writes:
        assert [w for w in played.writes if w.startswith("scale")] == ["scale default/one 2", "scale default/one 1"]


def test_successors_are_kept_off_the_nodes_that_go_next() -> None:
    played = five()
    loop = run(played, 8)
    assert any(write.startswith("taint") for write in played.writes)
    loop.end()
    assert not [item for item in played.nodes.values() if item["spec"]["taints"]]


def test_a_process_that_stops_gives_back_what_is_not_empty() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.round()
        played.tick()
    loop.end()
    assert played.cordoned == []
    assert "drain-process-stops" in played.told("released")


def test_state_that_somebody_deleted_is_written_again() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    loop = run(played, 10)
    played.stored.clear()
    run(played, 2, loop)
    assert "all" in played.stored


def test_not_another_write_goes_to_a_node_somebody_deletes() -> None:
    played = five()
    loop = process(played)
    while not played.cordoned:
        loop.round()
        played.tick()
    [name] = played.cordoned[:1]
    played.nodes[name]["spec"]["taints"].append({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"})
    before = len(played.writes)
    run(played, 20, loop)
    assert not [write for write in played.writes[before:] if write.split()[1:2] == [name]]
    assert "drain-deleted-by-another" in played.told("dropped")
    played.nodes[name]["spec"]["taints"].pop()
    run(played, 3, loop)
    assert name not in played.cordoned, "the other gave up: what was ours is undone"


def test_a_closed_pool_is_opened_by_a_word_or_by_time() -> None:
    played = five()
    loop = process(played)
    closed = Memory(strikes=2, closed=NOW)
    said: dict[str, int] = {}
    loop.reopened = said.get
    loop.books.put("all", closed)
    run(played, 10, loop)
    assert played.cordoned == []
    said["all"] = played.now
    run(played, 10, loop)
    assert played.cordoned != []
    played = five()
    loop = process(played, replace(TERMS, closed=30))
    loop.books.put("all", closed)
    run(played, 40, loop)
    assert loop.books.of("all").closed is None
    assert played.cordoned != []


def test_what_the_loop_did_is_told_in_numbers() -> None:
    played = five()
    played.takes_after = 20
    loop = process(played)
    numbers = Metrics(CollectorRegistry(), lambda: True, lambda: 3.0)
    loop.books.sinks = (*loop.books.sinks, numbers.count)
    for _ in range(60):
        loop.round()
        numbers.read(loop, 2.0)
        played.tick()
    page = render(numbers.registry).decode()
    assert 'trimtab_compactor_drains_total{how="taken",pool="all",reason="drain-node-taken"} 3.0' in page
    assert 'trimtab_compactor_nodes{pool="all",state="staying"} 2.0' in page
    assert 'trimtab_compactor_evictions_total{pool="all",result="evicted"}' in page
    assert "trimtab_compactor_data_age_seconds 3.0" in page
    assert "trimtab_compactor_autoscaler_healthy NaN" in page


def test_a_note_that_makes_no_sense_is_taken_off_and_the_node_opened() -> None:
    played = five()
    loop = process(played)
    played.nodes["n1"]["metadata"]["annotations"][CORDONED_BY_US] = "{"
    played.nodes["n1"]["spec"]["unschedulable"] = True
    played.paused = "so that nothing else happens"
    run(played, 3, loop)
    assert (played.cordoned, played.noted) == ([], [])
    assert set(played.stored) == {"all"}


def test_another_compactors_drain_is_left_alone() -> None:
    played = five()
    loop = process(played)
    note = Note(drain="d", pool="all", since=NOW, home="elsewhere")
    played.nodes["n1"]["metadata"]["annotations"][CORDONED_BY_US] = write(note)
    played.nodes["n1"]["spec"]["unschedulable"] = True
    played.paused = "so that nothing else happens"
    run(played, 3, loop)
    assert (played.cordoned, played.noted) == (["n1"], ["n1"])


def test_a_surge_is_undone_when_the_node_goes_in_the_middle_of_it() -> None:
    played = Played().with_nodes("n1", "n2").with_app("one", "n1", cpu="1").with_app("two", "n2", "n2", cpu="1")
    played.pools = (replace(ACT, single_replicas=True),)
    loop = process(played)
    while played.wanted["one"] == 1 and played.now < NOW + 100:
        loop.round()
        played.tick()
    assert played.wanted["one"] == 2
    for name in played.cordoned:
        del played.nodes[name]
        played.pods = {uid: p for uid, p in played.pods.items() if p["spec"]["nodeName"] != name}
    run(played, 10, loop)
    assert played.wanted["one"] == 1
    assert loop.books.of("all").surged == {}


def begun(played: Played) -> tuple[Loop, str]:
    """A process in the middle of a drain, and the drain's node."""
    loop = process(played)
    while not played.cordoned:
        loop.round()
        played.tick()
    return loop, played.cordoned[0]


def test_books_that_cannot_be_kept_leave_no_node_closed_and_begin_nothing() -> None:
    played = five()
    loop, _ = begun(played)
    played.full = True
    played.paused = "so that what was begun is given back"
    run(played, 10, loop)
    assert (played.cordoned, played.noted) == ([], [])
    played.paused = ""
    run(played, 20, loop)
    assert played.cordoned == []


def test_a_taint_that_is_refused_keeps_no_books_from_being_kept() -> None:
    played = five()
    played.untaintable = True
    loop = process(played)
    loop.round()
    assert "all" in played.stored
    assert loop.trouble


def test_a_process_that_stops_opens_no_node_that_somebody_deletes() -> None:
    played = five()
    loop, name = begun(played)
    played.nodes[name]["spec"]["taints"].append({"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"})
    loop.end()
    assert name in played.cordoned


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
        loop.round()
        played.wanted["one"] = 1
        played.tick()
    assert played.told("released") == ["drain-pod-forbidden"]
    assert name not in played.cordoned
    assert len([write for write in played.writes if write.startswith("scale")]) < 35


def test_another_compactors_taint_is_left_alone() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    theirs = {"key": "trimtab.dev/leaving", "value": "elsewhere", "effect": "PreferNoSchedule"}
    played.nodes["n1"]["spec"]["taints"].append(theirs)
    run(played, 20)
    assert theirs in played.nodes["n1"]["spec"]["taints"]


def test_a_note_that_is_not_seen_yet_is_not_taken_for_one_that_somebody_took_away() -> None:
    """A watch that is some rounds behind: else each drain is given back as soon as it is seen, and begins anew."""
    played, views = five(), list[View]()
    loop = process(played)

    def late() -> View:
        views.append(played.look())
        return replace(views[max(0, len(views) - 3)], at=played.now)

    loop.look = late
    run(played, 60, loop)
    assert "drain-uncordoned" not in played.told("dropped")
    assert played.told("emptied")
    assert played.short == []


def meant() -> tuple[Played, Loop]:
    """A plan was made, and waits for the fresh look before it begins."""
    played = five()
    loop = process(played)
    loop.round()
    assert loop.planning.intent is not None
    assert loop.planning.intent.steps
    played.tick()
    return played, loop


def test_a_pool_that_was_closed_while_its_plan_settled_begins_nothing() -> None:
    played, loop = meant()
    loop.books.put("all", change(loop.books.of("all"), closed=played.now, strikes=2))
    loop.round()
    assert played.cordoned == []


def test_a_pool_whose_pace_was_lowered_while_its_plan_settled_begins_no_more_than_that() -> None:
    played, loop = meant()
    played.pools = (replace(ACT, drains=1),)
    run(played, 2, loop)
    assert len(played.cordoned) == 1


def test_a_note_that_a_fast_clock_wrote_ends_in_time_all_the_same() -> None:
    played = five()
    loop, name = begun(played)
    annotations = played.nodes[name]["metadata"]["annotations"]
    note = read(loop.look().node(name))  # type: ignore[union-attr, arg-type]
    assert isinstance(note, Note)
    annotations[CORDONED_BY_US] = write(change(note, since=played.now + 7200))
    played.ends_after = 10**6
    run(played, 3, loop)
    assert played.told("corrected") == ["drain-note-ahead"]
    run(played, 80, loop)
    assert played.told("released")


def test_state_that_a_fast_clock_wrote_holds_nothing_up() -> None:
    played = five()
    far = played.now + 7200
    ahead = Memory(under={"n5": far}, failures={"n5": (1, far)}, evictions=(far,) * 2000, moved={"default/web-0": far})
    played.stored["all"] = memories.write(ahead)
    loop = process(played)
    assert loop.books.of("all") == ahead.caught_up(played.now)


def test_a_refused_eviction_stands_in_the_history_once() -> None:
    played = five()
    loop, _ = begun(played)
    played.evict = lambda move: Answer(became=Became.REFUSED, message="no room")  # type: ignore[method-assign]
    for _ in range(40):
        loop.round()
        played.tick()
    refused = [record for record in loop.books.of("all").ring if record.what == "refused"]
    assert len(refused) == len({record.pod for record in refused})
    assert len(played.told("refused")) > len(refused), "those who count hear of each"


def test_an_eviction_is_waited_for_longer_than_the_oldest_view_that_is_acted_on() -> None:
    drains = process(five()).drains
    seen = five().look()
    uid = seen.inventory.pods[0].uid
    drains.flight = {uid: 0.0}
    assert Settings().stale < drains.blind
    assert drains.settle_flight(seen, Settings().stale + 1) == {uid}
    assert drains.settle_flight(seen, drains.blind + 1) == frozenset()


def test_state_that_cannot_be_read_is_told_and_closes_its_pool_for_a_while() -> None:
    played = five()
    played.stored["all"] = '{"v": 99}'
    loop = run(played, 20)
    assert played.cordoned == []
    assert played.told("unread") == ["state-unreadable"]
    assert [record.what for record in loop.books.of("all").ring][:1] == ["unread"]
    loop.reopened = lambda pool: played.now
    run(played, 20, loop)
    assert played.cordoned != []


def test_a_node_that_another_namespaces_compactor_left_is_told_of_and_takes_no_other_nodes_turn() -> None:
    played = five()
    played.pools = (replace(ACT, drains=1),)
    note = Note(drain="d", pool="all", since=NOW, home="elsewhere")
    played.nodes["n5"]["metadata"]["annotations"][CORDONED_BY_US] = write(note)
    played.nodes["n5"]["spec"]["unschedulable"] = True
    told = StringIO()
    loop = process(played)
    loop.log = log.build("warning", "json", told)
    run(played, 20, loop)
    assert loop.planning.plan is not None
    assert loop.planning.plan.refusals["n5"].code.name == "cordoned-by-another"
    assert played.noted != ["n5"], "others are emptied"
    assert told.getvalue().count("node.of-another-compactor") == 1


def test_how_long_a_node_has_been_under_the_line_is_known_to_a_fresh_process() -> None:
    played = five()
    played.pools = (replace(ACT, under_for=100),)
    before = run(played, 20).books.of("all").under
    assert set(before) == set(played.nodes)
    assert set(before.values()) == {NOW}
    fresh = process(played)
    for _ in range(40):
        assert fresh.books.of("all").under == before
        fresh.round()
        played.tick()
    assert played.cordoned != [], "and its time goes on counting"


THEIRS = {"key": "theirs", "value": "", "effect": "PreferNoSchedule"}


def meddled(played: Played, loop: Loop) -> None:
    """Somebody writes on every node between our look and our write, in the first round that writes."""
    look = loop.look

    def late() -> View:
        seen = look()
        assert isinstance(seen, View)
        for item in played.nodes.values():
            if THEIRS not in item["spec"]["taints"]:
                item["spec"]["taints"].append(dict(THEIRS))
                item["metadata"]["labels"]["theirs"] = "yes"
                played._touch(item)
        loop.look = look
        return seen

    loop.look = late


def test_a_taint_that_somebody_wrote_between_our_look_and_our_write_stays() -> None:
    """Ours goes beside it: a list of taints is written whole, on the version that was looked at."""
    played = five()
    loop = process(played)
    meddled(played, loop)
    run(played, 3, loop)
    tainted = [item["spec"]["taints"] for item in played.nodes.values() if "leaving" in str(item["spec"]["taints"])]
    assert tainted
    assert all(THEIRS in item["spec"]["taints"] for item in played.nodes.values())


def test_a_node_that_somebody_wrote_on_between_our_look_and_our_write_is_looked_at_again() -> None:
    played, loop = meant()
    meddled(played, loop)
    loop.round()
    assert played.cordoned == []
    assert [write for write in played.writes if write.startswith("cordon")], "we tried"
    run(played, 20, loop)
    assert played.cordoned != []
    assert all(item["metadata"]["labels"]["theirs"] == "yes" for item in played.nodes.values())
