"""What `trimtab lint` knows of usage: from files, and from the recommendations that are published in the cluster."""

from pathlib import Path

import pytest

from tests.autoscaling.rule_cases_of import snapshot_of
from tests.build import owner_key
from trimtab.inputs.lint_usage import count_replicas, read_usage_history, summarize_series
from trimtab.usage.metric_names import NOTHING_STATED
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series

START = 1_767_571_200
HOUR, DAY = 3600, 86_400
WEB = (owner_key("Deployment/web", "shop"), "app")
OWNERS = OwnerIndex({("shop", pod): owner_key("Deployment/web", namespace="shop") for pod in ("a", "b", "new")})


def series(pod: str, values: list[float], *, first: int = START, step: int = 300, resource: str = "cpu") -> Series:
    times = [first + n * step for n in range(len(values))]
    return Series(namespace="shop", pod=pod, container="app", resource=resource, times=times, values=values)


def test_cpu_is_in_millicores_and_percentiles_are_values_that_were_measured() -> None:
    history = summarize_series([series("a", [n / 100 for n in range(1, 101)])], OWNERS)
    usage = history.containers[WEB]["cpu"]
    assert (usage.p5, usage.p50, usage.p90, usage.p95, usage.max) == pytest.approx((50, 500, 900, 950, 1000))
    assert usage.mean == pytest.approx(505)


def test_memory_stays_in_bytes() -> None:
    usage = summarize_series([series("a", [2e9] * 30, resource="memory")], OWNERS).containers[WEB]["memory"]
    assert usage.max == 2e9


def test_fewer_than_twenty_samples_are_no_history() -> None:
    assert summarize_series([series("a", [0.1] * 19)], OWNERS).containers == {}


def test_pods_of_a_workload_count_together_and_keep_their_own_means() -> None:
    usage = summarize_series([series("a", [0.1] * 20), series("b", [0.3] * 20)], OWNERS).containers[WEB]["cpu"]
    assert usage.mean == pytest.approx(200)
    assert sorted(usage.pod_means) == pytest.approx([100, 300])


def test_the_mean_of_a_single_pod_is_no_spread() -> None:
    assert summarize_series([series("a", [0.1] * 20)], OWNERS).containers[WEB]["cpu"].pod_means == ()


def test_the_peak_after_the_start_is_that_of_pods_that_began_within_the_history() -> None:
    old = series("a", [0.1] * 288)
    new = series("new", [2.0, *[0.1] * 40], first=START + 12 * HOUR)
    usage = summarize_series([old, new], OWNERS).containers[WEB]["cpu"]
    assert usage.start_peak == pytest.approx(2000)
    assert summarize_series([old], OWNERS).containers[WEB]["cpu"].start_peak is None


def test_the_idle_amount_is_that_of_the_quietest_of_at_least_three_days() -> None:
    days = [[0.5] * 288, [0.1] * 288, [0.4] * 288]
    assert summarize_series([series("a", days[0] + days[1])], OWNERS).containers[WEB]["cpu"].idle is None
    usage = summarize_series([series("a", days[0] + days[1] + days[2])], OWNERS).containers[WEB]["cpu"]
    assert usage.idle == pytest.approx(100)


def test_other_resources_are_left_out() -> None:
    assert summarize_series([series("a", [1.0] * 30, resource="disk")], OWNERS).containers == {}


def test_the_count_of_replicas_is_taken_hour_by_hour() -> None:
    lives = {"a": (START, START + 2 * DAY), "b": (START, START + 2 * DAY), "c": (START, START + 3 * HOUR)}
    usage = count_replicas(lives)
    assert usage is not None
    assert (usage.p5, usage.max) == (2, 3)


@pytest.mark.parametrize(
    "lives",
    [
        {"a": (START, START + DAY - 1), "b": (START, START + DAY - 1)},
        {"a": (START, START + 2 * DAY)},
        {"a": (START, START + DAY), "b": (START + DAY + HOUR, START + 2 * DAY)},
    ],
    ids=["less than a day", "one pod", "one pod after the other"],
)
def test_without_a_day_of_several_pods_the_count_is_not_known(lives: dict[str, tuple[int, int]]) -> None:
    assert count_replicas(lives) is None


def test_usage_of_files_is_that_of_the_workloads_of_the_snapshot(tmp_path: Path) -> None:
    rows = ["timestamp,namespace,pod,container,cpu"]
    rows += [f"{START + n * 300},shop,web-7d4b9c6f5d-bcdfg,web,0.25" for n in range(30)]
    (tmp_path / "usage.csv").write_text("\n".join(rows))
    history, _ = read_usage_history([str(tmp_path / "usage.csv")], snapshot_of("L35", "bad.yaml"), NOTHING_STATED)
    assert history is not None
    assert list(history.containers) == [(owner_key("Deployment/web", "shop"), "web")]


def test_without_files_and_recommendations_nothing_is_known() -> None:
    assert read_usage_history([], snapshot_of("L35", "bad.yaml"), NOTHING_STATED) == (None, [])
