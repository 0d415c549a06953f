"""A VPA on series: what it asks for, when it acts, what that costs."""

import csv
import gzip
import os
from collections import defaultdict
from pathlib import Path

import pytest

from trimtab.autoscaling.simulation.simulate_vpa import PodSeries, VpaOutcome, recommend_from_series, simulate_vpa
from trimtab.histogram.vpa import CPU_SCALE, MEMORY_SCALE
from trimtab.histogram.vpa_estimators import DEFAULT_FLAGS, RecommenderFlags

MINUTE, HOUR, DAY = 60, 3600, 86400
T0 = 1_704_067_200
"""2024-01-01T00:00Z."""
FAST = RecommenderFlags(cpu_half_life_seconds=900, lower_bound_cpu_percentile=0.7)
SHARED = Path(os.environ.get("TRIMTAB_SHARED", "../shared")) / "data" / "usage" / "bitbrains"


def steps(*parts: tuple[float, float], step: int = MINUTE, pod: str = "p") -> PodSeries:
    """(hours, cores) one after the other."""
    times, values, now = [], [], T0
    for hours, cores in parts:
        count = int(hours * HOUR / step)
        times += [now + n * step for n in range(count)]
        values += [cores] * count
        now += count * step
    return PodSeries(pod, "cpu", times, values)


def run(*series: PodSeries, flags: RecommenderFlags = DEFAULT_FLAGS, **more: object) -> VpaOutcome:
    return simulate_vpa(series, flags, **more)  # type: ignore[arg-type]


def pair(*parts: tuple[float, float], step: int = 300) -> tuple[PodSeries, PodSeries]:
    return steps(*parts, pod="a", step=step), steps(*parts, pod="b", step=step)


def minutes_until(outcome: VpaOutcome, above: int, since_hours: float) -> float:
    """Minutes after which every pod had more than so many millicores."""
    pods = {change.pod for change in outcome.changes}
    seconds = {
        pod: next(
            change.second
            for change in outcome.changes
            if change.pod == pod and change.second >= T0 + since_hours * HOUR and change.requests["cpu"] > above
        )
        for pod in pods
    }
    return (max(seconds.values()) - T0 - since_hours * HOUR) / MINUTE


def test_a_rise_reaches_an_old_pod_after_the_targets_time() -> None:
    outcome = run(*pair((24, 0.1), (1, 1.0), step=60), flags=FAST, initial={"cpu": 100})
    assert minutes_until(outcome, 1000, 24) == pytest.approx(2.3, abs=1.8)


def test_with_defaults_a_rise_takes_hours() -> None:
    outcome = run(*pair((10 * 24, 0.1), (8, 1.0)), initial={"cpu": 126})
    assert minutes_until(outcome, 1000, 240) == pytest.approx(219, rel=0.05)


def test_a_drop_takes_days_with_defaults_and_an_hour_with_a_short_half_life() -> None:
    series = pair((6 * 24, 1.0), (30, 0.1))
    assert run(*series, initial={"cpu": 1168}).evictions == 0
    outcome = run(*series, flags=FAST, initial={"cpu": 1168})
    down = next(change for change in outcome.changes if change.second > T0 + 6 * DAY)
    assert (down.second - T0 - 6 * DAY) / MINUTE == pytest.approx(50, abs=6)


def test_a_single_replica_is_never_evicted_and_that_is_counted() -> None:
    outcome = run(steps((24, 0.1), (24, 1.0)), flags=FAST, initial={"cpu": 100})
    assert (outcome.evictions, outcome.blocked_rounds > 0) == (0, True)
    assert outcome.outcomes["cpu"].starved_share == pytest.approx(0.5, abs=0.01)


def test_one_pod_is_evicted_at_a_time_of_two() -> None:
    outcome = run(*pair((48, 0.1), (2, 1.0)), flags=FAST, initial={"cpu": 100})
    seconds = [change.second for change in outcome.changes if change.cause == "evicted"]
    assert len(seconds) == len(set(seconds)) == outcome.evictions


def test_in_place_there_are_resizes_and_no_evictions() -> None:
    outcome = run(*pair((48, 0.1), (2, 1.0)), flags=FAST, initial={"cpu": 100}, in_place=True)
    assert outcome.evictions == 0
    assert outcome.resizes > 0


def test_a_new_pod_gets_the_target_of_its_moment() -> None:
    late = PodSeries("late", "cpu", [T0 + 2 * DAY, T0 + 2 * DAY + 60], [0.5, 0.5])
    outcome = run(steps((48, 1.0)), late, updates=False, initial={"cpu": 10})
    assert [change.requests["cpu"] for change in outcome.changes] == [10, 1168]


def test_waste_and_starvation_add_up_to_requests_and_usage() -> None:
    outcome = run(steps((10, 0.2), (10, 0.6)), updates=False, initial={"cpu": 400}).outcomes["cpu"]
    assert outcome.requested + outcome.missing == pytest.approx(outcome.used + outcome.wasted)
    assert (outcome.wasted, outcome.missing) == (pytest.approx(2.0, rel=0.01), pytest.approx(2.0, rel=0.01))
    assert outcome.longest_starved_seconds == pytest.approx(10 * HOUR)


def test_without_samples_there_is_no_recommendation() -> None:
    assert run().last == {}


def test_memory_counts_by_its_daily_peak() -> None:
    times = [T0 + n * HOUR for n in range(72)]
    series = PodSeries("p", "memory", times, [1e9 if n % 24 == 5 else 1e8 for n in range(72)])
    bucket = MEMORY_SCALE.bucket_start(MEMORY_SCALE.find_bucket(1e9) + 1)
    assert recommend_from_series([series])["memory"].target == int(bucket) + int(int(bucket) * 0.15)


@pytest.mark.skipif(not SHARED.exists(), reason=f"the Bitbrains series are not in {SHARED}: set TRIMTAB_SHARED")
@pytest.mark.parametrize("days", [14, 21])
def test_the_recommendation_is_the_vpas_own_on_real_series(days: int) -> None:
    cut = 1_372_636_800 + days * DAY
    rows: dict[str, dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(SHARED / "july.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            second = int(row["timestamp"])
            if cut - 14 * DAY <= second < cut:
                for resource in ("cpu", "memory"):
                    if row[resource]:
                        rows[row["workload"]][resource].append((second, float(row[resource])))
    with (SHARED / f"vpa-{days}.csv").open() as file:
        theirs = {row["workload"]: (int(row["cpu_milli"]), int(row["memory_bytes"])) for row in csv.DictReader(file)}
    assert len(theirs) >= 100
    near = 0
    for workload, (cpu, memory) in theirs.items():
        series = [PodSeries("p", name, *zip(*result, strict=True)) for name, result in rows[workload].items()]
        ours = recommend_from_series(series)
        cpu_buckets = [CPU_SCALE.find_bucket(amount / 1150) for amount in (ours["cpu"].target, cpu)]
        memory_buckets = [MEMORY_SCALE.find_bucket(amount / 1.15) for amount in (ours["memory"].target, memory)]
        near += all(abs(first - second) <= 1 for first, second in (cpu_buckets, memory_buckets))
    assert near / len(theirs) >= 0.99
