"""The VPA's estimators with the numbers of its own tests (the names carry the cases' numbers)."""

import pytest

from trimtab.histogram.vpa import CPU_SCALE, MEMORY_SCALE, Histogram
from trimtab.histogram.vpa_estimators import (
    DEFAULT_FLAGS,
    MAX_AMOUNT,
    HistoryLength,
    RecommenderFlags,
    add_margin,
    compute_reaction_times,
    confidence_factor,
    estimate_request,
    estimate_target,
    parse_recommender_flags,
    raise_to_minimum,
    round_amount_up,
    scale_by_confidence,
    usage_amount,
)

MINUTE, DAY = 60.0, 86400.0
NINE = HistoryLength(seconds=16 * MINUTE, samples=9)
"""Nine samples, one every two minutes."""


def test_e1_e2_without_history_the_upper_bound_is_everything_and_the_lower_nothing() -> None:
    cores = usage_amount("cpu", 3.14)
    assert [scale_by_confidence(cores, 1.0, exponent, 0) for exponent in (1, -1)] == [MAX_AMOUNT, 0]


def test_e3_confidence_is_the_scarcer_of_age_and_samples() -> None:
    assert NINE.compute_confidence() == 0.00625


def test_e5_half_a_confidence() -> None:
    assert NINE.compute_confidence(18 * MINUTE) == 0.5
    assert scale_by_confidence(usage_amount("cpu", 3.14), 0.1, 2, 0.5) == 4521
    assert scale_by_confidence(usage_amount("memory", 3.14e9), 0.1, 2, 0.5) == 4_521_600_000


def test_e6_a_margin_of_a_tenth() -> None:
    assert add_margin(usage_amount("cpu", 3.14), 0.1) == 3454
    assert add_margin(usage_amount("memory", 3.14e9), 0.1) == 3_454_000_000


def test_e7_a_minimum_below_changes_nothing() -> None:
    assert raise_to_minimum("cpu", usage_amount("cpu", 3.14)) == 3140
    assert raise_to_minimum("memory", 4 * 10**8) == 4 * 10**8


@pytest.mark.parametrize(
    ("case", "containers", "cpu", "memory"),
    [("E8", 1, 25, 262144000), ("E9", 2, 12, 131072000), ("E9", 3, 8, 87381333)],
)
def test_e8_e9_the_minimum_of_a_pod_is_shared_by_its_containers(
    case: str, containers: int, cpu: int, memory: int
) -> None:
    assert estimate_target("cpu", Histogram(CPU_SCALE), containers) == cpu, case
    assert estimate_target("memory", Histogram(MEMORY_SCALE), containers) == memory, case


@pytest.mark.parametrize(
    ("minutes", "upper", "lower", "hundred"),
    [
        (5, 289, 0.60279310211797377, 60),
        (30, 49, 0.91049472641454443, 91),
        (60, 25, 0.95367431640625, 95),
        (720, 3, 0.99601196807980852, 99),
        (1440, 2, 0.99800299600499431, 99),
        (10080, 1.142857, 0.99971434692711569, 99),
    ],
)
def test_e12_bounds_close_in_with_history(minutes: int, upper: float, lower: float, hundred: int) -> None:
    confidence = HistoryLength(seconds=minutes * MINUTE, samples=minutes).compute_confidence()
    assert confidence_factor(1.0, 1, confidence) == pytest.approx(upper, rel=1e-6)
    assert confidence_factor(0.001, -2, confidence) == pytest.approx(lower)
    assert scale_by_confidence(100, 0.001, -2, confidence) == hundred


@pytest.mark.parametrize(
    ("cores", "bucket", "with_it"),
    [
        (0.012, 20, 23),
        (0.05, 55, 63),
        (0.1, 110, 126),
        (0.25, 258, 296),
        (0.5, 511, 587),
        (1, 1016, 1168),
        (2, 2093, 2406),
        (4, 4124, 4742),
    ],
)
def test_h19_a_single_sample_with_the_margin(cores: float, bucket: int, with_it: int) -> None:
    histogram = Histogram(CPU_SCALE)
    histogram.add_sample(cores, 0.1)
    assert usage_amount("cpu", histogram.percentile(0.9)) == bucket
    assert add_margin(bucket) == with_it


