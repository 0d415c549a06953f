"""What we saw, as a VPA would have recorded it: a history for a VPA that is new."""

from trimtab.sketch.vpa.checkpoint import Known
from trimtab.sketch.vpa.container import CPU_WEIGHT, MEMORY_WEIGHT
from trimtab.sketch.vpa.histogram import DAY, Histogram
from trimtab.sketch.vpa.scale import CPU, MEMORY
from trimtab.sketch.window import Window


def known(cpu: Window, memory: Window, half_life: float = DAY) -> Known:
    """Cpu as it was seen day by day, older days fading; of memory the greatest of each day, as a VPA keeps it."""
    cores, held = Histogram(CPU, half_life), Histogram(MEMORY, half_life)
    samples = 0
    for day, counts in sorted(cpu.by_day().items()):
        noon = day * DAY + DAY / 2
        samples += counts.total
        for value, count in counts.values():
            cores.add(value, CPU_WEIGHT * count, noon)
    for day, counts in sorted(memory.by_day().items()):
        if counts.total:
            held.add(counts.top, MEMORY_WEIGHT, (day + 1) * DAY)
    return Known(cpu=cores, memory=held, first=cpu.first, last=cpu.last, samples=samples)
