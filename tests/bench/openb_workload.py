"""The workload on which compactors are compared: the nodes and pods of the openb trace as Kubernetes objects.

    python -m tests.bench.openb_workload > workload.json        needs `make bench-data`

It prints one `v1` List with 310 nodes without GPUs, Deployments, PodDisruptionBudgets, one DaemonSet and a few pods
that block a drain:

- Nodes: allocatable is capacity, less GKE's reservation and 100 MiB of eviction threshold; they are marked for kwok.
- Pods: those of the trace that ask for no GPU and are not Pending, in the order of the file, until their CPU requests
  reach `--fill` of all allocatable CPU. Each is cut into `--split` pods; pods of one shape are grouped into Deployments
  of 3 to 12 replicas.
- Budgets: a third of the Deployments allows one unavailable pod, `--pdb0` Deployments allow none.
- Pods that block: `--bare` pods have no owner, the pods of `--emptydir` Deployments have local data, and the pods of
  `--unsafe` Deployments are annotated as not safe to evict.

The same seed gives the same workload. `data/openb-310-spread.json.gz` is the placement of seed 1 with the defaults by
the real default scheduler.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.bench_data import OPENB_FILES, OPENB_SNAPSHOT, locate

Item = dict[str, Any]
Shape = tuple[int, int]
"""Milli-cores and MiB of one pod."""

CPU_STEPS = ((1000, 0.06), (1000, 0.01), (2000, 0.005), (10**12, 0.0025))
"""Milli-cores, and the share of them that GKE reserves."""
MEMORY_STEPS = ((4096, 0.25), (4096, 0.20), (8192, 0.10), (114688, 0.06), (10**12, 0.02))
"""MiB, and the share of them that GKE reserves."""
EVICTION_THRESHOLD = 100
"""MiB."""


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """How the workload is made; the defaults are those of the carried snapshot."""

    seed: int = 1
    fill: float = 0.70
    split: int = 8
    bare: int = 6
    emptydir: int = 3
    unsafe: int = 2
    pdb0: int = 3
    budget_share: float = 1 / 3


DEFAULT_OPTIONS = WorkloadOptions()


def make_workload(options: WorkloadOptions = DEFAULT_OPTIONS) -> list[Item]:
    """Returns the objects. Where the trace was not fetched, nodes and shapes are those of the carried snapshot, drawn
    again until the fill is reached: another workload of the same kind, which `is_from_trace` tells apart."""
    dice = random.Random(options.seed)
    if is_from_trace():
        nodes = list(_nodes_of_trace())
        shapes = _shapes_of_trace(options.fill * _allocatable_cpu(nodes), options.split)
    else:
        nodes, counts = _snapshot_nodes_and_shapes()
        shapes = _draw_shapes(counts, options.fill * _allocatable_cpu(nodes), random.Random(options.seed))
    return _objects(nodes, _split_into_replicas(shapes, dice), options, dice)


def is_from_trace() -> bool:
    """Whether the trace's own files are here."""
    return all(locate(name) for name in OPENB_FILES)


def _allocatable_cpu(nodes: Sequence[Item]) -> int:
    return sum(int(node["status"]["allocatable"]["cpu"][:-1]) for node in nodes)


def _reserved(amount: int, steps: Sequence[tuple[int, float]]) -> int:
    """Returns what GKE reserves of the amount, in its unit."""
    total = 0.0
    for width, share in steps:
        part = min(amount, width)
        total += part * share
        amount -= part
    return round(total)


def _rows_of_trace(name: str) -> Iterator[dict[str, str]]:
    path = locate(name)
    assert path is not None, name
    with path.open() as file:
        yield from csv.DictReader(file)


def _nodes_of_trace() -> Iterator[Item]:
    for row in _rows_of_trace("openb_node_list_all_node.csv"):
        if not int(row["gpu"] or 0):
            yield _node(row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]))


def _node(name: str, cpu: int, memory: int) -> Item:
    shape = f"c{cpu // 1000}-m{memory // 1024}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "type": "kwok",
        "node.kubernetes.io/instance-type": shape,
        "topology.kubernetes.io/zone": f"zone-{zlib.crc32(name.encode()) % 3}",
        "topology.kubernetes.io/region": "r1",
        "cloud.google.com/gke-nodepool": shape,
    }
    annotations = {"kwok.x-k8s.io/node": "fake", "cluster-autoscaler.kwok.nodegroup/name": shape}
    free_memory = memory - _reserved(memory, MEMORY_STEPS) - EVICTION_THRESHOLD
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"providerID": f"kwok:{name}"},
        "status": {
            "capacity": {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "110"},
            "allocatable": {"cpu": f"{cpu - _reserved(cpu, CPU_STEPS)}m", "memory": f"{free_memory}Mi", "pods": "110"},
        },
    }


