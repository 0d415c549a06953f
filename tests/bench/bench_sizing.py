"""How small, how exact and how fast are sketches, and how good are the requests made of them?

    make bench-sizing       on real series after `make bench-data`, else on generated ones
    … --docs                also writes the tables and the picture of docs/explanation/requests-from-usage.md

The last line is `RESULT bytes_per_container=… p95_error=… updates_per_s=…` and the figures of `scoring` (all visible
series, both origins, beside the VPA's own answers), of `drift` (workloads that change) and of `pod_level` (requests of
whole pods): bytes in memory per container and resource with the whole window, the worst error of P5 and P95 against
exact ones, values a second. It fails where a figure is above its limit, on all series or on the half that the rule's
constants were not chosen on.
"""

from __future__ import annotations

import gc
import random
import resource
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial

import datasketches
import msgspec

from tests.bench import backtesting, by_hour, drift, pod_level, scoring
from tests.bench.bench_data import BITBRAINS, say_generated
from tests.bench.results import choose_size, is_standard, report_result
from tests.bench.usage_series import NAB_FILES
from tests.build import owner_key
from tests.histogram.test_sizes import filled, size
from trimtab.cluster.owner import OwnerKey
from trimtab.histogram.batch_history import BatchHistory
from trimtab.histogram.daily_window import DailyHistograms, add_to_windows
from trimtab.histogram.time_buckets import DAY
from trimtab.histogram.vpa import CPU_SCALE, Histogram
from trimtab.histogram.vpa import DAY as HALF_LIFE
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus_response import parse_series
from trimtab.usage.series import add_all_series

CONTAINERS = choose_size(100_000, 10_000)
SAMPLED = choose_size(2_000, 200)
"""Containers with a whole window, from whose size that of all is told."""
SERIES, POINTS = choose_size(2_000, 200), 2_016
ROUNDS = choose_size(3, 1)
START = 20_000 * DAY
IN_RESULT = (
    "cpu_waste_at_vpa_risk",
    "cpu_under_vs_vpa",
    "memory_waste_vs_vpa",
    "memory_waste_at_vpa_episodes",
    "memory_waste_at_vpa_ever",
)


def main() -> None:
    is_generated = say_generated("bench-sizing", BITBRAINS, *NAB_FILES)
    bytes_each, updates = memory(), speed()
    error = exactness()
    answers()
    write = "--docs" in sys.argv and not is_generated and is_standard()
    backtesting.run(write=write)
    by_hour.run()
    print("workloads that change:")
    changing, scored = drift.run(), scoring.run()
    whole_pods = pod_level.run()
    if write:
        backtesting.put("unseen weeks", scored.table)
        backtesting.put("workloads that change", changing.table)
    report_result(
        "sizing",
        f"bytes_per_container={bytes_each:.0f} p95_error={error:.4f} updates_per_s={updates:.0f}"
        f" {' '.join(f'{name}={scored.figures[name]:.2f}' for name in IN_RESULT)}"
        f" drift_below_use={changing.below_use} drift_over={changing.over}"
        f" pod_level_over_containers={whole_pods['cpu_0']:.2f}"
        f" pod_level_over_containers_memory={whole_pods['memory_0']:.2f}"
        f" pod_level_at_correlation_1={whole_pods['cpu_1']:.3f}",
        broken=dict.fromkeys((*scored.broken, *changing.broken, *pod_level.broken(whole_pods)), True),
        is_generated=is_generated,
    )


def rss() -> float:
    """Bytes now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def memory() -> float:
    """Two weeks of a sample a minute (cpu) and of peaks (memory), held."""
    drawn = random.Random(7)
    gc.collect()
    before, windows = rss(), []
    for number in range(SAMPLED):
        window = DailyHistograms()
        for day in range(14):
            window.add_values(START + day * DAY, START + (day + 1) * DAY - 1, _day(drawn, number % 2 == 1))
        windows.append(window)
    gc.collect()
    each = (rss() - before) / SAMPLED
    dumped = sum(len(window.dump()) for window in windows) / SAMPLED
    largest = max(map(size, windows))
    print(
        f"a window of 14 days: {each:,.0f} bytes in memory on average of cpu and memory, {dumped:,.0f} in a checkpoint"
    )
    print(f"  the largest {largest:,}; the VPA's histogram: 1 408 of weights alone, about 230 in a checkpoint")
    wide = {f"{a_day:,} a day": size(filled(_wide, a_day)[0]) for a_day in (1440, 14_400)}
    print(
        f"  spread over four powers of ten each day: {', '.join(f'{holding:,} ({n})' for n, holding in wide.items())}"
    )
    return each


def _wide(drawn: random.Random) -> float:
    return 10.0 ** drawn.uniform(-3.6, 0)


def _day(drawn: random.Random, peaks: bool) -> array[float]:
    """A sample a minute that spreads over about three octaves, or four peaks that hardly spread."""
    base = drawn.lognormvariate(-2, 0.3)
    if peaks:
        return array("f", [base * 1e10 * drawn.lognormvariate(0, 0.1) for _ in range(4)])
    return array("f", [base * drawn.lognormvariate(0, 0.35) for _ in range(1440)])


def speed() -> float:
    """A poll of a whole cluster: one value for each of 100 000 containers and two resources."""
    drawn = random.Random(7)
    windows = [DailyHistograms() for _ in range(2 * CONTAINERS)]
    values = [[drawn.lognormvariate(-2, 0.3) for _ in windows] for _ in range(2)]
    for warm in range(4):
        add_to_windows(windows, START + 60 * warm, values[warm % 2])
    cpus = min(_cpu(lambda at=at: add_to_windows(windows, START + 60 * at, values[at % 2])) for at in range(5, 9))  # type: ignore[misc]
    theirs = Histogram(CPU_SCALE, HALF_LIFE)
    vpa = _cpu(lambda: _fill(theirs, values[0][:50_000]))
    bulk = array("f", values[0])
    many = _cpu(lambda: DailyHistograms().add_values(START, START, bulk))
    print(f"updates: {len(windows) / cpus:,.0f}/s of one value for each of {len(windows):,} sketches,")
    print(f"  {len(bulk) / many:,.0f}/s of many values for one; the VPA's histogram in Python {50_000 / vpa:,.0f}/s")
    return len(windows) / cpus


def _fill(histogram: Histogram, values: list[float]) -> None:
    for value in values:
        histogram.add_sample(value, 0.1, START)


def _cpu(work: Callable[[], object]) -> float:
    """Of this thread: libraries that are measured beside us have threads of their own."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def exactness() -> float:
    """Against nearest rank, on the real series: P5 and P95, each over the whole and over its first ten days."""
    worst = 0.0
    for name, times, values in backtesting.cpu():
        book = BatchHistory()
        add_all_series(book, [backtesting.series("cpu", times, values)], OwnerIndex())
        window = book.compressed_window(book.list_containers()[0], "cpu")
        oldest = (window.newest - window.days + 1) * DAY
        rest = sorted(v for t, v in zip(times, values, strict=True) if t >= oldest)
        percentiles = window.compute_percentiles((0.05, 0.95))
        errors = [abs(f / backtesting.rank(rest, s) - 1) for f, s in zip(percentiles, (0.05, 0.95), strict=True)]
        print(f"  {name}: P5 off by {errors[0]:.2%}, P95 by {errors[1]:.2%}")
        worst = max(worst, *errors)
        _beside(rest)
    return worst


