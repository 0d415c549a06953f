"""The loop of an HPA and a VPA at constant load."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.autoscaling.replica_prediction import (
    ReplicaDirection,
    describe_prediction,
    predict_replicas,
    ratios_at_rest,
    targets_at_rest,
)

UP, DOWN, REST = ReplicaDirection.UP, ReplicaDirection.DOWN, ReplicaDirection.AT_REST


@pytest.mark.parametrize(
    ("k", "replicas", "total", "target", "counts", "direction"),
    [
        (1, 3, 3000, 50, (3, 6, 11, 20, 35, 61, 107, 187, 200), UP),
        (1, 3, 3000, 70, (3, 4, 5, 7, 9, 12, 15, 19, 24), UP),
        (1, 3, 3000, 80, (3, 3), REST),
        (1, 3, 3000, 90, (3, 3), REST),
        (0.85, 6, 6000, 50, (6, 9, 14, 21, 32, 48, 71), UP),
        (0.85, 6, 6000, 60, (6, 8, 10, 13, 16, 20, 25), UP),
        (0.85, 6, 6000, 70, (6, 6), REST),
        (0.5, 6, 6000, 50, (6, 6), REST),
        (0.5, 6, 6000, 60, (6, 5, 4, 3), DOWN),
        (0.5, 6, 6000, 70, (6, 4, 3, 2), DOWN),
    ],
)
def test_the_counts_of_the_published_scenarios(
    k: float, replicas: int, total: float, target: int, counts: tuple[int, ...], direction: ReplicaDirection
) -> None:
    prediction = predict_replicas(mean_to_p90=k, replicas=replicas, total=total, target_percent=target)
    assert prediction.counts[: len(counts)] == counts
    assert prediction.direction is direction


@pytest.mark.parametrize(
    ("k", "replicas", "total", "target", "direction"),
    [(0.4, 20, 20_000, 35, REST), (0.4, 20, 20_000, 60, DOWN), (0.7, 10, 20_000, 45, UP), (0.6, 12, 9000, 90, DOWN)],
)
def test_the_direction_of_our_own_scenarios(
    k: float, replicas: int, total: float, target: int, direction: ReplicaDirection
) -> None:
    prediction = predict_replicas(mean_to_p90=k, replicas=replicas, total=total, target_percent=target)
    assert prediction.direction is direction


@pytest.mark.parametrize(
    ("k", "lowest", "highest"), [(1, 79.1, 96.6), (0.85, 67.2, 82.1), (0.7, 55.3, 67.6), (0.5, 39.5, 48.3)]
)
def test_the_targets_at_rest(k: float, lowest: float, highest: float) -> None:
    assert targets_at_rest(k) == pytest.approx((lowest, highest), abs=0.05)


@given(k=st.floats(0.2, 1.0), target=st.integers(20, 95), replicas=st.integers(8, 100))
def test_outside_of_the_band_a_large_count_moves_in_the_direction_of_the_band(
    k: float, target: int, replicas: int
) -> None:
    lowest, highest = targets_at_rest(k)
    prediction = predict_replicas(
        mean_to_p90=k, replicas=replicas, total=1e9, target_percent=target, max_replicas=10**6
    )
    # A percent is cut, not rounded: within one percent of the edge either side is right.
    if target < lowest - 2:
        assert prediction.direction is UP
    elif lowest + 2 < target < highest - 2:
        assert prediction.direction is REST
    elif target > highest + 10:
        assert prediction.direction is DOWN


@given(k=st.floats(0.2, 1.0), target=st.integers(20, 95))
def test_both_forms_of_the_band_agree(k: float, target: int) -> None:
    lowest, highest = ratios_at_rest(target)
    from_targets = targets_at_rest(k)
    assert (lowest <= k <= highest) == (from_targets[0] <= target <= from_targets[1]) or min(
        abs(k - lowest), abs(k - highest)
    ) < 1e-9


@pytest.mark.parametrize(
    ("k", "replicas", "target", "bounds", "expected"),
    [
        (
            1,
            3,
            80,
            (1, 20),
            "stays at 3, as long as the ratio of the mean of the usage to its 90th percentile does not change.",
        ),
        (0.5, 2, 70, (2, 20), "stays at 2, but a higher count falls, whatever the load is."),
        (1, 20, 50, (2, 20), "stays at 20, but a lower count rises, whatever the load is."),
    ],
    ids=["at rest", "at the minimum", "at the maximum"],
)
def test_a_count_that_stays_says_what_holds_it(
    k: float, replicas: int, target: int, bounds: tuple[int, int], expected: str
) -> None:
    prediction = predict_replicas(
        mean_to_p90=k,
        replicas=replicas,
        total=6000,
        target_percent=target,
        min_replicas=bounds[0],
        max_replicas=bounds[1],
    )
    assert describe_prediction(prediction) == f"At constant load the replica count {expected}"


def test_the_sentence_names_counts_direction_and_speed() -> None:
    prediction = predict_replicas(mean_to_p90=1, replicas=3, total=3000, target_percent=50, max_replicas=20)
    assert describe_prediction(prediction) == (
        "At constant load the replica count goes up: 3 → 6 → 11 → 20 → 20; only the bound of the HPA (minReplicas or "
        "maxReplicas) stops the change; each round takes 3 to 4 days if the half-life of the VPA's recommender is 24 "
        "hours, and an hour if it is 15 minutes."
    )
