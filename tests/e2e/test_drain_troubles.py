"""Five nodes in one order of a user with narrow rights and nothing installed, with all troubles at once: budgets that
allow one, a successor that does not get ready, a finalizer, too little room, cordons of another person; and a process
that is killed by SIGKILL after each of its writes."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e.drains import Drain, Onlooker, cordoned, drain, grant_role, pods_on, records, role_of_page
from tests.e2e.test_drain import prepare

DYING = ("tests.e2e.dying_drain",)
FLAGS = ("--at-once", "2", "--pod-timeout", "8s", "--keep-going")
SLOW_START = "testbed.trimtab.dev/ready-after"
DEATHS_BEFORE_RELEASE = (1, 3, 6, 9, 13, 17)
AT_ONCE = 3


@dataclass
class Troubles:
    """The world of the order, and what a person repairs in it."""

    cluster: Cluster
    nodes: list[str]
    rest: list[str]
    stuck: str
    """A pod with a finalizer."""

    def remove_finalizer(self) -> None:
        if self.stuck in {pod["metadata"]["name"] for pod in self.cluster.list("Pod")}:
            self.cluster.patch("Pod", self.stuck, {"metadata": {"finalizers": None}})

    def make_ready(self) -> None:
        self._start_after("1s")
        for pod in self.cluster.list("Pod", selector="app=late"):
            if pod["metadata"]["name"] not in {one["metadata"]["name"] for one in self.cluster.running("app=late")}:
                self.cluster.delete("Pod", pod["metadata"]["name"])
        self.cluster.eventually(lambda: len(self.cluster.running("app=late")) == 2, within=40)

    def begin_late(self) -> None:
        """From now on, no successor of the app gets ready."""
        self._start_after("900s")

    def _start_after(self, delay: str) -> None:
        template = {"metadata": {"annotations": {SLOW_START: delay}}}
        for replica_set in self.cluster.list("ReplicaSet", selector="app=late"):
            self.cluster.patch("ReplicaSet", replica_set["metadata"]["name"], {"spec": {"template": template}})

    @property
    def others(self) -> set[str]:
        """The nodes that another person has cordoned."""
        return {self.nodes[0], self.rest[0]}


@contextmanager
def troubles(whole: Cluster, login: Path) -> Iterator[Troubles]:
    inside = whole.in_namespace(f"five-{uuid.uuid4().hex[:5]}")
    try:
        nodes, _ = prepare(inside, order=5, rest=0)
        team = inside.get("Node", nodes[0])["metadata"]["labels"]["team"]
        inside.deployment(
            "late",
            replicas=2,
            cpu="100m",
            annotations={SLOW_START: "1s"},
            spec={"nodeSelector": {"team": team}, "terminationGracePeriodSeconds": 1},
        )
        inside.eventually(lambda: len(inside.running("app=late")) == 2, within=60)
        inside.patch("Deployment", "late", {"spec": {"paused": True}})
        full = drain(login, *nodes[:4])
        assert (full.code, "fits on none" in full.text) == (3, True), full.text
        assert not cordoned(inside, nodes), "a full cluster: nothing begins"
        rest = list(inside.pool(f"{team}-new", nodes=6, cpu="4", memory="16Gi", labels={"team": team}))
        stuck = inside.list("Pod", selector="app=a")[0]["metadata"]["name"]
        inside.patch("Pod", stuck, {"metadata": {"finalizers": ["example.com/wait"]}})
        world = Troubles(inside, nodes, rest, stuck)
        for name in world.others:
            inside.patch("Node", name, {"spec": {"unschedulable": True}})
        world.begin_late()
        try:
            yield world
        finally:
            world.remove_finalizer()
    finally:
        inside.clean_up()
        inside.delete("Namespace", inside.namespace)


def brave_login(whole: Cluster, user: str) -> Path:
    role = role_of_page()
    role["metadata"]["name"] = f"drainer-{user}"  # the other tests take their role away
    return grant_role(whole, user, role)


@pytest.mark.slow
def test_killed_after_every_write_and_resumed_each_time(whole_cluster: Cluster) -> None:
    """Each process makes one write and is dead. What stops an order is repaired, and the next process goes on."""
    whole_cluster.needs_own("nodes made by the test (kwok)")
    login = brave_login(whole_cluster, "five-resumes")
    with troubles(whole_cluster, login) as world:
        repairs: list[Callable[[], None]] = [world.remove_finalizer, world.make_ready]
        codes: set[str] = set()
        deaths, words = 0, tuple(world.nodes)
        with Witness(world.cluster) as witness, Onlooker(world.cluster, world.nodes).watching() as onlooker:
            while True:
                run = drain(login, "1", *words, *FLAGS, program=DYING)
                words = ("--resume", *world.nodes)
                if run.code == -signal.SIGKILL:
                    deaths += 1
                    continue
                if run.code == 0:
                    break
                codes |= run.codes("failed")
                assert (run.code, bool(repairs)) == (3, True), run.text
                repairs.pop(0)()
        assert codes <= {"drain-pod-stuck", "drain-successor-not-ready"}
        assert not pods_on(world.cluster, world.nodes)
        assert cordoned(world.cluster, [*world.nodes, *world.rest]) == {*world.nodes, *world.others}
        assert [one for one in witness.broken if world.cluster.namespace in one] == []
        assert not onlooker.moved_twice
        assert drain(login, "--release", "--yes", *world.nodes).code == 0
        assert cordoned(world.cluster, [*world.nodes, *world.rest]) == world.others
        assert not records(world.cluster, world.nodes)
    print(f"RESULT five nodes killed {deaths} times: after each write, resumed; stopped by {sorted(codes)}")
    assert deaths >= 25, "five cordons or records, five begins, twelve evictions, five ends"


def released_after(whole: Cluster, login: Path, number: int) -> bool:
    """Killed after this write, and released. False if the order has no such write."""
    with troubles(whole, login) as world, Witness(world.cluster) as witness:
        run: Drain = drain(login, str(number), *world.nodes, *FLAGS, program=DYING)
        if ordered := list(records(world.cluster, world.nodes)):
            assert drain(login, "--release", "--yes", *ordered).code == 0
        assert cordoned(world.cluster, [*world.nodes, *world.rest]) == world.others
        assert not records(world.cluster, world.nodes)
        assert [one for one in witness.broken if world.cluster.namespace in one] == []
        return run.code == -signal.SIGKILL


@pytest.mark.slow
def test_killed_after_a_write_and_released(whole_cluster: Cluster) -> None:
    whole_cluster.needs_own("nodes made by the test (kwok)")
    login = brave_login(whole_cluster, "five-releases")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        died = list(threads.map(lambda number: released_after(whole_cluster, login, number), DEATHS_BEFORE_RELEASE))
    print(f"RESULT five nodes killed {sum(died)} times and released")
    assert sum(died) >= 4