def _beside(rest: list[float]) -> None:
    """The same by a t-digest and by the VPA's histogram."""
    digest, vpa = datasketches.tdigest_double(100), Histogram(CPU_SCALE)
    for value in rest:
        digest.update(value)
        vpa.add_sample(value, 0.1)
    for name, ask in (("t-digest", digest.get_quantile), ("VPA", vpa.percentile)):
        off = [ask(share) / backtesting.rank(rest, share) - 1 for share in (0.05, 0.95)]
        print(f"    {name}: {off[0]:+.2%}, {off[1]:+.2%}")
    print(f"    t-digest: {len(digest.serialize()):,} bytes in a checkpoint; it cannot forget a day")


class _Alone(OwnerIndex):
    """Every pod a workload of its own: the most there can be to write down."""

    def topmost_owner(self, namespace: str, pod: str) -> OwnerKey:
        return owner_key(f"Deployment/{pod}", namespace)


def _read_into(book: BatchHistory, body: bytes, name: str) -> None:
    add_all_series(book, parse_series(body, name), _Alone())


def answers() -> None:
    """An answer of Prometheus, read, parsed and sketched; the best of some rounds, since neighbours cost cache."""
    for name in ("cpu", "memory"):
        body = _body(name)
        gc.collect()
        before = rss()
        cpus, grown, alone = [], [], []
        for _ in range(ROUNDS):
            book = BatchHistory()
            cpus.append(_cpu(partial(_read_into, book, body, name)))
            grown.append(max(0.0, rss() - before) / (1 << 20))
            alone.append(_cpu(lambda body=body: _decode(body)))  # type: ignore[misc]
        print(
            f"an answer of {SERIES} series × {POINTS} points of {name} ({len(body) / (1 << 20):.0f} MiB): "
            f"{min(cpus) / SERIES * 1000:.2f} ms of CPU a series (decoding by names alone "
            f"{min(alone) / SERIES * 1000:.2f}); {max(grown):.0f} MiB above the body"
        )


def _decode(body: bytes) -> None:
    """What every reader pays: the numbers as floats, series by series."""
    for raw in _raws(body):
        _POINTS.decode(raw)


class _Data(msgspec.Struct):
    result: list[msgspec.Raw]


class _Answer(msgspec.Struct):
    data: _Data


class _Series(msgspec.Struct):
    values: list[tuple[float, float]]


_POINTS = msgspec.json.Decoder(_Series, strict=False)


def _raws(body: bytes) -> list[msgspec.Raw]:
    return msgspec.json.decode(body, type=_Answer).data.result


def _body(name: str) -> bytes:
    return b"".join(_written(name))


def _written(name: str) -> Iterator[bytes]:
    drawn = random.Random(7)
    yield b'{"status":"success","data":{"resultType":"matrix","result":['
    shapes = [[drawn.lognormvariate(0, 0.3) for _ in range(POINTS)] for _ in range(20)]
    for number in range(SERIES):
        base = drawn.lognormvariate(-2, 1)
        points = ",".join(
            f'[{START + 300 * at},"{base * value!r}"]'
            if name == "cpu"
            else f'[{START + 300 * at},"{int(base * 1e10 * value)}"]'
            for at, value in enumerate(shapes[number % 20])
        )
        metric = f'{{"namespace":"shop","pod":"web-7d4b9c6f5d-{number:05}","container":"app"}}'
        yield f'{"," if number else ""}{{"metric":{metric},"values":[{points}]}}'.encode()
    yield b"]}}"


if __name__ == "__main__":
    main()
