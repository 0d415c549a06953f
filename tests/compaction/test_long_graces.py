"""Pods that may take long to stop: the plan says so, and a drain that only waits for them holds no place."""

from dataclasses import replace

from tests.cluster_of import ALL, NOW, Item, cluster, node, pod
from tests.compaction.plans import planned
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pod import PodInfo
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import ActiveDrains, steps_to_start
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.long_graces import is_only_stopping, longest_grace
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
