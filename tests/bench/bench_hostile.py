"""What can one client make us spend, and what do others notice of it?

    make bench-hostile        (about six minutes)

Pods, policies and pools that grow in one direction each (`tests.hostile`): at n, 2n and 4n below the gate, just over
it, and at 1.5 and 3 MiB, which is the most that an API server lets through. Policies use every action. Process CPU of
the whole answer from bytes to bytes, the least of five; for `growth` what a pod of size one costs is taken off. Then
what one client can do over HTTP (`tests.bench.hostile_http`), with a running webhook.

The last line is `RESULT slowest_review_cpu_ms=… growth=… stall_ms=… silent_mib=… decided=… lost=…`: `growth` is the
largest log-log slope of any shape, below the gate and apart above it; `decided` counts the shapes that were decided
about below it.

A slope is that of the line through all three sizes, not of the steeper of two steps: between neighbours that cost 10
and 20 ms a tenth of noise in each makes 0.3 of slope, and of more than a hundred slopes the largest counts. A square
shows in either. For the same reason all sizes of a shape are measured in turn, in stretches of about equal length.

What is fixed is taken off twice. Once it is the cost of size one. But that is too much where a small pod is looked into
more thoroughly than a large one (`admission.pod_decision` tries more for up to 16 containers), and then a straight line
looks bent. The steps between three sizes know of no fixed cost; they say the same of any power of n, with more noise.
The smaller of both slopes counts: neither is too small where the cost is a power of n, or a sum of powers.

The worst of a hundred directions is mostly the one whose measurement was disturbed most. So those that look worst are
measured again, more thoroughly, and of each size the least of all measurements counts.
"""

from __future__ import annotations

import gc
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench import hostile_http
from tests.bench.results import choose_size, note_change, report_result
from tests.build import admission_context
from tests.hostile import world
from tests.hostile.documents import DOCUMENTS
from tests.hostile.pods import SHAPES, review
from trimtab.admission.admission_result import AdmissionOutcome
from trimtab.admission.handler import answer_review
from trimtab.admission.validate_config import validate_review
from trimtab.runtime.gunicorn_patches import reduce_memory

LARGEST = 3 * 2**20
RUNS = choose_size(5, 1)
AGAIN = choose_size(8, 1)
"""So many directions are measured again by each of both figures."""
RUNS_AGAIN = choose_size(30, 1)
MOST_TIMES = 16
"""In a row, in one measurement."""
FLOOR_MS = 2.0
FLOOR_SHARE = 0.25
"""Of what a pod of size one costs. Slopes are taken of what costs more than both beyond that: of less, the difference
is the noise of two measurements, and no harm is in it."""
DECIDED = (AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED, AdmissionOutcome.DENIED)


@dataclass(frozen=True, slots=True)
class Subject:
    """One direction in which something may grow."""

    name: str
    body: Callable[[int], bytes]
    most: int
    ask: Callable[[bytes], bool]
    """Answers one body; was it decided about?"""


@dataclass(frozen=True, slots=True)
class Found:
    """What one direction costs."""

    below: list[int]
    above: list[int]
    """Counts."""
    costs: list[float]
    """Of one, then of `below`, then of `above`."""
    is_decided: bool

    @property
    def slowest_ms(self) -> float:
        return max(self.costs[1:])

    @property
    def growth(self) -> float:
        fixed, lower, upper = self.costs[0], self.costs[1:4], self.costs[4:]
        return max(min(slope(self.below, lower, fixed), slope_of_steps(lower)), slope(self.above, upper, 0.0))

    def print(self, name: str) -> None:
        times = "".join(f"{cost:9.2f}" for cost in self.costs[1:4]) + " |"
        times += "".join(f"{cost:9.2f}" for cost in self.costs[4:])
        print(f"{name:31} {times}   growth {self.growth:.2f}", flush=True)


def main() -> None:
    subjects = _subjects()
    reduce_memory()  # as the webhook does: what was loaded is no part of any later collection
    print(f"{'':31} {'n':>9}{'2n':>9}{'4n':>9} |{'over':>9}{'1.5 MiB':>9}{'3 MiB':>9}   ms of CPU")
    first = [_measured(subject) for subject in subjects]
    print("those that look worst, again:")
    result = _measured_again(subjects, first)
    if "--no-http" in sys.argv:
        note_change("--no-http")
    http = None if "--no-http" in sys.argv else _http()
    slowest, growth = max(one.slowest_ms for one in result), max(one.growth for one in result)
    report_result(
        "hostile",
        f"slowest_review_cpu_ms={slowest:.1f} growth={growth:.2f}"
        f" stall_ms={http.stall_ms if http else math.nan:.0f} silent_mib={http.silent_mib if http else math.nan:.1f}"
        f" decided={sum(one.is_decided for one in result)} lost={http.lost if http else 0}",
        broken={},
    )


