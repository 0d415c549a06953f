"""Workloads that change, made up: does a request stay above what is used now, and within reason?

Each case is told through the product's own path (a diary, what was seen, the request), and through the VPA's
arithmetic. All are seeded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import OomKill
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.histogram.vpa import AggregateContainerState as VpaContainer
from trimtab.histogram.vpa import Histogram
from trimtab.histogram.vpa_estimators import estimate_target
from trimtab.sizing.adaptive_bounds import AdaptiveRequest, adaptive_request, last_day_use, oom_floor
from trimtab.sizing.statistics import UsageStatistics, summarize_usage

START = 20_460 * DAY
"""2026-01-07, a Wednesday."""
DAYS, STEP = 14, 300
GI, MI = 1 << 30, 1 << 20
APP = ContainerKey("shop", "Deployment", "web", "app")
OVER = 1.25
Use = Callable[[int, float], tuple[float, float]]
"""(pod, days since the start) → (cores, bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload."""

    name: str
    use: Use
    pods: int = 1
    days: float = DAYS
    kills: Callable[[float], OomKill | None] = lambda day: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was asked for one resource, in cores or bytes."""

    now: float
    """What a usual pod uses at the end."""
    ours: float
    vpa: float
    floors: float
    """The greatest of the bounds from below that a request has to keep."""
    request: AdaptiveRequest
    confidence: float

    @property
    def below_use(self) -> bool:
        return self.ours < self.now

    @property
    def over(self) -> bool:
        return self.ours > OVER * max(self.vpa, self.floors)


def _step(pod: int, day: float, *, at: float = DAYS - 0.5) -> tuple[float, float]:
    return (2.0, 4.0 * GI) if day >= at else (0.2, 1.0 * GI)


def _growth(pod: int, day: float) -> tuple[float, float]:
    grown = 1.1 ** (day - DAYS)
    return 0.6 * grown, 2457 * MI * grown


def _leader(pod: int, day: float) -> tuple[float, float]:
    return (3.0, 8.0 * GI) if pod == 7 else (0.2, 1.0 * GI)


def _weekly(pod: int, day: float) -> tuple[float, float]:
    # the last time two days before the end
    saturday = int(day) % 7 == 5 and 0.25 <= day % 1 < 0.25 + 2 / 24
    return 0.1, (6.0 if saturday else 1.0) * GI


def _drop(pod: int, day: float) -> tuple[float, float]:
    return (0.2, 1.0 * GI) if day >= DAYS - 3 else (2.0, 4.0 * GI)


def _start_up(pod: int, day: float) -> tuple[float, float]:
    return (2.0 if day % 1 < 10 / 1440 else 0.1), 2.0 * GI


def _steady(pod: int, day: float) -> tuple[float, float]:
    return 0.4, 500.0 * MI


def _killed(day: float) -> OomKill | None:
    """Every five minutes of the last day; the container asks for 512 MiB, and no limit says more."""
    return OomKill(at=START + int(day * DAY), request=512.0 * MI) if day >= DAYS - 1 else None


CASES = (
    Case(name="step", use=_step),
    Case(name="step at noon", use=partial(_step, at=DAYS - 0.5), days=DAYS - 0.25),
    Case(name="growth", use=_growth),
    Case(name="leader", use=_leader, pods=30),
    Case(name="weekly", use=_weekly),
    Case(name="drop", use=_drop),
    Case(name="start-up", use=_start_up),
    Case(name="crash loop", use=_steady, kills=_killed),
    Case(name="steady", use=_steady),
)


@dataclass(slots=True)
class _World:
    case: Case
    diary: LiveHistory = field(default_factory=LiveHistory)
    vpa: VpaContainer = field(default_factory=VpaContainer)
    latest: dict[str, list[float]] = field(default_factory=dict)


def played(case: Case) -> tuple[LiveHistory, VpaContainer, Mapping[str, float], int]:
    """What our recommender and the VPA know at the end; what a usual pod uses in the last hour; the moment."""
    drawn, world = random.Random(7), _World(case)
    vpas = [VpaContainer() for _ in range(case.pods)]
    end = START + int(case.days * DAY)
    for at in range(START, end, STEP):
        day = (at - START) / DAY
        for pod in range(case.pods):
            cores, holding = (amount * drawn.gauss(1, 0.01) for amount in case.use(pod, day))
            world.diary.add_sample(APP, f"web-{pod}", "cpu", at, cores)
            world.diary.add_sample(APP, f"web-{pod}", "memory", at, holding)
            vpas[pod].add_cpu_sample(at, cores)
            vpas[pod].add_memory_sample(at, holding)
            if at >= end - HOUR:
                world.latest.setdefault("cpu", []).append(cores)
                world.latest.setdefault("memory", []).append(holding)
            kill = case.kills(day)
            if kill is not None:
                world.diary.add_oom_kill(APP, f"web-{pod}", kill)
                vpas[pod].record_oom(at, kill.request)
        world.diary.close_intervals(at)
    return world.diary, _merged(vpas), {name: _median(values) for name, values in world.latest.items()}, end


def _merged(vpas: list[VpaContainer]) -> VpaContainer:
    """The VPA adds the samples of all pods of a workload."""
    first = vpas[0]
    for other in vpas[1:]:
        for name in RESOURCES:
            mine, theirs = getattr(first, name), getattr(other, name)
            assert isinstance(mine, Histogram)
            mine.merge(theirs)
    return first


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def outcomes(case: Case) -> Mapping[str, Outcome]:
    """What is asked for each resource."""
    diary, vpa, now, end = played(case)
    return {resource: _outcome(resource, diary, vpa, now[resource], end) for resource in RESOURCES}


def _outcome(resource: str, diary: LiveHistory, vpa: VpaContainer, now: float, end: int) -> Outcome:
    window, running = diary.get_window(APP, resource), diary.running_peaks(APP, resource)
    oom, pods = diary.oom_records.get(APP), diary.average_pod_uses(APP, resource)
    statistics = summarize_usage(resource, window, end, running, running_seconds=DAY, oom=oom, pods=pods)
    assert isinstance(statistics, UsageStatistics), statistics
    assert statistics.adaptive is not None
    histogram = vpa.cpu if resource == "cpu" else vpa.memory
    assert isinstance(histogram, Histogram)
    theirs = estimate_target(resource, histogram) / (1000 if resource == "cpu" else 1)
    covered = statistics.adaptive.pod_use if not statistics.adaptive.doubts else 0.0
    floor = oom_floor(oom, statistics.max, end, diary.days * DAY) if resource == "memory" else 0.0
    floors = max(last_day_use(resource, window, window.histograms_by_day(), len(pods)), floor, covered)
    return Outcome(
        now=now,
        ours=statistics.adaptive.amount,
        vpa=theirs,
        floors=floors,
        request=statistics.adaptive,
        confidence=statistics.confidence,
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many requests are below use, how many too far above; what else is wrong."""

    below_use: int
    over: int
    broken: tuple[str, ...]
    table: tuple[str, ...]


def run() -> Verdict:
    """Every case, printed."""
    actual_outcomes = {case.name: outcomes(case) for case in CASES}
    table = ["| case | uses now | adaptive | the VPA | confidence | signs |", "|---|---|---|---|---|---|"]
    for name, both in actual_outcomes.items():
        table.append(_row(name, both))
        print("  " + table[-1])
    every = [(f"{name} {resource}", one) for name, both in actual_outcomes.items() for resource, one in both.items()]
    below, over = ([name for name, one in every if wrong(one)] for wrong in (lambda o: o.below_use, lambda o: o.over))
    broken = (
        [f"below use: {name}" for name in below]
        + [f"too far above: {name}" for name in over]
        + _others(actual_outcomes)
    )
    return Verdict(len(below), len(over), tuple(broken), tuple(table))


def _row(name: str, both: Mapping[str, Outcome]) -> str:
    cpu, memory = both["cpu"], both["memory"]
    amounts = [
        f"{c * 1000:.0f}m {m / MI:.0f}Mi"
        for c, m in ((cpu.now, memory.now), (cpu.ours, memory.ours), (cpu.vpa, memory.vpa))
    ]
    signs = sorted({*cpu.request.doubts, *memory.request.doubts, cpu.request.bound, memory.request.bound} - {""})
    return f"| {name} | {' | '.join(amounts)} | {cpu.confidence:.2f} {memory.confidence:.2f} | {', '.join(signs)} |"


def _others(result: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    """What single cases have to show beside that."""
    weekly, leader, loop = (result[name]["memory"] for name in ("weekly", "leader", "crash loop"))
    drops = all(one.ours < one.vpa for one in result["drop"].values())
    expected = {
        "drop is below the VPA's after three days": drops,
        "weekly covers the last peak or is sure to less than a half": weekly.ours >= 6 * GI or weekly.confidence < 0.5,
        "leader names the pod": leader.request.pod == "web-7" and "pods-differ" in leader.request.doubts,
        "the crash loop ends between 612 MiB and a bucket above the VPA's": 612 * MI <= loop.ours <= loop.vpa * 1.07,
    }
    return [f"not so: {what}" for what, holds in expected.items() if not holds]


__all__ = ["CASES", "Case", "Outcome", "Verdict", "adaptive_request", "outcomes", "played", "run"]
