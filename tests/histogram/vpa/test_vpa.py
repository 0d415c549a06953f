"""Samples, peaks and OOM kills with the numbers of the VPA's own tests."""

from dataclasses import dataclass, field

import msgspec
import pytest

from trimtab.histogram import vpa
from trimtab.histogram.vpa import (
    CPU_SCALE,
    DAY,
    MEMORY_SCALE,
    AggregateContainerState,
    CheckpointRejected,
    Histogram,
    TooOld,
)

T = 1492536905.0  # 2017-04-18T17:35:05Z
HOUR, MI = 3600.0, 1 << 20
Call = tuple[str, float, float]


@dataclass
class Heard:
    """Writes down what it is told."""

    calls: list[Call] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add_sample(self, value: float, weight: float, at: float = 0.0) -> None:
        self.calls.append(("add", value, at))
        self.weights.append(weight)

    def subtract_sample(self, value: float, weight: float, at: float = 0.0) -> None:
        self.calls.append(("subtract", value, at))


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_m2_cpu_samples_weigh_a_tenth_and_come_once(heard: Heard) -> None:
    it = AggregateContainerState(cpu=heard)
    records = [
        it.add_cpu_sample(T + hours * HOUR, cores)
        for hours, cores in ((0, 3.14), (12, 6.28), (24, 1.57), (24, 9), (36, -1))
    ]
    assert (records, heard.weights) == ([True, True, True, False, False], [0.1] * 3)
    assert not it.add_memory_sample(T, -1)


def test_m3_a_killed_container_wanted_a_fifth_more(heard: Heard) -> None:
    AggregateContainerState(memory=heard).record_oom(T, 1000 * MI)
    assert heard.calls == [("add", 1200 * MI, T + DAY)]


def test_m5_later_kills_do_not_build_on_the_bump_of_earlier_ones(heard: Heard) -> None:
    it = AggregateContainerState(memory=heard)
    for holding in (1000, 999, 999, 2000):
        it.record_oom(T, holding * MI)
    end = T + DAY
    assert heard.calls == [("add", 1200 * MI, end), ("subtract", 1200 * MI, end), ("add", 2400 * MI, end)]


def test_m8_a_kill_counts_from_the_greatest_use(heard: Heard) -> None:
    it = AggregateContainerState(memory=heard)
    it.add_memory_sample(T, 2000 * MI)
    it.record_oom(T + 48 * HOUR, 1000 * MI)
    assert heard.calls[1:] == [("add", 2400 * MI, T + 72 * HOUR)]


def test_m9_a_kill_a_second_before_the_window_is_not_lost(heard: Heard) -> None:
    it = AggregateContainerState(memory=heard)
    it.add_memory_sample(T, 100 * MI)
    it.add_memory_sample(T + DAY, 2000 * MI)
    it.record_oom(T + DAY - 1, 1000 * MI)
    assert heard.calls[2:] == [("subtract", 2000 * MI, T + 2 * DAY), ("add", 2400 * MI, T + 2 * DAY)]


def test_m10_two_windows_have_two_peaks(heard: Heard) -> None:
    it = AggregateContainerState(memory=heard, interval=HOUR)
    it.add_memory_sample(T, 5)
    it.add_memory_sample(T + 2 * HOUR, 10)
    assert heard.calls == [("add", 5, T + HOUR), ("add", 10, T + 3 * HOUR)]


def test_m11_one_window_has_one_peak(heard: Heard) -> None:
    it = AggregateContainerState(memory=heard, interval=HOUR)
    it.add_memory_sample(T, 5)
    it.add_memory_sample(T + HOUR / 2, 10)
    assert heard.calls == [("add", 5, T + HOUR), ("subtract", 5, T + HOUR), ("add", 10, T + HOUR)]


def test_an_interval_that_begins_with_nothing_stays_at_nothing(heard: Heard) -> None:
    it = AggregateContainerState(memory=heard, interval=HOUR)
    it.add_memory_sample(T, 0)
    it.add_memory_sample(T + 60, 1000 * MI)
    assert heard.calls == [("add", 0, T + HOUR)]


def test_m12_a_kill_long_before_the_last_sample_is_refused(heard: Heard) -> None:
    it = AggregateContainerState(memory=heard, interval=HOUR)
    it.add_memory_sample(T, 1000 * MI)
    with pytest.raises(TooOld):
        it.record_oom(T - 2 * HOUR, 1000 * MI)


# ── the API object ───────────────────────────────────────────────────────
def test_k10_a_checkpoint_of_another_version_is_refused() -> None:
    with pytest.raises(CheckpointRejected, match="v3"):
        vpa.decode_checkpoint(vpa.CheckpointStatus(version="v2"))


def test_k11_a_container_survives_its_checkpoint() -> None:
    cpu, memory = Histogram(CPU_SCALE, DAY), Histogram(MEMORY_SCALE, DAY)
    cpu.add_sample(1, 33, T)
    memory.add_sample(1, 55, T)
    memory.add_sample(1e7, 55, T)
    checkpoint_history = vpa.CheckpointHistory(cpu=cpu, memory=memory, first=int(T), last=int(T) + 60, samples=10)
    text = msgspec.json.encode(vpa.encode_checkpoint(checkpoint_history))
    read = vpa.decode_checkpoint(msgspec.json.decode(text, type=vpa.CheckpointStatus))
    assert (len(read.cpu.weights), len(read.memory.weights)) == (1, 2)
    assert (read.samples, read.first, read.last) == (10, int(T), int(T) + 60)


def test_a_bucket_that_is_no_number_is_refused() -> None:
    odd = vpa.HistogramStatus(bucket_weights={"first": 1}, total_weight=1)
    with pytest.raises(CheckpointRejected):
        vpa.decode_checkpoint(vpa.CheckpointStatus(version="v3", cpu_histogram=odd))
