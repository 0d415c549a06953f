"""What is the next step of a resize?"""

from typing import Any

import pytest
from msgspec.structs import replace as change

from tests.compaction.resize.running import NOW, OWNER, oom_killed, pending, running, shrinks
from tests.reasons import has_facts
from trimtab.cluster.api.pod import Condition, Container, Resources
from trimtab.cluster.resizable_pod import ResizablePod
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.records import (
    MAX_REMEMBERED,
    OpenResize,
    ResizePhase,
    ResizeRecords,
    WorkloadFailure,
    WorkloadProgress,
)
from trimtab.compaction.resize.state_machine import ResizePlanner, ResizeView
from trimtab.compaction.resize.steps import (
    Advance,
    Await,
    Finish,
    Replace,
    Resize,
    ResizeStep,
    Revert,
    record_step,
    reject_step,
)
from trimtab.compaction.resize.types import MeasuredUse, ResizeSettings

INIT = {"init_containers": (Container(name="migrate", resources=Resources(requests={"cpu": "2"})),)}
"""An init container, which has ended, and by which the node still counts the pod."""
SETTINGS = ResizeSettings(verify_seconds=600, changes_per_hour=10)
ROOM = {"a": {"cpu": 4000, "memory": 64 << 30}}


def record(name: str = "web-1", **more: Any) -> OpenResize:
    proposal = shrinks(name)
    fields: dict[str, Any] = {"since": NOW - 30, "restarts": {"app": 0}, "changes": proposal.changes, **more}
    return OpenResize(pod=proposal.pod, node="a", owner=OWNER, **fields)


def verifying(name: str = "web-1", **more: Any) -> OpenResize:
    return record(name, phase=ResizePhase.VERIFYING, **more)


def steps(
    records: ResizeRecords, *pods: ResizablePod, proposals: tuple[Any, ...] = (), **more: Any
) -> list[ResizeStep]:
    more = {"free": ROOM, "pods_of_owner": {OWNER: len(pods)}, **more}
    view = ResizeView(now=NOW, pods={pod.uid: pod for pod in pods}, **more)
    return list(ResizePlanner(records, view, SETTINGS).next_steps(proposals))


def step_of(one: OpenResize, pod: ResizablePod | None, **more: Any) -> ResizeStep:
    (step,) = steps(ResizeRecords(open={"uid-web-1": one}), *([pod] if pod else []), **more)
    return step


def replicas(count: int, **more: Any) -> list[ResizablePod]:
    return [running(f"web-{number}", **more) for number in range(1, count + 1)]


# ── starting ─────────────────────────────────────────────────────────────
def test_the_first_wave_is_a_tenth_of_the_workload():
    proposals = tuple(shrinks(f"web-{number}") for number in range(1, 31))
    started = steps(ResizeRecords(), *replicas(30), proposals=proposals)
    assert len(started) == 3
    assert all(isinstance(step, Resize) for step in started)
    assert "canary of 3" in str(started[0].reason)


def test_a_workload_of_one_pod_is_its_own_canary():
    (step,) = steps(ResizeRecords(), running(), proposals=(shrinks("web-1"),))
    assert isinstance(step, Resize)
    assert step.record.restarts == {"app": 0}


def test_no_wave_begins_while_one_is_verified():
    records = ResizeRecords(open={"uid-web-1": verifying(since=NOW - 60)})
    resize_steps = steps(records, running(cpu="200m"), running("web-2"), proposals=(shrinks("web-2"),))
    assert [type(step) for step in resize_steps] == [Await]


def test_each_verified_wave_doubles_the_next():
    records = ResizeRecords(open={"uid-web-1": verifying(since=NOW - 700)})
    (done,) = steps(records, running(cpu="200m"))
    records = record_step(records, done, NOW)
    assert records.progress[OWNER].waves == 1
    proposals = tuple(shrinks(f"web-{number}") for number in range(1, 31))
    assert len(steps(records, *replicas(30), proposals=proposals)) == 6


def test_requests_that_are_much_smaller_than_verified_ones_begin_with_a_canary_again():
    records = record_step(
        ResizeRecords(open={"uid-web-1": verifying(since=NOW - 700)}),
        Finish("uid-web-1", verifying(since=NOW - 700), r.VERIFIED("well")),
        NOW,
    )
    assert records.wave_of(OWNER, {"app/cpu": 200}) == 1
    assert records.wave_of(OWNER, {"app/cpu": 195}) == 1
    assert records.wave_of(OWNER, {"app/cpu": 150}) == 0


