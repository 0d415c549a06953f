"""The VPA's histogram with the numbers of its own tests (the names carry the cases' numbers)."""

from datetime import UTC, datetime

import pytest

from trimtab.histogram.vpa import (
    CPU_SCALE,
    DAY,
    MEMORY_SCALE,
    CheckpointRejected,
    ExponentialBuckets,
    Histogram,
    LinearBuckets,
)

TENTHS = LinearBuckets(1.0, 0.1, 1e-15)
TENS = LinearBuckets(10.0, 1.0, 1e-15)
T0 = 1234567890.0
HOUR = 3600.0


def of(*samples: tuple[float, float], scale: LinearBuckets | ExponentialBuckets = TENS) -> Histogram:
    histogram = Histogram(scale)  # type: ignore[arg-type]
    for value, weight in samples:
        histogram.add_sample(value, weight)
    return histogram


def ramp() -> Histogram:
    histogram = Histogram(CPU_SCALE)
    for hundredth in range(1, 101):
        histogram.add_sample(hundredth / 100, 0.1)
    return histogram


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# ── buckets ──────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("bucket", "start"),
    [
        (1, 0.01),
        (2, 0.020499999999999987),
        (3, 0.031524999999999997),
        (10, 0.12577892535548821),
        (14, 0.19598631988787929),
        (50, 2.093479957150735),
        (100, 26.100251569260699),
        (150, 301.39549921060819),
        (174, 972.47562752843794),
        (175, 1021.1094089048601),
    ],
)
def test_h4_buckets_begin_where_the_vpas_do(bucket: int, start: float) -> None:
    assert CPU_SCALE.bucket_start(bucket) == pytest.approx(start, rel=1e-9)
    assert (CPU_SCALE.bucket_count, MEMORY_SCALE.bucket_count) == (176, 176)


@pytest.mark.parametrize(
    ("value", "bucket"),
    [
        (0, 0),
        (0.005, 0),
        (0.01, 1),
        (0.02, 1),
        (0.1, 8),
        (0.25, 16),
        (0.5, 25),
        (1, 36),
        (2, 49),
        (3, 56),
        (3.14, 57),
        (10, 80),
        (100, 127),
        (999, 174),
        (1000, 174),
        (1e6, 175),
    ],
)
def test_h5_values_fall_into_the_vpas_buckets(value: float, bucket: int) -> None:
    assert CPU_SCALE.find_bucket(value) == bucket


def test_h5_a_value_on_the_edge_falls_to_either_side() -> None:
    assert CPU_SCALE.find_bucket(0.0205) in (1, 2)


# ── percentiles ──────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("share", "value"), [(0, 2), (0.1, 2), (0.2, 3), (0.3, 3), (0.4, 4), (0.5, 4), (0.6, 4), (0.7, 5), (0.8, 5), (1, 5)]
)
def test_h7_a_percentile_is_the_end_of_its_bucket(share: float, value: float) -> None:
    assert of((1, 1), (2, 2), (3, 3), (4, 4)).percentile(share) == value


@pytest.mark.parametrize("share", [-0.5, 0, 0.5, 1, 1.5])
def test_h8_an_empty_histogram_answers_nothing(share: float) -> None:
    assert of().percentile(share) == 0


def test_h9_shares_beyond_the_ends_answer_the_ends() -> None:
    histogram = of((0.1, 0.1), (0.2, 0.2), scale=TENTHS)
    assert [histogram.percentile(-0.1), histogram.percentile(1.1)] == pytest.approx([0.2, 0.3])


def test_h11_what_is_left_below_epsilon_is_nothing() -> None:
    histogram = of((1, 2.5e-15))
    observations = [histogram.is_empty]
    for _ in range(2):
        histogram.subtract_sample(1, 1e-15)
        observations.append(histogram.is_empty)
    assert observations == [False, False, True]


