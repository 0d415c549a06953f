"""The VPA's estimators with the numbers of its own tests (the names carry the cases' numbers)."""

import pytest

from tests.bench.estimate import (
    MOST,
    History,
    amount,
    at_least,
    factor,
    lower,
    rounded_up,
    scaled,
    target,
    with_margin,
)
from trimtab.histogram.vpa import CPU_SCALE, MEMORY_SCALE, Histogram

MINUTE, DAY = 60.0, 86400.0
NINE = History(seconds=16 * MINUTE, samples=9)
"""Nine samples, one every two minutes."""


def test_e1_e2_without_history_the_upper_bound_is_everything_and_the_lower_nothing() -> None:
    cores = amount("cpu", 3.14)
    assert [scaled(cores, 1.0, exponent, 0) for exponent in (1, -1)] == [MOST, 0]


def test_e3_confidence_is_the_scarcer_of_age_and_samples() -> None:
    assert NINE.confidence() == 0.00625


def test_e5_half_a_confidence() -> None:
    assert NINE.confidence(18 * MINUTE) == 0.5
    assert scaled(amount("cpu", 3.14), 0.1, 2, 0.5) == 4521
    assert scaled(amount("memory", 3.14e9), 0.1, 2, 0.5) == 4_521_600_000


def test_e6_a_margin_of_a_tenth() -> None:
    assert with_margin(amount("cpu", 3.14), 0.1) == 3454
    assert with_margin(amount("memory", 3.14e9), 0.1) == 3_454_000_000


def test_e7_a_minimum_below_changes_nothing() -> None:
    assert at_least("cpu", amount("cpu", 3.14)) == 3140
    assert at_least("memory", 4 * 10**8) == 4 * 10**8


@pytest.mark.parametrize(
    ("case", "containers", "cpu", "memory"),
    [("E8", 1, 25, 262144000), ("E9", 2, 12, 131072000), ("E9", 3, 8, 87381333)],
)
def test_e8_e9_the_minimum_of_a_pod_is_shared_by_its_containers(
    case: str, containers: int, cpu: int, memory: int
) -> None:
    assert target("cpu", Histogram(CPU_SCALE), containers) == cpu, case
    assert target("memory", Histogram(MEMORY_SCALE), containers) == memory, case


@pytest.mark.parametrize(
    ("minutes", "upper", "lower", "hundred"),
    [(5, 289, 0.60279310211797377, 60), (30, 49, 0.91049472641454443, 91), (60, 25, 0.95367431640625, 95),
     (720, 3, 0.99601196807980852, 99), (1440, 2, 0.99800299600499431, 99), (10080, 1.142857, 0.99971434692711569, 99)],
)  # fmt: skip
def test_e12_bounds_close_in_with_history(minutes: int, upper: float, lower: float, hundred: int) -> None:
    confidence = History(seconds=minutes * MINUTE, samples=minutes).confidence()
    assert factor(1.0, 1, confidence) == pytest.approx(upper, rel=1e-6)
    assert factor(0.001, -2, confidence) == pytest.approx(lower)
    assert scaled(100, 0.001, -2, confidence) == hundred


@pytest.mark.parametrize(
    ("cores", "bucket", "with_it"),
    [(0.012, 20, 23), (0.05, 55, 63), (0.1, 110, 126), (0.25, 258, 296), (0.5, 511, 587), (1, 1016, 1168),
     (2, 2093, 2406), (4, 4124, 4742)],
)  # fmt: skip
def test_h19_a_single_sample_with_the_margin(cores: float, bucket: int, with_it: int) -> None:
    histogram = Histogram(CPU_SCALE)
    histogram.add_sample(cores, 0.1)
    assert amount("cpu", histogram.percentile(0.9)) == bucket
    assert with_margin(bucket) == with_it


def test_r4_memory_is_rounded_up_to_what_people_say() -> None:
    mi = 1 << 20
    assert [rounded_up(839_500_000, 128 * mi), rounded_up(262_144_000, 256 * mi)] == [896 * mi, 256 * mi]
    with pytest.raises(ValueError, match="-3"):
        rounded_up(10, -3)


def test_amounts_are_cut_never_rounded_and_never_negative() -> None:
    assert [amount("cpu", 0.0129), amount("memory", -5.0), amount("memory", 1e20)] == [12, 0, MOST]


def test_a_lower_bound_is_no_less_than_the_minimum() -> None:
    assert lower("cpu", Histogram(CPU_SCALE), History(seconds=DAY, samples=1440)) == 25
