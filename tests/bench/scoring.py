"""Requests scored on the week after they were made, beside the VPA's answers and KRR's rule.

Pooled waste is the sum of what is reserved and not used over the points above use, as a share of all that is used. A
request that wastes less by being short more often is not better, so a rule is also scaled by one factor until it is
short as often as the VPA: in mean time (cpu), in episodes (runs of points above the request) or in series that are ever
above it (memory). Floors are the VPA's for everybody.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil

from tests.bench.usage_series import machine_series
from trimtab.cluster.usage_rule import UsageRule
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.time_buckets import DAY
from trimtab.histogram.vpa import AggregateContainerState, Histogram
from trimtab.histogram.vpa_estimators import estimate_target
from trimtab.sizing.request import ADAPTIVE, P95, CurrentResources, Proposal, SizingSettings, propose_request
from trimtab.sizing.statistics import UsageStatistics, summarize_usage

START = 1_372_636_800
"""2013-07-01 UTC."""
ORIGINS = (14, 21)
"""Days after which a request is made, from the 14 days before, and scored on the 7 after."""
FIT_DAYS, HELD_DAYS = 14, 7
FLOORS = {"cpu": 0.025, "memory": float(250 << 20)}
RESOURCES = ("cpu", "memory")
RULES: Mapping[str, UsageRule] = {"adaptive": ADAPTIVE, "p95": P95}
RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Scored:
    """One series of one origin: the week after, and what each rule asks for."""

    name: str
    resource: str
    used: float
    ordered: Sequence[float]
    sums: Sequence[float]
    """Of the values up to each."""
    begins: Sequence[float]
    ends: Sequence[float]
    """Values before and after each rise, ordered: a request between the two is where an episode begins."""
    asked: Mapping[str, float]

    @classmethod
    def of(cls, name: str, resource: str, values: Sequence[float], asked: Mapping[str, float]) -> Scored:
        ordered = sorted(values)
        rises = [(0.0, values[0]), *((before, after) for before, after in pairwise(values) if after > before)]
        return cls(
            name,
            resource,
            sum(values),
            ordered,
            [0.0, *accumulate(ordered)],
            sorted(before for before, _ in rises),
            sorted(after for _, after in rises),
            asked,
        )

    def wasted(self, request: float) -> float:
        below = bisect_right(self.ordered, request)
        return request * below - self.sums[below]

    def under(self, request: float) -> float:
        return 1 - bisect_right(self.ordered, request) / len(self.ordered)

    def episodes(self, request: float) -> int:
        return bisect_right(self.begins, request) - bisect_right(self.ends, request)

    def request(self, rule: str, factor: float = 1.0) -> float:
        return max(FLOORS[self.resource], self.asked[rule] * factor)


def waste(scored: Sequence[Scored], rule: str, factor: float = 1.0) -> float:
    """Pooled."""
    return sum(one.wasted(one.request(rule, factor)) for one in scored) / sum(one.used for one in scored)


def mean_under(scored: Sequence[Scored], rule: str, factor: float = 1.0) -> float:
    return sum(one.under(one.request(rule, factor)) for one in scored) / len(scored)


def all_episodes(scored: Sequence[Scored], rule: str, factor: float = 1.0) -> float:
    return sum(one.episodes(one.request(rule, factor)) for one in scored)


def ever_above(scored: Sequence[Scored], rule: str, factor: float = 1.0) -> float:
    return sum(one.under(one.request(rule, factor)) > 0 for one in scored)


Risk = Callable[[Sequence[Scored], str, float], float]


def waste_at_risk(scored: Sequence[Scored], rule: str, risk: Risk, halvings: int = 30) -> float:
    """The rule's waste as a share of the VPA's, scaled until it is as much at risk as the VPA."""
    aim, low, high = risk(scored, "vpa", 1.0), 0.05, 20.0
    for _ in range(halvings):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if risk(scored, rule, middle) > aim else (low, middle)
    return waste(scored, rule, high) / waste(scored, "vpa")


def figures(cpu: Sequence[Scored], memory: Sequence[Scored], rule: str, halvings: int = 30) -> dict[str, float]:
    """All figures of a rule beside the VPA, by their names in the result."""
    return {
        "cpu_waste_at_vpa_risk": waste_at_risk(cpu, rule, mean_under, halvings),
        "cpu_under_vs_vpa": mean_under(cpu, rule) / mean_under(cpu, "vpa"),
        "cpu_waste_vs_vpa": waste(cpu, rule) / waste(cpu, "vpa"),
        "memory_waste_vs_vpa": waste(memory, rule) / waste(memory, "vpa"),
        "memory_episodes_vs_vpa": all_episodes(memory, rule) / max(1.0, all_episodes(memory, "vpa")),
        "memory_ever_vs_vpa": ever_above(memory, rule) / max(1.0, ever_above(memory, "vpa")),
        "memory_waste_at_vpa_episodes": waste_at_risk(memory, rule, all_episodes, halvings),
        "memory_waste_at_vpa_ever": waste_at_risk(memory, rule, ever_above, halvings),
    }


def intervals(cpu: Sequence[Scored], memory: Sequence[Scored], rule: str) -> dict[str, tuple[float, float]]:
    """The 5th and 95th percentile of each figure over series drawn anew with replacement, both origins together."""
    drawn, names = random.Random(7), sorted({one.name for one in cpu})
    parts = [{name: [one for one in scored if one.name == name] for name in names} for scored in (cpu, memory)]
    results: dict[str, list[float]] = defaultdict(list)
    for _ in range(RESAMPLES):
        chosen = drawn.choices(names, k=len(names))
        samples = [[one for name in chosen for one in part[name]] for part in parts]
        for name, value in figures(*samples, rule, halvings=14).items():
            results[name].append(value)
    return {name: (rank(sorted(values), 0.05), rank(sorted(values), 0.95)) for name, values in results.items()}


def rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def is_chosen_on(name: str) -> bool:
    """Whether the series is of the half that the rule's constants were chosen on."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


