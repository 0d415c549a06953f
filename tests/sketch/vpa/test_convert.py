"""A history for a VPA that is new."""

import msgspec
import pytest

from trimtab.sketch.hours import DAY
from trimtab.sketch.vpa import checkpoint
from trimtab.sketch.vpa.convert import known
from trimtab.sketch.vpa.scale import CPU
from trimtab.sketch.window import Window

START = 20_000 * DAY
GI = 1 << 30


def cores(days: int = 8) -> Window:
    """A tenth of a core, and half a core for three hours of each day."""
    found = Window()
    for minute in range(0, days * 1440, 5):
        found.add(START + minute * 60, 0.5 if minute % 1440 < 180 else 0.1)
    return found


def peaks() -> Window:
    found = Window()
    for day in range(8):
        for quarter in range(4):
            found.add(START + day * DAY + quarter * 21600, GI * (1 + quarter / 4))
    return found


def test_a_fresh_vpa_would_load_what_we_saw() -> None:
    text = msgspec.json.encode(checkpoint.write(known(cores(), peaks())))
    read = checkpoint.read(msgspec.json.decode(text, type=checkpoint.CheckpointStatus))
    assert read.samples == 8 * 288
    assert (read.first, read.last) == (START, START + 8 * DAY - 300)
    bucket = CPU.find(0.1)
    assert read.cpu.percentile(0.5) == pytest.approx(CPU.start(bucket + 1))
    assert read.cpu.percentile(0.95) == pytest.approx(CPU.start(CPU.find(0.5) + 1))


def test_of_memory_it_gets_a_peak_a_day() -> None:
    found = known(cores(), peaks()).memory
    assert len(found.weights) == 1
    assert found.percentile(0.5) > 1.75 * GI


def test_nothing_seen_is_an_empty_checkpoint() -> None:
    status = checkpoint.write(known(Window(), Window()))
    assert (status.cpu_histogram.bucket_weights, status.total_samples_count) == ({}, 0)
