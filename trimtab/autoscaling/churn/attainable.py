"""What perfect knowledge could attain in a churn: the fewest core hours for each number of machines that are bought.

A policy can save core hours only while less is requested than before, and has to buy again what is requested later. So
core hours and purchases are exchanged for each other, and no policy has few of both. `find_frontier` computes this
exchange for a churn that is known in advance, with the optimum of a plan of minutes (dynamic programming), and favors
the plan wherever it is not exact:

- machines are those of the smallest group, and a machine that the churn takes away is one of them;
- pods fill machines to the last millicore, moves take no time and no budget refuses them, and a machine is there in
  the minute in which it is bought;
- a minute needs what is requested during all of it, and surges of rollouts need nothing.

So no real policy reaches a point of the frontier, and none can be beyond it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum

from trimtab.autoscaling.churn.churn_script import HOUR, Churn, ChurnKind

MINUTE = 60
PURCHASE_PRICES = (0.5, 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40)
"""In core hours: how many a purchase may cost to be avoided. Each price gives one point of the frontier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededMachines:
    """A churn, minute by minute, in machines of the smallest group."""

    cores: float
    """What pods may request of one machine."""
    first: int
    """The number of machines at the beginning."""
    needed: tuple[int, ...]
    """How many machines hold what is requested during all of the minute."""
    losses: tuple[int, ...]
    """How many machines the churn takes away at the beginning of the minute."""
    warm_up: int
    """The number of minutes at the beginning that are not measured."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """The best plan if one purchase counts like so many core hours."""

    price: float
    core_hours: float
    bought: int


def count_needed_machines(churn: Churn) -> NeededMachines:
    """Returns what the churn needs in each minute until its end. It follows from the script alone."""
    machine = min(churn.machines, key=lambda one: one.millicores)
    groups = {one.group: one for one in churn.machines}
    minutes = churn.seconds // MINUTE
    shapes = {one.name: one.shape for one in churn.workloads}
    replicas = {one.name: one.replicas for one in churn.workloads}
    cpu = sum(shapes[name].millicores * count for name, count in replicas.items())
    memory = sum(shapes[name].mebibytes * count for name, count in replicas.items())
    least: list[tuple[int, int]] = [(cpu, memory)] * minutes
    losses = [0] * minutes
    minute = 0
    for event in churn.events:
        # A minute without an event has what the minute before ended with.
        for skipped_minute in range(minute + 1, min(minutes, event.at // MINUTE + 1)):
            least[skipped_minute] = (cpu, memory)
            minute = skipped_minute
        if event.kind in (ChurnKind.SPOT_LOSS, ChurnKind.NODE_DIES):
            losses[minute] += 1
        change = 0
        if event.kind is ChurnKind.JOB and event.shape is not None:
            shapes[event.workload], change = event.shape, 1
        elif event.kind is ChurnKind.JOB_ENDS:
            change = -1
        elif event.kind is ChurnKind.SCALE:
            change = event.amount - replicas[event.workload]
            replicas[event.workload] = event.amount
        if change:
            shape = shapes[event.workload]
            cpu, memory = cpu + change * shape.millicores, memory + change * shape.mebibytes
            least[minute] = (min(least[minute][0], cpu), min(least[minute][1], memory))
    for skipped_minute in range(minute + 1, minutes):
        least[skipped_minute] = (cpu, memory)
    size = sum(groups[group].millicores for group in churn.nodes)
    return NeededMachines(
        cores=machine.millicores / 1000,
        first=-(-size // machine.millicores),
        needed=tuple(max(1, -(-a // machine.millicores), -(-b // machine.mebibytes)) for a, b in least),
        losses=tuple(losses),
        warm_up=churn.options.warm_up_seconds // MINUTE,
    )


def find_frontier(path: NeededMachines, prices: Sequence[float] = PURCHASE_PRICES) -> tuple[FrontierPoint, ...]:
    """Returns the best plan for each price of a purchase."""
    return tuple(_find_point(path, price) for price in prices)


_Plan = tuple[float, float, int]
"""(core hours and purchases at their price, core hours, purchases) so far."""
_NEVER: _Plan = (float("inf"), 0.0, 0)


def _find_point(path: NeededMachines, price: float) -> FrontierPoint:
    most = max(path.first, *path.needed)
    best: list[_Plan] = [_NEVER] * (most + 1)
    best[path.first] = (0.0, 0.0, 0)
    for minute, (needed, loss) in enumerate(zip(path.needed, path.losses, strict=True)):
        if loss:
            best = [min(best[: loss + 1]), *best[loss + 1 :], *[_NEVER] * loss]
        is_measured = minute >= path.warm_up
        # Purchases before the measurement cost little, but not nothing: none is made in vain.
        unit_price, unit = (price, 1) if is_measured else (price / 1e6, 0)
        hours = path.cores * MINUTE / HOUR if is_measured else 0.0
        # Removals cost nothing: the best plan with so many machines or more. Purchases are counted one by one.
        after = list(accumulate(reversed(best), min))[::-1]
        best = [_NEVER] * (most + 1)
        for count in range(most + 1):
            if count:
                cost, core_hours_so_far, bought = after[count - 1]
                if cost + unit_price < after[count][0]:
                    after[count] = (cost + unit_price, core_hours_so_far, bought + unit)
            if count >= needed:
                cost, core_hours_so_far, bought = after[count]
                best[count] = (cost + hours * count, core_hours_so_far + hours * count, bought)
    _, core_hours, bought = min(best)
    return FrontierPoint(price, core_hours, bought)


def add_frontiers(frontiers: Sequence[Sequence[FrontierPoint]]) -> tuple[FrontierPoint, ...]:
    """Returns the frontier of several churns together, which were computed for the same prices."""
    return tuple(
        FrontierPoint(points[0].price, fsum(one.core_hours for one in points), sum(one.bought for one in points))
        for points in zip(*frontiers, strict=True)
    )


def least_core_hours(frontier: Sequence[FrontierPoint], bought: float) -> float:
    """Returns the core hours below which no plan that buys so many machines can be: by the price of a purchase, no plan
    costs less than the best one."""
    return max(point.core_hours + point.price * (point.bought - bought) for point in frontier)


def least_purchases(frontier: Sequence[FrontierPoint], core_hours: float) -> float:
    """Returns the number of machines fewer than which no plan with so many core hours can buy."""
    return max(0.0, max(point.bought + (point.core_hours - core_hours) / point.price for point in frontier))
