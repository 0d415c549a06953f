"""Laws of the plan of a drain that a user orders, over generated clusters.

The walk through all intermediate states is `tests/bench/verify.py`: it shares no code with the planner.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.bench import verify
from tests.cluster_of import NOW, Item, cluster
from tests.property.test_plan_laws import EASY, clusters
from trimtab.compaction.order.order_plan import OrderPlan, plan_order
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.scheduling.cluster_model import build_cluster_model


@st.composite
def orders(draw: st.DrawFn) -> tuple[list[Item], list[str], OrderRules]:
    """A cluster, some of its nodes, and what the user permits."""
    items = draw(clusters())
    names = [item["metadata"]["name"] for item in items if item["kind"] == "Node"]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
    rules = OrderRules(
        at_once=draw(st.integers(1, 3)), keeps_going=draw(st.booleans()), overrides_protection=draw(st.booleans())
    )
    return items, chosen, rules


def plan_of(items: list[Item], names: list[str], rules: OrderRules) -> OrderPlan:
    return plan_order(build_cluster_model(cluster(*items)), names, rules, NOW)


def steps_of(plan: OrderPlan) -> list[Any]:
    return [
        [(step.node, [(m.pod, m.source, m.target, m.turn) for m in step.moves]) for step in wave.steps]
        for wave in plan.waves
    ]


@EASY
@given(orders())
def test_the_plan_of_an_order_replays_legally(order: tuple[list[Item], list[str], OrderRules]) -> None:
    """No budget is broken in any turn of any wave, no node is overfilled, and every filter of the scheduler holds."""
    items, names, rules = order
    plan = plan_of(items, names, rules)
    moved, gone = verify.verify(without_protection(items, rules), steps_of(plan))
    assert moved == sum(len(step.moves) for step in plan.steps)
    assert gone == {step.node for step in plan.steps}


def without_protection(items: list[Item], rules: OrderRules) -> list[Item]:
    """Returns the objects without annotations where the order overrides them."""
    if not rules.overrides_protection:
        return items
    return [{**item, "metadata": {**item["metadata"], "annotations": {}}} for item in items]


@EASY
@given(orders())
def test_no_pod_moves_twice_and_every_node_has_its_place_or_its_reason(
    order: tuple[list[Item], list[str], OrderRules],
) -> None:
    items, names, rules = order
    plan = plan_of(items, names, rules)
    targets = {move.target for step in plan.steps for move in step.moves}
    assert not targets & set(names)
    assert {step.node for step in plan.steps} | set(plan.refusals) == set(names)
    assert not {step.node for step in plan.steps} & set(plan.refusals)
    assert all(len(wave.steps) <= rules.at_once for wave in plan.waves)
    zones = {
        item["metadata"]["name"]: item["metadata"]["labels"].get("topology.kubernetes.io/zone")
        for item in items
        if item["kind"] == "Node"
    }
    assert all(len({zones[step.node] for step in wave.steps}) == 1 for wave in plan.waves)
    assert bool(plan.homeless) == bool(plan.missing)


@EASY
@given(orders())
def test_equal_input_gives_an_equal_plan(order: tuple[list[Item], list[str], OrderRules]) -> None:
    items, names, rules = order
    assert plan_of(items, names, rules) == plan_of(list(reversed(items)), names, rules)
