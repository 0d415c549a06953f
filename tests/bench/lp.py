"""How much could be freed at most? A linear relaxation, solved by HiGHS (scipy, for benchmarks only).

Nodes may go in part and pods may be split. Receivers are pooled by shelf (who may use them) and shape, so that
memory on one shape cannot pay for cores on another. Whatever a plan frees is at most this.
"""

import numpy
from scipy.optimize import linprog
from scipy.sparse import csr_matrix


def rows_of(made, world):
    """(classes of receivers, kinds of pods) as the relaxation sees them."""
    shelves = list(zip(*made.ways.masks, strict=True))
    classes, kinds = {}, {}
    of = [
        classes.setdefault((shelves[n], world.amount(n, "cpu"), world.amount(n, "memory")), len(classes))
        for n in range(len(world.nodes))
    ]
    loads = []
    for node in made.candidates:
        counts = {}
        for pod in made.loads[node]:
            errand = made.errands[pod]
            rest = tuple((r, a) for r, a in errand.kind.rest if not world.names[r].startswith("volumes:"))
            name = kinds.setdefault((errand.where, errand.major, errand.minor, rest), len(kinds))
            counts[name] = counts.get(name, 0) + 1
        loads.append(counts)
    return classes, kinds, of, loads


def bound(made, world):
    classes, kinds, of, loads = rows_of(made, world)
    extended = [r for r, name in enumerate(world.names) if not name.startswith("volumes:")]
    free = [
        [max(0, a[n]) for a in (world.major, world.minor, world.slots, *(world.rest[r] for r in extended))]
        for n in range(len(world.nodes))
    ]
    scale = [1000, 1 << 30, 1, *(1 for _ in extended)]
    width = len(scale)
    shelf = [None] * len(classes)
    limit = numpy.zeros(len(classes) * width)
    for n, number in enumerate(of):
        shelf[number] = n
        if not world.closed[n]:
            for r in range(width):
                limit[number * width + r] += free[n][r] / scale[r]
    variables, flows = len(made.candidates), {}
    for kind, number in kinds.items():
        for c in range(len(classes)):
            if made.ways.masks[kind[0]][shelf[c]]:
                flows[number, c] = variables
                variables += 1
    asks = {
        number: [kind[1], kind[2], 1, *(dict(kind[3]).get(r, 0) for r in extended)] for kind, number in kinds.items()
    }
    upper, equal = ([], [], []), ([], [], [])

    def add(matrix, row, column, value):
        if value:
            for part, item in zip(matrix, (value, row, column), strict=True):
                part.append(item)

    for (number, c), variable in flows.items():
        for r in range(width):
            add(upper, c * width + r, variable, asks[number][r] / scale[r])
        add(equal, number, variable, 1)
    for x, node in enumerate(made.candidates):
        for r in range(width):
            add(upper, of[node] * width + r, x, free[node][r] / scale[r])
        for number, count in loads[x].items():
            add(equal, number, x, -count)
    gain = numpy.zeros(variables)
    gain[: len(made.candidates)] = [-made.saves[n] for n in made.candidates]
    found = linprog(
        gain,
        bounds=[(0, 1)] * len(made.candidates) + [(0, None)] * len(flows),
        method="highs",
        A_ub=csr_matrix((upper[0], upper[1:]), shape=(len(limit), variables)),
        b_ub=limit,
        A_eq=csr_matrix((equal[0], equal[1:]), shape=(len(kinds), variables)),
        b_eq=numpy.zeros(len(kinds)),
    )
    assert found.status == 0, found.message
    return -found.fun