def test_r4_memory_is_rounded_up_to_what_people_say() -> None:
    mi = 1 << 20
    assert [round_amount_up(839_500_000, 128 * mi), round_amount_up(262_144_000, 256 * mi)] == [896 * mi, 256 * mi]
    with pytest.raises(ValueError, match="-3"):
        round_amount_up(10, -3)


def test_amounts_are_cut_never_rounded_and_never_negative() -> None:
    assert [usage_amount("cpu", 0.0129), usage_amount("memory", -5.0), usage_amount("memory", 1e20)] == [
        12,
        0,
        MAX_AMOUNT,
    ]


def test_a_lower_bound_is_no_less_than_the_minimum() -> None:
    vpa_estimate = estimate_request("cpu", Histogram(CPU_SCALE), HistoryLength(seconds=DAY, samples=1440))
    assert (vpa_estimate.lower_bound, vpa_estimate.target, vpa_estimate.upper_bound) == (25, 25, 25)


def test_an_estimate_has_its_bounds_around_its_target() -> None:
    histogram = Histogram(CPU_SCALE)
    for n in range(1, 101):
        histogram.add_sample(n / 100, 0.1)
    vpa_estimate = estimate_request("cpu", histogram, HistoryLength(seconds=7 * DAY, samples=7 * 1440))
    assert (vpa_estimate.lower_bound, vpa_estimate.target, vpa_estimate.upper_bound) == (586, 1038, 1258)


def test_flags_are_those_of_the_recommender_and_the_updater() -> None:
    words = "--cpu-histogram-decay-half-life=15m --recommendation-lower-bound-cpu-percentile 0.7 --min-replicas=1"
    flags, mistakes = parse_recommender_flags(words.split())
    expected = RecommenderFlags(cpu_half_life_seconds=900, lower_bound_cpu_percentile=0.7, min_replicas=1)
    assert (flags, mistakes) == (expected, ())


def test_every_flag_that_is_not_understood_is_named() -> None:
    words = [
        "--half-life=1h",
        "--target-cpu-percentile=90",
        "--round-cpu-millicores=0",
        "--memory-aggregation-interval=x",
    ]
    flags, mistakes = parse_recommender_flags(words)
    assert flags == DEFAULT_FLAGS
    assert [mistake.partition(",")[0] for mistake in mistakes] == [
        "--half-life",
        "--target-cpu-percentile=90",
        "--round-cpu-millicores=0",
        "--memory-aggregation-interval=x",
    ]


def test_a_cap_and_a_rounding_apply_after_the_minimum() -> None:
    flags, _ = parse_recommender_flags(["--container-recommendation-max-allowed-cpu=1", "--round-cpu-millicores=100"])
    histogram = Histogram(CPU_SCALE)
    assert estimate_target("cpu", histogram, flags=flags) == 100
    histogram.add_sample(4.0, 0.1)
    assert estimate_target("cpu", histogram, flags=flags) == 1000


@pytest.mark.parametrize(
    ("flags", "old", "young", "drop"),
    [
        (DEFAULT_FLAGS, 219, 720, 4784),
        (RecommenderFlags(cpu_half_life_seconds=900, lower_bound_cpu_percentile=0.7), 2.3, 7.7, 50),
    ],
)
def test_reaction_times_in_closed_form(flags: RecommenderFlags, old: float, young: float, drop: float) -> None:
    reaction_times = compute_reaction_times(flags)
    minutes = [
        seconds / MINUTE
        for seconds in (reaction_times.rise_old_pod, reaction_times.rise_young_pod, reaction_times.drop)
    ]
    assert minutes == pytest.approx([old, young, drop], rel=0.01)
