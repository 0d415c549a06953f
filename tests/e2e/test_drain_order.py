"""DrainOrders that a compactor carries out, for a user with the narrow role of the page."""

from __future__ import annotations

import signal
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.controlplane.binaries import kubectl
from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e.compactors import Compactor, noted, pool, wait_for_death
from tests.e2e.drain_orders import (
    create_order,
    grant_orders,
    install_orders,
    login_of_account,
    may_order,
    order_compactor,
    status,
    wait_for_phase,
)
from tests.e2e.drains import Drain, Onlooker, cordoned, drain, grant_role, interrupt, pods_on
from tests.e2e.test_drain import prepare

DYING = "tests.e2e.dying_compactor"
AT_ONCE = 3


@pytest.fixture
def ordering(cluster: Cluster) -> Cluster:
    """A namespace with the role for orders, and the user `drainer`."""
    install_orders(cluster)
    grant_orders(cluster)
    return cluster


def annotated(cluster: Cluster, names: list[str]) -> set[str]:
    return {name for name in names if noted(cluster.get("Node", name))}


def test_an_order_is_carried_out_within_budgets_and_its_deletion_releases(ordering: Cluster, tmp_path: Path) -> None:
    nodes, rest = prepare(ordering)
    with (
        order_compactor(ordering, tmp_path),
        Witness(ordering) as witness,
        Onlooker(ordering, nodes).watching() as onlooker,
    ):
        create_order(ordering, *nodes, atOnce=2, why="kernel")
        told = wait_for_phase(ordering, "Done", within=180)
        ordering.eventually(lambda: len(ordering.running()) == 10, within=30)
        shown = ordering.kubectl("get", "drainorders", "order", "--no-headers")
        assert shown.split()[:5] == ["order", "Done", "5", "5", "drainer"]
        assert (told["empty"], told["cordoned"], told["failed"]) == (5, 5, [])
        assert cordoned(ordering, [*nodes, *rest]) == set(nodes)
        assert not pods_on(ordering, nodes)
        ordering.delete("DrainOrder", "order")
        ordering.eventually(lambda: not annotated(ordering, nodes), within=30)
        assert not cordoned(ordering, nodes)
    assert not witness.broken
    assert not onlooker.moved_twice


