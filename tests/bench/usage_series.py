"""Series of usage that requests are fitted on and scored on, what other tools would request, and the scores.

The series of cpu are those of the Numenta Anomaly Benchmark (`make bench-data`), or generated ones where they are not
here. The series of memory are always generated. A rule is better where it wastes less for the same time
under-provisioned: read the two scores together.
"""

from __future__ import annotations

import csv
import gzip
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from tests.bench.bench_data import BITBRAINS, FILES, START_OF_JULY, locate

Sample = tuple[datetime, float]
"""A time without a zone, and cores or bytes."""
DAY, STEP, FIT_DAYS, SERIES_DAYS = timedelta(days=1), timedelta(minutes=5), 10, 14
GIB = 2**30
START = datetime(2026, 1, 5)  # noqa: DTZ001
NAB_FILES = tuple(name for name in FILES if name.startswith(("ec2_", "rds_")))
GENERATED_MACHINES, GENERATED_DAYS = 30, 28


def cpu_series() -> Iterator[tuple[str, str, list[Sample]]]:
    """Yields (name, "cpu", samples) of each series of cpu, in cores."""
    paths = [path for name in NAB_FILES if (path := locate(name)) is not None]
    if len(paths) < len(NAB_FILES):
        yield from ((name, "cpu", _generate(shape)) for name, shape in _cpu_shapes().items())
        return
    for path in sorted(paths, key=lambda path: path.stem):
        with path.open() as file:
            rows = list(csv.DictReader(file))
        yield path.stem, "cpu", [(datetime.fromisoformat(row["timestamp"]), float(row["value"]) / 100) for row in rows]


def memory_series() -> Iterator[tuple[str, str, list[Sample]]]:
    """Yields (name, "memory", samples) of each series of memory, in bytes."""
    yield from ((name, "memory", _generate(shape)) for name, shape in _memory_shapes().items())


Shape = Callable[[float], float]
"""The days since the start → the value then."""


