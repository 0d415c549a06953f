"""Small clusters cut from the published one, with machine types, prices and node groups.

The published cluster (`openb-310-spread.json.gz`) has 310 nodes of twelve shapes, placed by the default scheduler. An
instance is a few of its nodes with all their pods and budgets; workloads have as many replicas as were cut. Added are:

- types and prices: a node costs 3.2 cents a core and 0.4 cents a GiB of its capacity in an hour, the present ones as
  well as the new ones, so that no type is better than another but by its size and its ratio;
- node groups: one of each type of `OFFERED` in each zone, with a node that is full and may not be drained, so that the
  group's next node is known. The autoscaler's status names all groups: those of one type are at their maximum, the
  others may get `MORE_NODES`.

The rest of the rules is the planner's own: what may move, budgets, zones, sets of at most four nodes.
"""

import gzip
import json
import random
from collections import Counter

from tests.bench.bench_data import OPENB_SNAPSHOT
from tests.bench.openb_workload import CPU_STEPS, EVICTION_THRESHOLD, MEMORY_STEPS

CORE_PRICE, GIB_PRICE = 32_000, 4_000
"""Micro-dollars an hour."""
OFFERED = tuple((cores, cores * ratio) for cores in (4, 8, 16, 32, 48, 64) for ratio in (2, 4, 8))
"""(cores, GiB) of the types of the node groups."""
AT_MAXIMUM = "c8-m64"
"""The type whose groups give no node."""
MORE_NODES, MORE_NODES_OF_ALL = 4, 40
"""How many nodes each group may get, in an instance and in the whole cluster."""
ZONE, TYPE, GROUP = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "example.com/node-group"


def published_items():
    """The items of the published cluster."""
    return json.loads(gzip.decompress(OPENB_SNAPSHOT.read_bytes()))["items"]


def whole_cluster(items):
    """The items of the published cluster, and the node groups."""
    nodes = [item for item in items if item["kind"] == "Node"]
    return [*items, *_groups({node["metadata"]["labels"][ZONE] for node in nodes}, MORE_NODES_OF_ALL)]


def cut_cluster(items, seed, count):
    """`count` nodes of the items, drawn by the seed, with their pods, and the node groups of their zones."""
    dice = random.Random(seed)
    by_name = {item["metadata"]["name"]: item for item in items if item["kind"] == "Node"}
    zone = f"zone-{dice.randrange(3)}"
    in_zone = sorted(name for name, node in by_name.items() if node["metadata"]["labels"][ZONE] == zone)
    others = sorted(set(by_name) - set(in_zone))
    near = count * 2 // 3
    drawn = {*dice.sample(in_zone, near), *dice.sample(others, count - near)}
    pods = [item for item in items if item["kind"] == "Pod" and item["spec"].get("nodeName") in drawn]
    counts = Counter(
        (pod["metadata"]["namespace"], owner["kind"], owner["name"])
        for pod in pods
        for owner in pod["metadata"].get("ownerReferences", ())
    )
    chosen = [by_name[name] for name in sorted(drawn)]
    for item in items:
        key = (item["metadata"].get("namespace"), item["kind"], item["metadata"]["name"])
        if item["kind"] == "ReplicaSet" and counts[key]:
            status = {"replicas": counts[key], "readyReplicas": counts[key]}
            chosen.append({**item, "spec": {**item["spec"], "replicas": counts[key]}, "status": status})
        elif item["kind"] == "PodDisruptionBudget":
            chosen.append(item)
    return [*chosen, *pods, *_groups({by_name[name]["metadata"]["labels"][ZONE] for name in drawn}, MORE_NODES)]


def price_of(cores, gib):
    return cores * CORE_PRICE + gib * GIB_PRICE


def prices(items):
    """Type → micro-dollars an hour, of present and new nodes."""
    names = {item["metadata"]["labels"][TYPE] for item in items if item["kind"] == "Node"}
    return {name: price_of(*(int(part[1:]) for part in name.split("-"))) for name in sorted(names)}


def _groups(zones, more):
    """A full node of each group, and the autoscaler's status."""
    statuses = []
    for zone in sorted(zones):
        for cores, gib in OFFERED:
            kind = f"c{cores}-m{gib}"
            name = f"new-{kind}-{zone}"
            yield _full_node(name, kind, zone, cores, gib)
            yield from _fixed_pods(name, cores, gib)
            most = 1 if kind == AT_MAXIMUM else 1 + more
            health = {"status": "Healthy", "minSize": 0, "maxSize": most, "cloudProviderTarget": 1}
            statuses.append({"name": name, "health": health, "scaleUp": {"status": "NoActivity"}})
    status = {"autoscalerStatus": "Running", "clusterWide": {"health": {"status": "Healthy"}}, "nodeGroups": statuses}
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"status": json.dumps(status)}}


def free_of(cores, gib):
    """(milli-cores, MiB, pods) that pods may use of a new node, beside the agent's."""
    cpu, memory = cores * 1000, gib * 1024
    return (
        cpu - _reserved(cpu, CPU_STEPS) - 100,
        memory - _reserved(memory, MEMORY_STEPS) - EVICTION_THRESHOLD - 128,
        109,
    )


def _reserved(amount, steps):
    total = 0.0
    for width, share in steps:
        total += min(amount, width) * share
        amount -= min(amount, width)
    return round(total)


def _full_node(name, kind, zone, cores, gib):
    cpu, memory, pods = free_of(cores, gib)
    labels = {"kubernetes.io/hostname": f"{name}-0", ZONE: zone, TYPE: kind, GROUP: name}
    labels |= {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "topology.kubernetes.io/region": "r1"}
    amounts = {"cpu": f"{cpu + 100}m", "memory": f"{memory + 128}Mi", "pods": str(pods + 1)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"{name}-0", "uid": f"{name}-0", "labels": labels},
        "spec": {},
        "status": {
            "capacity": {"cpu": str(cores), "memory": f"{gib}Gi", "pods": str(pods + 1)},
            "allocatable": amounts,
            "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _fixed_pods(name, cores, gib):
    """The agent of the node, and a pod that fills it and may not move."""
    cpu, memory, _ = free_of(cores, gib)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds-agent", "controller": True}
    state = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for pod, amounts, owners in (
        ("agent", {"cpu": "100m", "memory": "128Mi"}, [owner]),
        ("full", {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, []),
    ):
        metadata = {"name": f"{pod}-{name}", "namespace": "default", "uid": f"{pod}-{name}", "labels": {"fixed": pod}}
        metadata |= {"ownerReferences": owners} if owners else {}
        spec = {"nodeName": f"{name}-0", "containers": [{"name": "c", "resources": {"requests": amounts}}]}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": state}
