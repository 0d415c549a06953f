"""Base and slope are recovered from generated loads; reservations follow from them, and noise changes nothing."""

import random
from dataclasses import replace

import pytest

from tests.reasons import has_facts
from tests.reservations.loads import AT, CONTAINERD, DOCKER, Runtime, history_of, samples
from trimtab.cluster.reason import NotYet
from trimtab.reservations.measure import (
    MEMORY_STEP,
    ChangeKind,
    PoolUse,
    Reserved,
    decide_change,
    measure_pool,
    recommend_reservation,
)
from trimtab.reservations.overhead_fit import OverheadFit, OverheadPoint, fit_overhead
from trimtab.reservations.overhead_history import OverheadHistory, OverheadSample
from trimtab.reservations.profile import GIB, MIB

WEEK = 7 * 86400


def use_of(history: OverheadHistory, silent: int = 0) -> PoolUse:
    use = measure_pool(history, silent)
    assert isinstance(use, PoolUse)
    return use


def fits(use: PoolUse) -> tuple[OverheadFit, OverheadFit]:
    assert isinstance(use.cpu.fit, OverheadFit)
    assert isinstance(use.memory.fit, OverheadFit)
    return use.cpu.fit, use.memory.fit


@pytest.mark.parametrize("runtime", [CONTAINERD, DOCKER], ids=["containerd", "docker"])
@pytest.mark.parametrize("seed", range(5))
def test_slope_and_base_of_a_generated_load_are_recovered(runtime: Runtime, seed: int) -> None:
    cpu, memory = fits(use_of(history_of(samples(runtime, seed=seed))))
    assert memory.per_pod / 1e6 == pytest.approx(runtime.mb, rel=0.02)
    assert cpu.per_pod == pytest.approx(runtime.millicores, rel=0.02)
    assert memory.base / 1e6 == pytest.approx(runtime.base_mb, rel=0.02)


def test_least_squares_would_have_followed_the_outliers() -> None:
    points = [(s.pods, s.memory_bytes) for s in samples(CONTAINERD) if s.memory_bytes is not None]
    mean_pods, mean = (sum(column) / len(points) for column in zip(*points, strict=True))
    slope = sum((pods - mean_pods) * (amount - mean) for pods, amount in points) / sum(
        (pods - mean_pods) ** 2 for pods, _ in points
    )
    assert slope / 1e6 != pytest.approx(13.5, rel=0.02)


def test_a_single_moment_of_a_hundred_nodes_gives_a_line() -> None:
    moment = samples(CONTAINERD, nodes=100, days=1, step=86400, noise=0.01)
    _, memory = fits(use_of(history_of(moment)))
    assert memory.per_pod / 1e6 == pytest.approx(13.5, rel=0.1)


def test_nodes_with_the_same_number_of_pods_have_no_slope_and_still_a_recommendation() -> None:
    history = OverheadHistory()
    for number in range(20):
        history.add_sample(sample(number, pods=30, mib=500, millicores=40))
    use = use_of(history)
    assert isinstance(use.memory.fit, NotYet)
    assert use.memory.fit.reason.code.name == "overhead-slope-unknown"
    assert recommend_reservation(use) == Reserved(millicores=40, memory_bytes=512 * MIB)


def sample(number: int, *, pods: int = 30, mib: float | None = 500, millicores: float | None = 40) -> OverheadSample:
    memory = None if mib is None else mib * MIB
    return OverheadSample(node=f"n{number}", second=AT + number, pods=pods, millicores=millicores, memory_bytes=memory)


def test_what_is_not_known_is_no_zero() -> None:
    history = OverheadHistory()
    for number in range(10):
        history.add_sample(sample(number, mib=None))
    use = use_of(history)
    assert history.coverage == 0
    assert use.cpu.p50 == 40
    assert isinstance(recommend_reservation(use), NotYet)
    empty = measure_pool(OverheadHistory(), 3)
    assert isinstance(empty, NotYet)
    assert has_facts(empty.have, "3 nodes", "not answer")


def test_a_tenth_of_silent_nodes_and_more_gives_no_recommendation() -> None:
    history = history_of(samples(CONTAINERD, nodes=20, days=1))
    assert isinstance(recommend_reservation(use_of(history, silent=1)), Reserved)
    missing = recommend_reservation(use_of(history, silent=5))
    assert isinstance(missing, NotYet)
    assert missing.reason.code.name == "overhead-coverage-low"


@pytest.mark.parametrize("seed", range(3))
def test_memory_is_never_recommended_below_what_was_measured(seed: int) -> None:
    use = use_of(history_of(samples(CONTAINERD, seed=seed)))
    recommended = recommend_reservation(use)
    assert isinstance(recommended, Reserved)
    assert recommended.memory_bytes >= use.memory.maximum
    assert recommended.memory_bytes % MEMORY_STEP == 0
    assert recommended.millicores >= use.cpu.p95


