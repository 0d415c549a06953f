"""What the VPA records of one container: cpu as it comes, memory by the peak of a day, a bump for every OOM kill."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from trimtab.sketch.peaks import wanted
from trimtab.sketch.vpa.histogram import DAY, Histogram
from trimtab.sketch.vpa.scale import CPU, MEMORY

CPU_WEIGHT = 0.1
MEMORY_WEIGHT = 1.0
INTERVALS = 8
"""Intervals of memory that are kept; a container not seen for as long is forgotten."""


class TooOld(ValueError):
    """An OOM kill from before the last interval."""


class Samples(Protocol):
    """Where samples go."""

    def add(self, value: float, weight: float, at: float = 0.0) -> None: ...

    def subtract(self, value: float, weight: float, at: float = 0.0) -> None: ...


@dataclass(slots=True)
class Container:
    """Times in seconds, cpu in cores, memory in bytes."""

    cpu: Samples = field(default_factory=lambda: Histogram(CPU, DAY))
    memory: Samples = field(default_factory=lambda: Histogram(MEMORY, DAY))
    interval: float = DAY
    last_cpu: float | None = None
    last_memory: float | None = None
    window_end: float | None = None
    peak: float = 0.0
    oom_peak: float = 0.0

    def use_cpu(self, at: float, cores: float) -> bool:
        """False where the sample is not newer than the last, or negative."""
        if cores < 0 or (self.last_cpu is not None and at <= self.last_cpu):
            return False
        self.last_cpu = at
        self.cpu.add(cores, CPU_WEIGHT, at)
        return True

    def use_memory(self, at: float, held: float) -> bool:
        """False where the sample is older than the last, or negative."""
        if held < 0 or (self.last_memory is not None and at < self.last_memory):
            return False
        self._take(at, held, oom=False)
        return True

    def kill(self, at: float, request: float) -> None:
        """Killed for want of memory. The bump of an earlier kill does not count for this one. Raises TooOld."""
        if self.last_memory is not None and at < self.last_memory - self.interval:
            raise TooOld(f"an OOM kill {self.last_memory - at:.0f} s before the last sample")
        self._take(at, wanted(self.peak, request), oom=True)

    def _take(self, at: float, held: float, *, oom: bool) -> None:
        self.last_memory = at if self.last_memory is None else max(self.last_memory, at)
        if self.window_end is None:
            self.window_end = at
        if at < self.window_end:
            before = max(self.peak, self.oom_peak)
            if held <= before:
                return
            self.memory.subtract(before, MEMORY_WEIGHT, self.window_end)
        else:
            self.window_end += (at - self.window_end) // self.interval * self.interval + self.interval
            self.peak = self.oom_peak = 0.0
        self.memory.add(held, MEMORY_WEIGHT, self.window_end)
        if oom:
            self.oom_peak = held
        else:
            self.peak = held

    def forgotten(self, now: float) -> bool:
        """No sample for eight intervals."""
        return self.last_cpu is not None and now - self.last_cpu >= INTERVALS * self.interval
