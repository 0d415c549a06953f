"""Is the linear relaxation really above every plan? Small clusters whose best plan is found exactly.

Two pools with headroom, pods bound to a zone or free, one in four nodes above the preset's line. Here a plan has no
rules but those that the program has as rows, so that the optimum over whole nodes and whole pods is exact.
"""

import random

import numpy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

ZONE = "topology.kubernetes.io/zone"


def small_cluster(seed):
    """6 to 10 nodes of two pools and up to 60 pods, as the items of a List."""
    drawn = random.Random(seed)
    names = [f"n{at}" for at in range(drawn.randint(6, 10))]
    items, free = [], {}
    for at, name in enumerate(names):
        cores = drawn.choice((4, 8))
        free[name] = [cores * 1000, cores * 4096]
        labels = {"kubernetes.io/hostname": name, ZONE: f"z{at % 2}", "cloud.google.com/gke-nodepool": f"p{at % 3 % 2}"}
        have = {"cpu": str(cores), "memory": f"{cores * 4096}Mi", "pods": "110"}
        status = {"allocatable": have, "capacity": have, "conditions": [{"type": "Ready", "status": "True"}]}
        items.append({"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status})
    for number in range(drawn.randint(20, 60)):
        name, cpu, memory = drawn.choice(names), drawn.choice((100, 300, 700, 1100)), drawn.choice((256, 512, 2048))
        if free[name][0] < cpu or free[name][1] < memory:
            continue
        free[name] = [free[name][0] - cpu, free[name][1] - memory]
        spec = {
            "nodeName": name,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}}],
        }
        if drawn.random() < 0.2:
            spec["nodeSelector"] = {ZONE: f"z{names.index(name) % 2}"}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"w{number}", "controller": True}
        metadata = {"name": f"w{number}-a", "namespace": "default", "ownerReferences": [owner]}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        items.append({"kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
        items.append(
            {
                "kind": "ReplicaSet",
                "metadata": {"name": f"w{number}", "namespace": "default"},
                "spec": {"replicas": 2},
                "status": {"replicas": 2, "readyReplicas": 2},
            }
        )
    return items


class _Program:
    def __init__(self, columns):
        self.columns, self.values, self.rows, self.at, self.low, self.high = columns, [], [], [], [], []

    def row(self, cells, low, high):
        for column, value in cells:
            self.values.append(value)
            self.rows.append(len(self.low))
            self.at.append(column)
        self.low.append(low)
        self.high.append(high)

    def solved(self, gain):
        matrix = csr_matrix((self.values, (self.rows, self.at)), shape=(len(self.low), self.columns))
        result = milp(
            gain,
            constraints=LinearConstraint(matrix, self.low, self.high),
            bounds=Bounds(0, 1),
            integrality=numpy.ones(self.columns),
            options={"mip_rel_gap": 0},
        )
        assert result.status == 0, result.message
        return -result.fun


def optimum(made, world):
    """The most that any plan can save: whole nodes, whole pods, each node with its own room."""
    nodes, candidates = range(len(world.nodes)), {n: at for at, n in enumerate(made.candidates)}
    places, columns = {}, len(candidates)
    for node in candidates:
        for pod in made.pods_to_move[node]:
            for target in nodes:
                if target != node and made.requests[pod].nodes[target] and not made.capacity.closed_nodes[target]:
                    places[pod, target] = columns
                    columns += 1
    program, errands = _Program(columns), made.requests
    for node, x in candidates.items():
        for pod in made.pods_to_move[node]:
            program.row([(x, -1), *((c, 1) for (p, _), c in places.items() if p == pod)], 0, 0)
    for node in nodes:
        for amount, free in (("major", world.major), ("minor", world.minor)):
            arrivals = [(c, getattr(errands[p], amount)) for (p, t), c in places.items() if t == node]
            going = [(candidates[node], max(0, free[node]))] if node in candidates else []
            program.row([*arrivals, *going], -numpy.inf, max(0, free[node]))
        if node in candidates:
            for (_, target), column in places.items():
                if target == node:
                    program.row([(column, 1), (candidates[node], 1)], -numpy.inf, 1)
    for limits in {id(limit): limit for limit in made.limits if limit is not None}.values():
        _pool(made, world, limits, candidates, places, program)
    gain = numpy.zeros(columns)
    gain[: len(candidates)] = [-made.savings[n] for n in candidates]
    return program.solved(gain)


def _pool(item, world, limits, candidates, places, program):
    mine = set(limits.nodes)
    program.row([(candidates[n], 1) for n in mine if n in candidates], -numpy.inf, len(mine) - limits.pool.min_nodes)
    reserved = [kind for kind, node in item.reserved if item.limits[node] is limits]
    for amount, free, resource in zip(
        ("major", "minor"), (world.major, world.minor), world.main_resources, strict=True
    ):
        keeps = {n: free[n] - world.allocatable_amount(n, resource) * limits.pool.headroom.percent / 100 for n in mine}
        arrivals = [(c, getattr(item.requests[p], amount)) for (p, t), c in places.items() if t in mine]
        total = sum(getattr(kind, amount) for kind in reserved)
        going = [(candidates[n], keeps[n]) for n in mine if n in candidates]
        program.row([*arrivals, *going], -numpy.inf, max(0, sum(keeps.values()) - total))