def test_a_pool_has_a_budget_of_changes_an_hour():
    proposals = tuple(shrinks(f"p{number}-1", owner=f"default/Deployment/p{number}") for number in range(20))
    pods = [running(f"p{number}-1") for number in range(20)]
    planner = ResizePlanner(
        ResizeRecords(times=(NOW - 60,) * 4), ResizeView(now=NOW, pods={pod.uid: pod for pod in pods}), SETTINGS
    )
    assert len(planner.next_steps(proposals)) == 6
    assert planner.waiting == {r.PACE.name: 14}


def test_nothing_starts_where_nothing_may_be_resized():
    planner = ResizePlanner(
        ResizeRecords(),
        ResizeView(now=NOW, pods={"uid-web-1": running()}, stop=r.NOT_ACTING("the pool rehearses")),
        SETTINGS,
    )
    assert planner.next_steps((shrinks("web-1"),)) == ()
    assert planner.waiting == {r.NOT_ACTING.name: 1}


def test_a_workload_that_failed_backs_off():
    records = ResizeRecords(failures={OWNER: WorkloadFailure(times=1, last=NOW - 3000)})
    assert not steps(records, running(), proposals=(shrinks("web-1"),))
    records = ResizeRecords(failures={OWNER: WorkloadFailure(times=1, last=NOW - 3700)})
    assert steps(records, running(), proposals=(shrinks("web-1"),))


# ── resizing ─────────────────────────────────────────────────────────────
def test_a_resize_that_the_kubelet_made_is_verified():
    step = step_of(record(), running(cpu="200m"))
    assert isinstance(step, Advance)
    assert (step.record.phase, step.record.began) == (ResizePhase.VERIFYING, NOW)


def test_a_pod_that_grew_is_done_when_its_kubelet_says_so():
    grown = record(changes=(shrinks("web-1", "500m", "900m").changes))
    step = step_of(grown, running(cpu="900m"))
    assert isinstance(step, Finish)
    assert step.reason.code is r.VERIFIED


def test_an_infeasible_resize_is_taken_back_at_once():
    step = step_of(record(), running(cpu="200m", conditions=(pending("Infeasible"),)))
    assert isinstance(step, Revert)
    assert step.reason.code is r.INFEASIBLE
    assert "the node is Infeasible" in str(step.reason)
    assert [str(each) for each in step.changes] == ["app cpu 200m → 500m"]


def test_a_deferred_resize_waits_for_a_while_and_is_taken_back():
    deferred = running(cpu="200m", conditions=(pending("Deferred"),))
    assert isinstance(step_of(record(), deferred), Await)
    step = step_of(record(since=NOW - 301), deferred)
    assert isinstance(step, Revert)
    assert step.reason.code is r.DEFERRED


def test_a_kubelet_that_does_not_answer_is_not_waited_for():
    silent = running(cpu="200m", has={"cpu": "500m", "memory": "512Mi"})
    assert isinstance(step_of(record(), silent), Await)
    step = step_of(record(since=NOW - 121), silent)
    assert isinstance(step, Revert)
    assert step.reason.code is r.NO_ANSWER


def test_a_resize_that_was_announced_and_never_written_is_forgotten():
    assert isinstance(step_of(record(), running()), Await)
    step = step_of(record(since=NOW - 61), running())
    assert isinstance(step, Finish)
    assert step.reason.code is r.NOT_WRITTEN


def test_a_write_that_is_not_observed_yet_is_waited_for():
    assert isinstance(step_of(record(since=NOW - 61), running(), in_flight=frozenset({"uid-web-1"})), Await)


def test_a_pod_that_another_client_changed_is_left_to_it():
    step = step_of(record(), running(cpu="300m"))
    assert isinstance(step, Finish)
    assert step.reason.code is r.CHANGED


def test_a_pod_that_is_gone_needs_nothing():
    assert isinstance(step_of(verifying(), None), Finish)
    assert isinstance(step_of(verifying(), running(cpu="200m", deleted="2026-01-01T00:00:00Z")), Finish)


