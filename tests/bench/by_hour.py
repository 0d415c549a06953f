"""Would a window that knows hour and weekday lead to better requests of cpu? The same ten days and four; exact ranks.

Two uses of it: a request that changes with the hour, as if every pod were made anew each time (the most that such a
window can bring), and one request for all hours, by the one that needs most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.bench.backtesting import Score, mean, rank
from tests.bench.usage_series import DAY, FIT_DAYS, cpu_series

GRID = tuple(share / 200 for share in range(100, 201))
BESIDE = (0.9, 0.95)
"""Plain percentiles whose time under-provisioned must be held."""
Row = tuple[datetime, float]
Key = Callable[[datetime], object]
KEYS: Mapping[str, Key] = {
    "all hours alike": lambda t: 0,
    "hour": lambda t: t.hour,
    "weekday": lambda t: t.weekday(),
    "workday or weekend, and hour": lambda t: (t.weekday() > 4, t.hour),
    "weekday and hour": lambda t: (t.weekday(), t.hour),
}


@dataclass(frozen=True, slots=True)
class Part:
    """One series: what is known by key, and what is scored on."""

    known: Mapping[object, Sequence[float]]
    rows: Sequence[tuple[object, float]]

    def score(self, share: float, *, moves: bool) -> Score:
        """Waste, and share of time under-provisioned. An hour that was never seen takes the most there is."""
        per = {key: rank(values, share) for key, values in self.known.items()}
        most = max(per.values())
        rows = [(per.get(key, most) if moves else most, value) for key, value in self.rows]
        waste = sum(max(0.0, request - value) for request, value in rows) / sum(value for _, value in rows)
        return waste, sum(value > request for request, value in rows) / len(rows)


def part(fit: Sequence[Row], rest: Sequence[Row], key: Key) -> Part:
    entries: dict[object, list[float]] = {}
    for t, value in fit:
        entries.setdefault(key(t), []).append(value)
    return Part({of: sorted(values) for of, values in entries.items()}, [(key(t), value) for t, value in rest])


def parts() -> dict[str, list[Part]]:
    split = []
    for _, _, rows in cpu_series():
        cut = rows[0][0] + FIT_DAYS * DAY
        split.append(([row for row in rows if row[0] < cut], [row for row in rows if row[0] >= cut]))
    return {name: [part(fit, rest, key) for fit, rest in split] for name, key in KEYS.items()}


def table() -> list[str]:
    """The least mean waste of any percentile that is under-provisioned no more often than a plain one."""
    actual_parts = parts()
    plain = actual_parts["all hours alike"]
    bars = [mean([one.score(share, moves=True) for one in plain]) for share in BESIDE]
    heads = [f"as seldom under as P{share * 100:g} ({bar[1]:.1%})" for share, bar in zip(BESIDE, bars, strict=True)]
    lines = [f"| cpu, the window knows | request | {' | '.join(heads)} |", "|---|---|---|---|"]
    for name, of in actual_parts.items():
        for use, moves in (("changes with it", True), ("the most of all", False))[: 1 if of is plain else 2]:
            cells = " | ".join(_least(list(_scores(of, moves=moves)), bar[1]) for bar in bars)
            lines.append(f"| {name} | {'one number' if of is plain else use} | {cells} |")
    return lines


def _scores(of: Sequence[Part], *, moves: bool) -> Iterator[tuple[Score, float]]:
    for share in GRID:
        yield mean([one.score(share, moves=moves) for one in of]), share


def _least(scores: Sequence[tuple[Score, float]], under: float) -> str:
    able = [(waste, share) for (waste, often), share in scores if often <= under]
    if not able:
        return "never"
    waste, share = min(able)
    return f"{waste:.1%} (P{share * 100:g})"


def run() -> None:
    print("\n".join(table()))
