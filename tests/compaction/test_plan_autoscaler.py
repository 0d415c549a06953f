"""What is left to the cluster autoscaler, and what is taken from it?"""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, node, pod
from tests.compaction.plans import keeper, planned
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pool import Precedence
from trimtab.compaction.candidates import PlanningContext


def test_what_the_autoscaler_removes_itself_is_left_to_it() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), keeper("k-1", "b", "1")]
    now = PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW))
    assert planned(*items, now=now).refusals["a"].code.name == "autoscaler-removes-node"


@pytest.mark.parametrize(("gpus", "flag", "left"), [("1", 50, True), ("2", 50, False), ("2", 60, True)])
def test_of_a_node_with_gpus_the_autoscaler_looks_at_nothing_else(gpus: str, flag: int, left: bool) -> None:
    four = {"extra": {"nvidia.com/gpu": "4"}}
    busy = pod("x-1", "a", "3", extra={"nvidia.com/gpu": gpus})
    items = [node("a", **four), node("b", **four), busy, keeper("k-1", "b", "1")]
    result = planned(*items, now=PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, gpu_threshold=flag)))
    assert ("a" in result.refusals) == left


@pytest.mark.parametrize(
    ("flag", "owner", "left"),
    [
        ("", "DaemonSet", False),
        ("ignore-daemonsets-utilization", "DaemonSet", True),
        ("ignore-mirror-pods-utilization", "DaemonSet", False),
        ("ignore-mirror-pods-utilization", "Node", True),
        ("ignore-daemonsets-utilization", "Node", False),
    ],
)
def test_pods_that_its_flags_leave_out_count_neither_as_requested_nor_as_room(
    flag: str, owner: str, left: bool
) -> None:
    """3 of 4 cores are requested; without the 2 of the agent it is 1 of 2, which is not under 50 %, but under 60 %."""
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}} if owner == "Node" else {}
    agent = pod("agent-1", "a", "2", owner=owner, **mirror)
    items = [node("a"), node("b"), agent, pod("x-1", "a", "1"), keeper("k-1", "b", "1")]
    for threshold, expected in ((50, False), (60, left)):
        scaler = Autoscaler(updated=NOW, threshold=threshold, flags={flag: "true"} if flag else {})
        assert ("a" in planned(*items, now=PlanningContext(now=NOW, autoscaler=scaler)).left) is expected


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, False),
        ({"scale-down-utilization-threshold": "0.80"}, True),
        ({"ignore-daemonsets-utilization": "true"}, True),
    ],
)
def test_the_options_of_the_pools_own_group_count_before_the_flags(options: dict[str, str], left: bool) -> None:
    items = [node("a"), node("b"), pod("agent-1", "a", "2", owner="DaemonSet"), pod("x-1", "a", "1")]
    scaler = Autoscaler(updated=NOW, threshold=60)
    pool = replace(ALL, group_options=options)
    result = planned(*items, keeper("k-1", "b", "1"), pool=pool, now=PlanningContext(now=NOW, autoscaler=scaler))
    assert ("a" in result.left) is left


LEADS = replace(ALL, autoscaler=Precedence.LEAD)


def test_a_pool_that_leads_empties_what_the_autoscaler_would_empty_by_itself() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), keeper("k-1", "b", "2")]
    now = PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, threshold=60))
    followed = planned(*items, now=now)
    assert (followed.all_steps, followed.refusals["a"].code.name) == ((), "autoscaler-removes-node")
    assert followed.left["a"].evictions == 1
    assert [step.node for step in planned(*items, pool=LEADS, now=now).all_steps] == ["a"]


def test_a_pool_that_leads_keeps_off_nodes_that_the_autoscaler_means_to_remove() -> None:
    taint = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    items = [node("a", taints=[taint]), node("b"), pod("x-1", "a", "1"), pod("y-1", "b", "1")]
    result = planned(*items, pool=LEADS)
    assert result.all_steps == ()
    reasons = {name: reason.code.name for name, reason in result.refusals.items()}
    assert reasons == {"a": "autoscaler-removes-node", "b": "no-place"}


@pytest.mark.parametrize(("dry_run", "most", "count"), [(True, 50, 1), (False, 50, 0), (False, 60, 1)])
def test_a_pool_that_leads_and_acts_waits_while_the_autoscalers_threshold_is_high(
    dry_run: bool, most: int, count: int
) -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), keeper("k-1", "b", "2")]
    pool = replace(LEADS, dry_run=dry_run, lead_max_threshold=most)
    result = planned(*items, pool=pool, now=PlanningContext(now=NOW, autoscaler=Autoscaler(updated=NOW, threshold=60)))
    assert len(result.all_steps) == count
    assert count or result.pools["all"].code.name == "autoscaler-threshold-too-high"
