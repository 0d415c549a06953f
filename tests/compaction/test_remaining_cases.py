"""Cases of other tools' suites that are told here in our own terms, and where the others are.

Told differently, elsewhere: 7 (DaemonSet pods always count for the threshold), 48 (a cordoned node is no place), 65
(best fit, not first fit), 69 to 72 (waves, paces and reasons).

Left out of §5.1 to §5.4, with why:
- 74, the percentages: `pace.drains` is a number of nodes, so there is nothing to round.
- 77: there is no rate of a surplus; drains at a time and evictions per hour are the pace (70, 71).
- 80: marks that are no longer wanted are taken back by the drains themselves (`test_conduct`), not by a plan.
- 81: there is no peak window; a node must be under the line for a time (72), and headroom is kept at every moment.
"""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain.start import steps_within_pace
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Observations
from trimtab.scheduling.cluster_model import build_cluster_model


def kept(name: str, on: str, cpu: str) -> Item:
    return pod(name, on, cpu, annotations={"trimtab.dev/do-not-disrupt": "true"})


def test_case_45_a_lost_pod_of_a_daemon_set_reserves_no_room() -> None:
    daemons = {
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {},
        "status": {"desiredNumberScheduled": 2, "numberReady": 1},
    }
    there = pod("agent-b", "b", "500m", owner="DaemonSet", app="agent")
    items = [node("a"), node("b", "1500m"), pod("x-1", "a", "500m"), kept("k-1", "b", "500m"), there, daemons]
    assert [
        step.node for step in make_plan(build_cluster_model(cluster(*items)), [ALL], PlanningContext(now=NOW)).all_steps
    ] == ["a"]


@pytest.mark.parametrize(("drains", "begun"), [(3, 3), (10, 10), (0, 0)])
def test_case_74_so_many_of_ten_empty_nodes_as_are_drained_at_a_time(drains: int, begun: int) -> None:
    wave = make_plan(
        build_cluster_model(cluster(*(node(f"n{i}") for i in range(10)))), [ALL], PlanningContext(now=NOW)
    ).waves[0]
    assert len(steps_within_pace(wave, replace(ALL, drains=drains), Observations(), NOW)) == begun


def test_case_75_a_budget_that_opens_again_is_tried_again() -> None:
    items = [node("a"), node("b"), pod("x-1", "a"), kept("k-1", "b", "1")]
    now = PlanningContext(now=NOW, observations=Observations(under_since={"a": 0, "b": 0}))
    spent = make_plan(build_cluster_model(cluster(*items, budget("x", 0, most=1))), [ALL], now)
    second_plan = make_plan(build_cluster_model(cluster(*items, budget("x", 1))), [ALL], now)
    assert (spent.pods["default/x-1"].code.name, [step.node for step in second_plan.all_steps]) == (
        "budget-spent",
        ["a"],
    )
