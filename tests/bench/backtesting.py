"""Requests fitted on ten days and scored on four, over every percentile: the frontier, its table and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from tests.bench.usage_series import DAY, FIT_DAYS, baselines, cpu_series, memory_series, score
from trimtab.histogram.batch_history import BatchHistory
from trimtab.histogram.vpa import AggregateContainerState, Histogram
from trimtab.histogram.vpa_estimators import estimate_target
from trimtab.sizing.request import ADAPTIVE, P95, compute_amount
from trimtab.sizing.statistics import UsageStatistics, summarize_usage
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series, add_all_series

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "requests-from-usage.md"
PICTURE = ROOT / "docs" / "explanation" / "requests-from-usage.svg"
SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0)
Score = tuple[float, float]
"""Waste, and share of time under-provisioned."""


@dataclass(frozen=True, slots=True)
class Held:
    """One series: what is fitted on, what is scored on, what others ask for."""

    name: str
    resource: str
    window: Any
    rows: Sequence[tuple[Any, float]]
    others: Mapping[str, float]

    def seen(self) -> UsageStatistics:
        statistics = summarize_usage(self.resource, self.window)
        assert isinstance(statistics, UsageStatistics), statistics
        return statistics


def cpu() -> Iterator[tuple[str, list[int], list[float]]]:
    """The series of cpu: name, seconds, cores."""
    for name, _, samples in cpu_series():
        by_second = {int(t.timestamp()): v for t, v in samples}
        yield name, list(by_second), list(by_second.values())


def series(resource: str, times: Sequence[int], values: Sequence[float]) -> Series:
    return Series(
        namespace="shop",
        pod="",
        container="app",
        workload="Series/usage",
        resource=resource,
        times=times,
        values=values,
    )


def rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def held() -> list[Held]:
    results = []
    for name, resource, rows in [*cpu_series(), *memory_series()]:
        cut = rows[0][0] + FIT_DAYS * DAY
        fit, rest = [row for row in rows if row[0] < cut], [row for row in rows if row[0] >= cut]
        book, by_second = BatchHistory(), {int(t.timestamp()): v for t, v in fit}
        add_all_series(book, [series(resource, list(by_second), list(by_second.values()))], OwnerIndex())
        window = book.compressed_window(book.list_containers()[0], resource)
        theirs = baselines(fit, resource)
        others = {"vpa": vpa(fit, resource), "vpa by use": theirs["vpa"], "krr": theirs["krr"]}
        results.append(Held(name, resource, window, rest, others))
    return results


def vpa(fit: Sequence[tuple[Any, float]], resource: str) -> float:
    """Its default target to the digit: every sample of cpu weighs 0.1, whatever it is (VPA 1.6). The back-test's own
    weighs cpu by use, as the VPA's documents say and its code once meant to."""
    container = AggregateContainerState()
    for t, value in fit:
        (container.add_cpu_sample if resource == "cpu" else container.add_memory_sample)(t.timestamp(), value)
    histogram = container.cpu if resource == "cpu" else container.memory
    assert isinstance(histogram, Histogram)
    target = estimate_target(resource, histogram)
    return target / 1000 if resource == "cpu" else float(target)


RULES = {"adaptive": ADAPTIVE, "p95": P95}
OTHERS = ("vpa", "vpa by use", "krr")
NAMES = (*RULES, *OTHERS)


def run(*, write: bool) -> None:
    """The table of every rule on the series, printed, and the picture."""
    every = held()
    text: list[str] = []
    for resource in ("cpu", "memory"):
        of = [one for one in every if one.resource == resource]
        rules = {
            name: [score(compute_amount(rule, one.seen()), one.rows) for one in of] for name, rule in RULES.items()
        }
        rules |= {name: [score(one.others[name], one.rows) for one in of] for name in OTHERS}
        text += table(resource, of, rules)
    print("\n".join(text))
    if write:
        PICTURE.write_text(picture(every), encoding="utf-8")