def _shapes_of_trace(cpu_limit: float, split: int) -> Mapping[Shape, int]:
    """Returns the number of pods of each shape, until the CPU of the trace's pods reaches the limit."""
    shapes: Counter[Shape] = Counter()
    total = 0
    for row in _rows_of_trace("openb_pod_list_cpu250.csv"):
        if int(row["num_gpu"] or 0) or row["pod_phase"] == "Pending":
            continue
        cpu, memory = int(row["cpu_milli"]), int(row["memory_mib"])
        if total + cpu > cpu_limit:
            break
        total += cpu
        shapes[max(1, cpu // split), max(1, memory // split)] += split
    return shapes


def _snapshot_nodes_and_shapes() -> tuple[list[Item], Mapping[Shape, int]]:
    items = json.loads(gzip.decompress(OPENB_SNAPSHOT.read_bytes()))["items"]
    nodes, shapes = list[Item](), Counter[Shape]()
    for item in items:
        if item["kind"] == "Node":
            capacity = item["status"]["capacity"]
            nodes.append(_node(item["metadata"]["name"], _milli(capacity["cpu"]), _mebi(capacity["memory"])))
        elif item["kind"] == "Pod" and item["metadata"].get("labels", {}).get("app") != "agent":
            requests = item["spec"]["containers"][0]["resources"]["requests"]
            shapes[_milli(requests["cpu"]), _mebi(requests["memory"])] += 1
    return nodes, shapes


def _milli(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def _mebi(quantity: str) -> int:
    return int(quantity[:-2]) * (1024 if quantity.endswith("Gi") else 1)


def _draw_shapes(counts: Mapping[Shape, int], cpu_limit: float, dice: random.Random) -> Mapping[Shape, int]:
    shapes: Counter[Shape] = Counter()
    total, groups = 0, 8
    while True:
        cpu, memory = dice.choices([*counts], [*counts.values()])[0]
        if total + cpu * groups > cpu_limit:
            return shapes
        total += cpu * groups
        shapes[cpu, memory] += groups


def _split_into_replicas(shapes: Mapping[Shape, int], dice: random.Random) -> list[tuple[int, int, int]]:
    """Returns (milli-cores, MiB, replicas) of each workload, in a random order."""
    workloads = []
    for (cpu, memory), pods in shapes.items():
        left = pods
        while left > 0:
            replicas = dice.randint(3, 12)
            replicas = left if left - replicas < 3 else min(replicas, left)
            workloads.append((cpu, memory, replicas))
            left -= replicas
    dice.shuffle(workloads)
    return workloads


def _objects(
    nodes: Sequence[Item], workloads: Sequence[tuple[int, int, int]], options: WorkloadOptions, dice: random.Random
) -> list[Item]:
    order = list(range(len(workloads)))
    dice.shuffle(order)
    small = iter([number for number in order if 3 <= workloads[number][2] <= 8])
    bare, scratch, unsafe, closed = (
        {next(small) for _ in range(count)} for count in (options.bare, options.emptydir, options.unsafe, options.pdb0)
    )
    others = [number for number in order if number not in scratch | unsafe | closed]
    guarded = set(others[: round(options.budget_share * len(workloads))])
    deployments, budgets, ownerless = list[Item](), list[Item](), list[Item]()
    for number, (cpu, memory, replicas) in enumerate(workloads):
        name = f"w{number:04d}"
        if number in bare:
            pod = _template(cpu, memory, {"bare": name})
            pod["metadata"].update(name=f"bare-{name}", namespace="default")
            ownerless.append({"apiVersion": "v1", "kind": "Pod", **pod})
        template = _template(cpu, memory, {"app": name}, is_unsafe=number in unsafe, has_scratch=number in scratch)
        deployments.append(_deployment(name, replicas - (number in bare), template))
        if number in closed | guarded:
            budgets.append(_budget(name, 0 if number in closed else 1))
    return [*nodes, _daemon_set(), *budgets, *deployments, *ownerless]


def _template(
    cpu: int, memory: int, labels: Mapping[str, str], *, is_unsafe: bool = False, has_scratch: bool = False
) -> Item:
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    container: Item = {"name": "c", "image": "x", "resources": {"requests": requests}}
    template: Item = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    if is_unsafe:
        template["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    if has_scratch:
        template["spec"]["volumes"] = [{"name": "d", "emptyDir": {}}]
        container["volumeMounts"] = [{"name": "d", "mountPath": "/d"}]
    return template


def _deployment(name: str, replicas: int, template: Item) -> Item:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def _budget(name: str, max_unavailable: int) -> Item:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": max_unavailable, "selector": {"matchLabels": {"app": name}}},
    }


def _daemon_set() -> Item:
    agent = _template(100, 128, {"app": "agent"})
    agent["spec"]["tolerations"] = [{"operator": "Exists"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": agent},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=DEFAULT_OPTIONS.seed)
    parser.add_argument("--fill", type=float, default=DEFAULT_OPTIONS.fill)
    options = WorkloadOptions(**vars(parser.parse_args()))
    print(json.dumps({"apiVersion": "v1", "kind": "List", "items": make_workload(options)}))


if __name__ == "__main__":
    main()
