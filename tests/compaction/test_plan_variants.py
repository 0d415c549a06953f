"""What a plan would be, were one thing otherwise: presets, the pods of one reason, one setting."""

from dataclasses import replace
from itertools import pairwise

from tests.cluster_of import ALL, Item, cluster, node, pod
from tests.compaction.plans import keeper, planned
from trimtab.cluster.pool import Headroom
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_variants import (
    KeepingReason,
    PlanOutcome,
    keeping_reasons,
    outcome_of,
    outcomes_by_preset,
    plan_frontier,
)
from trimtab.scheduling.cluster_model import build_cluster_model

PRICE = {"labels": {"trimtab.dev/price": "100000"}}


def kept(*items: Item, pool: object = ALL) -> tuple[KeepingReason, ...]:
    world = build_cluster_model(cluster(*items))
    return keeping_reasons(world, [pool], PlanningContext(), make_plan(world, [pool], PlanningContext()))  # type: ignore[list-item]


def pinned(*names: str) -> list[Item]:
    """A node for each name, with a pod that may not move; a node that takes all of them."""
    return [*(node(name, **PRICE) for name in names), *(keeper(f"k{name}", name, "500m") for name in names)]


def test_pods_that_keep_nodes_cost_what_would_be_saved_without_them() -> None:
    (keeping_reason,) = kept(*pinned("a", "b", "c", "d"))
    assert (keeping_reason.code.name, len(keeping_reason.pods), keeping_reason.nodes) == (
        "not-safe-to-evict",
        4,
        ("a", "b", "c", "d"),
    )
    assert keeping_reason.more == PlanOutcome(nodes=3, evictions=3, saves=300_000)


def test_a_pod_beside_another_reason_costs_nothing_alone() -> None:
    keeping_reasons = kept(
        node("a", **PRICE), node("b", **PRICE), keeper("k", "a", "1"), pod("bare", "a", owner=""), pod("web-1", "b")
    )
    assert {one.code.name: one.more.nodes for one in keeping_reasons} == {
        "not-safe-to-evict": 0,
        "pod-without-owner": 0,
    }


def test_a_setting_costs_what_would_be_saved_without_it() -> None:
    busy = replace(ALL, under={"cpu": 10})
    (keeping_reason,) = kept(node("a", **PRICE), node("b", **PRICE), pod("web-0", "a"), pod("web-1", "b"), pool=busy)
    assert (keeping_reason.code.name, keeping_reason.pods, keeping_reason.more.nodes) == ("node-not-under-used", (), 1)


def test_headroom_is_priced() -> None:
    roomy = replace(ALL, headroom=Headroom(percent=90))
    keeping_reasons = kept(node("a", **PRICE), node("b", **PRICE), pod("web-0", "a"), pod("web-1", "b"), pool=roomy)
    assert [(one.code.name, one.more.nodes) for one in keeping_reasons] == [("headroom", 1)]


def test_presets_are_told_beside_each_other() -> None:
    items = [node(name, **PRICE) for name in "abcd"] + [pod(f"web-{n}", "abcd"[n], "2500m") for n in range(2)]
    outcomes = outcomes_by_preset(build_cluster_model(cluster(*items)), [ALL], PlanningContext(), {})
    assert list(outcomes) == ["careful", "balanced", "keen"]
    assert outcomes["careful"].nodes <= outcomes["balanced"].nodes <= outcomes["keen"].nodes
    assert outcomes["keen"].nodes == 2


def test_the_frontier_saves_less_and_less_for_each_eviction_and_ends_at_the_plan() -> None:
    items = [node(name, **PRICE) for name in "abcdef"] + [pod(f"web-{n}", "abcabb"[n], "200m") for n in range(6)]
    result = planned(*items)
    points = plan_frontier(result)
    rates = [(b.saves - a.saves) / max(1, b.evictions - a.evictions) for a, b in pairwise(points)]
    assert rates == sorted(rates, reverse=True)
    assert (points[0], points[-1]) == (PlanOutcome(0, 0, 0), outcome_of(result))
