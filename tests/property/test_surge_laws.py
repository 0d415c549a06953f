"""Whatever the budgets are: a plan with surges breaks none, stays within the pool's limit, and drains no less."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster_of import ALL, Item, budget, cluster, node, pod
from tests.compaction.plans import planned
from tests.compaction.surge.test_find_surge import deployment
from trimtab.compaction.surge.disruptions import disruptions_allowed

NODES = ("a", "b", "c", "d")


@st.composite
def drawn_items(draw: st.DrawFn) -> list[Item]:
    """Four nodes, and a few Deployments whose budgets want any number or percentage of pods."""
    items: list[Item] = [node(name, draw(st.sampled_from(("4", "8")))) for name in NODES]
    for number in range(draw(st.integers(1, 4))):
        app = f"app{number}"
        places = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=4))
        items += [pod(f"{app}-{n}", place, draw(st.sampled_from(("500m", "1")))) for n, place in enumerate(places)]
        items += [deployment(app, len(places)), deployment(app, len(places), kind="ReplicaSet")]
        least = draw(st.one_of(st.integers(0, 6), st.integers(0, 100).map(lambda percent: f"{percent}%")))
        items.append(told(budget(app, 0, spec={"minAvailable": least}), len(places)))
    return items


def told(item: Item, pods: int) -> Item:
    """The budget with the status that its controller would write."""
    item["status"] |= {"currentHealthy": pods, "expectedPods": pods}
    [read] = cluster(item).pdbs
    allowed = disruptions_allowed(read) or 0
    item["status"] |= {"disruptionsAllowed": allowed, "desiredHealthy": pods - allowed}
    return item


@settings(max_examples=60, deadline=None)
@given(drawn_items(), st.integers(0, 3))
def test_no_turn_evicts_more_than_its_budget_allows_with_the_pods_that_run_first(items: list[Item], most: int) -> None:
    pool = replace(ALL, surge=most)
    budgets = {each.key: each for each in cluster(*items).pdbs}
    for wave in planned(*items, pool=pool).waves:
        turns = Counter((move.budget, move.turn) for step in wave.steps for move in step.moves)
        for move in (move for step in wave.steps for move in step.moves):
            assert move.surge <= most
            assert move.budget is not None
            allowed = disruptions_allowed(budgets[move.budget], move.surge)
            assert allowed is not None
            assert turns[move.budget, move.turn] <= max(1, allowed)
            assert allowed >= 1


@settings(max_examples=40, deadline=None)
@given(drawn_items(), st.integers(1, 3))
def test_more_pods_for_a_while_keep_no_pod_that_moves_without(items: list[Item], most: int) -> None:
    without, with_surge = planned(*items), planned(*items, pool=replace(ALL, surge=most))
    assert with_surge.pods.keys() <= without.pods.keys()
