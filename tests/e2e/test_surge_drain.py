"""`trimtab drain --surge-pods`: with a user's login, a successor first, whoever owns the count; killed anywhere."""

from __future__ import annotations

import json
import re
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Eye
from tests.e2e.drains import PAGE, Object, cordoned, drain, grant_role, pods_on, records, role_of_page
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

DYING = ("tests.e2e.dying_drain",)
World = tuple[Cluster, PlayedLoad]


@pytest.fixture(scope="module")
def plane(built: Binaries) -> Iterator[World]:
    with autoscaled_plane(built) as world:
        yield world


def login_of(cluster: Cluster, user: str = "surger") -> Path:
    """A user with both roles of the page: to drain, and to give Deployments more pods."""
    grant_role(cluster, user, role_of_page())
    return grant_role(cluster, user, role_of_surges())


def role_of_surges() -> Object:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    roles = [role for role in map(yaml.safe_load, blocks) if role["kind"] == "ClusterRole"]
    return next(role for role in roles if "surge" in role["metadata"]["name"])


@contextmanager
def closed_budget(plane: World, replicas: int, *, autoscales: bool = False) -> Iterator[Cluster]:
    """`only`, with a budget that wants as many pods as there are; its node is NAMESPACE-0."""
    whole, load = plane
    cluster = whole.in_namespace(f"surge-{uuid.uuid4().hex[:6]}")
    load.set(cluster, replicas)
    try:
        two_nodes(cluster, cluster.namespace, replicas)
        cluster.apply(budget_of(replicas))
        if autoscales:
            cluster.create(hpa(1))
            cluster.eventually(lambda: is_steady(cluster, replicas), within=30)
        cluster.eventually(lambda: is_closed(cluster), within=30)
        yield cluster
    finally:
        cluster.clean_up()


def node_of(cluster: Cluster) -> str:
    return f"{cluster.namespace}-0"


def count(cluster: Cluster) -> int:
    number: int = cluster.get("Deployment", "only")["spec"]["replicas"]
    return number


def test_a_single_replica_moves_and_no_service_is_without_a_pod(plane: World) -> None:
    with closed_budget(plane, 1) as cluster:
        login = login_of(cluster)
        without = drain(login, node_of(cluster))
        assert without.code == 3
        assert "--surge-pods 1" in without.text
        assert not cordoned(cluster, [node_of(cluster)])
        eye, endpoints = Eye(cluster, watches_budgets=True), EndpointWatch(cluster)
        with eye, endpoints:
            run = drain(login, node_of(cluster), "--surge-pods", "1")
        assert run.code == 0, run.text
        assert count(cluster) == 1
        assert not pods_on(cluster, [node_of(cluster)])
        assert (dict(endpoints.dark), endpoints.fewest["only"], eye.broken_budgets) == ({}, 1, set())


def test_an_autoscaler_is_raised_and_set_back(plane: World) -> None:
    with closed_budget(plane, 2, autoscales=True) as cluster, EndpointWatch(cluster) as endpoints:
        run = drain(login_of(cluster), node_of(cluster), "--surge-pods", "1", within=180)
        assert run.code == 0, run.text
        assert floor(cluster) == (1, None)
        assert endpoints.fewest["only"] == 2


def test_without_the_right_to_scale_nothing_begins(plane: World) -> None:
    with closed_budget(plane, 1) as cluster:
        run = drain(grant_role(cluster, "narrow", role_of_page()), node_of(cluster), "--surge-pods", "1")
        assert run.code == 3
        assert "patch deployments/scale.apps only" in run.text
        assert not cordoned(cluster, [node_of(cluster)])


def test_who_takes_the_pods_back_keeps_the_pod(plane: World) -> None:
    with closed_budget(plane, 1) as cluster, EndpointWatch(cluster) as endpoints:
        one = {"spec": {"replicas": 1}}
        with call_repeatedly(lambda: count(cluster) == 1 or cluster.patch("Deployment", "only", one)):
            run = drain(login_of(cluster), node_of(cluster), "--surge-pods", "1", "--timeout", "120s", within=180)
        assert (run.code, run.codes("failed")) == (3, {"drain-surge-reverted"}), run.text
        assert count(cluster) == 1
        assert dict(endpoints.dark) == {}


def test_a_forged_record_scales_nothing_down(plane: World) -> None:
    """Any client that may patch a node can write a record; the Deployment itself says who set its count."""
    with closed_budget(plane, 2) as cluster:
        login, node = login_of(cluster), node_of(cluster)
        surge = {"surges": {f"{cluster.namespace}/only": 1}, "surged": {f"{cluster.namespace}/only": 1}}
        note = {"drain": "d", "pool": "", "since": 1, "moves": [], **surge}
        record = {"order": "forged", "since": 1, "nodes": [node], "drain": note}
        text = json.dumps(record)
        patch = {"metadata": {"annotations": {"trimtab.dev/drain-order": text}}, "spec": {"unschedulable": True}}
        cluster.patch("Node", node, patch)
        drain(login, node, "--resume")
        assert count(cluster) == 2
        drain(login, node, "--release", "--yes")
        assert count(cluster) == 2


@pytest.mark.parametrize("ends", ["resume", "release"])
def test_killed_after_every_write(plane: World, ends: str) -> None:
    deaths, number = 0, 1
    while True:
        with closed_budget(plane, 1) as cluster, EndpointWatch(cluster) as endpoints:
            login, node = login_of(cluster), node_of(cluster)
            run = drain(login, str(number), node, "--surge-pods", "1", program=DYING)
            is_dead = run.code == -signal.SIGKILL
            if is_dead and ends == "resume":
                again = drain(login, "--resume", node, "--surge-pods", "1")
                assert again.code in (0, 2), again.text
                assert not pods_on(cluster, [node])
            elif records(cluster, [node]):
                assert drain(login, "--release", "--yes", node).code == 0
            cluster.eventually(lambda: count(cluster) == 1, within=10)
            cluster.eventually(lambda: len(cluster.running("app=only")) == 1, within=20)
        assert dict(endpoints.dark) == {}, number
        if not is_dead:
            break
        deaths, number = deaths + 1, number + 1
    print(f"RESULT a drain with a surge died after each of {deaths} writes; then {ends}")
    assert deaths >= 7, "cordon, begin, note, scale, evict, scale, end"
