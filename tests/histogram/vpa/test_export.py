"""A fresh VPA is given a history, and says what one would that had seen it all."""

import pytest

from trimtab.histogram import vpa as vpa_module
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.time_buckets import DAY
from trimtab.histogram.vpa import AggregateContainerState

START = 20_000 * DAY


def lived(days: int) -> tuple[AggregateContainerState, DailyHistograms, DailyHistograms]:
    """Cpu between 100m and 400m by the hour, memory that grows by the day; seen by a VPA and by us."""
    vpa, cpu, memory = AggregateContainerState(), DailyHistograms(), DailyHistograms()
    for at in range(START, START + days * DAY, 600):
        cores, holding = 0.1 + at // 3600 % 4 / 10, 1e8 * (1 + (at - START) // DAY)
        vpa.add_cpu_sample(at, cores)
        vpa.add_memory_sample(at, holding)
        cpu.add_value(at, cores)
        memory.add_value(at, holding)
    return vpa, cpu, memory


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.95])
def test_it_says_what_it_would_have_said(share: float) -> None:
    vpa, cpu, memory = lived(5)
    checkpoint_history = vpa_module.decode_checkpoint(
        vpa_module.encode_checkpoint(vpa_module.history_of_windows(cpu, memory))
    )
    assert checkpoint_history.cpu.percentile(share) == pytest.approx(vpa.cpu.percentile(share), rel=0.06)  # type: ignore[attr-defined]
    assert checkpoint_history.memory.percentile(share) == pytest.approx(vpa.memory.percentile(share), rel=0.06)  # type: ignore[attr-defined]


def test_how_much_was_seen_goes_along() -> None:
    _, cpu, memory = lived(3)
    checkpoint_history = vpa_module.history_of_windows(cpu, memory)
    assert (checkpoint_history.first, checkpoint_history.last, checkpoint_history.samples) == (
        START,
        START + 3 * DAY - 600,
        3 * 144,
    )


def test_what_used_nothing_at_all_is_a_history_too() -> None:
    cpu = DailyHistograms()
    cpu.add_value(START, 0.0)
    assert vpa_module.history_of_windows(cpu, DailyHistograms()).cpu.percentile(0.9) == pytest.approx(0.01)
