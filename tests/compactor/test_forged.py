"""What others wrote where we read: notes on nodes, and our own state."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as change

from tests.compactor.five import begun, five
from tests.compactor.played import ACT, KEYS, Killed, Played, process, run
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor.loop import Loop

FOREIGN = SigningKeys(b"the key of somebody who forges it")


def forged(**more: object) -> DrainAnnotation:
    """A note that makes a compactor take a bank's replicas away, were it believed."""
    text = {"drain": "x0", "pool": "all", "surges": {"default/bank": 1}, "surged": {"default/bank": 5}, **more}
    return DrainAnnotation(since=five().now, **text)  # type: ignore[arg-type]


def bank() -> Played:
    played = five().with_app("bank", "n5", "n5", cpu="100m")
    played.pools = (replace(ACT, dry_run=True),)
    return played


@pytest.mark.parametrize("cordoned", [True, False])
def test_a_forged_note_scales_nothing_opens_nothing_and_is_told_of_once(cordoned: bool) -> None:
    played = bank()
    played.nodes["n1"]["spec"]["unschedulable"] = cordoned
    played.annotate("n1", forged(), FOREIGN)
    loop = run(played, 20)
    assert (played.wanted["bank"], played.noted) == (2, ["n1"])
    assert played.cordoned == (["n1"] if cordoned else []), "a person's cordon stays"
    assert played.told("not-authentic") == ["annotation-not-authentic"]
    assert not [write for write in played.writes if write.split()[0] in ("scale", "release", "evict")]
    assert loop.planner.last_plan is not None
    assert loop.planner.last_plan.refusals["n1"].code.name == "annotation-not-authentic"


@pytest.mark.parametrize("home", ["", "?", "a namespace of no cluster", "x" * 100_000])
def test_a_forged_note_that_names_no_namespace_is_told_of(home: str) -> None:
    """It is no other compactor's, so nobody else would ever tell of it."""
    played = bank()
    played.annotate("n1", '{"note":{"drain":"d","pool":"all","since":1,"home":"' + home + '"},"signature":"00"}')
    assert set(played.look().annotations.doubtful) == {"n1"}


@pytest.mark.parametrize("text", ["{", '{"drain":"d","pool":"all","since":1,"v":1}'])
def test_a_note_that_nobody_signed_is_left_alone(text: str) -> None:
    played = bank()
    played.annotate("n1", text)
    played.nodes["n1"]["spec"]["unschedulable"] = True
    run(played, 5)
    assert (played.cordoned, played.noted) == (["n1"], ["n1"])


def test_a_note_of_an_invented_pool_makes_no_state() -> None:
    played = bank()
    for keys, node in ((FOREIGN, "n1"), (KEYS, "n2")):
        played.annotate(node, forged(pool="invented"), keys)
    run(played, 10)
    assert set(played.stored) == {"all"}


def test_forged_notes_close_no_pool_and_hold_no_drain_up() -> None:
    played = five()
    for name in ("n3", "n4"):
        played.annotate(name, forged(drain=name), FOREIGN)
        played.nodes[name]["spec"]["unschedulable"] = True
    loop = run(played, 60)
    assert loop.pool_states.state_of("all").strikes == 0
    assert played.told("emptied"), "others go on"


def test_an_authentic_note_that_the_state_does_not_know_is_opened_and_does_nothing_else() -> None:
    """The state was lost; or somebody wrote an old annotation back."""
    played = bank()
    played.annotate("n1", forged(), KEYS)
    played.nodes["n1"]["spec"]["unschedulable"] = True
    loop = run(played, 10)
    assert (played.cordoned, played.noted, played.wanted["bank"]) == ([], [], 2)
    assert played.told("released") == ["drain-unknown"]
    assert (loop.pool_states.state_of("all").failures, loop.pool_states.state_of("all").strikes) == ({}, 0)


def test_after_a_rotation_a_drain_goes_on_and_its_note_is_signed_by_the_new_key() -> None:
    played = five()
    _, name = begun(played)
    played.keys = SigningKeys(b"n" * 32, KEYS.current)
    assert played.look().annotations.outdated == {name}
    loop = run(played, 2)
    assert played.look().annotations.outdated == frozenset()
    assert name in loop.drainer.active_drains(played.look()).emptying
    run(played, 60)
    assert played.told("emptied")
    assert not played.told("released")


