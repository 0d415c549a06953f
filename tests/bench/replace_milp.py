"""How much could drains and replacements save together? An exact model of a small cluster, solved by HiGHS (scipy).

It shares no code with the planner: amounts come from the JSON of the snapshot. A node that may be drained is kept, or
drained, or replaced. The pods of a drained node go to nodes that are kept, or to new nodes. One new node replaces one
to four nodes of its own zone, costs less than they do, and takes all their pods. Pods and nodes are whole. A pod blocks
its node by the rules that hold in the published cluster (`verify`): no owner, local data, not safe to evict, or a
budget that allows none.
"""

from collections import Counter

import numpy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from tests.bench import replace_clusters as cut
from tests.bench.verify import app, is_daemon, may_move, requests

TIME_LIMIT_SECONDS, GAP = 60, 0.002
MAX_REPLACED = 4
RESOURCES = ("cpu", "memory", "pods")
SCALE = (1000, 1 << 30, 1)


class Program:
    """Rows of a mixed-integer program; a cell is (column, value)."""

    def __init__(self):
        self.gain, self.most = [], []
        self.values, self.rows, self.columns, self.low, self.high = [], [], [], [], []

    def column(self, most=1, gain=0.0):
        self.gain.append(-gain)
        self.most.append(most)
        return len(self.gain) - 1

    def row(self, cells, low=-numpy.inf, high=numpy.inf):
        for column, value in cells:
            self.values.append(value)
            self.rows.append(len(self.low))
            self.columns.append(column)
        self.low.append(low)
        self.high.append(high)

    def solve(self, gap=GAP, integral=True):
        """Returns (the best savings, a bound on them)."""
        matrix = csr_matrix((self.values, (self.rows, self.columns)), shape=(len(self.low), len(self.gain)))
        solved = milp(
            self.gain,
            constraints=LinearConstraint(matrix, self.low, self.high),
            bounds=Bounds(0, numpy.array(self.most, float)),
            integrality=numpy.full(len(self.gain), int(integral)),
            options={"mip_rel_gap": gap, "time_limit": TIME_LIMIT_SECONDS},
        )
        assert solved.x is not None, solved.message
        return -solved.fun, -solved.mip_dual_bound if integral else -solved.fun


def read_cluster(items):
    """(nodes with a price, candidates, node → what is free on it beside movable pods, node → its pods by shape)."""
    prices = cut.prices(items)
    nodes = {item["metadata"]["name"]: item for item in items if item["kind"] == "Node"}
    budgets = {
        (item["metadata"]["namespace"], item["spec"]["selector"]["matchLabels"]["app"])
        for item in items
        if item["kind"] == "PodDisruptionBudget" and not item["status"].get("disruptionsAllowed")
    }
    free, loads, pinned = {}, {name: Counter() for name in nodes}, set()
    for name, node in nodes.items():
        amounts = requests({"containers": [{"resources": {"requests": node["status"]["allocatable"]}}]})
        amounts["pods"] = int(node["status"]["allocatable"]["pods"])
        free[name] = [amounts[resource] / scale for resource, scale in zip(RESOURCES, SCALE, strict=True)]
    for pod in items:
        if pod["kind"] != "Pod" or pod["spec"].get("nodeName") not in nodes:
            continue
        name, amounts = pod["spec"]["nodeName"], requests(pod["spec"])
        shape = tuple(amounts[resource] / scale for resource, scale in zip(RESOURCES, SCALE, strict=True))
        for i, amount in enumerate(shape):
            free[name][i] -= amount
        if is_daemon(pod):
            continue
        if not may_move(pod) or app(pod) in budgets:
            pinned.add(name)
        loads[name][shape] += 1
    price = {name: prices[node["metadata"]["labels"][cut.TYPE]] for name, node in nodes.items()}
    zone = {name: node["metadata"]["labels"][cut.ZONE] for name, node in nodes.items()}
    return price, zone, sorted(set(nodes) - pinned), free, loads