def test_h13_merged_histograms_are_as_if_filled_together() -> None:
    one = of((1, 1), (2, 1))
    one.merge(of((2, 1), (3, 1)))
    assert (one.weights, one.total) == (of((1, 1), (2, 1), (2, 1), (3, 1)).weights, 4)


def test_h14_three_cores_apart() -> None:
    histogram = of((1, 1), (2, 1), (3, 1), scale=CPU_SCALE)  # type: ignore[arg-type]
    values = [histogram.percentile(share) for share in (0.05, 0.2, 0.5, 0.9, 0.95)]
    assert values == pytest.approx([1.0162813885540904] * 2 + [2.093479957150735] + [3.0271566170604376] * 2)


def test_h15_three_gigabytes_apart() -> None:
    histogram = of((1e9, 1), (2e9, 1), (3e9, 1), scale=MEMORY_SCALE)  # type: ignore[arg-type]
    assert int(histogram.percentile(0.5)) == 2093479957


def test_h16_a_ramp() -> None:
    values = [ramp().percentile(share) for share in (0.5, 0.9, 0.95, 0.99, 1)]
    assert values == pytest.approx([0.51113454, 0.90320307, 0.95836323, 1.01628139, 1.01628139], rel=1e-7)
    assert ramp().percentile(0.05) == pytest.approx(0.05525631, rel=0.25)  # a tie: one bucket either way


def test_h17_two_levels() -> None:
    histogram = Histogram(CPU_SCALE)
    for value, count in ((0.05, 960), (0.8, 480)):
        for _ in range(count):
            histogram.add_sample(value, 0.1)
    low = [histogram.percentile(share) for share in (0.05, 0.5, 0.66)]
    high = [histogram.percentile(share) for share in (0.67, 0.9, 0.95)]
    assert low == pytest.approx([0.05525631] * 3)
    assert high == pytest.approx([0.80063771] * 3)


# ── decay ────────────────────────────────────────────────────────────────
def fading(*samples: tuple[float, float, float], half_life: float = HOUR) -> Histogram:
    histogram = Histogram(TENS, half_life)
    for value, weight, when in samples:
        histogram.add_sample(value, weight, when)
    return histogram


def test_d1_an_old_heavy_sample_has_faded() -> None:
    histogram = fading((2, 1000, T0), (1, 1, T0 + 20 * HOUR))
    assert (histogram.percentile(0.999), histogram.percentile(1)) == (2, 3)


def test_d2_a_sample_of_a_hundred_half_lives_ago_is_gone() -> None:
    assert fading((2, 1, T0), (1, 1, T0 + 101 * HOUR)).percentile(1) == 2


@pytest.mark.parametrize(("share", "value"), [(0, 2), (0.2, 3), (0.5, 4), (0.7, 5), (1, 5)])
def test_d4_at_one_moment_nothing_fades(share: float, value: float) -> None:
    assert fading((1, 1, T0), (2, 2, T0), (3, 3, T0), (4, 4, T0)).percentile(share) == value


def test_d5_merging_is_inserting_whatever_the_references() -> None:
    one, two = fading((1, 1, T0), (2, 1, T0 + HOUR)), fading((2, 1, T0 + 2 * HOUR), (3, 1, T0 + HOUR))
    whole = fading((1, 1, T0), (2, 1, T0 + HOUR), (2, 1, T0 + 2 * HOUR), (3, 1, T0 + HOUR))
    for first, second in ((one, two),):
        first.merge(second)
        ratio = whole.total / first.total
        assert {b: w * ratio for b, w in first.weights.items()} == pytest.approx(whole.weights)


@pytest.mark.parametrize(
    ("case", "half_life", "when", "reference", "weight"),
    [
        ("D6", DAY, "2024-01-01T13:00", "2024-01-02T00:00", 0.07278265914210938),
        ("D7", DAY, "2024-01-01T11:00", "2024-01-01T00:00", 0.1373953647458089),
        ("D8", 900.0, "2024-01-01T13:08", "2024-01-01T13:15", 0.0723634618720189),
    ],
)
def test_d6_d7_d8_the_reference_is_the_nearest_multiple_of_the_half_life(
    case: str, half_life: float, when: str, reference: str, weight: float
) -> None:
    histogram = Histogram(CPU_SCALE, half_life)
    histogram.add_sample(1, 0.1, at(when))
    assert (histogram.reference, histogram.total) == (at(reference), pytest.approx(weight, rel=1e-12)), case


