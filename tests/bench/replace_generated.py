"""Generated clusters with every kind of constraint, and prices that make some node groups cheaper: is any state on the
way through drains and replacements illegal?

    python -m tests.bench.replace_generated 2000

Each cluster has 8 to 18 nodes of the generator of `synthetic_cluster`, filled by a third to four fifths. A machine type
has a price by its size, times a factor between 0.5 and 2 that is drawn for each cluster.
"""

import contextlib
import io
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.bench.synthetic_cluster import generate_cluster
from tests.bench.verify_replacements import NewNode, Walk
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.pool import pool_from_preset
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.plan import make_plan
from trimtab.compaction.replace.advise import advise_replacements
from trimtab.scheduling.cluster_model import build_cluster_model

CHUNK = 20
"""The clusters that a process checks at once."""
GROUP, TYPE, PRICE = "cloud.google.com/gke-nodepool", "node.kubernetes.io/instance-type", "trimtab.dev/price"


def generated_cluster(seed):
    """The items of one cluster, with a price on every node."""
    dice = random.Random(seed)
    items = []
    while not items:
        try:
            nodes, pods, fill = dice.randint(8, 18), dice.randint(3, 10), dice.uniform(0.33, 0.8)
            with contextlib.redirect_stderr(io.StringIO()):
                items = list(generate_cluster(nodes, pods_per_node=pods, fill=fill, seed=dice.randrange(1 << 30)))
        except ValueError:
            # No node of the dedicated pool was drawn, or the nodes are full before all pods have a place.
            continue
    factors = {}
    for item in items:
        if item["kind"] == "Node":
            labels, amounts = item["metadata"]["labels"], item["status"]["allocatable"]
            cost = int(amounts["cpu"][:-1]) * 32 + int(amounts["memory"][:-2]) * 4
            labels[PRICE] = str(round(cost * factors.setdefault(labels[TYPE], dice.uniform(0.5, 2))))
    return items


def advise(items):
    """The advice for one pool for each group, without thresholds."""
    # Values instead of a text: reading it would take as long as all the rest.
    documents = [Document(file="cluster", index=number, value=item) for number, item in enumerate(items)]
    reading = build_snapshot(documents)
    assert not reading.mistakes, reading.mistakes[:3]
    inventory = snapshot_inventory(reading.snapshot)
    names = sorted({item["metadata"]["labels"][GROUP] for item in items if item["kind"] == "Node"})
    pools = [pool_from_preset("keen", name) for name in names]
    plan = make_plan(build_cluster_model(inventory), pools)
    return advise_replacements(inventory, plan, pools)


def walk(items, advice):
    """Checks every state of the advice, and returns the walk."""
    path = Walk(items, GROUP)
    for one in advice.first:
        path.replace(new_node(one), moves_of(one))
    path.settle()
    for step in advice.drains.all_steps:
        path.drain(step.node, moves_of(step))
    path.settle()
    for one in advice.then:
        path.replace(new_node(one), moves_of(one))
    return path


def new_node(one):
    return NewNode(one.new_node, one.group, one.zone, one.nodes, one.price, one.saves)


def moves_of(step):
    return [(move.pod, move.source, move.target, move.turn) for move in step.moves]


def check_on_all_cores(count):
    """The same as `check_clusters`, with a process for each core."""
    firsts = range(0, count, CHUNK)
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        parts = processes.map(check_clusters, [min(CHUNK, count - first) for first in firsts], firsts)
        replacements, moves = zip(*parts, strict=True)
    return sum(replacements), sum(moves)


def check_clusters(count, first=0):
    """(replacements, moves) of so many clusters; raises on the first illegal state."""
    replacements = moves = 0
    for seed in range(first, first + count):
        items = generated_cluster(seed)
        advice = advise(items)
        try:
            walk(items, advice)
        except AssertionError as fault:
            raise AssertionError(f"cluster {seed}: {fault}") from fault
        replacements += len(advice.replacements)
        moves += len(advice.drains.all_moves) + sum(len(one.moves) for one in advice.replacements)
    return replacements, moves


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("{} clusters: {} replacements, {} moves, no illegal state".format(size, *check_on_all_cores(size)))
