"""Sleep schedules that a cluster has, and those that are proposed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import owner_key
from tests.idle.cluster_with_orphans import item
from tests.idle.test_quiet_hours import known, weeks
from trimtab.idle.quiet_hours import HOURS_PER_WEEK, find_runs
from trimtab.idle.sleep_proposals import (
    MIN_WINDOW_HOURS,
    find_missed_sleep,
    propose_daily_sleep,
    propose_scale_to_zero,
    propose_sleep_infos,
)
from trimtab.idle.sleep_schedules import SleepSchedule, parse_cron_days, read_sleep_schedules

OFFICE = frozenset(h for h in range(HOURS_PER_WEEK) if not (8 <= h % 24 < 18 and h < 120))
"""Everything but Monday to Friday from 8 to 18."""
WEB = owner_key("Deployment/web", "shop")


def schedule(*manifests: dict[str, Any]) -> SleepSchedule:
    (result,), problems = read_sleep_schedules(manifests)
    assert problems == ()
    return result


def sleep_info(**spec: Any) -> dict[str, Any]:
    return item(
        "SleepInfo", "shop", "nights", spec={"weekdays": "1-5", "sleepAt": "18:00", "wakeUpAt": "08:00", **spec}
    )


def cron(start: str, end: str, **more: Any) -> dict[str, Any]:
    trigger = {"type": "cron", "metadata": {"timezone": "UTC", "start": start, "end": end}}
    return item("ScaledObject", "shop", "s", spec={"scaleTargetRef": {"name": "web"}, "triggers": [trigger], **more})


@pytest.mark.parametrize(
    "manifest",
    [
        sleep_info(),
        cron("0 8 * * 1-5", "0 18 * * 1-5"),
        item("Deployment", "shop", "web", metadata={"annotations": {"downscaler/uptime": "Mon-Fri 08:00-18:00 UTC"}}),
        item("Namespace", "", "shop", metadata={"annotations": {"downscaler/uptime": "Mon-Fri 08:00-18:00 UTC"}}),
    ],
)
def test_every_kind_of_schedule_is_read_as_hours_of_the_week(manifest: dict[str, Any]) -> None:
    sleep_schedule = schedule(manifest)
    assert sleep_schedule.asleep == OFFICE
    assert sleep_schedule.covers_workload(WEB)


def test_a_target_without_a_version_is_of_the_group_that_keda_assumes() -> None:
    """`apps` for every kind, and a Rollout is of another group."""
    rollout = cron("0 8 * * 1-5", "0 18 * * 1-5", scaleTargetRef={"name": "web", "kind": "Rollout"})
    assert [str(target.kind) for target in schedule(rollout).targets] == ["Rollout.apps"]


def test_a_half_hour_counts_as_awake() -> None:
    assert 17 not in schedule(sleep_info(sleepAt="17:30")).asleep
    assert 18 in schedule(sleep_info(sleepAt="17:30")).asleep


def test_excluded_workloads_and_other_kinds_are_not_covered() -> None:
    sleep_schedule = schedule(sleep_info(excludeRef=[{"kind": "Deployment", "name": "web"}]))
    assert not sleep_schedule.covers_workload(WEB)
    assert not sleep_schedule.covers_workload(owner_key("StatefulSet/db", "shop"))
    assert sleep_schedule.covers_workload(owner_key("Deployment/other", "shop"))


@pytest.mark.parametrize(
    "manifest",
    [
        cron("0 8 * * 1-5", "0 18 * * 1-5", minReplicaCount=1),
        cron("0 8 * * 1-5", "0 18 * * 1-5", triggers=[{"type": "cron"}, {"type": "kafka"}]),
    ],
)
def test_a_scaled_object_that_keeps_pods_or_may_wake_is_no_schedule(manifest: dict[str, Any]) -> None:
    assert read_sleep_schedules([manifest]) == ((), ())


@pytest.mark.parametrize(
    "manifest", [sleep_info(sleepAt="*:*"), sleep_info(weekdays="funday"), sleep_info(timeZone="Mars/X")]
)
def test_what_is_not_understood_is_named(manifest: dict[str, Any]) -> None:
    schedules, (problem,) = read_sleep_schedules([manifest])
    assert schedules == ()
    assert problem.where == "SleepInfo shop/nights"


@pytest.mark.parametrize(
    ("text", "days"), [("*", range(7)), ("1-5", range(5)), ("0,6", (5, 6)), ("fri-mon", (0, 4, 5, 6)), ("7", (6,))]
)
def test_days_of_cron_begin_with_sunday(text: str, days: Any) -> None:
    assert parse_cron_days(text) == tuple(days)


def test_the_office_week_becomes_one_daily_sleep() -> None:
    daily_sleep = propose_daily_sleep(OFFICE)
    assert daily_sleep is not None
    assert (daily_sleep.days, daily_sleep.sleep_hour, daily_sleep.wake_hour, daily_sleep.asleep) == (
        (0, 1, 2, 3, 4),
        18,
        8,
        OFFICE,
    )


@given(st.sets(st.integers(0, HOURS_PER_WEEK - 1), min_size=100).map(frozenset))
def test_a_proposed_sleep_has_no_busy_hour_and_is_long_enough(quiet: frozenset[int]) -> None:
    daily_sleep = propose_daily_sleep(quiet)
    if daily_sleep is not None:
        assert daily_sleep.asleep <= quiet
        assert all(count >= MIN_WINDOW_HOURS for _, count in find_runs(daily_sleep.asleep))


def test_a_sleep_info_excludes_what_never_sleeps_and_reads_back_as_proposed() -> None:
    quiet = known(weeks(2, range(8, 18)), request_cores=1.0)
    (proposed,) = propose_sleep_infos(
        {WEB: quiet}, [WEB, owner_key("Deployment/api", "shop"), owner_key("Deployment/x", "other")]
    )
    assert proposed["spec"] == {
        "weekdays": "1-5",
        "sleepAt": "18:00",
        "wakeUpAt": "08:00",
        "timeZone": "UTC",
        "excludeRef": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}],
    }
    assert schedule(proposed).asleep == OFFICE


def test_a_stateful_set_alone_leaves_deployments_alone() -> None:
    quiet = known(weeks(2, range(8, 18)), request_cores=1.0)
    (proposed,) = propose_sleep_infos({owner_key("StatefulSet/db", "shop"): quiet}, [WEB])
    sleep_schedule = schedule(proposed)
    assert sleep_schedule.covers_workload(owner_key("StatefulSet/db", "shop"))
    assert not sleep_schedule.covers_workload(WEB)


def test_a_namespace_with_a_schedule_gets_no_other() -> None:
    quiet = known(weeks(2, range(8, 18)), request_cores=1.0)
    assert propose_sleep_infos({WEB: quiet}, [WEB], scheduled=["shop"]) == ()


def test_an_hpa_may_scale_to_zero_only_with_a_metric_from_outside_and_a_new_server() -> None:
    quiet = {WEB: known(weeks(2, range(8, 18)), request_cores=1.0)}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    outside = item(
        "HorizontalPodAutoscaler", "shop", "a", spec={"scaleTargetRef": target, "metrics": [{"type": "External"}]}
    )
    inside = item(
        "HorizontalPodAutoscaler", "shop", "b", spec={"scaleTargetRef": target, "metrics": [{"type": "Resource"}]}
    )
    (patch,) = propose_scale_to_zero(quiet, [outside, inside], (1, 37))
    assert (patch["metadata"]["name"], patch["spec"]) == ("a", {"minReplicas": 0})
    assert propose_scale_to_zero(quiet, [outside], (1, 36)) == ()
    assert propose_scale_to_zero(quiet, [outside], None) == ()


def test_a_schedule_that_misses_the_weekend_and_sleeps_at_work_is_told() -> None:
    quiet = known(weeks(2, range(8, 18)), request_cores=1.0)
    late = schedule(sleep_info(weekdays="*", sleepAt="22:00", wakeUpAt="10:00"))
    missed_sleep = find_missed_sleep(WEB, late, quiet)
    assert missed_sleep is not None
    assert missed_sleep.awake_and_quiet[0] == (18, 4)
    assert missed_sleep.asleep_and_busy == tuple((day * 24 + 8, 2) for day in range(5))


def test_a_schedule_that_fits_is_not_told() -> None:
    assert find_missed_sleep(WEB, schedule(sleep_info()), known(weeks(2, range(8, 18)), request_cores=1.0)) is None
