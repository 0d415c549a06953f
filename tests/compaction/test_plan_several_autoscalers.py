"""Plans in a cluster with several cluster autoscalers: each closes, limits and removes only its own node groups."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, cluster, node, pod
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.several_autoscalers import join_autoscalers
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import build_cluster_model

POOLS = [replace(ALL, name=name, labels={"asg": name}, everything=False) for name in ("asg-a", "asg-b")]
"""One pool for the groups of each autoscaler."""


def autoscaler(name: str, min_size: int = 0, scale_up: str = "NotNeeded", **more: object) -> Autoscaler:
    group = NodeGroupStatus(name=name, healthy=True, scale_up=scale_up, min_size=min_size, target=3)
    return Autoscaler(**{"name": name, "updated": NOW, "groups": (group,), "threshold": 0, **more})  # type: ignore[arg-type]


def plan(*members: Autoscaler) -> Plan:
    nodes: list[Item] = [node(f"{g}{i}", labels={"asg": f"asg-{g}"}) for g in "ab" for i in range(3)]
    pods: list[Item] = [pod(f"web-{g}{i}", f"{g}{i}", "500m") for g in "ab" for i in range(3)]
    context = PlanningContext(now=NOW, autoscaler=join_autoscalers(members))
    return make_plan(build_cluster_model(cluster(*nodes, *pods)), POOLS, context, None)


def drained(made: Plan) -> set[str]:
    return {step.node[0] for step in made.all_steps}


@pytest.mark.parametrize(
    "state",
    [{"scale_up": "InProgress"}, {"healthy": False}, {"updated": None}, {"scale_down": False}, {"restarting": True}],
)
def test_an_autoscaler_that_cannot_remove_nodes_closes_only_its_own_pool(state: dict[str, object]) -> None:
    assert drained(plan(autoscaler("asg-a"), autoscaler("asg-b", **state))) == {"a"}  # type: ignore[arg-type]


def test_the_minimum_of_every_autoscaler_holds() -> None:
    assert drained(plan(autoscaler("asg-a"), autoscaler("asg-b", min_size=3))) == {"a"}


def test_a_group_at_its_minimum_is_never_said_to_be_removed() -> None:
    proposed_plan = plan(autoscaler("asg-a", threshold=50), autoscaler("asg-b", min_size=3, threshold=50))
    assert {name[0] for name in proposed_plan.left} == {"a"}
    assert {proposed_plan.refusals[f"b{i}"].code.name for i in range(3)} == {"pool-at-minimum"}


def test_the_threshold_of_its_own_autoscaler_counts_for_a_node() -> None:
    proposed_plan = plan(autoscaler("asg-a", threshold=50), autoscaler("asg-b"))
    assert ({name[0] for name in proposed_plan.left}, drained(proposed_plan)) == ({"a"}, {"b"})


def test_a_node_of_an_unknown_group_waits_for_every_autoscaler() -> None:
    proposed_plan = plan(autoscaler("other-a"), autoscaler("other-b", healthy=False))
    assert drained(proposed_plan) == set()


def plan_of_unmatched(*sizes: tuple[str, int, int], threshold: int = 0, pool: str = "all") -> Plan:
    """The plan for three nodes that match no group; each size is (group, registered nodes, minimum)."""
    groups = tuple(
        NodeGroupStatus(name=name, healthy=True, scale_up="", registered=count, min_size=minimum)
        for name, count, minimum in sizes
    )
    items = [item for n in range(3) for item in (node(f"n{n}"), pod(f"web-{n}", f"n{n}", "500m"))]
    context = PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, groups=groups, threshold=threshold))
    return make_plan(build_cluster_model(cluster(*items)), [replace(ALL, name=pool)], context, None)


def test_the_minimum_of_the_only_group_that_can_have_the_nodes_holds_without_a_matching_name() -> None:
    proposed_plan = plan_of_unmatched(("workers-asg", 3, 3), ("other-asg", 0, 0), threshold=90)
    assert {reason.code.name for reason in proposed_plan.refusals.values()} == {"pool-at-minimum"}
    assert any("workers-asg" in note for note in proposed_plan.notes)


def test_nodes_that_may_belong_to_a_group_at_its_minimum_stay() -> None:
    proposed_plan = plan_of_unmatched(("a-asg", 2, 2), ("b-asg", 1, 0), threshold=90)
    assert ({reason.code.name for reason in proposed_plan.refusals.values()}, dict(proposed_plan.left)) == (
        {"node-group-unknown"},
        {},
    )


def test_as_many_nodes_of_unknown_groups_are_drained_as_every_group_can_lose() -> None:
    assert len(list(plan_of_unmatched(("a-asg", 3, 2), ("b-asg", 3, 1)).all_steps)) == 1
    assert len(list(plan_of_unmatched(("a-asg", 3, 0), ("b-asg", 3, 0)).all_steps)) == 2


def test_a_node_of_an_unknown_group_is_not_said_to_be_removed() -> None:
    proposed_plan = plan_of_unmatched(("a-asg", 3, 2), ("b-asg", 3, 1), threshold=90)
    assert ["may remove" in str(proposed_plan.refusals[name]) for name in proposed_plan.left] == [True]


def test_a_pool_that_is_named_after_a_group_states_the_group_of_its_nodes() -> None:
    proposed_plan = plan_of_unmatched(("a-asg", 3, 1), ("b-asg", 3, 3), pool="a-asg")
    assert (len(list(proposed_plan.all_steps)), any("b-asg" in note for note in proposed_plan.notes)) == (2, False)