def test_a_note_copied_from_another_node_is_left_alone() -> None:
    played = five()
    begun(played)
    [first, *_] = played.cordoned
    text = played.nodes[first]["metadata"]["annotations"]["trimtab.dev/cordoned-for"]
    [other] = [name for name in played.nodes if name not in played.cordoned][:1]
    played.annotate(other, text)
    assert set(played.look().annotations.doubtful) == {other}


def surging() -> tuple[Played, Loop]:
    """In the middle of a drain that gave a Deployment its second replica."""
    played = Played().with_nodes("n1", "n2").with_app("one", "n1", cpu="1").with_app("two", "n2", "n2", cpu="1")
    played.pools = (replace(ACT, single_replicas=True),)
    loop, _ = begun(played)
    while played.wanted["one"] == 1:
        loop.run_round()
        played.tick()
    return played, loop


def the_note(played: Played) -> tuple[str, DrainAnnotation]:
    [(name, note)] = played.look().annotations.ours.items()
    assert isinstance(note, DrainAnnotation)
    return name, note


def test_a_second_replica_is_taken_back_by_a_fresh_process_where_state_and_note_agree() -> None:
    played, _ = surging()
    run(played, 60)
    assert played.wanted["one"] == 1


def test_a_second_replica_of_which_the_state_says_nothing_stays() -> None:
    played, loop = surging()
    loop.pool_states.save_states()
    pool_state = memories.decode_state("all", {memories.STATE_KEY: played.stored["all"]})
    assert isinstance(pool_state, PoolState)
    played.stored["all"] = memories.encode_state(change(pool_state, surged={}))
    played.paused = "so that all is given back"
    run(played, 20)
    assert (played.wanted["one"], played.cordoned) == (2, [])


def test_a_second_replica_of_which_the_note_says_nothing_stays_and_is_told_of() -> None:
    played, loop = surging()
    loop.pool_states.save_states()
    name, note = the_note(played)
    played.annotate(name, change(note, surged={}))
    played.paused = "so that all is given back"
    run(played, 20)
    assert (played.wanted["one"], played.cordoned) == (2, [])


def test_a_state_alone_scales_nothing() -> None:
    played = bank()
    played.stored["all"] = memories.encode_state(PoolState(surged={"default/bank": "x0"}, drains={"n1": "x0"}))
    run(played, 10)
    assert played.wanted["bank"] == 2
    assert played.told("left-surged") == ["workload-left-surged"]
    assert played.told("abandoned") == ["drain-annotation-missing"]


def test_only_one_above_one_is_taken_back() -> None:
    played, loop = surging()
    played.wanted["one"] = 3
    played.paused = "so that all is given back"
    run(played, 20, loop)
    assert played.wanted["one"] == 3


def test_an_old_note_that_is_written_back_when_its_drain_is_over_scales_nothing() -> None:
    played, loop = surging()
    name, note = the_note(played)
    played.paused = "so that all is given back"
    run(played, 10, loop)
    assert (played.wanted["one"], played.noted) == (1, [])
    played.wanted["one"] = 2
    played.annotate(name, note)
    run(played, 10, loop)
    assert (played.wanted["one"], played.noted) == (2, [])


def test_the_state_knows_the_drain_before_the_node_is_cordoned() -> None:
    played = five()
    begun(played)
    first = next(number for number, write in enumerate(played.writes) if write.startswith("cordon"))
    assert played.writes[first - 1] == "save all"


def test_a_process_that_dies_between_state_and_cordon_leaves_a_drain_that_the_next_look_clears() -> None:
    played = five()
    loop = process(played)
    cordon = played.cordon_node

    def killed(*_: object) -> None:
        raise Killed

    played.cordon_node = killed  # type: ignore[assignment]
    loop.run_round()
    played.tick()
    with pytest.raises(Killed):
        loop.run_round()
    pool_state = memories.decode_state("all", {memories.STATE_KEY: played.stored["all"]})
    assert isinstance(pool_state, PoolState)
    assert pool_state.drains
    played.cordon_node = cordon  # type: ignore[method-assign]
    fresh = process(played)
    fresh.run_round()
    assert fresh.pool_states.state_of("all").drains == {}
    assert fresh.pool_states.state_of("all").failures == {}, "it is nobody's fault"
    run(played, 40, fresh)
    assert played.told("emptied")


def test_a_state_that_cannot_be_believed_of_a_pool_that_does_not_exist_is_told_and_not_kept() -> None:
    played = five()
    played.stored["invented"] = '{"v": 99}'
    loop = run(played, 5)
    assert played.told("unreadable") == ["state-unreadable"]
    assert "invented" not in loop.pool_states.states
    assert played.stored["invented"] == '{"v": 99}'
