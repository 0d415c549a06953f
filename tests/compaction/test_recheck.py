"""Steps of one round, judged again together: what one takes the next does not have."""

from dataclasses import replace

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from trimtab.cluster.pool import Headroom, Pool
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan_types import DrainStep, Move
from trimtab.compaction.reasons import GOES
from trimtab.compaction.recheck import Recheck
from trimtab.scheduling.cluster_model import build_cluster_model


def step(name: str, *pods: str, target: str = "c") -> DrainStep:
    moves = tuple(
        Move(pod=f"default/{pod}", uid=f"uid-{pod}", source=name, target=target, budget=None, turn=0) for pod in pods
    )
    return DrainStep(node=name, pool="all", saves=1, moves=moves, reason=GOES("it can"))


def verdicts(*items: Item, pool: Pool = ALL, steps: tuple[DrainStep, ...]) -> list[str]:
    """Of each step in turn: the reason's code, or "holds"."""
    check = Recheck.prepare(build_cluster_model(cluster(*items)), [pool], PlanningContext(now=NOW))
    reasons = [check.rejection_reason(one) for one in steps]
    return [reason.code.name if reason is not None else "holds" for reason in reasons]


TWO = (step("a", "x-1"), step("b", "y-1"))


def world(cpu: str = "2", room: str = "8") -> list[Item]:
    """Two nodes of one pod each, and a third that has room for so much."""
    return [node("a"), node("b"), node("c", room), pod("x-1", "a", cpu), pod("y-1", "b", cpu)]


def test_steps_that_have_room_for_both_hold() -> None:
    assert verdicts(*world(), steps=TWO) == ["holds", "holds"]


def test_two_steps_that_hold_alone_do_not_both_get_the_same_room() -> None:
    items = world(cpu="3", room="4")
    assert verdicts(*items, steps=TWO[1:]) == ["holds"]
    assert verdicts(*items, steps=TWO) == ["holds", "no-room"]


def test_a_node_that_goes_takes_no_pods() -> None:
    items = [node("a", "1"), node("b", "1"), pod("x-1", "a", "1")]
    steps = (step("b"), step("a", "x-1", target="b"))
    assert verdicts(*items, steps=steps) == ["holds", "no-room"]


def test_a_node_that_takes_pods_of_one_that_goes_stays() -> None:
    items = [node("a"), node("b"), node("c", "8"), pod("x-1", "a", "1"), pod("y-1", "b", "1")]
    steps = (step("a", "x-1", target="b"), step("b", "y-1", target="c"))
    assert verdicts(*items, steps=steps) == ["holds", "receives-pods"]


def test_two_steps_do_not_spend_the_same_budget() -> None:
    items = [node("a"), node("b"), node("c"), pod("x-1", "a"), pod("x-2", "b"), pod("x-3", "c")]
    steps = (step("a", "x-1"), step("b", "x-2"))
    assert verdicts(*items, budget("x", 1), steps=steps) == ["holds", "budget-spent"]
    assert verdicts(*items, budget("x", 2), steps=steps) == ["holds", "holds"]


def test_a_node_with_more_pods_of_a_budget_than_it_allows_has_it_for_itself() -> None:
    items = [node("a"), node("b"), node("c"), pod("x-1", "a"), pod("x-2", "a"), pod("x-3", "b"), pod("x-4", "c")]
    steps = (step("a", "x-1", "x-2"), step("b", "x-3"))
    assert verdicts(*items, budget("x", 1), steps=steps) == ["holds", "budget-spent"]
    assert verdicts(*items, budget("x", 2), steps=steps) == ["holds", "budget-spent"]


def test_the_second_step_would_go_below_the_pools_minimum() -> None:
    assert verdicts(*world(), pool=replace(ALL, min_nodes=2), steps=TWO) == ["holds", "pool-at-minimum"]


def test_the_second_step_would_take_the_room_that_the_pool_keeps() -> None:
    rest = replace(ALL, headroom=Headroom(percent=40))
    assert verdicts(*world(room="6"), pool=rest, steps=TWO) == ["holds", "headroom"]


def test_an_empty_node_goes_only_where_the_pool_keeps_its_room_without_it() -> None:
    items = [node("a"), node("c", "4"), pod("x-1", "c", "3")]
    assert verdicts(*items, steps=(step("a"),)) == ["holds"]
    assert verdicts(*items, pool=replace(ALL, headroom=Headroom(percent=50)), steps=(step("a"),)) == ["headroom"]


def test_a_step_that_does_not_hold_takes_nothing() -> None:
    items = [*world(cpu="3", room="4"), pod("z-1", "a", "1")]
    assert verdicts(*items, steps=(step("a", "x-1"), TWO[1])) == ["node-changed", "holds"]
    rest = replace(ALL, headroom=Headroom(percent=30))
    items = [node("a"), node("b"), node("c", "6"), pod("x-1", "a", "3"), pod("y-1", "b", "1")]
    assert verdicts(*items, pool=rest, steps=TWO) == ["holds", "holds"]
