"""Pods that may take long to stop: the plan says so, and a drain that only waits for them holds no place."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from tests.compaction.plans import planned
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pod import PodInfo
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import ActiveDrains, steps_to_start
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.long_graces import estimate_drain_time, is_only_stopping, longest_grace
from trimtab.compaction.plan_types import Plan

SIX_HOURS = {"spec": {"terminationGracePeriodSeconds": 21600}}


def plan_of(grace: dict[str, object], autoscaler: Autoscaler | None = None) -> Plan:
    context = PlanningContext(now=NOW, autoscaler=autoscaler)
    return planned(node("a"), node("b"), pod("web-0", "a", "1", **grace), pod("web-1", "b", "2"), now=context)


def test_a_step_has_the_longest_grace_of_its_pods() -> None:
    assert [step.longest_grace_seconds for step in plan_of(SIX_HOURS).all_steps] == [21600]


def test_a_long_grace_is_noted_with_its_pod() -> None:
    assert any("21600 s" in note and "default/web-0" in note for note in plan_of(SIX_HOURS).notes)


def test_an_ordinary_grace_is_not_noted() -> None:
    assert not any("grace" in note for note in plan_of({}).notes)


def test_what_the_autoscaler_cuts_short_is_noted_for_a_node_that_is_left_to_it() -> None:
    flags = {"max-graceful-termination-sec": "900"}
    plan = plan_of(SIX_HOURS, Autoscaler(updated=NOW, flags=flags))
    assert (list(plan.left), [note for note in plan.notes if "waits 900 s" in note] != []) == (["a"], True)


def test_an_autoscaler_that_waits_longer_is_not_noted() -> None:
    flags = {"max-graceful-termination-sec": "30000"}
    assert not any("grace" in note for note in plan_of(SIX_HOURS, Autoscaler(updated=NOW, flags=flags)).notes)


def pods_of(*pods: Item) -> tuple[PodInfo, ...]:
    return cluster(node("a"), *pods).pods


def test_only_pods_that_all_stop_already_and_take_long_free_the_place() -> None:
    going = pod("web-0", "a", deleted="2026-01-31T12:00:00Z", **SIX_HOURS)
    assert is_only_stopping(pods_of(going))
    assert not is_only_stopping(pods_of(going, pod("web-1", "a")))
    assert not is_only_stopping(pods_of(pod("web-0", "a", deleted="2026-01-31T12:00:00Z")))
    assert not is_only_stopping(())


def test_no_pods_have_no_grace() -> None:
    assert longest_grace(()) == 0


def test_a_drain_that_only_waits_for_a_long_grace_leaves_its_place_to_another() -> None:
    step = next(iter(plan_of({}).all_steps))
    pool = replace(ALL, drains=1)
    waiting = ActiveDrains(emptying={"z": pool.name}, emptied={})
    counts = [
        len(steps_to_start([step], pool, PoolState(), active, NOW, DrainTimeouts()))
        for active in (waiting, replace(waiting, stopping=frozenset({"z"})))
    ]
    assert counts == [0, 1]


TWO_HOURS = {"spec": {"terminationGracePeriodSeconds": 7200}}


@pytest.mark.parametrize(
    ("owner", "allowed", "seconds"),
    [
        # A StatefulSet creates a successor only when the old pod is gone, and the budget lets them go one by one.
        ("StatefulSet", 1, 14400),
        ("StatefulSet", 2, 7200),
        # The successor of a ReplicaSet's pod starts at once, so the graces overlap.
        ("ReplicaSet", 1, 7200),
    ],
)
def test_a_drain_takes_the_longest_chain_of_graces_under_budgets(owner: str, allowed: int, seconds: int) -> None:
    pods = [pod(f"db-{number}", on, "1", owner=owner, **TWO_HOURS) for number, on in enumerate("aab")]
    stays = pod("rest", "b", owner="")
    plan = planned(node("a"), node("b"), *pods, stays, budget("db", allowed), now=PlanningContext(now=NOW))
    note = next(note for note in plan.notes if "may take" in note)
    assert (f" {seconds} s" in note, "an estimate" in note) == (True, seconds > 7200)


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 4)), min_size=1))
def test_a_chain_is_never_shorter_than_its_longest_grace_nor_longer_than_their_sum(evictions: list[Any]) -> None:
    pods = pods_of(
        *(
            pod(f"db-{number}", "a", owner="StatefulSet", spec={"terminationGracePeriodSeconds": grace})
            for number, (grace, _) in enumerate(evictions)
        )
    )
    turns = {f"db-{number}": turn for number, (_, turn) in enumerate(evictions)}
    time = estimate_drain_time([(one, turns[one.name]) for one in pods])
    graces = [one.grace_seconds for one in pods]
    assert time is not None
    assert max(graces) <= time.seconds <= sum(graces)


def test_no_evictions_have_no_drain_time() -> None:
    assert estimate_drain_time(()) is None
