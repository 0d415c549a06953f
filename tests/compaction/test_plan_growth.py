"""What pods ask for when they come back, and what pods that stay may grow to."""

import pytest

from tests.cluster_of import ALL, NOW, cluster, node, pod
from tests.compaction.plans import keeper
from trimtab.cluster.resources import Amounts, GrowingAmounts
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model


def test_fits_elsewhere_counts_what_the_pod_would_be_given_again() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), keeper("k-1", "b", "2")]
    world = build_cluster_model(cluster(*items), again=lambda result: {"cpu": 3000} if result.name == "x-1" else None)
    assert not make_plan(world, [ALL], PlanningContext(now=NOW)).all_steps
    smaller = build_cluster_model(cluster(*items), again=lambda result: {"cpu": 10})
    assert len(make_plan(smaller, [ALL], PlanningContext(now=NOW)).all_steps) == 1


@pytest.mark.parametrize(
    ("again", "goes"),
    [(GrowingAmounts(cpu=3500), 0), (GrowingAmounts(cpu=3000), 1), (GrowingAmounts(cpu=1000), 1), ({"cpu": 3500}, 1)],
)
def test_a_pod_that_stays_and_is_resized_on_its_node_keeps_room_to_grow_there(again: Amounts, goes: int) -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), keeper("k-1", "b", "2")]
    world = build_cluster_model(cluster(*items), again=lambda result: again if result.name == "k-1" else None)
    assert len(make_plan(world, [ALL], PlanningContext(now=NOW)).all_steps) == goes
