"""A real HPA controller owns the count: `minReplicas` is raised for a while, and no Service is ever without a pod."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Compactor, Eye, Object, compactor, nodes, noted, pool, wait_for_death
from tests.e2e.surges import (
    EndpointWatch,
    PlayedLoad,
    autoscaled_plane,
    budget_of,
    call_repeatedly,
    floor,
    hpa,
    is_closed,
    is_steady,
    two_nodes,
)
from tests.e2e.test_compactor_surge import SURGES, is_empty, plan_codes

AT_ONCE = 3
DYING = "tests.e2e.dying_compactor"
World = tuple[Cluster, PlayedLoad]


@pytest.fixture(scope="module")
def plane(built: Binaries) -> Iterator[World]:
    with autoscaled_plane(built) as world:
        yield world


@contextmanager
def autoscaled(plane: World, replicas: int = 3, least: int = 2, most: int = 9, **metadata: object) -> Iterator[Cluster]:
    """`only` with its HPA, and a budget that wants as many pods as there are."""
    whole, load = plane
    cluster = whole.in_namespace(f"hpa-{uuid.uuid4().hex[:6]}")
    load.set(cluster, replicas)
    try:
        two_nodes(cluster, cluster.namespace, replicas)
        # Created as with kubectl: a server-side apply is a sign of its own.
        cluster.create(hpa(least, most, **metadata))
        cluster.apply(budget_of(replicas))
        cluster.eventually(lambda: is_steady(cluster, replicas), within=30)
        cluster.eventually(lambda: is_closed(cluster), within=30)
        yield cluster
    finally:
        cluster.clean_up()


def begin(cluster: Cluster) -> None:
    cluster.apply(pool(cluster, cluster.namespace, **SURGES))


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_pods_move_and_min_replicas_is_as_before(plane: World, tmp_path: Path, replicas: int) -> None:
    with autoscaled(plane, replicas, least=min(2, replicas)) as cluster:
        auditor, before = cluster.auditor, floor(cluster)
        machines = len(cluster.list("Node", everywhere=True))
        begin(cluster)
        eye, endpoints = Eye(cluster, watches_budgets=True), EndpointWatch(cluster)
        with eye, endpoints, compactor(cluster, tmp_path):
            cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=60)
            cluster.eventually(lambda: is_steady(cluster, replicas), within=60, what="the HPA's own rules")
        scalings = [write.asked for write in auditor.writes(resource="deployments/scale")]
        print([asked["spec"]["replicas"] for asked in scalings], endpoints.fewest)
        writes = auditor.writes(user="compactor", resource="horizontalpodautoscalers")
        assert [write.asked["spec"]["minReplicas"] for write in writes] == [replicas + 1, before[0]]
        assert floor(cluster) == before
        assert not auditor.writes(user="compactor", resource="deployments/scale")
        assert endpoints.fewest["only"] >= replicas
        assert (dict(endpoints.dark), eye.broken_budgets) == ({}, set())
        assert len(cluster.list("Node", everywhere=True)) == machines


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"most": 3}, "surge-autoscaler-at-maximum"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "x"}}, "surge-autoscaler-managed"),
        ({"labels": {"scaledobject.keda.sh/name": "x"}}, "surge-autoscaler-managed"),
    ],
)
def test_what_keeps_the_pods_is_said_and_nothing_is_written(
    plane: World, tmp_path: Path, more: Object, code: str
) -> None:
    with autoscaled(plane, **more) as cluster:
        begin(cluster)
        auditor = cluster.auditor
        with compactor(cluster, tmp_path) as one:
            cluster.eventually(lambda: one.told("leads"), within=20)
            time.sleep(5)
            assert plan_codes(cluster) == {code}
        assert not auditor.writes(user="compactor", resource="horizontalpodautoscalers")
        assert len(cluster.running("app=only")) == 3


def test_where_a_server_side_apply_owns_min_replicas_it_is_left_alone(plane: World, tmp_path: Path) -> None:
    with autoscaled(plane) as cluster:
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(hpa(2)))
        begin(cluster)
        with compactor(cluster, tmp_path) as one:
            cluster.eventually(lambda: one.told("leads"), within=20)
            time.sleep(5)
            assert plan_codes(cluster) == {"surge-autoscaler-managed"}


def test_who_writes_min_replicas_back_keeps_the_pods_and_is_remembered(plane: World, tmp_path: Path) -> None:
    """By a plain patch, with a manager that no list has: only the revert shows it."""
    with autoscaled(plane) as cluster:
        begin(cluster)
        least = {"spec": {"minReplicas": 2}}
        with (
            EndpointWatch(cluster) as endpoints,
            call_repeatedly(lambda: _revert(cluster, least)),
            compactor(cluster, tmp_path) as one,
        ):
            cluster.eventually(lambda: one.told("released"), within=30)
            time.sleep(5)
            assert len(one.told("started")) == 1
        assert floor(cluster)[0] == 2
        assert endpoints.fewest["only"] >= 3


def _revert(cluster: Cluster, least: Object) -> None:
    if floor(cluster)[0] != 2:
        cluster.patch("HorizontalPodAutoscaler", "only", least)


def died_at(plane: World, folder: Path, write: int) -> bool:
    """Killed after this write, followed by another; False where the drain has no such write."""
    with autoscaled(plane, 1, least=1) as cluster:
        begin(cluster)
        with EndpointWatch(cluster) as endpoints:
            first = Compactor(cluster, folder, program=(DYING, str(write)))
            died = wait_for_death(first, lambda: first.told("emptied"))
            with compactor(cluster, folder):
                cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=30)
                cluster.eventually(lambda: floor(cluster) == (1, None), within=30)
                cluster.eventually(lambda: len(cluster.running("app=only")) == 1, within=60)
        assert all((noted(node) or {"emptied": 1}).get("emptied") for node in nodes(cluster, cluster.namespace))
        assert dict(endpoints.dark) == {}
        return died


@pytest.mark.slow
def test_killed_after_every_single_write(plane: World, tmp_path: Path) -> None:
    number, goes_on, deaths = 1, True, 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while goes_on:
            tries = range(number, number + AT_ONCE)
            died = list(threads.map(lambda n: died_at(plane, tmp_path / str(n), n), tries))
            number, goes_on, deaths = number + AT_ONCE, all(died), deaths + sum(died)
    print(f"RESULT an HPA's surge died after each of {deaths} writes")
    assert deaths >= 7, "cordon, state and note, minReplicas and back, an eviction, the end"
