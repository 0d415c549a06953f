"""A placed cluster of any size with every kind of constraint in it, as one `v1` List.

    python -m tests.bench.synthetic_cluster --nodes 1000 --pods-per-node 30 --fill 0.7 > cluster.json

The nodes have six shapes, in three zones; 10 % are in a dedicated pool with a taint, 5 % have an extended resource, and
each runs a DaemonSet's pod. Workloads have 2 to 20 replicas; `KIND_SHARES` says which share of them has which
constraint. A third of them has a PodDisruptionBudget, and the share `--blocked` of all pods may not move. A pod goes to
the least allocated of a few nodes that satisfy its constraints: the cluster is valid and evenly spread. The same seed
gives the same cluster, byte by byte.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Item = dict[str, Any]

SHAPES = ((4000, 16384), (8000, 32768), (16000, 65536), (32000, 131072), (16000, 131072), (32000, 65536))
"""Milli-cores and MiB of a node."""
REQUESTS = (
    (50, 64),
    (100, 128),
    (100, 256),
    (250, 512),
    (250, 1024),
    (500, 1024),
    (1000, 2048),
    (2000, 4096),
    (500, 4096),
)
"""Milli-cores and MiB of a pod, before all are scaled to the wanted fill."""
KIND_SHARES: Mapping[str, int] = {
    "dedicated": 10,
    "apart": 10,
    "zone-spread": 10,
    "host-spread": 5,
    "zone": 5,
    "volume": 3,
    "port": 2,
    "init": 5,
    "overhead": 3,
    "device": 3,
    "plain": 44,
}
"""Kind of constraint → percent of the workloads."""
KINDS = tuple(kind for kind, percent in KIND_SHARES.items() for _ in range(percent))
DEVICE = "example.com/device"
ZONES = ("zone-0", "zone-1", "zone-2")
ZONE_LABEL, HOSTNAME_LABEL = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DAEMON_CPU, DAEMON_MEMORY = 100, 128
OVERHEAD_CPU, OVERHEAD_MEMORY = 100, 64
MAX_TRIES, MAX_CANDIDATES = 40, 8
MAX_WORKLOADS_WITHOUT_PLACE = 200
"""So many workloads in a row for which no pod has a place: the nodes are full, and would stay so for ever."""
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(slots=True)
class Place:
    """The free capacity of one node while pods are placed."""

    name: str
    zone: str
    is_dedicated: bool
    cpu_capacity: int
    cpu: int
    memory: int
    devices: int
    slots: int = 110
    ports: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of one shape, with at most one kind of constraint."""

    name: str
    namespace: str
    kind: str
    zone: str
    port: int
    cpu: int
    memory: int

    @property
    def owner_kind(self) -> str:
        return "StatefulSet" if self.kind == "volume" else "ReplicaSet"

    def scheduled_amounts(self) -> tuple[int, int]:
        """Returns what the scheduler counts for one pod: milli-cores and MiB."""
        if self.kind == "init":
            return 2 * self.cpu, self.memory
        if self.kind == "overhead":
            return self.cpu + OVERHEAD_CPU, self.memory + OVERHEAD_MEMORY
        return self.cpu, self.memory


def generate_cluster(
    nodes: int, pods_per_node: int = 30, fill: float = 0.7, blocked: float = 0.01, seed: int = 1
) -> Iterator[Item]:
    """Yields the objects of the cluster.

    fill: the share of the cluster's CPU that pods request. blocked: the share of the pods that may not move.
    Raises ValueError if the drawn nodes have no place for the pods."""
    dice = random.Random(seed)
    items = [_node(number, dice) for number in range(nodes)]
    places = [_place(item) for item in items]
    yield from items
    yield {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandboxed"},
        "handler": "sandboxed",
        "overhead": {"podFixed": {"cpu": f"{OVERHEAD_CPU}m", "memory": f"{OVERHEAD_MEMORY}Mi"}},
    }
    for place in places:
        yield _daemon_pod(place)
    yield from _workload_items(places, nodes * pods_per_node, fill, blocked, dice)


def _workload_items(
    places: list[Place], pod_count: int, fill: float, blocked: float, dice: random.Random
) -> Iterator[Item]:
    common = [place for place in places if not place.is_dedicated]
    places_by_kind = {
        "dedicated": [place for place in places if place.is_dedicated],
        "device": [place for place in common if place.devices],
    }
    capacity = sum(place.cpu for place in places)
    mean_cpu = sum(cpu for cpu, _ in REQUESTS) / len(REQUESTS)
    scale = fill * capacity / pod_count / mean_cpu
    pods = number = used_cpu = 0
    workloads_without_place = 0
    while pods < pod_count:
        workload = _workload(number, scale, dice)
        number += 1
        replicas = 0
        nodes_of_workload: set[str] = set()
        pods_by_zone: dict[str, int] = defaultdict(int)
        for _ in range(min(dice.randint(2, 20), pod_count - pods)):
            eligible = places_by_kind.get(workload.kind, common)
            place = _choose_place(eligible, workload, nodes_of_workload, pods_by_zone, dice)
            if place is None:
                break
            _take(place, workload)
            nodes_of_workload.add(place.name)
            pods_by_zone[place.zone] += 1
            yield from _pod_with_volume(workload, replicas, place, blocked, dice)
            replicas += 1
            used_cpu += workload.scheduled_amounts()[0]
        workloads_without_place = 0 if replicas else workloads_without_place + 1
        if workloads_without_place == MAX_WORKLOADS_WITHOUT_PLACE:
            raise ValueError(f"no place for {pod_count - pods} of {pod_count} pods")
        if replicas:
            pods += replicas
            yield from _budget(workload, replicas, dice)
            yield _owner(workload, replicas)
    print(
        f"{len(places)} nodes, {pods} pods in {number} workloads, {used_cpu / capacity:.0%} of cpu requested",
        file=sys.stderr,
    )