def put(mark: str, lines: Iterable[str]) -> None:
    """Lines between two marks of the page."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    page = PAGE.read_text(encoding="utf-8")
    head, tail = page.partition(begin)[0], page.partition(end)[2]
    PAGE.write_text(f"{head}{begin}\n\n{chr(10).join(lines)}\n\n{end}{tail}", encoding="utf-8")


def mean(scores: Sequence[Score]) -> Score:
    return sum(w for w, _ in scores) / len(scores), sum(u for _, u in scores) / len(scores)


def table(resource: str, of: Sequence[Held], rules: Mapping[str, Sequence[Score]]) -> list[str]:
    """Waste, and time under-provisioned; a row for every series and one for their mean."""
    lines = [f"| {resource} | {' | '.join(NAMES)} |", f"|---|{'---|' * len(NAMES)}"]
    for n, one in enumerate(of):
        lines.append(f"| {one.name} | {' | '.join(_cell(rules[name][n]) for name in NAMES)} |")
    lines.append(f"| **mean** | {' | '.join(_cell(mean(rules[name])) for name in NAMES)} |")
    return [*lines, ""]


def _cell(score: Score) -> str:
    return f"{score[0]:.1%} at {score[1]:.2%}"


# ── the picture ──────────────────────────────────────────────────────────
WIDE, HIGH, LEFT, LOW = 420, 260, 60, 40
_COLOURS = {
    "frontier": "#1f6fb2",
    "adaptive": "#17202a",
    "p95": "#e67e22",
    "vpa": "#c0392b",
    "vpa by use": "#e6a39a",
    "krr": "#8e44ad",
}


def picture(every: Sequence[Held]) -> str:
    """Per resource: waste over time under-provisioned, a point for every percentile, and the rules beside it."""
    parts = [
        _panel(resource, [one for one in every if one.resource == resource], n * (WIDE + LEFT + 30))
        for n, resource in enumerate(("cpu", "memory"))
    ]
    wide = 2 * (WIDE + LEFT + 30)
    box = f'viewBox="0 0 {wide} {HIGH + 2 * LOW + 20}" font-family="sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    return f'{head}<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'


def _panel(resource: str, of: Sequence[Held], left: int) -> str:
    percentiles = {share: [one.window.compute_percentiles((share,))[0] for one in of] for share in SHARES}
    frontier = [
        (f"P{share * 100:g}", mean([score(value, one.rows) for value, one in zip(values, of, strict=True)]))
        for share, values in percentiles.items()
    ]
    rules: dict[str, Score] = {
        name: mean([score(compute_amount(rule, one.seen()), one.rows) for one in of]) for name, rule in RULES.items()
    }
    rules |= {name: mean([score(one.others[name], one.rows) for one in of]) for name in OTHERS}
    scores = [*(one for _, one in frontier), *rules.values()]
    most = (max(w for w, _ in scores), max(u for _, u in scores))

    def at(one: Score) -> tuple[float, float]:
        x = LEFT + left + one[1] / most[1] * WIDE
        return round(x, 1), round(LOW + HIGH * (1 - min(1.0, one[0] / most[0]) ** 0.5), 1)

    line = " ".join(f"{x},{y}" for x, y in (at(one) for _, one in frontier))
    drawn = [f'<polyline points="{line}" fill="none" stroke="{_COLOURS["frontier"]}"/>']
    drawn += [_dot(*at(one), 2, _COLOURS["frontier"], f"{name}: {_cell(one)}") for name, one in frontier]
    for n, (name, one) in enumerate(rules.items()):
        x, y = at(one)
        drawn.append(_dot(x, y, 4, _COLOURS[name], f"{name}: {_cell(one)}"))
        drawn.append(_dot(LEFT + left + WIDE - 170, LOW + 14 + 16 * n, 4, _COLOURS[name], name))
        drawn.append(f'<text x="{LEFT + left + WIDE - 160}" y="{LOW + 18 + 16 * n}">{name}: {_cell(one)}</text>')
    x0, y0 = LEFT + left, LOW + HIGH
    drawn.append(f'<path d="M{x0} {LOW}V{y0}H{x0 + WIDE}" fill="none" stroke="#666"/>')
    drawn.append(
        f'<text x="{x0}" y="{LOW - 14}" font-size="13">{resource}: mean waste (root scale, to {most[0]:.0%})</text>'
    )
    drawn.append(
        f'<text x="{x0 + WIDE}" y="{y0 + 18}" text-anchor="end">time under-provisioned, to {most[1]:.0%}</text>'
    )
    return "".join(drawn)


def _dot(x: float, y: float, size: int, colour: str, title: str) -> str:
    return f'<circle cx="{x}" cy="{y}" r="{size}" fill="{colour}"><title>{title}</title></circle>'


__all__ = ["cpu", "rank", "run", "series"]
