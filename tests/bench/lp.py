"""How much could be freed at most? A linear relaxation, solved by HiGHS (scipy, for benchmarks only).

Nodes may go in part and pods may be split. Receivers are pooled by shelf (who may use them), shape and pool, so that
memory on one shape cannot pay for cores on another. What a pool keeps free is a constraint, and so is the least
number of nodes that it has. Whatever a plan frees is at most this.
"""

from dataclasses import dataclass, field

import numpy
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix

from trimtab.cluster.pool import Spare


@dataclass
class Rows:
    """A sparse matrix and its right side, row by row."""

    values: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    columns: list = field(default_factory=list)
    limits: list = field(default_factory=list)

    def row(self, limit):
        self.limits.append(limit)
        return len(self.limits) - 1

    def add(self, row, column, value):
        if value:
            self.values.append(value)
            self.rows.append(row)
            self.columns.append(column)

    def matrix(self, width):
        return csr_matrix((self.values, (self.rows, self.columns)), shape=(len(self.limits), width))


@dataclass
class Relaxation:
    gain: list
    upper: Rows
    equal: Rows
    width: int
    """Of the variables, the first `len(gain)` say how much of a candidate goes, the others where pods go."""


def rows_of(made, world):
    """(classes of receivers, kinds of pods, node → class, candidate → its pods by kind) as the relaxation sees them."""
    shelves = list(zip(*made.placement_requests.node_sets, strict=True)) or [()] * len(world.nodes)
    classes, kinds = {}, {}
    of = [
        classes.setdefault(
            (shelves[n], world.allocatable_amount(n, "cpu"), world.allocatable_amount(n, "memory"), id(made.limits[n])),
            len(classes),
        )
        for n in range(len(world.nodes))
    ]
    loads = []
    for node in made.candidates:
        counts = {}
        for pod in made.pods_to_move[node]:
            errand = made.requests[pod]
            rest = tuple(
                (r, a)
                for r, a in errand.pod_class.other_requests
                if not world.other_resources[r].startswith("volumes:")
            )
            name = kinds.setdefault((errand.node_set, errand.major, errand.minor, rest), len(kinds))
            counts[name] = counts.get(name, 0) + 1
        loads.append(counts)
    return classes, kinds, of, loads


def relaxed(made, world, evictions=None):
    """The program; `evictions` bounds the pods that move."""
    classes, kinds, of, loads = rows_of(made, world)
    extended = [r for r, name in enumerate(world.other_resources) if not name.startswith("volumes:")]
    amounts = (world.major, world.minor, world.slots, *(world.other_free[r] for r in extended))
    scale = [1000 if r == "cpu" else 1 << 30 for r in world.main_resources] + [1] * (1 + len(extended))
    free = [[max(0, a[n]) / s for a, s in zip(amounts, scale, strict=True)] for n in range(len(world.nodes))]
    upper, equal = Rows(), Rows()
    shelf = [0] * len(classes)
    first = [[upper.row(0) for _ in scale] for _ in classes]
    for n, number in enumerate(of):
        shelf[number] = n
        if not world.closed_nodes[n]:
            for row, amount in zip(first[number], free[n], strict=True):
                upper.limits[row] += amount
    variables, flows = len(made.candidates), {}
    for kind, number in kinds.items():
        for c in range(len(classes)):
            if made.placement_requests.node_sets[kind[0]][shelf[c]]:
                flows[number, c] = variables
                variables += 1
    asks = [
        [a / s for a, s in zip((*kind[1:3], 1, *(dict(kind[3]).get(r, 0) for r in extended)), scale, strict=True)]
        for kind in kinds
    ]
    for _ in kinds:
        equal.row(0)
    for (number, c), variable in flows.items():
        for row, amount in zip(first[c], asks[number], strict=True):
            upper.add(row, variable, amount)
        equal.add(number, variable, 1)
    for x, node in enumerate(made.candidates):
        for row, amount in zip(first[of[node]], free[node] if not world.closed_nodes[node] else (), strict=False):
            upper.add(row, x, amount)
        for number, count in loads[x].items():
            equal.add(number, x, -count)
    if evictions is not None:
        row = upper.row(evictions)
        for x, node in enumerate(made.candidates):
            upper.add(row, x, len(made.pods_to_move[node]))
    arrivals = {}
    for (number, c), variable in flows.items():
        limits = made.limits[shelf[c]]
        arrivals.setdefault(id(limits), []).append((number, variable))
    for limits in {id(limit): limit for limit in made.limits if limit is not None}.values():
        _pool_rows(made, world, limits, asks, arrivals.get(id(limits), ()), upper, scale)
    return Relaxation([made.savings[n] for n in made.candidates], upper, equal, variables)


