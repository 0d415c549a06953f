"""GPU clusters in which a large pod does not fit, although its amounts are free in pieces.

Nodes and pods are those of the openb trace that have or request GPUs, drawn by a seed. GPUs are one extended resource,
in thousandths (`example.com/gpu-milli`), so that pods may share a GPU; that a share has to be of one GPU is left out,
and so is the model of the GPU. Pods are placed one by one on the emptiest of a few nodes until a share of all GPUs
is requested. One pod in ten may not move (it has local data), one in ten is under a budget that allows none, one in
five has a higher priority than the pods that want to run. These are one pod with four or eight GPUs, or a gang of two
or three such pods. Without the trace, nodes with 8 GPUs and pods of common sizes are drawn.
"""

import csv
import random

import numpy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from tests.bench.bench_data import OPENB_FILES, locate

GPU = "example.com/gpu-milli"
RESOURCES = ("cpu", "memory", GPU, "pods")
HIGH, WANTED = 1000, 100
GENERATED_PODS = (
    (4000, 16384, 500),
    (8000, 32768, 1000),
    (12000, 65536, 1000),
    (16000, 98304, 2000),
    (32000, 131072, 4000),
)


def read_trace():
    """(shapes of nodes, shapes of pods) with GPUs: (milli-cores, MiB, thousandths of GPUs)."""
    paths = [locate(name) for name in OPENB_FILES]
    if None in paths:
        return [(96_000, 786_432, 8_000)], list(GENERATED_PODS)
    with open(paths[0]) as nodes, open(paths[1]) as pods:
        node_shapes = [
            (int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]) * 1000)
            for row in csv.DictReader(nodes)
            if int(row["gpu"] or 0) >= 4
        ]
        pod_shapes = [
            (int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]) * int(row["gpu_milli"]))
            for row in csv.DictReader(pods)
            if int(row["num_gpu"] or 0) and row["pod_phase"] != "Pending"
        ]
    return node_shapes, pod_shapes


class Cluster:
    """A drawn cluster: amounts of nodes, pods with their node and whether they may move, and what wants to run."""

    def __init__(self, seed, nodes, trace, fills=(0.45, 0.75)):
        dice = self.dice = random.Random(seed)
        node_shapes, pod_shapes = trace
        self.nodes = {f"gpu-{n:04}": (*dice.choice(node_shapes), 110) for n in range(nodes)}
        self.pods, free = {}, {name: list(amounts) for name, amounts in self.nodes.items()}
        names, total = sorted(free), sum(amounts[2] for amounts in self.nodes.values())
        wanted_fill, used, misses = dice.uniform(*fills), 0, 0
        while used < wanted_fill * total and misses < 50:
            shape = (*dice.choice(pod_shapes), 1)
            fitting = [name for name in dice.sample(names, min(6, len(names))) if _fits(shape, free[name])]
            if not fitting:
                misses += 1
                continue
            node = max(fitting, key=lambda name: free[name][2])
            kind = dice.choice(("local", "closed", "high", "high", *("free",) * 6))
            self.pods[f"pod-{len(self.pods):05}"] = (shape, node, kind)
            free[node] = [amount - one for amount, one in zip(free[node], shape, strict=True)]
            used += shape[2]
        self.free = free
        gpus = dice.choice((4, 8))
        self.wanted = [(gpus * 4_000, gpus * 16_384, gpus * 1000, 1)] * dice.choice((1, 1, 1, 2, 3))

    def items(self):
        """The Kubernetes objects."""
        for name, (cpu, memory, gpu, slots) in self.nodes.items():
            amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", GPU: str(gpu), "pods": str(slots)}
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": {},
                "status": {"allocatable": amounts, "capacity": amounts, "conditions": [_READY]},
            }
        for name, (shape, node, kind) in self.pods.items():
            yield _pod(name, shape, node, kind)
        metadata = {"name": "closed", "namespace": "default", "generation": 1}
        status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2}
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"selector": {"matchLabels": {"kind": "closed"}}, "minAvailable": "100%"},
            "status": {**status, "expectedPods": 2},
        }

    def wanted_items(self):
        return [_pod(f"wanted-{n}", shape, "", "wanted") for n, shape in enumerate(self.wanted)]