# ── the visible series ───────────────────────────────────────────────────────────────────────────────────────────

Points = Sequence[tuple[int, float]]


def visible() -> Iterator[Scored]:
    """Every series of both resources and origins, with the requests of every rule. The rules of ours go the way of the
    product: a book, what was seen, the request within its bounds."""
    for (name, resource), points in sorted(machine_series().items()):
        for origin in ORIGINS:
            cut = START + origin * DAY
            fit = [point for point in points if cut - FIT_DAYS * DAY <= point[0] < cut]
            values = [value for at, value in points if cut <= at < cut + HELD_DAYS * DAY]
            request = {rule: ours(resource, fit, terms) for rule, terms in _TERMS.items()}
            request |= {"vpa": vpa(resource, fit), "krr": krr(resource, fit)}
            yield Scored.of(name, resource, values, request)


_TERMS = {name: SizingSettings(rule=rule, min_cpu=25, min_memory=int(FLOORS["memory"])) for name, rule in RULES.items()}


def ours(resource: str, fit: Points, terms: SizingSettings) -> float:
    """What the product asks for, in cores or bytes."""
    book, container = BatchHistory(), ContainerKey("shop", "Deployment", "web", "app")
    book.add_series(container, resource, [at for at, _ in fit], [value for _, value in fit])
    statistics = summarize_usage(resource, book.compressed_window(container, resource))
    assert isinstance(statistics, UsageStatistics), statistics
    proposal = propose_request(CurrentResources(resource=resource, request=None, limit=None), statistics, terms)
    assert isinstance(proposal, Proposal), proposal
    return proposal.request / 1000 if resource == "cpu" else float(proposal.request)


def krr(resource: str, fit: Points) -> float:
    """KRR's default: P95 of cpu, the greatest value of memory and 15 %."""
    ordered = sorted(value for _, value in fit)
    return rank(ordered, 0.95) if resource == "cpu" else ordered[-1] * 1.15


