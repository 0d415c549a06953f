"""The updater and the webhook with the numbers of the VPA's own tests (the names carry the cases' numbers)."""

from typing import Any

import pytest

from trimtab.autoscaling.simulation.vpa_updater import (
    ContainerEstimate,
    UpdatePriority,
    compute_update_priority,
    count_evictable_pods,
    is_update_due,
    scale_limit,
)
from trimtab.histogram.vpa_estimators import RecommenderFlags, VpaEstimate

MB = 10**6
DEFAULT = RecommenderFlags()


def container(requests: dict[str, int], **targets: Any) -> ContainerEstimate:
    """Targets are an amount (bounds far away), or (lower, target, upper)."""
    bounds = {name: each if isinstance(each, tuple) else (0, each, 10**14) for name, each in targets.items()}
    return ContainerEstimate(requests, {name: VpaEstimate(*each) for name, each in bounds.items()})


@pytest.mark.parametrize(
    ("case", "containers", "difference", "outside", "up"),
    [
        ("U3", [container({"cpu": 10}, cpu=900)], 89.0, False, True),
        ("U5", [container({"cpu": 8000}, cpu=(1000, 2000, 3000))], 0.75, True, False),
        ("U6", [container({"cpu": 3000, "memory": 10 * MB}, cpu=6000, memory=20 * MB)], 2.0, False, True),
        ("U8", [container({"cpu": 1000}, cpu=4000), container({"cpu": 2000}, cpu=8000)], 3.0, False, True),
        ("U9", [container({"cpu": 3000}, cpu=1000), container({"cpu": 7000}, cpu=2000)], 0.7, False, False),
        (
            "U10",
            [
                container({"cpu": 6000, "memory": 10 * MB}, cpu=8000, memory=20 * MB),
                container({"cpu": 4000, "memory": 30 * MB}, cpu=7000, memory=30 * MB),
            ],
            0.75,
            False,
            True,
        ),
    ],
)
def test_u_the_priority_of_an_update(
    case: str, containers: list[ContainerEstimate], difference: float, outside: bool, up: bool
) -> None:
    update_priority = compute_update_priority(containers)
    assert (update_priority.difference, update_priority.is_outside, update_priority.is_scale_up) == (
        pytest.approx(difference),
        outside,
        up,
    ), case


def test_a_missing_request_is_outside_of_every_bound() -> None:
    update_priority = compute_update_priority([container({}, cpu=100)])
    assert (update_priority.is_outside, update_priority.is_scale_up) == (True, True)


@pytest.mark.parametrize(
    ("difference", "outside", "hours", "due"),
    [
        (0.05, True, 0, True),
        (0.5, False, 11.9, False),
        (0.5, False, 12, True),
        (0.09, False, 24, False),
        (0.1, False, 24, True),
        (0.0, True, 24, False),
    ],
)
def test_an_update_is_due_outside_of_the_bounds_or_after_half_a_day(
    difference: float, outside: bool, hours: float, due: bool
) -> None:
    assert is_update_due(UpdatePriority(difference, outside, True), hours * 3600, DEFAULT) is due


@pytest.mark.parametrize(("replicas", "evictable"), [(1, 0), (2, 1), (3, 1), (4, 2), (10, 5)])
def test_half_of_the_pods_may_go_and_a_single_one_never(replicas: int, evictable: int) -> None:
    assert count_evictable_pods(replicas, DEFAULT) == evictable


def test_a_single_replica_may_go_where_the_flag_says_so() -> None:
    assert count_evictable_pods(1, RecommenderFlags(min_replicas=1)) == 1


@pytest.mark.parametrize(
    ("case", "arguments", "expected"),
    [
        ("LM1", (2000, 1000, 10_000), 20_000),
        ("LM2", (None, 1000, 10_000, 2000), 20_000),
        ("LM3", (None, 1000, 10_000), None),
        ("LM3", (2000, 1000, 0), None),
        ("LM4", (2000, None, 10_000), 10_000),
        ("LM5", (1000, 1000, 10_000), 10_000),
        ("LM6", (2000, 1500, 1000), 1333),
        ("LM6", (200, 150, 100), 133),
        ("LM8", (1000, 20, 300), 15_000),
        ("LM8", (1000, 500, 300), 600),
    ],
)
def test_lm_a_limit_keeps_its_ratio(case: str, arguments: Any, expected: int | None) -> None:
    assert scale_limit(*arguments) == expected, case
