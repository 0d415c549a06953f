"""What we saw, as a VPA would remember it: a history for one that is fresh."""

from trimtab.sketch.vpa.checkpoint import Known
from trimtab.sketch.vpa.container import CPU_WEIGHT, INTERVALS, MEMORY_WEIGHT
from trimtab.sketch.vpa.histogram import DAY, Histogram
from trimtab.sketch.vpa.scale import CPU, MEMORY
from trimtab.sketch.window import Window


def known(cpu: Window, memory: Window, half_life: float = DAY) -> Known:
    """Of cpu every day's values, faded by their age; of memory the greatest of each of the last eight days."""
    return Known(
        cpu=_cpu(cpu, half_life), memory=_memory(memory, half_life), first=min(filter(None, (cpu.first, memory.first))),
        last=max(cpu.last, memory.last), samples=cpu.whole().total,
    )  # fmt: skip


def _cpu(window: Window, half_life: float) -> Histogram:
    found = Histogram(CPU, half_life)
    for day, counts in sorted(window.by_day().items()):
        middle = min(window.last, max(window.first, int((day + 0.5) * DAY)))
        for value, count in counts.values():
            found.add(value, CPU_WEIGHT * count, middle)
    return found


def _memory(window: Window, half_life: float) -> Histogram:
    found = Histogram(MEMORY, half_life)
    for day, counts in sorted(window.by_day().items())[-INTERVALS:]:
        found.add(counts.top, MEMORY_WEIGHT, (day + 1) * DAY)
    return found
