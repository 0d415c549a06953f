"""The sums: which sets fit, and which of them together save most."""

import random
from itertools import combinations

import pytest

from trimtab.compaction.replace.node_sets import Offer, Replaceable, ReplacementSet, choose_sets, list_sets


def item(node: int, price: int, *amounts: int) -> Replaceable:
    return Replaceable(node=node, price=price, amounts=amounts, evictions=1)


def test_sets_that_fit_and_cost_more_than_the_offer() -> None:
    nodes = [item(1, 50, 4, 4), item(2, 40, 4, 4), item(3, 90, 9, 1)]
    found = list_sets(Offer(number=0, price=60, free=(8, 8)), nodes, lambda saves, evictions: True)
    assert [(one.nodes, one.saves) for one in found] == [((1, 2), 30)]


def test_a_saving_has_to_be_worth_its_evictions() -> None:
    nodes = [item(1, 50, 4, 4), item(2, 40, 4, 4)]
    assert not list_sets(Offer(number=0, price=60, free=(8, 8)), nodes, lambda saves, evictions: evictions < 2)


@pytest.mark.parametrize("seed", range(30))
def test_few_nodes_are_partitioned_as_well_as_possible(seed: int) -> None:
    dice = random.Random(seed)
    sets = [
        ReplacementSet(nodes=nodes, offer=0, saves=dice.randint(1, 99))
        for size in (1, 2, 3)
        for nodes in combinations(range(6), size)
        if dice.random() < 0.5
    ]
    best = max(
        sum(one.saves for one in some)
        for count in range(7)
        for some in combinations(sorted(sets, key=lambda one: -one.saves)[:16], count)
        if len({node for one in some for node in one.nodes}) == sum(len(one.nodes) for one in some)
    )
    chosen = choose_sets(sets, {0: 99})
    nodes = [node for one in chosen for node in one.nodes]
    assert len(nodes) == len(set(nodes))
    assert sum(one.saves for one in chosen) >= best


def test_no_offer_is_used_more_often_than_there_are_nodes() -> None:
    sets = [ReplacementSet(nodes=(number,), offer=0, saves=5) for number in range(4)]
    assert len(choose_sets(sets, {0: 2})) == 2