def vpa(resource: str, fit: Points) -> float:
    """The VPA's default target, in cores or bytes.

    It is that of `trimtab.histogram.vpa`, which gives what the VPA recommender's own code (1.6) gives for 397 of the
    400 series here, and more for the cpu of three."""
    container = AggregateContainerState()
    add_sample = container.add_cpu_sample if resource == "cpu" else container.add_memory_sample
    for seconds, value in fit:
        add_sample(float(seconds), value)
    histogram = container.cpu if resource == "cpu" else container.memory
    assert isinstance(histogram, Histogram)
    target = estimate_target(resource, histogram)
    return target / 1000 if resource == "cpu" else float(target)


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────────

LIMITS = {
    "cpu_waste_at_vpa_risk": 0.95,
    "cpu_under_vs_vpa": 1.0,
    "memory_waste_at_vpa_episodes": 1.03,
    "memory_waste_at_vpa_ever": 1.12,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The figures over all visible series, and what of them is above its limit."""

    figures: Mapping[str, float]
    broken: tuple[str, ...]
    table: tuple[str, ...]
    """Of the page that explains requests from usage."""


def run() -> Verdict:
    """Scores every rule on all series and on either half, and prints it."""
    scored = list(visible())
    halves = {
        "all": scored,
        "chosen on": [one for one in scored if is_chosen_on(one.name)],
        "held out": [one for one in scored if not is_chosen_on(one.name)],
    }
    table, broken = list(_head(scored)), list[str]()
    results: dict[str, float] = {}
    for half, part in halves.items():
        cpu, memory = ([one for one in part if one.resource == resource] for resource in RESOURCES)
        print(f"{half}: {len(cpu)} container-weeks of {len({one.name for one in cpu})} series")
        spread = intervals(cpu, memory, "adaptive")
        for rule in (*RULES, "krr"):
            ratios = figures(cpu, memory, rule)
            table.append(_row(half, rule, ratios))
            for name, value in ratios.items():
                between = f"  [{spread[name][0]:.2f}, {spread[name][1]:.2f}]" if rule == "adaptive" else ""
                print(f"  {rule:9} {name:30} {value:.3f}{between}")
            if rule == "adaptive":
                results = results or ratios
                broken += [
                    f"{name} {ratios[name]:.3f} > {limit} ({half})"
                    for name, limit in LIMITS.items()
                    if half != "chosen on" and ratios[name] > limit
                ]
    return Verdict(results, tuple(broken), tuple(table))


_COLUMNS = {
    "waste": "cpu_waste_vs_vpa",
    "time under": "cpu_under_vs_vpa",
    "waste at the VPA's time": "cpu_waste_at_vpa_risk",
    "memory: waste": "memory_waste_vs_vpa",
    "episodes": "memory_episodes_vs_vpa",
    "ever above": "memory_ever_vs_vpa",
    "waste at the VPA's episodes": "memory_waste_at_vpa_episodes",
    "waste at as many ever above": "memory_waste_at_vpa_ever",
}


def _head(scored: Sequence[Scored]) -> Iterator[str]:
    cpu, memory = ([one for one in scored if one.resource == resource] for resource in RESOURCES)
    yield (
        f"The VPA itself: cpu wastes {waste(cpu, 'vpa'):.0%} of what is used and is short for "
        f"{mean_under(cpu, 'vpa'):.2%} of the time; memory wastes {waste(memory, 'vpa'):.0%}, with "
        f"{all_episodes(memory, 'vpa'):.0f} episodes in {ever_above(memory, 'vpa'):.0f} of {len(memory)} "
        "container-weeks."
    )
    yield ""
    yield f"| series | rule | cpu: {' | '.join(_COLUMNS)} |"
    yield f"|---|---|{'---|' * len(_COLUMNS)}"


def _row(half: str, rule: str, ratios: Mapping[str, float]) -> str:
    return f"| {half} | {rule} | {' | '.join(f'{ratios[name]:.2f}' for name in _COLUMNS.values())} |"