_READY = {"type": "Ready", "status": "True"}


def _fits(shape, free):
    return all(one <= amount for one, amount in zip(shape, free, strict=True))


def _pod(name, shape, node, kind):
    requests = {"cpu": f"{shape[0]}m", "memory": f"{shape[1]}Mi", GPU: str(shape[2])}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"w-{name}", "uid": f"w-{name}", "controller": True}
    spec = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    spec["priority"] = {"high": HIGH, "wanted": WANTED}.get(kind, 0)
    if kind == "local":
        spec["volumes"] = [{"name": "d", "emptyDir": {}}]
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"kind": kind},
            "ownerReferences": [owner],
        },
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending", "conditions": [_READY] if node else []},
    }


def least_evictions(cluster):
    """The fewest pods that have to move, by an exact model; None if the pods have no place. Each pod of kind `free` may
    go to any node, in any order and any number of steps."""
    names, movable = list(cluster.nodes), [name for name, one in cluster.pods.items() if one[2] == "free"]
    columns = {(pod, node): None for pod in movable for node in names if node != cluster.pods[pod][1]}
    columns |= {(f"wanted-{n}", node): None for n in range(len(cluster.wanted)) for node in names}
    columns = {key: number for number, key in enumerate(columns)}
    shape_of = {pod: cluster.pods[pod][0] for pod in movable}
    shape_of |= {f"wanted-{n}": shape for n, shape in enumerate(cluster.wanted)}
    values, rows, at, low, high = [], [], [], [], []

    def row(cells, least, most):
        for column, value in cells:
            values.append(value)
            rows.append(len(low))
            at.append(column)
        low.append(least)
        high.append(most)

    for n in range(len(cluster.wanted)):
        row([(columns[f"wanted-{n}", node], 1) for node in names], 1, 1)
    for pod in movable:
        row([(columns[pod, node], 1) for node in names if node != cluster.pods[pod][1]], 0, 1)
    scale = (1000, 1024, 1000, 1)
    for node in names:
        for i in range(len(RESOURCES)):
            cells = [
                (columns[pod, node], shape[i] / scale[i]) for pod, shape in shape_of.items() if (pod, node) in columns
            ]
            for pod in movable:
                if cluster.pods[pod][1] == node:
                    amount = shape_of[pod][i] / scale[i]
                    cells += [(columns[pod, other], -amount) for other in names if other != node]
            row(cells, -numpy.inf, cluster.free[node][i] / scale[i])
    matrix = csr_matrix((values, (rows, at)), shape=(len(low), len(columns)))
    solved = milp(
        [0 if pod.startswith("wanted") else 1 for pod, _ in columns],
        constraints=LinearConstraint(matrix, low, high),
        bounds=Bounds(0, 1),
        integrality=numpy.ones(len(columns)),
        options={"mip_rel_gap": 0.01, "time_limit": 60},
    )
    return None if solved.x is None else round(solved.fun)


def check_room(cluster, plan):
    """Is the plan legal? Who may move, and what fits after all moves."""
    free = {name: list(amounts) for name, amounts in cluster.free.items()}
    for move in plan.moves:
        shape, node, kind = cluster.pods[move.pod.partition("/")[2]]
        assert kind == "free", f"{move.pod} may not move"
        assert move.source == node != move.target, f"{move.pod} is on {node}"
        free[node] = [amount + one for amount, one in zip(free[node], shape, strict=True)]
        free[move.target] = [amount - one for amount, one in zip(free[move.target], shape, strict=True)]
    assert len({move.pod for move in plan.moves}) == len(plan.moves), "a pod moves twice"
    assert len(plan.places) == len(cluster.wanted), "a pod has no place"
    for place in plan.places:
        shape = cluster.wanted[int(place.pod.rpartition("-")[2])]
        free[place.node] = [amount - one for amount, one in zip(free[place.node], shape, strict=True)]
    for name, amounts in free.items():
        assert min(amounts) >= 0, f"node {name} has too little"