def _subjects() -> list[Subject]:
    policies, facts = world.policies(), world.facts()

    def mutate(body: bytes) -> bool:
        return answer_review(body, admission_context(policies, facts)).record.outcome in DECIDED

    def check(body: bytes) -> bool:
        return b"at most" not in validate_review(body)[1]  # the words for whatever is refused for its size

    pods = [Subject(shape.name, lambda n, shape=shape: review(shape.make(n)), shape.most, mutate) for shape in SHAPES]  # type: ignore[misc]
    return pods + [Subject(one.name, one.make, one.most, check) for one in DOCUMENTS]


def _measured(subject: Subject) -> Found:
    below = [max(1, subject.most // 4), max(2, subject.most // 2), subject.most]
    over = _just_over(subject)
    above = [over, *(max(over, _count_for(subject, size)) for size in (LARGEST // 2, LARGEST))]
    costs = [*_costs(subject, [1, *below], RUNS), *_costs(subject, above, RUNS)]
    found = Found(below, above, costs, is_decided=subject.ask(subject.body(subject.most)))
    found.print(subject.name)
    return found


def _measured_again(subjects: list[Subject], first: list[Found]) -> list[Found]:
    by_cost = sorted(range(len(first)), key=lambda index: -first[index].slowest_ms)[:AGAIN]
    by_growth = sorted(range(len(first)), key=lambda index: -first[index].growth)[:AGAIN]
    result = list(first)
    for index in sorted({*by_cost, *by_growth}):
        subject, found = subjects[index], first[index]
        costs = [*_costs(subject, [1, *found.below], RUNS_AGAIN), *_costs(subject, found.above, RUNS_AGAIN)]
        result[index] = replace(found, costs=list(map(min, found.costs, costs)))
        result[index].print(subject.name)
    return result


def _just_over(subject: Subject) -> int:
    """The smallest count, to a hundredth, that is not decided about any more."""
    under, over = subject.most, 2 * subject.most
    while subject.ask(subject.body(over)):
        under, over = over, 2 * over
    while over - under > max(1, under // 100):
        middle = (under + over) // 2
        under, over = (middle, over) if subject.ask(subject.body(middle)) else (under, middle)
    return over


def _count_for(subject: Subject, size: int) -> int:
    """The count whose review has about so many bytes; shapes that grow by a square root are approached."""
    count = subject.most
    for _ in range(6):
        count = max(1, int(count * (size - 2000) / len(subject.body(count))))
    return count


def _costs(subject: Subject, counts: list[int], runs: int) -> list[float]:
    """Milliseconds of CPU for one answer at each count: the least of the rounds, each over all counts in turn.

    What is cheap is asked so often in a row that each measurement lasts about as long as that of the dearest. A busy
    machine leaves a short stretch undisturbed sooner than a long one; without this, the dear would look dearer.
    """
    bodies = [subject.body(count) for count in counts]
    once = [_spent(subject, body, 1) for body in bodies]
    times = [min(MOST_TIMES, max(1, round(max(once) / max(cost, 0.01)))) for cost in once]
    rounds = []
    for _ in range(runs):
        gc.collect()
        rounds.append([_spent(subject, body, count) for body, count in zip(bodies, times, strict=True)])
    return [min(spent) for spent in zip(*rounds, strict=True)]


def _spent(subject: Subject, body: bytes, times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        subject.ask(body)
    return (time.process_time() - begun) * 1000 / times


def slope(counts: list[int], costs: list[float], fixed: float) -> float:
    """How the logarithm of the cost, less what is `fixed`, grows with that of the count: the straight line that lies
    nearest to all points. 1 where the cost is linear; 0 where fewer than two points can be told from `fixed`."""
    least = max(FLOOR_MS, fixed * FLOOR_SHARE)
    points = [
        (math.log(count), math.log(cost - fixed))
        for count, cost in dict(zip(counts, costs, strict=True)).items()
        if cost - fixed > least
    ]
    if len(points) < 2:
        return 0.0
    return max(0.0, statistics.linear_regression(*zip(*points, strict=True)).slope)


def slope_of_steps(costs: list[float]) -> float:
    """The same of the two steps between costs at n, 2n and 4n. Whatever is fixed falls out of a difference."""
    first, second = costs[1] - costs[0], costs[2] - costs[1]
    return max(0.0, math.log2(second / first)) if min(first, second) > 0 else 0.0


def _http() -> hostile_http.HostileHttp:
    with tempfile.TemporaryDirectory() as home, hostile_http.serving(Path(home)) as target:
        result = hostile_http.measure(target)
    for name, p99 in result.shapes.items():
        print(f"{name:40} p99 of honest requests {p99:8.1f} ms")
    return result


if __name__ == "__main__":
    main()