# ── harm ─────────────────────────────────────────────────────────────────
HARM: list[tuple[dict[str, Any], Any]] = [
    ({"last_state": oom_killed(NOW - 5), "restarts": 1}, r.OOM_KILL),
    ({"state": oom_killed(NOW - 5)}, r.OOM_KILL),
    ({"restarts": 1}, r.RESTARTED),
    ({"ready": False, "ready_changed": NOW - 90}, r.UNREADY),
]


@pytest.mark.parametrize(("more", "code"), HARM)
def test_a_pod_that_is_harmed_is_reverted_at_once(more: dict[str, Any], code: Any):
    step = step_of(verifying(since=NOW - 200, phase_since=NOW - 190), running(cpu="200m", **more))
    assert isinstance(step, Revert)
    assert step.reason.code is code
    assert step.record.phase is ResizePhase.REVERTING
    after = record_step(ResizeRecords(open={"uid-web-1": verifying(since=NOW - 200)}), step, NOW)
    assert after.failures[OWNER] == WorkloadFailure(times=1, last=NOW, code=code.name)


def test_pressure_and_throttling_above_what_they_were_are_harm():
    for use, code in (
        (MeasuredUse(pressures={"uid-web-1": 35}), r.PRESSURE),
        (MeasuredUse(throttled={"uid-web-1": 35}), r.THROTTLED),
    ):
        step = step_of(verifying(), running(cpu="200m"), use=use)
        assert isinstance(step, Revert)
        assert step.reason.code is code
    before = MeasuredUse(pressures={"uid-web-1": 35})
    assert isinstance(step_of(verifying(pressure=30), running(cpu="200m"), use=before), Await)


def test_what_happened_before_the_resize_is_no_harm():
    old = running(cpu="200m", last_state=oom_killed(NOW - 5000), restarts=3)
    assert isinstance(step_of(verifying(restarts={"app": 3}), old), Await)


def test_a_node_that_is_not_ready_says_nothing_of_its_pods():
    lost = running(cpu="200m", ready=False, ready_changed=NOW - 90)
    assert isinstance(step_of(verifying(since=NOW - 200), lost, unready_nodes=frozenset({"a"})), Await)


def test_harm_to_one_pod_reverts_its_whole_wave_and_counts_once():
    records = ResizeRecords(open={f"uid-web-{n}": verifying(f"web-{n}", since=NOW - 100) for n in (1, 2)})
    killed = running("web-1", cpu="200m", last_state=oom_killed(NOW - 5), restarts=1)
    resize_steps = steps(records, killed, running("web-2", cpu="200m"))
    assert [(type(step), step.reason.code) for step in resize_steps] == [(Revert, r.OOM_KILL), (Revert, r.WITH_OTHERS)]
    for step in resize_steps:
        records = record_step(records, step, NOW)
    assert records.failures[OWNER].times == 1


def test_a_wave_with_a_failure_advances_nothing():
    records = ResizeRecords(open={f"uid-web-{n}": verifying(f"web-{n}", since=NOW - 700) for n in (1, 2)})
    records = records.with_failure(OWNER, "resize-infeasible", NOW - 100).without_open("uid-web-1")
    records = records.with_verified("uid-web-2", NOW)
    assert not records.progress
    assert OWNER in records.failures


# ── reverts ──────────────────────────────────────────────────────────────
def reverting(**more: Any) -> OpenResize:
    return record(phase=ResizePhase.REVERTING, code=r.OOM_KILL.name, why="it ran out of memory", **more)


def test_a_revert_is_over_when_the_kubelet_gave_back_what_was_there():
    step = step_of(reverting(), running(cpu="500m"))
    assert isinstance(step, Finish)
    assert step.reason.code is r.REVERTED


def test_a_revert_that_did_not_reach_the_pod_is_written_again():
    step = step_of(reverting(), running(cpu="200m"))
    assert isinstance(step, Revert)
    assert not step.is_new


def test_a_revert_without_room_stops_the_wave_and_the_pool():
    full = {"a": {"cpu": 200, "memory": 1 << 30}}
    killed = running(cpu="200m", restarts=1)
    records = ResizeRecords(open={"uid-web-1": verifying()})
    (step,) = steps(records, killed, free=full, proposals=(shrinks("x-1", owner="default/Deployment/x"),))
    assert isinstance(step, Advance)
    assert (step.reason.code, step.record.phase) == (r.NO_ROOM, ResizePhase.REPLACING)
    after = record_step(records, step, NOW)
    assert after.stopped_at == NOW
    assert OWNER in after.failures


