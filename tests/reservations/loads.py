"""Generated loads: nodes with a known base and slope, noise, outliers, missing scrapes, a restart."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.reservations.overhead_history import OverheadHistory, OverheadSample

AT = 1767571200
"""2026-01-05T00:00:00Z."""


@dataclass(frozen=True)
class Runtime:
    """Megabytes (10^6) and millicores at base and for each pod."""

    base_mb: float
    mb: float
    base_millicores: float
    millicores: float


CONTAINERD = Runtime(3222, 13.5, 17, 0.84)
DOCKER = Runtime(2573, 23.2, 28, 1.69)


def samples(
    runtime: Runtime, *, nodes: int = 40, days: int = 7, step: int = 1800, noise: float = 0.03, seed: int = 1
) -> Iterator[OverheadSample]:
    """Nodes with 20 to 110 pods. Three percent of the samples are outliers, five are missing, one node restarts."""
    draw = random.Random(seed)
    for number in range(nodes):
        pods = draw.randint(20, 110)
        for second in range(AT, AT + days * 86400, step):
            pods = min(110, max(20, pods + draw.randint(-2, 2)))
            memory = (runtime.base_mb + runtime.mb * pods) * 1e6 * draw.gauss(1, noise)
            cpu = (runtime.base_millicores + runtime.millicores * pods) * draw.gauss(1, noise)
            if draw.random() < 0.03:
                memory, cpu = memory * draw.uniform(1.5, 4), cpu * draw.uniform(2, 10)
            if number == 3 and second // 3600 % 48 == 7:
                # The kubelet has just started: its caches are empty.
                memory, cpu = memory * 0.2, cpu * 0.1
            missing = draw.random() < 0.05
            yield OverheadSample(
                node=f"node-{number}",
                second=second,
                pods=pods,
                millicores=None if missing else max(cpu, 0.0),
                memory_bytes=None if missing else max(memory, 0.0),
            )


def history_of(all_samples: Iterator[OverheadSample]) -> OverheadHistory:
    history = OverheadHistory()
    for sample in all_samples:
        history.add_sample(sample)
    return history
