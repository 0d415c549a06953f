"""Pods that live and die together, in a pool that moves groups: all of them, or none."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, budget, node, pod
from tests.compaction.plans import keeper, planned
from trimtab.cluster.pool_values import GroupMode
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan_types import Observations, Plan

MOVES = replace(ALL, groups=GroupMode.MOVE)
LABEL = "leaderworkerset.sigs.k8s.io/group-key"


def member(name: str, on: str, cpu: str = "1", group: str = "train", **more: object) -> Item:
    return pod(name, on, cpu, labels={LABEL: group}, **more)


def world(*more: Item) -> list[Item]:
    """A group with a pod on a and one on b, where another pod must stay; c has room and stays."""
    return [
        *(node(name) for name in "abc"),
        keeper("kb", "b", "10m"),
        keeper("kc", "c", "10m"),
        member("web-0", "a"),
        member("web-1", "b"),
        *more,
    ]


def fate(*items: Item, plan: Plan | None = None) -> str:
    plan = plan or planned(*items, pool=MOVES)
    reason = plan.pods.get("default/web-0")
    return reason.code.name if reason is not None else "goes" if plan.all_steps else "stays"


def test_a_group_moves_with_one_of_its_nodes_and_the_other_pods_are_named() -> None:
    [step] = planned(*world(), pool=MOVES).all_steps
    assert (step.node, [move.pod for move in step.moves]) == ("a", ["default/web-0"])
    assert [(one.pod, one.node) for one in step.companions] == [("default/web-1", "b")]
    assert step.eviction_count == 2


def test_by_default_it_stays() -> None:
    plan = planned(*world())
    assert {reason.code.name for reason in plan.pods.values()} >= {"pod-group-spans-nodes"}
    assert not plan.all_steps


@pytest.mark.parametrize(("allowed", "code"), [(1, "group-budget-too-small"), (2, "goes")])
def test_a_budget_must_allow_all_of_its_evictions_at_once(allowed: int, code: str) -> None:
    assert fate(*world(budget("web", allowed))) == code


def test_a_pod_that_must_stay_keeps_all() -> None:
    kept = member("web-2", "c", annotations={"trimtab.dev/do-not-disrupt": "true"})
    assert fate(*world(kept)) == "group-member-stays"


def test_a_pending_pod_keeps_all() -> None:
    assert fate(*world(member("web-2", ""))) == "group-in-several-pools"


def test_a_pod_on_a_node_of_no_pool_keeps_all() -> None:
    pool = replace(MOVES, everything=False, labels={"own": "yes"})
    items = world()
    for item in items[:3]:
        item["metadata"]["labels"]["own"] = "no" if item["metadata"]["name"] == "b" else "yes"
    assert fate(plan=planned(*items, pool=pool)) == "group-in-several-pools"


def test_a_pod_on_a_node_that_is_drained_keeps_all() -> None:
    context = PlanningContext(
        now=NOW, observations=Observations(under_since=dict.fromkeys("abc", 0), draining={"b": "all"})
    )
    assert fate(plan=planned(*world(), pool=MOVES, now=context)) == "group-in-several-pools"


def test_a_group_moves_once_in_a_plan() -> None:
    items = [*(node(name) for name in "abc"), keeper("kc", "c", "10m"), member("web-0", "a"), member("web-1", "b")]
    plan = planned(*items, pool=MOVES)
    assert len(plan.all_steps) == 1
    assert "group-moves-with-other-node" in {reason.code.name for reason in plan.pods.values()}