def replacing(**more: Any) -> OpenResize:
    return record(phase=ResizePhase.REPLACING, code=r.OOM_KILL.name, why="it ran out of memory", **more)


def test_a_pod_without_room_for_its_revert_is_replaced_only_within_its_budget():
    full = {"a": {"cpu": 0}}
    refused = step_of(replacing(), running(cpu="200m"), free=full, eviction_refusal=lambda _: r.NO_ROOM("no budget"))
    assert isinstance(refused, Await)
    assert has_facts(str(refused.reason), "cannot be evicted", "no budget")
    assert isinstance(step_of(replacing(), running(cpu="200m"), free=full, eviction_refusal=lambda _: None), Replace)


def test_room_that_comes_back_is_used_for_the_revert():
    assert isinstance(step_of(replacing(), running(cpu="200m")), Revert)


def test_a_revert_that_the_kubelet_defers_found_no_room():
    step = step_of(reverting(), running(cpu="500m", conditions=(pending("Deferred"),)))
    assert isinstance(step, Advance)
    assert step.stops_pool
    done = step_of(replacing(), running(cpu="500m"))
    assert isinstance(done, Finish)
    assert done.reason.code is r.REVERTED


@pytest.mark.parametrize("conditions", [(), (Condition(type="PodResizeInProgress", status="True"),)])
def test_a_pod_whose_revert_the_kubelet_applies_at_last_is_not_evicted(conditions: tuple[Condition, ...]):
    pod = running(cpu="500m", has={"cpu": "200m", "memory": "512Mi"}, conditions=conditions)
    step = step_of(replacing(), pod, free={"a": {"cpu": 0}}, eviction_refusal=lambda _: None)
    assert isinstance(step, Await)


def test_what_an_init_container_requests_anyway_needs_no_room_for_a_revert():
    full = {"a": {"cpu": 0, "memory": 0}}
    assert isinstance(step_of(verifying(), running(cpu="200m", restarts=1, spec=INIT), free=full), Revert)


def test_two_reverts_do_not_share_the_same_room():
    records = ResizeRecords(open={f"uid-web-{n}": verifying(f"web-{n}") for n in (1, 2)})
    killed = running("web-1", cpu="200m", restarts=1)
    resize_steps = steps(records, killed, running("web-2", cpu="200m"), free={"a": {"cpu": 400}})
    assert [type(step) for step in resize_steps] == [Revert, Advance]


def test_a_pod_that_was_replaced_counts_as_such():
    records = ResizeRecords(open={"uid-web-1": replacing()})
    (step,) = steps(records)
    assert record_step(records, step, NOW).replaced == 1


def test_a_rejected_resize_is_forgotten_and_the_workload_backs_off():
    (step,) = steps(ResizeRecords(), running(), proposals=(shrinks("web-1"),))
    assert isinstance(step, Resize)
    records = reject_step(record_step(ResizeRecords(), step, NOW), step, NOW)
    assert not records.open
    assert records.failures[OWNER].code == r.REJECTED.name


def test_times_in_the_future_are_brought_to_now():
    ahead = ResizeRecords(open={"uid-web-1": record(since=NOW + 5000)}, stopped_at=NOW + 5000)
    result = ahead.without_old_entries(NOW)
    assert (result.open["uid-web-1"].since, result.stopped_at) == (NOW, NOW)


def test_open_resizes_are_never_forgotten():
    old = ResizeRecords(open={"uid-web-1": record(since=1)}, times=(1,))
    assert old.without_old_entries(NOW) == change(old, times=())


def test_workloads_of_a_namespace_without_end_make_no_other_begin_with_a_canary_again():
    theirs = {f"tenant/Deployment/web-{n}": WorkloadProgress(waves=1, at=NOW, targets={}) for n in range(3000)}
    ours = {"shop/Deployment/api": WorkloadProgress(waves=3, at=NOW - 86400, targets={})}
    kept = ResizeRecords(progress={**theirs, **ours}).without_old_entries(NOW).progress
    assert (len(kept), "shop/Deployment/api" in kept) == (MAX_REMEMBERED, True)


def test_what_the_node_still_holds_for_a_pod_needs_no_room_to_be_reverted():
    refused = running(cpu="200m", has={"cpu": "500m", "memory": "512Mi"}, conditions=(pending("Infeasible"),))
    step = step_of(record(), refused, free={"a": {"cpu": 0}})
    assert isinstance(step, Revert)