def _pool_rows(item, world, limits, asks, arrivals, upper, scale):
    """What the pool's settings keep: nodes, and room of both resources on those that stay."""
    staying = [n for n in limits.nodes if not world.closed_nodes[n]]
    number = {node: x for x, node in enumerate(item.candidates)}
    row = upper.row(len(staying) - max(limits.pool.min_nodes, limits.group_min_nodes))
    for node in staying:
        if node in number:
            upper.add(row, number[node], 1)
    headroom = limits.pool.headroom
    assert not headroom.nodes, "only shares and the largest pod are told as rows"
    assert limits.pool.spare is Spare.NONE, "only shares and the largest pod are told as rows"
    reserved = [kind for kind, node in item.reserved if item.limits[node] is limits]
    if limits.keeps_no_headroom:
        return
    for i, resource in enumerate(world.main_resources):
        free = [(world.major, world.minor)[i][n] / scale[i] for n in staying]
        kept_of = [world.allocatable_amount(n, resource) * headroom.percent / 100 / scale[i] for n in staying]
        keeps = [f - k for f, k in zip(free, kept_of, strict=True)]
        rest = sum((kind.major, kind.minor)[i] for kind in reserved) / scale[i]
        # A pool that has less already may stay as it is.
        row = upper.row(max(0, sum(keeps) - rest))
        for node, amount in zip(staying, keeps, strict=True):
            if node in number:
                upper.add(row, number[node], amount)
        for kind, variable in arrivals:
            upper.add(row, variable, asks[kind][i])


def bound(made, world, evictions=None):
    """The most that can be saved."""
    result = relaxed(made, world, evictions)
    gain = numpy.zeros(result.width)
    gain[: len(result.gain)] = [-amount for amount in result.gain]
    solved = linprog(
        gain,
        bounds=[(0, 1)] * len(result.gain) + [(0, None)] * (result.width - len(result.gain)),
        method="highs",
        A_ub=result.upper.matrix(result.width),
        b_ub=result.upper.limits,
        A_eq=result.equal.matrix(result.width),
        b_eq=result.equal.limits,
    )
    assert solved.status == 0, solved.message
    return -solved.fun


def volume(made, world, evictions):
    """The most that whole nodes could save with so many evictions, if pods were sand and all nodes shared them."""
    nodes, evicted = made.candidates, [len(made.pods_to_move[n]) for n in made.candidates]
    if not nodes:
        return 0.0
    rows, limits = [evicted], [evictions]
    for resource in ("major", "minor"):
        free = getattr(world, resource)
        rows.append(
            [max(0, free[n]) + sum(getattr(made.requests[p], resource) for p in made.pods_to_move[n]) for n in nodes]
        )
        limits.append(sum(max(0, free[n]) for n in range(len(world.nodes)) if not world.closed_nodes[n]))
    # A plan without moves has no evictions, and a full cluster no room: a limit of 0 stays one.
    scales = numpy.array([limit or 1 for limit in limits], float)
    scaled = numpy.array(rows, float) / scales[:, None]
    solved = milp(
        [-made.savings[n] for n in nodes],
        constraints=LinearConstraint(scaled, ub=numpy.array(limits) / scales),
        bounds=Bounds(0, 1),
        integrality=numpy.ones(len(nodes)),
        options={"mip_rel_gap": 1e-4},
    )
    assert solved.status == 0, solved.message
    return -solved.mip_dual_bound
