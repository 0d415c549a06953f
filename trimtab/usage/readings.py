"""Turns the readings of a series into usage in cores or bytes, or says why they cannot be what their source says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from trimtab.cluster.format_count import format_count
from trimtab.histogram.batch_history import MAX_AMOUNT
from trimtab.usage.metric_names import Quantity
from trimtab.usage.series import MAX_GAP_SECONDS, counter_rate

MIN_DOUBTED_READINGS = 20
"""With fewer readings, the course of a series says nothing about its quantity."""
MAX_RISING_CORES = 96.0
"""Usage of cpu goes up and down. A series of cores that only rises, to more than this, is a counter."""
MEMORY_PAGE_BYTES = 4096.0
"""The smallest amount of memory that Linux gives to a process. A container that runs uses more."""
MAX_COUNTER_STEP_SECONDS = 3600
"""If the readings of a counter are further apart, their rates are averages over too long a time to show peaks."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Readings that are not the quantity that their source says."""

    reason: str
    """A part of a sentence that says what the readings are or do."""


def usage_of_readings(
    quantity: Quantity, factor: float, times: Sequence[int], readings: Sequence[float]
) -> tuple[Sequence[int], Sequence[float]] | Doubt:
    """Returns the times and values of the usage, in cores or bytes. Of a counter, they are its rates; a counter that
    decreased restarted at zero. `times` ascend. `factor` is the unit of the readings in cores, seconds or bytes."""
    doubt = _find_doubt(quantity, factor, times, readings)
    if doubt:
        return Doubt(doubt)
    values = readings if factor == 1.0 else [reading * factor for reading in readings]
    if quantity is not Quantity.CPU_SECONDS:
        return times, values
    return counter_rate(times, values, max(MAX_GAP_SECONDS, 2 * usual_step(times)))


def usual_step(times: Sequence[int]) -> int:
    """Returns the median of the seconds between two readings; 0 if there are fewer than two."""
    if isinstance(times, range):
        return times.step if len(times) > 1 else 0
    return int(median(later - time for time, later in pairwise(times))) if len(times) > 1 else 0


def _find_doubt(quantity: Quantity, factor: float, times: Sequence[int], readings: Sequence[float]) -> str:
    """Returns why the readings cannot be of this quantity; empty if they can."""
    largest = max(readings, default=0.0) * factor
    if quantity is Quantity.BYTES and 0 < largest < MEMORY_PAGE_BYTES:
        return f"never exceeds {largest:g} bytes, and every container uses more"
    if quantity is Quantity.CPU_SECONDS and usual_step(times) > MAX_COUNTER_STEP_SECONDS:
        return f"is a counter with {usual_step(times)} seconds between two values, which is too long for its rate"
    if len(readings) < MIN_DOUBTED_READINGS:
        return ""
    if quantity is Quantity.CPU_SECONDS:
        falls = sum(later < reading for reading, later in pairwise(readings))
        if 4 * falls <= len(readings):
            return ""
        count = format_count(len(readings), "value")
        return f"falls {falls} times in {count}, and a counter falls only at a restart"
    most = MAX_RISING_CORES if quantity is Quantity.CORES else MAX_AMOUNT["memory"]
    if largest <= most or readings[-1] * factor < largest:
        return ""
    rises = sum(later > reading for reading, later in pairwise(readings))
    falls = sum(later < reading for reading, later in pairwise(readings))
    is_counter = not falls and 2 * rises > len(readings)
    return f"never falls and rises to {largest:g} {quantity}, as a counter does" * is_counter