def best_savings(items):
    """(the most that drains and replacements save, a bound on it), in micro-dollars an hour."""
    price, zone, candidates, free, loads = read_cluster(items)
    program = Program()
    keep = {name: program.column(gain=-price[name]) for name in candidates}
    # A new node is named after the first of the nodes that it replaces, so that equal solutions count once.
    sets = {
        (name, first): program.column()
        for first in candidates
        for name in candidates
        if zone[name] == zone[first] and name >= first
    }
    kinds = [kind for kind in cut.OFFERED if f"c{kind[0]}-m{kind[1]}" != cut.AT_MAXIMUM]
    new = {(first, kind): program.column(gain=-cut.price_of(*kind)) for first in candidates for kind in kinds}
    for first in candidates:
        lead = sets[first, first]
        members = [column for (_, of), column in sets.items() if of == first]
        program.row([(lead, MAX_REPLACED), *((column, -1) for column in members)], low=0)
        paid_before = [(column, price[name]) for (name, of), column in sets.items() if of == first]
        program.row([*paid_before, *((new[first, kind], -cut.price_of(*kind)) for kind in kinds), (lead, -1)], low=0)
        program.row([(lead, 1), *((new[first, kind], -1) for kind in kinds)], 0, 0)
    for where in sorted(set(zone.values())):
        for kind in kinds:
            program.row([(new[first, kind], 1) for first in candidates if zone[first] == where], high=cut.MORE_NODES)
    arrivals = {name: [] for name in price} | {("new", first): [] for first in candidates}
    for name in candidates:
        own = [(column, 1) for (member, _), column in sets.items() if member == name]
        program.row([(keep[name], 1), *own], high=1)
        for shape, count in loads[name].items():
            flows = {}
            for target in arrivals:
                if target == name or not _may_receive(shape, target, free, candidates):
                    continue
                flows[target] = program.column(count)
                arrivals[target].append((flows[target], shape))
            program.row([*((column, 1) for column in flows.values()), (keep[name], count)], count, count)
            for (member, first), column in sets.items():
                if member == name:
                    flow = flows.get(("new", first))
                    program.row([(column, count), *([(flow, -1)] if flow is not None else [])], high=0)
    for target, pods in arrivals.items():
        for i in range(len(RESOURCES)):
            cells = [(column, shape[i]) for column, shape in pods]
            if isinstance(target, tuple):
                room = [(new[target[1], kind], -_free_of(kind)[i]) for kind in kinds]
                program.row([*cells, *room], high=0)
            elif target in keep:
                program.row([*cells, (keep[target], -max(0, free[target][i]))], high=0)
            else:
                program.row(cells, high=max(0, free[target][i]))
    found, bound = program.solve()
    paid = sum(price[name] for name in candidates)
    return paid + found, paid + bound


def bound_savings(items):
    """No drains and replacements of whole nodes save more: nodes and pods may be divided, and zones are kept apart only
    for new nodes, of which there may be any number. The candidates and blockers are the same."""
    price, _, candidates, free, loads = read_cluster(items)
    program = Program()
    kinds = [kind for kind in cut.OFFERED if f"c{kind[0]}-m{kind[1]}" != cut.AT_MAXIMUM]
    keep = {name: program.column(gain=-price[name]) for name in candidates}
    new = {kind: program.column(most=len(candidates), gain=-cut.price_of(*kind)) for kind in kinds}
    for i in range(len(RESOURCES)):
        # A kept candidate holds its own pods and what is free on it; every pod of a candidate needs a place.
        load = {name: sum(shape[i] * count for shape, count in loads[name].items()) for name in candidates}
        room = sum(max(0, free[name][i]) for name in price if name not in keep)
        cells = [(column, load[name] + max(0, free[name][i])) for name, column in keep.items()]
        cells += [(column, _free_of(kind)[i]) for kind, column in new.items()]
        program.row(cells, low=sum(load.values()) - room)
    found, _ = program.solve(integral=False)
    return sum(price[name] for name in candidates) + found


def _may_receive(shape, target, free, candidates):
    room = _free_of(max(cut.OFFERED)) if isinstance(target, tuple) else free[target]
    return all(amount <= available for amount, available in zip(shape, room, strict=True))


def _free_of(kind):
    cpu, memory, pods = cut.free_of(*kind)
    return cpu / 1000, memory / 1024, pods
