"""What a pool remembers over a restart."""

import pytest

from tests.cluster_of import NOW
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.backoff import PoolBackoff
from trimtab.compaction.drain.merged_states import merge_observations
from trimtab.compaction.drain.pool_state import (
    MAX_HISTORY_ENTRIES,
    MAX_STATE_LENGTH,
    STATE_KEY,
    HistoryEntry,
    PoolState,
    decode_state,
    encode_state,
)
from trimtab.compaction.drain.timeouts import DrainTimeouts


def test_what_is_written_is_read_and_nonsense_has_a_name() -> None:
    memory = PoolState(under={"n1": NOW}, failures={"n1": (2, NOW)}, evictions=(NOW,), moved={"a/b": NOW}, closed=NOW)
    assert decode_state("state", {STATE_KEY: encode_state(memory)}) == memory
    assert decode_state("state", {}) == PoolState()
    for text in ("{", '{"v":2}', '{"under":3}'):
        assert isinstance(decode_state("state", {STATE_KEY: text}), Unreadable)


def test_what_is_too_old_is_forgotten() -> None:
    old = PoolState(under={"gone": 1}, failures={"n1": (1, NOW - 10**6)}, evictions=(NOW - 3601, NOW), moved={"a/b": 1})
    rest = old.without_old_entries(NOW, DrainTimeouts(), ["n1"])
    assert (rest.under, rest.failures, rest.evictions, rest.moved) == ({}, {}, (NOW,), {})


def test_that_a_drain_is_over_is_known_while_its_note_stands() -> None:
    old = PoolState(ended={"noted": NOW - 90_000, "gone": NOW - 90_000})
    assert set(old.without_old_entries(NOW, DrainTimeouts(), [], ["noted"]).ended) == {"noted"}


def test_what_a_clock_wrote_that_was_ahead_of_ours_counts_from_now() -> None:
    far = NOW + 7200
    ahead = PoolState(
        under={"n1": far},
        failures={"n1": (3, far)},
        evictions=(far,),
        moved={"a/b": far},
        ended={"d": far},
        closed=far,
        opened=(far,),
        quiet_until=far,
        deleting={"n1": far},
        left={"n1": far},
        judged={"d": far},
        backoff=PoolBackoff(2, far),
    )
    now = PoolState(
        under={"n1": NOW},
        failures={"n1": (3, NOW)},
        evictions=(NOW,),
        moved={"a/b": NOW},
        ended={"d": NOW},
        closed=NOW,
        opened=(NOW,),
        quiet_until=NOW + 3600,
        deleting={"n1": NOW},
        left={"n1": NOW},
        judged={"d": NOW},
        backoff=PoolBackoff(2, NOW),
    )
    assert ahead.clamp_to_now(NOW) == now
    assert ahead.without_old_entries(NOW, DrainTimeouts(), ["n1"]) == now
    assert now.clamp_to_now(NOW) == now


def test_a_successor_that_has_had_its_rest_is_moved_like_any_other() -> None:
    moved = PoolState().with_successors({"a/new": NOW - 10, "a/old": NOW - 3600}, NOW, 3600).moved
    assert moved == {"a/new": NOW - 10}


def test_the_ring_keeps_the_last_decisions() -> None:
    memory = PoolState()
    for number in range(MAX_HISTORY_ENTRIES + 5):
        memory = memory.with_history(HistoryEntry(at=number, pool="p", what="planned", code="c", why="w"))
    assert [record.at for record in memory.ring][:1] == [5]
    assert len(memory.ring) == MAX_HISTORY_ENTRIES


def test_a_node_that_was_taken_wipes_the_strikes() -> None:
    struck = PoolState().with_failure("n1", NOW, strike=True).with_failure("n2", NOW, strike=False)
    assert (struck.strikes, struck.with_success("n3", NOW).strikes) == (1, 0)


@pytest.mark.parametrize(("times", "wait"), [(1, 300), (2, 600), (9, 7200)])
def test_the_back_off_of_all_pools_doubles(times: int, wait: int) -> None:
    observations = merge_observations(
        {"a": PoolState(failures={"n1": (times, NOW)}), "b": PoolState(evictions=(NOW,))}, {"n9": "a"}
    )
    assert observations.failures["n1"].retry_after == NOW + wait
    assert (observations.recent_evictions(NOW), observations.draining) == (1, {"n9": "a"})


def test_of_a_memory_that_is_too_long_the_older_decisions_go() -> None:
    memory = PoolState(under={f"node-{number}": NOW for number in range(10_000)})
    for number in range(MAX_HISTORY_ENTRIES):
        memory = memory.with_history(HistoryEntry(at=number, pool="p", what="planned", code="c", why="w" * 6000))
    pool_state = decode_state("m", {STATE_KEY: encode_state(memory)})
    assert isinstance(pool_state, PoolState)
    assert len(encode_state(pool_state)) <= MAX_STATE_LENGTH
    assert pool_state.under == memory.under
    assert pool_state.ring == memory.ring[-len(pool_state.ring) :]
