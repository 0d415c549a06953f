"""What is remembered: in notes on nodes and in our own state; of other clocks, deleted, not to be read."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as change

from tests.cluster_of import NOW
from tests.compactor.five import begun, five
from tests.compactor.played import ACT, process, run
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import MAX_HISTORY_ENTRIES, PoolState
from trimtab.compactor.actuator import EvictionResponse, EvictionResult
from trimtab.compactor.pool_state_store import DELETED
from trimtab.compactor.reasons import REFUSED


def test_state_that_somebody_deleted_is_written_again() -> None:
    played = five()
    played.pools = (replace(ACT, dry_run=True),)
    loop = run(played, 10)
    played.stored.clear()
    run(played, 2, loop)
    assert "all" in played.stored


def test_a_pool_whose_state_was_deleted_while_nobody_led_is_closed_and_one_that_is_gone_is_not_told_of() -> None:
    played = five()
    lost = {pool: Unreadable(f"ConfigMap trimtab-state-{pool}", DELETED) for pool in ("all", "gone")}
    played.load_states = lambda: lost  # type: ignore[method-assign]
    loop = run(played, 20)
    assert played.told("unreadable") == ["state-unreadable"]
    assert (played.cordoned, loop.pool_states.state_of("all").closed is None) == ([], False)
    assert "gone" not in loop.pool_states.states


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
    played.denied = ("taint",)
    loop = process(played)
    loop.run_round()
    assert "all" in played.stored
    assert loop.problem


def test_a_note_that_is_not_seen_yet_is_not_taken_for_one_that_somebody_took_away() -> None:
    """A watch that is some rounds behind: else each drain is given back as soon as it is seen, and begins anew."""
    played, views = five(), list[ClusterView]()
    loop = process(played)

    def late() -> ClusterView:
        views.append(played.look())
        return replace(views[max(0, len(views) - 3)], now=played.now)

    loop.read_view = late
    run(played, 60, loop)
    assert "drain-annotation-missing" not in played.told("abandoned")
    assert played.told("emptied")
    assert played.short == []


def test_a_note_that_a_fast_clock_wrote_ends_in_time_all_the_same() -> None:
    played = five()
    loop, name = begun(played)
    note = played.look().annotations.ours[name]
    assert isinstance(note, DrainAnnotation)
    played.annotate(name, change(note, since=played.now + 7200))
    played.ends_after = 10**6
    run(played, 3, loop)
    assert played.told("corrected") == ["drain-annotation-clock-ahead"]
    run(played, 80, loop)
    assert played.told("released")


def test_state_that_a_fast_clock_wrote_holds_nothing_up() -> None:
    played = five()
    far = played.now + 7200
    ahead = PoolState(
        under={"n5": far}, failures={"n5": (1, far)}, evictions=(far,) * 2000, moved={"default/web-0": far}
    )
    played.stored["all"] = memories.encode_state(ahead)
    loop = process(played)
    assert loop.pool_states.state_of("all") == ahead.clamp_to_now(played.now)


def test_a_refused_eviction_stands_in_the_history_once() -> None:
    played = five()
    loop, _ = begun(played)
    played.evict_pod = lambda move: EvictionResponse(became=EvictionResult.REFUSED, message="no room")  # type: ignore[method-assign]
    for _ in range(40):
        loop.run_round()
        played.tick()
    refused = [record for record in loop.pool_states.state_of("all").ring if record.what == "refused"]
    assert len(refused) == len({record.pod for record in refused})
    assert len(played.told("refused")) > len(refused), "those who count hear of each"


def test_state_that_cannot_be_read_is_told_and_closes_its_pool_for_a_while() -> None:
    played = five()
    played.stored["all"] = '{"v": 99}'
    loop = run(played, 20)
    assert played.cordoned == []
    assert played.told("unreadable") == ["state-unreadable"]
    assert [record.what for record in loop.pool_states.state_of("all").ring][:1] == ["unreadable"]
    loop.reopened_at = lambda pool: played.now
    run(played, 20, loop)
    assert played.cordoned != []


def test_how_long_a_node_has_been_under_the_line_is_known_to_a_fresh_process() -> None:
    played = five()
    played.pools = (replace(ACT, under_for=100),)
    before = run(played, 20).pool_states.state_of("all").under
    assert set(before) == set(played.nodes)
    assert set(before.values()) == {NOW}
    fresh = process(played)
    for _ in range(40):
        assert fresh.pool_states.state_of("all").under == before
        fresh.run_round()
        played.tick()
    assert played.cordoned != [], "and its time goes on counting"


@pytest.mark.parametrize("times", [0, -3])
def test_a_number_in_the_state_that_cannot_be_is_put_aside_with_it(times: int) -> None:
    played = five()
    played.stored["all"] = memories.encode_state(PoolState(failures={"n1": (times, NOW)}))
    loop = run(played, 5)
    assert played.told("unreadable") == ["state-unreadable"]
    assert loop.error_guard.error_count == 0


def test_what_a_pool_that_is_gone_remembers_of_the_line_holds_for_no_other_pool() -> None:
    """Renamed, or with a mistake in it for a while: nobody looked."""
    played = five()
    played.stored["zz"] = memories.encode_state(PoolState(under=dict.fromkeys(played.nodes, NOW - 99999)))
    played.pools = (replace(ACT, under_for=600),)
    run(played, 30)
    assert played.cordoned == []


def test_pods_that_a_pool_that_is_gone_has_moved_have_their_rest_and_no_more() -> None:
    played = five()
    moved = {f"default/{pod['metadata']['name']}": NOW - 99999 for pod in played.pods.values()}
    played.stored["zz"] = memories.encode_state(PoolState(moved=moved))
    run(played, 30)
    assert played.cordoned != []


def test_however_long_a_reason_is_the_state_fits_into_a_configmap() -> None:
    played = five()
    loop = process(played)
    for number in range(MAX_HISTORY_ENTRIES):
        loop.pool_states.record_decision("refused", REFUSED('n"o' * 5000), pool="all", at=NOW + number)
    assert len(memories.encode_state(loop.pool_states.state_of("all"))) < 300_000