def test_more_pods_than_were_measured_are_planned_for() -> None:
    use = use_of(history_of(samples(CONTAINERD, noise=0.0)))
    few, many = (recommend_reservation(use, max_pods=pods) for pods in (50, 2000))
    assert isinstance(few, Reserved)
    assert isinstance(many, Reserved)
    assert many.memory_bytes > few.memory_bytes


NOW = Reserved(millicores=100, memory_bytes=2 * GIB)


@pytest.mark.parametrize(
    ("millicores", "mib", "span", "kind", "wanted"),
    [
        (115, 2048 + 128, WEEK, ChangeKind.KEEP, (100, 2048)),
        (80, 1900, WEEK, ChangeKind.KEEP, (100, 2048)),
        (200, 2048, 0, ChangeKind.RAISE, (200, 2048)),
        (100, 4096, 0, ChangeKind.RAISE, (100, 4096)),
        (50, 4096, WEEK, ChangeKind.RAISE, (100, 4096)),
        (50, 1024, 3600, ChangeKind.WAIT, (100, 2048)),
        (50, 1024, WEEK, ChangeKind.LOWER, (50, 1024)),
        (95, 1024, WEEK, ChangeKind.LOWER, (100, 1024)),
    ],
)
def test_raise_at_once_lower_after_a_week_and_leave_small_differences(
    millicores: int, mib: int, span: int, kind: ChangeKind, wanted: tuple[int, int]
) -> None:
    change = decide_change(NOW, Reserved(millicores=millicores, memory_bytes=mib * MIB), span)
    assert (change.kind, change.reserved.millicores, change.reserved.memory_bytes // MIB) == (kind, *wanted)


def test_an_unknown_reservation_takes_what_was_measured_and_says_so() -> None:
    change = decide_change(None, NOW, 0)
    assert (change.reserved, change.reason.code.name) == (NOW, "reserved-not-known")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("runtime", [CONTAINERD, Runtime(200, 12, 5, 0.8)], ids=["large", "small"])
def test_noise_of_five_percent_over_thirty_days_changes_nothing(runtime: Runtime, seed: int) -> None:
    draw, published, kinds = random.Random(seed), None, set()
    pods = [draw.randint(20, 110) for _ in range(15)]
    history = OverheadHistory(max_days=7)
    for day in range(30):
        for hour in range(0, 24, 3):
            for number, count in enumerate(pods):
                noisy = draw.uniform(0.95, 1.05)
                history.add_sample(
                    OverheadSample(
                        node=f"n{number}",
                        second=AT + day * 86400 + hour * 3600,
                        pods=count,
                        millicores=(runtime.base_millicores + runtime.millicores * count) * noisy,
                        memory_bytes=(runtime.base_mb + runtime.mb * count) * 1e6 * noisy,
                    )
                )
        history.drop_old_days(AT + day * 86400)
        recommended = recommend_reservation(use_of(history))
        assert isinstance(recommended, Reserved)
        if published is None:
            published = recommended
        kinds.add(decide_change(published, recommended, history.span_seconds).kind)
    assert kinds == {ChangeKind.KEEP}


def test_the_order_of_samples_does_not_matter() -> None:
    all_samples = list(samples(CONTAINERD, nodes=10, days=2))
    mixed = random.Random(7).sample(all_samples, len(all_samples))
    assert use_of(history_of(iter(all_samples))) == use_of(history_of(iter(mixed)))


def test_old_days_go() -> None:
    history = history_of(samples(CONTAINERD, nodes=3, days=10))
    history.max_days = 7
    history.drop_old_days(history.last or 0)
    assert {day for day, _ in history.iter_groups("cpu")} == {AT // 86400 + n for n in range(3, 10)}
    assert history.span_seconds < WEEK


def test_a_line_that_would_begin_below_zero_begins_at_zero() -> None:
    fit = fit_overhead([OverheadPoint(pods, 10.0 * pods - 50) for pods in (10, 20, 30, 40)])
    assert isinstance(fit, OverheadFit)
    assert fit.base == 0
    falling = fit_overhead([OverheadPoint(pods, 100.0 - pods) for pods in (10, 20, 30, 40)])
    assert isinstance(falling, OverheadFit)
    assert falling.per_pod == 0


def test_a_replaced_use_keeps_its_coverage() -> None:
    use = use_of(history_of(samples(CONTAINERD, nodes=5, days=1)))
    assert replace(use, silent_nodes=5).node_coverage == 0.5


def test_what_peaks_between_two_samples_counts_for_the_maximum_and_not_for_the_line() -> None:
    quiet = list(samples(CONTAINERD, nodes=20, days=1, noise=0.0))
    peaks = [replace(item, max_memory_bytes=item.memory_bytes and 1.05 * item.memory_bytes) for item in quiet]
    without, with_peaks = use_of(history_of(iter(quiet))), use_of(history_of(iter(peaks)))
    assert fits(with_peaks) == fits(without)
    assert with_peaks.memory.maximum == pytest.approx(1.05 * without.memory.maximum)
    recommended = recommend_reservation(with_peaks)
    assert isinstance(recommended, Reserved)
    assert recommended.memory_bytes >= with_peaks.memory.maximum