def _node(number: int, dice: random.Random) -> Item:
    cpu, memory = SHAPES[dice.randrange(len(SHAPES))]
    is_dedicated, has_device = dice.random() < 0.10, dice.random() < 0.05
    name, cores, gib = f"node-{number:05d}", cpu // 1000, memory // 1024
    allocatable = {"cpu": f"{cpu - 120}m", "memory": f"{memory - 1400}Mi", "pods": "110"}
    if has_device:
        allocatable[DEVICE] = "8"
    labels = {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        ZONE_LABEL: ZONES[number % 3],
        "node.kubernetes.io/instance-type": f"c{cores}-m{gib}",
        "cloud.google.com/gke-nodepool": f"batch-{cores}" if is_dedicated else f"general-{cores}-{gib}",
    }
    if is_dedicated:
        labels["pool"] = "batch"
    spec = {"taints": [{"key": "pool", "value": "batch", "effect": "NoSchedule"}]} if is_dedicated else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"n{number}", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels},
        "spec": spec,
        "status": {
            "capacity": {**allocatable, "cpu": f"{cpu}m", "memory": f"{memory}Mi"},
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _place(node: Item) -> Place:
    """Returns the free capacity of the node, without what its DaemonSet's pod takes."""
    allocatable, metadata = node["status"]["allocatable"], node["metadata"]
    cpu, memory = int(allocatable["cpu"][:-1]), int(allocatable["memory"][:-2])
    place = Place(
        name=metadata["name"],
        zone=metadata["labels"][ZONE_LABEL],
        is_dedicated="taints" in node["spec"],
        cpu_capacity=cpu,
        cpu=cpu - DAEMON_CPU,
        memory=memory - DAEMON_MEMORY,
        devices=int(allocatable.get(DEVICE, 0)),
    )
    place.slots -= 1
    return place


def _daemon_pod(place: Place) -> Item:
    name = f"agent-{place.name}"
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds-agent", "controller": True}
    requests = {"cpu": f"{DAEMON_CPU}m", "memory": f"{DAEMON_MEMORY}Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "uid": name,
            "labels": {"app": "agent"},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": place.name,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
        },
        "status": READY,
    }


def _workload(number: int, scale: float, dice: random.Random) -> Workload:
    cpu, memory = REQUESTS[dice.randrange(len(REQUESTS))]
    kind, zone = KINDS[dice.randrange(100)], ZONES[dice.randrange(3)]
    return Workload(
        name=f"w{number:06d}",
        namespace=f"team-{number % 40:02d}",
        kind=kind,
        zone=zone,
        port=20000 + number % 10000,
        cpu=max(1, round(cpu * scale)),
        memory=max(16, round(memory * scale)),
    )


def _choose_place(
    places: list[Place],
    workload: Workload,
    nodes_of_workload: set[str],
    pods_by_zone: dict[str, int],
    dice: random.Random,
) -> Place | None:
    """Returns the least allocated of the drawn places that satisfy the workload's constraints, or None."""
    best = None
    for _ in range(MAX_TRIES):
        place = places[dice.randrange(len(places))]
        if not _is_allowed(place, workload, nodes_of_workload):
            continue
        if workload.kind == "zone-spread" and pods_by_zone[place.zone] > min(pods_by_zone[zone] for zone in ZONES):
            continue
        if best is None or place.cpu / place.cpu_capacity > best.cpu / best.cpu_capacity:
            best = place
    return best


def _is_allowed(place: Place, workload: Workload, nodes_of_workload: set[str]) -> bool:
    """Whether a pod of the workload fits: capacity, a pod slot, the pool, and the one constraint of its kind."""
    cpu, memory = workload.scheduled_amounts()
    if place.cpu < cpu or place.memory < memory or place.slots <= 0:
        return False
    if place.is_dedicated != (workload.kind == "dedicated"):
        return False
    match workload.kind:
        case "apart" | "host-spread":
            return place.name not in nodes_of_workload
        case "zone" | "volume":
            return place.zone == workload.zone
        case "port":
            return workload.port not in place.ports
        case "device":
            return place.devices > 0
    return True


