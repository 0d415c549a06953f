"""A drain beside the cluster autoscaler: whose node is it, and who opened it?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import NOW, budget, cluster, node, pod
from tests.compaction.drain.test_state_machine import ACT, WEB, ended, evicted, leaving, note, owner, step, waits
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pool import Precedence
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain.actions import FailureCause
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import ActiveDrains, steps_to_start
from trimtab.compaction.drain.timeouts import DrainTimeouts, longest_delay, removal_timeout
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import build_cluster_model

LEADS = replace(ACT, autoscaler=Precedence.LEAD)
CANDIDATE = {"key": "DeletionCandidateOfClusterAutoscaler", "value": str(NOW - 5), "effect": "PreferNoSchedule"}
GOING = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}


# ── a drain of a pool that leads ─────────────────────────────────────────────────────────────────────


def test_a_node_that_the_autoscaler_wants_before_we_evicted_a_pod_is_left_to_it() -> None:
    expected_node = node("n1", cordoned=True, taints=[CANDIDATE])
    whole = note(leaving("web-1"))
    assert ended(step(whole, *WEB, on=expected_node, pools=(LEADS,))) == (
        "drain-autoscaler-removes-node",
        FailureCause.NOBODY,
    )
    assert evicted(step(whole, *WEB, on=expected_node)) == ["web-1"], "the pool follows: it was above the threshold"


def test_a_node_that_it_wants_because_of_what_we_evicted_is_ours() -> None:
    expected_node = node("n1", cordoned=True, taints=[CANDIDATE])
    moves = note(leaving("web-1"), leaving("api-1"))
    here = [*WEB, pod("api-2", "n2"), pod("api-3", "n2"), owner("api", 2)]
    assert evicted(step(moves, *here, on=expected_node, pools=(LEADS,))) == ["web-1"]
    assert waits(step(note(emptied=NOW - 60), on=expected_node, pools=(LEADS,))) == "drain-waits-for-autoscaler"


def test_what_it_evicts_is_spent_from_budgets_of_a_pool_that_leads() -> None:
    going = node("n3", taints=[GOING])
    pods = [pod("web-1", "n1"), pod("web-2", "n3"), pod("web-3", "n2"), budget("web", 1), owner("web", 3)]
    assert waits(step(note(leaving("web-1")), going, *pods, pools=(LEADS,))) == "drain-budget-spent"
    assert evicted(step(note(leaving("web-1")), going, *pods)) == ["web-1"]


def test_its_deletions_count_in_the_pace_of_a_pool_that_leads() -> None:
    two = replace(LEADS, drains=2)
    items = [node("k", "8"), pod("full-1", "k", annotations={"trimtab.dev/do-not-disrupt": "true"})]
    items += [*(node(n) for n in "abc"), *(pod(f"{n}-1", n) for n in "abc")]
    steps = planned(*items, pool=two).waves[0].steps
    for deleted, count in (({}, 2), ({"x": "all"}, 1), ({"x": "all", "y": "all"}, 0)):
        active_drains = ActiveDrains(emptying={}, emptied={}, deleted=deleted)
        assert len(steps_to_start(steps, two, PoolState(), active_drains, NOW, DrainTimeouts())) == count


def test_its_evictions_count_once_in_the_hour() -> None:
    memory = PoolState().with_deletions({"x": 3}, NOW)
    assert len(memory.evictions) == 3
    assert memory.with_deletions({"x": 2}, NOW + 2) == memory


# ── who opened the node? ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("deleting", "code"), [((), "drain-uncordoned"), (("n1",), "drain-deletion-failed"), (("n2",), "drain-uncordoned")]
)
def test_a_deletion_that_failed_is_no_persons_no(deleting: tuple[str, ...], code: str) -> None:
    action = step(note(emptied=NOW - 60), on=node("n1"), deleting_nodes=frozenset(deleting))
    assert ended(action) == (code, FailureCause.NODE)


def test_that_it_had_begun_is_remembered_for_half_an_hour() -> None:
    memory = PoolState(deleting={"n1": NOW})
    assert "n1" in memory.without_old_entries(NOW + 1799, DrainTimeouts(), ["n1"]).deleting
    assert "n1" not in memory.without_old_entries(NOW + 1800, DrainTimeouts(), ["n1"]).deleting


# ── what is left to it ───────────────────────────────────────────────────────────────────────────────

SCALER = Autoscaler(updated=NOW, threshold=90)
LIGHT = [node("a"), node("b"), pod("x-1", "a", "1"), pod("x-2", "b", "1"), pod("x-3", "b", "1")]


def planned(*items: Any, pool: Any = ACT, **now: Any) -> Plan:
    return make_plan(build_cluster_model(cluster(*items)), [pool], PlanningContext(now=NOW, **now))


@pytest.mark.parametrize("ours", [False, True])
def test_a_node_that_was_left_for_longer_than_its_removal_takes_is_ours_again(ours: bool) -> None:
    plan = planned(*LIGHT, autoscaler=SCALER, overdue=frozenset({"a"} if ours else ()))
    assert ([step.node for step in plan.all_steps] == ["a"]) is ours
    assert (plan.overdue == ("a",)) is ours
    assert ("a" in plan.left) is not ours


@pytest.mark.parametrize(
    ("flags", "seconds"),
    [
        ({}, 1500),
        ({"scale-down-unneeded-time": "60s", "scale-down-delay-after-add": "0s"}, 360),
        ({"scale-down-unneeded-time": "0s"}, 900),
    ],
)
def test_its_own_timers_decide_how_long_that_is(flags: dict[str, str], seconds: int) -> None:
    memory, removal = PoolState(left={"a": NOW}), removal_timeout(DrainTimeouts(), replace(SCALER, flags=flags))
    assert memory.overdue_nodes(NOW + seconds, removal) == frozenset()
    assert memory.overdue_nodes(NOW + seconds + 1, removal) == {"a"}


def test_the_timers_of_the_pools_own_group_count_before_the_flags() -> None:
    pools = (replace(ACT, name="own", group_options={"scale-down-unneeded-time": "1200s"}), replace(ACT, name="other"))
    view = ClusterView(now=NOW, inventory=cluster(), pools=pools, autoscaler=SCALER)
    assert [removal_timeout(DrainTimeouts(), view.autoscaler_of(name)) for name in ("own", "other", "gone")] == [
        2100,
        1500,
        1500,
    ]


def test_since_when_a_node_is_left_outlives_a_restart_and_ends_when_it_no_longer_is() -> None:
    memory = PoolState().with_left_nodes(["a"], NOW).with_left_nodes(["a", "b"], NOW + 60)
    assert memory.left == {"a": NOW, "b": NOW + 60}
    assert memory.with_left_nodes(["b"], NOW + 90).left == {"b": NOW + 60}


def test_nothing_begins_while_it_restarts() -> None:
    plan = planned(*LIGHT, autoscaler=replace(SCALER, threshold=0, restarting=True))
    assert plan.pools["all"].code.name == "autoscaler-silent"


def test_a_drain_goes_on_while_it_restarts() -> None:
    assert evicted(step(note(leaving("web-1")), *WEB, autoscaler=replace(SCALER, restarting=True))) == ["web-1"]


def test_a_delay_after_deletions_or_failures_counts_if_it_is_set() -> None:
    flags = {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "1m"}
    longer = [{**flags, f"scale-down-delay-after-{cause}": "9m"} for cause in ("delete", "failure")]
    assert [longest_delay(Autoscaler(flags=one)) for one in (flags, *longer)] == [60, 540, 540]
