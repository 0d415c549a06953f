"""The first wave alone is as safe as a plan's."""

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import first_wave
from trimtab.compaction.plan_types import Wave
from trimtab.scheduling.cluster_model import build_cluster_model


def wave(*items: Item, close: int) -> Wave:
    return first_wave(build_cluster_model(cluster(*items)), [ALL], PlanningContext(now=NOW), close)


MANY = [item for i in range(10) for item in (node(f"n{i}"), pod(f"x-{i}", f"n{i}"))]


def test_only_candidates_looked_at_closely_go_and_the_others_take_their_pods() -> None:
    actual_wave = wave(*MANY, close=3)
    assert [step.node for step in actual_wave.steps] == ["n0", "n1", "n2"]
    assert not {move.target for step in actual_wave.steps for move in step.moves} & {"n0", "n1", "n2"}


def test_when_none_of_them_can_go_more_are_looked_at() -> None:
    stuck = [
        item
        for i in range(3)
        for item in (node(f"a{i}"), pod(f"k-{i}", f"a{i}", annotations={"trimtab.dev/do-not-disrupt": "true"}))
    ]
    pods = [pod(f"y-{i}{j}", f"n{i}", "100m") for i in range(10) for j in range(2)]
    assert wave(*stuck, *MANY, *pods, close=3).steps


def test_a_budget_is_spent_once() -> None:
    assert len(wave(*MANY, budget("x", 2), close=5).steps) == 2


def test_nothing_can_go() -> None:
    assert wave(node("a"), pod("x-1", "a"), close=1).steps == ()