def _take(place: Place, workload: Workload) -> None:
    cpu, memory = workload.scheduled_amounts()
    place.cpu, place.memory, place.slots = place.cpu - cpu, place.memory - memory, place.slots - 1
    if workload.kind == "port":
        place.ports.add(workload.port)
    if workload.kind == "device":
        place.devices -= 1


def _pod_with_volume(
    workload: Workload, replica: int, place: Place, blocked: float, dice: random.Random
) -> Iterator[Item]:
    name, spec = f"{workload.name}-{replica}", _pod_spec(workload)
    if workload.kind == "volume":
        claim = f"data-{name}"
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        yield from _claim_and_volume(workload.namespace, claim, f"pv-{name}", name, place.zone)
    blocker = dice.choice(("bare", "local", "unsafe")) if dice.random() < blocked else None
    yield _pod(name, workload, spec, place.name, blocker)


def _claim_and_volume(namespace: str, claim: str, volume: str, handle: str, zone: str) -> Iterator[Item]:
    expression = {"key": ZONE_LABEL, "operator": "In", "values": [zone]}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": namespace},
        "spec": {"volumeName": volume, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "csi": {"driver": "disk.example.com", "volumeHandle": handle},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }


def _pod_spec(workload: Workload) -> Item:
    selector = {"matchLabels": {"app": workload.name}}
    requests = {"cpu": f"{workload.cpu}m", "memory": f"{workload.memory}Mi"}
    if workload.kind == "device":
        requests[DEVICE] = "1"
    container: Item = {"name": "c", "image": "x", "resources": {"requests": requests}}
    spec: Item = {"containers": [container], "schedulerName": "default-scheduler", "priority": 0}
    match workload.kind:
        case "dedicated":
            spec["tolerations"] = [{"key": "pool", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
            term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            spec["affinity"] = {"nodeAffinity": required}
        case "apart":
            terms = [{"labelSelector": selector, "topologyKey": HOSTNAME_LABEL}]
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        case "zone-spread" | "host-spread":
            key = ZONE_LABEL if workload.kind == "zone-spread" else HOSTNAME_LABEL
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            ]
        case "zone":
            spec["nodeSelector"] = {ZONE_LABEL: workload.zone}
        case "port":
            container["ports"] = [{"containerPort": 8080, "hostPort": workload.port, "protocol": "TCP"}]
        case "init":
            init_requests = {"cpu": f"{workload.cpu * 2}m", "memory": f"{workload.memory}Mi"}
            spec["initContainers"] = [{"name": "i", "image": "x", "resources": {"requests": init_requests}}]
        case "overhead":
            overhead = {"cpu": f"{OVERHEAD_CPU}m", "memory": f"{OVERHEAD_MEMORY}Mi"}
            spec.update(runtimeClassName="sandboxed", overhead=overhead)
    return spec


def _pod(name: str, workload: Workload, spec: Item, node: str, blocker: str | None) -> Item:
    """blocker: `bare` (no owner), `local` (an emptyDir volume) or `unsafe` (an annotation), or None."""
    metadata: Item = {
        "name": name,
        "namespace": workload.namespace,
        "uid": name,
        "labels": {"app": workload.name},
        "creationTimestamp": "2026-01-02T00:00:00Z",
    }
    if blocker == "unsafe":
        metadata["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    if blocker != "bare":
        owner = {"apiVersion": "apps/v1", "kind": workload.owner_kind, "name": workload.name}
        metadata["ownerReferences"] = [{**owner, "uid": f"o-{workload.name}", "controller": True}]
    spec = {**spec, "nodeName": node}
    if blocker == "local":
        spec["volumes"] = [*spec.get("volumes", []), {"name": "scratch", "emptyDir": {}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": READY}


def _budget(workload: Workload, replicas: int, dice: random.Random) -> Iterator[Item]:
    if dice.random() >= 1 / 3:
        return
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.name, "namespace": workload.namespace, "generation": 1},
        "spec": {
            "maxUnavailable": 1 if dice.random() < 0.7 else "25%",
            "selector": {"matchLabels": {"app": workload.name}},
        },
        "status": {
            "observedGeneration": 1,
            "expectedPods": replicas,
            "currentHealthy": replicas,
            "desiredHealthy": replicas - 1,
            "disruptionsAllowed": 1,
        },
    }


def _owner(workload: Workload, replicas: int) -> Item:
    metadata = {"name": workload.name, "namespace": workload.namespace, "uid": f"o-{workload.name}"}
    return {
        "metadata": metadata,
        "apiVersion": "apps/v1",
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": workload.name}}},
        "status": {"replicas": replicas, "readyReplicas": replicas},
        "kind": workload.owner_kind,
    }


def encode_list(items: Iterator[Item]) -> bytes:
    """Returns the objects as one `v1` List, a line each."""
    lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
    return f'{{"apiVersion":"v1","kind":"List","items":[\n{lines}\n]}}\n'.encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods-per-node", type=int, default=30)
    parser.add_argument("--fill", type=float, default=0.70)
    parser.add_argument("--blocked", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    sys.stdout.buffer.write(encode_list(generate_cluster(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
