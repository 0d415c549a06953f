"""In which order do drains and replacements save most?"""

from tests.cluster_of import Item, cluster, pod
from tests.compaction.replace.dear_nodes import BIG, KEPT, SMALL, big, machine, small
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.replace.advise import ReplacementAdvice, advise_replacements
from trimtab.compaction.replace.simulate import simulate_with_replacements
from trimtab.compaction.simulate import simulate_rounds
from trimtab.scheduling.cluster_model import build_cluster_model

POOLS = [BIG, SMALL]


def advice(*items: Item) -> ReplacementAdvice:
    inventory = cluster(*items)
    return advise_replacements(inventory, make_plan(build_cluster_model(inventory), POOLS), POOLS)


def test_drains_come_first_if_another_order_saves_no_more() -> None:
    told = advice(big(), big("b"), *small(), pod("web-0", "a", "1"), pod("api-0", "b", "500m"))
    assert (len(told.drains.all_steps), told.first, len(told.then)) == (1, (), 1)
    assert (told.drain_saves, told.saves) == (800_000, 1_400_000)


def test_a_replacement_comes_first_if_that_saves_more() -> None:
    """The drain of a would fill the dear node b, which can then not be replaced any more."""
    told = advice(
        big(),
        machine("b", "big", "5", "64Gi", 900_000),
        *small(),
        pod("web-0", "a", "1800m"),
        pod("api-0", "b", "2500m"),
        pod("api-1", "a", "1"),
        pod("one", "s", "500m", annotations=KEPT),
    )
    assert told.saves > told.drain_saves
    assert told.first
    assert told.saves == sum(one.saves for one in told.replacements) + sum(
        800_000 if step.node == "a" else 900_000 for step in told.drains.all_steps
    )


def test_a_simulation_carries_out_what_is_advised() -> None:
    inventory = cluster(big(), big("b"), *small(), pod("web-0", "a", "1"), pod("api-0", "b", "500m"))
    simulation = simulate_with_replacements(
        inventory, POOLS, PlanningContext(), None, lambda begin: simulate_rounds(begin, POOLS)
    )
    assert [(len(one.nodes), len(one.new_nodes)) for one in simulation.rounds] == [(1, 0), (1, 1)]
    assert (simulation.nodes_before, simulation.nodes_after, simulation.saved) == (3, 2, 1_400_000)
    assert simulation.pending_successors == 0
