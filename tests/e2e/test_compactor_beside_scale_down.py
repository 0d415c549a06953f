"""A pool that leads, beside an autoscaler that empties nodes under half of their requests itself."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from math import inf
from pathlib import Path

import pytest

from tests.controlplane import objects
from tests.controlplane.autoscaler import Autoscaler, CannotAdd, Times
from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e.compactors import Compactor, Object, budget, compactor, is_cordoned, nodes, noted, pool

SLOW = {"testbed.trimtab.dev/ready-after": "2s"}
SIZES = {"s": (30, 4), "m": (20, 8), "l": (10, 16)}
"""Group → (nodes, cores of each)."""
ENDS = [f"compactor.{what}" for what in ("emptied", "removed", "released", "abandoned")]
"""What ends the emptying of a node, as it is logged."""
MOST_TWICE = 2
"""Percent of the pods."""


@pytest.fixture
def name(cluster: Cluster) -> str:
    return f"beside-{cluster.namespace[-5:]}"


def group_of(name: str) -> Callable[[Object], str]:
    """The size of the pool's nodes is their group: its name does not have the pool's in it."""
    return lambda node: node["metadata"]["labels"].get("size", "") if _of_pool(node, name) else ""


def _of_pool(node: Object, name: str) -> bool:
    return bool(node["metadata"]["labels"].get("pool") == name)


def crowd(cluster: Cluster, name: str) -> int:
    """60 nodes of three sizes and 56 Deployments that ask for about 60 % of them; how many pods there are."""
    for size, (count, cores) in SIZES.items():
        labels = {"pool": name, "size": size}
        for number in range(count):
            text = f"{name}-{size}{number:02}"
            memory = f"{cores * 4}Gi"
            cluster.create(objects.node(text, cpu=str(cores), memory=memory, pods=110, labels=labels, taints=()))
    by, pods, spec = random.Random(5), 0, {"nodeSelector": {"pool": name}}
    for number in range(56):
        replicas, app = by.randint(2, 9), f"app{number:02}"
        annotations = {**SLOW, "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"} if number < 2 else SLOW
        cluster.deployment(
            app, replicas=replicas, cpu=f"{by.choice((300, 500, 800, 1200, 1600))}m", annotations=annotations, spec=spec
        )
        if number % 2:
            cluster.apply(budget(app))
        pods += replicas
    cluster.eventually(lambda: len(cluster.running()) == pods, within=120, every=1, what="all pods run")
    return pods


def nothing_more(cluster: Cluster, name: str, scaler: Autoscaler, one: Compactor, seconds: float) -> bool:
    """Did nothing happen for so long?"""
    before = (len(scaler.down.evicted), len(scaler.removed), len(one.told("started")))
    time.sleep(seconds)
    settled = before == (len(scaler.down.evicted), len(scaler.removed), len(one.told("started")))
    return settled and not any(map(is_cordoned, nodes(cluster, name)))


@contextmanager
def both(cluster: Cluster, name: str, folder: Path, times: Times) -> Iterator[tuple[Autoscaler, Witness, Compactor]]:
    """The stand-in with the real one's defaults on a clock, and a compactor whose pool leads. What was moved, it leaves
    in peace for as long as a node must be unneeded; by default it is an hour.
    """
    pace = {"drains": 4, "evictionsPerHour": 10_000}
    cluster.apply(pool(cluster, name, autoscaler="lead", pace=pace))
    scaler = Autoscaler.real(cluster, group_of(name), lambda pod: "", times)
    environment = {
        "REQUIRE_AUTOSCALER_STATUS": "true",
        "AUTOSCALER_FLAGS": times.flags,
        "MAX_CONCURRENT_DRAINS": "4",
        "NODE_REMOVAL_TIMEOUT_SECONDS": "1200",
        "MOVE_COOLDOWN_SECONDS": f"{times.unneeded:.0f}",
    }
    with scaler, Witness(cluster) as witness, compactor(cluster, folder, **environment) as one:
        yield scaler, witness, one


def drained_by_both(scaler: Autoscaler, one: Compactor) -> list[str]:
    """Nodes that the autoscaler began to empty while a drain of ours was under way there, or before it began.

    A drain that lasts longer than the unneeded time is the autoscaler's to end: the node fell under the threshold by
    it. One that is younger, we began on a node that was unneeded by no doing of ours.
    """
    theirs, nodes = scaler.down.drained, []
    for begun in one.told("started"):
        node, since = begun["node"], _seconds(begun)
        ends = [line for line in one.lines() if line.get("drain") == begun["drain"] and line["event"] in ENDS]
        until = min(map(_seconds, ends), default=float("inf"))
        if node in theirs and since - scaler.unneeded < theirs[node] < min(until, since + scaler.unneeded):
            nodes.append(node)
    return nodes


def _seconds(line: Object) -> float:
    return datetime.fromisoformat(line["timestamp"]).timestamp()


def held_beside(cluster: Cluster, name: str, folder: Path, times: Times) -> None:
    pods, auditor = crowd(cluster, name), cluster.auditor
    before = len(nodes(cluster, name))
    with both(cluster, name, folder, times) as (scaler, witness, one):
        cluster.eventually(lambda: one.told("started") and scaler.removed, within=60 + 3 * times.unneeded, every=1)
        longest = 120 + 12 * times.unneeded
        quiet = times.unneeded + 10 * times.scan
        cluster.eventually(lambda: nothing_more(cluster, name, scaler, one, quiet), within=longest, every=0.1)
        evicted = [write for write in auditor.writes(user="compactor", resource="pods/eviction") if write.allowed]
        moved = [*(pod for _, pod in scaler.down.evicted), *(f"{w.namespace}/{w.name}" for w in evicted)]
        mine = [pod for pod in moved if pod.startswith(f"{cluster.namespace}/")]
        twice = [pod for pod in mine if witness.ages.get(pod, inf) < times.unneeded]
        begun = len(one.told("started"))
        print(
            f"{before} nodes, {len(nodes(cluster, name))} left; {pods} pods, {len(mine)} evictions, of these "
            f"{len(scaler.down.evicted)} by the autoscaler; {len(twice)} moved twice; {begun} drains begun"
        )
        assert scaler.faults == []
        assert evicted, "it leads"
        assert drained_by_both(scaler, one) == []
        assert len(twice) * 100 <= MOST_TWICE * pods, twice
        assert (scaler.added, witness.broken, witness.waiting()) == ([], [], [])
        assert len(nodes(cluster, name)) <= before * 2 // 3
        assert len(cluster.running()) == pods


def test_no_node_is_drained_by_both_and_hardly_a_pod_moves_twice(cluster: Cluster, name: str, tmp_path: Path) -> None:
    held_beside(cluster, name, tmp_path, Times().scaled(by=30))


@pytest.mark.slow
def test_so_it_is_by_the_real_ones_clock(cluster: Cluster, name: str, tmp_path: Path) -> None:
    """Ten minutes of unneeded time, a look every ten seconds."""
    held_beside(cluster, name, tmp_path, Times())


def test_nothing_begins_while_it_starts_nor_while_a_group_of_the_pool_is_in_backoff(
    cluster: Cluster, name: str, tmp_path: Path
) -> None:
    """A pod that no node holds wants a machine that cannot be had: its group is called s, and nothing like the pool."""
    labels = {"pool": name, "size": "s"}
    names = [f"{name}-{number}" for number in range(6)]
    for node in names:
        cluster.create(objects.node(node, cpu="4", memory="16Gi", pods=110, labels=labels, taints=()))
    # Pods go to the nodes that are ready: on two of them they would leave the stand-in four empty ones to remove.
    cluster.eventually(lambda: all(map(cluster.is_ready, names)), within=60, what="nodes Ready")
    spec = {"nodeSelector": {"pool": name}}
    cluster.deployment("web", replicas=6, cpu="1100m", annotations=SLOW, spec=spec)
    cluster.eventually(lambda: len(cluster.running()) == 6, within=60)
    cluster.deployment("large", replicas=1, cpu="4500m", spec=spec)

    def add(pod: Object) -> str:
        raise CannotAdd("s")

    cluster.apply(pool(cluster, name, autoscaler="lead", pendingLimit="1s"))
    scaler = Autoscaler(cluster, group_of(name), add, unneeded=600, starting=3600, backoff=15)
    with scaler, compactor(cluster, tmp_path, REQUIRE_AUTOSCALER_STATUS="true") as one:
        cluster.eventually(lambda: "autoscaler-unhealthy" in _codes(one), within=30)
        scaler.starting = 0
        cluster.eventually(lambda: "scaling-up" in _codes(one), within=30)
        assert not one.told("started")
        cluster.delete("Deployment", "large")
        cluster.eventually(lambda: one.told("started"), within=60, what="a drain once the Backoff is over")
        assert [node for node in nodes(cluster, name) if noted(node)]


def _codes(one: Compactor) -> set[str]:
    return {line.get("code", "") for line in one.told("planned")}
