"""Budgets as one ledger, and the bound by volume."""

from trimtab.compaction.search.drain_order import arrange_waves, choose_first_node, eviction_turns
from trimtab.compaction.search.upper_bound import Item, upper_bound


def test_a_wave_spends_a_budget_once_and_later_waves_begin_full() -> None:
    assert arrange_waves([1, 2, 3], {1: {0: 1}, 2: {0: 1}, 3: {}}, [1]) == [[1, 3], [2]]


def test_a_node_that_needs_more_than_its_budget_has_it_alone() -> None:
    assert arrange_waves([1, 2], {1: {0: 5}, 2: {0: 1}}, [2]) == [[1], [2]]


def test_turns_take_no_more_of_a_budget_than_it_allows() -> None:
    assert eviction_turns([7, 8, 9, 10], {7: 0, 8: 0, 9: 0}, [2]) == ([7, 8, 10, 9], [0, 0, 0, 1])


def test_another_leader_is_chosen_when_the_first_keeps_better_ones_out() -> None:
    needs = {0: {0: 1, 1: 1}, 1: {0: 1}, 2: {1: 1}}
    value = {0: (1, 10), 1: (1, 9), 2: (1, 9)} | dict.fromkeys(range(3, 12), (2, 1))
    order = choose_first_node(list(range(12)), needs | {n: {} for n in range(3, 12)}, [1, 1], value)
    assert order[0] == 1


def test_the_bound_takes_a_part_of_the_last_node() -> None:
    items = [Item(node=n, saves=10, takes=(10,), free=(3,)) for n in range(5)]
    bound = upper_bound([items], candidates={0, 1, 2, 3}, pinned={4})
    assert (bound.saves, bound.nodes, bound.pinned) == (15, 1, 1)
