"""What removed nodes saved: by day and namespace, never more and never less than was saved in all."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.compaction.drain.pool_state import PoolState, decode_state, encode_state
from trimtab.compaction.drain.savings import (
    MAX_DAYS,
    MAX_NAMESPACES,
    MONEY,
    OTHER_NAMESPACES,
    DaySavings,
    add_saving,
    divide_by_pods,
    format_savings,
)

NOW = 1_800_000_000
DAY = 86_400


@given(st.integers(0, 10**9), st.dictionaries(st.text("abc", min_size=1), st.integers(0, 500)))
def test_the_shares_of_namespaces_add_up_to_the_amount(amount: int, pods: dict[str, int]) -> None:
    shares = divide_by_pods(amount, pods)
    assert sum(shares.values()) == amount
    assert all(share >= 0 for share in shares.values())


PODS = st.dictionaries(st.text("abcdefghijkl", min_size=1, max_size=2), st.integers(1, 9), max_size=40)
REMOVALS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 10**6), PODS), max_size=40)


@given(REMOVALS)
def test_days_hold_what_was_saved_and_no_more_names_than_fit(removals: list[tuple[int, int, dict[str, int]]]) -> None:
    days: dict[str, DaySavings] = {}
    for day, amount, pods in sorted(removals, key=lambda removal: removal[0]):
        days = add_saving(days, NOW + day * DAY, (MONEY, amount), pods)
    assert len(days) <= MAX_DAYS
    for result in days.values():
        assert sum(result.namespaces.get(MONEY, {}).values()) == result.worth.get(MONEY, 0)
        assert len(result.namespaces.get(MONEY, {})) <= MAX_NAMESPACES + 1
    if len({day for day, _, _ in removals}) <= MAX_DAYS:
        assert sum(each_result.nodes for each_result in days.values()) == len(removals)


def test_a_node_without_pods_saves_for_no_namespace_by_name() -> None:
    assert divide_by_pods(7, {}) == {OTHER_NAMESPACES: 7}


def test_a_removed_node_is_divided_among_the_namespaces_whose_pods_moved() -> None:
    state = PoolState().with_drain("n1", "d", (MONEY, 90_000), {"shop": 2, "data": 1}).with_success("n1", NOW)
    [day] = state.saved_days.values()
    assert (day.nodes, day.at, day.namespaces) == (1, NOW, {MONEY: {"shop": 60_000, "data": 30_000}})
    ended = state.with_ended_drain("n1", "d", NOW)
    assert (ended.promised, ended.promised_pods) == ({}, {})


def test_the_mean_time_of_a_day_is_that_of_its_removals() -> None:
    days = add_saving(add_saving({}, NOW, ("nodes", 1), {}), NOW + 3600, ("nodes", 1), {})
    [day] = days.values()
    assert (day.nodes, day.at) == (2, NOW + 1800)


def test_a_quarter_of_full_days_fits_into_a_config_map_and_is_read_again() -> None:
    state, names = PoolState(), {f"namespace-with-a-long-name-{n:04}": 1 for n in range(100)}
    for day in range(200):
        state = state.with_drain("n", "d", (MONEY, 10**8), names).with_success("n", NOW + day * DAY)
    text = encode_state(state)
    assert len(text) < 200_000
    assert decode_state("trimtab-state-x", {"state.json": text}) == state


def test_a_state_that_was_stored_before_days_were_counted_is_read() -> None:
    read = decode_state("trimtab-state-x", {"state.json": '{"saved":3,"worth":{"nodes":3},"v":1}'})
    assert isinstance(read, PoolState)
    assert (read.saved, read.saved_days) == (3, {})


def test_savings_read_as_people_say_them() -> None:
    assert format_savings(0, {}) == "0 nodes"
    assert format_savings(1, {MONEY: 192_000}) == "1 node, $140 a month"
    assert format_savings(3, {"millicores": 12_000}) == "3 nodes, 12 cores"
