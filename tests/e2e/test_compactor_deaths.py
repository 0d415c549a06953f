"""A leader that is killed or frozen, at every point there is."""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Compactor, Object, compactor, is_cordoned, nodes, noted, pool, wait_for_death

AT_ONCE = 4
DYING = "tests.e2e.dying_compactor"


ALL = 10
"""Pods of `three_pods`."""


def three_pods(cluster: Cluster, name: str) -> None:
    """A node of three pods, beside one that has room for them and whose own pods are too many to move.

    One of the three is its workload's only one: it gets a second one first.
    """
    spec = {"nodeSelector": {"pool": name}, "terminationGracePeriodSeconds": 1}
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    cluster.deployment("only", replicas=1, cpu="300m", spec=spec)
    cluster.eventually(lambda: len(cluster.running()) == 1, within=60)
    cluster.create(_node(f"{name}-big", name))
    cluster.eventually(lambda: cluster.is_ready(f"{name}-big"))
    cluster.deployment("many", replicas=5, cpu="1000m", spec={**spec, "nodeName": f"{name}-big"})
    for app in ("a", "b"):
        cluster.deployment(app, replicas=2, cpu="300m", spec={**spec, "topologySpreadConstraints": [_apart(app)]})
    cluster.eventually(lambda: len(cluster.running()) == ALL, within=60)


def _apart(app: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _node(name: str, pool_name: str) -> Object:
    from tests.controlplane import objects

    return objects.node(name, cpu="8", memory="32Gi", pods=110, labels={"pool": pool_name}, taints=())


def settings(cluster: Cluster) -> Object:
    return pool(cluster, cluster.namespace, protect={"singleReplicas": False}, surge={"extraPods": 1})


CLOSED_BUDGET: Object = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "only"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "only"}}},
}
"""It allows no eviction of the only pod, unless there is a second one."""


@contextmanager
def settled(cluster: Cluster, *more: Object) -> Iterator[Cluster]:
    """A namespace, nodes and pods of its own, and `more`, ready to be compacted."""
    inside = cluster.in_namespace(f"die-{uuid.uuid4().hex[:6]}")
    try:
        three_pods(inside, inside.namespace)
        inside.apply([*more, settings(inside)])
        yield inside
    finally:
        inside.clean_up()
        inside.delete("Namespace", inside.namespace)


def is_sound(cluster: Cluster) -> bool:
    """Every pod runs, and what is cordoned is ours, empty, and waits for the autoscaler."""
    assert len(cluster.running()) == ALL
    assert cluster.get("Deployment", "only")["spec"]["replicas"] == 1, "what was surged is back"
    for node in nodes(cluster, cluster.namespace):
        note = noted(node)
        assert is_cordoned(node) == (note is not None)
        assert note is None or note.get("emptied"), "a drain that is not over"
    return True


def died_at(cluster: Cluster, folder: Path, write: int, *more: Object) -> bool:
    """Killed after this write, followed by another; False where the drain has no such write."""
    with settled(cluster, *more) as inside:
        first = Compactor(inside, folder, program=(DYING, str(write)))
        died = wait_for_death(first, lambda: first.told("emptied"))  # and then its Events and its state
        with compactor(inside, folder):
            inside.eventually(lambda: [n for n in nodes(inside, inside.namespace) if noted(n)], within=40)
            inside.eventually(lambda: is_sound(inside), within=40)
        return died


@pytest.mark.parametrize("more", [(), (CLOSED_BUDGET,)], ids=["no budget", "a budget that allows none"])
def test_killed_after_every_single_write_of_a_drain(
    whole_cluster: Cluster, tmp_path: Path, more: tuple[Object, ...]
) -> None:
    whole_cluster.needs_own("nodes made by the test (kwok)")
    number, goes_on, deaths = 1, True, 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while goes_on:
            tries = range(number, number + AT_ONCE)
            objects = list(threads.map(lambda n: died_at(whole_cluster, tmp_path / str(n), n, *more), tries))
            number, goes_on, deaths = number + AT_ONCE, all(objects), deaths + sum(objects)
    print(f"died after each of {deaths} writes")
    assert deaths >= 11, "cordon, a surge and its end, three evictions, the end, state and Events in between"


def test_a_leader_that_was_frozen_finds_another_and_writes_nothing_more(cluster: Cluster, tmp_path: Path) -> None:
    name = cluster.namespace
    three_pods(cluster, name)
    with compactor(cluster, tmp_path / "one", USER="first") as one:
        cluster.eventually(lambda: one.told("leads"), within=20)
        with compactor(cluster, tmp_path / "two", USER="second") as two:
            cluster.apply(settings(cluster))
            cluster.eventually(lambda: one.told("started"), within=30)
            one.send(signal.SIGSTOP)
            auditor = cluster.auditor
            cluster.eventually(lambda: two.told("leads"), within=30)
            cluster.eventually(lambda: is_sound(cluster), within=40)
            one.send(signal.SIGCONT)
            time.sleep(5)
            woken = [w for w in auditor.writes(user="first") if w.resource not in ("leases", "leases/status")]
            assert len(woken) <= 1, "at most the write that was in flight"
            assert {w["drain"] for w in one.told("started")} >= {w["drain"] for w in two.told("emptied")}
            assert is_sound(cluster)