def test_beside_a_kubectl_drain_of_a_neighbour_no_budget_is_broken(ordering: Cluster, tmp_path: Path) -> None:
    nodes, rest = prepare(ordering, order=4, rest=5, replicas=4)
    neighbour, ours = nodes[0], nodes[1:]
    with (
        order_compactor(ordering, tmp_path),
        Witness(ordering) as witness,
        Onlooker(ordering, ours).watching() as onlooker,
    ):
        other = subprocess.Popen(
            [str(kubectl()), "--kubeconfig", str(ordering.kubeconfig), "drain", neighbour, "--timeout=120s"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            create_order(ordering, *ours, atOnce=2)
            wait_for_phase(ordering, "Done", within=180)
            assert other.wait(120) == 0
        finally:
            other.kill()
    assert not witness.broken
    assert not onlooker.moved_twice
    assert cordoned(ordering, [*nodes, *rest]) == set(nodes)


def test_another_leader_continues_where_a_frozen_one_stopped(ordering: Cluster, tmp_path: Path) -> None:
    nodes, rest = prepare(ordering, order=3, rest=3, replicas=3)
    with (
        order_compactor(ordering, tmp_path / "one") as one,
        Witness(ordering) as witness,
        Onlooker(ordering, nodes).watching() as onlooker,
    ):
        create_order(ordering, *nodes)
        ordering.eventually(lambda: one.told("evicted"), within=60)
        with order_compactor(ordering, tmp_path / "two") as two:
            one.send(signal.SIGSTOP)
            ordering.eventually(lambda: two.told("leads"), within=30)
            wait_for_phase(ordering, "Done", within=90)
            one.send(signal.SIGCONT)
            time.sleep(2)
        assert cordoned(ordering, [*nodes, *rest]) == set(nodes)
    assert not witness.broken
    assert not onlooker.moved_twice


def test_a_pool_that_rehearses_is_named_and_the_order_begins_when_it_acts(ordering: Cluster, tmp_path: Path) -> None:
    nodes, _ = prepare(ordering, order=2, rest=2, replicas=2)
    name = nodes[0].rpartition("-")[0]
    ordering.apply(pool(ordering, name, mode="rehearse", keep={"nodes": 0}, age={"node": "9h", "receiver": 0}))
    with order_compactor(ordering, tmp_path):
        create_order(ordering, *nodes)
        ordering.eventually(lambda: status(ordering).get("reason") == "order-pool-mode", within=30)
        assert not cordoned(ordering, nodes)
        ordering.apply(pool(ordering, name, mode="act", keep={"nodes": 0}, age={"node": "9h", "receiver": 0}))
        wait_for_phase(ordering, "Done")


def test_the_command_hands_over_and_follows(ordering: Cluster, tmp_path: Path) -> None:
    nodes, rest = prepare(ordering, order=2, rest=2, replicas=2)
    login = grant_orders(ordering)
    hands_over = ("--through-compactor", "--system-namespace", ordering.namespace)
    without = drain(login, *nodes, *hands_over)
    assert without.code == 3, "no compactor leads"
    assert not ordering.list("DrainOrder")
    with order_compactor(ordering, tmp_path) as one:
        ordering.eventually(lambda: one.told("leads"), within=30)
        run = drain(login, *nodes, *hands_over, "--why", "kernel", "--at-once", "2", "--timeout", "30m")
        assert run.code == 0, run.text
        assert {event["node"] for event in run.events("emptied")} == set(nodes)
        [made] = ordering.list("DrainOrder")
        assert (made["spec"]["by"], made["spec"]["timeout"], made["status"]["phase"]) == ("drainer", "1800s", "Done")
        assert cordoned(ordering, [*nodes, *rest]) == set(nodes)
        refused = drain(login, rest[0], "no-such-node", *hands_over)
        assert refused.code == 2
        ordering.delete("DrainOrder", made["metadata"]["name"])
        ordering.eventually(lambda: not cordoned(ordering, nodes), within=30)


def test_an_interrupt_of_the_command_leaves_the_order_to_the_compactor(ordering: Cluster, tmp_path: Path) -> None:
    nodes, _ = prepare(ordering, order=3, rest=3, replicas=3)
    login = grant_orders(ordering)
    with order_compactor(ordering, tmp_path) as one:
        ordering.eventually(lambda: one.told("leads"), within=30)
        run = Drain(login, [*nodes, "--through-compactor", "--system-namespace", ordering.namespace]).start()
        ordering.eventually(lambda: run.events("cordoned"), within=60)
        interrupt(run)
        assert run.finish(20) == 3, run.text
        [made] = ordering.list("DrainOrder")
        name = made["metadata"]["name"]
        assert name in run.lines[-1]
        wait_for_phase(ordering, "Done", name)


def killed_at(cluster: Cluster, folder: Path, number: int, *, deletes: bool) -> bool:
    """Killed after this write, and followed by another leader, or by the deletion of the order and then by another
    leader. False if the order has no such write. Events and statuses, which no decision reads, are not counted."""
    inside = cluster.in_namespace(f"die-{uuid.uuid4().hex[:5]}")
    try:
        may_order(inside, "dies")
        nodes, rest = prepare(inside, order=2, rest=2, replicas=2)
        with Witness(inside) as witness, Onlooker(inside, nodes).watching() as onlooker:
            login = str(login_of_account(inside, folder))
            first = Compactor(inside, folder, program=(DYING, str(number), "/events", "/status"), KUBECONFIG=login)
            create_order(inside, *nodes, user="dies")
            died = wait_for_death(first, lambda: status(inside).get("phase") == "Done", grace_seconds=2)
            if deletes:
                inside.delete("DrainOrder", "order")
            with order_compactor(inside, folder):
                if deletes:
                    inside.eventually(lambda: not annotated(inside, nodes), within=40)
                    inside.eventually(lambda: len(inside.running()) == 4, within=30)
                    assert not cordoned(inside, [*nodes, *rest])
                else:
                    wait_for_phase(inside, "Done")
                    assert not pods_on(inside, nodes)
                    assert cordoned(inside, [*nodes, *rest]) == set(nodes)
        assert [one for one in witness.broken if inside.namespace in one] == []
        assert not onlooker.moved_twice
        return died
    finally:
        inside.clean_up()
        inside.delete("Namespace", inside.namespace)


@pytest.mark.slow
def test_killed_after_every_single_write(whole_cluster: Cluster, tmp_path: Path) -> None:
    whole_cluster.needs_own("nodes made by the test (kwok)")
    install_orders(whole_cluster)
    grant_role(whole_cluster, "dies")
    number, deaths, more = 0, 0, True
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while more:
            tries = [(number + n, deletes) for n in range(1, AT_ONCE + 1) for deletes in (False, True)]
            died = list(
                threads.map(
                    lambda one: killed_at(whole_cluster, tmp_path / f"{one[0]}-{one[1]}", one[0], deletes=one[1]),
                    tries,
                )
            )
            number, deaths, more = number + AT_ONCE, deaths + sum(died), all(died)
    print(f"RESULT order killed {deaths} times: after each write, continued and deleted")
    assert deaths >= 24, "acceptance, two cordons, two begins, four evictions, two ends, the end; each twice"