def _generate(shape: Shape, days: int = SERIES_DAYS) -> list[Sample]:
    times = [START + STEP * number for number in range(days * (DAY // STEP))]
    return [(time, shape((time - START) / DAY)) for time in times]


def _memory_shapes() -> Mapping[str, Shape]:
    """Returns daily peaks, a step, a leak that ends in restarts, rare spikes, and a cache that is always full."""
    dice = random.Random(7)
    return {
        "daily-peaks": lambda day: GIB * (1 + 0.6 * max(0, math.sin(2 * math.pi * day)) ** 3 + dice.gauss(0, 0.02)),
        "step-up": lambda day: GIB * (1.0 if day < 6 else 1.5) * (1 + dice.gauss(0, 0.02)),
        "leak": lambda day: GIB * (0.5 + 0.4 * (day % 3.5) / 3.5 + dice.gauss(0, 0.01)),
        "batch-spikes": lambda day: GIB * (0.3 + (2.0 if dice.random() < 0.004 else 0) + abs(dice.gauss(0, 0.02))),
        "flat-cache": lambda day: GIB * (2 + dice.gauss(0, 0.005)),
    }


def _cpu_shapes() -> Mapping[str, Shape]:
    """Returns a working day, a batch job in the night, noise of a long tail, and a step."""
    dice = random.Random(11)
    return {
        "generated-working-day": lambda day: 0.1 + 0.4 * max(0, math.sin(2 * math.pi * day)) + abs(dice.gauss(0, 0.04)),
        "generated-night-job": lambda day: (0.9 if day % 1 < 0.05 else 0.03) * dice.lognormvariate(0, 0.2),
        "generated-long-tail": lambda day: 0.05 * dice.lognormvariate(0, 0.8),
        "generated-step": lambda day: (0.2 if day < 8 else 0.3) * dice.lognormvariate(0, 0.1),
    }


MachineSeries = Mapping[tuple[str, str], list[tuple[int, float]]]
"""(workload, "cpu" or "memory") → samples (seconds, cores or bytes) of four weeks."""


def machine_series() -> MachineSeries:
    """Returns the series of a hundred real machines (`make bench-data`), or generated ones where they are not here."""
    path = locate(BITBRAINS)
    if path is None:
        return _generate_machines()
    series: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            for resource in ("cpu", "memory"):
                if row[resource]:
                    series[row["workload"], resource].append((int(row["timestamp"]), float(row[resource])))
    return series


def _generate_machines() -> MachineSeries:
    """Returns the series of machines whose load, growth and noise are drawn."""
    dice, machines = random.Random(13), {}
    step = int(STEP.total_seconds())
    for number in range(GENERATED_MACHINES):
        base, swing, noise = dice.lognormvariate(-2.5, 1), dice.uniform(0, 3), dice.uniform(0.1, 0.8)
        growth, memory = dice.uniform(-0.01, 0.02), dice.lognormvariate(21, 1)
        spike_share = dice.choice((0.0, 0.001, 0.01))
        cpu_samples, memory_samples = [], []
        for index in range(GENERATED_DAYS * 86400 // step):
            day = index * step / 86400
            load = (1 + swing * max(0.0, math.sin(2 * math.pi * day)) * (day % 7 < 5)) * (1 + growth * day)
            spike = 4 if dice.random() < spike_share else 1
            at = START_OF_JULY + index * step
            cpu_samples.append((at, base * load * spike * dice.lognormvariate(0, noise)))
            memory_samples.append((at, memory * (0.6 + 0.1 * load + 0.05 * dice.random()) * (1 + (spike > 1) / 2)))
        machines[f"Deployment/generated-{number}", "cpu"] = cpu_samples
        machines[f"Deployment/generated-{number}", "memory"] = memory_samples
    return machines


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the exact percentile, by nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def baselines(samples: Sequence[Sample], resource: str) -> Mapping[str, float]:
    """Returns what other rules would request: rule → cores or bytes.

    `vpa` weighs cpu by its use, as the VPA's documentation says; `krr` is P95 of cpu, and the largest memory and 15 %.
    """
    values = [value for _, value in samples]
    return {
        "vpa": _documented_vpa(samples, resource),
        "krr": percentile(values, 0.95) if resource == "cpu" else 1.15 * max(values),
    }


def _documented_vpa(samples: Sequence[Sample], resource: str) -> float:
    """Returns the VPA's default target: buckets that grow by 5 %, weights that double each day, the end of the bucket
    that reaches P90, and 15 %; memory by the peaks of days."""
    first, growth = (0.01, 1.05) if resource == "cpu" else (1e7, 1.05)
    if resource == "memory":
        samples = _daily_peaks(samples)
    start, weights = samples[0][0], dict[int, float]()
    for time, value in samples:
        bucket = 0 if value < first else int(math.log(value * (growth - 1) / first + 1, growth))
        weight = 2 ** ((time - start) / DAY) * (max(value, 0.1) if resource == "cpu" else 1)
        weights[bucket] = weights.get(bucket, 0) + weight
    total, reached = sum(weights.values()), 0.0
    for bucket in sorted(weights):
        reached += weights[bucket]
        if reached >= 0.9 * total:
            break
    end = first * (growth ** (bucket + 1) - 1) / (growth - 1)
    return max(1.15 * end, 0.025 if resource == "cpu" else 250 * 2**20)


def _daily_peaks(samples: Sequence[Sample]) -> list[Sample]:
    peaks: dict[object, Sample] = {}
    for sample in samples:
        peaks[sample[0].date()] = max(peaks.get(sample[0].date(), sample), sample, key=lambda one: one[1])
    return sorted(peaks.values())


def score(request: float, samples: Sequence[Sample]) -> tuple[float, float]:
    """Returns waste (what is requested and not used, as a share of use) and the share of samples above the request."""
    values = [value for _, value in samples]
    waste = sum(max(0.0, request - value) for value in values) / sum(values)
    return waste, sum(value > request for value in values) / len(values)
