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