LOW, HIGH = 0.11026564, 1.01628139


@pytest.mark.parametrize(
    ("case", "levels", "half_life", "expected"),
    [
        ("D9", (1.0, 0.1), DAY, (LOW, HIGH, HIGH, HIGH, HIGH)),
        ("D10", (1.0, 0.1), 900.0, (LOW, LOW, LOW, LOW, HIGH)),
        ("D11", (0.1, 1.0), DAY, (LOW, LOW, LOW, LOW, HIGH)),
        ("D12", (0.1, 1.0), 900.0, (LOW, HIGH, HIGH, HIGH, HIGH)),
    ],
)
def test_d9_to_d12_what_the_half_life_forgets_in_an_hour(
    case: str, levels: tuple[float, float], half_life: float, expected: tuple[float, ...]
) -> None:
    histogram = Histogram(CPU_SCALE, half_life)
    for minute in range(25 * 60):
        histogram.add_sample(levels[minute >= 24 * 60], 0.1, T0 + 60 * minute)
    assert [histogram.percentile(s) for s in (0.05, 0.5, 0.7, 0.9, 0.95)] == pytest.approx(expected, rel=1e-7), case


# ── checkpoints ──────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("case", "samples", "total", "buckets"),
    [
        ("K1", (), 0, {}),
        ("K2", ((1, 1),), 1, {1: 10000}),
        ("K3", ((1, 1), (2, 100000)), 100001, {2: 10000}),
        ("K4", ((1, 1), (2, 10000), (3, 50)), 10051, {1: 1, 2: 10000, 3: 50}),
    ],
)
def test_k1_to_k4_the_heaviest_bucket_weighs_ten_thousand(
    case: str, samples: tuple[tuple[float, float], ...], total: float, buckets: dict[int, int]
) -> None:
    assert of(*samples).to_checkpoint() == (total, buckets), case


def test_k5_loaded_weights_add_up_to_the_total() -> None:
    histogram = of()
    histogram.load_checkpoint(6, {0: 1, 1: 2})
    assert (histogram.weights, histogram.total) == ({0: 2, 1: 4}, 6)


def test_k8_the_ramp_is_written_as_the_vpa_writes_it() -> None:
    total, buckets = ramp().to_checkpoint()
    text = "4000 2000 2000 2000 2000 4000 2000 4000 2000 4000 2000 4000 4000 4000 4000 4000 6000 4000 6000 4000"
    expected = [int(word) for word in text.split()] + [6000] * 4 + [8000, 6000] + [8000] * 4 + [10000] * 6
    assert total == pytest.approx(9.99999999999998)
    assert list(buckets.values()) == expected


def test_k9_a_percentile_on_the_edge_moves_by_a_bucket_through_a_checkpoint() -> None:
    histogram = Histogram(CPU_SCALE)
    histogram.load_checkpoint(*ramp().to_checkpoint())
    values = [histogram.percentile(share) for share in (0.5, 0.9, 0.95)]
    assert values == pytest.approx([0.51113454, 0.90320307, 0.95836323], rel=1e-7)
    assert histogram.percentile(0.05) in (pytest.approx(0.06801913, rel=1e-6), pytest.approx(0.05525631, rel=1e-6))


def test_a_bad_bucket_and_a_negative_total_are_refused_and_change_nothing() -> None:
    histogram = of((1, 1))
    for total, buckets in ((1.0, {99: 1}), (-1.0, {1: 1})):
        with pytest.raises(CheckpointRejected):
            histogram.load_checkpoint(total, buckets)
    assert histogram.weights == {1: 1}
